/* One pair of captures: loaded, agreed on, as the comparison sees them, compared; and which of
 * several pairs decides. */
#include "cli/commands/compare_int.h"
#include "cli/config/limits.h"
#include "cli/report/obligations.h"
#include "cli/config/relations.h"
#include "egraph/base/parallel.h"
#include "validate/validate.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

bool cmp_make_view(const cap_graph *c, const char *const *relation, const cap_agreement *agreed,
                   view *v) {
  *v = (view){0};
  v->node = calloc(c->n_nodes + 1, sizeof *v->node);
  v->output = calloc(c->n_results + 1, sizeof *v->output);
  v->value = calloc((c->n_sets + 1) * (c->n_nodes + 1), sizeof *v->value);
  v->symbol = calloc(c->n_symbols + 1, sizeof *v->symbol);
  if (!v->node || !v->output || !v->value || !v->symbol) return false;
  for (size_t i = 0; i < c->n_nodes; i++) {
    const cap_node *n = &c->node[i];
    rule_tensor **val = &v->value[i * c->n_sets];
    for (size_t s = 0; s < c->n_sets; s++)
      val[s] = n->kind == CAP_INPUT ? c->input[s * c->n_nodes + i] : n->value;
    v->node[i] = (synth_node){.id = n->id,
                              .name = n->name,
                              .op = n->op,
                              .scope = n->scope,
                              .source = n->source,
                              .kind = n->kind == CAP_INPUT       ? SYNTH_INPUT
                                      : n->kind == CAP_PARAMETER ? SYNTH_PARAMETER
                                      : n->kind == CAP_BUFFER    ? SYNTH_BUFFER
                                      : n->kind == CAP_CONSTANT  ? SYNTH_CONSTANT
                                                                 : SYNTH_OP,
                              .call = n->call,
                              .reordered = n->reordered,
                              .n_outputs = n->n_outputs,
                              .value = val,
                              .domain = n->domain,
                              .kept = n->kept,
                              .by_chance = n->by_chance,
                              .dim = n->dim,
                              .sized = n->sized};
    if (n->n_outputs) v->node[i].shape = n->output[0].shape, v->node[i].dtype = n->output[0].dtype;
  }
  for (size_t i = 0; i < c->n_symbols; i++)
    v->symbol[i] = (synth_symbol){c->symbol[i].name, c->symbol[i].min, c->symbol[i].max};
  for (size_t i = 0; i < c->n_results; i++)
    v->output[i] =
        (synth_output){c->result[i].name, c->result[i].node, relation ? relation[i] : NULL};
  v->g = (synth_graph){.path = c->path,
                       .n_nodes = c->n_nodes,
                       .node = v->node,
                       .n_outputs = c->n_results,
                       .output = v->output,
                       .n_sets = c->n_sets,
                       .n_captured = agreed->n_captured,
                       .n_said = agreed->n_said,
                       .n_sure = agreed->n_sure,
                       .unsure = agreed->unsure,
                       .n_symbols = c->n_symbols,
                       .symbol = v->symbol,
                       .guarded = c->n_guards > 0};
  return true;
}

void cmp_free_view(view *v) {
  free(v->node);
  free(v->output);
  free(v->value);
  free(v->symbol);
}

void cmp_free_pair(pair *p) {
  synth_result_free(p->result);
  obligations_free(&p->obligations);
  rounding_free(&p->rounding);
  for (int side = 0; side < 2; side++) {
    cmp_free_view(&p->view[side]);
    cap_free(p->graph[side]);
  }
  relations_free(&p->relations);
  relations_folded_free(&p->folded);
  refinement_free(&p->refinement);
  looked_free(&p->looked);
  roles_free(&p->roles);
}

iso_code cmp_add_rules(const synth_result *r, rule_set *set, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < r->n_rules && !c; i++) {
    size_t index;
    bool fresh;
    c = rule_set_add(set, r->rule[i].what, &index, &fresh, err);
    if (!c) rule_set_evidence(set, index, r->rule[i].verdict.status, r->rule[i].verdict.scope);
  }
  return c;
}

cap_options cmp_inputs_of(const options *o, size_t k) {
  return (cap_options){.inputs = o->inputs,
                       .n_inputs = k == 0 ? o->n_inputs : 0, /* other pairs have other lengths */
                       .sort_unseen = true};
}

void cmp_sides_of(const options *o, size_t k, calls_side side[2]) {
  for (int s = 0; s < 2; s++) {
    side[s] = k ? (calls_side){.n = 0} : o->calls[s];
    side[s].first = o->pair[k][s];
  }
}

/* The agreement on inputs, as assumptions. Owns: free(). */
/* Assumptions about inputs, and those of numbers that the programs read. Owns: so->said. */
static iso_code note_said(pair *p, synth_options *so, iso_error *err) {
  const cap_graph *const g[2] = {p->graph[0], p->graph[1]};
  const cap_agreement *a = &p->agreed;
  const char *const *line;
  size_t n_lines;
  const iso_code c = cap_what_was_read(g, &p->relations.arena, &line, &n_lines, err);
  if (c) return c;
  const roles_result *x = &p->roles;
  const size_t n_roles = x->n_ranks ? x->n_notes : 0, n_all = a->n_notes + n_lines + n_roles;
  synth_note *n = calloc(n_all + 1, sizeof *n);
  if (!n) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < a->n_notes; i++)
    n[i] = (synth_note){a->note[i].kind, a->note[i].text, a->note[i].left, a->note[i].right};
  for (size_t i = 0; i < n_lines; i++)
    n[a->n_notes + i] = (synth_note){RULE_ASSUMES_GUARD, line[i], -1, -1};
  for (size_t i = 0; i < n_roles; i++)
    n[a->n_notes + n_lines + i] = (synth_note){RULE_ASSUMES_LEAF, x->note[i], -1, -1};
  so->said = n, so->n_said = n_all;
  return ISO_OK;
}

static bool any_related(const relations *r) {
  for (size_t i = 0; i < r->n_results[0]; i++)
    if (!r->left[i].left_out) return true;
  return false;
}

static iso_code load(const options *o, size_t k, rule_schemas *schemas, const rule_oracle *oracle,
                     pair *p, iso_error *err) {
  cap_options inputs = cmp_inputs_of(o, k);
  iso_code c = ISO_OK;
  inputs.no_weights = o->unrun;
  inputs.keep_role = p->by_role;
  calls_side side[2];
  cmp_sides_of(o, k, side);
  c = calls_load(side, &inputs, NULL, schemas, p->graph, err);
  if (!c && p->by_role) return cmp_fold_ranks(o, p, oracle, err);
  return c || o->unrun ? c : cmp_take_folds(o, p, oracle, err);
}

/* Pairs the outputs, and agrees on the inputs that both are run on. */
static iso_code relate(const options *o, pair *p, iso_error *err) {
  iso_code c = relations_load(o->relations, false, p->graph[0], p->graph[1], &p->relations, err);
  p->relations.opposed = p->opposed;
  if (!c)
    c = relations_agree(&p->relations, p->graph[0], p->graph[1], o->synth.seed, &p->agreed, err);
  if (!c) c = relations_note_folds(&p->folded, &p->agreed, err);
  return c || !p->pinned ? c : cap_pin(p->graph[0], p->graph[1], &p->agreed, err);
}

/* Parts left out by the user or by the captures. `apart`: as of cap_what_is_left_out. */
static iso_code note_left_out(pair *p, synth_options *so, const char **apart, iso_error *err) {
  const cap_graph *const g[2] = {p->graph[0], p->graph[1]};
  const char *const *line;
  size_t n;
  const iso_code c = cap_what_is_left_out(g, &p->relations.arena, &line, &n, apart, err);
  for (size_t i = 0; i < n && !c; i++)
    if (!relations_note(&p->relations, line[i])) return iso_fail(err, ISO_NOMEM, "out of memory");
  so->noted = p->relations.noted, so->n_noted = p->relations.n_noted;
  return c;
}

/* Tensors that are one beside an output that is another number, or is there on the right alone, are
 * no equivalence. A number may be a count or a name of a program that nobody meant to compare, so
 * it is no difference either. */
static iso_code doubt_other_outputs(const pair *p, const char *apart, iso_error *err) {
  synth_result *r = p->result;
  const char *extra = p->refinement.extra;
  if ((!apart && !extra) || r->verdict != SYNTH_EQUIVALENT) return ISO_OK;
  r->verdict = SYNTH_UNDECIDED;
  r->certificate = NULL;
  r->scope.all = false;
  r->reason = apart ? iso_arena_strdup(&r->arena, apart)
                    : iso_arena_printf(&r->arena,
                                       "no left output is made of the right's %s, and no "
                                       "relations file leaves it out",
                                       extra);
  return r->reason ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* Inputs of one name may be what is kept on one side and what is left out on the other: then they
 * were run on two things, and a difference may be that. */
static iso_code doubt_names(pair *p, iso_error *err) {
  synth_result *r = p->result;
  if (r->verdict != SYNTH_DIFFERENT || !p->agreed.doubt || p->opposed) return ISO_OK;
  p->doubted = true;
  r->verdict = SYNTH_UNDECIDED;
  r->reason = iso_arena_strdup(&r->arena, p->agreed.doubt);
  return r->reason ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* Of graphs that were not run nothing tells where parts are numbers: (x / w) * w is x only there.
 */
static iso_code doubt_numbers(synth_result *r, val_engine *engine, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < r->n_rules && !c && r->verdict == SYNTH_EQUIVALENT; i++) {
    bool together = true;
    if (r->rule[i].uses) c = val_undefined_together(engine, r->rule[i].what, &together, err);
    if (c || together) continue;
    r->verdict = SYNTH_UNDECIDED;
    r->reason = iso_arena_printf(&r->arena,
                                 "rule %s holds where all parts are numbers, which only a run can "
                                 "tell",
                                 r->rule[i].what->name);
    if (!r->reason) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  return c;
}

/* The node of a graph with the most elements, and how many: as runs hold them, in eight bytes. */
static const cap_node *largest(const cap_graph *g, int64_t *elements) {
  const cap_node *most = NULL;
  for (uint32_t i = 0; i < g->n_nodes; i++)
    for (size_t k = 0; k < g->node[i].n_outputs; k++) {
      int64_t n;
      iso_error ignored;
      if (rule_shape_numel(&g->node[i].output[k].shape, &n, &ignored) == ISO_OK && n > *elements)
        *elements = n, most = &g->node[i];
    }
  return most;
}

/* A limit on memory tells nothing by itself: whether a larger one helps is seen by the largest
 * tensor. */
static iso_code name_largest(const options *o, pair *p, iso_error *err) {
  synth_result *r = p->result;
  if (r->verdict != SYNTH_UNDECIDED || !r->reason || strcmp(r->reason, limits_memory) != 0)
    return ISO_OK;
  int64_t elements = 0;
  const cap_node *left = largest(p->graph[0], &elements), *right = largest(p->graph[1], &elements);
  const cap_node *most = right ? right : left;
  if (!most) return ISO_OK;
  r->reason = iso_arena_printf(
      &r->arena, "%s: %s's %s, the largest tensor, takes %.1f MiB in float64, and %.1f are allowed",
      limits_memory, right ? "right" : "left", most->name ? most->name : most->id,
      (double)elements / (1 << 17), (double)o->limits.memory_bytes / (1 << 20));
  return r->reason ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

iso_code cmp_compare_loaded(options *o, rule_schemas *schemas, val_engine *engine,
                            const rule_set *known, pair *p, iso_error *err) {
  const double t0 = now(), read = p->load;
  const rule_oracle oracle = val_oracle(engine);
  iso_code c = relate(o, p, err);
  synth_options so = o->synth;
  so.scope = p->graph[0]->n_symbols && p->graph[1]->n_symbols && !p->no_scope;
  so.certificate |= so.scope;
  so.given = p->relations.given, so.n_given = p->relations.n_given;
  o->compared = p->graph;
  so.certificate |= o->learning; /* leaves' relations are in it */
  if (o->unrun) so.scope = false;
  if (!c && !o->unrun) c = cmp_refine(o, &so, schemas, engine, p, err);
  else if (!c) cmp_find_unpaired(p);
  const bool some =
      !c &&
      (!p->unrelated || (relations_fit(&p->relations) && !o->unrun && any_related(&p->relations)));
  if (some) c = relations_apply(&p->relations, p->graph[0], p->graph[1], err);
  const char *apart = NULL;
  if (!c) c = note_left_out(p, &so, &apart, err);
  if (!c) c = note_said(p, &so, err);
  for (int side = 0; side < 2 && !c; side++)
    if (!cmp_make_view(p->graph[side], side ? p->relations.relation : NULL, &p->agreed,
                       &p->view[side]))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
  p->load = read + now() - t0;
  if (!c && some) {
    c = (o->unrun ? synth_compare_unrun : synth_compare)(&p->view[0].g, &p->view[1].g, known,
                                                         &oracle, schemas, &so, &p->result, err);
    /* One step too large for the limit, or a device that failed: earlier findings may rest on steps
     * that could not be run. */
    const char *why = val_lost(engine)                           ? val_lost(engine)
                      : c == ISO_NOMEM && o->limits.memory_bytes ? limits_memory
                                                                 : NULL;
    if (why) {
      if (!c) synth_result_free(p->result);
      p->result = calloc(1, sizeof *p->result);
      c = p->result ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
      if (!c)
        *p->result =
            (synth_result){.verdict = SYNTH_UNDECIDED, .reason = why, .coverage.not_run = {-1, -1}};
    }
  }
  free((void *)(uintptr_t)so.said);
  if (!c && p->unrelated) c = cmp_say_unrelated(p, o->unrun, o->synth.seed, err);
  if (!c) c = doubt_names(p, err);
  if (!c && o->unrun) c = doubt_numbers(p->result, engine, err);
  if (!c) c = doubt_other_outputs(p, apart, err);
  if (!c) c = name_largest(o, p, err);
  const bool equivalent = !c && p->result->verdict == SYNTH_EQUIVALENT;
  if (equivalent && p->roles.n_ranks) c = cmp_say_roles(p, err);
  if (!c && equivalent && o->synth.certificate)
    c = obligations_ask(p->result, schemas, &o->val, o->certified, &p->obligations, err);
  p->total = read + now() - t0;
  return c;
}

/* A comparison as it was asked for. */
typedef struct asked {
  options *o;
  size_t k; /* the pair */
  rule_schemas *schemas;
  val_engine *engine;
  const rule_set *known;
} asked;

/* As p->refinement has it by now. */
static iso_code compare_once(const asked *q, pair *p, iso_error *err) {
  const double t0 = now();
  const rule_oracle oracle = val_oracle(q->engine);
  const iso_code c = load(q->o, q->k, q->schemas, &oracle, p, err);
  p->load = now() - t0;
  if (!c && p->by_role && !p->roles.n_ranks) return ISO_OK;
  return c ? c : cmp_compare_loaded(q->o, q->schemas, q->engine, q->known, p, err);
}

/* Sources from which parameters without a relation may have been computed: as the comparison says
 * that has them free, since the lines are about parameters. */
static iso_code find_folds(const asked *q, pair *p, refinement *out, iso_error *err) {
  const rule_oracle oracle = val_oracle(q->engine);
  if (!p->pinned) return cmp_find_folds(p, &oracle, out, err);
  if (p->result->verdict == SYNTH_EQUIVALENT) return ISO_OK;
  pair unpinned = {.opposed = p->opposed};
  iso_code c = compare_once(q, &unpinned, err);
  if (!c) c = cmp_find_folds(&unpinned, &oracle, out, err);
  cmp_free_pair(&unpinned);
  q->o->compared = p->graph;
  return c;
}

/* Where such parameters are found all is compared once more, with the graphs as they are with these
 * computations; earlier findings may be due to the rounding of a stored parameter. */
static iso_code compare_folded(const asked *q, pair *p, iso_error *err) {
  refinement folds = {0};
  iso_code c = compare_once(q, p, err);
  if (!c && !q->o->unrun) c = find_folds(q, p, &folds, err);
  if (c || !folds.n_folds) {
    refinement_free(&folds);
    return c;
  }
  pair first = *p;
  iso_error ignored;
  *p = (pair){.refinement = folds, .pinned = first.pinned, .opposed = first.opposed};
  c = compare_once(q, p, &ignored);
  if (c) {
    cmp_free_pair(p);
    *p = first;
    q->o->compared = p->graph;
  } else cmp_free_pair(&first);
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* A difference that inputs of one name leave in doubt is one where the outputs part whichever of
 * them are what is kept, and whichever what is left out. */
static iso_code part_either_way(const asked *q, pair *p, iso_error *err) {
  enum { MOST = 2 }; /* inputs: each doubles the ways */
  const size_t n = p->agreed.n_doubts;
  bool part = n <= MOST;
  if (!p->doubted) return ISO_OK;
  for (unsigned k = 1; part && k < 1u << n; k++) {
    pair other = {.pinned = q->o->pinned, .opposed = k};
    iso_error why;
    const iso_code c = compare_folded(q, &other, &why);
    part = !c && other.result && other.result->verdict == SYNTH_DIFFERENT;
    cmp_free_pair(&other);
    if (c == ISO_NOMEM) return iso_fail(err, c, "%s", why.msg);
  }
  q->o->compared = p->graph;
  if (part) p->result->verdict = SYNTH_DIFFERENT, p->result->reason = NULL;
  return ISO_OK;
}

/* Ranks of one role as one of them. Returns: in `done` whether that settles it. */
static iso_code compare_roles(const asked *q, pair *p, bool *done, iso_error *err) {
  p->by_role = true;
  iso_code c = compare_once(q, p, err);
  *done = !c && p->result && p->result->verdict == SYNTH_EQUIVALENT;
  if (*done) return c;
  if (q->o->verbose) cmp_say_undone(p, c ? err->msg : NULL);
  cmp_free_pair(p);
  *p = (pair){.pinned = q->o->pinned};
  return c == ISO_NOMEM ? c : ISO_OK; /* what fails here is said of the ranks as they are */
}

/* Few ranks, of which comparing them as they are has shown nothing, as one of them. */
static iso_code compare_few(const asked *q, pair *p, iso_error *err) {
  if (p->result->verdict != SYNTH_UNDECIDED || !cmp_few_ranks(q->o, p)) return ISO_OK;
  pair one = {.pinned = q->o->pinned, .by_role = true, .few = true};
  iso_error why;
  const iso_code c = compare_once(q, &one, &why);
  if (!c && one.result && one.result->verdict == SYNTH_EQUIVALENT) {
    cmp_free_pair(p);
    *p = one;
  } else cmp_free_pair(&one);
  q->o->compared = p->graph;
  return c == ISO_NOMEM ? iso_fail(err, c, "%s", why.msg) : ISO_OK;
}

iso_code cmp_compare_pair(options *o, size_t k, rule_schemas *schemas, val_engine *engine,
                          const rule_set *known, pair *p, iso_error *err) {
  const rule_oracle oracle = val_oracle(engine);
  const asked q = {o, k, schemas, engine, known};
  p->pinned = o->pinned;
  bool done = false;
  iso_code c = cmp_may_fold(o) ? compare_roles(&q, p, &done, err) : ISO_OK;
  if (!c && !done) c = compare_folded(&q, p, err);
  if (!c && !done) c = part_either_way(&q, p, err);
  if (!c && !done) c = compare_few(&q, p, err);
  if (c || !o->rounding) return c;
  const double t0 = now();
  c = rounding_measure(&p->view[0].g, &p->view[1].g, p->result, &oracle, &o->synth, &p->rounding,
                       err);
  p->total += now() - t0;
  return c;
}

/* How much the inputs of a pair hold. */
static int64_t input_elements(const pair *p) {
  int64_t n = 0;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < p->graph[side]->n_nodes; i++) {
      const cap_node *node = &p->graph[side]->node[i];
      int64_t own = node->kind == CAP_INPUT;
      for (uint32_t d = 0; own && d < node->output[0].shape.rank; d++)
        own *= node->output[0].shape.dim[d];
      n += own;
    }
  return n;
}

size_t cmp_deciding(const pair *p, size_t n) {
  static const int rank[] = {[SYNTH_EQUIVALENT] = 0, [SYNTH_UNDECIDED] = 1, [SYNTH_DIFFERENT] = 2};
  size_t worst = 0;
  for (size_t k = 1; k < n; k++) {
    const synth_result *a = p[k].result, *b = p[worst].result;
    bool worse = rank[a->verdict] > rank[b->verdict];
    if (a->verdict == b->verdict && a->verdict == SYNTH_EQUIVALENT)
      worse = a->evidence < b->evidence;
    if (a->verdict == b->verdict && a->verdict == SYNTH_DIFFERENT)
      worse = input_elements(&p[k]) < input_elements(&p[worst]);
    if (worse) worst = k;
  }
  return worst;
}
