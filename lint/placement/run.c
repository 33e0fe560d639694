/* One run of the ranks and of the whole program, with leaves as they are said or guessed to be. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/placement/placement_int.h"
#include "rules/operators.h"

enum { MOST_DEPTH = 20000, MOST_CHOICES = 24 };

static void forget(plc_tuple *t) {
  for (uint32_t k = 0; t->whole && k < PLC_DRAWS * t->n_out; k++) rule_tensor_unref(t->whole[k]);
  t->whole = NULL;
  t->state = PLC_NEW;
  t->why = NULL;
  t->floor = 0;
  t->n_args = 0;
  t->regrown = t->guess = t->stands_for = PLC_NONE;
  t->variant = (plc_variant){0};
  t->mended = t->unfit = t->whole_refused = t->konst = t->chosen = t->unsure = t->differs = false;
  t->shown = t->constant = t->several = t->apart = false;
  t->sent = t->by_messages = false;
  memset(t->cut, 0, sizeof t->cut);
  t->keeps = false;
  t->doubt = NULL;
  t->from = 0;
}

void plc_clear(plc *x) {
  for (size_t i = 0; i < x->n_tuples; i++) {
    forget(x->tuple[i]);
    x->tuple[i]->order = 0;
  }
  for (uint32_t d = 0; d < PLC_DRAWS; d++)
    for (size_t i = 0; i < x->g->n_nodes && x->value[d] && x->many[d]; i++) {
      rule_tensor_unref(x->value[d][i]);
      x->value[d][i] = NULL;
      for (size_t k = 0; x->many[d][i] && k < x->g->node[i].n_outputs; k++)
        rule_tensor_unref(x->many[d][i][k]);
      free(x->many[d][i]);
      x->many[d][i] = NULL;
    }
  if (x->run.failed) plc_need(x, NULL);
  iso_arena_fini(&x->run);
  iso_arena_init(&x->run);
  x->n_visited = 0;
}

static bool prepare(plc *x, plc_tuple *t) {
  t->whole = iso_arena_alloc(&x->run, PLC_DRAWS * t->n_out * sizeof(rule_tensor *));
  t->place = iso_arena_alloc(&x->run, t->n_out * sizeof *t->place);
  for (uint32_t k = 0; t->place && k < t->n_out; k++) t->place[k] = plc_replica();
  return plc_need(x, t->whole) && plc_need(x, t->place);
}

/* ---- leaves ---- */

static bool ascends(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get_int(t, i) < rule_tensor_get_int(t, i - 1)) return false;
  return true;
}

/* The same integers at other places. Those that ascend say where something begins, and stay. Owns.
 */
static rule_tensor *shuffled(plc *x, rule_tensor *t, const cap_node *n, uint64_t stream) {
  rule_tensor *out = NULL;
  if (n->kind != CAP_INPUT || ascends(t) || (n->domain && rule_domain_is_joint(n->domain)))
    return rule_tensor_ref(t);
  if (!plc_failed(x)) x->code = rule_tensor_new(t->dtype, &t->shape, &out, x->err);
  if (!out) return NULL;
  iso_rng rng = iso_rng_new(x->seed, stream);
  const size_t w = rule_dtype_size(t->dtype);
  char *at = out->data, held[16];
  memcpy(at, t->data, (size_t)t->numel * w);
  for (size_t i = (size_t)t->numel; i > 1; i--) {
    char *a = at + (i - 1) * w, *b = at + iso_rng_below(&rng, i) * w;
    memcpy(held, a, w);
    memmove(a, b, w);
    memcpy(b, held, w);
  }
  return out;
}

/* Other numbers like these. Masks stay, and leaves that are neither parameters nor inputs. Owns. */
static rule_tensor *redraw(plc *x, rule_tensor *t, const cap_node *n, uint64_t stream) {
  if (rule_dtype_is_int(t->dtype)) return shuffled(x, t, n, stream);
  double sum = 0, squares = 0, least = 0;
  rule_tensor *out = NULL;
  const bool keeps = !rule_dtype_is_float(t->dtype) || n->domain || t->numel == 0 ||
                     (n->kind != CAP_PARAMETER && n->kind != CAP_INPUT);
  for (int64_t i = 0; i < t->numel && !keeps; i++) {
    const double v = rule_tensor_get(t, i);
    if (!isfinite(v) || fabs(v) > 1e30) return rule_tensor_ref(t);
    sum += v;
    squares += v * v;
    if (v < least) least = v;
  }
  if (keeps) return rule_tensor_ref(t);
  const double mean = sum / (double)t->numel, var = squares / (double)t->numel - mean * mean;
  const double spread = fmax(sqrt(fmax(var, 0)), fmax(0.1 * fabs(mean), mean == 0 ? 0.1 : 0));
  if (!plc_failed(x)) x->code = rule_tensor_new(t->dtype, &t->shape, &out, x->err);
  iso_rng rng = iso_rng_new(x->seed, stream);
  for (int64_t i = 0; out && i < t->numel; i++) {
    const double v = mean + spread * iso_rng_normal(&rng);
    rule_tensor_set(out, i, least < 0 || mean == 0 ? v : fabs(v));
  }
  return out;
}

static const cap_node *first_node(const plc *x, const plc_tuple *t, uint32_t *rank) {
  uint32_t r = 0;
  while (t->node[r] == PLC_NONE) r++;
  if (rank) *rank = r;
  return plc_node(x, t->node[r]);
}

bool plc_input(const plc *x, const plc_tuple *t) {
  return t->leaf && first_node(x, t, NULL)->kind == CAP_INPUT;
}

bool plc_has_blocks(const plc *x, const plc_place *p) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (p->axis[a].kind == PLC_S && plc_blocks(&p->axis[a]) > 1) return true;
  return false;
}

const char *plc_name(const plc *x, const plc_tuple *t) {
  uint32_t rank;
  const char *name = first_node(x, t, NULL)->name, *bare = name ? plc_leaf_name(name, &rank) : NULL;
  return bare ? bare : name;
}

/* The captured values in float64. Owns each. */
static bool captured(plc *x, const plc_tuple *t, rule_tensor **out) {
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    out[r] = NULL;
    if (t->node[r] == PLC_NONE || plc_failed(x)) continue;
    const cap_node *n = plc_node(x, t->node[r]);
    rule_tensor *v = n->kind == CAP_INPUT ? x->g->input[t->node[r]] : n->value;
    if (v) x->code = rule_tensor_to_float64(v, &out[r], x->err);
  }
  return !plc_failed(x);
}

static bool equal_along(const plc *x, rule_tensor *const *each, uint32_t axis) {
  const uint32_t step = plc_stride(&x->mesh, axis);
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const rule_tensor *a = each[r];
    const rule_tensor *b = plc_along(&x->mesh, r, axis) ? each[r - step] : NULL;
    if (b && (!rule_shape_eq(&a->shape, &b->shape) || !rule_tensor_same_bytes(a, b))) return false;
  }
  return true;
}

/* A list of integers in `t` that adds up to `size`, as sizes of parts do. */
static bool parts_of(const rule_term *t, int64_t size, plc_one *out) {
  int64_t sum = 0, unit = 0;
  for (uint32_t i = 0; i < t->n; i++) {
    if (parts_of(t->child[i], size, out)) return true;
    if (t->kind != RULE_LIST || t->child[i]->kind != RULE_INT || t->child[i]->u.i < 1) sum = -size;
    else sum += t->child[i]->u.i;
  }
  if (t->kind != RULE_LIST || t->n < 2 || t->n > PLC_SHARES || sum != size) return false;
  for (uint32_t i = 0; i < t->n; i++) /* the greatest common divisor */
    for (int64_t a = t->child[i]->u.i, b = unit;;) {
      if (b == 0) {
        unit = a;
        break;
      }
      const int64_t rest = a % b;
      a = b;
      b = rest;
    }
  out->blocks = t->n;
  if (unit * t->n == size) return true; /* all are alike */
  for (uint32_t i = 0; i < t->n; i++) {
    const int64_t share = t->child[i]->u.i / unit;
    if (share > UINT8_MAX) return false;
    out->share[i] = (uint8_t)share;
  }
  return true;
}

/* An input of which the program takes parts of one size, as of micro-batches: the ranks may share
 * each of them. */
static bool taken_apart(const plc *x, const plc_tuple *t, plc_one *out) {
  uint32_t rank;
  const cap_node *leaf = first_node(x, t, &rank);
  const rule_shape *s = &leaf->output[0].shape;
  for (size_t i = 0; i < x->g->n_nodes && leaf->kind == CAP_INPUT; i++) {
    const cap_node *n = &x->g->node[i];
    if (!n->call || n->n_outputs < 2 || n->n_outputs > PLC_BLOCKS || n->call->n == 0 ||
        n->call->child[0]->kind != RULE_VAR || n->call->child[0]->u.i != t->node[rank])
      continue;
    for (uint32_t d = 0; d < s->rank; d++) {
      bool parts = s->dim[d] > 0;
      for (size_t k = 0; k < n->n_outputs && parts; k++) {
        rule_shape whole = n->output[k].shape;
        if (d < whole.rank) whole.dim[d] *= (int64_t)n->n_outputs;
        parts = rule_shape_eq(&whole, s);
      }
      *out = (plc_one){.kind = PLC_S, .dim = d, .blocks = (uint32_t)n->n_outputs};
      if (parts) return true;
    }
  }
  return false;
}

/* Whole shards first; then, of a parameter, those of fused tensors, queries, keys and values, gate
 * and up: of parts as the program takes them apart, and of equal ones. */
static bool shard_candidate(const plc *x, const plc_tuple *t, const rule_shape *s, uint32_t which,
                            plc_one *out) {
  static const uint32_t blocks[] = {3, 2, 4};
  const bool fused = first_node(x, t, NULL)->kind == CAP_PARAMETER;
  if (which < s->rank) {
    *out = (plc_one){.kind = PLC_S, .dim = which};
    return true;
  }
  which -= s->rank;
  if (!fused) return which == 0 && taken_apart(x, t, out);
  for (uint32_t d = 0; d < s->rank; d++) {
    *out = (plc_one){.kind = PLC_S, .dim = d};
    for (size_t i = 0; i < x->g->n_nodes && s->dim[d]; i++) {
      const rule_term *call = x->g->node[i].call;
      if (!call || !parts_of(call, s->dim[d], out)) continue;
      if (which == 0) return true;
      which--;
      break; /* one way of each dimension */
    }
  }
  for (uint32_t i = 0; i < 3 * s->rank; i++) {
    const uint32_t d = i % s->rank, b = blocks[i / s->rank];
    if (s->dim[d] % b || s->dim[d] == 0 || which-- > 0) continue;
    *out = (plc_one){.kind = PLC_S, .dim = d, .blocks = b};
    return true;
  }
  return false;
}

/* Whether the ranks' shapes are shards like that. */
static bool shards_fit(const plc *x, rule_tensor *const *each, const plc_one *o) {
  int64_t size[PLC_BLOCKS];
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    const rule_shape *s = &each[r]->shape;
    if (s->rank != each[0]->shape.rank || !plc_sections(o, s->dim[o->dim], size)) return false;
    for (uint32_t d = 0; d < s->rank; d++)
      if (d != o->dim && s->dim[d] != each[0]->shape.dim[d]) return false;
  }
  return true;
}

/* Whether ranks may have equal values in shards of their own: few integers of a small range. */
static bool equal_by_chance(const rule_tensor *t) {
  enum { BITS = 20 };
  double low = INFINITY, high = -INFINITY;
  if (rule_dtype_is_float(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++) {
    low = fmin(low, rule_tensor_get(t, i));
    high = fmax(high, rule_tensor_get(t, i));
  }
  return (double)t->numel * log2(high - low + 1) < BITS;
}

/* The `which`-th placement that a leaf may have of which nothing is said. Returns: false where
 * there are no more. `open`: values alone do not tell. */
static bool candidate(const plc *x, const plc_tuple *t, rule_tensor *const *each, uint32_t which,
                      plc_place *out, bool *open) {
  const bool varied = rule_tensor_varies(each[0]) && !equal_by_chance(each[0]);
  uint32_t differ = 0;
  *out = plc_replica();
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (!equal_along(x, each, a)) differ |= UINT32_C(1) << a;
  const uint32_t rank = each[0]->shape.rank;
  *open = differ || (!varied && rank > 0); /* one number has no shards */
  if (!differ && varied) return which == 0;
  if (!differ) { /* a fill, or so: replicas, or shards along an axis */
    if (which == 0) return true;
    if (which > rank * x->mesh.n_axes) return false;
    const uint32_t i = which - 1;
    out->axis[x->mesh.n_axes - 1 - i / rank] = (plc_one){.kind = PLC_S, .dim = i % rank};
    return true;
  }
  plc_one one;
  for (uint32_t i = 0;; i++) {
    if (!shard_candidate(x, t, &each[0]->shape, i, &one)) return false;
    if (shards_fit(x, each, &one) && which-- == 0) break;
  }
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (differ >> a & 1) out->axis[a] = one;
  return true;
}

plc_guess *plc_guess_of(plc *x, const plc_tuple *t) {
  for (size_t i = 0; i < x->n_guesses; i++)
    if (x->guess[i].tuple == t->id) return &x->guess[i];
  if (!iso_grow(x->guess, x->cap_guesses, x->n_guesses + 1)) return plc_need(x, NULL);
  x->guess[x->n_guesses] = (plc_guess){.tuple = t->id};
  return &x->guess[x->n_guesses++];
}

uint32_t plc_tried(const plc *x, const plc_tuple *t) {
  for (size_t i = 0; i < x->n_guesses; i++)
    if (x->guess[i].tuple == t->id) return x->guess[i].tried;
  return 0;
}

bool plc_next_guess(plc *x, plc_guess *g, uint32_t which) {
  rule_tensor *each[PLC_RANKS];
  if (!x->tuple[g->tuple]->leaf) {
    g->tried = which;
    return which < MOST_CHOICES;
  }
  plc_place p;
  bool open, more = captured(x, x->tuple[g->tuple], each);
  more = more && candidate(x, x->tuple[g->tuple], each, which, &p, &open);
  if (more) g->place = p, g->tried = which;
  for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(each[r]);
  return more;
}

/* Whether two placements have the same blocks, along any dimension. */
static bool alike(const plc *x, const plc_place *p, const plc_place *q) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++) {
    const plc_one *o = &p->axis[a], *u = &q->axis[a];
    if (plc_blocks(o) != plc_blocks(u) || memcmp(o->share, u->share, sizeof o->share) != 0)
      return false;
  }
  return true;
}

bool plc_guess_like(plc *x, plc_guess *g, const plc_guess *like) {
  const plc_guess was = *g;
  if (alike(x, &like->place, &g->place)) return false;
  for (uint32_t k = 0; plc_next_guess(x, g, k); k++)
    if (alike(x, &like->place, &g->place)) return true;
  *g = was;
  return false;
}

/* Where a leaf lies: as said, the same tensor for all, equal values, or a guess. */
static void place_leaf(plc *x, plc_tuple *t, rule_tensor *const *each, bool all) {
  const plc_line *said = plc_line_for(x, plc_name(x, t), false);
  bool shared = true, open = false;
  for (uint32_t r = 0; r < x->mesh.n; r++) shared &= t->node[r] == t->node[0];
  t->state = PLC_PLACED;
  if (said && said->varies) {
    t->state = PLC_UNKNOWN;
    t->why = "each rank has a tensor of its own here";
  } else if (!all) {
    t->state = PLC_VARYING;
    t->why = "only some ranks have it";
  } else if (said) t->place[0] = said->place;
  else if (!shared) {
    plc_place p;
    if (!candidate(x, t, each, 0, &p, &open)) {
      t->state = PLC_UNKNOWN;
      t->why = "nothing is said of its placement, and the ranks' shapes are no shards";
      return;
    }
    plc_guess *g = open ? plc_guess_of(x, t) : NULL;
    if (g && g->tried == 0) g->place = p;
    t->place[0] = g ? g->place : p;
    if (g) t->guess = t->id;
  }
}

static void set_value(plc *x, uint32_t draw, uint32_t node, rule_tensor *v) {
  rule_tensor_unref(x->value[draw][node]);
  x->value[draw][node] = rule_tensor_ref(v);
}

static void draw_alone(plc *x, plc_tuple *t, rule_tensor *const *each) {
  for (uint32_t d = 0; d < PLC_DRAWS; d++)
    for (uint32_t r = 0; r < x->mesh.n; r++) {
      if (!each[r]) continue;
      rule_tensor *v = d ? redraw(x, each[r], plc_node(x, t->node[r]), t->id * 131 + d * 7 + r)
                         : rule_tensor_ref(each[r]);
      if (!plc_need(x, v)) return;
      set_value(x, d, t->node[r], v);
      if (t->state == PLC_VARYING && !t->whole[d]) t->whole[d] = rule_tensor_ref(v);
      rule_tensor_unref(v);
    }
}

static void misplaced(plc *x, plc_tuple *t, rule_tensor *const *each) {
  char a[64], b[64];
  rule_tensor *whatever = plc_combine(x, each, &t->place[0], INFINITY); /* whatever the values */
  const bool fits = whatever != NULL;
  rule_tensor_unref(whatever);
  if (plc_failed(x)) return;
  if (fits) {
    t->unfit = true;
    t->state = PLC_UNKNOWN;
    t->why = "the ranks' values of it differ";
    draw_alone(x, t, each);
    return;
  }
  x->code = iso_fail(x->err, ISO_USAGE,
                     "the placement %s of \"%.100s\" does not fit its shapes %s, "
                     "%s",
                     plc_print(x, &t->place[0], &x->run), plc_name(x, t),
                     rule_shape_print(&each[0]->shape, a, sizeof a),
                     rule_shape_print(&each[1]->shape, b, sizeof b));
}

static void draw_each(plc *x, plc_tuple *t, rule_tensor *const *each) {
  rule_tensor *part[PLC_RANKS];
  rule_shape shape[PLC_RANKS];
  bool all = true;
  for (uint32_t r = 0; r < x->mesh.n; r++) {
    all &= each[r] != NULL;
    if (each[r]) shape[r] = each[r]->shape;
  }
  t->konst = first_node(x, t, NULL)->kind == CAP_CONSTANT;
  place_leaf(x, t, each, all);
  rule_tensor *whole = t->state == PLC_PLACED ? plc_combine(x, each, &t->place[0], 0) : NULL;
  if (t->state != PLC_PLACED) draw_alone(x, t, each);
  else if (!whole && !plc_failed(x)) misplaced(x, t, each);
  for (uint32_t d = 0; d < PLC_DRAWS && whole && !plc_failed(x); d++) {
    rule_tensor *w =
        d ? redraw(x, whole, first_node(x, t, NULL), t->id * 131 + d) : rule_tensor_ref(whole);
    t->whole[d] = w;
    if (d == 0)
      for (uint32_t r = 0; r < x->mesh.n; r++) set_value(x, 0, t->node[r], each[r]);
    else if (w && plc_cut(x, w, &t->place[0], shape, x->seed + t->id * 31 + d, part))
      for (uint32_t r = 0; r < x->mesh.n; r++) {
        set_value(x, d, t->node[r], part[r]);
        rule_tensor_unref(part[r]);
      }
  }
  rule_tensor_unref(whole);
  plc_follow_cuts(x, t);
  t->order = ++x->n_visited;
}

static void draw_leaf(plc *x, plc_tuple *t) {
  rule_tensor *each[PLC_RANKS];
  if (captured(x, t, each) && prepare(x, t)) draw_each(x, t, each);
  for (uint32_t r = 0; r < x->mesh.n; r++) rule_tensor_unref(each[r]);
}

/* ---- operators ---- */

bool plc_execute(plc *x, uint32_t i, uint32_t draw, iso_error *err) {
  const cap_node *n = plc_node(x, i);
  rule_tensor *out[64];
  size_t made = 0;
  if (x->value[draw][i] || x->many[draw][i]) return true;
  if (rule_is_getitem(n->op)) {
    rule_tensor **of = x->many[draw][n->call->child[0]->u.i];
    if (of) set_value(x, draw, i, of[n->call->child[1]->u.i]);
    return of != NULL;
  }
  if (n->n_outputs > 64) return iso_fail(err, ISO_LIMIT, "more than 64 results"), false;
  const iso_code c =
      x->oracle->call(x->oracle->ctx, n->call, x->value[draw], true, out, 64, &made, err);
  if (c == ISO_NOMEM || c == ISO_DEVICE) x->code = iso_fail(x->err, c, "%s", err->msg);
  if (c) return false;
  rule_tensor **many = made == n->n_outputs && made > 1 ? malloc(made * sizeof *many) : NULL;
  if (many) memcpy(many, out, made * sizeof *many);
  else if (made == 1 && n->n_outputs == 1) x->value[draw][i] = out[0];
  x->many[draw][i] = many;
  return many || x->value[draw][i];
}

static bool readable(const plc *x, const rule_term *t, uint32_t draw) {
  if (t->kind == RULE_VAR) return x->value[draw][t->u.i] || x->many[draw][t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!readable(x, t->child[i], draw)) return false;
  return true;
}

static bool run_ranks(plc *x, plc_tuple *t) {
  iso_error err = {0};
  for (uint32_t d = 0; d < PLC_DRAWS && !plc_failed(x); d++)
    for (uint32_t r = 0; r < x->mesh.n && !plc_failed(x); r++) {
      const uint32_t i = t->node[r];
      if (i == PLC_NONE || (readable(x, plc_node(x, i)->call, d) && plc_execute(x, i, d, &err)))
        continue;
      t->state = PLC_UNKNOWN;
      t->unfit = t->collective && err.code == ISO_TORCH; /* else nobody can run it */
      t->why = err.code ? iso_arena_strdup(&x->run, err.msg) : "what it reads could not be run";
      return false;
    }
  return !plc_failed(x);
}

/* Whether two ranks have the same part of a tensor. */
static bool same_part(const plc *x, const plc_place *p, uint32_t r, uint32_t q) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (p->axis[a].kind != PLC_R && plc_along(&x->mesh, r, a) != plc_along(&x->mesh, q, a))
      return false;
  return true;
}

/* The value that a tensor would have without the fault that was found at it. */
static void apply_mend(plc *x, plc_tuple *t, const plc_mend *m) {
  rule_tensor *each[PLC_RANKS], *part[PLC_RANKS];
  for (uint32_t r = 1; r < x->mesh.n; r++) /* ranks that share a node have what it has */
    for (uint32_t q = 0; q < r; q++)
      if (t->node[r] == t->node[q] && !same_part(x, &m->place, r, q)) return;
  rule_shape shape[PLC_RANKS];
  for (uint32_t d = 0; d < PLC_DRAWS && t->whole[d]; d++) {
    plc_locals(x, t, d, 0, each);
    if (!plc_shapes(x, each, shape)) return;
    if (!plc_cut(x, t->whole[d], &m->place, shape, x->seed + 5 + d, part)) return;
    for (uint32_t r = 0; r < x->mesh.n; r++) {
      set_value(x, d, t->node[r], part[r]);
      rule_tensor_unref(part[r]);
    }
  }
  t->place[0] = m->place;
  t->state = PLC_PLACED;
  t->mended = true;
}

static plc_tuple *visit(plc *x, uint32_t id) {
  plc_tuple *t = x->tuple[id];
  if (t->state != PLC_NEW || plc_failed(x) || !prepare(x, t)) return t;
  t->state = PLC_BUSY;
  if (++x->depth > MOST_DEPTH) {
    t->state = PLC_UNKNOWN;
    t->why = "the program is too deep";
    x->depth--;
    return t;
  }
  const bool one = plc_gather(x, t);
  t->konst = true;
  for (uint32_t i = 0; i < t->n_args && !plc_failed(x); i++) {
    const plc_tuple *o = visit(x, t->arg[i]);
    t->konst &= o->konst;
    if (o->guess != PLC_NONE) t->guess = o->guess;
  }
  x->depth--;
  if (!t->order) t->order = ++x->n_visited;
  if (plc_failed(x) || (!t->mixed && !run_ranks(x, t))) return t;
  if (one) plc_lift(x, t);
  else {
    t->state = PLC_UNKNOWN;
    t->why = "the ranks' calls differ in more than numbers";
  }
  for (size_t i = 0; i < x->n_mends; i++)
    if (x->mend[i].tuple == id && t->n_out == 1 && t->state != PLC_UNKNOWN)
      apply_mend(x, t, &x->mend[i]);
  plc_follow_cuts(x, t);
  return t;
}

static bool depends(const plc *x, const plc_tuple *t, const plc_tuple *u, uint8_t *known) {
  if (t == u) return true;
  if (t->order <= u->order && t->order) return false;
  if (known[t->id]) return known[t->id] == 2;
  known[t->id] = 1;
  for (uint32_t i = 0; i < t->n_args; i++)
    if (depends(x, x->tuple[t->arg[i]], u, known)) known[t->id] = 2;
  return known[t->id] == 2;
}

bool plc_again(plc *x, const plc_tuple *u, plc_tuple *t) {
  uint8_t *known = calloc(x->n_tuples + 1, 1);
  if (!plc_need(x, known)) return false;
  for (size_t i = 0; i < x->n_tuples; i++) depends(x, x->tuple[i], u, known);
  for (size_t i = 0; i < x->n_tuples; i++)
    if ((known[i] == 2 || i == u->id) && !x->tuple[i]->leaf) {
      const uint32_t order = x->tuple[i]->order;
      forget(x->tuple[i]);
      x->tuple[i]->order = order;
    }
  free(known);
  const uint32_t visited = x->n_visited;
  visit(x, t->id);
  x->n_visited = visited;
  return t->state == PLC_PLACED;
}

void plc_run(plc *x) {
  plc_clear(x);
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++)
    if (x->tuple[i]->leaf) draw_leaf(x, x->tuple[i]);
  for (size_t i = 0; i < x->n_tuples && !plc_failed(x); i++)
    if (!x->tuple[i]->mixed) visit(x, (uint32_t)i);
  for (size_t i = 0; i < x->n_outputs && !plc_failed(x); i++) visit(x, x->output[i].tuple);
}
