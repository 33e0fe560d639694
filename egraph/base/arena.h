/* A bump allocator: pieces die together. With ISO_ARENA_DEBUG each piece is a malloc of its own, so
 * that AddressSanitizer sees misuse. Not thread-safe; one arena per owner. */
#ifndef EGRAPH_BASE_ARENA_H
#define EGRAPH_BASE_ARENA_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct iso_arena {
  struct iso_arena_block *head;
  size_t used_bytes; /* handed out since init */
  bool failed;       /* a piece could not be had since then: tells no memory from nothing to find */
} iso_arena;

/* All bits zero is an empty arena too. */
void iso_arena_init(iso_arena *a);
/* Releases everything. The arena is empty and usable afterwards. */
void iso_arena_fini(iso_arena *a);
/* Returns: zeroed memory aligned for any type, NULL when there is none. `n` may be 0. */
void *iso_arena_alloc(iso_arena *a, size_t n);
/* Returns: a copy of `n` bytes of `s` and a NUL after it, NULL when there is no memory. */
char *iso_arena_strndup(iso_arena *a, const char *s, size_t n);
char *iso_arena_strdup(iso_arena *a, const char *s);
/* printf into the arena. Returns NULL when there is no memory. */
char *iso_arena_printf(iso_arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#ifdef __cplusplus
}
#endif
#endif
