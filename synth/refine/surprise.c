/* Relations that hold and are odd: the tensor's role asks for another. */
#include "rules/names.h"
#include "synth/refine/refine.h"

#include <string.h>

static bool has_sum(const rule_term *t) {
  if (t->kind == RULE_OP && strcmp(t->u.s, OP_DIST_ALL_REDUCE) == 0) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_sum(t->child[i])) return true;
  return false;
}

/* Of a gradient's name ("grad_w", "w.grad", ...) the parameter's: where it stands, its length in
 * `n`; NULL where the name is of nothing of that kind. */
static const char *parameter_of(const char *name, size_t *n) {
  static const char *const before[] = {"grad_", "grad.", "grad(", "d_"}, *const behind[] = {
                                                                             "_grad", ".grad",
                                                                             "_gradient",
                                                                             ".gradient"};
  *n = strlen(name);
  for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
    const size_t len = strlen(before[i]);
    if (*n <= len || strncmp(name, before[i], len) != 0) continue;
    *n -= len + (name[*n - 1] == ')');
    return name + len;
  }
  for (size_t i = 0; i < sizeof behind / sizeof *behind; i++) {
    const size_t len = strlen(behind[i]);
    if (*n <= len || strcmp(name + *n - len, behind[i]) != 0) continue;
    *n -= len;
    return name;
  }
  return NULL;
}

/* Rank `r`'s parameter of the name, else the only one of the name; NULL: there is none. */
static const synth_node *parameter(const synth_graph *g, const char *name, size_t n,
                                   unsigned long r) {
  const synth_node *any = NULL;
  size_t n_any = 0;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const char *stem;
    unsigned long rank;
    if (g->node[i].kind != SYNTH_PARAMETER || !g->node[i].name) continue;
    if (synth_stem(g->node[i].name, &stem, &rank) != n || memcmp(stem, name, n) != 0) continue;
    if (rank == r) return &g->node[i];
    any = &g->node[i];
    n_any++;
  }
  return n_any == 1 ? any : NULL;
}

/* Whether every rank's part that the term is made of has the shape of that rank's parameter. */
static bool as_parameters(const synth_graph *right, const rule_term *t, const char *name,
                          size_t n) {
  if (t->kind == RULE_VAR) {
    const synth_output *o = &right->output[t->u.i];
    const char *stem;
    unsigned long r;
    synth_stem(o->name, &stem, &r);
    const synth_node *p = parameter(right, name, n, r);
    return !p || rule_shape_eq(&p->shape, &right->node[o->node].shape);
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!as_parameters(right, t->child[i], name, n)) return false;
  return true;
}

/* Whether the term moves the elements of one tensor that has the wanted shape as it is. */
static bool moved_in_place(const synth_graph *left, const synth_graph *right, uint32_t output,
                           const rule_term *t) {
  const rule_term *x = t;
  while (x->kind == RULE_OP && x->n &&
         (x->child[0]->kind == RULE_OP || x->child[0]->kind == RULE_VAR))
    x = x->child[0];
  return t->kind == RULE_OP && x->kind == RULE_VAR &&
         rule_shape_eq(&right->node[right->output[x->u.i].node].shape,
                       &left->node[left->output[output].node].shape);
}

const char *st_surprise(const synth_graph *left, const synth_graph *right, uint32_t output,
                        const rule_term *t) {
  size_t n;
  const char *name = parameter_of(left->output[output].name, &n);
  const bool gradient = name && parameter(left, name, n, 0);
  if (has_sum(t))
    return gradient ? "the ranks' gradients are partial sums that no rank adds up: an all_reduce "
                      "is missing"
                    : "a partial sum leaves the graph: no rank adds it up";
  if (gradient && !as_parameters(right, t, name, n))
    return "the ranks hold other parts of the gradient than of its parameter";
  if (moved_in_place(left, right, output, t))
    return "its elements stand in another order, although its shape is the same";
  return NULL;
}
