// Pieces that a kernel may need. A line `//: name after other, another` begins the piece `name`;
// only what a kernel uses is copied into it, in this order.

//: common
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

#define INLINE __attribute__((always_inline))

constexpr double INF = std::numeric_limits<double>::infinity();

//: data
template <class T>
inline T* data(TensorView t) { return static_cast<T*>(t.data_ptr()); }

//: team
#include <omp.h>
// As many threads as there is work for: starting one costs as much as some thousand elements.
inline int team(int64_t work) {
  const int64_t most = std::max(1, omp_get_max_threads() / SHARE);
  return int(std::min(most, std::max<int64_t>(1, work / GRAIN)));
}

//: huge_pages
#include <sys/mman.h>
// A large output that nobody has written yet costs one page fault for every 4 KiB; with huge pages
// it is one for every 2 MiB. This is advice: where it is not taken, nothing changes.
inline void huge_pages(void* start, size_t bytes) {
#ifdef MADV_HUGEPAGE
  constexpr uintptr_t page = 4096;
  const uintptr_t from = (reinterpret_cast<uintptr_t>(start) + page - 1) & ~(page - 1);
  const uintptr_t to = (reinterpret_cast<uintptr_t>(start) + bytes) & ~(page - 1);
  if (bytes >= size_t(4) << 20 && from < to) madvise(reinterpret_cast<void*>(from), to - from, MADV_HUGEPAGE);
#endif
}

//: lanes
// f(i, lane) for every i in [from, to); the compiler turns L lanes into vector registers.
template <int L, class F>
INLINE inline void lanes(int64_t from, int64_t to, F f) {
  int64_t i = from;
  for (; i + L <= to; i += L) {
#pragma omp simd
    for (int l = 0; l < L; ++l) f(i + l, l);
  }
  const int rest = int(to - i);
#pragma omp simd
  for (int l = 0; l < rest; ++l) f(i + l, l);
}

//: ahead
// The same, and `ahead(i)` once for every L elements: time to ask memory for what comes next.
template <int L, class F, class G>
INLINE inline void lanes(int64_t from, int64_t to, F f, G ahead) {
  int64_t i = from;
  for (; i + L <= to; i += L) {
    ahead(i);
#pragma omp simd
    for (int l = 0; l < L; ++l) f(i + l, l);
  }
  lanes<L>(i, to, f);
}
template <int L, class T>
INLINE inline void prefetch(const T* from) {
  for (size_t byte = 0; byte < L * sizeof(T); byte += 64) __builtin_prefetch(reinterpret_cast<const char*>(from) + byte);
}

//: fill
template <class T, int L>
INLINE inline void fill(T (&a)[L], T value) {
  for (int l = 0; l < L; ++l) a[l] = value;
}

//: scratch
#include <cstdlib>
// Memory of one thread, aligned to a cache line.
template <class T>
struct Scratch {
  T* at;
  explicit Scratch(int64_t n) {
    const size_t bytes = (size_t(n) * sizeof(T) + 63) / 64 * 64;
    at = static_cast<T*>(std::aligned_alloc(64, std::max<size_t>(bytes, 64)));
    if (!at) std::abort();
  }
  ~Scratch() { std::free(at); }
  Scratch(const Scratch&) = delete;
};

//: slots
#include <vector>
// One value a thread, a cache line apart; combined in order, so that results are repeatable.
template <class T>
struct Slots {
  struct alignas(64) Slot { T value; };
  std::vector<Slot> all;
  Slots(int threads, T start) : all(threads, Slot{start}) {}
  T& mine() { return all[omp_get_thread_num()].value; }
};

//: stream
#if defined(__AVX512F__) || defined(__AVX__)
#include <immintrin.h>
#endif
// Copy past the caches: right for results that are not read again soon.
inline void stream(float* to, const float* from, int64_t n) {
  int64_t i = 0;
#if defined(__AVX512F__)
  for (; i < n && (reinterpret_cast<uintptr_t>(to + i) & 63); ++i) to[i] = from[i];
  for (; i + 16 <= n; i += 16) _mm512_stream_ps(to + i, _mm512_loadu_ps(from + i));
#elif defined(__AVX__)
  for (; i < n && (reinterpret_cast<uintptr_t>(to + i) & 31); ++i) to[i] = from[i];
  for (; i + 8 <= n; i += 8) _mm256_stream_ps(to + i, _mm256_loadu_ps(from + i));
#endif
  for (; i < n; ++i) to[i] = from[i];
}
inline void stream_end() {
#if defined(__AVX__)
  _mm_sfence();
#endif
}

//: bits
template <class To, class From>
INLINE inline To bits(From v) {
  static_assert(sizeof(To) == sizeof(From), "same size");
  To r;
  std::memcpy(&r, &v, sizeof r);
  return r;
}

//: bf16 after bits
// bfloat16 is the upper half of a float; rounding is to nearest, ties to even.
INLINE inline float widened(uint16_t v) { return bits<float>(uint32_t(v) << 16); }
INLINE inline uint16_t narrowed(float v) {
  const uint32_t u = bits<uint32_t>(v);
  const uint32_t rounded = (u + 0x7fff + ((u >> 16) & 1)) >> 16;
  return uint16_t(v != v ? 0x7fc0 : rounded);
}

//: rounded_to_bf16 after bf16
INLINE inline float rounded_to_bf16(float v) { return widened(narrowed(v)); }
INLINE inline double rounded_to_bf16(double v) { return widened(narrowed(float(v))); }

//: larger
// NaN wins, as in torch.
template <class T>
INLINE inline T larger(T a, T b) { return a > b || a != a ? a : b; }

//: smaller
template <class T>
INLINE inline T smaller(T a, T b) { return a < b || a != a ? a : b; }

//: total
template <class T, int L>
INLINE inline auto total(const T (&a)[L]) {
  typename std::conditional<std::is_integral<T>::value, int64_t, double>::type s[L];
  for (int l = 0; l < L; ++l) s[l] = a[l];
  for (int half = L / 2; half > 0; half /= 2)
    for (int l = 0; l < half; ++l) s[l] += s[l + half];
  return s[0];
}

//: all_multiplied
template <class T, int L>
INLINE inline T all_multiplied(const T (&a)[L]) {
  T p = a[0];
  for (int l = 1; l < L; ++l) p *= a[l];
  return p;
}

//: largest after larger
template <class T, int L>
INLINE inline T largest(const T (&a)[L]) {
  T m = a[0];
  for (int l = 1; l < L; ++l) m = larger(m, a[l]);
  return m;
}

//: smallest after smaller
template <class T, int L>
INLINE inline T smallest(const T (&a)[L]) {
  T m = a[0];
  for (int l = 1; l < L; ++l) m = smaller(m, a[l]);
  return m;
}

//: best
// The largest value and the first place where it stands; NaN counts as the largest.
struct Best { double value; int64_t at; };
INLINE inline Best first_of(Best a, Best b) {
  const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
  const bool same = a.value == b.value || (a_nan && b_nan);
  const bool mine = same ? a.at <= b.at : a_nan || (!b_nan && a.value > b.value);
  return mine ? a : b;
}
template <class T>
INLINE inline void take_first(T& value, int64_t& at, T x, int64_t i) {
  const bool take = (x > value) | ((x != x) & (value == value)) | ((x == value) & (i < at));
  value = take ? x : value;
  at = take ? i : at;
}
template <class T, int L>
INLINE inline Best first_best(const T (&a)[L], const int64_t (&at)[L]) {
  Best best{double(a[0]), at[0]};
  for (int l = 1; l < L; ++l) best = first_of(best, Best{double(a[l]), at[l]});
  return best;
}

//: checked
#include <atomic>
// An index from the data. No exception may leave a parallel region: it is thrown afterwards.
inline int64_t checked(int64_t i, int64_t n, std::atomic<bool>& outside) {
  if (i >= 0 && i < n) return i;
  outside = true;
  return 0;
}

//: rest
// What of a number is lost when it is rounded to float: x - v is (x - float(v)) - rest(v).
INLINE inline float rest(double v) {
  const float high = float(v);
  return std::isfinite(high) ? float(v - high) : 0.0f;
}

//: absolute
INLINE inline float absolute(float x) { return __builtin_fabsf(x); }
INLINE inline double absolute(double x) { return __builtin_fabs(x); }
INLINE inline int64_t absolute(int64_t x) { return x < 0 ? -x : x; }

//: is_infinite
template <class T>
INLINE inline bool is_infinite(T x) {
  return x == std::numeric_limits<T>::infinity() || x == -std::numeric_limits<T>::infinity();
}

//: sign
template <class T>
INLINE inline T sign(T x) { return x > 0 ? T(1) : x < 0 ? T(-1) : x; }

//: square_root
INLINE inline float square_root(float x) { return __builtin_sqrtf(x); }
INLINE inline double square_root(double x) { return __builtin_sqrt(x); }

//: round_down
INLINE inline float round_down(float x) { return __builtin_floorf(x); }
INLINE inline double round_down(double x) { return __builtin_floor(x); }

//: round_up
INLINE inline float round_up(float x) { return __builtin_ceilf(x); }
INLINE inline double round_up(double x) { return __builtin_ceil(x); }

//: round_to_zero
INLINE inline float round_to_zero(float x) { return __builtin_truncf(x); }
INLINE inline double round_to_zero(double x) { return __builtin_trunc(x); }

//: round_to_even
INLINE inline float round_to_even(float x) { return __builtin_rintf(x); }
INLINE inline double round_to_even(double x) { return __builtin_rint(x); }

//: power_of_two after bits
// The functions below were fitted for this file; their errors are over all floats. Arguments are
// reduced by whole powers of two: adding 1.5 * 2^23 rounds to a whole number in the low bits.
constexpr float WHOLE = 12582912.0f;
constexpr float LOG2E = 1.44269504f, LN2_HIGH = 0.693359375f, LN2_LOW = -2.12194440e-4f;
// p * 2^n in two steps, so that tiny results round once and large ones become infinite.
INLINE inline float scaled(float p, int32_t n) {
  const int32_t half = n >> 1;
  return p * bits<float>((half + 127) << 23) * bits<float>((n - half + 127) << 23);
}
// (exp(r) - 1 - r) / r^2 for |r| <= ln(2) / 2
INLINE inline float exponential_tail(float r) {
  float q = 1.3943254e-3f;
  q = q * r + 8.369394e-3f;
  q = q * r + 4.16663736e-2f;
  q = q * r + 1.66665152e-1f;
  return q * r + 0.5f;
}

//: exponential after power_of_two
// At most 1.03 units in the last place.
INLINE inline float exponential(float x) {
  x = x > 89.0f ? 89.0f : x;
  x = x < -104.0f ? -104.0f : x;
  const float t = x * LOG2E + WHOLE;
  const float k = t - WHOLE;
  const float r = (x - k * LN2_HIGH) - k * LN2_LOW;
  const float p = exponential_tail(r) * (r * r) + r + 1.0f;
  return scaled(p, bits<int32_t>(t) - bits<int32_t>(WHOLE));
}
INLINE inline double exponential(double x) { return std::exp(x); }

//: exponential2 after power_of_two
INLINE inline float exponential2(float x) {
  x = x > 129.0f ? 129.0f : x;
  x = x < -151.0f ? -151.0f : x;
  const float t = x + WHOLE;
  const float f = x - (t - WHOLE);
  const float r = f * 0.693147182f, low = f * -1.90465430e-9f;
  const float p = exponential_tail(r) * (r * r) + low + r + 1.0f;
  return scaled(p, bits<int32_t>(t) - bits<int32_t>(WHOLE));
}
INLINE inline double exponential2(double x) { return std::exp2(x); }

//: exponential_m1 after power_of_two
// exp(x) - 1; at most 1.6 units in the last place.
INLINE inline float exponential_m1(float x) {
  float y = x > 89.0f ? 89.0f : x;
  y = y < -30.0f ? -30.0f : y;
  const float t = y * LOG2E + WHOLE;
  const float k = t - WHOLE;
  const float r = (y - k * LN2_HIGH) - k * LN2_LOW;
  const float p = exponential_tail(r) * (r * r) + r;
  const float half = bits<float>((bits<int32_t>(t) - bits<int32_t>(WHOLE) + 126) << 23);
  return 2.0f * (half * p + (half - 0.5f));
}
INLINE inline double exponential_m1(double x) { return std::expm1(x); }

//: one_plus_error_function after power_of_two
// 1 + erf(x), which is erfc(-x): good in its lower tail too, and cheaper than erf itself. erfc(a)
// is exp(-a * h(a)), where h was fitted up to 4.1 and grows beyond, so that the tail goes to zero.
INLINE inline float one_plus_error_function(float x) {
  const float a = __builtin_fabsf(x);
  float h = 6.2807527e-07f;
  h = h * a - 1.30663866e-05f;
  h = h * a + 0.000117116404f;
  h = h * a - 0.000575237849f;
  h = h * a + 0.00147860695f;
  h = h * a + 0.000122291734f;
  h = h * a - 0.019377606f;
  h = h * a + 0.102870956f;
  h = h * a + 0.636601508f;
  h = h * a + 1.1283803f;
  const float g = h * a;
  const float y = g > 87.0f ? -87.0f : -g;
  const float t = y * LOG2E + WHOLE;
  const float k = t - WHOLE;
  const float r = (y - k * LN2_HIGH) - k * LN2_LOW;
  const float p = exponential_tail(r) * (r * r) + r + 1.0f;
  const float e = p * bits<float>((bits<int32_t>(t) - bits<int32_t>(WHOLE) + 127) << 23);
  const float tail = g > 87.0f ? 0.0f : e;
  return x < 0.0f ? tail : 2.0f - tail;
}
INLINE inline double one_plus_error_function(double x) { return std::erfc(-x); }

//: logarithm after bits
// x = m * 2^e with m in [sqrt(1/2), sqrt(2)); at most 0.9 units in the last place.
struct Exponent { float f, e; };
INLINE inline Exponent exponent(float x) {
  const bool tiny = x < 1.17549435e-38f;
  const float y = tiny ? x * 8388608.0f : x;
  const int32_t u = bits<int32_t>(y);
  const int32_t n = (u - 0x3f3504f3) >> 23;
  return {bits<float>(u - (n << 23)) - 1.0f, float(n) - (tiny ? 23.0f : 0.0f)};
}
// log(1 + f) - f for f in [sqrt(1/2) - 1, sqrt(2) - 1]
INLINE inline float logarithm_tail(float f) {
  float q = -7.860955e-2f;
  q = q * f + 1.28866613e-1f;
  q = q * f - 1.31304204e-1f;
  q = q * f + 1.41805634e-1f;
  q = q * f - 1.66243374e-1f;
  q = q * f + 2.000231e-1f;
  q = q * f - 2.50008166e-1f;
  q = q * f + 3.33333164e-1f;
  const float s = f * f;
  return q * f * s - 0.5f * s;
}
INLINE inline float logarithm_ends(float x, float r) {
  r = x == float(INF) ? x : r;
  r = x == 0.0f ? -float(INF) : r;
  return x < 0.0f || x != x ? float(NAN) : r;
}
INLINE inline float logarithm(float x) {
  const Exponent s = exponent(x);
  const float r = (logarithm_tail(s.f) + s.e * -2.12194440e-4f) + s.f + s.e * 0.693359375f;
  return logarithm_ends(x, r);
}
INLINE inline double logarithm(double x) { return std::log(x); }

//: logarithm2 after logarithm
INLINE inline float logarithm2(float x) {
  const Exponent s = exponent(x);
  const double m = double(logarithm_tail(s.f)) + double(s.f);
  return logarithm_ends(x, float(m * 1.4426950408889634 + double(s.e)));
}
INLINE inline double logarithm2(double x) { return std::log2(x); }

//: logarithm10 after logarithm
INLINE inline float logarithm10(float x) {
  const Exponent s = exponent(x);
  const double m = double(logarithm_tail(s.f)) + double(s.f);
  return logarithm_ends(x, float(m * 0.43429448190325182 + double(s.e) * 0.30102999566398120));
}
INLINE inline double logarithm10(double x) { return std::log10(x); }

//: logarithm_1p after logarithm
// log(1 + x); what rounding took from 1 + x is given back. At most 1.5 units in the last place.
INLINE inline float logarithm_1p(float x) {
  const float u = 1.0f + x;
  const float lost = x - (u - 1.0f);
  const float r = logarithm(u);
  return u == 0.0f || u == float(INF) ? r : r + lost / u;
}
INLINE inline double logarithm_1p(double x) { return std::log1p(x); }

//: hyperbolic_tangent after exponential_m1
// At most 2.5 units in the last place.
INLINE inline float hyperbolic_tangent(float x) {
  const float m = exponential_m1(-2.0f * __builtin_fabsf(x));
  return __builtin_copysignf(-m / (2.0f + m), x);
}
INLINE inline double hyperbolic_tangent(double x) { return std::tanh(x); }

//: sigmoid after exponential
INLINE inline float sigmoid(float x) {
  const float e = exponential(-__builtin_fabsf(x));
  return (x < 0.0f ? e : 1.0f) / (1.0f + e);
}
INLINE inline double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

//: error_function after exponential
// At most 1.1 units in the last place: erf(x) / x - 1 near zero, 1 - exp(-g(x)) beyond.
INLINE inline float error_function(float x) {
  const float a = __builtin_fabsf(x);
  const float s = a * a;
  float p = 7.80690316e-5f;
  p = p * s - 7.9978531e-4f;
  p = p * s + 5.1871622e-3f;
  p = p * s - 2.68533472e-2f;
  p = p * s + 1.12835787e-1f;
  p = p * s - 3.7612626e-1f;
  p = p * s + 1.28379166e-1f;
  const float b = a > 4.1f ? 4.1f : a;
  float g = -1.91510378e-4f;
  g = g * b + 2.99958652e-3f;
  g = g * b - 2.20521297e-2f;
  g = g * b + 1.03567086e-1f;
  g = g * b + 6.37599885e-1f;
  g = g * b + 1.12742615f;
  g = g * b + 2.56436324e-4f;
  const float far = 1.0f - exponential(-g);
  return __builtin_copysignf(a < 1.0f ? p * a + a : far, x);
}
INLINE inline double error_function(double x) { return std::erf(x); }
