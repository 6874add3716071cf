/* Writes back and drops every cache line of a range, from all caches of all cores. x86-64 only. */
#include <emmintrin.h>
#include <stddef.h>

void toprung_flush(const char *start, size_t bytes) {
    for (size_t at = 0; at < bytes; at += 64) _mm_clflush(start + at);
    _mm_mfence();
}
