/* Terms with their sizes: a captured call has the capture's, and the certificate's own calls those
 * that it gives. Names are the left's symbols. */
#include <string.h>

#include "check/sizes/sizes_int.h"
#include "rules/operators.h"

bool chk_is_size(const rule_term *t) {
  return t->kind == RULE_INT || t->kind == RULE_NAME || t->kind == RULE_EXPR;
}

static const chk_sum *symbol_of(const void *ctx, const char *name) {
  const chk_chain *z = ctx;
  const cap_graph *g = z->k->graph[LEFT];
  for (size_t i = 0; i < g->n_symbols; i++)
    if (strcmp(g->symbol[i].name, name) == 0) return &z->symbol[i];
  return NULL;
}

bool chk_size_of(chk_chain *z, const rule_term *t, chk_sum *out) {
  const chk_meaning names = {symbol_of, z};
  return chk_is_size(t) && chk_sum_read(&z->atoms, t, &names, out);
}

const chk_dims *chk_dims_of(const chk_chain *z, uint32_t t) {
  const chk_dims *d = &z->dim[chk_chain_root(z, t)];
  return d->of ? d : NULL;
}

bool chk_chain_join(chk_chain *z, uint32_t a, uint32_t b) {
  a = chk_chain_root(z, a), b = chk_chain_root(z, b);
  const chk_dims *x = &z->dim[a], *y = &z->dim[b];
  bool same = !x->of || !y->of || x->rank == y->rank;
  for (uint32_t d = 0; x->of && y->of && same && d < x->rank; d++)
    same = chk_sum_equal(&x->of[d], &y->of[d]);
  if (!same) return z->wrong = "their shapes differ at other sizes", false;
  if (!y->of) z->dim[b] = *x;
  z->up[a] = b;
  return true;
}

bool chk_chain_alike(chk_chain *z, const rule_term *a, const rule_term *b, bool loose) {
  chk_sum x, y;
  if (a->kind == RULE_VAR && b->kind == RULE_VAR)
    return chk_chain_root(z, (uint32_t)a->u.i) == chk_chain_root(z, (uint32_t)b->u.i);
  if (chk_is_size(a) && chk_is_size(b))
    return chk_size_of(z, a, &x) && chk_size_of(z, b, &y) && chk_sum_equal(&x, &y);
  if (a->kind != b->kind || a->n != b->n) return false;
  if (a->kind == RULE_FLOAT && loose) return true;
  if (a->kind != RULE_OP && a->kind != RULE_LIST) return rule_term_eq(a, b);
  if (a->kind == RULE_OP && strcmp(a->u.s, b->u.s) != 0) return false;
  for (uint32_t i = 0; i < a->n; i++)
    if (!chk_chain_alike(z, a->child[i], b->child[i], loose)) return false;
  return true;
}

/* ---- symbols ---- */

/* A size of a side over the left's symbols. Returns: NULL where one of its symbols is not known. */
static const rule_term *over_left(chk_chain *z, int side, const rule_term *t) {
  const cap_graph *g = z->k->graph[side];
  if (side == LEFT || t->kind == RULE_INT) return t;
  if (t->kind == RULE_NAME) {
    for (size_t i = 0; i < g->n_symbols; i++)
      if (strcmp(g->symbol[i].name, t->u.s) == 0) return z->right[i];
    return NULL;
  }
  const rule_term **child = iso_arena_alloc(z->k->arena, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = over_left(z, side, t->child[i]))) return NULL;
  return child ? rule_expr(z->k->arena, t->u.s, child, t->n) : NULL;
}

static bool within(const cap_symbol *claimed, const cap_symbol *admitted) {
  return claimed->min >= admitted->min && claimed->max <= admitted->max;
}

/* The left's symbol `left` is the right's `i`: the claimed range must be admitted there, too. */
static iso_code meet(chk_chain *z, size_t left, size_t i) {
  const cap_symbol *claimed = &z->k->cert.sizes->symbol[left], *s = &z->k->graph[RIGHT]->symbol[i];
  if (!(z->right[i] = rule_name(z->k->arena, claimed->name))) return chk_nomem(z->k);
  return within(claimed, s)
             ? ISO_OK
             : chk_settle(z->k, CHK_REFUSED,
                          "its scope is more than the right capture admits of %s", s->name);
}

static iso_code read_symbols(chk_chain *z) {
  chk_state *k = z->k;
  const cap_graph *l = k->graph[LEFT], *r = k->graph[RIGHT];
  iso_code c = ISO_OK;
  if (k->cert.sizes->n_symbols != l->n_symbols)
    return chk_settle(k, CHK_REFUSED, "its scope does not speak of the left capture's symbols");
  for (size_t i = 0; i < l->n_symbols; i++) {
    const cap_symbol *s = &k->cert.sizes->symbol[i];
    if (strcmp(s->name, l->symbol[i].name) != 0)
      return chk_settle(k, CHK_REFUSED, "its scope does not speak of the left capture's symbols");
    if (!within(s, &l->symbol[i]) || s->min > s->max)
      return chk_settle(k, CHK_REFUSED, "its scope is more than the left capture admits of %s",
                        s->name);
    if (!chk_atom_symbol(&z->atoms, s->name, s->min, s->max, &z->symbol[i]))
      return chk_settle(k, CHK_REFUSED, "its scope has too many symbols");
  }
  for (size_t i = 0; i < r->n_symbols && !c; i++)
    for (size_t j = 0; j < l->n_symbols && !c; j++)
      if (strcmp(r->symbol[i].name, l->symbol[j].name) == 0) c = meet(z, j, i);
  return c;
}

/* A symbol of the right that has no namesake equals the same dimension of the same input on the
 * left. */
static iso_code name_by_inputs(chk_chain *z) {
  const chk_state *k = z->k;
  const cap_graph *l = k->graph[LEFT], *r = k->graph[RIGHT];
  iso_code c = ISO_OK;
  for (size_t s = 0; s < k->cert.n_steps && !c; s++) {
    const chk_term *a = &k->term[k->cert.step[s].a], *b = &k->term[k->cert.step[s].b];
    if (k->cert.step[s].kind != CHK_LEAF || a->call || b->call || a->side == b->side) continue;
    const cap_node *x = a->side == LEFT ? a->node : b->node,
                   *y = a->side == LEFT ? b->node : a->node;
    const uint32_t rank = x->output[0].shape.rank;
    for (uint32_t d = 0; x->dim && y->dim && d < rank && y->output[0].shape.rank == rank; d++)
      for (size_t i = 0; i < r->n_symbols && !c; i++)
        for (size_t j = 0; j < l->n_symbols && !c; j++)
          if (!z->right[i] && y->dim[d]->kind == RULE_NAME && x->dim[d]->kind == RULE_NAME &&
              strcmp(y->dim[d]->u.s, r->symbol[i].name) == 0 &&
              strcmp(x->dim[d]->u.s, l->symbol[j].name) == 0)
            c = meet(z, j, i);
  }
  return c;
}

/* ---- calls ---- */

static const rule_term *with(chk_chain *z, const rule_term *t, const rule_term *const *child) {
  return t->kind == RULE_OP ? rule_op(z->k->arena, t->u.s, child, t->n)
                            : rule_list(z->k->arena, child, t->n);
}

/* A captured call as it is read, over terms, with the sizes that the capture writes. */
static const rule_term *written(chk_chain *z, int side, const rule_term *read,
                                const rule_term *sized) {
  if (read->kind == RULE_INT) return chk_is_size(sized) ? over_left(z, side, sized) : NULL;
  if (sized->kind == RULE_NAME || sized->kind == RULE_EXPR) return NULL; /* a float of a size */
  if (read->kind != RULE_OP && read->kind != RULE_LIST) return read;
  if (sized->kind != read->kind || sized->n != read->n ||
      (read->kind == RULE_OP && strcmp(read->u.s, sized->u.s) != 0))
    return NULL;
  const rule_term **child = iso_arena_alloc(z->k->arena, (read->n + 1) * sizeof *child);
  for (uint32_t i = 0; child && i < read->n; i++)
    if (!(child[i] = written(z, side, read->child[i], sized->child[i]))) return NULL;
  return child ? with(z, read, child) : NULL;
}

/* Whether a view has the sizes that its call asks for: else it is none at other sizes. */
static bool has_its_sizes(chk_chain *z, uint32_t t) {
  const rule_term *call = z->sized[t];
  const chk_dims *d = &z->dim[t];
  if (!rule_operator_of(call->u.s)->sizes || call->n < 2 || call->child[1]->kind != RULE_LIST)
    return true;
  bool same = d->of && d->rank == call->child[1]->n;
  chk_sum x;
  for (uint32_t i = 0; same && i < d->rank; i++)
    same = chk_size_of(z, call->child[1]->child[i], &x) && chk_sum_equal(&x, &d->of[i]);
  return same;
}

static iso_code read_dims(chk_chain *z, uint32_t t) {
  const chk_term *x = &z->k->term[t];
  const cap_node *n = x->node;
  const uint32_t rank = n->n_outputs ? n->output[0].shape.rank : 0;
  chk_sum *of = iso_arena_alloc(z->k->arena, (rank + 1) * sizeof *of);
  if (!of) return chk_nomem(z->k);
  if (!n->dim || n->n_outputs != 1) return ISO_OK;
  for (uint32_t d = 0; d < rank; d++) {
    const rule_term *size = over_left(z, x->side, n->dim[d]);
    if (!size || !chk_size_of(z, size, &of[d])) return ISO_OK;
  }
  z->dim[t] = (chk_dims){of, rank};
  return ISO_OK;
}

static iso_code read_captured(chk_chain *z, uint32_t t) {
  const chk_term *x = &z->k->term[t];
  const iso_code c = read_dims(z, t);
  if (c || !x->call || !x->node->sized) return c;
  z->sized[t] = written(z, x->side, x->call, x->node->sized);
  if (z->sized[t] && !has_its_sizes(z, t)) z->sized[t] = NULL;
  return ISO_OK;
}

static bool captured_size(const chk_chain *z, const chk_sum *s, int64_t *out) {
  const cap_graph *g = z->k->graph[LEFT];
  int64_t value[CHK_ATOMS] = {0};
  for (size_t i = 0; i < g->n_symbols && i < CHK_ATOMS; i++) value[i] = g->symbol[i].value;
  return chk_sum_at(&z->atoms, s, value, out);
}

/* Whether the call with sizes is the one that the certificate has, at the captured sizes. */
bool chk_chain_is_captured(chk_chain *z, const rule_term *sized, const rule_term *call) {
  chk_sum s;
  int64_t x;
  if (call->kind == RULE_INT)
    return chk_size_of(z, sized, &s) && captured_size(z, &s, &x) && x == call->u.i;
  if (sized->kind != call->kind || sized->n != call->n) return false;
  if (call->kind != RULE_OP && call->kind != RULE_LIST) return rule_term_eq(sized, call);
  if (call->kind == RULE_OP && strcmp(sized->u.s, call->u.s) != 0) return false;
  for (uint32_t i = 0; i < call->n; i++)
    if (!chk_chain_is_captured(z, sized->child[i], call->child[i])) return false;
  return true;
}

/* ---- terms that do not depend on sizes ---- */

static bool numbers_only(chk_chain *z, const rule_term *t) {
  chk_sum s;
  int64_t number;
  if (t->kind == RULE_VAR) return z->fixed[t->u.i];
  if (chk_is_size(t)) return chk_size_of(z, t, &s) && chk_sum_is_number(&s, &number);
  for (uint32_t i = 0; i < t->n; i++)
    if (!numbers_only(z, t->child[i])) return false;
  return true;
}

static bool fixed_leaf(const cap_node *n) {
  if (n->kind == CAP_INPUT || !n->dim) return false;
  for (uint32_t d = 0; d < n->output[0].shape.rank; d++)
    if (n->dim[d]->kind != RULE_INT) return false;
  return true;
}

iso_code chk_chain_read(chk_chain *z) {
  chk_state *k = z->k;
  iso_code c = read_symbols(z);
  if (!c && !chk_settled(k)) c = name_by_inputs(z);
  for (uint32_t t = 0; t < k->n_terms && !c && !chk_settled(k); t++) {
    if (k->term[t].node) c = read_captured(z, t);
    else z->sized[t] = k->term[t].call;
  }
  for (size_t i = 0; i < k->cert.sizes->n_calls && !c && !chk_settled(k); i++) {
    const chk_sizes_call *x = &k->cert.sizes->call[i];
    if (k->term[x->term].node || !chk_chain_is_captured(z, x->call, k->term[x->term].call))
      return chk_settle(k, CHK_REFUSED, "sizes of term %u are not those of its call", x->term);
    z->sized[x->term] = x->call;
  }
  for (uint32_t t = 0; t < k->n_terms && !c && !chk_settled(k); t++)
    z->fixed[t] =
        k->term[t].call ? z->sized[t] && numbers_only(z, z->sized[t]) : fixed_leaf(k->term[t].node);
  return c;
}
