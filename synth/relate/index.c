/* Source tensors by their hashes, each made when it is first asked for and kept: see index.h. */
#include "synth/relate/index.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"

enum { PRESENT_BITS = 1 << 24 }; /* of the filter: 2 MiB; more elements only make it weaker */

iso_code synth_index_new(rule_tensor *const *source, const char *const *name, size_t n,
                         rule_schemas *schemas, synth_index **out, iso_error *err) {
  if (n >= UINT32_MAX) return iso_fail(err, ISO_RANGE, "too many tensors to relate");
  synth_index *x = calloc(1, sizeof *x);
  if (!x) return iso_fail(err, ISO_NOMEM, "out of memory");
  x->n = n;
  x->schemas = schemas;
  x->threads = 1;
  x->source = calloc(n + 1, sizeof *x->source);
  x->name = calloc(n + 1, sizeof *x->name);
  x->sum = calloc(n + 1, sizeof *x->sum);
  bool ok = x->source && x->name && x->sum;
  for (size_t i = 0; ok && i < n; i++) {
    if (!source[i]) continue;
    x->source[i] = source[i];
    if (name && name[i]) ok = (x->name[i] = strdup(name[i])) != NULL;
  }
  if (!ok) {
    synth_index_free(x);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  *out = x;
  return ISO_OK;
}

void synth_index_free(synth_index *x) {
  if (!x) return;
  for (size_t i = 0; x->name && i < x->n; i++) free(x->name[i]);
  for (size_t i = 0; i < x->n_sets; i++) free(x->set[i].hash);
  for (size_t i = 0; i < x->n_shelves; i++) free(x->shelf[i].entry);
  free(x->set);
  free(x->shelf);
  free(x->present);
  free(x->sum);
  free(x->name);
  free(x->source);
  free(x);
}

void synth_index_threads(synth_index *x, unsigned threads) { x->threads = threads; }

uint64_t index_flat(synth_index *x, size_t i) {
  const rule_tensor *t = x->source[i];
  if (!x->sum[i].has_flat) {
    x->sum[i].flat = iso_hash(t->data, (size_t)t->numel * rule_dtype_size(t->dtype), 0);
    x->sum[i].has_flat = true;
  }
  return x->sum[i].flat;
}

uint64_t index_multiset(synth_index *x, size_t i) {
  if (!x->sum[i].has_multiset) {
    x->sum[i].multiset = view_hash_multiset(x->source[i], x->threads);
    x->sum[i].has_multiset = true;
  }
  return x->sum[i].multiset;
}

/* ---- lines ---- */

static int entry_order(const void *pa, const void *pb) {
  const entry *a = pa, *b = pb;
  if (a->hash != b->hash) return a->hash < b->hash ? -1 : 1;
  if (a->set != b->set) return a->set < b->set ? -1 : 1;
  return a->start < b->start ? -1 : a->start > b->start;
}

int64_t index_stretch(const uint64_t *h, int64_t at, int64_t n) {
  int64_t e = at + 1;
  while (e < n && h[e] == h[at]) e++;
  return e - at;
}

/* The shape that lines along `dim` of `s` share, and in `out_dim` their dimension. */
static rule_shape lines_of(const rule_shape *s, uint32_t dim, uint32_t *out_dim) {
  rule_shape r = *s;
  *out_dim = dim;
  r.dim[dim] = 0;
  if (s->rank == 2) r = view_shape2(0, s->dim[1 - dim]), *out_dim = 0;
  return r;
}

static bool stands_on(const shelf *f, const rule_shape *s, uint32_t dim) {
  uint32_t d;
  const rule_shape lines = lines_of(s, dim, &d);
  return d == f->dim && rule_shape_eq(&lines, &f->shape);
}

static bool add_lines(synth_index *x, shelf *f, uint32_t src, form as, const rule_shape *shape,
                      uint32_t dim) {
  if (!iso_grow(x->set, x->cap_sets, x->n_sets + 1)) return false;
  view v = view_dense(x->source[src], shape);
  uint64_t *hash = view_hash_lines(&v, dim, x->threads);
  if (!hash) return false;
  line_set *s = &x->set[x->n_sets++];
  *s = (line_set){
      .src = src, .dim = dim, .form = as, .shape = *shape, .n = shape->dim[dim], .hash = hash};
  for (int64_t i = 0, len; i < s->n; i += len) {
    len = index_stretch(hash, i, s->n);
    if (!iso_grow(f->entry, f->cap, f->n + 1)) return false;
    f->entry[f->n++] =
        (entry){.hash = hash[i], .set = (uint32_t)(x->n_sets - 1), .start = i, .len = len};
  }
  return true;
}

/* By the hashes' first bits, about one entry to a place, then each among its neighbours. */
static bool sort_entries(shelf *f) {
  unsigned bits = 1;
  while (bits < 24 && (size_t)1 << bits < f->n) bits++;
  size_t *first = calloc(((size_t)1 << bits) + 1, sizeof *first);
  entry *to = malloc((f->n + 1) * sizeof *to);
  if (first && to) {
    for (size_t i = 0; i < f->n; i++) first[(f->entry[i].hash >> (64 - bits)) + 1]++;
    for (size_t i = 0; i >> bits == 0; i++) first[i + 1] += first[i];
    for (size_t i = 0; i < f->n; i++) to[first[f->entry[i].hash >> (64 - bits)]++] = f->entry[i];
    for (size_t i = 0, n; i < f->n;
         i += n) { /* places that hold many are sorted apart: equal lines may be many */
      for (n = 1; i + n < f->n && to[i + n].hash >> (64 - bits) == to[i].hash >> (64 - bits);) n++;
      if (n > 1) qsort(to + i, n, sizeof *to, entry_order);
    }
    free(f->entry);
    f->entry = to;
    f->cap = f->n + 1;
    to = NULL;
  }
  const bool ok = first != NULL && to == NULL;
  free(first);
  free(to);
  return ok;
}

static bool fill(synth_index *x, shelf *f) {
  for (uint32_t i = 0; i < x->n; i++)
    for (form as = FORM_SELF; x->source[i] && x->source[i]->numel > 0 && as < FORM_COUNT; as++) {
      rule_shape shape;
      if (!view_form_shape(x->source[i], as, &shape)) continue;
      const uint32_t dims = as == FORM_ROW ? 1 : shape.rank;
      for (uint32_t d = 0; d < dims; d++)
        if (stands_on(f, &shape, d) && !add_lines(x, f, i, as, &shape, d)) return false;
    }
  return sort_entries(f);
}

const shelf *index_shelf(synth_index *x, const rule_shape *s, uint32_t dim) {
  for (size_t i = 0; i < x->n_shelves; i++)
    if (stands_on(&x->shelf[i], s, dim)) return &x->shelf[i];
  if (!iso_grow(x->shelf, x->cap_shelves, x->n_shelves + 1)) return NULL;
  shelf f = {0};
  f.shape = lines_of(s, dim, &f.dim);
  if (!fill(x, &f)) {
    free(f.entry);
    return NULL;
  }
  x->shelf[x->n_shelves] = f;
  return &x->shelf[x->n_shelves++];
}

size_t index_entries(const shelf *s, uint64_t hash) {
  size_t lo = 0, hi = s->n;
  while (lo < hi) {
    size_t mid = lo + (hi - lo) / 2;
    if (s->entry[mid].hash < hash) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* ---- which elements there are ---- */

/* Whether some tensor that may be looked at has this element of t. */
static bool somewhere(const synth_index *x, const rule_tensor *t, int64_t at, int64_t most) {
  const size_t item = rule_dtype_size(t->dtype);
  const unsigned char *e = (const unsigned char *)t->data + (size_t)at * item;
  for (size_t i = 0; i < x->n; i++)
    if (x->source[i] && x->source[i]->numel <= most &&
        rule_dtype_size(x->source[i]->dtype) == item && view_has_element(x->source[i], e))
      return true;
  return false;
}

bool index_may_hold(synth_index *x, const rule_tensor *t, int64_t most, bool *out) {
  /* Most tensors that are nowhere are known by one element, which costs less than the filter. */
  *out = false;
  for (int64_t k = 1; k <= 3; k++)
    if (t->numel > 0 && !somewhere(x, t, t->numel * k / 4, most)) return true;
  if (!x->present && !(x->present = calloc(PRESENT_BITS / 64, sizeof *x->present))) return false;
  const uint64_t mask = PRESENT_BITS - 1;
  for (size_t i = 0; i < x->n; i++) {
    if (!x->source[i] || x->source[i]->numel > most || x->sum[i].filtered) continue;
    view_mark_elements(x->source[i], x->present, mask);
    x->sum[i].filtered = true;
  }
  *out = view_marked(t, x->present, mask);
  return true;
}
