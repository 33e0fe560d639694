/* Which branches the samples of a rule took. An operator that chooses (a comparison, a bound, a rounding to integers) is one
 * function on each side of its choice: samples that all lie on one side show nothing about the other. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "validate/engine_int.h"

enum { SAME = 1, UP = 2, DOWN = 4, YES = 8, NO = 16, SOME = 32 };

typedef struct chooser {
  const char *name;
  uint8_t need;
} chooser;

static const chooser choosers[] = {
    {"eq", YES | NO},          {"ne", YES | NO},          {"lt", YES | NO},         {"le", YES | NO},          {"gt", YES | NO},
    {"ge", YES | NO},          {"equal", YES | NO},       {"not_equal", YES | NO},  {"less", YES | NO},        {"less_equal", YES | NO},
    {"greater", YES | NO},     {"greater_equal", YES | NO}, {"logical_and", YES | NO}, {"logical_or", YES | NO}, {"logical_xor", YES | NO},
    {"bitwise_and", YES | NO}, {"bitwise_or", YES | NO},  {"bitwise_xor", YES | NO}, {"__and__", YES | NO},    {"__or__", YES | NO},
    {"any", YES | NO},         {"all", YES | NO},         {"relu", SAME | UP},      {"abs", SAME | UP},        {"relu6", SAME | UP | DOWN},
    {"hardtanh", SAME | UP | DOWN}, {"clamp_min", SAME | UP}, {"clamp_max", SAME | DOWN}, {"maximum", SAME | UP}, {"fmax", SAME | UP},
    {"minimum", SAME | DOWN},  {"fmin", SAME | DOWN},     {"floor", SOME},          {"ceil", SOME},            {"round", SOME},
    {"trunc", SOME},           {"fix", SOME},             {"floor_divide", SOME}};

/* Infinite, or the largest number of float32, bfloat16 or float64. */
static bool mask_literal(const rule_term *t) {
  const double a = t->kind == RULE_FLOAT ? fabs(t->u.f) : 0;
  return !(a <= 1.79e308) || (a > 3.38e38 && a < 3.41e38);
}

/* What a call has to be seen to do; 0 where it chooses nothing. */
static uint8_t needs(const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  const char *name = strstr(call->u.s, "::");
  name = name ? name + 2 : call->u.s;
  const size_t length = strcspn(name, ".");
  if (n == 0 || out->numel == 0) return 0;
  for (uint32_t i = 0; i < call->n; i++)
    if (mask_literal(call->child[i])) return 0; /* a question about masks */
  if ((strncmp(name, "clamp", length) == 0 || strncmp(name, "clip", length) == 0) && call->n >= 3)
    return (uint8_t)(SAME | (call->child[1]->kind == RULE_NONE ? 0 : UP) | (call->child[2]->kind == RULE_NONE ? 0 : DOWN));
  if (strncmp(name, "to", length) == 0 || strncmp(name, "_to_copy", length) == 0)
    return !rule_dtype_is_float(bind[0]->dtype) ? 0 : out->dtype == RULE_BOOL ? YES | NO : rule_dtype_is_int(out->dtype) ? SOME : 0;
  for (size_t i = 0; i < sizeof choosers / sizeof *choosers; i++)
    if (strlen(choosers[i].name) == length && strncmp(choosers[i].name, name, length) == 0) {
      const uint8_t need = choosers[i].need;
      return need == (YES | NO) && out->dtype != RULE_BOOL ? 0 : need;
    }
  return 0;
}

static uint8_t taken(uint8_t need, const rule_tensor *self, const rule_tensor *out) {
  uint8_t seen = 0;
  const bool beside = self->numel == out->numel;
  if (!beside && (need & (SAME | UP | DOWN))) return need; /* broadcast: not looked at */
  for (int64_t i = 0; i < out->numel && (seen & need) != need; i++) {
    const double y = rule_tensor_get(out, i);
    if (need & (YES | NO | SOME)) {
      seen |= y != 0 ? YES | SOME : NO;
    } else {
      const double x = rule_tensor_get(self, i);
      seen |= y == x ? SAME : y > x ? UP : DOWN;
    }
  }
  return seen;
}

static bool varies(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (varies(t->child[i])) return true;
  return false;
}

static bool one_of(const char *op, const char *const *name, size_t n) {
  const char *bare = strstr(op, "::");
  bare = bare ? bare + 2 : op;
  const size_t length = strcspn(bare, ".");
  for (size_t i = 0; i < n; i++)
    if (strlen(name[i]) == length && strncmp(bare, name[i], length) == 0) return true;
  return false;
}

/* Places in a dimension, as a maximum, a sort or a choice of the largest gives them, or some of these in another layout. They range over that
 * dimension whatever is drawn: a bound past its end is never met, and needs not be. */
static bool places(const rule_term *t) {
  static const char *const gives[] = {"argmax", "argmin", "argsort"}, *const second[] = {"max", "min", "topk", "sort"},
                    *const moves[] = {"view", "reshape", "flatten", "cat", "concat", "stack", "unsqueeze", "squeeze", "transpose", "t", "permute",
                                      "expand", "contiguous", "clone", "alias", "select", "slice", "narrow"};
  if (t->kind == RULE_LIST) {
    for (uint32_t i = 0; i < t->n; i++)
      if (!places(t->child[i])) return false;
    return t->n > 0;
  }
  if (t->kind != RULE_OP || t->n == 0) return false;
  if (one_of(t->u.s, gives, sizeof gives / sizeof *gives)) return true;
  if (strcmp(t->u.s, "getitem") == 0)
    return t->child[0]->kind == RULE_OP && t->child[1]->kind == RULE_INT && t->child[1]->u.i == 1 &&
           one_of(t->child[0]->u.s, second, sizeof second / sizeof *second);
  return one_of(t->u.s, moves, sizeof moves / sizeof *moves) && places(t->child[0]);
}

void val_cover_note(val_cover *c, const rule_term *term, const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  const size_t at = c->n++;
  const uint8_t need = at < VAL_COVER ? needs(call, bind, n, out) : 0;
  if (at < VAL_COVER) snprintf(c->op[at].name, sizeof c->op[at].name, "%s", call->u.s);
  if (!need || !varies(term) || ((need & (UP | DOWN)) && term->n && places(term->child[0]))) return;
  c->op[at].need = need;
  c->op[at].seen = taken(need, bind[0], out);
}

void val_cover_add(val_cover *all, const val_cover *one) {
  const size_t n = one->n < VAL_COVER ? one->n : VAL_COVER;
  for (size_t i = 0; i < n; i++) {
    val_covered *o = &all->op[i];
    if (i >= all->n) *o = one->op[i];
    /* Instances at other sizes may run other operators; then their places say nothing. */
    else if (strcmp(o->name, one->op[i].name) != 0) o->need = 0;
    else o->need &= one->op[i].need, o->seen |= one->op[i].seen;
  }
  if (one->n > all->n) all->n = one->n;
}

const char *val_cover_gap(const val_cover *c) {
  for (size_t i = 0; i < c->n && i < VAL_COVER; i++)
    if ((c->op[i].seen & c->op[i].need) != c->op[i].need) return c->op[i].name;
  return NULL;
}
