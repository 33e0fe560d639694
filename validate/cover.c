/* Which branches the samples of a rule took. An operator that chooses (a comparison, a bound, a rounding to integers) is one
 * function on each side of its choice: samples that all lie on one side show nothing about the other. And where it jumps it has a value
 * of its own, that no number beside it has: `>` and `>=`, or roundings to even and upwards, differ there alone. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "validate/engine_int.h"

/* EDGE: where it jumps. FAR: out of the range of the integers that it gives. */
enum { SAME = 1, UP = 2, DOWN = 4, YES = 8, NO = 16, SOME = 32, EDGE = 64, FAR = 128 };

typedef struct chooser {
  const char *name;
  uint16_t need;
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
static uint16_t needs(const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  const char *name = strstr(call->u.s, "::");
  name = name ? name + 2 : call->u.s;
  const size_t length = strcspn(name, ".");
  if (n == 0 || out->numel == 0) return 0;
  for (uint32_t i = 0; i < call->n; i++)
    if (mask_literal(call->child[i])) return 0; /* a question about masks */
  if ((strncmp(name, "clamp", length) == 0 || strncmp(name, "clip", length) == 0) && call->n >= 3)
    return (uint16_t)(SAME | (call->child[1]->kind == RULE_NONE ? 0 : UP) | (call->child[2]->kind == RULE_NONE ? 0 : DOWN));
  if (strncmp(name, "to", length) == 0 || strncmp(name, "_to_copy", length) == 0)
    return !rule_dtype_is_float(bind[0]->dtype) ? 0 : out->dtype == RULE_BOOL ? YES | NO : rule_dtype_is_int(out->dtype) ? SOME : 0;
  for (size_t i = 0; i < sizeof choosers / sizeof *choosers; i++)
    if (strlen(choosers[i].name) == length && strncmp(choosers[i].name, name, length) == 0) {
      const uint16_t need = choosers[i].need;
      return need == (YES | NO) && out->dtype != RULE_BOOL ? 0 : need;
    }
  return 0;
}

static uint16_t taken(uint16_t need, const rule_tensor *self, const rule_tensor *out) {
  uint16_t seen = 0;
  need &= SAME | UP | DOWN | YES | NO | SOME;
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

/* ---- where an operator jumps ---- */

typedef enum jump {
  NO_JUMP, AT_EQUAL, AT_INTEGER, AT_HALF, AT_ZERO, AT_MULTIPLE, AT_BOUNDARY
} jump;

static jump jump_of(const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  static const char *const compares[] = {"eq", "ne", "lt", "le", "gt", "ge", "equal", "not_equal", "less", "less_equal", "greater", "greater_equal"},
                    *const whole[] = {"floor", "ceil", "trunc", "fix", "frac"}, *const halves[] = {"round"}, *const zeros[] = {"sign", "sgn", "heaviside"},
                    *const divides[] = {"floor_divide", "remainder", "fmod"}, *const bounds[] = {"bucketize", "searchsorted"},
                    *const casts[] = {"to", "_to_copy"}, *const quotient[] = {"div", "divide"};
  bool real = false;
  for (size_t i = 0; i < n; i++) real |= rule_dtype_is_float(bind[i]->dtype);
  if (!real || n == 0) return NO_JUMP;
#define IS(list) one_of(call->u.s, list, sizeof list / sizeof *list)
  if (IS(compares)) return AT_EQUAL;
  if (IS(bounds)) return AT_BOUNDARY;
  if (!rule_dtype_is_float(bind[0]->dtype)) return NO_JUMP;
  if (IS(whole)) return AT_INTEGER;
  if (IS(halves)) return call->n == 1 ? AT_HALF : NO_JUMP;
  if (IS(zeros)) return AT_ZERO;
  if (IS(divides) || (IS(quotient) && call->n > 2 && call->child[2]->kind == RULE_STRING)) return AT_MULTIPLE;
  if (IS(casts)) return out->dtype == RULE_BOOL ? AT_ZERO : rule_dtype_is_int(out->dtype) ? AT_INTEGER : NO_JUMP;
#undef IS
  return NO_JUMP;
}

static bool jumps_here(jump j, double x, double y) {
  switch (j) {
  case AT_EQUAL: return x == y && isfinite(x);
  case AT_INTEGER: return x != 0 && x == nearbyint(x) && fabs(x) < 1e9;
  case AT_HALF: return x != nearbyint(x) && 2 * x == nearbyint(2 * x);
  case AT_ZERO: return x == 0;
  case AT_MULTIPLE: return x != 0 && y != 0 && fmod(x, y) == 0;
  default: return false;
  }
}

/* Whether one of two tensors has a number of the other one, `bounds`, which must be in order to mean anything. */
static bool at_boundary(const rule_tensor *bounds, rule_tensor *const *bind) {
  const int64_t last = bounds->shape.rank ? bounds->shape.dim[bounds->shape.rank - 1] : 1;
  for (int64_t i = 1; i < bounds->numel; i++)
    if (i % last && rule_tensor_get(bounds, i) < rule_tensor_get(bounds, i - 1)) return false;
  for (int64_t i = 0; i < bind[0]->numel; i++)
    for (int64_t k = 0; k < bind[1]->numel; k++)
      if (rule_tensor_get(bind[0], i) == rule_tensor_get(bind[1], k)) return true;
  return false;
}

static bool at_jump(jump j, const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  val_operands o;
  if (j == AT_BOUNDARY) return n < 2 || at_boundary(one_of(call->u.s, (const char *const[]){"bucketize"}, 1) ? bind[1] : bind[0], bind);
  if (!val_operands_of(call, bind, n, out, &o)) return true; /* not looked at */
  for (int64_t i = 0; i < out->numel; i++)
    if (jumps_here(j, val_operand(&o, 0, i), o.two ? val_operand(&o, 1, i) : 0)) return true;
  return false;
}

/* Out of the range of the integers to which floats are cast. */
static bool out_of_range(const rule_tensor *self, rule_dtype to) {
  const double limit = ldexp(1, to == RULE_U8 ? 8 : (int)(8 * rule_dtype_size(to)) - 1);
  for (int64_t i = 0; i < self->numel; i++)
    if (fabs(rule_tensor_get(self, i)) > limit) return true;
  return false;
}

uint64_t val_term_hash(const rule_term *t, uint64_t seed) {
  uint64_t h = iso_hash(&t->kind, sizeof t->kind, seed);
  if (t->kind == RULE_OP || t->kind == RULE_STRING || t->kind == RULE_NAME || t->kind == RULE_EXPR) h = iso_hash(t->u.s, strlen(t->u.s), h);
  else if (t->kind != RULE_LIST) h = iso_hash(&t->u.i, sizeof t->u.i, h);
  for (uint32_t i = 0; i < t->n; i++) h = val_term_hash(t->child[i], h);
  return h;
}

/* What a jump has to be seen to do, and what it did. */
static void note_jump(val_covered *c, const rule_term *term, const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  for (uint32_t i = 0; i < call->n; i++)
    if (mask_literal(call->child[i])) return;
  const jump j = out->numel ? jump_of(call, bind, n, out) : NO_JUMP;
  if (j == NO_JUMP || !varies(term)) return;
  c->need |= EDGE;
  if (at_jump(j, call, bind, n, out)) c->seen |= EDGE;
  if (j != AT_INTEGER || !rule_dtype_is_int(out->dtype)) return;
  c->need |= FAR;
  if (out_of_range(bind[0], out->dtype)) c->seen |= FAR;
}

void val_cover_note(val_cover *c, const rule_term *term, const rule_term *call, rule_tensor *const *bind, size_t n, const rule_tensor *out) {
  const size_t at = c->n++;
  if (at >= VAL_COVER) return;
  const uint16_t need = needs(call, bind, n, out);
  snprintf(c->op[at].name, sizeof c->op[at].name, "%s", call->u.s);
  c->op[at].term = val_term_hash(term, 0);
  note_jump(&c->op[at], term, call, bind, n, out);
  if (!need || !varies(term) || ((need & (UP | DOWN)) && term->n && places(term->child[0]))) return;
  c->op[at].need |= need;
  c->op[at].seen |= taken(need, bind[0], out);
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

/* How many operators named `name` lack what `bits` say; `same`: of one term, 0: of any. */
static size_t count_lacking(const val_cover *c, const char *name, uint64_t same, uint16_t bits) {
  size_t k = 0;
  for (size_t i = 0; i < c->n && i < VAL_COVER; i++)
    k += strcmp(c->op[i].name, name) == 0 && (!same || c->op[i].term == same) && (c->op[i].need & ~c->op[i].seen & bits);
  return k;
}

static const char *gap_of(const val_cover *c, const val_cover *other) {
  for (size_t i = 0; i < c->n && i < VAL_COVER; i++) {
    const val_covered *o = &c->op[i];
    uint16_t lacks = o->need & (uint16_t)~o->seen;
    if ((lacks & EDGE) && count_lacking(other, o->name, o->term, EDGE)) lacks &= (uint16_t)~EDGE;
    if ((lacks & FAR) && count_lacking(c, o->name, 0, FAR) == count_lacking(other, o->name, 0, FAR)) lacks &= (uint16_t)~FAR;
    if (lacks) return o->name;
  }
  return NULL;
}

static bool alone(const val_cover *c, const val_cover *other) {
  for (size_t i = 0; i < c->n && i < VAL_COVER; i++) {
    bool shared = !(c->op[i].need & EDGE);
    for (size_t k = 0; k < other->n && k < VAL_COVER && !shared; k++) shared = other->op[k].term == c->op[i].term;
    if (!shared) return true;
  }
  return false;
}

bool val_cover_jumps(const val_cover *left, const val_cover *right) { return alone(left, right) || alone(right, left); }

const char *val_cover_gap(const val_cover *left, const val_cover *right) {
  const char *name = gap_of(left, right);
  return name ? name : gap_of(right, left);
}
