/* Words written one after another and read in the same order, in chunks that grow: matches, and
 * lists copied flat. One chunk is kept for the next search, so that short ones neither ask for
 * memory nor touch new pages. */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

/* Bytes: chunks grow up to SMALL. Where there are MANY, they are mappings, which go back to the
 * system when they are read. */
enum { FIRST = 1 << 11, SMALL = 1 << 18, MANY = 10 << 20, MAPPED = 1 << 21 };

static size_t next_size(const egi_words *x) {
  if (!x->last) return FIRST;
  if (x->read_once && x->bytes >= MANY) return MAPPED;
  return x->last->bytes < SMALL / 4 ? 4 * x->last->bytes : SMALL;
}

/* Those that a short run needs have small pages: nobody clears a huge one for them. */
static egi_chunk *chunk_new(size_t bytes) {
  void *p = NULL;
  size_t cap = 0;
  if (!egi_big_grow(&p, &cap, 0, bytes, 1, bytes > EGI_LARGE)) return NULL;
  egi_chunk *c = p;
  c->bytes = cap;
  c->cap = (cap - sizeof *c) / sizeof *c->word - EGI_SLACK;
  return c;
}

static void chunk_free(egi_chunk *c) {
  if (c) egi_big_free(c, c->bytes);
}

static bool more(egi_words *x, size_t n) {
  egi_chunk *c = x->spare;
  if (c && c->cap >= n) {
    x->spare = NULL;
  } else {
    if (n > SIZE_MAX / 8) return false;
    const size_t least = sizeof *c + (n + EGI_SLACK) * sizeof *c->word, next = next_size(x);
    if (!(c = chunk_new(least > next ? least : next))) return false;
  }
  c->next = NULL;
  c->n = 0;
  if (x->last) x->last->next = c;
  else x->first = c;
  x->last = c;
  x->bytes += c->bytes;
  return true;
}

uint32_t *egi_words_open(egi_words *x, size_t n, uint32_t **end) {
  if ((!x->last || x->last->cap - x->last->n < n) && !more(x, n)) return NULL;
  *end = x->last->word + x->last->cap;
  return x->last->word + x->last->n;
}

static void drop(egi_words *x, egi_chunk *c) {
  x->bytes -= c->bytes;
  if (c->bytes <= SMALL && (!x->spare || x->spare->bytes < c->bytes)) {
    egi_chunk *old = x->spare;
    x->spare = c;
    c = old;
  }
  chunk_free(c);
}

static void drop_first(egi_words *x) {
  egi_chunk *c = x->first;
  x->first = c->next;
  if (!x->first) x->last = NULL;
  x->at = 0;
  drop(x, c);
}

/* The next records that stand side by side. */
static const uint32_t *take_some(egi_words *x, size_t stride, size_t max, size_t *n) {
  while (x->first && x->at == x->first->n) drop_first(x);
  *n = 0;
  if (!x->first) return NULL;
  const uint32_t *out = x->first->word + x->at;
  const size_t most = (x->first->n - x->at) / stride;
  *n = most < max ? most : max;
  x->at += *n * stride;
  return out;
}

const uint32_t *egi_words_take(egi_words *x, size_t stride, size_t max, size_t *n) {
  const uint32_t *out = take_some(x, stride, max, n);
  if (!*n || *n == max || !x->first->next) return out;
  if (!egi_grow(x->joined, x->cap_joined, max * stride)) return out;
  memcpy(x->joined, out, *n * stride * sizeof *out);
  for (size_t more; *n < max && (out = take_some(x, stride, max - *n, &more)); *n += more)
    memcpy(x->joined + *n * stride, out, more * stride * sizeof *out);
  return x->joined;
}

egi_mark egi_words_mark(const egi_words *x) {
  return (egi_mark){x->last, x->last ? x->last->n : 0};
}

void egi_words_rewind(egi_words *x, egi_mark to) {
  if (!to.chunk) {
    egi_words_clear(x);
    return;
  }
  egi_chunk *c = to.chunk->next;
  to.chunk->next = NULL;
  to.chunk->n = to.n;
  x->last = to.chunk;
  while (c) {
    egi_chunk *next = c->next;
    drop(x, c);
    c = next;
  }
}

void egi_words_clear(egi_words *x) {
  while (x->first) drop_first(x);
}

void egi_words_free(egi_words *x) {
  egi_words_clear(x);
  chunk_free(x->spare);
  x->spare = NULL;
  egi_grown_free(x->joined, x->cap_joined);
  x->joined = NULL;
  x->cap_joined = 0;
}

void egi_words_append(egi_words *x, egi_words *from) {
  if (from->first) {
    if (x->last) x->last->next = from->first;
    else x->first = from->first;
    x->last = from->last;
    x->bytes += from->bytes;
    from->first = from->last = NULL;
    from->bytes = 0;
  }
  egi_words_free(from);
}
