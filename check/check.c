/* The order of a check: the captures are those that the certificate names, every step follows from
 * those before it, the outputs meet, and then, which costs most, the rules. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/sizes/sizes.h"
#include "check/unrun/unrun.h"
#include "rules/operators.h"
#include "egraph/base/vec.h"

iso_code chk_settle(chk_state *k, chk_outcome outcome, const char *fmt, ...) {
  if (chk_settled(k)) return ISO_OK;
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(k->report->reason, sizeof k->report->reason, fmt, ap);
  va_end(ap);
  for (char *p = k->report->reason; *p; p++)
    if ((unsigned char)*p < 0x20 || *p == 0x7f)
      *p = ' '; /* names are the certificate's: nothing of them steers a terminal */
  k->report->outcome = outcome;
  return ISO_OK;
}

iso_code chk_nomem(chk_state *k) { return iso_fail(k->err, ISO_NOMEM, "out of memory"); }

iso_code chk_assume(chk_state *k, rule_assumption kind, const char *text) {
  if (k->here.set > 0 && text) return ISO_OK; /* said of the first set */
  if (!text || !iso_grow(k->used.assumption, k->used.cap, k->used.n + 1)) return chk_nomem(k);
  k->used.assumption[k->used.n++] = (chk_assumption){kind, text};
  return ISO_OK;
}

/* ---- the captures ---- */

iso_code chk_same_files(chk_state *k, int side) {
  const chk_file *file;
  size_t n;
  const char *name = side == LEFT ? "left" : "right";
  iso_code c = chk_files(k->graph[side], k->o->inputs, k->o->n_inputs, k->arena, &file, &n, k->err);
  if (c) return c;
  for (size_t i = 0; i < n; i++) {
    size_t j = 0;
    while (j < k->cert.n_files[side] && strcmp(k->cert.file[side][j], file[i].name) != 0) j++;
    if (j == k->cert.n_files[side])
      return chk_settle(k, CHK_REFUSED,
                        "the %s capture has %s, which the certificate does not know", name,
                        file[i].name);
    if (strcmp(k->cert.digest[side][j], file[i].digest) != 0)
      return chk_settle(k, CHK_REFUSED,
                        "the %s capture's %s is not the one that the certificate was made for",
                        name, file[i].name);
  }
  if (n != k->cert.n_files[side])
    return chk_settle(k, CHK_REFUSED,
                      "the %s capture lacks a file that the certificate was made for", name);
  return ISO_OK;
}

/* ---- steps ---- */

bool chk_same_argument(chk_state *k, const rule_term *a, const rule_term *b) {
  if (a->kind == RULE_VAR && b->kind == RULE_VAR)
    return chk_root(k, (uint32_t)a->u.i) == chk_root(k, (uint32_t)b->u.i);
  if (a->kind != RULE_LIST || b->kind != RULE_LIST) return a->kind != RULE_OP && rule_term_eq(a, b);
  if (a->n != b->n) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!chk_same_argument(k, a->child[i], b->child[i])) return false;
  return true;
}

static iso_code check_congruence(chk_state *k, const chk_step *x, size_t i) {
  const rule_term *a = k->term[x->a].call, *b = k->term[x->b].call;
  if (!a || !b || strcmp(a->u.s, b->u.s) != 0 || a->n != b->n)
    return chk_settle(k, CHK_REFUSED, "step %zu: a congruence between different operators", i);
  for (uint32_t n = 0; n < a->n; n++)
    if (!chk_same_argument(k, a->child[n], b->child[n]))
      return chk_settle(k, CHK_REFUSED,
                        "step %zu: a congruence of %s whose arguments %u are not equal", i, a->u.s,
                        n);
  return ISO_OK;
}

static void unite(chk_state *k, uint32_t a, uint32_t b) {
  const uint32_t p = chk_root(k, a), q = chk_root(k, b);
  if (p == q) return;
  k->here.up[p] = q;
  if (!k->here.konst[q].v) {
    k->here.konst[q] = k->here.konst[p];
    k->here.konst[p] = (chk_values){0};
  }
}

static iso_code check_step(chk_state *k, const chk_step *x, size_t i) {
  switch (x->kind) {
  case CHK_LEAF:
    return k->o->unrun && chk_of_weights(k, x) ? chk_unrun_leaf(k, x->a, x->b, i)
                                               : chk_same_leaves(k, x->a, x->b, i);
  case CHK_BOUND: return chk_bounded(k, x->a, x->b, i);
  case CHK_VALUE: return chk_same_constants(k, x->a, x->b, i);
  case CHK_ROUNDING:
    return k->o->unrun
               ? chk_settle(k, CHK_REFUSED,
                            "step %zu: how far rounding moves the outputs only a run tells", i)
               : chk_rounded(k, x->a, x->b, i);
  case CHK_RULE: return chk_instance(k, x, i);
  default: return check_congruence(k, x, i);
  }
}

static iso_code check_steps(chk_state *k) {
  iso_code c = k->rules.read || (k->rules.read = calloc(k->rules.n + 1, 1)) ? ISO_OK : chk_nomem(k);
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++) {
    c = check_step(k, &k->cert.step[i], i);
    if (!c && !chk_settled(k)) unite(k, k->cert.step[i].a, k->cert.step[i].b);
  }
  return c;
}

/* ---- what else it rests on ---- */

static bool joined_by_a_step(const chk_state *k, uint32_t a, uint32_t b) {
  for (size_t i = 0; i < k->cert.n_steps; i++)
    if (k->cert.step[i].kind == CHK_LEAF && ((k->cert.step[i].a == a && k->cert.step[i].b == b) ||
                                             (k->cert.step[i].a == b && k->cert.step[i].b == a)))
      return true;
  return false;
}

/* Two parameters or inputs of one side that became one over the other side's: equal where they were
 * captured, and so taken in general. */
static iso_code note_shared(chk_state *k) {
  uint32_t *first = malloc((k->n_terms + 1) * sizeof *first);
  iso_code c = first ? ISO_OK : chk_nomem(k);
  for (int side = 0; side < 2 && !c; side++) {
    for (size_t i = 0; i < k->n_terms; i++) first[i] = CHK_NONE;
    for (uint32_t i = 0; i < k->n_terms && !c; i++) {
      const chk_term *t = &k->term[i];
      if (!t->node || t->side != side || t->call) continue;
      const bool input = t->node->kind == CAP_INPUT;
      if (input ? k->here.konst[chk_root(k, i)].v != NULL : !chk_is_weight(t->node)) continue;
      uint32_t *head = &first[chk_root(k, i)];
      if (*head == CHK_NONE) *head = i;
      else if (!joined_by_a_step(k, *head, i))
        c = chk_assume(
            k, RULE_ASSUMES_LEAF,
            iso_arena_printf(k->arena,
                             "%s %s and %s, which have one captured value, are taken as one %s",
                             side == LEFT ? "left's" : "right's", k->term[*head].node->name,
                             t->node->name, input ? "input" : "parameter"));
    }
  }
  free(first);
  return c;
}

static iso_code assume_kernel(chk_state *k, const char *op) {
  rule_relative r;
  if (!rule_relative_of(k->arena, op, &r)) return chk_nomem(k);
  return chk_assume(k, r.kind, rule_relative_print(k->arena, r));
}

bool chk_leaves_ties(const char *op) { return rule_operator_of(op)->ties; }

/* Effects of the programs beside their outputs. */
static iso_code assume_left_out(chk_state *k) {
  const cap_graph *const g[2] = {k->graph[LEFT], k->graph[RIGHT]};
  const char *const *line, *apart;
  size_t n;
  iso_code c = cap_what_is_left_out(g, k->arena, &line, &n, &apart, k->err);
  if (!c && apart) return chk_settle(k, CHK_REFUSED, "%s", apart);
  for (size_t i = 0; i < n && !c; i++) c = chk_assume(k, RULE_ASSUMES_DEFINITION, line[i]);
  if (!c) c = cap_what_was_read(g, k->arena, &line, &n, k->err);
  for (size_t i = 0; i < n && !c; i++) c = chk_assume(k, RULE_ASSUMES_GUARD, line[i]);
  return c;
}

static iso_code assume_kernels(chk_state *k) {
  bool any_ties = false, any_sums = false;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < k->n_terms && !c; i++) {
    const rule_term *t = k->term[i].call;
    if (!t) continue;
    any_ties |= chk_leaves_ties(t->u.s);
    any_sums |= rule_operator_of(t->u.s)->unordered;
    bool seen = rule_is_aten(t->u.s) || rule_is_getitem(t->u.s);
    for (size_t j = 0; j < i && !seen; j++)
      seen = k->term[j].call && strcmp(k->term[j].call->u.s, t->u.s) == 0;
    if (!seen) c = assume_kernel(k, t->u.s);
  }
  if (!c) c = assume_left_out(k);
  if (!c && any_ties)
    c = chk_assume(
        k, RULE_ASSUMES_TIES,
        "an order among equal elements is left open: indices are compared where values differ");
  if (!c && any_sums)
    c = chk_assume(k, RULE_ASSUMES_ORDER,
                   "sums over unordered elements are equal up to their order");
  if (!c)
    c = chk_assume(k, RULE_ASSUMES_SHAPE, "shown for the captured shapes and the captured branch");
  if (!c)
    c = chk_assume(
        k, RULE_ASSUMES_DTYPE,
        "floating casts are identities: equality is over the real numbers, not over roundings");
  return c;
}

static iso_code publish(chk_state *k) {
  chk_report *r = k->report;
  chk_assumption *list = iso_arena_alloc(k->arena, (k->used.n + 1) * sizeof *list);
  if (!list) return chk_nomem(k);
  for (size_t i = 0; i < k->used.n; i++) list[i] = k->used.assumption[i];
  r->assumption = list;
  r->n_assumptions = k->used.n;
  r->n_steps = k->cert.n_steps;
  const char **line = iso_arena_alloc(k->arena, (k->o->n_relations + 1) * sizeof *line);
  if (!line) return chk_nomem(k);
  for (; r->n_relations < k->o->n_relations; r->n_relations++)
    if (!(line[r->n_relations] = iso_arena_strdup(k->arena, k->o->relation[r->n_relations])))
      return chk_nomem(k);
  r->relation = line;
  r->n_outputs = k->cert.n_outputs;
  return chk_publish_related(k);
}

static void state_free(chk_state *k) {
  chk_masks_free(k);
  free(k->mask.unread);
  chk_free_values(k);
  for (size_t i = 0; i < k->rules.n; i++) rule_set_free(k->rules.rule[i]);
  free(k->term);
  free(k->cert.number);
  free(k->rules.rule);
  free(k->rules.read);
  free(k->cert.step);
  free(k->cert.var);
  free(k->cert.name);
  free(k->cert.output);
  free(k->cert.fixed);
  free(k->here.up);
  free(k->here.unpinned);
  free(k->here.zeros);
  free(k->used.assumption);
}

/* Runs, on this set, the outputs and the terms that rules' variables stand for. */
static iso_code run_and_compare(chk_state *k) {
  iso_code c = chk_run(k);
  if (!c && !chk_settled(k)) c = chk_near_masks(k);
  if (!c && !chk_settled(k)) c = chk_variables(k);
  return c;
}

/* At other sizes, and on drawn values. */
static iso_code run_elsewhere(chk_state *k) {
  iso_code c = chk_sizes_check(k);
  if (!c && !chk_settled(k)) c = chk_redrawn(k);
  if (!c && !chk_settled(k)) c = chk_weigh_undefined(k, true);
  return c;
}

/* parameters: two captures, schemas and oracle, options, and the report. */
iso_code chk_check(const char *path, const cap_graph *left, const cap_graph *right,
                   rule_schemas *schemas, const rule_oracle *oracle, const chk_options *options,
                   chk_report *out, iso_error *err) {
  *out = (chk_report){.outcome = CHK_HOLDS};
  chk_state state = {.graph = {left, right},
                     .schemas = schemas,
                     .oracle = oracle,
                     .o = options,
                     .report = out,
                     .arena = &out->arena,
                     .err = err};
  chk_state *k = &state;
  iso_code c = chk_read(k, path);
  const size_t n_sets = chk_n_sets(k);
  if (!c && !chk_settled(k)) c = chk_fixed_inputs(k);
  if (!c && !chk_settled(k)) c = chk_relations(k);
  if (!c && !chk_settled(k)) c = chk_agreed(k);
  const bool looks = n_sets < left->n_sets && n_sets < right->n_sets && oracle && !options->unrun;
  if (!c && !chk_settled(k) && looks) c = chk_run_looks(k);
  if (!c && !chk_settled(k) && oracle && !options->unrun) c = chk_run_chance(k);
  for (k->here.set = 0; k->here.set < n_sets && !c && !chk_settled(k); k->here.set++) {
    c = chk_begin_values(k);
    if (!c) c = chk_find_masks(k);
    if (!c && !chk_settled(k)) c = check_steps(k);
    if (!c && !chk_settled(k)) c = chk_zeros(k);
    if (!c && !chk_settled(k) && k->here.set == 0 && !options->unrun) c = chk_free_elements(k);
    if (!c && !chk_settled(k)) c = note_shared(k);
    if (!c && !chk_settled(k)) c = chk_outputs(k);
    if (!c && !chk_settled(k)) c = options->unrun ? chk_unrun_variables(k) : run_and_compare(k);
  }
  k->here.set = 0;
  if (!c && !chk_settled(k)) c = chk_rules(k);
  if (!c && !chk_settled(k)) c = options->unrun ? chk_unrun_numbers(k) : run_elsewhere(k);
  if (!c && !chk_settled(k)) c = assume_kernels(k);
  if (!c) c = publish(k);
  state_free(k);
  return c;
}

void chk_report_free(chk_report *r) {
  if (!r) return;
  iso_arena_fini(&r->arena);
  *r = (chk_report){0};
}
