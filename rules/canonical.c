/* A rule in canonical form. Samples are drawn by this form, so that the spelling of a rule does not
 * choose them.
 *
 * Variables are numbered by their first occurrence, left side first, names of sizes and attributes
 * too. Conditions are sorted by their text with these numbers. The rule's name, its evidence and
 * the order of its declarations leave no trace. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "rules/rules_int.h"

enum { NONE = UINT32_MAX };

typedef struct canon {
  iso_arena *a;
  const rule *r;
  uint32_t *number; /* by variable of `r`; NONE while it has none */
  uint32_t n_vars;
  const char **name;
  size_t n_names, cap_names;
  bool failed;
} canon;

static void number_name(canon *k, const char *name) {
  for (size_t i = 0; i < k->n_names; i++)
    if (strcmp(k->name[i], name) == 0) return;
  if (iso_grow(k->name, k->cap_names, k->n_names + 1)) k->name[k->n_names++] = name;
  else k->failed = true;
}

/* Numbers the variables and names in `t`, from left to right. */
static void number_term(canon *k, const rule_term *t) {
  if (t->kind == RULE_VAR && k->number[t->u.i] == NONE) k->number[t->u.i] = k->n_vars++;
  if (t->kind == RULE_NAME) number_name(k, t->u.s);
  for (uint32_t i = 0; i < t->n; i++) number_term(k, t->child[i]);
}

static void number_sizes(canon *k, const rule_variable *v) {
  for (uint32_t d = 0; d < v->n_dims; d++) number_term(k, v->dim[d]);
  if (v->low) number_term(k, v->low);
  if (v->high) number_term(k, v->high);
}

/* ---- text ---- */

static void write_name(rule_text *out, const canon *k, const char *name) {
  size_t i = 0;
  while (i < k->n_names && strcmp(k->name[i], name) != 0) i++;
  if (i < k->n_names) rule_text_fmt(out, " n%zu", i);
  else rule_text_str(out, " n?");
}

static void write_term(rule_text *out, const canon *k, const rule_term *t) {
  char buf[40];
  switch (t->kind) {
  case RULE_VAR: rule_text_fmt(out, " x%" PRIu32, k->number[t->u.i]); return;
  case RULE_NAME: write_name(out, k, t->u.s); return;
  case RULE_OP:
  case RULE_LIST:
  case RULE_EXPR:
    rule_text_str(out, t->kind == RULE_OP ? " (" : t->kind == RULE_LIST ? " [" : " {");
    if (t->kind != RULE_LIST) rule_text_str(out, t->u.s);
    for (uint32_t i = 0; i < t->n; i++) write_term(out, k, t->child[i]);
    rule_text_str(out, ")");
    return;
  case RULE_STRING: rule_text_quoted(out, t->u.s); return;
  case RULE_FLOAT:
    rule_text_str(out, " ");
    rule_text_str(out, rule_float_print(t->u.f, buf));
    return;
  default: rule_text_fmt(out, " %d:%" PRId64, (int)t->kind, t->kind == RULE_NONE ? 0 : t->u.i);
  }
}

/* The sides and the kinds of variables: conditions and shapes are left out, of which one more may
 * say nothing. */
static uint64_t hash_sides(canon *k, const rule *r, const uint32_t *from) {
  rule_text out = {0};
  write_term(&out, k, r->lhs);
  rule_text_str(&out, " =");
  write_term(&out, k, r->rhs);
  for (uint32_t i = 0; i < r->n_vars; i++)
    rule_text_fmt(&out, " %s", rule_variable_kind(&r->var[from[i]]));
  char *text = rule_text_take(&out);
  const uint64_t h = text ? iso_hash(text, strlen(text), 0) : 0;
  k->failed |= !text;
  free(text);
  return h;
}

/* ---- the rule ---- */

static const rule_term *renumbered(canon *k, const rule_term *t) {
  if (t->kind == RULE_VAR) return rule_var(k->a, k->number[t->u.i]);
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(k->a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = renumbered(k, t->child[i]))) return NULL;
  return t->kind == RULE_OP ? rule_op(k->a, t->u.s, child, t->n) : rule_list(k->a, child, t->n);
}

typedef struct condition {
  char *text;
  const rule_term *t;
} condition;

static int by_text(const void *a, const void *b) {
  return strcmp(((const condition *)a)->text, ((const condition *)b)->text);
}

static void sort_conditions(canon *k, rule *out) {
  const uint32_t n = k->r->n_where;
  condition *all = calloc(n + 1, sizeof *all);
  const rule_term **where = iso_arena_alloc(k->a, (n + 1) * sizeof *where);
  k->failed |= !all || !where;
  for (uint32_t i = 0; i < n && !k->failed; i++) {
    rule_text text = {0};
    write_term(&text, k, k->r->where[i]);
    all[i] = (condition){rule_text_take(&text), k->r->where[i]};
    k->failed |= !all[i].text;
  }
  if (!k->failed && n) qsort(all, n, sizeof *all, by_text);
  for (uint32_t i = 0; i < n && !k->failed; i++) where[i] = all[i].t;
  for (uint32_t i = 0; all && i < n; i++) free(all[i].text);
  free(all);
  out->where = where;
}

/* Declarations in the order of the names' numbers; unused ones are left out. */
static void sort_attributes(canon *k, rule *out) {
  rule_attribute *attr = iso_arena_alloc(k->a, (k->r->n_attrs + 1) * sizeof *attr);
  k->failed |= !attr;
  out->n_attrs = 0;
  for (size_t n = 0; n < k->n_names && !k->failed; n++)
    for (uint32_t i = 0; i < k->r->n_attrs; i++)
      if (strcmp(k->name[n], k->r->attr[i].name) == 0) attr[out->n_attrs++] = k->r->attr[i];
  out->attr = attr;
}

static void number_all(canon *k, uint32_t *from) {
  const rule *r = k->r;
  for (uint32_t i = 0; i < r->n_vars; i++) k->number[i] = NONE;
  number_term(k, r->lhs);
  number_term(k, r->rhs);
  for (uint32_t i = 0; i < r->n_vars; i++) /* on neither side: it can still name sizes */
    if (k->number[i] == NONE) k->number[i] = k->n_vars++;
  for (uint32_t i = 0; i < r->n_vars; i++) from[k->number[i]] = i;
  for (uint32_t i = 0; i < r->n_vars; i++) number_sizes(k, &r->var[from[i]]);
}

iso_code rule_canonical(iso_arena *a, const rule *r, rule *out, uint32_t *from, uint64_t *hash,
                        iso_error *err) {
  canon k = {.a = a, .r = r, .number = calloc(r->n_vars + 1u, sizeof *k.number)};
  rule_variable *var = iso_arena_alloc(a, (r->n_vars + 1u) * sizeof *var);
  *out = *r;
  k.failed = !k.number || !var;
  if (!k.failed) number_all(&k, from);
  if (!k.failed) *hash = hash_sides(&k, r, from);
  if (!k.failed) sort_conditions(&k, out);
  if (!k.failed) { /* names that only conditions have, in the order of these */
    for (uint32_t i = 0; i < r->n_where; i++) number_term(&k, out->where[i]);
    sort_attributes(&k, out);
  }
  for (uint32_t i = 0; i < r->n_vars && !k.failed; i++) var[i] = r->var[from[i]];
  out->var = var;
  out->claimed = RULE_UNKNOWN;
  out->scope = RULE_SCOPE_NONE;
  if (!k.failed && (!(out->lhs = renumbered(&k, r->lhs)) || !(out->rhs = renumbered(&k, r->rhs))))
    k.failed = true;
  free(k.number);
  free(k.name);
  return k.failed ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
}
