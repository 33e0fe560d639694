#include "egraph/base/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct iso_arena_block {
  struct iso_arena_block *next;
  size_t used, size;
  _Alignas(16) unsigned char data[];
} iso_arena_block;

void iso_arena_init(iso_arena *a) { *a = (iso_arena){0}; }

void iso_arena_fini(iso_arena *a) {
  for (iso_arena_block *b = a->head; b;) {
    iso_arena_block *next = b->next;
    free(b);
    b = next;
  }
  *a = (iso_arena){0};
}

void *iso_arena_alloc(iso_arena *a, size_t n) {
  if (n > SIZE_MAX / 4) return a->failed = true, NULL;
  n = (n + 15) & ~(size_t)15;
  if (n == 0) n = 16;
#ifdef ISO_ARENA_DEBUG
  const size_t least = 0;
#else
  /* Blocks double with the arena, so that small owners stay small and large ones make few calls. */
  const size_t least = a->used_bytes < 512          ? 512
                       : a->used_bytes > (1u << 20) ? (1u << 20)
                                                    : a->used_bytes;
#endif
  if (!a->head || a->head->size - a->head->used < n) {
    size_t size = n > least ? n : least;
    iso_arena_block *b = calloc(1, sizeof *b + size);
    if (!b) return a->failed = true, NULL;
    b->size = size;
    b->next = a->head;
    a->head = b;
  }
  void *p = a->head->data + a->head->used;
  a->head->used += n;
  a->used_bytes += n;
  return p;
}

char *iso_arena_strndup(iso_arena *a, const char *s, size_t n) {
  char *p = iso_arena_alloc(a, n + 1);
  if (p) memcpy(p, s, n);
  return p;
}

char *iso_arena_strdup(iso_arena *a, const char *s) { return iso_arena_strndup(a, s, strlen(s)); }

char *iso_arena_printf(iso_arena *a, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int n = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = n < 0 ? NULL : iso_arena_alloc(a, (size_t)n + 1);
  if (p) vsnprintf(p, (size_t)n + 1, fmt, again);
  va_end(again);
  return p;
}
