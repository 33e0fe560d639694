/* Relations by value: a target covered by runs of lines that stand in sources
 * (synth/relate/relation.c has the whole).
 *
 * The cover is found by walking the target's lines and extending maximal runs of lines that stand
 * in one source. The parts of a source are closed under taking sub-runs, hence taking the longest
 * run each time needs the fewest pieces. Constant stretches (zeros) do not say where they come
 * from: there names decide, then whole sources.
 *
 * Lines of fewer than four elements match by chance. A cover of such lines is believed only if its
 * pieces are whole sources or four lines long on average. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "synth/relate/relation_int.h"

enum {
  MAX_RAW_PIECES = 1 << 16, /* runs before regular ones are folded into strided blocks */
  MAX_PERIOD = 64           /* runs in the repeated part of such a block */
};

typedef struct cover {
  rule_shape shape; /* the target's form that is covered */
  uint32_t dim;     /* along which */
  piece *p;
  size_t n, cap;
  bool tied, whole; /* whole: every piece is all of its source */
  int32_t like;     /* the least alike of the sources' names */
} cover;

typedef struct run {
  piece at;
  uint32_t src;
  int32_t like;
  bool turned, whole,
      fresh; /* against the target's dimension; all of its source; not used in this walk yet */
} run;

/* Constant stretches are assigned by names (`by_name`), others by length. */
static bool run_better(const run *a, const run *b, bool by_name) {
  if (!by_name && a->at.len != b->at.len) return a->at.len > b->at.len;
  if (a->like != b->like) return a->like > b->like;
  if (a->fresh != b->fresh) return a->fresh;
  if (a->whole != b->whole) return a->whole;
  if (a->at.len != b->at.len) return a->at.len > b->at.len;
  if (a->turned != b->turned) return b->turned;
  if (a->at.set != b->at.set) return a->at.set < b->at.set;
  return a->at.start < b->at.start;
}

static bool run_rivals(const run *a, const run *best) {
  if (a->at.len < best->at.len) return false;
  return a->src != best->src || (a->at.set == best->at.set && a->at.start != best->at.start);
}

typedef struct runs {
  run *r;
  size_t n, cap;
} runs;

static bool add_run(search *s, const cover *c, const uint64_t *th, int64_t p, const entry *e,
                    int64_t start, runs *out) {
  const line_set *set = &s->x->set[e->set];
  int64_t n = c->shape.dim[c->dim], k = 0;
  while (p + k < n && start + k < set->n && th[p + k] == set->hash[start + k]) k++;
  s->walk_work -= k + 1;
  if (!iso_grow(out->r, out->cap, out->n + 1)) return rel_no_memory(s);
  out->r[out->n++] = (run){.at = {.set = e->set, .start = start, .len = k},
                           .src = set->src,
                           .like = rel_likeness(s, set->src),
                           .turned = set->dim != c->dim,
                           .whole = k == set->n,
                           .fresh = s->used[set->src] != s->walks};
  return true;
}

typedef struct target {
  const shelf *lines;   /* of the sources, by hash */
  const uint64_t *hash; /* of its own lines */
} target;

/* The best run for the target's lines from `p`. In a stretch of equal lines a source's stretch can
 * be laid so that both begin together or so that both end together; only these two can be the
 * longest. */
static bool best_run(search *s, cover *c, const target *t, int64_t p, bool by_name, runs *tmp,
                     run *out) {
  const shelf *lines = t->lines;
  const uint64_t *th = t->hash;
  const synth_index *x = s->x;
  int64_t n = c->shape.dim[c->dim], mine = index_stretch(th, p, n), longest = 0;
  tmp->n = 0;
  for (size_t i = index_entries(lines, th[p]); i < lines->n && lines->entry[i].hash == th[p]; i++) {
    const entry *e = &lines->entry[i];
    if (s->walk_work <= 0) break;
    if (x->source[x->set[e->set].src]->dtype != s->t->dtype) continue;
    if (!add_run(s, c, th, p, e, e->start, tmp)) return false;
    if (e->len > mine && !add_run(s, c, th, p, e, e->start + e->len - mine, tmp)) return false;
  }
  if (tmp->n == 0) return false;
  for (size_t i = 0; i < tmp->n; i++)
    if (tmp->r[i].at.len > longest) longest = tmp->r[i].at.len;
  by_name = longest <= mine && (by_name || mine < n);
  size_t best = 0;
  for (size_t i = 1; i < tmp->n; i++)
    if (run_better(&tmp->r[i], &tmp->r[best], by_name)) best = i;
  for (size_t i = 0; i < tmp->n; i++) c->tied = c->tied || run_rivals(&tmp->r[i], &tmp->r[best]);
  *out = tmp->r[best];
  return true;
}

static view piece_view(const search *s, const cover *c, const piece *p) {
  const line_set *set = &s->x->set[p->set];
  view v = view_dense(s->x->source[set->src], &set->shape);
  return view_slice(set->dim == c->dim ? v : view_turned(v), c->dim, p->start, p->len);
}

/* Compares the elements of a cover that hashes proposed. */
static bool cover_true(search *s, const cover *c) {
  int64_t at = 0, work = 0;
  for (size_t i = 0; i < c->n; at += c->p[i++].len) {
    view tv = view_slice(view_dense(s->t, &c->shape), c->dim, at, c->p[i].len);
    view pv = piece_view(s, c, &c->p[i]);
    if (!view_equal(&tv, &pv, &work)) return false;
  }
  return true;
}

static int by_size(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Whether all numbers differ and have many digits: as those of a trained or drawn parameter, and
 * not of one that was filled or counted. */
static bool telling(search *s) {
  const int64_t n = s->t->numel;
  double *x = malloc(((size_t)n + 1) * sizeof *x);
  bool all = x != NULL;
  if (!x) rel_no_memory(s);
  for (int64_t i = 0; i < n && all; i++) {
    x[i] = rule_tensor_get(s->t, i);
    all = isfinite(x[i]) && x[i] * 4096 != floor(x[i] * 4096);
  }
  if (all) qsort(x, (size_t)n, sizeof *x, by_size);
  for (int64_t i = 1; i < n && all; i++) all = x[i] != x[i - 1];
  free(x);
  return all;
}

static bool by_chance(search *s, const cover *c) {
  int64_t n = c->shape.dim[c->dim];
  const bool few = s->t->numel / n < 4 && c->n > 1 && !c->whole && (int64_t)c->n * 4 > n;
  return few && ((int64_t)c->n * 2 > n || !rule_dtype_is_float(s->t->dtype) || !telling(s));
}

/* The lines of a set that the target's lines are from `at` on, as far as they are blocks of `outer`
 * rows of `inner` that were transposed: heads whose halves stand where the other side has every
 * second line. Returns: how many lines, 0 for none. */
static int64_t turned_at(const piece *row, int64_t n, int64_t at, int64_t *outer, int64_t *inner) {
  const piece *a = row + at;
  const int64_t left = n - at, step = left > 1 && a[1].set == a->set ? a[1].start - a->start : 0;
  int64_t k = 1;
  if (step < 2) return 0;
  while (k < left && a[k].set == a->set && a[k].start == a->start + k * step) k++;
  *outer = k, *inner = step;
  const int64_t block = k * step;
  for (int64_t i = 0;; i++) {
    const int64_t in = i % block, from = i - in + in % k * step + in / k;
    if (i == left || a[i].set != a->set || a[i].start != a->start + from) return i - in;
  }
}

/* Pieces of single lines that are transposed blocks become one piece each. */
static bool turn_pieces(search *s, cover *c) {
  const int64_t n = c->shape.dim[c->dim];
  piece *row = malloc((size_t)n * sizeof *row);
  if (!row) return rel_no_memory(s);
  int64_t at = 0;
  for (size_t i = 0; i < c->n; i++)
    for (int64_t k = 0; k < c->p[i].len; k++)
      row[at++] = (piece){.set = c->p[i].set, .start = c->p[i].start + k, .len = 1};
  c->n = 0;
  for (at = 0; at < n;) {
    piece p = row[at];
    p.len = turned_at(row, n, at, &p.outer, &p.inner);
    if (p.len == 0) { /* as it was */
      p.outer = p.inner = 0;
      p.len = 1;
      while (at + p.len < n && row[at + p.len].set == p.set &&
             row[at + p.len].start == p.start + p.len)
        p.len++;
    }
    if (!iso_grow(c->p, c->cap, c->n + 1)) {
      free(row);
      return rel_no_memory(s);
    }
    c->p[c->n++] = p;
    at += p.len;
  }
  free(row);
  return true;
}

/* Cover the target, read as `shape`, along `dim`. Returns: whether there is a cover; then in `c`,
 * to be freed by the caller either way. */
static bool walk(search *s, const rule_shape *shape, uint32_t dim, bool by_name, cover *c) {
  *c = (cover){.shape = *shape, .dim = dim, .whole = true, .like = INT32_MAX};
  const shelf *lines = index_shelf(s->x, shape, dim);
  if (!lines) return rel_no_memory(s);
  s->walks++;
  if (lines->n == 0) return false;
  view v = view_dense(s->t, shape);
  uint64_t *th = view_hash_lines(&v, dim, s->x->threads);
  if (!th) return rel_no_memory(s);
  runs tmp = {0};
  int64_t at = 0;
  while (at < shape->dim[dim] && c->n < MAX_RAW_PIECES) {
    run r;
    if (!best_run(s, c, &(target){lines, th}, at, by_name, &tmp, &r)) break;
    const int64_t mine = index_stretch(th, at, shape->dim[dim]);
    if (mine > 1 && r.at.len <= mine && !r.fresh)
      break; /* padding: one row of zeros, taken again and again, fits it, and says nothing */
    if (!iso_grow(c->p, c->cap, c->n + 1)) {
      rel_no_memory(s);
      break;
    }
    c->p[c->n++] = r.at;
    c->whole = c->whole && r.whole && r.fresh;
    if (r.like < c->like) c->like = r.like;
    s->used[r.src] = s->walks;
    at += r.at.len;
  }
  free(tmp.r);
  free(th);
  return s->code == ISO_OK && at == shape->dim[dim] && !by_chance(s, c) && cover_true(s, c) &&
         (c->n < 4 || shape->rank + 2 > RULE_MAX_RANK || turn_pieces(s, c));
}

/* ---- from a cover to a term ---- */

static rel_made make_lines(search *s, const cover *c, const piece *p) {
  const line_set *set = &s->x->set[p->set];
  rel_made m = rel_reshape(s, rel_source(s, set->src), &set->shape);
  return set->dim == c->dim ? m : rel_transpose(s, m);
}

/* `reps` repetitions of `period` pieces, of which piece j of each repetition moves on by a fixed
 * stride. */
typedef struct fold {
  size_t first, period, reps;
} fold;

/* Where the blocks of one stride begin: [base, base + reps * stride) lies in the source, no run
 * crosses a block. */
static bool block_base(int64_t start, int64_t len, int64_t stride, int64_t reps, int64_t n,
                       int64_t *base) {
  int64_t lo = start + len - stride, hi = n - reps * stride;
  if (lo < 0) lo = 0;
  if (hi > start) hi = start;
  if (lo > hi) return false;
  *base = lo == 0 ? 0 : (lo + stride - 1) / stride * stride;
  if (*base > hi) *base = lo;
  return true;
}

static bool repeats(const search *s, const cover *c, const fold *f, size_t rep) {
  for (size_t j = 0; j < f->period; j++) {
    const piece *a = &c->p[f->first + j], *b = a + f->period, *z = a + rep * f->period;
    int64_t stride = b->start - a->start, base;
    if (z->set != a->set || z->len != a->len || stride < a->len || a->inner || z->inner)
      return false;
    if (z->start != a->start + (int64_t)rep * stride) return false;
    if (!block_base(a->start, a->len, stride, (int64_t)rep + 1, s->x->set[a->set].n, &base))
      return false;
  }
  return true;
}

/* The fold that covers the most pieces from `first` on; at least three repetitions, else the piece
 * alone. */
static fold fold_at(const search *s, const cover *c, size_t first) {
  fold best = {.first = first, .period = 1, .reps = 1};
  if (c->shape.rank >= RULE_MAX_RANK) return best;
  for (size_t period = 1; period <= MAX_PERIOD && first + 3 * period <= c->n; period++) {
    fold f = {.first = first, .period = period, .reps = 1};
    while (first + (f.reps + 1) * period <= c->n && repeats(s, c, &f, f.reps)) f.reps++;
    if (f.reps >= 3 && f.reps * f.period > best.reps * best.period) best = f;
  }
  return best;
}

static rel_made make_strided(search *s, const cover *c, const fold *f, size_t j) {
  const piece *a = &c->p[f->first + j];
  int64_t stride = a[f->period].start - a->start, n = s->x->set[a->set].n, base = 0,
          reps = (int64_t)f->reps;
  ISO_CHECK(block_base(a->start, a->len, stride, reps, n, &base));
  rel_made m = rel_slice(s, make_lines(s, c, a), c->dim, base, base + reps * stride);
  rule_shape shape = rel_shape_split(&m.shape, c->dim, (int64_t[]){reps, stride}, 2);
  m = rel_reshape(s, m, &shape);
  return rel_slice(s, m, c->dim + 1, a->start - base, a->start - base + a->len);
}

static rel_made make_turned(search *s, rel_made m, uint32_t dim, const piece *a) {
  const rule_shape lines = m.shape,
                   shape = rel_shape_split(
                       &m.shape, dim,
                       (int64_t[]){a->len / (a->outer * a->inner), a->outer, a->inner}, 3);
  uint32_t perm[RULE_MAX_RANK];
  for (uint32_t d = 0; d < shape.rank; d++) perm[d] = d;
  perm[dim + 1] = dim + 2, perm[dim + 2] = dim + 1;
  return rel_reshape(s, rel_permute(s, rel_reshape(s, m, &shape), perm), &lines);
}

static rel_made make_fold(search *s, const cover *c, const fold *f) {
  const piece *a = &c->p[f->first];
  if (f->reps == 1) {
    const rel_made m = rel_slice(s, make_lines(s, c, a), c->dim, a->start, a->start + a->len);
    return a->inner ? make_turned(s, m, c->dim, a) : m;
  }
  rel_made part[MAX_PERIOD];
  for (size_t j = 0; j < f->period; j++) part[j] = make_strided(s, c, f, j);
  rel_made m = rel_cat(s, part, f->period, c->dim + 1);
  rule_shape shape = c->shape;
  shape.dim[c->dim] = m.shape.dim[c->dim] * m.shape.dim[c->dim + 1];
  return rel_reshape(s, m, &shape);
}

static size_t fold_count(const search *s, const cover *c) {
  size_t n = 0;
  for (size_t i = 0; i < c->n && n <= MAX_PIECES; n++) {
    fold f = fold_at(s, c, i);
    i += f.period * f.reps;
  }
  return n;
}

static bool finish_cover(search *s, const cover *c, synth_relation *out) {
  size_t count = fold_count(s, c), n = 0;
  rel_made *part = calloc(count, sizeof *part);
  if (!part) return rel_no_memory(s);
  for (size_t i = 0; i < c->n && s->code == ISO_OK;) {
    fold f = fold_at(s, c, i);
    part[n++] = make_fold(s, c, &f);
    i += f.period * f.reps;
  }
  bool ok = false;
  if (s->code == ISO_OK)
    ok = rel_finish(s, rel_reshape(s, rel_cat(s, part, n, c->dim), &s->t->shape), c->tied, out);
  free(part);
  return ok;
}

/* Slices first (one run), then the concatenation of the fewest parts; the target's own shape before
 * other readings. */
bool rel_find_cover(search *s, synth_relation *out) {
  cover best = {0};
  size_t best_count = MAX_PIECES + 1;
  for (form f = FORM_SELF; f < FORM_COUNT && s->code == ISO_OK; f++) {
    rule_shape shape;
    if (!view_form_shape(s->t, f, &shape)) continue;
    for (uint32_t d = 0; d < shape.rank && s->code == ISO_OK; d++) {
      cover c;
      size_t count = walk(s, &shape, d, false, &c) ? (c.n == 1 ? 0 : fold_count(s, &c)) : SIZE_MAX;
      if (count < best_count) {
        cover old = best;
        best = c;
        c = old;
        best_count = count;
      }
      free(c.p);
    }
  }
  bool ok = s->code == ISO_OK && best_count <= MAX_PIECES && finish_cover(s, &best, out);
  free(best.p);
  return ok;
}

/* A constant vector fits every constant vector: when names say that it is put together from several
 * whole ones more clearly than that it is any single one, they decide. */
bool rel_find_constant(search *s, synth_relation *out) {
  if (!s->name || s->t->shape.rank != 1 || s->t->numel < 2) return false;
  view v = view_dense(s->t, &s->t->shape);
  view w = view_slice(v, 0, 1, v.dim[0] - 1), u = view_slice(v, 0, 0, v.dim[0] - 1);
  int64_t work = 0;
  if (!view_equal(&w, &u, &work)) return false;
  cover c;
  bool ok = walk(s, &s->t->shape, 0, true, &c) && c.whole && c.n >= 2 && c.n <= MAX_PIECES;
  for (size_t i = 0; ok && i < s->x->n; i++) {
    const rule_tensor *a = s->x->source[i];
    if (rel_usable(s, i) && a->shape.rank == 1 && a->numel == s->t->numel &&
        memcmp(a->data, s->t->data, (size_t)a->numel * v.item) == 0)
      ok = rel_likeness(s, (uint32_t)i) < c.like;
  }
  c.tied = true;
  ok = ok && finish_cover(s, &c, out);
  free(c.p);
  return ok;
}
