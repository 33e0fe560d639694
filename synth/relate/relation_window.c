/* Relations by value: columns of a range of rows of one source (synth/relate/relation.c has the
 * whole). */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "synth/relate/relation_int.h"

enum { MAX_WINDOWS = 64 }; /* row ranges tried per source and orientation */
static const int64_t WINDOW_WORK =
    100000000; /* target elements times source elements, and comparisons in all */

/* Columns of a block: each column of the target is a column of rows [first, first + R) of one
 * source. With `along` 1, rows and columns change places; `turned` reads the source transposed. */
typedef struct window {
  uint32_t src;
  bool turned;
  uint32_t along; /* the dimension that is cut to the window */
  int64_t first;
  piece *p; /* ranges of the other dimension; `set` is not used */
  size_t n, cap;
  bool tied;
} window;

static const unsigned char *at2(const view *v, int64_t r, int64_t c) {
  return v->data + (size_t)(r * v->stride[0] + c * v->stride[1]) * v->item;
}

static bool same_column(search *s, const view *tv, int64_t tc, const view *sv, int64_t first,
                        int64_t sc) {
  for (int64_t r = 0; r < tv->dim[0]; r++) {
    s->window_work--;
    if (memcmp(at2(tv, r, tc), at2(sv, first + r, sc), tv->item) != 0) return false;
  }
  return true;
}

/* Greedy, as in `walk`: at each column the longest run, the first of equally long ones. */
static bool window_pieces(search *s, const view *tv, const view *sv, window *w, size_t limit) {
  w->n = 0;
  w->tied = false;
  for (int64_t c = 0; c < tv->dim[1];) {
    piece best = {0};
    bool tied = w->tied; /* by the pieces before this one */
    for (int64_t k = 0; k < sv->dim[1]; k++) {
      int64_t len = 0;
      while (c + len < tv->dim[1] && k + len < sv->dim[1] &&
             same_column(s, tv, c + len, sv, w->first, k + len))
        len++;
      w->tied = w->tied || (len > 0 && len == best.len);
      if (len > best.len) best = (piece){.start = k, .len = len}, w->tied = tied;
      if (s->window_work <= 0) return false;
    }
    if (best.len == 0 || w->n + 1 > limit) return false;
    if (!iso_grow(w->p, w->cap, w->n + 1)) return rel_no_memory(s);
    w->p[w->n++] = best;
    c += best.len;
  }
  return true;
}

/* Single rows (R = 1) are rel_made of elements, which match by chance: there only a block of one
 * piece counts. */
static size_t window_limit(const view *tv) {
  int64_t n = tv->dim[0] == 1 ? 1 : tv->dim[0] < 4 ? 2 + tv->dim[1] / 4 : tv->dim[1];
  return n > MAX_PIECES ? MAX_PIECES : (size_t)n;
}

/* Try the row ranges in which the target's first column occurs. Requires: views oriented so that
 * rows are cut. */
static bool try_windows(search *s, const view *tv, const view *sv, window *w, size_t limit) {
  int tries = 0;
  for (int64_t r = 0; r + tv->dim[0] <= sv->dim[0] && tries < MAX_WINDOWS; r++)
    for (int64_t c = 0; c < sv->dim[1]; c++) {
      if (s->window_work <= 0) return false;
      if (!same_column(s, tv, 0, sv, r, c)) continue;
      w->first = r;
      tries++;
      if (window_pieces(s, tv, sv, w, limit)) return true;
      break;
    }
  return false;
}

static bool window_shape(const rule_tensor *t, rule_shape *out) {
  return t->shape.rank == 2 ? view_form_shape(t, FORM_SELF, out)
                            : view_form_shape(t, FORM_ROWS, out);
}

/* Keep in `best` the window of fewer pieces, then of the more alike name. */
static void window_consider(search *s, window *w, window *best) {
  if (best->n != 0) {
    if (w->n > best->n) return;
    if (w->n == best->n) {
      best->tied = w->tied = best->tied || w->tied || w->src != best->src;
      if (rel_likeness(s, w->src) <= rel_likeness(s, best->src)) return;
    }
  }
  window old = *best;
  *best = *w;
  *w = (window){.p = old.p, .cap = old.cap};
}

static rel_made make_window(search *s, const window *w, const rule_shape *shape) {
  rule_shape base;
  ISO_CHECK(window_shape(s->x->source[w->src], &base));
  rel_made m = rel_reshape(s, rel_source(s, w->src), &base);
  if (w->turned) m = rel_transpose(s, m);
  m = rel_slice(s, m, w->along, w->first, w->first + shape->dim[w->along]);
  rel_made *part = calloc(w->n, sizeof *part);
  if (!part) {
    rel_no_memory(s);
    return m;
  }
  for (size_t i = 0; i < w->n; i++)
    part[i] = rel_slice(s, m, 1 - w->along, w->p[i].start, w->p[i].start + w->p[i].len);
  m = rel_cat(s, part, w->n, 1 - w->along);
  free(part);
  return rel_reshape(s, m, &s->t->shape);
}

bool rel_find_window(search *s, synth_relation *out) {
  rule_shape shape, base;
  if (s->t->numel < 2 || !window_shape(s->t, &shape)) return false;
  s->window_work = WINDOW_WORK;
  const int64_t most = WINDOW_WORK / s->t->numel;
  bool held = false;
  for (size_t i = 0; i < s->x->n && !held; i++)
    held = rel_usable(s, i) && s->x->source[i]->numel <= most;
  if (held && !index_may_hold(s->x, s->t, most, &held)) return rel_no_memory(s);
  if (!held) return false;
  window best = {0}, w = {0};
  for (size_t i = 0; i < s->x->n && s->code == ISO_OK; i++) {
    if (!rel_usable(s, i) || !window_shape(s->x->source[i], &base)) continue;
    if (s->x->source[i]->numel > most) continue;
    for (int k = 0; k < 4 && s->code == ISO_OK; k++) {
      w.src = (uint32_t)i, w.along = k & 1, w.turned = k >> 1;
      view tv = view_dense(s->t, &shape), sv = view_dense(s->x->source[i], &base);
      if (w.turned) sv = view_turned(sv);
      if (w.along == 1) tv = view_turned(tv), sv = view_turned(sv);
      if (try_windows(s, &tv, &sv, &w, window_limit(&tv))) window_consider(s, &w, &best);
    }
  }
  bool ok = false;
  if (s->code == ISO_OK && best.n != 0)
    ok = rel_finish(s, make_window(s, &best, &shape), best.tied, out);
  free(best.p);
  free(w.p);
  return ok;
}
