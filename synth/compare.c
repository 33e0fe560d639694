/* The comparison: relate leaves and constants, compute values, group e-nodes by value, and join
 * e-nodes that a rule shows equal, until the outputs meet or no class changes (Emerge, Algorithm 1,
 * with the candidates in topological order). */
#include "synth/loop.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/leaves/leaves.h"
#include "synth/refute/refute.h"
#include "synth/result/result.h"
#include "synth/saturate/saturate.h"
#include "synth/scope/scope.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

synth_options synth_options_default(void) {
  return (synth_options){.n_redrawn = 2,
                         .rel_tol = 1e-9,
                         .max_pattern = 120,
                         .max_tries = 32,
                         .saturate_iterations = 12,
                         .saturate_nodes = 20000,
                         .threads = 1};
}

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

bool st_stopped(state *s) {
  if (!s->stopped && s->o->deadline > 0 && synth_clock() - s->t0 > s->o->deadline)
    s->stopped = "the time limit was reached";
  if (!s->stopped && s->o->stop) s->stopped = s->o->stop(s->o->ctx);
  return s->stopped != NULL;
}

iso_code st_write_chain(state *s, const pairing *p, iso_error *err) {
  const size_t n = s->graph[LEFT]->n_outputs;
  if (!s->o->certificate || s->res->verdict != SYNTH_EQUIVALENT) return ISO_OK;
  eg_node *aux = calloc(n + 1, sizeof *aux);
  const rule_term **relation = calloc(n + 1, sizeof *relation);
  iso_code c = aux && relation ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n && !c; i++) aux[i] = p[i].aux, relation[i] = p[i].term;
  if (!c) c = st_certify(s, aux, relation, err);
  if (!c && s->o->scope && s->graph[LEFT]->n_symbols && s->graph[RIGHT]->n_symbols)
    c = st_scope(s, err);
  free(aux);
  free(relation);
  return c;
}

void st_state_free(state *s) {
  for (size_t i = 0; i < s->n_rec; i++) {
    rec *r = &s->rec[i];
    for (size_t k = 0; r->val && k < s->n_draws * r->n_out; k++) rule_tensor_unref(r->val[k]);
    for (size_t k = 0; r->cval && k < s->n_kept * r->n_out; k++) rule_tensor_unref(r->cval[k]);
    free(r->val);
    free(r->cval);
  }
  for (int side = 0; side < 2; side++) st_run_free(&s->witness.run[side]);
  st_masks_free(s);
  for (size_t i = 0; i < s->groups.n; i++) free(s->groups.of[i].member);
  free(s->rec);
  free(s->values.held);
  st_free_output_runs(s);
  free(s->leaves.bound);
  st_forget_parts(s, 0);
  free(s->leaves.part);
  free(s->groups.of);
  free(s->groups.place);
  free(s->literals.of);
  free(s->map[0]);
  free(s->map[1]);
  free(s->rules.app);
  free(s->rules.prem);
  free(s->rules.compiled.rule);
  free(s->rules.known_compiled.rule);
  free(s->rules.info);
  free(s->rules.tries);
  rule_set_free(s->rules.tried);
  free(s->assumed.of);
  for (size_t i = 0; i < s->constants.n_rounded; i++)
    for (int k = 0; k < 2; k++) rule_tensor_unref(s->constants.rounded[i].value[k]);
  free(s->constants.rounded);
  free(s->constants.reading);
  free(s->ranks.peers);
  st_free_links(s);
  free(s->class_root);
  for (int side = 0; side < 2; side++) {
    free(s->leaves.replica[side]);
    free(s->leaves.settled[side]);
    free(s->leaves.written[side]);
    free(s->leaves.kept[side]);
    free(s->leaves.unread[side]);
    free(s->leaves.range[side]);
    free(s->ranks.part[side]);
  }
  for (int side = 0; side < 2; side++) {
    free(s->ranks.first_peers[side]);
    free(s->ranks.peers_at[side]);
    free(s->ranks.inner[side]);
  }
  rule_set_free(s->rules.set);
  free(s->search.laid);
  eg_free(s->g);
  iso_arena_fini(&s->arena);
}

/* Joins the outputs themselves by the merges so far. `cancelled`: only those that depend on a sum
 * that cancels, whose value says little of it. */
static iso_code join_outputs(state *s, const pairing *p, size_t n_pairs, bool cancelled,
                             iso_error *err) {
  bool *apart = calloc(s->n_draws + 1, 1);
  iso_code c = apart ? ISO_OK : nomem(err);
  for (size_t i = 0; i < n_pairs && !c && !st_stopped(s); i++) {
    const eg_node l = s->map[LEFT][s->graph[LEFT]->output[p[i].left].node];
    bool equal = true, done = eg_equal(s->g, l, p[i].aux);
    if (done || (cancelled && !s->rec[l.i].rests)) continue;
    c = st_outputs_hold_as_numbers(s, &p[i], apart, &equal, err);
    if (!c && equal) c = st_prove(s, l, p[i].aux, &done, err);
  }
  free(apart);
  return c;
}

static iso_code passes(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  for (int pass = s->search.large_patterns; pass < 3; pass++) {
    if (st_outputs_met(s, p, n_pairs)) break;
    const size_t merges = s->res->n_merges;
    s->search.first_pass = pass == 0;
    for (int k = 0; k < 2; k++) {
      const int side = k ? !s->ranks.whole_side : s->ranks.whole_side;
      for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
        const eg_node e = s->map[side][i];
        if (e.i == EG_NONE) continue;
        if (st_stopped(s)) return ISO_OK;
        if (pass && st_has_side(s, e, !side)) continue;
        iso_code c = st_visit(s, e, err);
        if (!c) c = st_hunt_early(s, p, n_pairs, err);
        if (c) return c;
        if (s->o->progress && i % 16 == 0)
          s->o->progress(s->o->ctx, "synthesise", i, s->graph[side]->n_nodes);
      }
    }
    const bool ranks = pass == 0 && s->ranks.n_peers > 0;
    iso_code c = ranks ? join_outputs(s, p, n_pairs, true, err) : ISO_OK;
    if (!c && ranks && !st_outputs_met(s, p, n_pairs)) {
      s->search.briefly = true; /* what was joined last may be all that an output lacked */
      c = join_outputs(s, p, n_pairs, false, err);
      s->search.briefly = false;
    }
    if (c) return c;
    if (s->res->n_merges == merges) break;
  }
  return ISO_OK;
}

/* Small patterns first: a few rules that hold everywhere explain what one large one explains here
 * alone. Where layouts that are undone join tensors, small patterns may do that failed on the way,
 * and what was passed is not looked at again: it is then all begun anew. */
static iso_code candidates(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  iso_code c = st_outputs_part(s, p, n_pairs, &s->search.parted, err);
  if (!c) c = passes(s, p, n_pairs, err);
  if (!c && !s->search.apart) c = join_outputs(s, p, n_pairs, false, err);
  if (c || s->search.apart || st_stopped(s) || st_outputs_met(s, p, n_pairs)) return c;
  c = st_lay_back(s, &s->search.would_lay_back, err);
  if (c || s->search.would_lay_back) return c;
  s->search.large_patterns = true;
  return passes(s, p, n_pairs, err);
}

/* The outputs that are not joined although their values agree on every draw. Returns: in `n` how
 * many, 0 too where values of another pair differ: then nothing makes the graphs equivalent. */
static iso_code open_outputs(state *s, const pairing *p, size_t n_pairs, st_goal *open, size_t *n,
                             iso_error *err) {
  bool *apart = calloc(s->n_draws + 1, 1), equal = true;
  iso_code c = apart ? ISO_OK : nomem(err);
  *n = 0;
  for (size_t i = 0; i < n_pairs && !c && equal; i++) {
    const eg_node l = s->map[LEFT][s->graph[LEFT]->output[p[i].left].node];
    if (eg_equal(s->g, l, p[i].aux)) continue;
    c = st_outputs_hold_as_numbers(s, &p[i], apart, &equal, err);
    open[(*n)++] = (st_goal){l, p[i].aux};
  }
  if (!equal) *n = 0;
  free(apart);
  return c;
}

/* No candidate is left, and the outputs may yet be equal by rules about terms of neither graph.
 * Classes that saturation joins may be the ones that other candidates lacked. */
static iso_code saturate(state *s, const pairing *p, size_t n_pairs, iso_error *err) {
  enum { ROUNDS = 4 };
  st_goal *open = calloc(n_pairs + 1, sizeof *open);
  iso_code c = open ? ISO_OK : nomem(err);
  bool gained = !st_without(s, SYNTH_SATURATE);
  for (int k = 0; k < ROUNDS && gained && !c; k++) {
    size_t n = 0;
    if (s->search.apart || st_stopped(s) || st_outputs_met(s, p, n_pairs)) break;
    if ((c = open_outputs(s, p, n_pairs, open, &n, err)) || n == 0) break;
    c = st_saturate_open(s, open, n, &gained, err);
    if (!c && gained) c = passes(s, p, n_pairs, err);
    if (!c && gained && !s->search.apart) c = join_outputs(s, p, n_pairs, false, err);
  }
  free(open);
  return c;
}

iso_code st_prepare(state *s, pairing **p, iso_error *err) {
  const synth_graph *l = s->graph[LEFT], *r = s->graph[RIGHT];
  *p = calloc(l->n_outputs + 1, sizeof **p);
  s->n_sets = l->n_sets < r->n_sets ? l->n_sets : r->n_sets;
  if (st_has_looks(l, r) && !s->leaves.by_looks) s->n_sets = l->n_said;
  s->n_draws = s->n_sets + s->o->n_redrawn;
  s->n_kept = 1;
  s->map[LEFT] = calloc(l->n_nodes + 1, sizeof *s->map[LEFT]);
  s->map[RIGHT] = calloc(r->n_nodes + 1, sizeof *s->map[RIGHT]);
  s->res = calloc(1, sizeof *s->res);
  if (!*p || !s->map[LEFT] || !s->map[RIGHT] || !s->res) return nomem(err);
  s->res->coverage.not_run[LEFT] = s->res->coverage.not_run[RIGHT] = -1;
  iso_code c = st_new_graph(s, err);
  if (!c) c = rule_set_new(&s->rules.set, err);
  return c ? c : rule_set_new(&s->rules.tried, err);
}

iso_code st_fill(state *s, bool *const live[2], iso_error *err) {
  double t = synth_clock();
  iso_code c = st_relate_leaves(s, (const bool *const *)live, err);
  if (!c && s->o->idle) s->o->idle(s->o->ctx);
  if (!c) c = st_find_readings(s, (const bool *const *)live, err);
  if (!c) c = st_find_masks(s, (const bool *const *)live, err);
  for (int side = 0; side < 2 && !c; side++) c = st_add_graph(s, side, live[side], err);
  if (!c) c = eg_rebuild(s->g, err);
  if (!c) c = st_find_ranges(s, err);
  if (!c) c = st_draw_leaves(s, err);
  if (!c) c = st_bound_domains(s, err);
  if (!c) c = st_bound_indices(s, err);
  if (!c) c = st_relate_constants(s, err);
  if (!c) c = st_widen_constants(s, err);
  if (!c) s->res->seconds_relate = synth_clock() - t;
  t = synth_clock();
  if (!c) c = st_evaluate(s, err);
  if (!c) c = st_other_masks(s, (const bool *const *)live, err);
  if (!c) c = st_check_unspecified(s, err);
  if (!c) s->res->seconds_execute = synth_clock() - t;
  return c;
}

/* Candidates, merges and the verdict. */
static iso_code decide(state *s, pairing *p, iso_error *err) {
  const double t = synth_clock();
  iso_code c = st_output_terms(s, p, err);
  if (!c && !(s->right_of = iso_arena_alloc(&s->arena,
                                            (s->graph[LEFT]->n_outputs + 1) * sizeof *s->right_of)))
    c = nomem(err);
  for (size_t i = 0; i < s->graph[LEFT]->n_outputs && !c; i++) s->right_of[p[i].left] = p[i].right;
  if (!c) c = st_find_peers(s, err);
  if (!c) c = candidates(s, p, s->graph[LEFT]->n_outputs, err);
  if (s->search.would_lay_back) return c;
  if (!c) c = saturate(s, p, s->graph[LEFT]->n_outputs, err);
  if (!c) c = st_check_classes(s, err);
  if (!c) c = st_measure_rounding(s, err);
  if (!c) c = st_judge(s, p, err);
  if (!c) c = st_write_chain(s, p, err);
  if (!c) s->res->seconds_synthesise = synth_clock() - t - s->res->seconds_validate;
  const bool kept = !c && s->o->keep_witness && s->res->verdict == SYNTH_DIFFERENT;
  const bool drawn = !c && s->res->verdict == SYNTH_DIFFERENT && s->res->redrawn;
  if (kept || drawn) c = st_keep_witness(s, err);
  const synth_verdict v = s->res->verdict;
  const bool parted = v == SYNTH_DIFFERENT || (v == SYNTH_UNDECIDED && !s->stopped);
  if (!c && parted && s->o->localiser) c = s->o->localiser->divergences(s, err);
  if (!c && drawn) c = st_needed(s, err);
  if (!c && drawn) c = st_doubt_fills(s, err);
  if (!c && drawn) c = st_doubt_together(s, err);
  if (!c && drawn) c = st_doubt_properties(s, err);
  if (!c && kept && s->o->shrink) c = st_shrink(s, err);
  if (!s->o->keep_witness) st_drop_witness(s);
  return c;
}

/* Outputs that differ at the captured inputs by far more than constants in float32 explain need no
 * second run: by a hundredth; or by more than these may be off where they are taken to be exact,
 * and by so much more than they move the outputs otherwise. At drawn inputs, which are as extreme
 * as can be, nothing bounds the effect of such constants. */
static bool may_be_rounding(const state *s) {
  static const double FAR = 1e-2;
  const synth_result *r = s->res;
  if (r->verdict == SYNTH_DIFFERENT)
    return r->redrawn || r->witness_rel < (s->witness.clear ? ST_BEYOND_CONSTANTS : FAR);
  return r->verdict == SYNTH_UNDECIDED;
}

typedef struct how {
  bool by_looks;      /* on what was drawn by looks, too */
  bool keep_integers; /* those that are given are not drawn anew */
  bool as_written;    /* masks are not read */
  bool try_others;    /* and if they are, other masks than float16's, too */
  bool by_steps;      /* running maxima and sums stay what each step makes of them */
  bool read_first;    /* these were read before it was tried without */
  bool read_after;    /* what holds by tests alone is tried with these read, too */
  bool widen;         /* what one side alone computes of constants is made in float64 */
  bool lay_back;      /* layouts are undone as they are found */
} how;

static bool only_tested(const synth_result *r) {
  return r->verdict == SYNTH_EQUIVALENT && r->evidence == RULE_TESTED;
}

/* Masks that the graphs write as different numbers are read before anything is compared. */
static void read_first(const state *s, how as, how *again) {
  if (again->as_written || as.as_written || as.try_others || !s->masks.others_differ) return;
  again->read_first = again->try_others = true;
}

/* After a decision. */
static void once_more(state *s, how as, how *again) {
  const bool open = s->res->verdict == SYNTH_UNDECIDED && !st_stopped(s);
  again->try_others = open && s->masks.others_vanish;
  again->as_written = open && as.read_first;
  again->by_steps = open && s->ranks.running && !st_stopped(s);
  again->widen = s->constants.narrowed && may_be_rounding(s) && !st_stopped(s);
  again->read_after = s->masks.others_vanish && !as.try_others && only_tested(s->res);
}

/* `again`: the other way in which it has to be compared: an operator failed, and not on the
 * captured inputs; or numbers come near masks that were read. */
/* parameters: those of synth_compare, and how. */
static iso_code compare(const synth_graph *left, const synth_graph *right, const rule_set *known,
                        const rule_oracle *oracle, rule_schemas *schemas, const synth_options *o,
                        how as, how *again, synth_result **out, iso_error *err) {
  synth_graph own[2], paired[2];
  state st = {.graph = {left, right},
              .oracle = oracle,
              .schemas = schemas,
              .o = o,
              .known = known,
              .leaves.by_looks = as.by_looks,
              .leaves.keep_integers = as.keep_integers,
              .masks.as_written = as.as_written,
              .masks.try_others = as.try_others,
              .constants.widen = as.widen,
              .search.lays_back = as.lay_back,
              .ranks.by_steps = as.by_steps,
              .t0 = synth_clock()};
  state *s = &st;
  bool *live[2] = {NULL, NULL}, alone = false;
  iso_code c = st_pair_outputs(left, right, &s->arena, paired, err);
  if (c) {
    iso_arena_fini(&s->arena);
    return c;
  }
  for (int side = 0; side < 2; side++) s->graph[side] = &paired[side];
  pairing *p = NULL;
  c = st_prepare(s, &p, err);
  if (!c) c = st_look_over(s, own, live, err);
  if (!c) c = st_fill(s, live, err);
  if (c == ISO_TORCH) c = st_operator_fails(s, &alone, &again->keep_integers, err);
  if (!c && !alone) c = st_near_masks(s, NULL, &again->as_written, err);
  if (!c && !alone) read_first(s, as, again);
  bool over = again->as_written || again->read_first; /* nothing here counts */
  if (alone) s->res->evidence = RULE_UNKNOWN;
  else if (!c && !over && !st_stopped(s)) {
    c = decide(s, p, err);
    over = again->lay_back = s->search.would_lay_back;
    if (!c && !over) once_more(s, as, again);
  } else if (!c) {
    s->res->verdict = SYNTH_UNDECIDED;
    s->res->reason = s->stopped;
  }
  if (!c && !over) c = st_cover(s, (const bool *const *)live, err);
  if (!c && !over) c = st_measure_rounding(s, err);
  if (!c && !over) c = st_assume_all(s, err);
  if (!c && s->values.lost) c = st_lost(&s->values, err);
  if (!c && !over) c = st_publish(s, live, err);
  if (c || over) synth_result_free(s->res);
  else {
    /* Texts and relations of the result point into it. */
    s->res->terms = s->arena;
    s->arena = (iso_arena){0};
    *out = s->res;
  }
  st_state_free(s);
  free(live[0]);
  free(live[1]);
  free(p);
  return c;
}

/* The next steps may fail, and a caller frees the result either way. */
static void forget(synth_result **out) {
  synth_result_free(*out);
  *out = NULL;
}

/* parameters: those of synth_compare, and on which sets. */
static iso_code compare_on(const synth_graph *left, const synth_graph *right, const rule_set *known,
                           const rule_oracle *oracle, rule_schemas *schemas, const synth_options *o,
                           bool by_looks, synth_result **out, iso_error *err) {
  how as = {.by_looks = by_looks}, again = {0};
  *out = NULL;
  iso_code c = compare(left, right, known, oracle, schemas, o, as, &again, out, err);
  while (c == ISO_OK || c == ISO_TORCH) {
    const how was = as;
    if (c == ISO_TORCH && again.keep_integers) as.keep_integers = true;
    if (c == ISO_OK && again.as_written)
      as.as_written = true, as.try_others = as.read_first = false;
    else if (c == ISO_OK && again.try_others && !as.as_written) {
      as.try_others = true;
      as.read_first |= again.read_first;
    }
    as.lay_back |= c == ISO_OK && again.lay_back;
    as.by_steps |= c == ISO_OK && again.by_steps;
    if (memcmp(&was, &as, sizeof as) == 0) break;
    forget(out);
    again = (how){0};
    c = compare(left, right, known, oracle, schemas, o, as, &again, out, err);
  }
  const bool widen = again.widen, read = again.read_after;
  if (c || !(widen || read)) return c;
  /* Once more with constants in float64: where these join the outputs, rounding was all; where no
   * difference is found any more, it was rounding that was found. Or once more with masks read:
   * beside them numbers vanish in floating point alone, and what holds so may be proved. */
  synth_result *other = NULL;
  iso_error ignored;
  as.widen = widen;
  as.try_others |= read;
  again = (how){0};
  c = compare(left, right, known, oracle, schemas, o, as, &again, &other, &ignored);
  if (c == ISO_NOMEM) {
    forget(out);
    return iso_fail(err, c, "out of memory");
  }
  const bool undone = !c && other && (*out)->verdict == SYNTH_DIFFERENT &&
                      other->verdict == SYNTH_UNDECIDED && again.widen; /* not stopped */
  const bool joined = !c && other && other->verdict == SYNTH_EQUIVALENT;
  const bool better = undone || (joined && (widen || other->evidence > RULE_TESTED));
  synth_result_free(better ? *out : other);
  if (better) *out = other;
  return ISO_OK;
}

/* What was equal at the captured zeros and ones is not known to be at others. */
static iso_code doubt_looks(synth_result *r, const char *why, iso_error *err) {
  if (r->verdict != SYNTH_EQUIVALENT) return ISO_OK;
  r->verdict = SYNTH_UNDECIDED;
  r->reason = iso_arena_strdup(&r->arena, why);
  for (size_t i = 0; i < r->n_pairs; i++) ((synth_pair *)(uintptr_t)r->pair)[i].equivalent = false;
  return r->reason ? ISO_OK : nomem(err);
}

/* Integers that are kept though so few look like anything by chance.
 * parameters: those of synth_compare. */
static iso_code doubt_integers(const synth_graph *left, const synth_graph *right,
                               const rule_oracle *oracle, rule_schemas *schemas,
                               const synth_options *o, synth_result **out, iso_error *err) {
  const char *name = NULL, *why;
  bool stopped = false;
  iso_error ignored;
  if ((*out)->verdict != SYNTH_EQUIVALENT) return ISO_OK;
  iso_code c = st_run_chance(left, right, oracle, schemas, o, &name, &stopped, &ignored);
  if (c == ISO_NOMEM) {
    forget(out);
    return nomem(err);
  }
  if (c) return ISO_OK; /* an operator cannot take them */
  if (stopped)
    return doubt_looks(*out, "a limit was reached before other integers were tried", err);
  if (!name) return ISO_OK;
  why = iso_arena_printf(&(*out)->arena,
                         "the outputs differ only where %.80s has other numbers than it was "
                         "captured with, and so few look like what they are by chance: a relations "
                         "file may say what it may be (input %.80s range LOW HIGH)",
                         name, name);
  return why ? doubt_looks(*out, why, err) : nomem(err);
}

/* parameters: those of synth_compare. */
static iso_code compare_looks(const synth_graph *left, const synth_graph *right,
                              const rule_set *known, const rule_oracle *oracle,
                              rule_schemas *schemas, const synth_options *o, synth_result **out,
                              iso_error *err) {
  bool differ = false, stopped = false;
  iso_error why;
  iso_arena arena = {0};
  iso_code c = compare_on(left, right, known, oracle, schemas, o, false, out, err);
  if (c || !st_has_looks(left, right) || (*out)->verdict == SYNTH_DIFFERENT) return c;
  synth_graph sure[2] = {*left, *right}, one[2];
  c = st_run_looks(left, right, oracle, schemas, o, &differ, &stopped, &why);
  if (c && c != ISO_NOMEM && st_keep_sure(sure)) {
    const synth_graph *all[2] = {left, right};
    left = &sure[LEFT], right = &sure[RIGHT];
    c = st_run_looks(left, right, oracle, schemas, o, &differ, &stopped, &why);
    if (!c && !differ && !stopped) {
      c = st_run_unsure(all[LEFT], all[RIGHT], oracle, schemas, o, &arena, one, &differ, &stopped,
                        &why);
      if (differ) left = &one[LEFT], right = &one[RIGHT];
    }
  }
  if (c == ISO_NOMEM) {
    forget(out);
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  } else if (c)
    c = doubt_looks(*out,
                    "shown for the captured zeros and ones of an input only: on others that look "
                    "so an operator fails",
                    err);
  else if (stopped) c = doubt_looks(*out, "a limit was reached before other masks were tried", err);
  else if (differ) {
    forget(out);
    c = compare_on(left, right, known, oracle, schemas, o, true, out, err);
  }
  iso_arena_fini(&arena);
  return c;
}

/* parameters: two graphs, known rules, oracle and schemas, options, and the result. */
iso_code synth_compare(const synth_graph *left, const synth_graph *right, const rule_set *known,
                       const rule_oracle *oracle, rule_schemas *schemas, const synth_options *o,
                       synth_result **out, iso_error *err) {
  iso_code c = compare_looks(left, right, known, oracle, schemas, o, out, err);
  return c ? c : doubt_integers(left, right, oracle, schemas, o, out, err);
}
