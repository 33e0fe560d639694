/* Integer types that are not int64. The definitions are of integers without end; a result in a
 * narrow type wraps (validate/expr/wrap.c), or, where integers are taken as whole numbers, is
 * theirs only where each of its elements fits; and it equals nothing of another type. */
#include <string.h>

#include "rules/operators.h"
#include "validate/ops/ops.h"

static const int64_t most[] = {
    [RULE_I32] = INT32_MAX, [RULE_I16] = INT16_MAX, [RULE_I8] = INT8_MAX, [RULE_U8] = UINT8_MAX};
static int64_t least(rule_dtype d) { return d == RULE_U8 ? 0 : -most[d] - 1; }

static sx fitting_end(sc *c, sx x, const void *ctx) {
  const rule_dtype d = *(const rule_dtype *)ctx;
  if (!sx_never_negative(c, sx_sub(c, sx_int(c, most[d]), x)) ||
      !sx_never_negative(c, sx_sub(c, x, sx_int(c, least(d)))))
    sc_fail(c, "an integer that may not fit into %s", rule_dtype_name(d));
  return x;
}

sx pt_fitting(sc *c, sx x, rule_dtype d) {
  return d == RULE_I64 ? x : sx_lift(c, x, fitting_end, &d);
}

static sx typed_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const rule_dtype d = (rule_dtype)t->which;
  const sx x = pt_at(c, t->in[0], idx);
  return c->reading.machine ? sx_wrap(c, x, d) : pt_fitting(c, x, d);
}

static rule_dtype type_of(const pt_tensor *t) {
  return t->narrow ? (rule_dtype)t->narrow : RULE_I64;
}

const pt_tensor *pt_typed(sc *c, const pt_tensor *t, rule_dtype d) {
  if (!t || t->kind != 'i' || type_of(t) == d) return t;
  pt_tensor *r = pt_like(c, t, 'i', typed_elem);
  if (!r) return NULL;
  r->which = (int)d;
  r->narrow = d == RULE_I64 ? 0 : (uint8_t)d;
  c->reading.narrow |= d != RULE_I64;
  return r;
}

/* The integers among a call's tensors: types are numbered from the widest on. */
typedef struct operands {
  rule_dtype type;  /* that they promote to */
  bool some, mixed; /* of several types */
  bool byte;        /* some are of 8 bits without sign */
  unsigned ranks;   /* bit 0: a number in a tensor is among them, bit 1: others */
  sx number[8];     /* plain ones */
  size_t n_numbers;
} operands;

static rule_dtype promoted(rule_dtype a, rule_dtype b) {
  const bool signs = (a == RULE_U8) != (b == RULE_U8) && (a == RULE_I8 || b == RULE_I8);
  return signs ? RULE_I16 : a < b ? a : b;
}

static void note_tensor(operands *o, const pt_tensor *t) {
  if (!t || t->kind != 'i') return;
  if (t->wrapped) {
    if (o->n_numbers < 8) o->number[o->n_numbers++] = t->p[0];
    else o->mixed = true;
    return;
  }
  const rule_dtype d = type_of(t);
  o->mixed |= o->some && d != o->type;
  o->type = o->some ? promoted(o->type, d) : d;
  o->byte |= d == RULE_U8;
  o->ranks |= t->rank || t->lead ? 2 : 1;
  o->some = true;
}

static void note_operands(sc *c, const rule_term *t, operands *o) {
  for (uint32_t i = 0; i < t->n && !c->fault.failed; i++) {
    const rule_term *x = t->child[i];
    if (x->kind == RULE_LIST) {
      note_operands(c, x, o);
    } else if (x->kind == RULE_OP || x->kind == RULE_VAR) {
      const pt_value *v = pt_eval(c, x);
      if (v && v->base) note_tensor(o, v->base);
      for (size_t k = 0; v && v->t && k < v->n; k++) note_tensor(o, v->t[k]);
    }
  }
}

/* Numbers beside tensors take the tensors' type. */
static void note_numbers(pt_args *a, operands *o) {
  for (size_t i = 0; i < a->schema->n_args; i++) {
    const rule_term *x = a->t->child[i];
    const bool plain = x->kind == RULE_INT || x->kind == RULE_NAME || x->kind == RULE_EXPR;
    if (plain &&
        (a->schema->arg[i].type == RULE_ARG_TENSOR || a->schema->arg[i].type == RULE_ARG_SCALAR))
      note_tensor(o, pt_eval_tensor(a->c, x));
  }
  for (size_t i = 0; i < o->n_numbers && o->type != RULE_I64 && !a->c->fault.failed; i++)
    (void)fitting_end(a->c, o->number[i], &o->type);
}

/* The type of the first integers of a call's results, where these are of one type with its operands
 * or int64; of the others, where it has such, see below. */
static bool type_of_call(pt_args *a, const operands *o, rule_dtype *out) {
  const rule_operator *facts = rule_operator_of(a->t->u.s);
  const bool elementwise = facts->elementwise || facts->identity || facts->cast;
  const bool among =
      facts->exact && (facts->choice == RULE_CHOICE_EXTREME || facts->choice == RULE_CHOICE_ORDER);
  if (pt_arg_dtype(a, "dtype", out)) return rule_dtype_is_int(*out);
  *out = RULE_I64;
  if (!o->some || (o->type == RULE_I64 && !o->mixed) || facts->widens || facts->places) return true;
  /* A number in a tensor gives way to tensors with dimensions. */
  if (o->mixed && (o->ranks == 3 || !elementwise)) return false;
  *out = o->type;
  return elementwise || among || facts->moves || facts->collective ||
         (facts->growth == RULE_GROWS_CONTRACTION && !o->mixed);
}

static bool has_integers(const pt_value *v) {
  bool some = v->base && v->base->kind == 'i';
  for (size_t i = 0; v->t && i < v->n; i++) some |= v->t[i]->kind == 'i';
  return some;
}

const pt_value *pt_typed_results(pt_args *a, const pt_value *v) {
  sc *c = a->c;
  operands o = {.type = RULE_I64};
  rule_dtype d;
  if (pt_arg_dtype(a, "dtype", &d) && rule_dtype_is_int(d) && d != RULE_I64)
    c->reading.narrow = true;
  if (!c->reading.narrow) return v;
  note_operands(c, a->t, &o);
  note_numbers(a, &o);
  const rule_operator *facts = rule_operator_of(a->t->u.s);
  const bool logic =
      facts->reduces && facts->choice == RULE_CHOICE_LOGIC; /* of bytes they are bytes */
  if (!has_integers(v) && !(logic && o.byte)) return v;
  if (logic || !type_of_call(a, &o, &d)) {
    sc_fail(c, "integers of a narrow type in %s", a->t->u.s);
    return NULL;
  }
  /* Of several results the first has the numbers' type, the others are places; but for pieces and
   * the ranks' results, which are all alike. */
  const bool alike = facts->moves || facts->collective;
  pt_value *r = sc_take(c, sizeof *r);
  const pt_tensor **t = v->t ? sc_take(c, (v->n + 1) * sizeof *t) : NULL;
  if (!r || (v->t && !t)) return NULL;
  *r = *v;
  r->t = t;
  if (v->base) r->base = pt_typed(c, v->base, d);
  for (size_t i = 0; v->t && i < v->n; i++)
    t[i] = pt_typed(c, v->t[i], i == 0 || alike ? d : RULE_I64);
  return r;
}
