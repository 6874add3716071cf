"""Layer normalisation in C++: honest. Mean, then deviations, then the result, row by row.

The row is read three times, but only the first time from memory. Sums are kept in double: the loop
waits for memory anyway. The parameters keep the reference's names (`norm.weight`, `norm.bias`), so
that its values are copied in.
"""

import torch

import toprung

SOURCE = r"""
#include <cmath>
#include <cstdint>

void layer_norm(TensorView x, TensorView weight, TensorView bias, double epsilon, TensorView out) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = static_cast<const float*>(x.data_ptr());
  const float* w = static_cast<const float*>(weight.data_ptr());
  const float* shift = static_cast<const float*>(bias.data_ptr());
  float* to = static_cast<float*>(out.data_ptr());

#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    const float* a = from + i * cols;
    float* b = to + i * cols;

    double sum = 0.0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < cols; ++j) sum += a[j];
    const double mean = sum / cols;

    double squares = 0.0;
#pragma omp simd reduction(+ : squares)
    for (int64_t j = 0; j < cols; ++j) {
      const double deviation = a[j] - mean;
      squares += deviation * deviation;
    }
    const double scale = 1.0 / std::sqrt(squares / cols + epsilon);

    // In float, x - mean would lose digits where the mean is large; in double it does not.
#pragma omp simd
    for (int64_t j = 0; j < cols; ++j) {
      const float normal = static_cast<float>((a[j] - mean) * scale);
      b[j] = normal * w[j] + shift[j];
    }
  }
}
"""

native = toprung.inline(SOURCE, "layer_norm")


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        norm = self.norm
        native.layer_norm(x, norm.weight.detach(), norm.bias.detach(), norm.eps, out)
        return out
