/* The verdict. Graphs are equivalent if their outputs are joined and an explanation of the chain
 * agrees. Outputs that are not joined are different only where running both graphs by themselves
 * shows it, else undecided. Every doubt that was noted on the way lowers "equivalent" to
 * "undecided" here. */
#include "synth/loop.h"
#include "synth/refute/refute.h"
#include "synth/result/result.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static void note_witness(state *s, size_t output, rule_diff diff, bool redrawn) {
  synth_result *r = s->res;
  r->redrawn = redrawn;
  r->witness_output = s->graph[LEFT]->output[output].name;
  r->witness_abs = diff.max_abs;
  r->witness_rel = diff.max_rel;
  r->witness_seed = s->o->seed;
}

/* Whether outputs differ on a captured draw by so little that it may be the rounding of an input
 * which was computed from another one. Drawn by itself it shows more. */
static bool may_be_stored(const state *s, size_t d, const st_difference *found) {
  static const double little = 1e-6;
  return d < st_n_captured(s) && !found->clear && found->diff.max_rel < little &&
         st_some_computed(s);
}

static void see_draw(state *s, size_t d, const st_difference *found) {
  const bool captured = d < st_n_captured(s);
  note_witness(s, found->output, found->diff, !captured);
  s->witness.clear = found->clear && captured;
}

/* The verdict where some output is not joined: a witness decides. `apart`: draws on which the
 * values differ. */
static iso_code seek_witness(state *s, const bool *apart, bool *differs, iso_error *err) {
  st_difference found = {0};
  iso_code c = ISO_OK;
  bool any = false, unsure = false;
  size_t stored = SIZE_MAX;
  *differs = s->witness.clear = false;
  for (size_t d = 0; d < s->n_draws && !c && !*differs; d++) { /* captured draws come first */
    if (!apart[d]) continue;
    unsure |= st_unsure(s, d);
    if (st_unsure(s, d)) continue;
    any = true;
    c = st_confirm(s, d, &found, err);
    *differs = found.found;
    if (!c && *differs && stored == SIZE_MAX && may_be_stored(s, d, &found))
      stored = d, *differs = false;
    else if (!c && *differs) see_draw(s, d, &found);
  }
  if (!c && !*differs && stored != SIZE_MAX) {
    c = st_confirm(s, stored, &found, err);
    *differs = found.found;
    if (!c && *differs) see_draw(s, stored, &found);
  }
  if (!c && !*differs && !st_stopped(s)) {
    c = st_hunt(s, &found, err);
    *differs = found.found;
    if (!c && *differs) note_witness(s, found.output, found.diff, true);
  }
  if (!c && !*differs && !st_stopped(s) && unsure && !any) {
    s->res->reason = s->graph[LEFT]->unsure;
    return ISO_OK;
  }
  if (!c && !*differs && !st_stopped(s) && s->search.saturated_to && !any) {
    s->res->reason = iso_arena_printf(&s->res->arena,
                                      "the outputs agree on every draw, but no justified rule "
                                      "joins them; saturation ended at its limit of %s",
                                      s->search.saturated_to);
    return s->res->reason ? ISO_OK : nomem(err);
  }
  if (!c && !*differs)
    s->res->reason =
        st_stopped(s) ? s->stopped
        : any && s->leaves.lonely_both
            ? "either side has parameters that no layout relates to the other's; the outputs "
              "differ on other parameters only, or not by more than rounding explains"
        : any ? "the outputs differ, but not by more than rounding explains, and no justified rule "
                "joins them"
              : "the outputs agree on every draw, but no justified rule joins them";
  return c;
}

iso_code st_hunt_early(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  /* A search for a witness runs the graphs many times, a candidate costs the same in all graphs: of
   * many nodes, or large ones, it waits for more of these. */
  enum { MANY = 32, NODES_EACH = 32, VERY_MANY = 512, LARGE = 1 << 22 };
  const size_t nodes = s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes;
  if (s->search.hunted || s->search.n_wasted < MANY + nodes / NODES_EACH || st_stopped(s))
    return ISO_OK;
  if (s->search.n_wasted < VERY_MANY &&
      st_leaf_elements(s->graph[LEFT]) + st_leaf_elements(s->graph[RIGHT]) > LARGE)
    return ISO_OK;
  s->search.hunted = true;
  bool *apart = calloc(s->n_draws + 1, 1), equal;
  iso_code c = apart ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n_pairs && !c; i++) c = st_outputs_agree(s, &p[i], apart, &equal, err);
  if (!c) c = seek_witness(s, apart, &s->search.apart, err);
  free(apart);
  s->res->reason = NULL;
  if (!s->search.apart) s->res->coverage.n_searched = 0; /* it is done again */
  return c;
}

/* A rule on the chain with an operator that tells undefined numbers from others. NULL: none. */
static const char *rule_that_sees(const state *s) {
  for (size_t i = 0; i < rule_set_count(s->rules.set); i++) {
    const rule *r = rule_set_at(s->rules.set, i);
    if (s->rules.info[i].needed &&
        (rule_looks_at_undefined(r->lhs) || rule_looks_at_undefined(r->rhs)))
      return r->name;
  }
  return NULL;
}

/* Rules hold of numbers. Where an operator may see NaN or infinity, rules make no claim: the
 * evidence there is the draws that were tried, or a proof that it sees none, and without either
 * there is none. */
static iso_code weigh_what_is_seen(state *s, const st_poles *p, iso_error *err) {
  const char *name = p->watched ? rule_that_sees(s) : NULL, *node = NULL;
  bool numbers = false;
  iso_code c = ISO_OK;
  if (!name) return ISO_OK;
  if (s->res->evidence > RULE_TESTED) s->res->evidence = RULE_TESTED;
  if (p->reached) {
    c = st_part_where_undefined(s, p, &node, err);
    if (c || !node) return c;
  }
  c = st_sees_numbers(s, p, &numbers, err);
  if (c || numbers) return c;
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason =
      node ? iso_arena_printf(&s->res->arena,
                              "the outputs part where %s is no number, and whether an input makes "
                              "it so is not known",
                              node)
           : iso_arena_printf(&s->res->arena,
                              "rule %s holds of numbers, and nothing shows that what its operators "
                              "see is one",
                              name);
  return s->res->reason ? ISO_OK : nomem(err);
}

/* A rule that cancels a divisor holds where that is not 0, and that it is 0 somewhere may be known
 * though no draw has come upon it. */
static iso_code weigh_cancelled(state *s, const st_poles *p, iso_error *err) {
  const char *node = NULL;
  iso_code c = st_part_where_zero(s, p, &node, err);
  if (c || !node) return c;
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason =
      iso_arena_printf(&s->res->arena,
                       "between two inputs what %s divides by is 0, and there an output is a "
                       "number on one side alone",
                       node);
  return s->res->reason ? ISO_OK : nomem(err);
}

static bool any_rule(const state *s) {
  for (size_t i = 0; i < rule_set_count(s->rules.set); i++)
    if (s->rules.info[i].needed) return true;
  return false;
}

/* Of real numbers, which rules are about, none overflows. Where an operator tells of it, the
 * evidence is that the graphs agreed on the largest numbers, or that nothing overflowed before it
 * there. */
static iso_code weigh_overflow(state *s, bool told, bool apart, iso_error *err) {
  if (told && s->res->evidence > RULE_TESTED) s->res->evidence = RULE_TESTED;
  if (!apart) return ISO_OK;
  s->res->verdict = SYNTH_UNDECIDED;
  s->res->reason =
      iso_arena_printf(&s->res->arena, "the outputs part where numbers overflow, and an operator "
                                       "tells those from others");
  return s->res->reason ? ISO_OK : nomem(err);
}

/* Outputs that are equal as real numbers need not be so where one graph is no number (0/0): the
 * other may guard against that, or never come there. No proof sees it, so such inputs are looked
 * for. */
static iso_code look_where_undefined(state *s, synth_pair *pair, bool joined, iso_error *err) {
  st_difference d = {0};
  st_poles p = {0};
  if (st_stopped(s)) return ISO_OK;
  iso_code c = st_poles_of(s, &p, err);
  if (!c && (p.watched || p.apart)) c = st_hunt_poles(s, &p, &d, err);
  if (!c && !d.found) c = st_hunt_undefined(s, p.undefined, &d, err);
  bool apart = false;
  const bool large = (p.told || p.hides) && any_rule(s);
  if (!c && !d.found && large) c = st_hunt_large(s, &p, &apart, &d, err);
  st_difference zeros = {0};
  if (!c && joined && !d.found) c = st_hunt_zero_signs(s, &zeros, err);
  if (!c && d.found) {
    s->res->verdict = SYNTH_DIFFERENT;
    s->res->reason = NULL;
    pair[d.output].equivalent = false;
    note_witness(s, d.output, d.diff, true);
  } else if (!c && zeros.found) { /* real numbers have one zero, and floats two */
    s->res->verdict = SYNTH_UNDECIDED;
    s->res->reason = "the outputs part where an input is -0.0, which an operator tells from 0";
  } else if (!c && joined && d.signs) {
    s->res->verdict = SYNTH_UNDECIDED;
    s->res->reason = "the outputs are infinite of other signs where what they divide by is 0";
  } else if (!c && joined) {
    c = weigh_what_is_seen(s, &p, err);
    if (!c && s->res->verdict == SYNTH_EQUIVALENT) c = weigh_cancelled(s, &p, err);
    if (!c && large && s->res->verdict == SYNTH_EQUIVALENT)
      c = weigh_overflow(s, p.told, apart, err);
  }
  st_poles_free(&p);
  return c;
}

/* A joined pair explained. Returns: in `sees` whether a rule of its own chain may see NaN or
 * infinity: that is tried for all outputs together, and only where all are joined. */
static iso_code explain_pair(state *s, eg_node l, eg_node r, bool *sees, iso_error *err) {
  const size_t n = rule_set_count(s->rules.set);
  bool *was = calloc(n + 1, sizeof *was);
  if (!was) return nomem(err);
  for (size_t i = 0; i < n; i++) was[i] = s->rules.info[i].needed, s->rules.info[i].needed = false;
  const iso_code c = st_explain(s, l, r, &s->res->evidence, err);
  *sees = !c && rule_that_sees(s) != NULL;
  for (size_t i = 0; i < n; i++) s->rules.info[i].needed |= was[i];
  free(was);
  return c;
}

/* Joined outputs are equivalent where the whole comparison is. Else an output is not if its own
 * chain may see NaN or infinity, and none is where only a doubt speaks against the comparison. */
static void weigh_pairs(const state *s, synth_pair *pair, const bool *sees) {
  const synth_result *r = s->res;
  bool all = true;
  if (r->verdict == SYNTH_EQUIVALENT) return;
  for (size_t i = 0; i < r->n_pairs; i++) all &= pair[i].equivalent &= !sees[i];
  for (size_t i = 0; i < r->n_pairs && all; i++) pair[i].equivalent = false;
}

/* `sees`: room for a flag for each pair, false. */
static iso_code judge(state *s, pairing *p, bool *sees, iso_error *err) {
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
    c = st_outputs_hold_as_numbers(s, &p[i], apart, &equal_values, err);
    if (c) break;
    bool done = eg_equal(s->g, l, p[i].aux);
    if (!done && equal_values && !st_stopped(s)) c = st_prove(s, l, p[i].aux, &done, err);
    bool told = false;
    if (!c && done && !equal_values) c = st_tells_overflow(s, &told, err);
    done &= !told && (equal_values || !s->constants.poles_differ);
    if (!c && done && !equal_values)
      c = iso_fail(err, ISO_INTERNAL, "output \"%s\" was joined although its values differ", name);
    if (!c && done) c = explain_pair(s, l, p[i].aux, &sees[i], err);
    pair[i] = (synth_pair){name, R->output[p[i].right].name, p[i].relation, done};
    all &= done;
  }
  differs = s->search.apart;
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
  if (all && s->constants.doubtful) {
    r->verdict = SYNTH_UNDECIDED;
    r->reason = s->constants.doubtful;
  }
  if (all && s->leaves.keep_integers) {
    r->verdict = SYNTH_UNDECIDED;
    r->reason =
        "shown for the captured integers only: on others of the same range an operator fails";
  }
  if (all && s->search.apart) { /* one of the two is wrong, and nothing says which */
    r->verdict = SYNTH_UNDECIDED;
    r->reason = "the outputs are joined, and a witness tells them apart all the same";
  }
  if (r->verdict != SYNTH_DIFFERENT && !(all && r->verdict == SYNTH_UNDECIDED))
    c = look_where_undefined(s, pair, all, err);
  if (!c) weigh_pairs(s, pair, sees);
  return c;
}

iso_code st_judge(state *s, pairing *p, iso_error *err) {
  bool *sees = calloc(s->graph[LEFT]->n_outputs + 1, 1);
  const iso_code c = sees ? judge(s, p, sees, err) : nomem(err);
  free(sees);
  return c;
}

/* The other side's node to show beside one: the same occurrence of its operator, else the output's
 * own operator. */
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

iso_code st_operator_fails(state *s, bool *alone, bool *drawn, iso_error *err) {
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
