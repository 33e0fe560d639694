/* The verdict is for the captured sizes; this asks whether it is for all that the captures admit.
 *
 * Every step of the certificate's chain is justified again with the symbols in place of numbers. A
 * rule is proved for all sizes that meet its conditions, so these are shown for the sizes that the
 * captures have there (scope_rules.c). A congruence needs equal sizes. Leaves are one where their
 * shapes are. Constants are no values here but the terms that compute them, of which the oracle is
 * asked whether they are equal for all sizes (scope_prove.c); terms that depend on no symbol are
 * equal as they were captured. Steps are taken in any order, each once what it rests on is there,
 * so nothing rests on itself. A step that cannot be taken holds the verdict back where outputs need
 * it. */
#include "synth/scope/scope.h"

#include <stdlib.h>
#include <string.h>

#include "rules/operators.h"
#include "synth/scope/scope_int.h"

enum { MOST_HELD = 4 };

typedef enum progress { WAITS, DONE, REFUSED } progress;

typedef struct chain {
  scoping *z;
  progress *step;
  const char **why;        /* by step */
  bool *asked;             /* by step: the oracle did not prove its sides equal */
  bool *tried;             /* by step: its sides are no tables that are equal */
  synth_sized_step *taken; /* in their order */
  size_t n_taken;
} chain;

/* ---- symbols ---- */

static void narrow(scoping *z, const size_sum *symbol, const synth_symbol *by) {
  size_atom *x = &z->space.atom[symbol->of[0].of[0]];
  if (by->min > x->min) x->min = by->min;
  if (by->max < x->max) x->max = by->max;
}

static bool add_symbols(scoping *z) {
  const synth_graph *const *g = z->s->graph;
  for (size_t i = 0; i < g[LEFT]->n_symbols; i++) {
    const synth_symbol *x = &g[LEFT]->symbol[i];
    scope_symbol *out = &z->symbol[LEFT][i];
    out->name = x->name;
    out->known = size_symbol(&z->space, x->name, x->min, x->max, &out->is);
    if (!out->known) return false;
  }
  for (size_t i = 0; i < g[RIGHT]->n_symbols; i++) {
    const synth_symbol *x = &g[RIGHT]->symbol[i];
    scope_symbol *out = &z->symbol[RIGHT][i];
    out->name = x->name;
    for (size_t k = 0; k < g[LEFT]->n_symbols; k++) {
      if (strcmp(z->symbol[LEFT][k].name, x->name) != 0) continue;
      out->is = z->symbol[LEFT][k].is;
      out->known = true;
      narrow(z, &out->is, x);
    }
  }
  return true;
}

/* A symbol of the right that is a dimension of an input equals that dimension on the left. */
static void name_dimension(scoping *z, const rule_term *left, const rule_term *right) {
  const synth_graph *g = z->s->graph[RIGHT];
  for (size_t i = 0; i < g->n_symbols && left->kind == RULE_NAME; i++) {
    scope_symbol *x = &z->symbol[RIGHT][i];
    if (x->known || right->kind != RULE_NAME || strcmp(x->name, right->u.s) != 0) continue;
    x->known = scope_size(z, left, &x->is);
    if (x->known) narrow(z, &x->is, &g->symbol[i]);
  }
}

static void name_right_symbols(scoping *z) {
  const synth_certificate *c = z->cert;
  for (size_t i = 0; i < c->n_steps; i++) {
    const synth_cert_term *a = &c->term[c->step[i].a], *b = &c->term[c->step[i].b];
    if (c->step[i].kind != SYNTH_CERT_LEAF || a->call || b->call || a->right == b->right) continue;
    const synth_node *l = &z->s->graph[LEFT]->node[a->right ? b->node : a->node],
                     *r = &z->s->graph[RIGHT]->node[a->right ? a->node : b->node];
    for (uint32_t d = 0; l->dim && r->dim && d < l->shape.rank && l->shape.rank == r->shape.rank;
         d++)
      name_dimension(z, l->dim[d], r->dim[d]);
  }
}

/* ---- steps ---- */

/* Whether a term is over tensors that no size changes, and over one at least. */
static void over_fixed(scoping *z, const rule_term *t, bool *some, bool *all) {
  if (t->kind == RULE_VAR) {
    *some = true;
    *all &= scope_is_fixed(z, (uint32_t)t->u.i);
  }
  for (uint32_t k = 0; k < t->n; k++) over_fixed(z, t->child[k], some, all);
}

/* Calls below that nothing says the sizes of, and that are over tensors which no size changes, have
 * the numbers that they have. Of others a number may be a size, and they would be undefined: where
 * nothing else is left, those that make no shape are taken so all the same. */
static void take_numbers(scoping *z, const rule_term *t) {
  bool some = false, all = true;
  if (t->kind == RULE_VAR) {
    const uint32_t x = (uint32_t)t->u.i;
    if (!z->call[x] || z->sized[x] || z->captured[x]) return;
    take_numbers(z, z->call[x]);
    over_fixed(z, z->call[x], &some, &all);
    if (!some) return;
    if (all) z->sized[x] = z->call[x];
    else if (z->guess == SCOPE_GUESS_ALL)
      z->sized[x] =
          rule_operator_of(z->call[x]->u.s)->sizes ? scope_reshaped(z, z->call[x]) : z->call[x];
    return;
  }
  for (uint32_t k = 0; k < t->n; k++) take_numbers(z, t->child[k]);
}

static void guess_sizes(scoping *z, uint32_t t) {
  const rule_term *x = rule_var(&z->s->arena, t);
  if (x) take_numbers(z, x);
}

static progress join(scoping *z, uint32_t a, uint32_t b) {
  if (scope_join(z, a, b)) return DONE;
  z->wrong = "their shapes differ at other sizes";
  return REFUSED;
}

/* One operator on equal arguments. */
static progress same_step(scoping *z, uint32_t a, uint32_t b) {
  if (!z->call[a] || !z->call[b]) return REFUSED;
  if (z->guess && !z->sized[a] && !z->sized[b]) guess_sizes(z, a);
  if ((!z->sized[a] && z->captured[a]) || (!z->sized[b] && z->captured[b])) {
    z->wrong = "the sizes of an operator are not known";
    return REFUSED;
  }
  if (!z->sized[a] && z->sized[b]) z->sized[a] = scope_lift(z, z->call[a], z->sized[b]);
  if (!z->sized[b] && z->sized[a]) z->sized[b] = scope_lift(z, z->call[b], z->sized[a]);
  z->wrong = "their arguments are not one at all sizes";
  return z->sized[a] && z->sized[b] && scope_alike(z, z->sized[a], z->sized[b]) ? join(z, a, b)
                                                                                : WAITS;
}

/* Whether `to` is `from` with a dimension of one more, where a call's argument says. */
static bool has_one_more(const scope_dims *to, const scope_dims *from, const rule_term *at) {
  const size_sum one = size_number(1);
  if (at->kind != RULE_INT || to->rank != from->rank + 1) return false;
  const int64_t d = at->u.i < 0 ? at->u.i + to->rank : at->u.i;
  if (d < 0 || d >= to->rank || !size_equal(&to->of[d], &one)) return false;
  for (uint32_t i = 0; i < from->rank; i++)
    if (!size_equal(&to->of[i + (i >= d)], &from->of[i])) return false;
  return true;
}

/* An input as a view of the other side's: the same elements in the same order. */
static void size_input(scoping *z, uint32_t leaf, uint32_t view) {
  const rule_term *call = z->call[view];
  const scope_dims *to = scope_dims_of(z, leaf);
  if (!call || z->sized[view] || z->captured[view] || !to || call->n != 2) return;
  if (call->child[0]->kind != RULE_VAR || z->call[call->child[0]->u.i]) return;
  const scope_dims *from = scope_dims_of(z, (uint32_t)call->child[0]->u.i);
  if (from && rule_adds_dimension(call->u.s) && has_one_more(to, from, call->child[1]))
    z->sized[view] = call; /* its integer names a dimension, and is no size */
  else scope_size_constant(z, view, to);
}

static progress leaf_step(scoping *z, uint32_t a, uint32_t b) {
  z->wrong = "the shape of a leaf is not known";
  if (!z->call[a] && !z->call[b]) return z->dim[a].of && z->dim[b].of ? join(z, a, b) : REFUSED;
  if (scope_is_fixed(z, a)) guess_sizes(z, b);
  size_input(z, a, b);
  z->wrong = "how an input is made of others is shown at the captured sizes alone";
  const bool fixed = scope_is_fixed(z, a) && scope_is_fixed(z, b);
  return fixed || (z->dim[a].of && z->sized[b]) ? join(z, a, b) : REFUSED;
}

/* `prove`: nothing else is left, so that all that is one by other steps is known to be. */
static iso_code value_step(chain *x, size_t i, uint32_t a, uint32_t b, bool prove, progress *out) {
  scoping *z = x->z;
  bool proved = false;
  iso_code c = ISO_OK;
  if (z->guess) guess_sizes(z, a), guess_sizes(z, b);
  scope_size_constant(z, a, scope_dims_of(z, b));
  scope_size_constant(z, b, scope_dims_of(z, a));
  if (scope_is_fixed(z, a) && scope_is_fixed(z, b)) return *out = join(z, a, b), ISO_OK;
  *out = WAITS;
  z->wrong = "the sizes of a constant are not known";
  if ((z->call[a] && !z->sized[a]) || (z->call[b] && !z->sized[b])) return ISO_OK;
  if (!x->asked[i]) {
    z->asked = false;
    c = scope_prove(z, a, b, NULL, 0, &proved);
    x->asked[i] = z->asked;
    z->taken.how = z->shared ? SYNTH_SIZED_SHARED : SYNTH_SIZED_PROVED;
  } else z->wrong = x->why[i];
  if (!c && !proved && prove && !x->tried[i]) {
    c = scope_tables(z, a, b, &x->tried[i], &proved);
    z->taken.how = SYNTH_SIZED_TABLE;
  }
  if (proved) *out = join(z, a, b);
  else z->taken.how = SYNTH_SIZED_PLAIN;
  return c;
}

/* A call and the same call with literals of more digits, at any sizes. */
static progress rounding_step(scoping *z, uint32_t a, uint32_t b) {
  if (scope_is_fixed(z, a) && scope_is_fixed(z, b)) return join(z, a, b);
  z->loose = true;
  const progress p = same_step(z, a, b);
  z->loose = false;
  if (p != DONE) z->wrong = "constants that rounding tells apart are compared by value";
  return p;
}

static iso_code take(chain *x, size_t i, bool prove) {
  scoping *z = x->z;
  const synth_cert_step *s = &z->cert->step[i];
  const uint32_t a = z->of[s->a], b = z->of[s->b];
  iso_code c = ISO_OK;
  bool proved = false;
  progress p = REFUSED;
  z->wrong = "a bound of integers is shown at the captured sizes alone";
  z->taken = (synth_sized_step){.step = (uint32_t)i};
  const bool joined = scope_root(z, a) == scope_root(z, b);
  if (joined) p = DONE;
  else if (s->kind == SYNTH_CERT_SAME) p = same_step(z, a, b);
  else if (s->kind == SYNTH_CERT_LEAF) p = leaf_step(z, a, b);
  else if (s->kind == SYNTH_CERT_VALUE) c = value_step(x, i, a, b, prove, &p);
  else if (s->kind == SYNTH_CERT_ROUNDING) p = rounding_step(z, a, b);
  else if (s->kind == SYNTH_CERT_RULE) {
    const char *wrong = NULL;
    p = scope_rule_step(z, s) ? join(z, a, b) : WAITS;
    if (p == WAITS) wrong = z->wrong;
    z->asked = false;
    if (p == WAITS && z->guess) guess_sizes(z, a), guess_sizes(z, b);
    if (p == WAITS && prove && !x->asked[i])
      c = scope_prove(z, a, b, s->var, s->applied->n_vars, &proved);
    x->asked[i] |= z->asked;
    if (proved) {
      z->taken.how = z->shared ? SYNTH_SIZED_SHARED : SYNTH_SIZED_PROVED;
      p = join(z, a, b);
    } else if (wrong) z->wrong = wrong;
  }
  x->step[i] = p;
  if (p == DONE && !joined) x->taken[x->n_taken++] = z->taken;
  if (p != DONE) x->why[i] = z->wrong;
  return c;
}

/* All that sizes show; up to one step for which a rule chooses sizes, or which is put to the oracle
 * with the captures' sizes. */
typedef enum round { SHOWN, CHOSEN, PROVED } round;

static iso_code round_of(chain *x, round how, bool *moved) {
  iso_code c = ISO_OK;
  *moved = false;
  x->z->choose = how != SHOWN;
  for (size_t i = 0; i < x->z->cert->n_steps && !c; i++) {
    if (x->step[i] != WAITS) continue;
    c = take(x, i, how == PROVED);
    *moved |= x->step[i] == DONE;
    if (*moved && how != SHOWN) return c;
  }
  return c;
}

/* The first step that waits is taken with numbers for sizes that nothing gives. */
static iso_code guess(chain *x, scope_guess how, bool *moved) {
  iso_code c = ISO_OK;
  *moved = false;
  x->z->guess = how;
  for (size_t i = 0; i < x->z->cert->n_steps && !c && !*moved; i++) {
    if (x->step[i] != WAITS) continue;
    c = take(x, i, how == SCOPE_GUESS_ALL);
    *moved = x->step[i] == DONE;
  }
  x->z->guess = SCOPE_GUESS_NONE;
  return c;
}

static iso_code walk(chain *x) {
  bool moved = true;
  iso_code c = ISO_OK;
  while (moved && !c) {
    c = round_of(x, SHOWN, &moved);
    if (!c && !moved) c = round_of(x, CHOSEN, &moved);
    if (!c && !moved) c = round_of(x, PROVED, &moved);
    if (!c && !moved) c = guess(x, SCOPE_GUESS_FIXED, &moved);
    if (!c && !moved) c = guess(x, SCOPE_GUESS_ALL, &moved);
  }
  return c;
}

/* ---- what came out ---- */

static bool hold(state *s, const char *text) {
  synth_scope *out = &s->res->scope;
  const char **line = (const char **)(uintptr_t)out->held; /* ours */
  if (text && out->n_held < MOST_HELD) line[out->n_held++] = text;
  return text != NULL;
}

static const char *name_of(const scoping *z, uint32_t t) {
  const size_t n_left = z->s->graph[LEFT]->n_nodes;
  const int side = t >= n_left;
  if (!z->captured[t]) return z->call[t]->u.s;
  return z->s->graph[side]->node[t - (side ? n_left : 0)].id;
}

static bool hold_step(const chain *x, size_t i) {
  const scoping *z = x->z;
  const synth_cert_step *s = &z->cert->step[i];
  const char *a = name_of(z, z->of[s->a]), *b = name_of(z, z->of[s->b]),
             *why = x->why[i] ? x->why[i] : "";
  return hold(z->s, s->kind == SYNTH_CERT_RULE
                        ? iso_arena_printf(&z->s->res->arena, "rule %s at %s and %s: %s",
                                           s->applied->name, a, b, why)
                        : iso_arena_printf(&z->s->res->arena, "%s and %s: %s", a, b, why));
}

static bool outputs_joined(const scoping *z) {
  for (size_t i = 0; i < z->cert->n_outputs; i++)
    if (scope_root(z, z->of[z->cert->output[i][0]]) != scope_root(z, z->of[z->cert->output[i][1]]))
      return false;
  return true;
}

/* Whether the chain's terms are defined at other sizes. Where they are not, it may be from the next
 * size on: a variance of one token is none. Steps that were justified for the wider range stay
 * justified. */
static iso_code run_chain(scoping *z, const bool *done, bool *defined, uint32_t *at) {
  const synth_graph *g = z->s->graph[LEFT];
  uint32_t ignored;
  iso_code c = scope_run(z, done, defined, at);
  for (size_t i = 0; i < g->n_symbols && !c && !*defined; i++) {
    size_atom *a = &z->space.atom[z->symbol[LEFT][i].is.of[0].of[0]];
    if (a->min == a->max) continue;
    a->min++;
    c = scope_run(z, done, defined, &ignored);
    if (!*defined) a->min--;
  }
  return c;
}

/* Demands on a chain that has been taken as a whole. */
static iso_code hold_chain(const chain *x) {
  scoping *z = x->z;
  iso_arena *a = &z->s->res->arena;
  const char *where = NULL;
  uint32_t at = 0;
  bool fine = true, defined = true, kept = true;
  bool *done = calloc(z->cert->n_steps + 1, 1);
  if (!done) return scope_no_memory(z);
  for (size_t i = 0; i < z->cert->n_steps; i++) done[i] = x->step[i] == DONE;
  iso_code c = run_chain(z, done, &defined, &at);
  free(done);
  if (!c && (z->cert->masks_read[0] || z->cert->masks_read[1])) c = scope_masks(z, &kept, &where);
  if (!c && !defined)
    fine =
        hold(z->s,
             iso_arena_printf(a, "%s is not defined at other sizes, no number, or of another shape",
                              name_of(z, at)));
  if (!c && !kept)
    fine &= hold(z->s, iso_arena_printf(a,
                                        "masks are read as minus infinity, and at %s it is not "
                                        "shown that each row keeps an element",
                                        where));
  return c || fine ? c : scope_no_memory(z);
}

static iso_code conclude(const chain *x) {
  state *s = x->z->s;
  const size_t n = s->graph[LEFT]->n_symbols;
  const bool joined = outputs_joined(x->z);
  bool fine = true;
  for (size_t i = 0; i < x->z->cert->n_steps && !joined; i++)
    if (x->step[i] == REFUSED || (x->step[i] == WAITS && x->asked[i])) fine &= hold_step(x, i);
  for (size_t i = 0; i < x->z->cert->n_steps && !joined; i++)
    if (x->step[i] == WAITS && !x->asked[i]) fine &= hold_step(x, i);
  iso_code c = joined ? hold_chain(x) : ISO_OK;
  if (c) return c;
  s->res->scope.all = joined && s->res->scope.n_held == 0;
  if (s->res->scope.all && (c = scope_record(x->z, x->taken, x->n_taken))) return c;
  synth_symbol *symbol = iso_arena_alloc(&s->res->arena, (n + 1) * sizeof *symbol);
  if (!symbol || !fine) return scope_no_memory(x->z);
  for (size_t i = 0; i < n; i++) {
    const size_atom *a = &x->z->space.atom[x->z->symbol[LEFT][i].is.of[0].of[0]];
    symbol[i] = s->graph[LEFT]->symbol[i];
    symbol[i].min = a->min, symbol[i].max = a->max;
  }
  s->res->scope.symbol = symbol;
  s->res->scope.n_symbols = n;
  return ISO_OK;
}

static iso_code start(scoping *z) {
  state *s = z->s;
  iso_arena *a = &s->arena;
  z->n_terms = s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes + z->cert->n_terms + SCOPE_SPARE;
  z->call = iso_arena_alloc(a, z->n_terms * sizeof *z->call);
  z->sized = iso_arena_alloc(a, z->n_terms * sizeof *z->sized);
  z->chosen = iso_arena_alloc(a, z->n_terms * sizeof *z->chosen);
  z->captured = iso_arena_alloc(a, z->n_terms);
  z->fixed = iso_arena_alloc(a, z->n_terms);
  z->dim = iso_arena_alloc(a, z->n_terms * sizeof *z->dim);
  z->up = iso_arena_alloc(a, z->n_terms * sizeof *z->up);
  for (int side = 0; side < 2; side++)
    z->symbol[side] = iso_arena_alloc(a, (s->graph[side]->n_symbols + 1) * sizeof *z->symbol[side]);
  if (!z->call || !z->sized || !z->chosen || !z->captured || !z->fixed || !z->dim || !z->up ||
      !z->symbol[LEFT] || !z->symbol[RIGHT] || !add_symbols(z))
    return scope_no_memory(z);
  for (uint32_t i = 0; i < z->n_terms; i++) z->up[i] = i;
  name_right_symbols(z);
  return scope_read_captures(z);
}

/* Reasons against a wider scope that do not depend on the steps. */
static bool hold_whole(state *s) {
  const synth_certificate *c = s->res->certificate;
  iso_arena *a = &s->res->arena;
  if (!c || c->missing)
    return hold(s, iso_arena_printf(a, "there is no chain: %s", c ? c->missing : "none was made"));
  bool fine = true;
  for (int side = 0; side < 2; side++)
    if (s->graph[side]->guarded)
      fine &= hold(s, "guards, which leave out sizes of which nothing is known here");
  for (size_t i = 0; i < c->n_fixed; i++)
    fine &= hold(s, iso_arena_printf(a, "%s keeps its captured value",
                                     s->graph[c->fixed[i].right]->node[c->fixed[i].node].name));
  return fine;
}

iso_code st_scope(state *s, iso_error *err) {
  synth_scope *out = &s->res->scope;
  out->held = iso_arena_alloc(&s->res->arena, MOST_HELD * sizeof *out->held);
  if (!out->held || !hold_whole(s)) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!s->res->certificate || s->res->certificate->missing) return ISO_OK;
  scoping *z = calloc(1, sizeof *z);
  if (!z) return iso_fail(err, ISO_NOMEM, "out of memory");
  z->s = s;
  z->cert = s->res->certificate;
  z->space.arena = &s->arena;
  z->err = err;
  chain x = {z,
             calloc(z->cert->n_steps + 1, sizeof *x.step),
             calloc(z->cert->n_steps + 1, sizeof *x.why),
             calloc(z->cert->n_steps + 1, 1),
             calloc(z->cert->n_steps + 1, 1),
             calloc(z->cert->n_steps + 1, sizeof *x.taken),
             0};
  iso_code c = x.step && x.why && x.asked && x.tried && x.taken ? start(z) : scope_no_memory(z);
  if (!c) c = walk(&x);
  if (!c) c = conclude(&x);
  free(x.step);
  free(x.why);
  free(x.asked);
  free(x.tried);
  free(x.taken);
  free(z);
  return c;
}
