/* SHA-256 (FIPS 180-4). */
#ifndef CHECK_SHA256_H
#define CHECK_SHA256_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct chk_sha256 {
  uint32_t h[8];
  uint64_t n_bytes;
  unsigned char block[64];
  bool instructions; /* the processor's own; set by chk_sha256_init, and may be cleared behind it */
} chk_sha256;

/* Whether the processor has instructions for it (x86: SHA extensions). */
bool chk_sha256_has_instructions(void);

void chk_sha256_init(chk_sha256 *s);
void chk_sha256_add(chk_sha256 *s, const void *p, size_t n);
/* 64 hexadecimal digits and a NUL. */
void chk_sha256_hex(chk_sha256 *s, char out[65]);

#endif
