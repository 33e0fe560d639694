/* Words written one after another and read in the same order, in chunks that grow: matches, and lists copied flat. One
 * chunk is kept for the next search, so that short ones neither ask for memory nor touch new pages. */
#include "egraph/query_int.h"

/* Bytes: chunks double up to SMALL, which malloc has at hand again; where there are MANY bytes each is a huge page, which
 * goes back to the system when it is read. */
enum { FIRST = 1 << 10, SMALL = 1 << 18, MANY = 1 << 21, HUGE = 1 << 21 };

static size_t next_size(const egi_words *x) {
  if (!x->last) return FIRST;
  if (x->read_once && x->bytes >= MANY) return HUGE;
  return x->last->bytes < SMALL ? 2 * x->last->bytes : SMALL;
}

static bool more(egi_words *x, size_t n) {
  egi_chunk *c = x->spare;
  if (c && c->cap >= n) {
    x->spare = NULL;
  } else {
    const size_t least = sizeof *c + (n + EGI_SLACK) * sizeof *c->word, next = next_size(x);
    size_t bytes = 0;
    void *p = NULL;
    if (n > SIZE_MAX / 8 || !egi_big_grow(&p, &bytes, 0, least > next ? least : next, 1)) return false;
    egi_big_filled(p, bytes);
    c = p;
    c->bytes = bytes;
    c->cap = (bytes - sizeof *c) / sizeof *c->word - EGI_SLACK;
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
  if (c) egi_big_free(c, c->bytes);
}

static void drop_first(egi_words *x) {
  egi_chunk *c = x->first;
  x->first = c->next;
  if (!x->first) x->last = NULL;
  x->at = 0;
  drop(x, c);
}

const uint32_t *egi_words_take(egi_words *x, size_t stride, size_t max, size_t *n) {
  while (x->first && x->at == x->first->n) drop_first(x);
  *n = 0;
  if (!x->first) return NULL;
  const uint32_t *out = x->first->word + x->at;
  const size_t most = (x->first->n - x->at) / stride;
  *n = most < max ? most : max;
  x->at += *n * stride;
  return out;
}

egi_mark egi_words_mark(const egi_words *x) { return (egi_mark){x->last, x->last ? x->last->n : 0}; }

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
  if (x->spare) egi_big_free(x->spare, x->spare->bytes);
  x->spare = NULL;
}
