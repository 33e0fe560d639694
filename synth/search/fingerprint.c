/* E-nodes grouped by value: for e-nodes that agree up to layout on all draws, a rule that joins
 * them is looked for. */
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/relate/layout.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/wide.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

bool st_has_side(state *s, eg_node e, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0) return true;
  return false;
}

bool st_rests(state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  bool rests = false;
  for (size_t i = 0; i < n; i++) rests |= s->rec[m[i].i].rests;
  return rests;
}

/* By the rules that are there already. */
static iso_code reuse(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  iso_code c = ISO_OK;
  if (!st_without(s, SYNTH_REUSE)) c = st_apply_rules(s, u, t, done, err);
  if (!c && !*done && !st_without(s, SYNTH_REUSE)) c = st_apply_known(s, u, t, done, err);
  return c;
}

iso_code st_prove(state *s, eg_node u, eg_node t, bool *done, iso_error *err) {
  *done = eg_equal(s->g, u, t);
  if (*done) return ISO_OK;
  s->res->n_candidates++;
  iso_code c = reuse(s, u, t, done, err);
  if (c || *done || s->search.apart) return c;
  /* What is joined below is joined once, with all that may need it in mind. */
  const bool briefly = s->search.briefly;
  bool shards = false;
  s->search.briefly = false;
  c = st_link_shards(s, u, t, &shards, err);
  s->search.briefly = briefly;
  *done = !c && eg_equal(s->g, u, t); /* what was joined below may be all that was missing */
  if (!c && shards && !*done) c = reuse(s, u, t, done, err);
  if (!c && !*done) c = st_join_items(s, u, t, done, err);
  if (!c && !*done) c = st_join_numbers(s, u, t, done, err);
  if (!c && !*done) c = st_synthesise(s, u, t, done, err);
  /* An input is a variable of any rule, unless it is a root itself, as a term that cannot leave its
   * range. */
  const st_bound *bu = st_bound_of(s, u), *bt = st_bound_of(s, t);
  if (!c && bu && !*done) c = st_synthesise(s, bu->def, t, done, err);
  if (!c && bt && !*done) c = st_synthesise(s, u, bt->def, done, err);
  /* Behind all else: a class with a quotient of what is computed from it leads other searches round
   * in a circle. */
  bool scaled = false;
  if (!c && !*done && !s->ranks.whole) c = st_join_scaled(s, u, t, &scaled, err);
  if (scaled && !c && !(*done = eg_equal(s->g, u, t))) {
    c = reuse(s, u, t, done, err);
    if (!c && !*done) c = st_synthesise(s, u, t, done, err);
  }
  return c;
}

/* Where something reads the sign of a zero, 0 and -0 are two values: joined, they would join calls
 * that tell them apart. */
bool st_values_equal(state *s, eg_node a, eg_node b) {
  for (size_t d = 0; d < s->n_draws; d++) {
    const rule_tensor *va = st_val(s, a, d), *vb = st_val(s, b, d);
    if (!va || !vb || !s->oracle->compare(s->oracle->ctx, va, vb, s->o->rel_tol).equal ||
        (s->constants.signs && !rule_tensor_same_zeros(va, vb)))
      return false;
  }
  return !s->rec[a.i].konst || !s->rec[b.i].konst || !st_zeros_told(s, a, b);
}

/* 0: the same shape, 1: the same but for sizes 1, 2: another. */
int st_shape_distance(const rule_shape *a, const rule_shape *b) {
  if (rule_shape_eq(a, b)) return 0;
  uint32_t i = 0, j = 0;
  for (;;) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (j < b->rank && b->dim[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank ? 1 : 2;
    if (a->dim[i++] != b->dim[j++]) return 2;
  }
}

/* Whether `e` is computed from `of` by a few steps that keep the elements. */
static bool comes_from(state *s, eg_node e, eg_node of) {
  enum { STEPS = 4 };
  for (int k = 0; k < STEPS && eg_node_arity(s->g, e) > 0; k++) {
    e = (eg_node){eg_node_original(s->g, e, 0).i};
    if (!s->rec[e.i].tensor || !s->rec[e.i].valued || st_numel(s, e) != st_numel(s, of))
      return false;
    if (eg_equal(s->g, e, of)) return true;
  }
  return false;
}

/* A step of a layout term that is a tensor of the graphs is joined with it: a tensor laid out one
 * way and back then needs no rule of its own for each comparison. Rules are made only for a way
 * back. `x`: from the whole term down to `lo`, whose group is `gi`. */
static iso_code join_steps(state *s, eg_node x, eg_node lo, int32_t gi, iso_error *err) {
  if (x.i == lo.i || gi < 0 || eg_node_arity(s->g, x) == 0 || !s->rec[x.i].tensor) return ISO_OK;
  iso_code c = join_steps(s, (eg_node){eg_node_original(s->g, x, 0).i}, lo, gi, err);
  if (c || st_has_side(s, x, LEFT) || st_has_side(s, x, RIGHT)) return c;
  enum { MANY = 64 };
  uint32_t tried[MANY]; /* classes: what is 0 has many members */
  size_t n = 0;
  bool done = false;
  for (size_t k = 0; k < s->groups.of[gi].n && !c && !done; k++) {
    const eg_node m = s->groups.of[gi].member[k];
    const uint32_t of = eg_class_of(s->g, m).i;
    bool again = false;
    for (size_t j = 0; j < n && !again; j++) again = tried[j] == of;
    if (!again && n < MANY) tried[n++] = of;
    if (again || !rule_shape_eq(&s->rec[m.i].shape, &s->rec[x.i].shape)) continue;
    if ((c = st_value(s, x, err)) || !st_values_equal(s, m, x)) continue;
    c = comes_from(s, lo, m) ? st_prove(s, m, x, &done, err) : reuse(s, m, x, &done, err);
  }
  return c;
}

/* The member from which a rule is best made: a captured e-node of the class, else the e-node
 * itself. */
static eg_node captured_member(state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[LEFT] >= 0 || s->rec[m[i].i].node[RIGHT] >= 0) return m[i];
  return e;
}

/* Tensors that `hi` is a layout of, by a few operators, and that are `lo` by value and are not
 * joined with it: behind the `n` in `out`, which has room for four. */
static iso_code inside(state *s, eg_node hi, eg_node lo, int depth, eg_node *out, size_t *n,
                       iso_error *err) {
  enum { MOST = 4 };
  const eg_node *m;
  const size_t n_members = eg_class_nodes(s->g, eg_class_of(s->g, hi), &m);
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n_members && *n < MOST && !c; i++) {
    if (eg_node_arity(s->g, m[i]) == 0 || !rule_operator_of(st_operator(s, m[i]))->rearranges)
      continue;
    const eg_node of = {eg_node_original(s->g, m[i], 0).i};
    const rec *r = &s->rec[of.i];
    if (!r->tensor || st_numel(s, of) != st_numel(s, lo) || eg_equal(s->g, of, lo) ||
        eg_equal(s->g, of, hi))
      continue;
    if (!rule_shape_eq(&r->shape, &s->rec[lo.i].shape)) {
      if (depth > 1) c = inside(s, of, lo, depth - 1, out, n, err);
      continue;
    }
    bool known = false;
    for (size_t k = 0; k < *n; k++) known |= eg_equal(s->g, out[k], of);
    if (!known && !(c = st_value(s, of, err)) && st_values_equal(s, of, lo)) out[(*n)++] = of;
  }
  return c;
}

/* `hi` is a layout of `lo`. Where ranks or calls hold a tensor in parts, it may be one of these put
 * together, too, while `lo` is what they copied. What is laid out alike is one, and no congruence
 * says so of the tensors inside: each is shown to be one layout of `hi`. */
static iso_code lay_back(state *s, eg_node hi, eg_node lo, iso_error *err) {
  enum { DEPTH = 3, MOST = 4 };
  eg_node twin[MOST + 1];
  size_t n = 0;
  iso_code c = inside(s, hi, lo, DEPTH, twin, &n, err);
  if (c || n == 0) return c;
  twin[n++] = lo;
  const size_t probe = s->n_draws - 1;
  const rule_tensor *from = st_val(s, hi, probe), *to = st_val(s, lo, probe);
  if (!from || !to) return st_lost(&s->values, err);
  const rule_term *term = synth_layout(&s->arena, s->schemas, from, to, s->oracle, s->o->rel_tol);
  eg_node back;
  if (!term) return ISO_OK;
  if ((c = st_add_term(s, term, &hi, &back, err)) || (c = st_value(s, back, err))) return c;
  for (size_t i = n; i-- > 0 && !c;) {
    bool done = false;
    if (rule_shape_eq(&s->rec[back.i].shape, &s->rec[lo.i].shape) &&
        st_values_equal(s, twin[i], back))
      c = st_prove(s, twin[i], back, &done, err);
  }
  return c;
}

iso_code st_lay_back(state *s, bool *gained, iso_error *err) {
  iso_code c = ISO_OK;
  const size_t merges = s->res->n_merges;
  for (size_t i = 0; i < s->search.n_laid && !c && !st_stopped(s); i++)
    c = lay_back(s, (eg_node){s->search.laid[i][0]}, (eg_node){s->search.laid[i][1]}, err);
  s->search.n_laid = 0;
  *gained = s->res->n_merges > merges && !st_stopped(s);
  return c;
}

/* Link e-node `e` with member `m` of another shape through a layout term: the one of higher rank is
 * written in terms of the other. Returns: in `same` whether their values agree up to layout at all,
 * in `done` whether they are linked. */
static iso_code link_layout(state *s, eg_node e, eg_node m, bool *same, bool *done,
                            iso_error *err) {
  *same = *done = false;
  const size_t probe = s->n_draws - 1;
  eg_node hi = e, lo = m;
  if (s->rec[m.i].shape.rank > s->rec[e.i].shape.rank) hi = m, lo = e;
  const rule_term *term = NULL;
  for (int turn = 0; turn < 2 && !term; turn++) {
    if (turn) {
      const eg_node x = hi;
      hi = lo;
      lo = x;
    }
    const rule_tensor *from = st_val(s, lo, probe), *to = st_val(s, hi, probe);
    if (!from || !to) return st_lost(&s->values, err);
    term = synth_layout(&s->arena, s->schemas, from, to, s->oracle, s->o->rel_tol);
  }
  if (!term) return ISO_OK;
  eg_node aux;
  iso_code c = st_add_term(s, term, &lo, &aux, err);
  if (!c) c = st_value(s, aux, err);
  if (c) return c;
  if (!rule_shape_eq(&s->rec[aux.i].shape, &s->rec[hi.i].shape) || !st_values_equal(s, hi, aux))
    return ISO_OK;
  *same = true;
  if ((c = join_steps(s, aux, lo, s->rec[m.i].group, err))) return c;
  if ((c = st_prove(s, hi, captured_member(s, aux), done, err))) return c;
  if (!*done || !s->ranks.n_peers) return ISO_OK;
  if (s->search.lays_back) return lay_back(s, hi, lo, err);
  if (!iso_grow(s->search.laid, s->search.cap_laid, s->search.n_laid + 1))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  s->search.laid[s->search.n_laid][0] = hi.i;
  s->search.laid[s->search.n_laid++][1] = lo.i;
  return ISO_OK;
}

/* Groups are looked up by their size and the first bits of the second moment: near ones have the
 * same, or one next to it. */
static size_t place_of(const st_groups *q, int64_t numel, double m1) {
  enum { LESS = 30 }; /* what is left is coarser than near is */
  uint64_t bits;
  memcpy(&bits, &m1, sizeof bits);
  const uint64_t key[2] = {(uint64_t)numel, bits >> LESS};
  return iso_hash(key, sizeof key, 0) & (q->n_places - 1);
}

static void put_group(state *s, int32_t i) {
  const size_t at = place_of(&s->groups, s->groups.of[i].numel, s->groups.of[i].moment[1]);
  s->groups.of[i].next = s->groups.place[at];
  s->groups.place[at] = i;
}

static bool place_groups(state *s) {
  const size_t n = s->groups.n_places ? 4 * s->groups.n_places : 1024;
  int32_t *place = malloc(n * sizeof *place);
  if (!place) return false;
  free(s->groups.place);
  s->groups.place = place;
  s->groups.n_places = n;
  for (size_t i = 0; i < n; i++) place[i] = -1;
  for (size_t i = 0; i < s->groups.n; i++) put_group(s, (int32_t)i);
  return true;
}

/* The first of a chain behind `after`. */
static int32_t first_near(state *s, int32_t from, int32_t after, int64_t numel, const double m[4],
                          rule_dtype dtype) {
  int32_t best = -1;
  for (int32_t i = from; i >= 0; i = s->groups.of[i].next)
    if (i > after && (best < 0 || i < best) && s->groups.of[i].numel == numel &&
        st_near_moments(s->groups.of[i].moment, m) &&
        st_dtype(s, s->groups.of[i].member[0]) == dtype)
      best = i;
  return best;
}

/* Where values are near within more than the places tell apart: kernels that compute in few bits
 * are few. */
static int32_t find_coarse(state *s, double coarse, int64_t numel, rule_dtype dtype,
                           const double m[4], int32_t after) {
  for (size_t i = (size_t)(after + 1); i < s->groups.n; i++) {
    const double tol = fmax(fmax(coarse, s->groups.of[i].coarse), 1e-8);
    if (s->groups.of[i].numel == numel && st_near_within(s->groups.of[i].moment, m, tol) &&
        st_dtype(s, s->groups.of[i].member[0]) == dtype)
      return (int32_t)i;
  }
  return -1;
}

static int32_t find_group(state *s, eg_node e, const double m[4], int32_t after) {
  const bool spare = st_spare(s, e);
  const rule_tensor *v = spare ? NULL : st_val(s, e, s->n_draws - 1);
  const rule_dtype dtype = spare ? RULE_F64 : v->dtype;
  const int64_t numel = spare ? st_numel(s, e) : v->numel;
  if (!st_without(s, SYNTH_FINGERPRINT)) {
    if (!s->groups.n_places) return -1;
    if (s->groups.coarse > 0 || (v && v->coarse > 0))
      return find_coarse(s, v ? v->coarse : 0, numel, dtype, m, after);
    const size_t low = place_of(&s->groups, numel, m[1] * (1 - 4e-8)),
                 high = place_of(&s->groups, numel, m[1] * (1 + 4e-8));
    const int32_t a = first_near(s, s->groups.place[low], after, numel, m, dtype),
                  b = high == low ? -1
                                  : first_near(s, s->groups.place[high], after, numel, m, dtype);
    return a < 0 || (b >= 0 && b < a) ? b : a;
  }
  for (size_t i = (size_t)(after + 1); i < s->groups.n; i++)
    if (s->groups.of[i].numel == numel && st_dtype(s, s->groups.of[i].member[0]) == dtype)
      return (int32_t)i;
  return -1;
}

int32_t st_next_group(state *s, int64_t numel, rule_dtype dtype, const double m[4], int32_t after) {
  int32_t best = -1;
  for (int k = 0; k < 2 && s->groups.n_places; k++) {
    const double near = m[1] * (k ? 1 + 4e-8 : 1 - 4e-8);
    const int32_t i =
        first_near(s, s->groups.place[place_of(&s->groups, numel, near)], after, numel, m, dtype);
    if (i >= 0 && (best < 0 || i < best)) best = i;
  }
  return best;
}

static iso_code join_group(state *s, int32_t i, eg_node e, const double m[4], int64_t numel,
                           iso_error *err) {
  if (i < 0) {
    if (!iso_grow(s->groups.of, s->groups.cap, s->groups.n + 1)) return nomem(err);
    i = (int32_t)s->groups.n++;
    s->groups.of[i] = (group){.numel = numel};
    memcpy(s->groups.of[i].moment, m, sizeof s->groups.of[i].moment);
    if (s->groups.n > s->groups.n_places) {
      if (!place_groups(s)) return nomem(err);
    } else put_group(s, i);
  }
  group *g = &s->groups.of[i];
  if (!iso_grow(g->member, g->cap, g->n + 1)) return nomem(err);
  g->member[g->n++] = e;
  const rule_tensor *v = st_spare(s, e) ? NULL : st_val(s, e, s->n_draws - 1);
  if (v && v->coarse > g->coarse)
    g->coarse = v->coarse, s->groups.coarse = fmax(s->groups.coarse, v->coarse);
  s->rec[e.i].group = i;
  return ISO_OK;
}

/* The leaves that an e-node depends on, as a set that may hold too many. */
static uint64_t signature(state *s, eg_node e) {
  rec *r = &s->rec[e.i];
  if (r->signature || r->konst) return r->signature;
  uint64_t of = 0;
  if (r->leaf) {
    const eg_class c = eg_class_of(s->g, e);
    r->signature =
        UINT64_C(1) << (iso_hash(&c.i, sizeof c.i, 0) >>
                        58); /* an atom's; and what a term that holds itself finds there */
    const eg_node *m;
    const size_t n = r->atom ? 0 : eg_class_nodes(s->g, c, &m);
    for (size_t i = 0; i < n && !of; i++) /* what defines it */
      if (!s->rec[m[i].i].leaf) of = signature(s, m[i]);
  } else {
    const size_t n = eg_node_arity(s->g, e);
    for (size_t i = 0; i < n; i++) of |= signature(s, (eg_node){eg_node_original(s->g, e, i).i});
  }
  if (of) s->rec[e.i].signature = of;
  return s->rec[e.i].signature;
}

/* One member of each class of a group, the first, in the order in which they are tried: by how many
 * leaves only one of it and `e` depends on. Returns: malloc'ed, NULL: no memory. */
static eg_node *in_order(state *s, const group *g, eg_node e, size_t *n) {
  enum { BITS = 64 };
  eg_node *first = malloc((g->n + 1) * sizeof *first), *out = malloc((g->n + 1) * sizeof *out);
  size_t n_first = 0;
  *n = 0;
  for (size_t k = 0; k < g->n && first && out; k++) {
    bool seen = false;
    for (size_t j = 0; j < n_first && !seen; j++) seen = eg_equal(s->g, first[j], g->member[k]);
    if (!seen) first[n_first++] = g->member[k];
  }
  for (int far = 0; far <= BITS && *n < n_first; far++)
    for (size_t k = 0; k < n_first; k++) {
      const int d = st_without(s, SYNTH_SIGNATURE) || n_first > BITS
                        ? 0
                        : __builtin_popcountll(signature(s, first[k]) ^ signature(s, e));
      if (d == far) out[(*n)++] = first[k];
    }
  free(first);
  if (!first) {
    free(out);
    return NULL;
  }
  return out;
}

/* Join `e` with members of its own shape by the rules that are there: a cast or a view that is
 * grouped with its operand then needs no rule of its own for each counterpart in the other
 * graph. */
static iso_code join_by_reuse(state *s, const eg_node *member, size_t n, eg_node e,
                              iso_error *err) {
  iso_code c = ISO_OK;
  if (st_without(s, SYNTH_REUSE)) return ISO_OK;
  for (size_t k = 0; k < n && !c; k++) {
    bool done = false;
    if (eg_equal(s->g, member[k], e) ||
        st_shape_distance(&s->rec[member[k].i].shape, &s->rec[e.i].shape) != 0 ||
        !st_values_equal(s, member[k], e))
      continue;
    c = reuse(s, member[k], e, &done, err);
  }
  return c;
}

/* Whether `e` is made of a sum that cancels, and `of` a tensor that stands before it in the same
 * graph, and is not: a parameter less its gradient of 0 would be computed from itself. */
static bool comes_back(state *s, eg_node e, eg_node of) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, of), &m);
  bool before = false;
  if (!s->rec[e.i].rests || st_rests(s, of)) return false;
  for (size_t i = 0; i < n; i++)
    for (int side = 0; side < 2; side++)
      before |=
          s->rec[m[i].i].node[side] >= 0 && s->rec[m[i].i].node[side] < s->rec[e.i].node[side];
  return before;
}

/* Whether it is a constant, or was joined with one. */
static bool known_constant(state *s, eg_node e) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].konst) return true;
  return false;
}

/* Two tensors that are equal because a sum cancels, of one graph or of ranks: that both are 0 is no
 * sign that one is the other. Ranks' sums are joined by their steps, when an output that is made of
 * them is; only then are they compared with one another. */
static bool by_cancelling(state *s, eg_node a, eg_node b) {
  const bool across = (st_has_side(s, a, LEFT) && st_has_side(s, b, RIGHT)) ||
                      (st_has_side(s, a, RIGHT) && st_has_side(s, b, LEFT));
  if (s->rec[a.i].cancels && s->rec[b.i].cancels)
    return !across || (s->ranks.n_peers && !s->search.large_patterns);
  if (s->ranks.n_peers && ((s->rec[a.i].cancels && known_constant(s, b)) ||
                           (s->rec[b.i].cancels && known_constant(s, a))))
    return true; /* zeros, as the maximum of a row less itself */
  return comes_back(s, a, b) || comes_back(s, b, a);
}

/* Two steps of one graph, before all were compared with the other one's. Of the whole mostly each
 * has parts of its own, and that the two are equal (a gradient, and what a mask leaves of it) is of
 * no use; of the ranks it is none where one rank's were tried in vain. What has no counterpart in
 * the end is looked at again. `of`: the ranks' peers; UINT32_MAX: no two such steps. */
static bool may_need_none(state *s, eg_node a, eg_node b, uint32_t of[2]) {
  const int whole = s->ranks.whole_side;
  of[0] = of[1] = UINT32_MAX;
  if (!s->search.first_pass || !s->ranks.n_peers) return false;
  if (!st_has_side(s, a, !whole) && !st_has_side(s, b, !whole)) return true;
  if (st_has_side(s, a, whole) || st_has_side(s, b, whole)) return false;
  of[0] = st_peers_in(s, eg_class_of(s->g, a));
  of[1] = st_peers_in(s, eg_class_of(s->g, b));
  if (of[0] == UINT32_MAX || of[1] == UINT32_MAX || of[0] == of[1]) of[0] = UINT32_MAX;
  return of[0] != UINT32_MAX && s->ranks.peers[of[0]].apart == of[1] + 1;
}

/* Try to join `e` with the members of its group: those of the same shape but for sizes 1 first,
 * since the rules that come out of them are the small ones; other layouts only across the two
 * graphs, and only until one holds. */
static iso_code try_group(state *s, int32_t gi, eg_node e, bool *belongs, iso_error *err) {
  iso_code c = ISO_OK;
  bool linked = false;
  size_t failures = 0;
  const int first = s->ranks.whole_side; /* all of it is in groups before the other is looked at */
  const bool second_only = !st_has_side(s, e, first);
  size_t n;
  eg_node *member = in_order(s, &s->groups.of[gi], e, &n);
  if (!member) return nomem(err);
  c = join_by_reuse(s, member, n, e, err);
  for (int round = 0; round < 3 && !c; round++) {
    const int want = round == 0 ? 1 : round == 1 ? 0 : 2;
    for (size_t k = 0; k < n && !c && failures < 12; k++) {
      const eg_node m = member[k];
      bool dup = m.i == e.i || eg_equal(s->g, m, e) || by_cancelling(s, m, e);
      if (dup) {
        *belongs = true;
        continue;
      }
      for (size_t j = 0; j < k && !dup; j++) dup = eg_equal(s->g, member[j], m);
      if (dup || st_shape_distance(&s->rec[m.i].shape, &s->rec[e.i].shape) != want) continue;
      bool done = false;
      uint32_t of[2];
      s->search.briefly = may_need_none(s, m, e, of);
      if (want == 0) {
        if (!st_values_equal(s, m, e)) {
          if (!*belongs) c = link_layout(s, e, m, belongs, &done, err);
          continue;
        }
        *belongs = true;
        c = st_prove(s, m, e, &done, err);
      } else {
        const bool across = second_only && st_has_side(s, m, first);
        if (*belongs && (!across || linked)) continue;
        if (!across) { /* only find out whether it belongs here */
          const size_t probe = s->n_draws - 1;
          const rule_tensor *vm = st_val(s, m, probe), *ve = st_val(s, e, probe);
          if (!vm || !ve) {
            c = st_lost(&s->values, err);
            continue;
          }
          *belongs |= s->oracle->compare(s->oracle->ctx, vm, ve, s->o->rel_tol).equal;
          continue;
        }
        bool same;
        c = link_layout(s, e, m, &same, &done, err);
        *belongs |= same;
        linked |= done;
        if (!same) continue;
      }
      failures += !done;
      if (!done && of[0] != UINT32_MAX) s->ranks.peers[of[0]].apart = of[1] + 1;
    }
  }
  s->search.briefly = false;
  free(member);
  return c;
}

/* Whether some operator of the graphs computes as many numbers as `e` has: else none can compute
 * it. */
static bool may_be_computed(const state *s, eg_node e) {
  const int64_t n = st_numel(s, e);
  for (uint32_t i = 0; i < s->n_rec; i++) {
    const rec *r = &s->rec[i];
    if (r->tensor && r->valued && !r->konst && !r->leaf &&
        (r->node[LEFT] >= 0 || r->node[RIGHT] >= 0) && st_numel(s, (eg_node){i}) == n)
      return true;
  }
  return false;
}

iso_code st_visit(state *s, eg_node e, iso_error *err) {
  const rec *r = &s->rec[e.i];
  if (!r->tensor || !r->valued || r->konst) return ISO_OK;
  st_trim(s);
  (void)signature(s, e); /* in the graphs' order, so that it never goes deep */
  /* Leaves are related by now: a large one is visited only if a call may compute it from
   * another. */
  if (r->leaf && st_spare(s, e) && !may_be_computed(s, e)) return ISO_OK;
  const rule_tensor *v = st_val(s, e, s->n_draws - 1);
  if (!v) return st_lost(&s->values, err);
  const int64_t numel = v->numel;
  if (numel == 0 || st_holds_nan(v)) return ISO_OK;
  if (r->group >= 0) { /* a later pass */
    bool belongs = true;
    return try_group(s, r->group, e, &belongs, err);
  }
  iso_code fills = st_join_fill(s, e, err);
  if (fills) return fills;
  double m[4];
  st_moments(v, m);
  bool belongs = false;
  int32_t gi = -1;
  while ((gi = find_group(s, e, m, gi)) >= 0) {
    iso_code c = try_group(s, gi, e, &belongs, err);
    if (c) return c;
    if (belongs) break;
  }
  return join_group(s, gi, e, m, numel, err);
}
