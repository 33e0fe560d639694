/* The right outputs that make up each left output: the outputs of one name on all ranks first, then
 * those of another name, then all.
 *
 * Both graphs are run on the captured inputs and on drawn ones, their leaves related as in a
 * comparison. Every relation found so is a proposal. */
#include "synth/loop.h"
#include "synth/joint/joint.h"
#include "synth/refine/refine.h"
#include "synth/search/search.h"

#include "egraph/base/vec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- outputs of one name on several ranks ---- */

typedef struct ranked {
  uint32_t member[ST_MAX_PARTS]; /* right outputs, by rank */
  size_t n;
  bool used;
} ranked;

typedef struct inference {
  st_refiner x;
  const synth_graph *left, *right;
  ranked *group; /* those of one name, then one of all outputs */
  size_t n_groups;
  synth_refinement *out;
  synth_found *found;
  size_t n_found, cap_found;
} inference;

size_t synth_stem(const char *name, const char **stem, unsigned long *rank) {
  const size_t n = strlen(name);
  size_t i = n;
  char *end;
  *stem = name;
  *rank = 0;
  while (i > 0 && name[i - 1] >= '0' && name[i - 1] <= '9') i--;
  if (i < n && i > 5 && memcmp(name + i - 4, "rank", 4) == 0 && strchr("_.", name[i - 5])) {
    *rank = strtoul(name + i, NULL, 10);
    return i - 5;
  }
  if (strncmp(name, "rank", 4) != 0 || name[4] < '0' || name[4] > '9') return n;
  const unsigned long r = strtoul(name + 4, &end, 10);
  if (!*end || !strchr("._", *end) || !end[1]) return n;
  *rank = r;
  *stem = end + 1;
  return strlen(end + 1);
}

bool synth_same_stem(const char *a, const char *b) {
  const char *x, *y;
  unsigned long r;
  const size_t n = synth_stem(a, &x, &r), m = synth_stem(b, &y, &r);
  return n == m && memcmp(x, y, n) == 0;
}

static unsigned long rank_of(const char *name) {
  const char *stem;
  unsigned long r;
  synth_stem(name, &stem, &r);
  return r;
}

/* Ranks ascend; of one rank the graph's order stands. */
static void add_member(const synth_graph *g, ranked *p, uint32_t k) {
  if (p->n == ST_MAX_PARTS) return;
  size_t at = p->n++;
  const unsigned long r = rank_of(g->output[k].name);
  for (; at > 0 && rank_of(g->output[p->member[at - 1]].name) > r; at--)
    p->member[at] = p->member[at - 1];
  p->member[at] = k;
}

static iso_code make_groups(inference *f, iso_error *err) {
  const synth_graph *g = f->right;
  if (!(f->group = calloc(g->n_outputs + 2, sizeof *f->group))) return nomem(err);
  for (size_t k = 0; k < g->n_outputs; k++) {
    size_t i = 0;
    while (i < f->n_groups &&
           !synth_same_stem(g->output[f->group[i].member[0]].name, g->output[k].name))
      i++;
    if (i == f->n_groups) f->n_groups++;
    add_member(g, &f->group[i], (uint32_t)k);
  }
  ranked *all = &f->group[f->n_groups];
  for (size_t k = 0; k < g->n_outputs && k < ST_MAX_PARTS; k++) all->member[all->n++] = (uint32_t)k;
  return ISO_OK;
}

/* ---- what is found ---- */

static iso_code note(inference *f, uint32_t left, const rule_term *t, bool holds, double scale,
                     const char *surprise, iso_error *err) {
  for (size_t i = 0; i < f->n_found; i++)
    if (t && f->found[i].term && f->found[i].left == left && rule_term_eq(f->found[i].term, t))
      return ISO_OK;
  if (!iso_grow(f->found, f->cap_found, f->n_found + 1)) return nomem(err);
  f->found[f->n_found++] = (synth_found){.left = left,
                                         .term = t,
                                         .holds = holds,
                                         .clean = t && holds && scale == 1,
                                         .scale = scale,
                                         .surprise = surprise,
                                         .apart = -1};
  return ISO_OK;
}

static void mark_used(const inference *f, const rule_term *t) {
  if (t->kind == RULE_VAR) f->out->used[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_used(f, t->child[i]);
}

/* Whether every group of which something is used is used whole. */
static bool all_used(const inference *f, uint32_t left) {
  bool *used = f->out->used;
  memset(used, 0, f->right->n_outputs);
  for (size_t i = 0; i < f->n_found; i++)
    if (f->found[i].left == left && f->found[i].term) mark_used(f, f->found[i].term);
  for (size_t i = 0; i < f->n_groups; i++) {
    size_t n = 0;
    for (size_t k = 0; k < f->group[i].n; k++) n += used[f->group[i].member[k]];
    if (n && n < f->group[i].n) return false;
  }
  return true;
}

static iso_code accept(inference *f, uint32_t left, const rule_term *t, const char *surprise,
                       iso_error *err) {
  if (!surprise) surprise = st_surprise(f->left, f->right, left, t);
  return note(f, left, t, true, 1, surprise, err);
}

/* ---- one output out of one group ---- */

static bool same_series(const inference *f, uint32_t a, uint32_t b) {
  const rule_oracle *o = f->x.s->oracle;
  for (size_t d = 0; d < f->x.n_draws; d++) {
    const rule_tensor *p = st_right_value(&f->x, a, d), *q = st_right_value(&f->x, b, d);
    if (!rule_shape_eq(&p->shape, &q->shape) || p->dtype != q->dtype ||
        !o->compare(o->ctx, p, q, f->x.s->o->rel_tol).equal || st_far_apart(p, q))
      return false;
  }
  return true;
}

static iso_code piece_of(inference *f, uint32_t k, st_piece *out, iso_error *err) {
  *out = (st_piece){rule_var(f->x.arena, k), st_right_value(&f->x, k, 0)->shape};
  return out->term ? ISO_OK : nomem(err);
}

/* Members that repeat one another: `of[i]` is the first that member i repeats, in `times` how often
 * it was there before. Returns: how many are different. */
static size_t replicas(const inference *f, const uint32_t *member, size_t n, size_t *of,
                       size_t *times) {
  size_t distinct = 0;
  for (size_t i = 0; i < n; i++) {
    of[i] = i;
    times[i] = 0;
    for (size_t k = 0; k < i && of[i] == i; k++)
      if (of[k] == k && same_series(f, member[k], member[i])) of[i] = k;
    for (size_t k = 0; k < i && of[i] != i; k++) times[i] += of[k] == of[i];
    distinct += of[i] == i;
  }
  return distinct;
}

/* The `round`-th of each different member; where there are not so many, the last. */
static void pick(const size_t *of, const size_t *times, size_t n, size_t round, size_t *out) {
  size_t m = 0;
  for (size_t i = 0; i < n; i++) {
    if (of[i] != i) continue;
    out[m] = i;
    for (size_t k = i + 1; k < n; k++)
      if (of[k] == i && times[k] <= round) out[m] = k;
    m++;
  }
}

static const char *const uneven = "some ranks hold a replica, and others do not";

/* Members that repeat one another are the same part: each choice of them is a relation. */
static iso_code of_distinct(inference *f, uint32_t left, const uint32_t *member, size_t n,
                            bool *found, iso_error *err) {
  size_t of[ST_MAX_PARTS], times[ST_MAX_PARTS], chosen[ST_MAX_PARTS], rounds = 1;
  const size_t m = replicas(f, member, n, of, times);
  iso_code c = ISO_OK;
  if (m == n || m == 0) return ISO_OK;
  for (size_t i = 0; i < n; i++)
    if (times[i] + 1 > rounds) rounds = times[i] + 1;
  for (size_t r = 0; r < rounds && !c && (r == 0 || *found); r++) {
    st_piece piece[ST_MAX_PARTS];
    const rule_term *t = NULL;
    pick(of, times, n, r, chosen);
    for (size_t i = 0; i < m && !c; i++) c = piece_of(f, member[chosen[i]], &piece[i], err);
    if (!c) c = st_put_together(&f->x, left, piece, m, false, &t, NULL, err);
    *found = !c && t;
    if (*found) c = accept(f, left, t, m * rounds == n ? NULL : uneven, err);
  }
  return c;
}

/* Relates left output `left` to a whole group. Relations that hold only up to a factor, or by
 * shapes alone, are kept as fallbacks. */
static iso_code of_group(inference *f, uint32_t left, const ranked *g, bool *found,
                         iso_error *err) {
  uint32_t rest[ST_MAX_PARTS];
  st_piece piece[ST_MAX_PARTS];
  const rule_term *whole[ST_MAX_PARTS];
  size_t n = 0, n_whole = 0;
  iso_code c = ISO_OK;
  *found = false;
  for (size_t i = 0; i < g->n && !c; i++) {
    const rule_term *t = NULL;
    c = piece_of(f, g->member[i], &piece[n], err);
    if (!c) c = st_put_together(&f->x, left, &piece[n], 1, false, &t, NULL, err);
    if (t) whole[n_whole++] = t;
    else rest[n++] = g->member[i];
  }
  const rule_term *t = NULL;
  if (!c && n) c = st_put_together(&f->x, left, piece, n, false, &t, NULL, err);
  const size_t before = f->n_found;
  bool of_rest = n == 0 || t;
  if (!c && t) c = accept(f, left, t, n_whole ? uneven : NULL, err);
  if (!c && !of_rest) c = of_distinct(f, left, rest, n, &of_rest, err);
  if (c || !of_rest) return c;
  for (size_t i = 0; i < n_whole && !c; i++) c = accept(f, left, whole[i], n ? uneven : NULL, err);
  /* The simplest first: single outputs come before terms that put several together. */
  for (size_t i = 0; i < n_whole && n; i++) {
    const synth_found last = f->found[f->n_found - 1];
    memmove(f->found + before + 1, f->found + before, (f->n_found - 1 - before) * sizeof *f->found);
    f->found[before] = last;
  }
  *found = true;
  return c;
}

/* ---- one output ---- */

static bool named(const inference *f, uint32_t left, size_t at) {
  return synth_same_stem(f->right->output[f->group[at].member[0]].name, f->left->output[left].name);
}

/* Whether the group has the name of some left output: it is nobody else's. */
static bool claimed(const inference *f, size_t at) {
  for (uint32_t i = 0; i < f->left->n_outputs; i++)
    if (named(f, i, at)) return true;
  return false;
}

/* The group of its name; else the one in its place, unless that has another's name; -1: none.
 * `by_name`: it is the first. */
static int64_t own_group(const inference *f, uint32_t left, bool *by_name) {
  *by_name = true;
  for (size_t i = 0; i < f->n_groups; i++)
    if (named(f, left, i)) return (int64_t)i;
  *by_name = false;
  return f->left->n_outputs == f->n_groups && !claimed(f, left) ? (int64_t)left : -1;
}

/* Whether left output `left` may be made of the group: an output is made only of the group of its
 * own name where there is one, and outputs used for one are not used for another. */
static bool may_use(const inference *f, size_t at) {
  if (at < f->n_groups) return !f->group[at].used && !claimed(f, at);
  for (size_t i = 0; i < f->n_groups; i++)
    if (f->group[i].used || claimed(f, i)) return false;
  return f->n_groups > 1;
}

/* The left graph has several ranks, too: the member of the output's own name, alone. */
static ranked own_member(const inference *f, uint32_t left, const ranked *g) {
  ranked one = {.n = 0};
  size_t same = 0;
  for (uint32_t i = 0; i < f->left->n_outputs; i++)
    same += synth_same_stem(f->left->output[i].name, f->left->output[left].name);
  if (same < 2) return *g;
  for (size_t i = 0; i < g->n; i++)
    if (strcmp(f->right->output[g->member[i]].name, f->left->output[left].name) == 0)
      one.member[one.n++] = g->member[i];
  return one;
}

/* No relation holds: suggests one that holds up to a factor, else one by shapes, so that the
 * comparison can show the difference. */
static iso_code suggest(inference *f, uint32_t left, const ranked *g, bool *found, iso_error *err) {
  st_piece piece[ST_MAX_PARTS];
  const rule_term *t = NULL;
  double scale = 1;
  bool alike = true;
  iso_code c = ISO_OK;
  const rule_shape *want = &st_left_value(&f->x, left, 0)->shape;
  *found = false;
  for (size_t i = 0; i < g->n && !c; i++) {
    c = piece_of(f, g->member[i], &piece[i], err);
    alike &= st_shape_distance(&piece[i].shape, want) < 2;
  }
  if (!c) c = st_put_together(&f->x, left, piece, g->n, false, &t, &scale, err);
  if (!c && t && scale == 1) { /* a rank holds the whole, say, and the others zeros */
    *found = true;
    return accept(f, left, t, NULL, err);
  }
  if (!c && t) {
    const char *text = iso_arena_printf(&f->out->arena, "a scale of %.6g is left over", scale);
    *found = true;
    return text ? note(f, left, t, true, scale, text, err) : nomem(err);
  }
  for (size_t i = 0; i < g->n && alike && !c; i++) {
    c = note(f, left, piece[i].term, false, 1, NULL, err);
    *found = true;
  }
  if (!c && !*found) c = st_put_together(&f->x, left, piece, g->n, true, &t, NULL, err);
  if (c || !t) return c;
  *found = true;
  return note(f, left, t, false, 1, NULL, err);
}

static iso_code infer_one(inference *f, uint32_t left, const synth_found *hoped, size_t n_hoped,
                          iso_error *err) {
  bool found = false, any = false, by_name = false;
  const int64_t own = own_group(f, left, &by_name);
  const ranked mine = own >= 0 ? own_member(f, left, &f->group[own]) : (ranked){.n = 0};
  const size_t before = f->n_found;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n_hoped && !c; i++) {
    bool holds = false;
    if (hoped[i].left == left) c = st_holds(&f->x, left, hoped[i].term, &holds, NULL, err);
    if (!c && holds) c = accept(f, left, hoped[i].term, NULL, err), any = true;
  }
  if (!c && mine.n) c = of_group(f, left, &mine, &found, err);
  if (found && !by_name) f->group[own].used = true;
  for (size_t i = 0; i <= f->n_groups && !c && !found && !any && !by_name; i++) {
    if ((int64_t)i == own || !may_use(f, i)) continue;
    c = of_group(f, left, &f->group[i], &found, err);
    f->group[i].used = found;
  }
  if (!c && any && !all_used(f, left)) f->n_found = before, any = false;
  if (!c && !found && !any && mine.n) c = suggest(f, left, &mine, &found, err);
  for (size_t i = 0; i <= f->n_groups && !c && !found && !any && !by_name; i++)
    if ((int64_t)i != own && may_use(f, i)) c = suggest(f, left, &f->group[i], &found, err);
  if (!c && !found && !any) {
    c = note(f, left, NULL, false, 1, NULL, err);
    if (!c) c = st_seek_apart(&f->x, left, f->right->n_outputs, &f->found[f->n_found - 1], err);
  }
  return c;
}

/* ---- values ---- */

/* All outputs' values, in one list by output and draw. Owns: drop_values. */
static iso_code values_of(state *s, const synth_graph *g, int side, rule_tensor ***out,
                          iso_error *err) {
  const size_t n = s->n_draws;
  *out = calloc(g->n_outputs * n + 1, sizeof **out);
  if (!*out) return nomem(err);
  for (size_t i = 0; i < g->n_outputs; i++)
    for (size_t d = 0; d < n; d++) {
      rule_tensor *t = st_val(s, s->map[side][g->output[i].node], d);
      if (!t) return st_lost(&s->values, err);
      (*out)[i * n + d] = rule_tensor_ref(t); /* large ones come and go */
    }
  return ISO_OK;
}

static void drop_values(rule_tensor **value, size_t n) {
  for (size_t i = 0; value && i < n; i++) rule_tensor_unref(value[i]);
  free(value);
}

static iso_code infer_all(inference *f, const bool *open, const synth_found *hoped, size_t n_hoped,
                          iso_error *err) {
  state *s = f->x.s;
  rule_tensor **value[2] = {NULL, NULL};
  f->x.n_draws = s->n_draws;
  f->n_groups = f->n_found = 0;
  iso_code c = make_groups(f, err);
  for (int side = 0; side < 2 && !c; side++)
    c = values_of(s, side == LEFT ? f->left : f->right, side, &value[side], err);
  f->x.left = value[LEFT];
  f->x.right = value[RIGHT];
  for (uint32_t i = 0; i < f->left->n_outputs && !c; i++)
    if (open[i]) c = infer_one(f, i, hoped, n_hoped, err);
  memset(f->out->used, 0, f->right->n_outputs);
  for (size_t i = 0; i < f->n_found; i++)
    if (f->found[i].term) mark_used(f, f->found[i].term);
  drop_values(value[LEFT], f->left->n_outputs * s->n_draws);
  drop_values(value[RIGHT], f->right->n_outputs * s->n_draws);
  free(f->group);
  f->group = NULL;
  return c;
}

/* Says of each open output that nothing was found. */
static iso_code find_none(inference *f, const bool *open, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < f->left->n_outputs && !c; i++)
    if (open[i]) c = note(f, i, NULL, false, 1, NULL, err);
  return c;
}

/* parameters: those of synth_infer. */
static iso_code attempt(inference *f, const rule_oracle *oracle, rule_schemas *schemas,
                        const synth_options *o, bool keep_integers, const bool *open,
                        const synth_found *hoped, size_t n_hoped, iso_error *err) {
  synth_graph own[2];
  bool *live[2] = {NULL, NULL};
  pairing *p = NULL;
  state st = {.graph = {f->left, f->right},
              .oracle = oracle,
              .schemas = schemas,
              .o = o,
              .leaves.keep_integers = keep_integers,
              .t0 = synth_clock()};
  state *s = f->x.s = &st;
  iso_code c = st_prepare(s, &p, err);
  if (!c) c = st_look_over(s, own, live, err);
  if (!c) c = st_fill(s, live, err);
  /* Where time is over the graphs were not run to their end. */
  if (!c && st_stopped(s)) {
    f->out->stopped = iso_arena_strdup(f->x.arena, s->stopped);
    c = f->out->stopped ? find_none(f, open, err) : nomem(err);
  } else if (!c) c = infer_all(f, open, hoped, n_hoped, err);
  synth_result_free(s->res);
  st_state_free(s);
  free(live[0]);
  free(live[1]);
  free(p);
  return c;
}

/* parameters: two graphs, oracle and schemas, the open outputs with expected relations, and the
 * result. */
iso_code synth_infer(const synth_graph *left, const synth_graph *right, const rule_oracle *oracle,
                     rule_schemas *schemas, const synth_options *o, const bool *open,
                     const synth_found *hoped, size_t n_hoped, synth_refinement **out,
                     iso_error *err) {
  synth_refinement *r = *out = calloc(1, sizeof *r);
  if (!r || !(r->used = calloc(right->n_outputs + 1, 1))) return nomem(err);
  iso_arena_init(&r->arena);
  inference f = {.x.arena = &r->arena, .left = left, .right = right, .out = r};
  iso_code c = attempt(&f, oracle, schemas, o, false, open, hoped, n_hoped, err);
  if (c == ISO_TORCH) c = attempt(&f, oracle, schemas, o, true, open, hoped, n_hoped, err);
  /* Where an operator fails the comparison says which, and on which side. */
  if (c == ISO_TORCH) c = find_none(&f, open, err);
  synth_found *found = c ? NULL : iso_arena_alloc(&r->arena, (f.n_found + 1) * sizeof *found);
  if (!c && !found) c = nomem(err);
  if (!c && f.n_found) memcpy(found, f.found, f.n_found * sizeof *found);
  r->found = found;
  r->n = f.n_found;
  free(f.found);
  return c;
}

void synth_refinement_free(synth_refinement *r) {
  if (!r) return;
  free(r->used);
  iso_arena_fini(&r->arena);
  free(r);
}
