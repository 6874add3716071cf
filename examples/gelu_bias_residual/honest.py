"""gelu(x + bias) + residual in C++: honest. Everything in one pass over memory.

gelu(x) = x Phi(x), Phi being the normal distribution. The tail Phi(-t) for t = |x| is computed as
exp(Q(t) - t^2 / 2) with a polynomial Q, so that one vectorisable formula serves every x:
gelu(x) = x - x Phi(-t) for x > 0 and x Phi(-t) below, where the usual 1 + erf would cancel.
"""

import torch

import toprung

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstring>

// e^x for x <= 0, to about one unit in the last place; examples/softmax/honest.py explains it.
static inline float power_of_two(int32_t n) {
  const int32_t bits = (n + 127) << 23;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline float exp_nonpositive(float x) {
  const float low = x < -104.0f ? -104.0f : x;
  const float n = (low * 1.44269504f + 12582912.0f) - 12582912.0f;
  const float r = std::fma(n, 2.12194440e-4f, std::fma(n, -0.693359375f, low));
  float q = 1.38145809e-3f;
  q = std::fma(q, r, 8.36872539e-3f);
  q = std::fma(q, r, 4.16683889e-2f);
  q = std::fma(q, r, 1.66665206e-1f);
  q = std::fma(q, r, 0.499999934f);
  const float e = 1.0f + std::fma(r * r, q, r);
  const int32_t whole = static_cast<int32_t>(n), half = whole >> 1;
  return e * power_of_two(half) * power_of_two(whole - half);
}

static inline float gelu(float x) {
  const float t = std::fabs(x);
  // Q(t) = log(Phi(-t)) + t^2 / 2, fitted on [0, 6] with the error weighted by Phi(-t), at most
  // 9e-9. Beyond 6 the tail is under 1e-9 and only its steep fall matters.
  const float u = t > 6.0f ? 6.0f : t;
  float q = 2.10554886e-7f;
  q = std::fma(q, u, -4.61024274e-6f);
  q = std::fma(q, u, 4.07031651e-5f);
  q = std::fma(q, u, -1.64390369e-4f);
  q = std::fma(q, u, -4.29236361e-5f);
  q = std::fma(q, u, 4.85345946e-3f);
  q = std::fma(q, u, -3.63695539e-2f);
  q = std::fma(q, u, 1.81697873e-1f);
  q = std::fma(q, u, -7.97885216e-1f);
  q = std::fma(q, u, -6.93147172e-1f);
  const float tail = x * exp_nonpositive(std::fma(-0.5f * t, t, q));
  return x > 0.0f ? x - tail : tail;
}

void run(TensorView x, TensorView bias, TensorView residual, TensorView out) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* a = static_cast<const float*>(x.data_ptr());
  const float* shift = static_cast<const float*>(bias.data_ptr());
  const float* rest = static_cast<const float*>(residual.data_ptr());
  float* b = static_cast<float*>(out.data_ptr());
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i)
#pragma omp simd
    for (int64_t j = 0; j < cols; ++j) {
      const int64_t at = i * cols + j;
      b[at] = gelu(a[at] + shift[j]) + rest[at];
    }
}
"""

native = toprung.inline(SOURCE, "run")


class ModelNew(torch.nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.bias = torch.nn.Parameter(torch.zeros(dim))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        x, residual = x.contiguous(), residual.contiguous()
        out = torch.empty_like(x)
        native.run(x, self.bias.detach(), residual, out)
        return out
