/* Different integers as places in an order. */
#include "rules/permutation.h"
#include "rules/names.h"

bool rule_domain_permutes(const rule_domain *d, rule_dtype dtype) {
  enum { MOST = 4096 };
  return rule_dtype_is_int(dtype) && d->distinct && !d->sorted && !d->mask && d->n_exclude == 0 &&
         d->high - d->low < MOST;
}

int64_t rule_domain_span(const rule_domain *d) { return (int64_t)(d->high - d->low) + 1; }

/* Calls one behind another, until one fails. */
typedef struct chain {
  iso_arena *a;
  rule_schemas *s;
  iso_code c;
  iso_error *err;
} chain;

static const rule_term *call(chain *x, const char *op, const rule_term *const *arg, size_t n) {
  const rule_term *t = NULL;
  for (size_t i = 0; i < n && !x->c; i++)
    if (!arg[i]) x->c = iso_fail(x->err, ISO_NOMEM, "out of memory");
  if (!x->c) x->c = rule_call(x->a, x->s, op, arg, n, &t, x->err);
  return x->c ? NULL : t;
}

static const rule_term *integer(chain *x, int64_t i) { return x->c ? NULL : rule_int(x->a, i); }

static int64_t count(const rule_shape *shape) {
  int64_t n = 1;
  for (uint32_t d = 0; d < shape->rank; d++) n *= shape->dim[d];
  return n;
}

static const rule_term *in_shape(chain *x, const rule_term *t, const rule_shape *to) {
  const rule_term *size[RULE_MAX_RANK];
  for (uint32_t d = 0; d < to->rank; d++)
    if (!(size[d] = integer(x, to->dim[d])))
      return call(x, OP_RESHAPE, (const rule_term *[]){NULL}, 1);
  return call(x, OP_RESHAPE, (const rule_term *[]){t, rule_list(x->a, size, to->rank)}, 2);
}

static const rule_term *moved(chain *x, const rule_term *t, int64_t by) {
  const rule_term *arg[] = {t, integer(x, by), integer(x, 1)};
  return by == 0 ? t : call(x, OP_ADD_SCALAR, arg, 3);
}

/* from, from + 1, ..., to - 1, as floating numbers. */
static const rule_term *steps(chain *x, int64_t from, int64_t to) {
  const rule_term *arg[] = {integer(x, from), integer(x, to), rule_dtype_term(x->a, RULE_F64)};
  return call(x, OP_ARANGE_START, arg, 3);
}

iso_code rule_places(iso_arena *a, rule_schemas *s, const rule_domain *d, const rule_shape *shape,
                     const rule_term *w, const rule_term **out, iso_error *err) {
  chain x = {a, s, ISO_OK, err};
  const rule_term *t =
      call(&x, OP_ARGSORT, (const rule_term *[]){w, integer(&x, 0), rule_bool(a, false)}, 3);
  const rule_term *first[] = {t, integer(&x, 0), integer(&x, 0), integer(&x, count(shape)),
                              integer(&x, 1)};
  t = call(&x, OP_SLICE_TENSOR, first, 5);
  t = moved(&x, t, (int64_t)d->low);
  *out = shape->rank == 1 ? t : in_shape(&x, t, shape);
  return x.c;
}

iso_code rule_order(iso_arena *a, rule_schemas *s, const rule_domain *d, const rule_shape *shape,
                    const rule_term *input, const rule_term **out, iso_error *err) {
  chain x = {a, s, ISO_OK, err};
  const int64_t n = count(shape);
  const rule_shape flat = {.rank = 1, .dim = {n}};
  const rule_term *at = shape->rank == 1 ? input : in_shape(&x, input, &flat);
  at = moved(&x, at, -(int64_t)d->low);
  const rule_term *arg[] = {steps(&x, 1, rule_domain_span(d) + 1), integer(&x, 0), at,
                            steps(&x, -n, 0)};
  *out = call(&x, OP_SCATTER_SRC, arg, 4);
  return x.c;
}
