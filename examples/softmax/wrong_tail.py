"""Row softmax that forgets the tail of a row: wrong. Refuted at: correct

It works on whole vectors of 8 columns and lets the rest be. With 4096 columns there is no rest, so
the main case cannot show it; a case with an odd number of columns does.
"""

import torch

import toprung

SOURCE = r"""
#include <cmath>
#include <cstdint>

void softmax(TensorView x, TensorView out) {
  const int64_t rows = x.size(0), cols = x.size(1), whole = cols / 8 * 8;
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(out.data_ptr());
#pragma omp parallel for schedule(static)
  for (int64_t i = 0; i < rows; ++i) {
    const float* a = from + i * cols;
    float* b = to + i * cols;
    float top = -INFINITY;
    for (int64_t j = 0; j < whole; ++j) top = a[j] > top ? a[j] : top;
    double sum = 0.0;
    for (int64_t j = 0; j < whole; ++j) sum += b[j] = std::exp(a[j] - top);
    for (int64_t j = 0; j < whole; ++j) b[j] /= static_cast<float>(sum);
  }
}
"""

native = toprung.inline(SOURCE, "softmax")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.zeros_like(x)
        native.softmax(x, out)
        return out
