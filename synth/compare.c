/* The comparison: relate leaves and constants, give values, group e-nodes by value, and join what a
 * rule justifies until the outputs meet or nothing moves (Emerge, Algorithm 1, with the candidates
 * in topological order). */
#include "synth/constants/constants.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/refute/refute.h"
#include "synth/result/result.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

synth_options synth_options_default(void) {
  return (synth_options){
      .n_redrawn = 2, .rel_tol = 1e-9, .max_pattern = 120, .max_tries = 32, .threads = 1};
}

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- what the outputs depend on ---- */

static void mark_live(const synth_graph *g, const rule_term *t, bool *live) {
  if (t->kind == RULE_VAR) live[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_live(g, t->child[i], live);
}

/* A graph of live nodes only: what no output reads is not part of the function (and may be
 * unspecified memory). */
static iso_code live_nodes(const synth_graph *g, bool **out, iso_error *err) {
  bool *live = calloc(g->n_nodes + 1, 1);
  if (!live) return nomem(err);
  for (size_t i = 0; i < g->n_outputs; i++) live[g->output[i].node] = true;
  for (size_t i = g->n_nodes; i-- > 0;)
    if (live[i] && g->node[i].kind == SYNTH_OP) mark_live(g, g->node[i].call, live);
  *out = live;
  return ISO_OK;
}

/* PyTorch's in-place operators are named with an underscore; in functional form they have one more
 * output. Where nothing reads the result, others may read what was written. */
static bool writes_in_place(const synth_node *n) {
  if (n->kind != SYNTH_OP || n->n_outputs != 1 || !rule_is_aten(n->call->u.s)) return false;
  const char *name = n->call->u.s + 6;
  const size_t len = strcspn(name, ".");
  return len > 1 && name[len - 1] == '_' && name[len - 2] != '_';
}

/* Operators that compute no function of their arguments are refused. */
static iso_code refuse(state *s, const synth_graph *g, const synth_node *n, iso_error *err) {
  if (n->kind != SYNTH_OP || rule_is_getitem(n->call->u.s)) return ISO_OK;
  const rule_schema *sc = rule_schemas_find(s->schemas, n->call->u.s);
  if (writes_in_place(n) || (sc && sc->writes))
    return iso_fail(err, ISO_UNSUPPORTED,
                    "%s: node \"%s\": %s writes to an argument; captures hold functions only",
                    g->path, n->id, n->op);
  if (!sc) return ISO_OK;
  if (rule_draws(s->schemas, n->call))
    return iso_fail(
        err, ISO_UNSUPPORTED,
        "%s: node \"%s\": %s draws random numbers: its output is no function of its inputs",
        g->path, n->id, n->op);
  return ISO_OK;
}

/* Strides are not captured: what reads by them must be given what lies row by row. */
static iso_code refuse_strides(const synth_graph *g, const bool *live, iso_error *err) {
  bool *dense = NULL;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const synth_node *n = &g->node[i];
    if (n->kind != SYNTH_OP || !live[i] || !rule_reads_memory(n->call)) continue;
    if (!dense) {
      if (!(dense = calloc(g->n_nodes + 1, 1))) return nomem(err);
      for (size_t k = 0; k < g->n_nodes; k++)
        dense[k] = g->node[k].kind != SYNTH_OP || rule_gives_dense(g->node[k].call, dense);
    }
    const rule_term *self = n->call->child[0];
    if (self->kind != RULE_VAR || !dense[self->u.i])
      c = iso_fail(err, ISO_UNSUPPORTED,
                   "%s: node \"%s\": %s reads memory whose order is not in the capture; put "
                   "contiguous before it",
                   g->path, n->id, n->op);
  }
  free(dense);
  return c;
}

/* ---- limits ---- */

bool st_stopped(state *s) {
  if (!s->stopped && s->o->deadline > 0 && synth_clock() - s->t0 > s->o->deadline)
    s->stopped = "the time limit was reached";
  if (!s->stopped && s->o->stop) s->stopped = s->o->stop(s->o->ctx);
  return s->stopped != NULL;
}

/* ---- outputs ---- */

typedef struct pairing {
  uint32_t left, right; /* indices of outputs */
  eg_node aux; /* what the left output must equal: the right one, in the left one's shape */
  const rule_term *term; /* that, over the right graph's nodes */
  const char *relation;
} pairing;

static iso_code pair_outputs(state *s, pairing *p, iso_error *err) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  for (size_t i = 0; i < L->n_outputs; i++) {
    p[i].left = p[i].right = (uint32_t)i; /* st_pair_outputs put them in one order */
    const eg_node l = s->map[LEFT][L->output[i].node],
                  r = s->map[RIGHT][R->output[p[i].right].node];
    const rule_shape *a = &s->rec[l.i].shape, *b = &s->rec[r.i].shape;
    const int dist = st_shape_distance(a, b);
    if (dist == 2) {
      char x[128], y[128];
      return iso_fail(err, ISO_USAGE,
                      "output \"%s\" is %s in %s and %s in %s: only sizes 1 may differ",
                      L->output[i].name, rule_shape_print(a, x, sizeof x), L->path,
                      rule_shape_print(b, y, sizeof y), R->path);
    }
    p[i].aux = r;
    const char *given = R->output[p[i].right].relation;
    p[i].relation = given ? given : "equal";
    if (!(p[i].term = rule_var(&s->arena, R->output[p[i].right].node))) return nomem(err);
    if (dist == 0) continue;
    /* A term that inserts or removes the sizes 1. */
    const rule_term *t = p[i].term;
    uint32_t rank = b->rank;
    const char *text = given ? given : "right";
    for (uint32_t d = b->rank; d-- > 0 && t;)
      if (b->dim[d] == 1) {
        const rule_term *c[2] = {t, rule_int(&s->arena, d)};
        t = rule_op(&s->arena, OP_SQUEEZE_DIM, c, 2);
        text = iso_arena_printf(&s->arena, "squeeze(%s, %u)", text, d);
        rank--;
      }
    for (uint32_t d = 0; d < a->rank && t; d++)
      if (a->dim[d] == 1) {
        const rule_term *c[2] = {t, rule_int(&s->arena, d)};
        t = rule_op(&s->arena, OP_UNSQUEEZE, c, 2);
        text = iso_arena_printf(&s->arena, "unsqueeze(%s, %u)", text, d);
        rank++;
      }
    if (!t || !text) return nomem(err);
    p[i].relation = text;
    p[i].term = t;
    iso_code c = st_add_term(s, t, s->map[RIGHT], &p[i].aux, err);
    if (!c) c = st_value(s, p[i].aux, err);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- the end ---- */

static iso_code certify(state *s, const pairing *p, iso_error *err) {
  const size_t n = s->graph[LEFT]->n_outputs;
  if (!s->o->certificate || s->res->verdict != SYNTH_EQUIVALENT) return ISO_OK;
  eg_node *aux = calloc(n + 1, sizeof *aux);
  const rule_term **relation = calloc(n + 1, sizeof *relation);
  iso_code c = aux && relation ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++) aux[i] = p[i].aux, relation[i] = p[i].term;
  if (!c) c = st_certify(s, aux, relation, err);
  free(aux);
  free(relation);
  return c;
}

static void state_free(state *s) {
  for (size_t i = 0; i < s->n_rec; i++) {
    rec *r = &s->rec[i];
    for (size_t k = 0; r->val && k < s->n_draws * r->n_out; k++) rule_tensor_unref(r->val[k]);
    for (size_t k = 0; r->cval && k < s->n_kept * r->n_out; k++) rule_tensor_unref(r->cval[k]);
    free(r->val);
    free(r->cval);
  }
  for (int side = 0; side < 2; side++) st_run_free(&s->witness[side]);
  st_masks_free(s);
  for (size_t i = 0; i < s->n_group; i++) free(s->group[i].member);
  free(s->rec);
  free(s->held);
  free(s->bound);
  free(s->group);
  free(s->place);
  free(s->literal);
  free(s->map[0]);
  free(s->map[1]);
  free(s->app);
  free(s->prem);
  free(s->info);
  free(s->tries);
  rule_set_free(s->tried);
  free(s->assume);
  for (size_t i = 0; i < s->n_rounded; i++)
    for (int k = 0; k < 2; k++) rule_tensor_unref(s->rounded[i].value[k]);
  free(s->rounded);
  free(s->reading);
  free(s->peers);
  free(s->class_root);
  for (int side = 0; side < 2; side++) {
    free(s->replica[side]);
    free(s->settled[side]);
    free(s->part[side]);
  }
  for (int side = 0; side < 2; side++) free(s->first_peers[side]);
  rule_set_free(s->rules);
  eg_free(s->g);
  iso_arena_fini(&s->arena);
}

/* Our own copy of the nodes: literals may be read as something else. */
static iso_code own_nodes(state *s, const synth_graph *g, synth_graph *copy, iso_error *err) {
  synth_node *node = iso_arena_alloc(&s->arena, (g->n_nodes + 1) * sizeof *node);
  if (!node) return nomem(err);
  memcpy(node, g->node, g->n_nodes * sizeof *node);
  *copy = *g;
  copy->node = node;
  return ISO_OK;
}

/* Elements of the large parameters that an e-node reads: those that are let go and made again. */
static int64_t spare_elements(state *s, eg_node e) {
  int64_t n = 0;
  for (size_t k = 0; k < eg_node_arity(s->g, e); k++) {
    const eg_node *m;
    const size_t n_members = eg_class_nodes(s->g, eg_node_child(s->g, e, k), &m);
    bool spare = false;
    for (size_t i = 0; i < n_members && !spare; i++)
      spare = s->rec[m[i].i].leaf && s->rec[m[i].i].param && st_large(&s->rec[m[i].i].shape);
    for (size_t i = 0; i < n_members && spare; i++)
      if (s->rec[m[i].i].leaf) {
        int64_t all = 1;
        for (uint32_t d = 0; d < s->rec[m[i].i].shape.rank; d++) all *= s->rec[m[i].i].shape.dim[d];
        n += all;
        break;
      }
  }
  return n;
}

/* Every live e-node, left graph first; of models with large parameters both in step with the
 * parameters that they have read, so that these are made once and not once for each graph. Owns:
 * free(). */
static uint32_t *order_of(state *s, size_t *n_order) {
  uint32_t *order = malloc((s->n_rec + 1) * sizeof *order);
  int64_t *read = calloc(s->n_rec + 1, sizeof *read), all[2] = {0};
  size_t n = 0;
  for (uint32_t i = 0; i < s->n_rec && order && read; i++) {
    const rec *r = &s->rec[i];
    if (r->valued || !(r->tensor || r->multi) || (r->node[0] < 0 && r->node[1] < 0)) continue;
    order[n++] = i;
    read[i] = all[r->node[LEFT] < 0] += spare_elements(s, (eg_node){i});
  }
  if (order && read && all[0] && all[1]) {
    uint32_t *merged = malloc((n + 1) * sizeof *merged);
    size_t at[2] = {0};
    for (size_t k = 0; k < n && merged; k++) {
      for (int side = 0; side < 2; side++)
        while (at[side] < n && (s->rec[order[at[side]]].node[LEFT] < 0) != side) at[side]++;
      const int side =
          at[LEFT] == n || (at[RIGHT] < n && read[order[at[RIGHT]]] < read[order[at[LEFT]]]);
      merged[k] = order[at[side]++];
    }
    free(order);
    order = merged;
  }
  if (!read) {
    free(order);
    order = NULL;
  }
  free(read);
  *n_order = n;
  return order;
}

static iso_code evaluate(state *s, iso_error *err) {
  size_t n_order = 0;
  uint32_t *order = order_of(s, &n_order);
  iso_code code = order ? ISO_OK : nomem(err);
  for (size_t k = 0; k < n_order && !code; k++) {
    const uint32_t i = order[k];
    const rec *r = &s->rec[i];
    if (r->valued) continue;
    const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
    const synth_node *n = &s->graph[side]->node[r->node[side]];
    if ((code = st_value(s, (eg_node){i}, err)))
      iso_prefix(err, "%s: node \"%s\" (%s): ", s->graph[side]->path, n->id, n->op);
    if (s->o->progress && k % 64 == 0) s->o->progress(s->o->ctx, "execute", k, n_order);
    if (st_stopped(s)) break;
  }
  free(order);
  return code;
}

static bool outputs_met(state *s, const pairing *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!eg_equal(s->g, s->map[LEFT][s->graph[LEFT]->output[p[i].left].node], p[i].aux))
      return false;
  return true;
}

static void note_witness(state *s, size_t output, rule_diff diff, bool redrawn) {
  synth_result *r = s->res;
  r->redrawn = redrawn;
  r->witness_output = s->graph[LEFT]->output[output].name;
  r->witness_abs = diff.max_abs;
  r->witness_rel = diff.max_rel;
  r->witness_seed = s->o->seed;
}

/* The verdict where some output is not joined: a witness decides. `apart`: draws on which the
 * values differ. */
static iso_code seek_witness(state *s, const bool *apart, bool *differs, iso_error *err) {
  size_t output = 0;
  rule_diff diff = {0};
  iso_code c = ISO_OK;
  bool any = false;
  *differs = false;
  for (size_t d = 0; d < s->n_draws && !c && !*differs; d++) { /* captured draws come first */
    if (!apart[d]) continue;
    any = true;
    c = st_confirm(s, d, &output, &diff, differs, err);
    if (!c && *differs) note_witness(s, output, diff, d >= st_n_captured(s));
  }
  if (!c && !*differs && !st_stopped(s)) {
    c = st_hunt(s, &output, &diff, differs, err);
    if (!c && *differs) note_witness(s, output, diff, true);
  }
  if (!c && !*differs)
    s->res->reason =
        st_stopped(s) ? s->stopped
        : any && s->lonely_both
            ? "either side has parameters that no layout relates to the other's; the outputs "
              "differ on other parameters only, or not by more than rounding explains"
        : any ? "the outputs differ, but not by more than rounding explains, and no justified rule "
                "joins them"
              : "the outputs agree on every draw, but no justified rule joins them";
  return c;
}

/* Whether the values of a pair of outputs agree on every draw; on which they do not is added to
 * `apart`. */
static iso_code hold_together(state *s, const pairing *p, bool *apart, bool *equal,
                              iso_error *err) {
  *equal = true;
  for (size_t d = 0; d < s->n_draws; d++) {
    const rule_tensor *l = st_val(s, s->map[LEFT][s->graph[LEFT]->output[p->left].node], d),
                      *r = st_val(s, p->aux, d);
    if (!l || !r) return st_lost(s, err);
    if (!s->oracle->compare(s->oracle->ctx, l, r, s->o->rel_tol).equal || st_far_apart(l, r))
      apart[d] = true, *equal = false;
  }
  return ISO_OK;
}

/* The same over the real numbers: where float64 tells the outputs apart on a draw, many digits may
 * say that rounding did. What they are made of may be equal all the same. */
static iso_code hold_as_numbers(state *s, const pairing *p, bool *apart, bool *equal,
                                iso_error *err) {
  bool *here = calloc(s->n_draws + 1, 1);
  iso_code c = here ? hold_together(s, p, here, equal, err) : nomem(err);
  const eg_node l = s->map[LEFT][s->graph[LEFT]->output[p->left].node];
  bool same = true;
  for (size_t d = 0; d < s->n_draws && !c; d++) {
    apart[d] |= here[d];
    if (here[d] && same) c = st_same_numbers(s, d, l, p->aux, &same, err);
  }
  if (!c) *equal = same;
  free(here);
  return c;
}

/* Many candidates in vain: perhaps there is no rule to be found, and a witness tells so sooner than
 * all the candidates that are left. */
static iso_code hunt_early(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  enum {
    MANY = 32,
    VERY_MANY = 512,
    LARGE = 1 << 22
  }; /* of large models a search for a witness takes long, too */
  if (s->hunted || s->n_wasted < MANY || st_stopped(s)) return ISO_OK;
  if (s->n_wasted < VERY_MANY &&
      st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) > LARGE)
    return ISO_OK;
  s->hunted = true;
  bool *apart = calloc(s->n_draws + 1, 1), equal;
  iso_code c = apart ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n_pairs && !c; i++) c = hold_together(s, &p[i], apart, &equal, err);
  if (!c) c = seek_witness(s, apart, &s->apart, err);
  free(apart);
  s->res->reason = NULL;
  if (!s->apart) s->res->coverage.n_searched = 0; /* it is done again */
  return c;
}

static iso_code passes(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  for (int pass = s->large_patterns; pass < 3; pass++) {
    if (outputs_met(s, p, n_pairs)) break;
    const size_t merges = s->res->n_merges;
    for (int side = 0; side < 2; side++)
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
        const eg_node e = s->map[side][i];
        if (e.i == EG_NONE) continue;
        if (st_stopped(s)) return ISO_OK;
        if (pass && st_has_side(s, e, !side)) continue;
        iso_code c = st_visit(s, e, err);
        if (!c) c = hunt_early(s, p, n_pairs, err);
        if (c) return c;
        if (s->o->progress && i % 16 == 0)
          s->o->progress(s->o->ctx, "synthesise", i, s->graph[side]->n_nodes);
      }
    if (s->res->n_merges == merges) break;
  }
  return ISO_OK;
}

/* The outputs themselves, as what is joined by now lets them be. */
static iso_code join_outputs(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  bool *apart = calloc(s->n_draws + 1, 1);
  iso_code c = apart ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n_pairs && !c && !st_stopped(s); i++) {
    const eg_node l = s->map[LEFT][s->graph[LEFT]->output[p[i].left].node];
    bool equal = true, done = eg_equal(s->g, l, p[i].aux);
    if (!done) c = hold_as_numbers(s, &p[i], apart, &equal, err);
    if (!c && !done && equal) c = st_prove(s, l, p[i].aux, &done, err);
  }
  free(apart);
  return c;
}

/* Small patterns first: a few rules that hold everywhere explain what one large one explains here
 * alone. */
static iso_code candidates(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  iso_code c = passes(s, p, n_pairs, err);
  if (!c && !s->apart) c = join_outputs(s, p, n_pairs, err);
  if (c || s->apart || st_stopped(s) || outputs_met(s, p, n_pairs)) return c;
  s->large_patterns = true;
  return passes(s, p, n_pairs, err);
}

static iso_code differ_all_the_same(state *s, size_t output, const rule_diff *diff,
                                    iso_error *err) {
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason = iso_arena_printf(
      &s->res->arena,
      isfinite(diff->max_abs)
          ? "the outputs are joined, and on some inputs \"%s\" differs all the same"
          : "the outputs are joined as real numbers, and on some inputs one \"%s\" is NaN where "
            "the other is not",
      s->graph[LEFT]->output[output].name);
  return s->res->reason ? ISO_OK : nomem(err);
}

/* A rule on the chain with an operator that sees what is undefined. NULL: none. */
static const char *rule_that_sees(const state *s) {
  for (size_t i = 0; i < rule_set_count(s->rules); i++) {
    const rule *r = rule_set_at(s->rules, i);
    if (s->info[i].needed && (rule_looks_at_undefined(r->lhs) || rule_looks_at_undefined(r->rhs)))
      return r->name;
  }
  return NULL;
}

/* Rules hold of numbers. Where an operator may see what is none, they say nothing there: what was
 * looked at there is the evidence, and where nothing was, there is none. */
static iso_code weigh_what_is_seen(state *s, const st_poles *p, iso_error *err) {
  const char *name = p->watched ? rule_that_sees(s) : NULL;
  if (!name) return ISO_OK;
  if (p->reached) {
    if (s->res->evidence > RULE_TESTED) s->res->evidence = RULE_TESTED;
    return ISO_OK;
  }
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason = iso_arena_printf(&s->res->arena,
                                    "rule %s holds of numbers, and nothing shows that what its "
                                    "operators see is one",
                                    name);
  return s->res->reason ? ISO_OK : nomem(err);
}

/* Joined outputs are equal as real numbers. Where one graph is no number (0/0) and the other, which
 * guards against that, is one, no proof sees it: such inputs are looked for. */
static iso_code look_where_undefined(state *s, iso_error *err) {
  size_t output = 0;
  rule_diff diff = {0};
  bool found = false;
  st_poles p = {0};
  if (st_stopped(s)) return ISO_OK;
  iso_code c = st_poles_of(s, &p, err);
  if (!c && (p.watched || p.apart)) c = st_hunt_poles(s, &p, &output, &diff, &found, err);
  if (!c && !found) c = st_hunt_undefined(s, &output, &diff, &found, err);
  if (!c) c = found ? differ_all_the_same(s, output, &diff, err) : weigh_what_is_seen(s, &p, err);
  st_poles_free(&p);
  return c;
}

static iso_code judge(state *s, pairing *p, iso_error *err) {
  synth_result *r = s->res;
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  synth_pair *pair = iso_arena_alloc(&r->arena, (L->n_outputs + 1) * sizeof *pair);
  bool *apart = calloc(s->n_draws + 1, 1);
  iso_code c = pair && apart ? ISO_OK : nomem(err);
  bool all = true, differs = false;
  r->evidence = RULE_PROVED;
  for (size_t i = 0; i < L->n_outputs && !c; i++) {
    const eg_node l = s->map[LEFT][L->output[p[i].left].node];
    const char *name = L->output[p[i].left].name;
    bool equal_values = true;
    c = hold_as_numbers(s, &p[i], apart, &equal_values, err);
    if (c) break;
    bool done = eg_equal(s->g, l, p[i].aux);
    if (!done && equal_values && !st_stopped(s)) c = st_prove(s, l, p[i].aux, &done, err);
    if (!c && done && !equal_values)
      c = iso_fail(err, ISO_INTERNAL, "output \"%s\" was joined although its values differ", name);
    if (!c && done) c = st_explain(s, l, p[i].aux, &r->evidence, err);
    pair[i] = (synth_pair){name, R->output[p[i].right].name, p[i].relation, done};
    all &= done;
  }
  differs = s->apart;
  if (!c && !all && !differs) c = seek_witness(s, apart, &differs, err);
  free(apart);
  if (c) return c;
  r->pair = pair;
  r->n_pairs = L->n_outputs;
  r->verdict = all ? SYNTH_EQUIVALENT : differs ? SYNTH_DIFFERENT : SYNTH_UNDECIDED;
  if (all && s->o->require_proved && r->evidence < RULE_PROVED) {
    r->verdict = SYNTH_UNDECIDED;
    r->reason = "a rule on the chain is tested and not proved";
  }
  if (all && s->doubtful) {
    r->verdict = SYNTH_UNDECIDED;
    r->reason = s->doubtful;
  }
  if (all && s->keep_integers) {
    r->verdict = SYNTH_UNDECIDED;
    r->reason =
        "shown for the captured integers only: on others of the same range an operator fails";
  }
  if (all && s->apart) { /* one of the two is wrong, and nothing says which */
    r->verdict = SYNTH_UNDECIDED;
    r->reason = "the outputs are joined, and a witness tells them apart all the same";
  }
  return r->verdict == SYNTH_EQUIVALENT ? look_where_undefined(s, err) : ISO_OK;
}

/* The other side's node to show beside one: the same occurrence of its operator, else what the
 * output is computed by. */
static int64_t beside(const synth_graph *g, int64_t node, const synth_graph *other) {
  size_t nth = 0;
  for (int64_t i = 0; i < node; i++)
    nth += g->node[i].kind == SYNTH_OP && strcmp(g->node[i].op, g->node[node].op) == 0;
  for (size_t i = 0; i < other->n_nodes; i++)
    if (other->node[i].kind == SYNTH_OP && strcmp(other->node[i].op, g->node[node].op) == 0 &&
        nth-- == 0)
      return (int64_t)i;
  return other->n_outputs ? (int64_t)other->output[0].node : -1;
}

/* An operator that fails on one side only is a divergence at that place; on both sides it is an
 * error. */
static iso_code fails_alone(state *s, bool *alone, bool *drawn, iso_error *err) {
  iso_error was = *err;
  int side = 0;
  int64_t node = -1;
  iso_code c = s->g && s->map[LEFT] ? st_fails_alone(s, &side, &node, alone, drawn, err) : ISO_OK;
  if (c) return c;
  if (!*alone) {
    *err = was;
    return ISO_TORCH;
  }
  synth_result *r = s->res;
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  synth_divergence *d = iso_arena_alloc(&r->arena, sizeof *d);
  synth_pair *pair = iso_arena_alloc(&r->arena, (L->n_outputs + 1) * sizeof *pair);
  uint32_t *region = iso_arena_alloc(&r->arena, sizeof *region);
  if (!d || !pair || !region) return nomem(err);
  *region = (uint32_t)node;
  *d = (synth_divergence){.left = -1, .right = -1, .index = -1, .hint = r->reason, .at = {-1, -1}};
  if (side == LEFT) d->left = node, d->left_region = region, d->n_left_region = 1;
  else d->right = node, d->right_region = region, d->n_right_region = 1;
  *(side == LEFT ? &d->right : &d->left) = beside(s->graph[side], node, s->graph[!side]);
  for (size_t i = 0; i < L->n_outputs && i < R->n_outputs; i++)
    pair[r->n_pairs++] = (synth_pair){L->output[i].name, R->output[i].name, "equal", false};
  r->pair = pair;
  r->divergence = d;
  r->n_divergences = 1;
  r->coverage.not_run[side] = node;
  r->verdict = SYNTH_DIFFERENT;
  r->reason = NULL;
  r->witness_output = L->n_outputs ? L->output[0].name : "";
  r->witness_abs = r->witness_rel = INFINITY;
  r->witness_seed = s->o->seed;
  return ISO_OK;
}

/* Room for what is known of the two graphs. */
static iso_code prepare(state *s, pairing **p, iso_error *err) {
  const synth_graph *l = s->graph[LEFT], *r = s->graph[RIGHT];
  *p = calloc(l->n_outputs + 1, sizeof **p);
  s->n_sets = l->n_sets < r->n_sets ? l->n_sets : r->n_sets;
  s->n_draws = s->n_sets + s->o->n_redrawn;
  s->n_kept = 1;
  s->map[LEFT] = calloc(l->n_nodes + 1, sizeof *s->map[LEFT]);
  s->map[RIGHT] = calloc(r->n_nodes + 1, sizeof *s->map[RIGHT]);
  s->res = calloc(1, sizeof *s->res);
  if (!*p || !s->map[LEFT] || !s->map[RIGHT] || !s->res) return nomem(err);
  s->res->coverage.not_run[LEFT] = s->res->coverage.not_run[RIGHT] = -1;
  iso_code c = eg_new(NULL, &s->g, err);
  if (!c) c = rule_set_new(&s->rules, err);
  return c ? c : rule_set_new(&s->tried, err);
}

/* The nodes in the comparison's own spelling; which of them the outputs depend on; what cannot be
 * compared is refused. */
static iso_code look_over(state *s, synth_graph own[2], bool *live[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    if ((c = own_nodes(s, s->graph[side], &own[side], err))) break;
    s->given[side] = s->graph[side]->node;
    const synth_graph *g = s->graph[side] = &own[side];
    c = live_nodes(g, &live[side], err);
    for (size_t i = 0; i < g->n_nodes && !c; i++)
      if (live[side][i] || writes_in_place(&g->node[i])) c = refuse(s, g, &g->node[i], err);
    if (!c) c = refuse_strides(g, live[side], err);
    if (!c && rule_schemas_starved(s->schemas)) c = nomem(err); /* something was not looked at */
  }
  return c;
}

/* One e-graph of both, leaves related and drawn, everything with its values. */
static iso_code fill(state *s, bool *const live[2], iso_error *err) {
  double t = synth_clock();
  iso_code c = st_relate_leaves(s, (const bool *const *)live, err);
  if (!c && s->o->idle) s->o->idle(s->o->ctx);
  if (!c) c = st_find_readings(s, (const bool *const *)live, err);
  if (!c) c = st_find_masks(s, (const bool *const *)live, err);
  for (int side = 0; side < 2 && !c; side++) c = st_add_graph(s, side, live[side], err);
  if (!c) c = eg_rebuild(s->g, err);
  if (!c) c = st_draw_leaves(s, err);
  if (!c) c = st_bound_domains(s, err);
  if (!c) c = st_bound_indices(s, err);
  if (!c) c = st_relate_constants(s, err);
  if (!c) c = st_widen_constants(s, err);
  if (!c) s->res->seconds_relate = synth_clock() - t;
  t = synth_clock();
  if (!c) c = evaluate(s, err);
  if (!c) c = st_other_masks(s, (const bool *const *)live, err);
  if (!c) c = st_check_unspecified(s, err);
  if (!c) s->res->seconds_execute = synth_clock() - t;
  return c;
}

/* Candidates, merges and the verdict. */
static iso_code decide(state *s, pairing *p, iso_error *err) {
  const double t = synth_clock();
  iso_code c = pair_outputs(s, p, err);
  if (!c && !(s->right_of = iso_arena_alloc(&s->arena,
                                            (s->graph[LEFT]->n_outputs + 1) * sizeof *s->right_of)))
    c = nomem(err);
  for (size_t i = 0; i < s->graph[LEFT]->n_outputs && !c; i++) s->right_of[p[i].left] = p[i].right;
  if (!c) c = st_find_peers(s, err);
  if (!c) c = candidates(s, p, s->graph[LEFT]->n_outputs, err);
  if (!c) c = st_check_classes(s, err);
  if (!c) c = st_measure_rounding(s, err);
  if (!c) c = judge(s, p, err);
  if (!c) c = certify(s, p, err);
  if (!c) s->res->seconds_synthesise = synth_clock() - t - s->res->seconds_validate;
  const bool kept = !c && s->o->keep_witness && s->res->verdict == SYNTH_DIFFERENT;
  const bool drawn = !c && s->res->verdict == SYNTH_DIFFERENT && s->res->redrawn;
  if (kept || drawn) c = st_keep_witness(s, err);
  const synth_verdict v = s->res->verdict;
  const bool parted = v == SYNTH_DIFFERENT || (v == SYNTH_UNDECIDED && !s->stopped);
  if (!c && parted && s->o->localiser) c = s->o->localiser->divergences(s, err);
  if (!c && drawn) c = st_needed(s, err);
  if (!c && kept && s->o->shrink) c = st_shrink(s, err);
  if (!s->o->keep_witness) st_drop_witness(s);
  return c;
}

/* Outputs that part at the captured inputs by far more than constants in float32 explain need no
 * second look; at others, which were drawn as extreme as can be, nothing bounds what these move. */
static bool may_be_rounding(const synth_result *r) {
  if (r->verdict == SYNTH_DIFFERENT) return r->redrawn || r->witness_rel < 1e-2;
  return r->verdict == SYNTH_UNDECIDED;
}

typedef struct how {
  bool keep_integers; /* those that are given are not drawn anew */
  bool as_written;    /* masks are not read */
  bool try_others;    /* and if they are, other masks than float16's, too */
  bool widen;         /* what one side alone computes of constants is made in float64 */
} how;

/* `again`: in what other way it has to be compared: an operator failed, and not on the captured
 * inputs; or numbers come near masks that were read. */
static iso_code compare(const synth_graph *left, const synth_graph *right, const rule_set *known,
                        const rule_oracle *oracle, rule_schemas *schemas, const synth_options *o,
                        how as, how *again, synth_result **out, iso_error *err) {
  synth_graph own[2];
  state st = {.graph = {left, right},
              .oracle = oracle,
              .schemas = schemas,
              .o = o,
              .known = known,
              .keep_integers = as.keep_integers,
              .as_written = as.as_written,
              .try_others = as.try_others,
              .widen = as.widen,
              .t0 = synth_clock()};
  state *s = &st;
  bool *live[2] = {NULL, NULL};
  synth_graph paired[2];
  iso_code c = st_pair_outputs(left, right, &s->arena, paired, err);
  if (c) {
    iso_arena_fini(&s->arena);
    return c;
  }
  for (int side = 0; side < 2; side++) s->graph[side] = &paired[side];
  pairing *p = NULL;
  c = prepare(s, &p, err);
  if (!c) c = look_over(s, own, live, err);
  if (!c) c = fill(s, live, err);
  bool alone = false;
  if (c == ISO_TORCH) c = fails_alone(s, &alone, &again->keep_integers, err);
  if (!c && !alone) c = st_near_masks(s, NULL, &again->as_written, err);
  const bool over = again->as_written; /* nothing here counts */
  if (alone) s->res->evidence = RULE_UNKNOWN;
  else if (!c && !over && !st_stopped(s)) {
    c = decide(s, p, err);
    again->try_others =
        !c && s->res->verdict == SYNTH_UNDECIDED && s->others_vanish && !st_stopped(s);
    again->widen = !c && s->narrowed && may_be_rounding(s->res) && !st_stopped(s);
  } else if (!c) {
    s->res->verdict = SYNTH_UNDECIDED;
    s->res->reason = s->stopped;
  }
  if (!c && !over) c = st_cover(s, (const bool *const *)live, err);
  if (!c && !over) c = st_measure_rounding(s, err);
  if (!c && !over) c = st_assume_all(s, err);
  if (!c && s->lost) c = st_lost(s, err);
  if (!c && !over) c = st_publish(s, live, err);
  if (c || over) synth_result_free(s->res);
  else {
    /* Texts and relations of the result point into it. */
    s->res->terms = s->arena;
    s->arena = (iso_arena){0};
    *out = s->res;
  }
  state_free(s);
  free(live[0]);
  free(live[1]);
  free(p);
  return c;
}

/* What comes next may fail, and a caller frees what it was given. */
static void forget(synth_result **out) {
  synth_result_free(*out);
  *out = NULL;
}

iso_code synth_compare(const synth_graph *left, const synth_graph *right, const rule_set *known,
                       const rule_oracle *oracle, rule_schemas *schemas, const synth_options *o,
                       synth_result **out, iso_error *err) {
  how as = {0}, again = {0};
  iso_code c = compare(left, right, known, oracle, schemas, o, as, &again, out, err);
  while (c == ISO_OK || c == ISO_TORCH) {
    const how was = as;
    if (c == ISO_TORCH && again.keep_integers) as.keep_integers = true;
    if (c == ISO_OK && again.as_written) as.as_written = true, as.try_others = false;
    else if (c == ISO_OK && again.try_others && !as.as_written) as.try_others = true;
    if (memcmp(&was, &as, sizeof as) == 0) break;
    if (c == ISO_OK && !again.as_written) forget(out);
    again = (how){0};
    c = compare(left, right, known, oracle, schemas, o, as, &again, out, err);
  }
  if (c || !again.widen) return c;
  /* Once more with constants in float64: where these join the outputs, rounding was all; where no
   * difference is found any more, it was rounding that was found. */
  synth_result *wide = NULL;
  iso_error ignored;
  as.widen = true;
  again = (how){0};
  c = compare(left, right, known, oracle, schemas, o, as, &again, &wide, &ignored);
  if (c == ISO_NOMEM) {
    forget(out);
    return iso_fail(err, c, "out of memory");
  }
  const bool undone = !c && wide && (*out)->verdict == SYNTH_DIFFERENT &&
                      wide->verdict == SYNTH_UNDECIDED && again.widen; /* not stopped */
  const bool better = !c && wide && (wide->verdict == SYNTH_EQUIVALENT || undone);
  synth_result_free(better ? *out : wide);
  if (better) *out = wide;
  return ISO_OK;
}
