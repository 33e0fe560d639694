/* Terms: immutable trees in an arena, and the names of statuses and scopes. */
#include <math.h>
#include <string.h>

#include "rules/names.h"
#include "rules/rules.h"

static rule_term *make(iso_arena *a, rule_kind kind) {
  rule_term *t = iso_arena_alloc(a, sizeof *t);
  if (t != NULL) t->kind = kind;
  return t;
}

/* A node with children and a name (NULL for a list). A missing child means that memory ran out
 * below: so it did here. */
static const rule_term *make_node(iso_arena *a, rule_kind kind, const char *name,
                                  const rule_term *const *child, size_t n) {
  if (n > UINT32_MAX) return NULL;
  for (size_t i = 0; i < n; i++)
    if (child[i] == NULL) return NULL;
  rule_term *t = make(a, kind);
  if (t == NULL) return NULL;
  if (n > 0) {
    const rule_term **copy = iso_arena_alloc(a, n * sizeof(const rule_term *));
    if (copy == NULL) return NULL;
    memcpy(copy, child, n * sizeof(const rule_term *));
    t->child = copy;
  }
  t->n = (uint32_t)n;
  if (name != NULL && (t->u.s = iso_arena_strdup(a, name)) == NULL) return NULL;
  return t;
}

static const rule_term *make_int(iso_arena *a, rule_kind kind, int64_t i) {
  rule_term *t = make(a, kind);
  if (t != NULL) t->u.i = i;
  return t;
}

const rule_term *rule_var(iso_arena *a, uint32_t index) { return make_int(a, RULE_VAR, index); }
const rule_term *rule_int(iso_arena *a, int64_t i) { return make_int(a, RULE_INT, i); }
const rule_term *rule_bool(iso_arena *a, bool b) { return make_int(a, RULE_BOOLEAN, b); }
const rule_term *rule_none(iso_arena *a) { return make(a, RULE_NONE); }
const rule_term *rule_dtype_term(iso_arena *a, rule_dtype d) { return make_int(a, RULE_DTYPE, d); }

const rule_term *rule_float(iso_arena *a, double f) {
  rule_term *t = make(a, RULE_FLOAT);
  if (t != NULL) t->u.f = f;
  return t;
}

const rule_term *rule_op(iso_arena *a, const char *op, const rule_term *const *child, size_t n) {
  return make_node(a, RULE_OP, op, child, n);
}
const rule_term *rule_slice(iso_arena *a, const rule_term *t, uint32_t d, int64_t from,
                            int64_t to) {
  const rule_term *arg[5] = {t, rule_int(a, d), rule_int(a, from), rule_int(a, to), rule_int(a, 1)};
  for (int i = 0; i < 5; i++)
    if (!arg[i]) return NULL;
  return rule_op(a, OP_SLICE_TENSOR, arg, 5);
}
const rule_term *rule_list(iso_arena *a, const rule_term *const *child, size_t n) {
  return make_node(a, RULE_LIST, NULL, child, n);
}
const rule_term *rule_expr(iso_arena *a, const char *op, const rule_term *const *child, size_t n) {
  return make_node(a, RULE_EXPR, op, child, n);
}
const rule_term *rule_string(iso_arena *a, const char *s) {
  return make_node(a, RULE_STRING, s, NULL, 0);
}
const rule_term *rule_name(iso_arena *a, const char *s) {
  return make_node(a, RULE_NAME, s, NULL, 0);
}

/* ---- what holds of all kinds ---- */

static bool has_text(rule_kind k) {
  return k == RULE_OP || k == RULE_STRING || k == RULE_NAME || k == RULE_EXPR;
}

static bool same_float(double a, double b) {
  return (isnan(a) && isnan(b)) || memcmp(&a, &b, sizeof a) == 0;
}

bool rule_term_eq(const rule_term *a, const rule_term *b) {
  if (a == b) return true; /* shared parts are common: this keeps comparing them cheap */
  if (a == NULL || b == NULL || a->kind != b->kind || a->n != b->n) return false;
  if (has_text(a->kind)) {
    if (strcmp(a->u.s, b->u.s) != 0) return false;
  } else if (a->kind == RULE_FLOAT) {
    if (!same_float(a->u.f, b->u.f)) return false;
  } else if (a->kind != RULE_LIST && a->kind != RULE_NONE && a->u.i != b->u.i) {
    return false;
  }
  for (uint32_t i = 0; i < a->n; i++)
    if (!rule_term_eq(a->child[i], b->child[i])) return false;
  return true;
}

const rule_term *rule_term_copy(iso_arena *a, const rule_term *t) {
  if (t == NULL) return NULL;
  rule_term *c = make(a, t->kind);
  if (c == NULL) return NULL;
  c->u = t->u;
  if (has_text(t->kind) && (c->u.s = iso_arena_strdup(a, t->u.s)) == NULL) return NULL;
  if (t->n == 0) return c;
  const rule_term **child = iso_arena_alloc(a, t->n * sizeof(const rule_term *));
  if (child == NULL) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if ((child[i] = rule_term_copy(a, t->child[i])) == NULL) return NULL;
  c->child = child;
  c->n = t->n;
  return c;
}

size_t rule_term_size(const rule_term *t) {
  size_t n = t->kind == RULE_VAR || t->kind == RULE_OP || t->kind == RULE_LIST;
  for (uint32_t i = 0; i < t->n; i++) n += rule_term_size(t->child[i]);
  return n;
}

/* ---- names ---- */

const char *rule_status_name(rule_status s) {
  static const char *const name[] = {"unknown", "refuted", "assumed",
                                     "tested",  "proved",  "certified"};
  return name[s];
}

const char *rule_scope_name(rule_scope s) {
  static const char *const name[] = {"", "these shapes", "these ranks", "all shapes"};
  return name[s];
}
