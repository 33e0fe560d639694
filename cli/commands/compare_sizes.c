/* A pair at other sizes than those captured, with the rules that are known by then. Tests never
 * widen the scope of a verdict; a difference at any size that the captures allow counts. */
#include "cli/commands/compare_int.h"
#include "cli/commands/size_plan.h"
#include "egraph/base/vec.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
  MOST_UNDECIDED = 8, /* sizes, where the captured ones are undecided */
  MOST_SWEPT = 32,    /* values of one symbol that are tried in turn */
  MOST_CHAINS = 16    /* of larger sizes, that are held against all */
};

typedef struct looking {
  options *o;
  size_t k; /* which pair */
  rule_schemas *schemas;
  val_engine *engine;
  const rule_set *known;
  pair *captured;
  double most;     /* elements */
  size_t n_chains; /* that were held against all sizes */
  looked *out;
  iso_error *err;
} looking;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* "T = 33", for the sizes that are not as captured. */
static const char *sizes_text(looking *l, const int64_t *value) {
  const char *text = "";
  for (size_t i = 0; i < l->out->n_symbols && text; i++)
    if (value[i] != l->out->symbol[i].value)
      text = iso_arena_printf(&l->out->arena, "%s%s%s = %" PRId64, text, *text ? ", " : "",
                              l->out->symbol[i].name, value[i]);
  return text;
}

static iso_code add(looking *l, const int64_t *value, looked_at **out) {
  looked *all = l->out;
  const size_t bytes = all->n_symbols * sizeof *value;
  int64_t *own = iso_arena_alloc(&all->arena, bytes + 1);
  const char *text = sizes_text(l, value);
  if (!own || !text || !iso_grow(all->of, all->cap, all->n + 1)) return nomem(l->err);
  memcpy(own, value, bytes);
  all->of[all->n] = (looked_at){.value = own, .text = text};
  *out = &all->of[all->n++];
  return ISO_OK;
}

/* Owns: free(). */
static cap_size *assigned(const cap_graph *g, const int64_t *value) {
  cap_size *s = calloc(g->n_symbols + 1, sizeof *s);
  for (size_t i = 0; s && i < g->n_symbols; i++) s[i] = (cap_size){g->symbol[i].name, value[i]};
  return s;
}

static iso_code load_sides(looking *l, const int64_t *left, const int64_t *right, pair *p,
                           iso_error *err) {
  cap_graph *const *g = l->captured->graph;
  const cap_options from = cmp_inputs_of(l->o, l->k);
  cap_size *size[2] = {assigned(g[0], left), assigned(g[1], right)};
  const calls_sizes at[2] = {{size[0], g[0]->n_symbols}, {size[1], g[1]->n_symbols}};
  calls_side side[2];
  cmp_sides_of(l->o, l->k, side);
  const iso_code c =
      size[0] && size[1] ? calls_load(side, &from, at, l->schemas, p->graph, err) : nomem(err);
  free(size[0]);
  free(size[1]);
  return c;
}

/* Both graphs at these sizes of the left, with inputs. */
static iso_code load(looking *l, const int64_t *value, pair *p, iso_error *err) {
  cap_graph *const *g = l->captured->graph;
  int64_t *right = calloc(g[1]->n_symbols + 1, sizeof *right);
  const char *broken = NULL;
  iso_code c = right ? cap_relate_sizes(g[0], g[1], value, right, err) : nomem(err);
  if (!c) c = cap_admits(g[1], right, &broken, err);
  if (!c && broken) c = iso_fail(err, ISO_USAGE, "outside of the right's %s", broken);
  if (!c) c = load_sides(l, value, right, p, err);
  free(right);
  if (!c && size_plan_work(p->graph[0]) + size_plan_work(p->graph[1]) > l->most)
    c = iso_fail(err, ISO_LIMIT, "more than %.0f elements are too many", l->most);
  const cap_graph *const from[2] = {g[0], g[1]};
  if (!c) c = cap_move_inputs(from, p->graph, l->o->synth.seed, err);
  const rule_oracle oracle = val_oracle(l->engine);
  return c ? c : cmp_take_folds(l->o, p, &oracle, err);
}

/* The folds of parameters are known by now, and no matter of sizes. Relations of outputs
 * are inferred anew. */
static iso_code copy_folds(const refinement *from, refinement *to, iso_error *err) {
  to->fold = iso_arena_alloc(&to->arena, (from->n_folds + 1) * sizeof *to->fold);
  if (!to->fold) return nomem(err);
  for (; to->n_folds < from->n_folds; to->n_folds++)
    if (!(to->fold[to->n_folds] = iso_arena_strdup(&to->arena, from->fold[to->n_folds])))
      return nomem(err);
  return ISO_OK;
}

/* At the captured sizes much is equal that is not at others: a window that is not reached hides
 * nothing. The chain at larger sizes goes other ways, and may be one for all sizes. */
static bool asks_scope(looking *l, const int64_t *value) {
  bool larger = false;
  for (size_t i = 0; i < l->out->n_symbols; i++) larger |= value[i] > l->out->symbol[i].value;
  return larger && !l->out->scope && l->captured->result->verdict == SYNTH_EQUIVALENT &&
         l->n_chains++ < MOST_CHAINS;
}

/* Whether every kind of assumption of `x` is one of `y`, and its evidence is no weaker. */
static bool rests_on_no_more(const synth_result *x, const synth_result *y) {
  for (size_t i = 0; i < x->n_assumptions; i++) {
    bool known = false;
    for (size_t k = 0; k < y->n_assumptions; k++)
      known |= y->assumption[k].kind == x->assumption[i].kind;
    if (!known) return false;
  }
  return x->evidence >= y->evidence;
}

/* Compare at these sizes. A comparison that fails is noted and no error, also where memory ran out,
 * as an operator may need far more of it than its result shows (scores of each position with each).
 * Only a failed internal check is an error. */
static iso_code look(looking *l, const int64_t *value, pair *p, looked_at **out) {
  iso_error err = {0};
  iso_code c = add(l, value, out);
  if (c) return c;
  *p = (pair){.pinned = l->captured->pinned, .no_scope = !asks_scope(l, value)};
  c = copy_folds(&l->captured->refinement, &p->refinement, &err);
  if (!c) c = load(l, value, p, &err);
  if (!c) c = cmp_compare_loaded(l->o, l->schemas, l->engine, l->known, p, &err);
  if (c == ISO_INTERNAL) return iso_fail(l->err, c, "%s", err.msg);
  looked_at *x = *out;
  x->compared = !c;
  if (!c) x->verdict = p->result->verdict;
  if (!c && p->result->scope.all && rests_on_no_more(p->result, l->captured->result)) {
    c = looked_scope(l->out, &p->result->scope, l->err);
    if (c) return c;
  }
  const char *why = c ? err.msg : x->verdict == SYNTH_UNDECIDED ? p->result->reason : NULL;
  x->why = why ? iso_arena_strdup(&l->out->arena, why) : NULL;
  return why && !x->why ? nomem(l->err) : ISO_OK;
}

/* `p` shows a difference at `value`: it replaces the pair found so far. */
static void keep(looking *l, pair *found, pair *p) {
  cmp_free_pair(found);
  *found = *p;
  *p = (pair){0};
  l->o->compared = found->graph;
}

static bool changed(const looking *l, const int64_t *value) {
  for (size_t i = 0; i < l->out->n_symbols; i++)
    if (value[i] != l->out->symbol[i].value) return true;
  return false;
}

/* Whether two sizes are one but for symbol `s`. */
static bool beside(const looking *l, size_t s, const int64_t *a, const int64_t *b) {
  for (size_t i = 0; i < l->out->n_symbols; i++)
    if (i != s && a[i] != b[i]) return false;
  return true;
}

/* The largest value of symbol `s` below value[s] at which the graphs were equivalent; one below the
 * least where there is none. */
static int64_t equal_below(const looking *l, size_t s, const int64_t *value) {
  const cap_symbol *symbol = &l->out->symbol[s];
  int64_t best = symbol->min - 1;
  bool captured = l->captured->result->verdict == SYNTH_EQUIVALENT && symbol->value < value[s];
  for (size_t i = 0; i < l->out->n_symbols; i++)
    captured &= i == s || value[i] == l->out->symbol[i].value;
  if (captured) best = symbol->value;
  for (size_t i = 0; i < l->out->n; i++) {
    const looked_at *at = &l->out->of[i];
    if (at->compared && at->verdict == SYNTH_EQUIVALENT && beside(l, s, at->value, value) &&
        at->value[s] < value[s] && at->value[s] > best)
      best = at->value[s];
  }
  return best;
}

/* Look at `value`, and keep it where it differs. */
static iso_code try_smaller(looking *l, const int64_t *value, pair *found, bool *differs) {
  const char *broken;
  looked_at *x = NULL;
  pair p = {0};
  *differs = false;
  iso_code c = cap_admits(l->captured->graph[0], value, &broken, l->err);
  if (!c && !broken) c = look(l, value, &p, &x);
  if (!c && x && x->compared && x->verdict == SYNTH_DIFFERENT) {
    *differs = true;
    l->out->first = x->text;
    keep(l, found, &p);
  }
  cmp_free_pair(&p);
  return c;
}

/* The least value of symbol `s` that shows it, by halving, with the others as in `value`. */
static iso_code halve(looking *l, int64_t *value, size_t s, pair *found) {
  int64_t low = equal_below(l, s, value), high = value[s];
  iso_code c = ISO_OK;
  while (high - low > 1 && !c && !limits_reached(&l->o->limits)) {
    bool differs;
    value[s] = low + (high - low) / 2;
    c = try_smaller(l, value, found, &differs);
    if (differs) high = value[s];
    else low = value[s];
  }
  value[s] = high;
  return c;
}

/* Whether the pair was compared at these sizes, and did not differ. */
static bool known_equal(const looking *l, const int64_t *value) {
  for (size_t i = 0; i < l->out->n; i++)
    if (memcmp(l->out->of[i].value, value, l->out->n_symbols * sizeof *value) == 0) return true;
  return !changed(l, value);
}

/* A difference may come and go: the least values of symbol `s` are tried in turn. */
static iso_code sweep(looking *l, int64_t *value, size_t s, pair *found) {
  const int64_t high = value[s], least = l->out->symbol[s].min;
  bool differs = false;
  iso_code c = ISO_OK;
  for (int64_t x = least; x < high && x - least < MOST_SWEPT && !c && !differs; x++) {
    value[s] = x;
    if (limits_reached(&l->o->limits)) break;
    if (!known_equal(l, value)) c = try_smaller(l, value, found, &differs);
  }
  if (!differs) value[s] = high;
  return c;
}

/* Sizes nearer to the captured ones, then smaller ones, that show it too. `found` is at `at`, and
 * follows it. */
static iso_code shrink(looking *l, looked_at at, pair *found) {
  const size_t n = l->out->n_symbols;
  iso_code c = ISO_OK;
  l->out->first = at.text;
  int64_t *value = calloc(n + 1, sizeof *value);
  if (!value) return nomem(l->err);
  memcpy(value, at.value, n * sizeof *value);
  for (size_t s = 0; s < n && !c; s++) {
    const int64_t was = value[s], captured = l->out->symbol[s].value;
    bool differs = was == captured;
    value[s] = captured;
    if (!differs && changed(l, value)) c = try_smaller(l, value, found, &differs);
    if (!differs) value[s] = was;
  }
  for (size_t s = 0; s < n && !c; s++)
    if (value[s] != l->out->symbol[s].value) {
      c = halve(l, value, s, found);
      if (!c) c = sweep(l, value, s, found);
    }
  free(value);
  return c;
}

static iso_code look_at_all(looking *l, const size_plan *plan, pair *found) {
  const bool open = l->captured->result->verdict == SYNTH_UNDECIDED;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < plan->n && !c; i++) {
    if (open && i == MOST_UNDECIDED) break;
    if (limits_reached(&l->o->limits)) break;
    looked_at *at = NULL;
    pair p = {0};
    c = look(l, &plan->value[i * plan->n_symbols], &p, &at);
    const bool differs = !c && at->compared && at->verdict == SYNTH_DIFFERENT;
    if (differs) {
      keep(l, found, &p);
      return shrink(l, *at, found);
    }
    cmp_free_pair(&p);
  }
  return c;
}

/* Why a pair is not looked at at other sizes; NULL: it is. */
static const char *unfit(const pair *p) {
  if (!p->graph[0]->n_symbols || !p->graph[1]->n_symbols) return "one capture fixes its sizes";
  return NULL;
}

static iso_code note_symbols(looked *out, const cap_graph *g, iso_error *err) {
  out->symbol = iso_arena_alloc(&out->arena, (g->n_symbols + 1) * sizeof *out->symbol);
  if (!out->symbol) return nomem(err);
  for (size_t i = 0; i < g->n_symbols; i++) {
    out->symbol[i] = g->symbol[i];
    out->symbol[i].name = iso_arena_strdup(&out->arena, g->symbol[i].name);
    if (!out->symbol[i].name) return nomem(err);
  }
  out->n_symbols = g->n_symbols;
  return ISO_OK;
}

/* parameters: those of cmp_compare_pair. */
iso_code cmp_other_sizes(options *o, size_t k, rule_schemas *schemas, val_engine *engine,
                         const rule_set *known, pair *p, iso_error *err) {
  looked out = {0};
  size_plan plan = {0};
  rule_set *rules = NULL;
  pair found = {0};
  const bool has = p->graph[0]->n_symbols || p->graph[1]->n_symbols;
  if (!has) return ISO_OK;
  out.asked = !(o->synth.disable & CMP_SIZES);
  const cap_graph *with = p->graph[0]->n_symbols ? p->graph[0] : p->graph[1];
  iso_code c = note_symbols(&out, with, err);
  out.none = out.asked ? unfit(p) : "it was switched off";
  const bool go = !c && !out.none && p->result->verdict != SYNTH_DIFFERENT;
  const cap_options from = cmp_inputs_of(o, k);
  calls_side side[2];
  cmp_sides_of(o, k, side);
  if (!c && p->result->verdict == SYNTH_EQUIVALENT) c = looked_scope(&out, &p->result->scope, err);
  if (go && !c) c = rule_set_new(&rules, err);
  for (size_t i = 0; go && known && i < rule_set_count(known) && !c; i++) {
    size_t index;
    bool fresh;
    c = rule_set_add(rules, rule_set_at(known, i), &index, &fresh, err);
  }
  if (go && !c) c = cmp_add_rules(p->result, rules, err);
  if (go && !c) c = size_plan_make(p->graph, side, &from, o->synth.seed, &plan, err);
  looking l = {.o = o,
               .k = k,
               .schemas = schemas,
               .engine = engine,
               .known = rules,
               .err = err,
               .captured = p,
               .most = plan.most,
               .out = &out};
  const synth_options as = o->synth;
  o->synth.certificate = false;
  if (go && !c) c = look_at_all(&l, &plan, &found);
  o->synth = as;
  const rule_oracle oracle = val_oracle(engine);
  if (!c && found.result && o->rounding)
    c = rounding_measure(&found.view[0].g, &found.view[1].g, found.result, &oracle, &o->synth,
                         &found.rounding, err);
  if (!c && found.result) {
    found.load = p->load;
    found.total = p->total;
    cmp_free_pair(p);
    *p = found;
    o->compared = p->graph;
  } else cmp_free_pair(&found);
  p->looked = out;
  size_plan_free(&plan);
  rule_set_free(rules);
  return c;
}
