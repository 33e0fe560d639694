/* Operators that find places in a row by comparing its numbers. Where numbers are equal they jump:
 * another place would have done as well. Some say which one they take (the first, or in the order
 * that was there), and there a tie tells two of them apart as any other sample does. The others
 * leave it open, and their choice in a tie shows nothing. */
#include <math.h>
#include <string.h>

#include "validate/branch/choice_int.h"
#include "rules/operators.h"

static bool named(const rule_term *call, const char *name) {
  char buf[64];
  return strcmp(val_base_name(call->u.s, buf), name) == 0;
}

bool val_finds_places(const rule_term *call) {
  const rule_operator *o = rule_operator_of(call->u.s);
  return o->choice == RULE_CHOICE_ORDER || (o->choice == RULE_CHOICE_EXTREME && o->places_too);
}

size_t val_shown_result(const rule_term *call, rule_tensor *const *out, size_t n_out) {
  return n_out > 1 && rule_dtype_is_int(out[1]->dtype) && val_finds_places(call) ? 1 : 0;
}

bool val_reads_result(const rule_term *side, const rule_term *term, size_t k) {
  if (k == 0 || (rule_is_getitem(side->kind == RULE_OP ? side->u.s : "") &&
                 side->child[0] == term && side->child[1]->u.i == (int64_t)k))
    return true;
  for (uint32_t i = 0; i < side->n; i++)
    if (val_reads_result(side->child[i], term, k)) return true;
  return false;
}

bool val_leaves_ties_open(const rule_term *call, rule_tensor *const *out, size_t n_out) {
  if (!val_finds_places(call) || !rule_leaves_ties(call) || n_out == 0) return false;
  const rule_tensor *x = out[val_shown_result(call, out, n_out)];
  return rule_dtype_is_int(x->dtype);
}

/* The first integer behind the tensor that is no count of places. */
static int64_t dimension(const rule_term *call) {
  const uint32_t axis = rule_operator_of(call->u.s)->axis;
  for (uint32_t k = axis ? axis : 1; k < call->n; k++)
    if (call->child[k]->kind == RULE_INT) return call->child[k]->u.i;
  return -1;
}

static bool of_all(const rule_term *call) {
  return rule_operator_of(call->u.s)->places && (call->n == 1 || call->child[1]->kind == RULE_NONE);
}

static bool dimension_of(const rule_term *call, const rule_tensor *x, uint32_t *d) {
  int64_t dim = dimension(call);
  if (of_all(call)) return false;
  if (dim < 0) dim += x->shape.rank;
  *d = (uint32_t)dim;
  return dim >= 0 && dim < x->shape.rank;
}

bool val_orders_places(const rule_term *term) {
  const rule_term *x = term->n ? term->child[0] : NULL;
  if (!x || x->kind != RULE_OP || of_all(term)) return false;
  const bool second = rule_is_getitem(x->u.s);
  if (second && x->child[1]->u.i != 1) return false;
  if (second) x = x->child[0];
  return named(x, second ? "sort" : "argsort") && dimension(x) == dimension(term);
}

/* A row of `n` numbers of x. */
typedef struct row {
  const rule_tensor *x;
  int64_t first, stride, n;
} row;

/* That result `i` stands for a place of. Returns: false where the result is of another form. */
static bool row_of(const val_site *s, int64_t i, row *r) {
  const rule_term *t = s->call->n ? s->call->child[0] : NULL;
  uint32_t d;
  if (!t || t->kind != RULE_VAR || (size_t)t->u.i >= s->n) return false;
  if (!rule_is_aten(s->call->u.s) || strstr(s->call->u.s, "pool")) return false;
  const rule_tensor *x = s->bind[t->u.i];
  *r = (row){x, 0, 1, x->numel};
  if (s->out->numel == 1 && of_all(s->call)) return true;
  if (rule_dtype_is_complex(x->dtype) || !dimension_of(s->call, x, &d)) return false;
  const bool kept = s->out->shape.rank == x->shape.rank;
  if (!kept && s->out->shape.rank + 1 != x->shape.rank) return false;
  int64_t stride = 1;
  for (uint32_t k = x->shape.rank; k-- > 0; stride *= x->shape.dim[k]) {
    const uint32_t at = kept || k < d ? k : k - 1;
    if (k == d) {
      r->stride = stride, r->n = x->shape.dim[k];
      if (!kept) continue;
    }
    if (k != d && s->out->shape.dim[at] != x->shape.dim[k]) return false;
    if (k != d) r->first += i % s->out->shape.dim[at] * stride;
    i /= s->out->shape.dim[at];
  }
  return true;
}

static double at(const row *r, int64_t k) {
  return rule_tensor_get(r->x, r->first + k * r->stride);
}

/* The next place, in a circle, that has the same number. */
static bool next_equal(const row *r, int64_t y, int64_t *other) {
  for (int64_t k = 1; k < r->n; k++)
    if (at(r, (y + k) % r->n) == at(r, y)) return *other = (y + k) % r->n, true;
  return false;
}

bool val_order_slip(const val_site *s, uint16_t bit, int64_t i, double *other) {
  row r;
  int64_t k = 0;
  if (!row_of(s, i, &r)) return false;
  const int64_t y = rule_tensor_get_int(s->out, i);
  if (y < 0 || y >= r.n || r.n < 2) return false;
  if (bit == VAL_SOME) return *other = (double)((y + 1) % r.n), true;
  if (bit != VAL_EDGE || !next_equal(&r, y, &k)) return false;
  return *other = (double)k, true;
}

uint16_t val_order_needs(const val_site *s, uint16_t *wanted) {
  row r;
  if (!row_of(s, 0, &r) || r.n < 2) return 0;
  *wanted = VAL_SOME;
  return VAL_EDGE;
}

double val_order_distance(const val_site *s, int64_t i, uint64_t pick) {
  row r;
  if (i >= s->out->numel || !row_of(s, i, &r) || r.n < 2) return (double)NAN;
  const uint64_t n = (uint64_t)r.n;
  return at(&r, (int64_t)(pick % n)) - at(&r, (int64_t)((pick % n + 1 + pick / n % (n - 1)) % n));
}
