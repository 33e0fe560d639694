/* SHA-256 as FIPS 180-4 has it, sections 4.1.2, 4.2.2, 5 and 6.2. */
#include "check/sha256.h"

#include <stdio.h>
#include <string.h>

#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <immintrin.h>
#endif

static const uint32_t K[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t turn(uint32_t x, int n) { return x >> n | x << (32 - n); }

static void take_block(uint32_t h[8], const unsigned char *p) {
  uint32_t w[64], v[8];
  for (int i = 0; i < 16; i++)
    w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 |
           p[4 * i + 3];
  for (int i = 16; i < 64; i++) {
    const uint32_t a = turn(w[i - 15], 7) ^ turn(w[i - 15], 18) ^ w[i - 15] >> 3,
                   b = turn(w[i - 2], 17) ^ turn(w[i - 2], 19) ^ w[i - 2] >> 10;
    w[i] = w[i - 16] + a + w[i - 7] + b;
  }
  memcpy(v, h, sizeof v);
  for (int i = 0; i < 64; i++) {
    const uint32_t e = v[4], a = v[0];
    const uint32_t t1 =
        v[7] + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & v[5]) ^ (~e & v[6])) + K[i] + w[i];
    const uint32_t t2 =
        (turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & v[1]) ^ (a & v[2]) ^ (v[1] & v[2]));
    memmove(v + 1, v, 7 * sizeof *v);
    v[4] += t1;
    v[0] = t1 + t2;
  }
  for (int i = 0; i < 8; i++) h[i] += v[i];
}

#if defined(__x86_64__) && defined(__GNUC__)
/* The same by the processor's own rounds: weights of gigabytes are what takes a check's time. Two
 * words of the state a register, A B E F and C D G H from the top; four rounds a step, on four
 * words of the message, of which those from the fifth step on follow from the four before. */
__attribute__((target("sha,sse4.1"))) static void
take_blocks_sha(uint32_t h[8], const unsigned char *p, size_t n) {
  const __m128i swap = _mm_set_epi8(12, 13, 14, 15, 8, 9, 10, 11, 4, 5, 6, 7, 0, 1, 2, 3);
  __m128i abef = _mm_set_epi32((int)h[0], (int)h[1], (int)h[4], (int)h[5]),
          cdgh = _mm_set_epi32((int)h[2], (int)h[3], (int)h[6], (int)h[7]);
  for (; n > 0; n--, p += 64) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i w[16];
    for (int i = 0; i < 16; i++) {
      if (i < 4)
        w[i] = _mm_shuffle_epi8(_mm_loadu_si128((const __m128i *)(const void *)(p + 16 * i)), swap);
      else
        w[i] = _mm_sha256msg2_epu32(_mm_add_epi32(_mm_sha256msg1_epu32(w[i - 4], w[i - 3]),
                                                  _mm_alignr_epi8(w[i - 1], w[i - 2], 4)),
                                    w[i - 1]);
      const __m128i wk =
          _mm_add_epi32(w[i], _mm_loadu_si128((const __m128i *)(const void *)(K + 4 * i)));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, wk);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(wk, 0x0e));
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  uint32_t x[4], y[4];
  _mm_storeu_si128((__m128i *)(void *)x, abef);
  _mm_storeu_si128((__m128i *)(void *)y, cdgh);
  h[0] = x[3], h[1] = x[2], h[4] = x[1], h[5] = x[0];
  h[2] = y[3], h[3] = y[2], h[6] = y[1], h[7] = y[0];
}

bool chk_sha256_has_instructions(void) {
  unsigned a, b, c, d;
  const bool sse41 = __get_cpuid(1, &a, &b, &c, &d) && (c & bit_SSE4_1) && (c & bit_SSSE3);
  return sse41 && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & 1u << 29);
}
#else
static void take_blocks_sha(uint32_t h[8], const unsigned char *p, size_t n) {
  (void)h, (void)p, (void)n;
}
bool chk_sha256_has_instructions(void) { return false; }
#endif

static void take_blocks(chk_sha256 *s, const unsigned char *p, size_t n) {
  if (s->instructions) take_blocks_sha(s->h, p, n);
  else
    for (; n > 0; n--, p += 64) take_block(s->h, p);
}

void chk_sha256_init(chk_sha256 *s) {
  static const uint32_t h[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  memcpy(s->h, h, sizeof h);
  s->n_bytes = 0;
  s->instructions = chk_sha256_has_instructions();
}

void chk_sha256_add(chk_sha256 *s, const void *data, size_t n) {
  const unsigned char *p = data;
  while (n) {
    const size_t have = s->n_bytes % 64, room = 64 - have;
    if (have == 0 && n >= 64) {
      const size_t whole = n / 64;
      take_blocks(s, p, whole);
      s->n_bytes += 64 * whole, p += 64 * whole, n -= 64 * whole;
      continue;
    }
    const size_t k = n < room ? n : room;
    memcpy(s->block + have, p, k);
    s->n_bytes += k, p += k, n -= k;
    if (s->n_bytes % 64 == 0) take_blocks(s, s->block, 1);
  }
}

void chk_sha256_hex(chk_sha256 *s, char out[65]) {
  const uint64_t bits = s->n_bytes * 8;
  unsigned char pad[72] = {0x80}, *end = pad + (s->n_bytes % 64 < 56 ? 56 : 120) - s->n_bytes % 64;
  for (int i = 0; i < 8; i++) end[i] = (unsigned char)(bits >> (56 - 8 * i));
  chk_sha256_add(s, pad, (size_t)(end - pad) + 8);
  for (int i = 0; i < 8; i++) snprintf(out + 8 * i, 9, "%08x", s->h[i]);
}
