"""Root-mean-square normalisation in C++: honest. One read from memory, one write.

A candidate may be a function instead of a module: `kernel` gets the inputs in order and the
reference's parameters by name. What the constructor was given is not among them, so `eps` stands
here as it stands in the task.
"""

import torch

import toprung

EPS = 1e-6

SOURCE = r"""
#include <cmath>
#include <cstdint>

void rms_norm(TensorView x, TensorView weight, double epsilon, TensorView out) {
  const int64_t cols = weight.numel(), rows = x.numel() / cols;
  const float* from = static_cast<const float*>(x.data_ptr());
  const float* w = static_cast<const float*>(weight.data_ptr());
  float* to = static_cast<float*>(out.data_ptr());

#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    const float* a = from + i * cols;
    float* b = to + i * cols;

    // Squares of large floats overflow a float; as doubles they do not.
    double squares = 0.0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < cols; ++j) {
      const double value = a[j];
      squares += value * value;
    }
    const double scale = 1.0 / std::sqrt(squares / cols + epsilon);

#pragma omp simd
    for (int64_t j = 0; j < cols; ++j) b[j] = static_cast<float>(a[j] * scale * w[j]);
  }
}
"""

native = toprung.inline(SOURCE, "rms_norm")


def kernel(x: torch.Tensor, *, weight: torch.Tensor) -> torch.Tensor:
    x = x.contiguous()
    out = torch.empty_like(x)
    native.rms_norm(x, weight.detach(), EPS, out)
    return out
