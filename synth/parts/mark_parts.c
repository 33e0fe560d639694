/* Tensors that ranks hold a part of, where graphs differ.
 *
 * A tensor that has no counterpart may still be the right part of one: the r-th of equal cuts of a
 * tensor of the other graph, or a summand of one together with its peers. A tensor that should be a
 * part and is not the right one shows where the graphs differ. */
#include "synth/joint/joint.h"
#include "synth/relate/layout.h"
#include "synth/parts/parts.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
  MAX_PROBE = 1 << 19, /* elements; larger tensors are not compared part by part */
  SIEVE = 1 << 15      /* bits */
};

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool live(const state *s, int side, uint32_t node) {
  return s->map[side][node].i != EG_NONE;
}

typedef struct entry {
  double value;
  uint32_t node;
} entry;

typedef struct lookup { /* elements of the other graph's tensors that are near one of `want` */
  entry *at;
  size_t n, cap;
  double *want; /* ascending, finite */
  size_t n_want, cap_want;
  uint64_t sieve[SIEVE / 64]; /* by the first digits of a number: one like it may be in `want` */
} lookup;

static int by_value(const void *pa, const void *pb) {
  const entry *a = pa, *b = pb;
  return a->value != b->value ? (a->value < b->value ? -1 : 1)
         : a->node < b->node  ? -1
                              : a->node > b->node;
}

static int by_number(const void *pa, const void *pb) {
  const double a = *(const double *)pa, b = *(const double *)pb;
  return (a > b) - (a < b);
}

static const rule_tensor *probe(const state *s, const st_run *run, int side, uint32_t node) {
  const st_value_list *v = &run[side].value[node];
  if (!live(s, side, node) || v->n != 1 || s->rec[s->map[side][node].i].konst) return NULL;
  const rule_dtype type = v->v[0]->dtype;
  const bool number = rule_dtype_is_float(type) || rule_dtype_is_int(type);
  return number && v->v[0]->numel > 0 && v->v[0]->numel <= MAX_PROBE ? v->v[0] : NULL;
}

static bool is_leaf(const state *s, int side, uint32_t node) {
  return s->graph[side]->node[node].kind != SYNTH_OP;
}

static double middle(const rule_tensor *t) { return rule_tensor_get(t, t->numel / 2); }

/* A number beyond this that is within twice the slack of another has the first digits, as
 * sieve_bit reads them, of one of the ends of that range: it is narrower than one last digit of
 * these. */
static const double SIEVED = 1e-4;

/* A number of the tensor by which it is looked up: of zeros there are many everywhere. */
static double telling(const rule_tensor *t) {
  double most = middle(t);
  if (fabs(most) > SIEVED) return most;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if (isfinite(x) && !(fabs(x) <= fabs(most))) most = x;
  }
  return most;
}

static double slack(double v) { return 1e-9 * fabs(v) + 1e-12; }

static uint32_t sieve_bit(double v) {
  uint64_t bits;
  memcpy(&bits, &v, sizeof bits);
  return (uint32_t)(bits >> 32) * UINT32_C(2654435769) >> 17;
}

static void sieve_add(lookup *x, double v) {
  const uint32_t bit = sieve_bit(v);
  x->sieve[bit / 64] |= UINT64_C(1) << bit % 64;
}

static bool want(lookup *x, double v) {
  if (!isfinite(v)) return true;
  if (!iso_grow(x->want, x->cap_want, x->n_want + 1)) return false;
  x->want[x->n_want++] = v;
  sieve_add(x, v - 2 * slack(v));
  sieve_add(x, v + 2 * slack(v));
  return true;
}

/* The values looked up for the peers of `side`: a number of each, and the middle of their sum; and
 * those of a mean over ranks. */
static iso_code collect_wanted(state *s, const st_run *run, int side, lookup *x, iso_error *err) {
  for (size_t i = 0; i < s->ranks.n_peers; i++) {
    const peers *p = &s->ranks.peers[i];
    double sum = 0;
    for (uint32_t r = 0; r < p->n && p->side == side; r++) {
      const rule_tensor *own = probe(s, run, side, p->node[r]);
      if (!own) continue;
      sum += middle(own);
      const double v = telling(own);
      if (!want(x, v) || !want(x, v / p->n)) return nomem(err);
      if (r + 1 == p->n && (!want(x, sum) || !want(x, sum / p->n))) return nomem(err);
    }
  }
  if (x->n_want) qsort(x->want, x->n_want, sizeof *x->want, by_number);
  return ISO_OK;
}

/* What most elements are; no number is passed over, too. */
static bool passed_over(const lookup *x, double v) {
  const uint32_t bit = sieve_bit(v);
  return !(fabs(v) <= SIEVED) && (isnan(v) || !(x->sieve[bit / 64] >> bit % 64 & 1));
}

/* Twice the slack of the neighbours among `want` is as much as that of any other there. */
static bool is_wanted(const lookup *x, double v) {
  size_t lo = 0, hi = x->n_want;
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    if (x->want[mid] < v) lo = mid + 1;
    else hi = mid;
  }
  return (lo < x->n_want && !(fabs(x->want[lo] - v) > 2 * slack(x->want[lo]))) ||
         (lo > 0 && !(fabs(x->want[lo - 1] - v) > 2 * slack(x->want[lo - 1])));
}

/* The elements of `side` that are looked up for peers of the other: to sort all elements takes
 * longer than the rest of a comparison. */
static iso_code index_side(state *s, const st_run *run, int side, lookup *x, iso_error *err) {
  iso_code c = collect_wanted(s, run, !side, x, err);
  for (uint32_t i = 0; i < s->graph[side]->n_nodes && !c && x->n_want; i++) {
    const rule_tensor *t = probe(s, run, side, i);
    const double *data = t && t->dtype == RULE_F64 ? t->data : NULL;
    for (int64_t k = 0; t && k < t->numel; k++) {
      const double v = data ? data[k] : rule_tensor_get(t, k);
      if (passed_over(x, v) || !is_wanted(x, v)) continue;
      if (!iso_grow(x->at, x->cap, x->n + 1)) return nomem(err);
      x->at[x->n++] = (entry){v, i};
    }
  }
  if (x->n) qsort(x->at, x->n, sizeof *x->at, by_value);
  return c;
}

static size_t first_near(const lookup *x, double v) {
  size_t lo = 0, hi = x->n;
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    if (x->at[mid].value < v) lo = mid + 1;
    else hi = mid;
  }
  return lo;
}

/* Part `k` of `n` equal ones along `d`. Owns. */
static iso_code cut(const rule_tensor *t, uint32_t d, int64_t n, int64_t k, rule_tensor **out,
                    iso_error *err) {
  rule_shape s = t->shape;
  s.dim[d] /= n;
  iso_code c = rule_tensor_new(t->dtype, &s, out, err);
  int64_t inner = 1;
  for (uint32_t i = d + 1; i < s.rank; i++) inner *= s.dim[i];
  const size_t run = (size_t)(s.dim[d] * inner) * rule_dtype_size(t->dtype);
  for (size_t i = 0; !c && run && i < (size_t)(*out)->numel * rule_dtype_size(t->dtype) / run; i++)
    memcpy((char *)(*out)->data + i * run,
           (const char *)t->data + (i * (size_t)n + (size_t)k) * run, run);
  return c;
}

/* Whether b, divided by `by`, is a in some layout; `mb`: the moments of b. */
static iso_code alike(state *s, const rule_tensor *a, const rule_tensor *b, const double mb[4],
                      uint32_t by, bool *yes, iso_error *err) {
  double ma[4], mine[4];
  rule_tensor *part = NULL;
  *yes = false;
  if (a->numel != b->numel || rule_dtype_is_float(a->dtype) != rule_dtype_is_float(b->dtype))
    return ISO_OK;
  st_scale_moments(mb, 1.0 / by, mine);
  st_moments(a, ma);
  if (!st_near_moments(ma, mine)) return ISO_OK;
  if (by > 1) {
    const iso_code c = rule_tensor_new(b->dtype, &b->shape, &part, err);
    if (c) return c;
    for (int64_t i = 0; i < b->numel; i++) rule_tensor_set(part, i, rule_tensor_get(b, i) / by);
    b = part;
  }
  iso_arena scratch;
  iso_arena_init(&scratch);
  *yes = synth_layout(&scratch, s->schemas, a, b, s->oracle, s->o->rel_tol) != NULL;
  iso_arena_fini(&scratch);
  rule_tensor_unref(part);
  return ISO_OK;
}

typedef struct holders { /* ranks that hold their part of a tensor */
  bool of[MAX_RANKS];
  uint32_t n;
  uint32_t whole; /* the tensor's node */
  int64_t parts;  /* of it */
  uint32_t by;    /* they hold so many times their part: a gradient of a mean over each one's own
                     part of a batch */
} holders;

/* Which ranks hold their part of `whole`, cut along `d`. With fewer parts than ranks, neighbours
 * share one. */
static iso_code compare_parts(state *s, const st_run *run, const peers *p, const rule_tensor *whole,
                              uint32_t d, holders *out, iso_error *err) {
  const rule_tensor *first = probe(s, run, p->side, p->node[0]);
  const int64_t parts = whole->numel / first->numel;
  iso_code c = ISO_OK;
  out->n = 0;
  for (uint32_t r = 0; r < p->n && !c; r++) {
    rule_tensor *part = NULL;
    const rule_tensor *own = probe(s, run, p->side, p->node[r]);
    out->of[r] = false;
    if (!own || own->numel != first->numel) continue;
    if ((c = cut(whole, d, parts, (int64_t)r * parts / (int64_t)p->n, &part, err))) break;
    double moment[4];
    st_moments(own, moment);
    c = alike(s, part, own, moment, out->by, &out->of[r], err);
    out->n += out->of[r];
    rule_tensor_unref(part);
  }
  return c;
}

/* The ways to cut `whole`, into `best` where more ranks hold their part than of any before. */
static iso_code try_cuts(state *s, const st_run *run, const peers *p, uint32_t j, holders *best,
                         iso_error *err) {
  const rule_tensor *first = probe(s, run, p->side, p->node[0]),
                    *whole = probe(s, run, !p->side, j);
  iso_code c = ISO_OK;
  if (!whole || whole->shape.rank == 0 ||
      is_leaf(s, p->side, p->node[0]) != is_leaf(s, !p->side, j) ||
      whole->numel % first->numel != 0 || (best->by > 1 && whole->numel == first->numel))
    return ISO_OK;
  const int64_t parts = whole->numel / first->numel;
  for (uint32_t d = 0; d < (parts > 1 ? whole->shape.rank : 1) && parts <= (int64_t)p->n && !c;
       d++) {
    holders now = {.whole = j, .parts = parts, .by = best->by};
    if (parts > 1 && whole->shape.dim[d] % parts != 0) continue;
    c = compare_parts(s, run, p, whole, d, &now, err);
    if (now.n > best->n) *best = now;
  }
  return c;
}

/* The best of the whole tensors that hold an element of some peer: cut, or as it is on every rank.
 */
static iso_code find_parts(state *s, const st_run *run, const peers *p, const lookup *x,
                           holders *best, iso_error *err) {
  const rule_tensor *first = probe(s, run, p->side, p->node[0]);
  const uint32_t by = best->by;
  uint8_t *tried = calloc(s->graph[!p->side]->n_nodes + 1, 1);
  iso_code c = tried ? ISO_OK : nomem(err);
  *best = (holders){.by = by};
  for (uint32_t r = 0; r < p->n && first && !c && best->n < p->n; r++) {
    const rule_tensor *own = probe(s, run, p->side, p->node[r]);
    if (!own) continue;
    const double v = telling(own) / by;
    for (size_t i = first_near(x, v - slack(v));
         i < x->n && x->at[i].value <= v + slack(v) && !c && best->n < p->n; i++) {
      const uint32_t j = x->at[i].node;
      if (tried[j]) continue;
      tried[j] = 1;
      c = try_cuts(s, run, p, j, best, err);
    }
  }
  free(tried);
  return c;
}

/* Whether the sum of the peers, divided by `by`, is a tensor of the other side. */
static iso_code find_sum(state *s, const st_run *run, const peers *p, const lookup *x, uint32_t by,
                         bool *found, iso_error *err) {
  const rule_tensor *first = probe(s, run, p->side, p->node[0]);
  rule_tensor *sum = NULL;
  bool apart = false; /* replicas are no summands */
  *found = false;
  if (!first || !rule_dtype_is_float(first->dtype)) return ISO_OK;
  iso_code c = rule_tensor_new(first->dtype, &first->shape, &sum, err);
  for (uint32_t r = 0; r < p->n && !c; r++) {
    const rule_tensor *own = probe(s, run, p->side, p->node[r]);
    if (!own || own->numel != first->numel) goto done;
    apart |= !eg_equal(s->g, s->map[p->side][p->node[r]], s->map[p->side][p->node[0]]);
    for (int64_t i = 0; i < own->numel; i++)
      rule_tensor_set(sum, i, (r ? rule_tensor_get(sum, i) : 0) + rule_tensor_get(own, i));
  }
  if (c) return c;
  if (!apart) goto done;
  const double v = middle(sum) / by;
  double moment[4];
  uint32_t before = UINT32_MAX; /* one number may stand in a tensor many times */
  st_moments(sum, moment);
  for (size_t i = first_near(x, v - slack(v));
       i < x->n && x->at[i].value <= v + slack(v) && !*found && !c; i++) {
    const uint32_t j = x->at[i].node;
    const rule_tensor *whole = j == before ? NULL : probe(s, run, !p->side, j);
    if (whole) c = alike(s, whole, sum, moment, by, found, err);
    before = j;
  }
done:
  rule_tensor_unref(sum);
  return c;
}

/* Which ranks hold their part of one tensor of the other graph. */
static iso_code mark_peers(state *s, const st_run *run, const peers *p, const lookup *x,
                           iso_error *err) {
  const int side = p->side;
  const bool leaf = is_leaf(s, side, p->node[0]);
  holders best = {.n = 0};
  bool sum = false;
  iso_code c = ISO_OK;
  for (uint32_t by = 1; by <= (leaf ? 1 : p->n) && !best.n && !sum && !c; by += p->n - 1) {
    best.by = by;
    c = find_parts(s, run, p, x, &best, err);
    if (!c && best.n == 0 && !leaf) c = find_sum(s, run, p, x, by, &sum, err);
  }
  if (best.n == p->n && best.by == 1) s->ranks.part[!side][best.whole] = PART_RIGHT;
  /* Pieces are a guess: where all but one are pieces of one tensor, they may be pieces of
   * several. */
  if (p->pieces && best.n < p->n && !sum &&
      (leaf || best.n + 1 < p->n || best.parts != (int64_t)p->n))
    return c;
  for (uint32_t r = 0; r < p->n && (best.n > 0 || sum); r++) {
    uint8_t *mark = &s->ranks.part[side][p->node[r]];
    /* Other ids than another rank's are nothing to wonder at. */
    const bool ids = !rule_dtype_is_float(s->graph[side]->node[p->node[r]].dtype),
               other = leaf && st_has_side(s, s->map[side][p->node[r]], !side);
    if (sum || best.of[r]) *mark = PART_RIGHT;
    else if (*mark != PART_RIGHT && !ids && !other) *mark = PART_WRONG;
  }
  return c;
}

iso_code st_mark_parts(state *s, const st_run run[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2; side++) {
    free(s->ranks.part[side]);
    if (!(s->ranks.part[side] = calloc(s->graph[side]->n_nodes + 1, 1))) return nomem(err);
  }
  for (int side = 0; side < 2 && !c; side++) {
    lookup x = {0};
    bool any = false;
    for (size_t i = 0; i < s->ranks.n_peers; i++) any |= s->ranks.peers[i].side == side;
    if (any) c = index_side(s, run, !side, &x, err);
    for (size_t i = 0; i < s->ranks.n_peers && !c; i++)
      if (s->ranks.peers[i].side == side) c = mark_peers(s, run, &s->ranks.peers[i], &x, err);
    free(x.at);
    free(x.want);
  }
  return c;
}
