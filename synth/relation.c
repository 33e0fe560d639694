/* Relations by value: a target tensor as a layout expression over source tensors, exactly, by bit pattern.
 *
 * Simplest relation first: the same bytes, a transpose, a permutation, then slices and concatenations of lines, which an index
 * of hashes finds (index.c). What the hashes propose is compared element by element before it is returned, so that a
 * collision costs a relation and never makes a false one.
 *
 * A concatenation is found by walking the target's lines and extending maximal runs of lines that stand in one source.
 * The parts of a source are closed under taking sub-runs, hence taking the longest run each time needs the fewest
 * pieces. Constant stretches (zeros) do not say where they come from: there names decide, then whole sources.
 *
 * Lines of fewer than four elements match by chance. A cover of such lines is believed only if its pieces are whole
 * sources or four lines long on average.
 *
 * Everything is near-linear in the bytes read except the search for windows (columns that equal columns of a range of
 * rows of a source), which is bounded by WINDOW_WORK; limits are counts, so that a result never depends on time. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "synth/index.h"

enum {
  MAX_PIECES = 512,         /* arguments of a concatenation */
  MAX_RAW_PIECES = 1 << 16, /* runs before regular ones are folded into strided blocks */
  MAX_PERIOD = 64,          /* runs in the repeated part of such a block */
  MAX_WINDOWS = 64,         /* row ranges tried per source and orientation */
  FACTOR_RANK = 5           /* dimensions of a permutation */
};
static const int64_t WINDOW_WORK = 100000000; /* target elements times source elements, and comparisons in all */
static const int64_t WALK_WORK = 200000000;   /* line comparisons per target */
static const int64_t PERMUTE_WORK = 50000000; /* element comparisons per target */

/* ---- names -------------------------------------------------------------------------------------------------- */

typedef struct token {
  const char *s;
  size_t n;
  bool number;
} token;

enum { MAX_TOKENS = 48 };

static bool token_is(const token *t, const char *s) { return strlen(s) == t->n && memcmp(t->s, s, t->n) == 0; }

/* The parts of a name between dots and underscores, less the wrappers that only one side may have. */
static size_t tokens_of(const char *s, token *out) {
  size_t n = 0;
  while (*s && n < MAX_TOKENS) {
    size_t len = strcspn(s, "._/:-");
    token t = {.s = s, .n = len, .number = len > 0 && strspn(s, "0123456789") >= len};
    bool wrapper = token_is(&t, "model") || token_is(&t, "transformer") || token_is(&t, "module");
    if (len > 0 && !wrapper) out[n++] = t;
    s += len + (s[len] != 0);
  }
  return n;
}

static bool contains(const token *a, const token *b) {
  return !a->number && !b->number && b->n < a->n && memmem(a->s, a->n, b->s, b->n) != NULL;
}

/* How alike two parameter names are: the numbers in them (layers, experts) count most, then the last part (weight,
 * bias), then the share of common parts, a part inside a fused one ("q" in "qkv") by half. Without a name: 0. */
static int32_t name_likeness(const char *a, const char *b) {
  if (!a || !b) return 0;
  token ta[MAX_TOKENS], tb[MAX_TOKENS];
  size_t na = tokens_of(a, ta), nb = tokens_of(b, tb), ia = 0, ib = 0;
  if (na == 0 || nb == 0) return 0;
  bool numbers = true;
  while (numbers) {
    while (ia < na && !ta[ia].number) ia++;
    while (ib < nb && !tb[ib].number) ib++;
    if (ia == na || ib == nb) break;
    numbers = ta[ia].n == tb[ib].n && memcmp(ta[ia].s, tb[ib].s, ta[ia].n) == 0;
    ia++, ib++;
  }
  int32_t score = numbers && ia == na && ib == nb ? 10000 : 0;
  if (ta[na - 1].n == tb[nb - 1].n && memcmp(ta[na - 1].s, tb[nb - 1].s, ta[na - 1].n) == 0) score += 1000;
  int32_t common = 0;
  for (size_t i = 0; i < na; i++) {
    int32_t best = 0;
    for (size_t j = 0; j < nb && best < 2; j++) {
      if (ta[i].n == tb[j].n && memcmp(ta[i].s, tb[j].s, ta[i].n) == 0) best = 2;
      else if (contains(&ta[i], &tb[j]) || contains(&tb[j], &ta[i])) best = 1;
    }
    common += best;
  }
  return score + common * 450 / (int32_t)(na + nb);
}

/* ---- one search --------------------------------------------------------------------------------------------- */

typedef struct search {
  synth_index *x;
  const rule_tensor *t;
  const char *name;
  iso_arena *arena;
  iso_error *err;
  iso_code code;  /* the first error; then nothing more is tried */
  int32_t *like;  /* per source: likeness of names, -1 where not yet asked */
  uint32_t *used; /* per source: the walk that used it last */
  uint32_t walks;
  int64_t walk_work, permute_work, window_work; /* what is left */
  uint64_t flat, multiset; /* of the target */
  bool has_flat, has_multiset, late; /* late: some source of its size began alike */
} search;

static int32_t likeness(search *s, uint32_t src) {
  if (s->like[src] < 0) s->like[src] = name_likeness(s->name, s->x->name[src]);
  return s->like[src];
}

static bool no_memory(search *s) {
  if (s->code == ISO_OK) s->code = iso_fail(s->err, ISO_NOMEM, "out of memory");
  return false;
}

/* Source of the target's dtype and with elements? */
static bool usable(const search *s, size_t i) {
  const rule_tensor *a = s->x->source[i];
  return a && a->dtype == s->t->dtype && a->numel > 0;
}

/* ---- terms with their shapes -------------------------------------------------------------------------------- */

typedef struct made {
  const rule_term *term; /* NULL after an error */
  rule_shape shape;
} made;

static made make_call(search *s, const char *op, const rule_term *const *arg, size_t n, const rule_shape *shape) {
  made m = {.shape = *shape};
  for (size_t i = 0; i < n; i++)
    if (!arg[i]) no_memory(s);
  if (s->code == ISO_OK) s->code = rule_call(s->arena, s->x->schemas, op, arg, n, &m.term, s->err);
  return m;
}

static const rule_term *make_ints(search *s, const int64_t *v, uint32_t n) {
  const rule_term *e[RULE_MAX_RANK];
  for (uint32_t i = 0; i < n; i++) e[i] = rule_int(s->arena, v[i]);
  return rule_list(s->arena, e, n);
}

static made make_source(search *s, uint32_t i) {
  made m = {.term = rule_var(s->arena, i), .shape = s->x->source[i]->shape};
  if (!m.term) no_memory(s);
  return m;
}

static made make_slice(search *s, made a, uint32_t d, int64_t from, int64_t to) {
  if (from == 0 && to == a.shape.dim[d]) return a;
  const rule_term *arg[5] = {a.term, rule_int(s->arena, d), rule_int(s->arena, from), rule_int(s->arena, to),
                             rule_int(s->arena, 1)};
  a.shape.dim[d] = to - from;
  return make_call(s, "aten::slice.Tensor", arg, 5, &a.shape);
}

static made make_transpose(search *s, made a) {
  const rule_term *arg[3] = {a.term, rule_int(s->arena, 0), rule_int(s->arena, 1)};
  rule_shape shape = view_shape2(a.shape.dim[1], a.shape.dim[0]);
  return make_call(s, "aten::transpose.int", arg, 3, &shape);
}

/* Is `to` the shape `from` with a size 1 put in? Returns where, or -1. */
static int inserted_one(const rule_shape *from, const rule_shape *to) {
  if (to->rank != from->rank + 1) return -1;
  uint32_t d = 0;
  while (d < from->rank && from->dim[d] == to->dim[d]) d++;
  if (to->dim[d] != 1) return -1;
  for (uint32_t k = d; k < from->rank; k++)
    if (from->dim[k] != to->dim[k + 1]) return -1;
  while (d > 0 && to->dim[d - 1] == 1) d--;
  return (int)d;
}

static made make_reshape(search *s, made a, const rule_shape *shape) {
  if (rule_shape_eq(&a.shape, shape)) return a;
  int d = inserted_one(&a.shape, shape);
  const rule_term *arg[2] = {a.term, d >= 0 ? rule_int(s->arena, d) : make_ints(s, shape->dim, shape->rank)};
  return make_call(s, d >= 0 ? "aten::unsqueeze" : "aten::reshape", arg, 2, shape);
}

static made make_permute(search *s, made a, const uint32_t *perm) {
  int64_t p[RULE_MAX_RANK];
  rule_shape shape = a.shape;
  for (uint32_t d = 0; d < shape.rank; d++) {
    p[d] = perm[d];
    shape.dim[d] = a.shape.dim[perm[d]];
  }
  const rule_term *arg[2] = {a.term, make_ints(s, p, shape.rank)};
  return make_call(s, "aten::permute", arg, 2, &shape);
}

static made make_cat(search *s, const made *part, size_t n, uint32_t d) {
  if (n == 1) return part[0];
  const rule_term **list = calloc(n, sizeof *list);
  rule_shape shape = part[0].shape;
  shape.dim[d] = 0;
  if (!list) {
    no_memory(s);
    return (made){.shape = shape};
  }
  for (size_t i = 0; i < n; i++) {
    list[i] = part[i].term;
    shape.dim[d] += part[i].shape.dim[d];
  }
  const rule_term *arg[2] = {rule_list(s->arena, list, n), rule_int(s->arena, d)};
  free(list);
  return make_call(s, "aten::cat", arg, 2, &shape);
}

/* ---- a source as it is, transposed or reshaped -------------------------------------------------------------- */

/* Keep `i` as the choice if its name is more alike; the second one found makes a tie. */
static void prefer(search *s, size_t i, int64_t *best, bool *tied) {
  if (*best >= 0) {
    *tied = true;
    if (likeness(s, (uint32_t)i) <= likeness(s, (uint32_t)*best)) return;
  }
  *best = (int64_t)i;
}

static bool finish(search *s, made m, bool tied, synth_relation *out) {
  if (s->code != ISO_OK) return false;
  ISO_CHECK(rule_shape_eq(&m.shape, &s->t->shape));
  *out = (synth_relation){.term = m.term, .tied = tied};
  return true;
}

/* Different tensors differ early. Once one differed late there may be many that do, which hashes tell apart. */
static bool same_bytes(search *s, size_t i) {
  enum { EARLY = 4096 };
  const rule_tensor *a = s->x->source[i];
  if (!a || a->dtype != s->t->dtype || a->numel != s->t->numel) return false;
  const size_t n = (size_t)a->numel * rule_dtype_size(a->dtype), early = n < EARLY ? n : EARLY;
  if (n == 0) return true;
  if (memcmp(a->data, s->t->data, early) != 0) return false;
  if (s->late && !s->has_flat) s->flat = iso_hash(s->t->data, n, 0), s->has_flat = true;
  if (s->late && index_flat(s->x, i) != s->flat) return false;
  if (memcmp(a->data, s->t->data, n) == 0) return true;
  s->late = true;
  return false;
}

static uint64_t multiset_of(search *s) {
  if (!s->has_multiset) s->multiset = view_hash_multiset(s->t), s->has_multiset = true;
  return s->multiset;
}

static bool find_itself(search *s, synth_relation *out) {
  int64_t best = -1;
  bool tied = false;
  for (size_t i = 0; i < s->x->n; i++)
    if (s->x->source[i] && rule_shape_eq(&s->x->source[i]->shape, &s->t->shape) && same_bytes(s, i)) prefer(s, i, &best, &tied);
  return best >= 0 && finish(s, make_source(s, (uint32_t)best), tied, out);
}

static bool find_transpose(search *s, synth_relation *out) {
  const rule_shape *shape = &s->t->shape;
  if (shape->rank != 2) return false;
  view tv = view_dense(s->t, shape);
  int64_t best = -1, work = 0;
  bool tied = false, hashed = false; /* once one differed late */
  for (size_t i = 0; i < s->x->n; i++) {
    const rule_tensor *a = s->x->source[i];
    if (!usable(s, i) || a->shape.rank != 2 || a->shape.dim[0] != shape->dim[1] || a->shape.dim[1] != shape->dim[0]) continue;
    const view sv = view_turned(view_dense(a, &a->shape)), row = view_slice(sv, 0, 0, 1), first = view_slice(tv, 0, 0, 1);
    if (!view_equal(&first, &row, &work) || (hashed && index_multiset(s->x, i) != multiset_of(s))) continue;
    if (view_equal(&tv, &sv, &work)) prefer(s, i, &best, &tied);
    else hashed = true;
  }
  return best >= 0 && finish(s, make_transpose(s, make_source(s, (uint32_t)best)), tied, out);
}

static bool find_reshape(search *s, synth_relation *out) {
  int64_t best = -1;
  bool tied = false;
  for (size_t i = 0; i < s->x->n; i++)
    if (same_bytes(s, i)) prefer(s, i, &best, &tied);
  return best >= 0 && finish(s, make_reshape(s, make_source(s, (uint32_t)best), &s->t->shape), tied, out);
}

/* ---- permutations ------------------------------------------------------------------------------------------- */

static bool next_permutation(uint32_t *p, uint32_t n) {
  if (n < 2) return false;
  uint32_t i = n - 1;
  while (i > 0 && p[i - 1] >= p[i]) i--;
  if (i == 0) return false;
  uint32_t j = n - 1;
  while (p[j] <= p[i - 1]) j--;
  uint32_t k = p[i - 1];
  p[i - 1] = p[j], p[j] = k;
  for (j = n - 1; i < j; i++, j--) k = p[i], p[i] = p[j], p[j] = k;
  return true;
}

/* Does some permutation of `src` read as `shape` hold the target's elements in order? With `exact`, of the target's
 * shape too. Cost: one comparison for nearly every wrong permutation. */
static bool try_permutations(search *s, uint32_t src, const rule_shape *shape, bool exact, made *out) {
  uint32_t perm[RULE_MAX_RANK];
  view sv = view_dense(s->x->source[src], shape);
  for (uint32_t d = 0; d < shape->rank; d++) perm[d] = d;
  while (s->permute_work > 0 && next_permutation(perm, shape->rank)) {
    view pv = sv;
    rule_shape ps = *shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
      ps.dim[d] = pv.dim[d] = sv.dim[perm[d]];
      pv.stride[d] = sv.stride[perm[d]];
    }
    if (exact && !rule_shape_eq(&ps, &s->t->shape)) continue;
    view tv = view_dense(s->t, &ps);
    if (!view_equal(&pv, &tv, &s->permute_work)) continue;
    made m = make_permute(s, make_reshape(s, make_source(s, src), shape), perm);
    *out = make_reshape(s, m, &s->t->shape);
    return true;
  }
  return false;
}

static rule_shape shape_split(const rule_shape *s, uint32_t d, const int64_t *factor, uint32_t n) {
  rule_shape r = {.rank = s->rank + n - 1};
  for (uint32_t k = 0; k < d; k++) r.dim[k] = s->dim[k];
  for (uint32_t k = 0; k < n; k++) r.dim[d + k] = factor[k];
  for (uint32_t k = d + 1; k < s->rank; k++) r.dim[k + n - 1] = s->dim[k];
  return r;
}

/* One dimension in two or three factors: heads, groups, parts, halves of a head. */
static bool try_factors(search *s, uint32_t src, const rule_shape *shape, uint32_t parts, made *out) {
  if (shape->rank + parts - 1 > FACTOR_RANK) return false;
  for (uint32_t d = 0; d < shape->rank; d++) {
    int64_t n = shape->dim[d];
    for (int64_t a = 2; a <= n / 2 && s->permute_work > 0; a++) {
      s->permute_work--;
      if (n % a != 0) continue;
      if (parts == 2) {
        rule_shape f = shape_split(shape, d, (int64_t[]){a, n / a}, 2);
        if (try_permutations(s, src, &f, false, out)) return true;
        continue;
      }
      for (int64_t b = 2; b <= n / a / 2; b++) {
        if (n / a % b != 0) continue;
        rule_shape f = shape_split(shape, d, (int64_t[]){a, b, n / a / b}, 3);
        if (try_permutations(s, src, &f, false, out)) return true;
      }
    }
  }
  return false;
}

static bool permuted(search *s, uint32_t src, made *out) {
  const rule_shape *full = &s->x->source[src]->shape;
  rule_shape shape = {0};
  if (full->rank <= FACTOR_RANK && try_permutations(s, src, full, true, out)) return true;
  for (uint32_t d = 0; d < full->rank; d++)
    if (full->dim[d] != 1) shape.dim[shape.rank++] = full->dim[d];
  if (shape.rank > FACTOR_RANK) return false;
  return try_permutations(s, src, &shape, false, out) || try_factors(s, src, &shape, 2, out) ||
         try_factors(s, src, &shape, 3, out);
}

static bool find_permutation(search *s, synth_relation *out) {
  for (;;) {
    /* the most alike source not yet tried; `used` marks those that were */
    int64_t best = -1;
    bool tied = false;
    made m = {0};
    for (size_t i = 0; i < s->x->n; i++) {
      if (s->used[i] == UINT32_MAX || !usable(s, i) || s->x->source[i]->numel != s->t->numel) continue;
      if (index_multiset(s->x, i) == multiset_of(s)) prefer(s, i, &best, &tied);
    }
    if (best < 0 || s->permute_work <= 0) return false;
    s->used[best] = UINT32_MAX;
    if (!permuted(s, (uint32_t)best, &m)) continue;
    tied = false;
    for (size_t i = 0; i < s->x->n; i++)
      tied = tied || (i != (size_t)best && usable(s, i) && s->x->source[i]->numel == s->t->numel &&
                      index_flat(s->x, i) == index_flat(s->x, (size_t)best));
    return finish(s, m, tied, out);
  }
}

/* ---- covering the target's lines ---------------------------------------------------------------------------- */

typedef struct piece {
  uint32_t set;
  int64_t start, len;
  int64_t outer, inner; /* above 0: the lines read as (len / (outer * inner), outer, inner), their last two dimensions transposed */
} piece;

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
  bool turned, whole, fresh; /* against the target's dimension; all of its source; not used in this walk yet */
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

static bool add_run(search *s, const cover *c, const uint64_t *th, int64_t p, const entry *e, int64_t start, runs *out) {
  const line_set *set = &s->x->set[e->set];
  int64_t n = c->shape.dim[c->dim], k = 0;
  while (p + k < n && start + k < set->n && th[p + k] == set->hash[start + k]) k++;
  s->walk_work -= k + 1;
  if (!iso_grow(out->r, out->cap, out->n + 1)) return no_memory(s);
  out->r[out->n++] = (run){.at = {.set = e->set, .start = start, .len = k},
                           .src = set->src,
                           .like = likeness(s, set->src),
                           .turned = set->dim != c->dim,
                           .whole = k == set->n,
                           .fresh = s->used[set->src] != s->walks};
  return true;
}

/* The best run for the target's lines from `p`. In a stretch of equal lines a source's stretch can be laid so that
 * both begin together or so that both end together; only these two can be the longest. */
static bool best_run(search *s, const cover *c, const shelf *lines, const uint64_t *th, int64_t p, bool by_name, runs *tmp, run *out,
                     bool *tied) {
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
  for (size_t i = 0; i < tmp->n; i++) *tied = *tied || run_rivals(&tmp->r[i], &tmp->r[best]);
  *out = tmp->r[best];
  return true;
}

static view piece_view(const search *s, const cover *c, const piece *p) {
  const line_set *set = &s->x->set[p->set];
  view v = view_dense(s->x->source[set->src], &set->shape);
  return view_slice(set->dim == c->dim ? v : view_turned(v), c->dim, p->start, p->len);
}

/* Compare what the hashes proposed. */
static bool cover_true(search *s, const cover *c) {
  int64_t at = 0, work = 0;
  for (size_t i = 0; i < c->n; at += c->p[i++].len) {
    view tv = view_slice(view_dense(s->t, &c->shape), c->dim, at, c->p[i].len);
    view pv = piece_view(s, c, &c->p[i]);
    if (!view_equal(&tv, &pv, &work)) return false;
  }
  return true;
}

static bool by_chance(const search *s, const cover *c) {
  int64_t n = c->shape.dim[c->dim];
  return s->t->numel / n < 4 && c->n > 1 && !c->whole && (int64_t)c->n * 4 > n;
}

/* The lines of a set that the target's lines are from `at` on, as far as they are blocks of `outer` rows of `inner` that were transposed:
 * heads whose halves stand where the other side has every second line. Returns: how many lines, 0 for none. */
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
  if (!row) return no_memory(s);
  int64_t at = 0;
  for (size_t i = 0; i < c->n; i++)
    for (int64_t k = 0; k < c->p[i].len; k++) row[at++] = (piece){.set = c->p[i].set, .start = c->p[i].start + k, .len = 1};
  c->n = 0;
  for (at = 0; at < n;) {
    piece p = row[at];
    p.len = turned_at(row, n, at, &p.outer, &p.inner);
    if (p.len == 0) { /* as it was */
      p.outer = p.inner = 0;
      p.len = 1;
      while (at + p.len < n && row[at + p.len].set == p.set && row[at + p.len].start == p.start + p.len) p.len++;
    }
    if (!iso_grow(c->p, c->cap, c->n + 1)) {
      free(row);
      return no_memory(s);
    }
    c->p[c->n++] = p;
    at += p.len;
  }
  free(row);
  return true;
}

/* Cover the target, read as `shape`, along `dim`. Returns: whether there is a cover; then in `c`, to be freed by the
 * caller either way. */
static bool walk(search *s, const rule_shape *shape, uint32_t dim, bool by_name, cover *c) {
  *c = (cover){.shape = *shape, .dim = dim, .whole = true, .like = INT32_MAX};
  const shelf *lines = index_shelf(s->x, shape, dim);
  if (!lines) return no_memory(s);
  s->walks++;
  if (lines->n == 0) return false;
  view v = view_dense(s->t, shape);
  uint64_t *th = view_hash_lines(&v, dim);
  if (!th) return no_memory(s);
  runs tmp = {0};
  int64_t at = 0;
  while (at < shape->dim[dim] && c->n < MAX_RAW_PIECES) {
    run r;
    if (!best_run(s, c, lines, th, at, by_name, &tmp, &r, &c->tied)) break;
    if (!iso_grow(c->p, c->cap, c->n + 1)) {
      no_memory(s);
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
  return s->code == ISO_OK && at == shape->dim[dim] && !by_chance(s, c) && cover_true(s, c) && (c->n < 4 || shape->rank + 2 > RULE_MAX_RANK || turn_pieces(s, c));
}

/* ---- from a cover to a term --------------------------------------------------------------------------------- */

static made make_lines(search *s, const cover *c, const piece *p) {
  const line_set *set = &s->x->set[p->set];
  made m = make_reshape(s, make_source(s, set->src), &set->shape);
  return set->dim == c->dim ? m : make_transpose(s, m);
}

/* `reps` repetitions of `period` pieces, of which piece j of each repetition moves on by a fixed stride. */
typedef struct fold {
  size_t first, period, reps;
} fold;

/* Where the blocks of one stride begin: [base, base + reps * stride) lies in the source, no run crosses a block. */
static bool block_base(int64_t start, int64_t len, int64_t stride, int64_t reps, int64_t n, int64_t *base) {
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
    if (z->set != a->set || z->len != a->len || stride < a->len || a->inner || z->inner) return false;
    if (z->start != a->start + (int64_t)rep * stride) return false;
    if (!block_base(a->start, a->len, stride, (int64_t)rep + 1, s->x->set[a->set].n, &base)) return false;
  }
  return true;
}

/* The fold that covers the most pieces from `first` on; at least three repetitions, else the piece alone. */
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

static made make_strided(search *s, const cover *c, const fold *f, size_t j) {
  const piece *a = &c->p[f->first + j];
  int64_t stride = a[f->period].start - a->start, n = s->x->set[a->set].n, base = 0, reps = (int64_t)f->reps;
  ISO_CHECK(block_base(a->start, a->len, stride, reps, n, &base));
  made m = make_slice(s, make_lines(s, c, a), c->dim, base, base + reps * stride);
  rule_shape shape = shape_split(&m.shape, c->dim, (int64_t[]){reps, stride}, 2);
  m = make_reshape(s, m, &shape);
  return make_slice(s, m, c->dim + 1, a->start - base, a->start - base + a->len);
}

static made make_turned(search *s, made m, uint32_t dim, const piece *a) {
  const rule_shape lines = m.shape, shape = shape_split(&m.shape, dim, (int64_t[]){a->len / (a->outer * a->inner), a->outer, a->inner}, 3);
  uint32_t perm[RULE_MAX_RANK];
  for (uint32_t d = 0; d < shape.rank; d++) perm[d] = d;
  perm[dim + 1] = dim + 2, perm[dim + 2] = dim + 1;
  return make_reshape(s, make_permute(s, make_reshape(s, m, &shape), perm), &lines);
}

static made make_fold(search *s, const cover *c, const fold *f) {
  const piece *a = &c->p[f->first];
  if (f->reps == 1) {
    const made m = make_slice(s, make_lines(s, c, a), c->dim, a->start, a->start + a->len);
    return a->inner ? make_turned(s, m, c->dim, a) : m;
  }
  made part[MAX_PERIOD];
  for (size_t j = 0; j < f->period; j++) part[j] = make_strided(s, c, f, j);
  made m = make_cat(s, part, f->period, c->dim + 1);
  rule_shape shape = c->shape;
  shape.dim[c->dim] = m.shape.dim[c->dim] * m.shape.dim[c->dim + 1];
  return make_reshape(s, m, &shape);
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
  made *part = calloc(count, sizeof *part);
  if (!part) return no_memory(s);
  for (size_t i = 0; i < c->n && s->code == ISO_OK;) {
    fold f = fold_at(s, c, i);
    part[n++] = make_fold(s, c, &f);
    i += f.period * f.reps;
  }
  bool ok = false;
  if (s->code == ISO_OK) ok = finish(s, make_reshape(s, make_cat(s, part, n, c->dim), &s->t->shape), c->tied, out);
  free(part);
  return ok;
}

/* Slices first (one run), then the concatenation of the fewest parts; the target's own shape before other readings. */
static bool find_cover(search *s, synth_relation *out) {
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

/* A constant vector fits every constant vector: when names say that it is put together from several whole ones more
 * clearly than that it is any single one, they decide. */
static bool find_constant(search *s, synth_relation *out) {
  if (!s->name || s->t->shape.rank != 1 || s->t->numel < 2) return false;
  view v = view_dense(s->t, &s->t->shape);
  view w = view_slice(v, 0, 1, v.dim[0] - 1), u = view_slice(v, 0, 0, v.dim[0] - 1);
  int64_t work = 0;
  if (!view_equal(&w, &u, &work)) return false;
  cover c;
  bool ok = walk(s, &s->t->shape, 0, true, &c) && c.whole && c.n >= 2 && c.n <= MAX_PIECES;
  for (size_t i = 0; ok && i < s->x->n; i++) {
    const rule_tensor *a = s->x->source[i];
    if (usable(s, i) && a->shape.rank == 1 && a->numel == s->t->numel &&
        memcmp(a->data, s->t->data, (size_t)a->numel * v.item) == 0)
      ok = likeness(s, (uint32_t)i) < c.like;
  }
  c.tied = true;
  ok = ok && finish_cover(s, &c, out);
  free(c.p);
  return ok;
}

/* ---- windows ------------------------------------------------------------------------------------------------ */

/* Columns of a block: each column of the target is a column of rows [first, first + R) of one source. With `along` 1,
 * rows and columns change places; `turned` reads the source transposed. */
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

static bool same_column(search *s, const view *tv, int64_t tc, const view *sv, int64_t first, int64_t sc) {
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
      while (c + len < tv->dim[1] && k + len < sv->dim[1] && same_column(s, tv, c + len, sv, w->first, k + len)) len++;
      w->tied = w->tied || (len > 0 && len == best.len);
      if (len > best.len) best = (piece){.start = k, .len = len}, w->tied = tied;
      if (s->window_work <= 0) return false;
    }
    if (best.len == 0 || w->n + 1 > limit) return false;
    if (!iso_grow(w->p, w->cap, w->n + 1)) return no_memory(s);
    w->p[w->n++] = best;
    c += best.len;
  }
  return true;
}

/* Single rows (R = 1) are made of elements, which match by chance: there only a block of one piece counts. */
static size_t window_limit(const view *tv) {
  int64_t n = tv->dim[0] == 1 ? 1 : tv->dim[0] < 4 ? 2 + tv->dim[1] / 4 : tv->dim[1];
  return n > MAX_PIECES ? MAX_PIECES : (size_t)n;
}

/* Try the row ranges in which the target's first column occurs. Requires: views oriented so that rows are cut. */
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
  return t->shape.rank == 2 ? view_form_shape(t, FORM_SELF, out) : view_form_shape(t, FORM_ROWS, out);
}

/* Keep in `best` the window of fewer pieces, then of the more alike name. */
static void window_consider(search *s, window *w, window *best) {
  if (best->n != 0) {
    if (w->n > best->n) return;
    if (w->n == best->n) {
      best->tied = w->tied = best->tied || w->tied || w->src != best->src;
      if (likeness(s, w->src) <= likeness(s, best->src)) return;
    }
  }
  window old = *best;
  *best = *w;
  *w = (window){.p = old.p, .cap = old.cap};
}

static made make_window(search *s, const window *w, const rule_shape *shape) {
  rule_shape base;
  ISO_CHECK(window_shape(s->x->source[w->src], &base));
  made m = make_reshape(s, make_source(s, w->src), &base);
  if (w->turned) m = make_transpose(s, m);
  m = make_slice(s, m, w->along, w->first, w->first + shape->dim[w->along]);
  made *part = calloc(w->n, sizeof *part);
  if (!part) {
    no_memory(s);
    return m;
  }
  for (size_t i = 0; i < w->n; i++)
    part[i] = make_slice(s, m, 1 - w->along, w->p[i].start, w->p[i].start + w->p[i].len);
  m = make_cat(s, part, w->n, 1 - w->along);
  free(part);
  return make_reshape(s, m, &s->t->shape);
}

static bool find_window(search *s, synth_relation *out) {
  rule_shape shape, base;
  if (s->t->numel < 2 || !window_shape(s->t, &shape)) return false;
  const int64_t most = WINDOW_WORK / s->t->numel;
  bool held = false;
  for (size_t i = 0; i < s->x->n && !held; i++) held = usable(s, i) && s->x->source[i]->numel <= most;
  if (held && !index_may_hold(s->x, s->t, most, &held)) return no_memory(s);
  if (!held) return false;
  window best = {0}, w = {0};
  for (size_t i = 0; i < s->x->n && s->code == ISO_OK; i++) {
    if (!usable(s, i) || !window_shape(s->x->source[i], &base)) continue;
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
  if (s->code == ISO_OK && best.n != 0) ok = finish(s, make_window(s, &best, &shape), best.tied, out);
  free(best.p);
  free(w.p);
  return ok;
}

/* ---- parts of a source in another shape ----------------------------------------------------------------------- */

/* Rows of a matrix that the target holds in other dimensions (a parameter kept flat): the target is read with the rows'
 * length, and what is found is reshaped. */
static bool find_refolded(search *s, synth_relation *out) {
  const rule_tensor *whole = s->t;
  bool found = false;
  for (size_t i = 0; i < s->x->n && !found && s->code == ISO_OK; i++) {
    const rule_tensor *a = s->x->source[i];
    if (!usable(s, i) || a->shape.rank != 2) continue;
    const int64_t row = a->shape.dim[1];
    bool seen = row < 2 || whole->numel % row != 0 || a->numel < whole->numel || (whole->shape.rank == 2 && whole->shape.dim[1] == row);
    for (size_t k = 0; k < i && !seen; k++) {
      const rule_tensor *b = s->x->source[k];
      seen = usable(s, k) && b->shape.rank == 2 && b->shape.dim[1] == row && b->numel >= whole->numel;
    }
    if (seen) continue;
    rule_tensor folded = *whole;
    folded.shape = (rule_shape){.rank = 2, .dim = {whole->numel / row, row}};
    synth_relation part = {0};
    s->t = &folded;
    found = find_cover(s, &part);
    s->t = whole;
    found = found && finish(s, make_reshape(s, (made){part.term, folded.shape}, &whole->shape), part.tied, out);
  }
  return found;
}

/* ---- the order of attack ------------------------------------------------------------------------------------ */

static void attack(search *s, synth_relation *out) {
  if (s->t->numel == 0) {
    find_itself(s, out);
    return;
  }
  bool found = find_constant(s, out) || find_itself(s, out) || find_transpose(s, out) || find_reshape(s, out) ||
               find_permutation(s, out) || find_cover(s, out);
  if (!found && s->code == ISO_OK) found = find_window(s, out);
  if (!found && s->code == ISO_OK) find_refolded(s, out);
}

iso_code synth_relate(synth_index *x, const rule_tensor *target, const char *name, iso_arena *arena,
                      synth_relation *out, iso_error *err) {
  search s = {.x = x, .t = target, .name = name, .arena = arena, .err = err, .walk_work = WALK_WORK,
              .permute_work = PERMUTE_WORK, .window_work = WINDOW_WORK};
  synth_relation found = {0};
  s.like = malloc((x->n + 1) * sizeof *s.like);
  s.used = calloc(x->n + 1, sizeof *s.used);
  if (s.like && s.used) {
    memset(s.like, 0xff, (x->n + 1) * sizeof *s.like);
    attack(&s, &found);
  } else {
    no_memory(&s);
  }
  free(s.like);
  free(s.used);
  if (s.code == ISO_OK) *out = found;
  return s.code;
}
