/* Masks that are read as minus infinity stay masks at other sizes only where each row that they
 * stand in keeps an element there, too. Shown is more than that, and simpler: no mask hides the
 * diagonal of its last two dimensions, which are as long as each other.
 *
 * A constant with masks is shown to be itself with zeros on the diagonal, a condition by which
 * masks are written to leave the diagonal out. From there masks go through operators that leave
 * them in their places, and end in a softmax of the last dimension or in an attention's mask. */
#include <stdlib.h>
#include <string.h>

#include "check/sizes/sizes_int.h"
#include "rules/operators.h"

typedef enum shown { NOT_ASKED, KEPT, NOT_SHOWN } shown;

typedef struct following {
  chk_chain *z;
  shown *of;      /* by term */
  bool *constant; /* by captured term */
} following;

/* The size of a term's last two dimensions. Returns: NULL where they are not one. */
static const chk_sum *square(const chk_chain *z, uint32_t t) {
  const chk_dims *d = chk_dims_of(z, t);
  const bool is = d && d->rank >= 2 && chk_sum_equal(&d->of[d->rank - 1], &d->of[d->rank - 2]);
  return is ? &d->of[d->rank - 1] : NULL;
}

/* Of any term that is equal to `t`. */
static iso_code diagonal(chk_chain *z, uint32_t t, bool number, bool complement, bool *yes) {
  const uint32_t root = chk_chain_root(z, t);
  const chk_sum *size = square(z, t);
  iso_code c = ISO_OK;
  *yes = false;
  for (uint32_t i = (uint32_t)z->k->n_terms; size && i-- > 0 && !c && !*yes;)
    if (chk_chain_root(z, i) == root && z->sized[i] && (!z->k->term[i].node || i == t))
      c = chk_chain_diagonal(z, i, size, number, complement, yes);
  return c;
}

static bool constants_only(const following *f, const rule_term *t) {
  if (t->kind == RULE_VAR) return f->constant[t->u.i];
  for (uint32_t i = 0; i < t->n; i++)
    if (!constants_only(f, t->child[i])) return false;
  return true;
}

/* Whether a captured term depends on no input and no floating parameter. */
static bool is_constant(const following *f, uint32_t t) {
  const chk_state *k = f->z->k;
  const cap_node *n = k->term[t].node;
  if (k->mask.unread[t]) return constants_only(f, k->mask.unread[t]);
  if (n->kind == CAP_INPUT || k->here.unpinned[t]) return false;
  return n->kind != CAP_PARAMETER || !rule_dtype_is_inexact(n->value->dtype);
}

static iso_code follow(following *f, uint32_t t, bool *fine);

/* Every argument with masks keeps its diagonal, and is a square of this size. */
static iso_code arguments(following *f, const rule_term *t, const chk_sum *size, bool *fine) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR && chk_masked(f->z->k, (uint32_t)t->u.i)) {
    const chk_sum *own = square(f->z, (uint32_t)t->u.i);
    *fine &= own && size && chk_sum_equal(own, size);
    return *fine ? follow(f, (uint32_t)t->u.i, fine) : ISO_OK;
  }
  for (uint32_t i = 0; i < t->n && !c && *fine; i++) c = arguments(f, t->child[i], size, fine);
  return c;
}

/* operator: where the condition stands, and which of its sides is the mask.
 * The condition by which a call writes masks; NULL: it writes none so. */
static const rule_term *condition_of(const rule_term *call, bool *complement) {
  const bool fill = strcmp(call->u.s, "aten::masked_fill.Scalar") == 0,
             self = strcmp(call->u.s, "aten::where.ScalarSelf") == 0;
  *complement = strcmp(call->u.s, "aten::where.ScalarOther") == 0;
  const rule_term *by = fill ? call->child[1] : self || *complement ? call->child[0] : NULL;
  return by && by->kind == RULE_VAR ? by : NULL;
}

/* A call that has masks in it, of which its arguments have some or it writes them itself. */
static iso_code follow_call(following *f, uint32_t t, bool *fine) {
  chk_chain *z = f->z;
  const rule_term *given = z->k->mask.unread[t];
  const chk_sum *size = square(z, t);
  bool complement;
  iso_code c = ISO_OK;
  if (given == z->k->term[t].call) *fine = rule_keeps_places(given->u.s);
  else {
    const rule_term *by = condition_of(given, &complement);
    const chk_sum *own = by ? square(z, (uint32_t)by->u.i) : NULL;
    *fine = own && size && chk_sum_equal(own, size);
    if (*fine) c = diagonal(z, (uint32_t)by->u.i, false, complement, fine);
  }
  return !c && *fine ? arguments(f, given, size, fine) : c;
}

static iso_code follow(following *f, uint32_t t, bool *fine) {
  chk_state *k = f->z->k;
  bool mine = true;
  iso_code c = ISO_OK;
  if (f->of[t] != NOT_ASKED) return *fine &= f->of[t] == KEPT, ISO_OK;
  f->of[t] = NOT_SHOWN;
  if (chk_mask_source(k, t) || !k->term[t].call) mine = false;
  else if (f->constant[t]) c = diagonal(f->z, t, true, false, &mine);
  else c = follow_call(f, t, &mine);
  if (!c && mine) f->of[t] = KEPT;
  *fine &= mine;
  return c;
}

static bool has_masks(chk_state *k, const rule_term *t, uint32_t *which) {
  if (t->kind == RULE_VAR) return *which = (uint32_t)t->u.i, chk_masked(k, *which);
  for (uint32_t i = 0; i < t->n; i++)
    if (has_masks(k, t->child[i], which)) return true;
  return false;
}

/* Whether masks vanish in a call: everywhere, or in rows of the last dimension. */
static bool ends(chk_state *k, const rule_term *call) {
  const rule_mask_op *how = rule_mask_op_of(call->u.s);
  if (!how) return false;
  if (how->role == RULE_MASK_ALL) return true;
  if (how->role != RULE_MASK_ROWS && how->role != RULE_MASK_REDUCED) return false;
  const rule_term *dim = how->dim ? call->child[how->dim] : NULL;
  for (uint32_t i = 0; dim && i < call->n; i++) {
    const rule_term *x = call->child[i];
    if (x->kind != RULE_VAR || !chk_masked(k, (uint32_t)x->u.i)) continue;
    const rule_term *d = dim->kind == RULE_LIST && dim->n == 1 ? dim->child[0] : dim;
    const uint32_t rank = k->term[x->u.i].node->output[0].shape.rank;
    if (d->kind != RULE_INT || d->u.i != (int64_t)rank - 1) return false;
  }
  return true;
}

iso_code chk_chain_masks(chk_chain *z, bool *kept, const char **where) {
  chk_state *k = z->k;
  iso_code c = ISO_OK;
  *kept = true;
  if (!k->mask.found) return ISO_OK;
  following f = {z, calloc(k->n_terms + 1, sizeof *f.of), calloc(k->n_terms + 1, 1)};
  if (!f.of || !f.constant) c = chk_nomem(k);
  for (uint32_t t = 0; !c && t < k->n_terms && k->term[t].node; t++)
    f.constant[t] = is_constant(&f, t);
  for (uint32_t t = 0; t < k->n_terms && !c && *kept; t++) {
    const chk_term *x = &k->term[t];
    uint32_t with;
    if (!x->node || !x->call || !chk_is_live(k, t) || chk_masked(k, t)) continue;
    if (!has_masks(k, k->mask.unread[t], &with)) continue;
    const chk_sum *size = square(z, with);
    *kept = size && ends(k, k->mask.unread[t]);
    if (*kept) c = arguments(&f, k->mask.unread[t], size, kept);
    if (!*kept) *where = x->node->id;
  }
  free(f.of);
  free(f.constant);
  return c;
}
