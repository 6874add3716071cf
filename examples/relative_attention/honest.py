"""Attention with a relative position in C++: honest, and more exact than the reference.

Four queries at a time: their scores stay in cache and never go to memory. Both matrix products run
in one small routine whose 4 x 32 results stay in registers.

The reference adds q_idx - kv_idx to the score in float and loses digits of the score once the index
is in the hundreds. Here the difference to the largest exponent is formed first, of scores and of
indices each on their own; both are small and exact where it matters.
"""

import torch

import toprung

SOURCE = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <vector>

constexpr int64_t ROWS = 4, WIDTH = 32;

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

// c[r][0..width) = sum over i < n of a[r][i] * b[i * stride + 0..width), for ROWS rows at once.
template <bool WHOLE>
static void product(const float* const* a, const float* b, int64_t stride, int64_t n,
                    int64_t width, float* const* c) {
  float sum[ROWS][WIDTH] = {};
  for (int64_t i = 0; i < n; ++i) {
    for (int64_t r = 0; r < ROWS; ++r) {
      const float left = a[r][i];
      // A width known to the compiler lets it keep all sums in registers.
      for (int64_t j = 0; j < (WHOLE ? WIDTH : width); ++j) sum[r][j] += left * b[i * stride + j];
    }
  }
  for (int64_t r = 0; r < ROWS; ++r)
    for (int64_t j = 0; j < (WHOLE ? WIDTH : width); ++j) c[r][j] = sum[r][j];
}

static void product(const float* const* a, const float* b, int64_t stride, int64_t n,
                    int64_t cols, float* const* c) {
  for (int64_t j = 0; j < cols; j += WIDTH) {
    float* at[ROWS];
    for (int64_t r = 0; r < ROWS; ++r) at[r] = c[r] + j;
    const int64_t width = std::min(WIDTH, cols - j);
    if (width == WIDTH)
      product<true>(a, b + j, stride, n, width, at);
    else
      product<false>(a, b + j, stride, n, width, at);
  }
}

// Scores of one query to weights e^(score_j - j - largest); returns 1 / their sum.
static float weigh(float* score, int64_t length, float scale) {
  float top = -INFINITY;
#pragma omp simd reduction(max : top)
  for (int64_t j = 0; j < length; ++j) {
    score[j] *= scale;
    const float exponent = score[j] - static_cast<float>(static_cast<int32_t>(j));
    top = exponent > top ? exponent : top;
  }
  int64_t best = 0;
  while (best < length - 1 && score[best] - static_cast<float>(best) != top) ++best;

  const float score_there = score[best];
  const int32_t there = static_cast<int32_t>(best);
  double sum = 0.0;
#pragma omp simd reduction(+ : sum)
  for (int64_t j = 0; j < length; ++j) {
    const float steps = static_cast<float>(static_cast<int32_t>(j) - there);
    score[j] = exp_nonpositive((score[j] - score_there) - steps);
    sum += score[j];
  }
  return static_cast<float>(1.0 / sum);
}

void attention(TensorView query, TensorView key, TensorView value, double scale, TensorView out) {
  const int64_t heads = query.size(0) * query.size(1), length = query.size(2), dim = query.size(3);
  const float* q = static_cast<const float*>(query.data_ptr());
  const float* k = static_cast<const float*>(key.data_ptr());
  const float* v = static_cast<const float*>(value.data_ptr());
  float* o = static_cast<float*>(out.data_ptr());
  const int64_t blocks = (length + ROWS - 1) / ROWS;
  std::vector<float> turned(heads * dim * length);  // the keys as (head, dim, length)

#pragma omp parallel
  {
#pragma omp for schedule(static)
    for (int64_t h = 0; h < heads; ++h)
      for (int64_t j = 0; j < length; ++j)
        for (int64_t d = 0; d < dim; ++d)
          turned[(h * dim + d) * length + j] = k[(h * length + j) * dim + d];

    std::vector<float> scores(ROWS * length), results(ROWS * dim);
#pragma omp for schedule(static)
    for (int64_t block = 0; block < heads * blocks; ++block) {
      const int64_t h = block / blocks, first = block % blocks * ROWS;
      const float *query_rows[ROWS], *weight_rows[ROWS];
      float *score_rows[ROWS], *result_rows[ROWS];
      for (int64_t r = 0; r < ROWS; ++r) {
        // Past the end, the last query is computed again and not written.
        query_rows[r] = q + (h * length + std::min(first + r, length - 1)) * dim;
        weight_rows[r] = score_rows[r] = scores.data() + r * length;
        result_rows[r] = results.data() + r * dim;
      }
      product(query_rows, turned.data() + h * dim * length, length, dim, length, score_rows);
      float inverse[ROWS];
      for (int64_t r = 0; r < ROWS; ++r)
        inverse[r] = weigh(score_rows[r], length, static_cast<float>(scale));
      product(weight_rows, v + h * length * dim, dim, length, dim, result_rows);
      for (int64_t r = 0; r < std::min(ROWS, length - first); ++r)
        for (int64_t d = 0; d < dim; ++d)
          o[(h * length + first + r) * dim + d] = result_rows[r][d] * inverse[r];
    }
  }
}
"""

native = toprung.inline(SOURCE, "attention")


class ModelNew(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        out = torch.empty_like(q)
        native.attention(q, k, v, q.shape[-1] ** -0.5, out)
        return out
