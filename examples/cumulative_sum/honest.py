"""Running sums in C++: honest. Four rows at a time, sums in double.

One row is a chain: an addition can start when the one before has ended, four cycles later. Four rows
are four chains that run side by side in those cycles.
"""

import torch

import toprung

SOURCE = r"""
#include <algorithm>
#include <cstdint>

constexpr int64_t CHAINS = 4;

template <int64_t ROWS>
static void scan(const float* x, float* out, int64_t cols) {
  double sum[ROWS] = {};
  for (int64_t j = 0; j < cols; ++j)
    for (int64_t r = 0; r < ROWS; ++r) {
      sum[r] += x[r * cols + j];
      out[r * cols + j] = static_cast<float>(sum[r]);
    }
}

void cumulative_sum(TensorView x, TensorView out) {
  const int64_t rows = x.size(0), cols = x.size(1);
  const float* from = static_cast<const float*>(x.data_ptr());
  float* to = static_cast<float*>(out.data_ptr());
#pragma omp parallel for schedule(static)
  for (int64_t first = 0; first < rows; first += CHAINS) {
    if (rows - first >= CHAINS)
      scan<CHAINS>(from + first * cols, to + first * cols, cols);
    else
      for (int64_t i = first; i < rows; ++i) scan<1>(from + i * cols, to + i * cols, cols);
  }
}
"""

native = toprung.inline(SOURCE, "cumulative_sum")


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        out = torch.empty_like(x)
        native.cumulative_sum(x, out)
        return out
