// What this CPU can do at best: streams through memory, and multiply-adds in registers.
//
// Every function runs `passes` times over its data on `threads` threads within one parallel region
// and returns seconds per pass, so that starting threads does not count. Arrays are aligned to 64
// bytes and `n` is a multiple of 16 floats times threads.

#include <cstddef>
#include <omp.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#if defined(__AVX512F__)
#define WIDTH 64
#elif defined(__AVX__)
#define WIDTH 32
#else
#define WIDTH 16
#endif

typedef float vec __attribute__((vector_size(WIDTH)));
typedef double dvec __attribute__((vector_size(WIDTH)));
static const size_t LANES = WIDTH / sizeof(float);

// Stores past the caches, where the machine has them; ordinary stores elsewhere.
static inline void stream(vec *to, vec value) {
#if defined(__AVX512F__)
  _mm512_stream_ps((float *)to, (__m512)value);
#elif defined(__AVX__)
  _mm256_stream_ps((float *)to, (__m256)value);
#elif defined(__x86_64__)
  _mm_stream_ps((float *)to, (__m128)value);
#else
  *to = value;
#endif
}

static inline void settle() {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

template <class Body> static double timed(size_t n, int passes, int threads, Body body) {
  double start = 0, seconds = 0;
#pragma omp parallel num_threads(threads)
  {
    const size_t vectors = n / LANES, share = vectors / omp_get_num_threads();
    const size_t first = share * omp_get_thread_num();
    // The time is taken before any thread is let go: one that is late then shows, on a busy machine.
#pragma omp barrier
#pragma omp master
    start = omp_get_wtime();
#pragma omp barrier
    for (int pass = 0; pass < passes; ++pass) {
      body(first, first + share);
      asm volatile("" ::: "memory");
    }
    settle();
#pragma omp barrier
#pragma omp master
    seconds = (omp_get_wtime() - start) / passes;
  }
  return seconds;
}

// Twelve independent chains hide the latency of a multiply-add; `rounds` of them per pass.
template <class V> static double multiply_add(size_t rounds, int passes, int threads) {
  return timed(0, passes, threads, [=](size_t, size_t) {
    V x[12];
    for (int i = 0; i < 12; ++i) x[i] = V{} + (1.0f + i);
    V scale = V{} + 0.999f, shift = V{} + 0.001f;
    asm volatile("" : "+m"(scale), "+m"(shift));
    for (size_t round = 0; round < rounds; ++round)
      for (int i = 0; i < 12; ++i) x[i] = x[i] * scale + shift;
    V sum = {};
    for (int i = 0; i < 12; ++i) sum += x[i];
    asm volatile("" ::"r"(&sum) : "memory");
  });
}

extern "C" {

double probe_read(const float *a, size_t n, int passes, int threads) {
  const vec *from = (const vec *)a;
  return timed(n, passes, threads, [=](size_t i, size_t end) {
    vec s0 = {}, s1 = {}, s2 = {}, s3 = {}, s4 = {}, s5 = {}, s6 = {}, s7 = {};
    for (; i + 8 <= end; i += 8) {
      s0 += from[i], s1 += from[i + 1], s2 += from[i + 2], s3 += from[i + 3];
      s4 += from[i + 4], s5 += from[i + 5], s6 += from[i + 6], s7 += from[i + 7];
    }
    s0 += s1 + s2 + s3 + s4 + s5 + s6 + s7;
    asm volatile("" ::"r"(&s0) : "memory");
  });
}

double probe_write(float *c, size_t n, int past_caches, int passes, int threads) {
  vec *to = (vec *)c;
  const vec one = {1.0f};
  return timed(n, passes, threads, [=](size_t i, size_t end) {
    if (past_caches)
      for (; i < end; ++i) stream(to + i, one);
    else
      for (; i < end; ++i) to[i] = one;
  });
}

double probe_copy(const float *a, float *c, size_t n, int past_caches, int passes, int threads) {
  const vec *from = (const vec *)a;
  vec *to = (vec *)c;
  return timed(n, passes, threads, [=](size_t i, size_t end) {
    if (past_caches)
      for (; i < end; ++i) stream(to + i, from[i]);
    else
      for (; i < end; ++i) to[i] = from[i];
  });
}

double probe_triad(const float *a, const float *b, float *c, size_t n, int past_caches, int passes,
                   int threads) {
  const vec *x = (const vec *)a, *y = (const vec *)b;
  vec *to = (vec *)c;
  const vec s = vec{} + 3.0f;
  return timed(n, passes, threads, [=](size_t i, size_t end) {
    if (past_caches)
      for (; i < end; ++i) stream(to + i, x[i] + s * y[i]);
    else
      for (; i < end; ++i) to[i] = x[i] + s * y[i];
  });
}

double probe_fma_fp32(size_t rounds, int passes, int threads) {
  return multiply_add<vec>(rounds, passes, threads);
}

double probe_fma_fp64(size_t rounds, int passes, int threads) {
  return multiply_add<dvec>(rounds, passes, threads);
}

// Flops of one round on one thread.
size_t probe_flops_fp32() { return 12 * 2 * WIDTH / sizeof(float); }
size_t probe_flops_fp64() { return 12 * 2 * WIDTH / sizeof(double); }
}
