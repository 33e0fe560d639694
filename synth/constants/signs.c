/* Whether 0 and -0, which are one real number, may be one constant here: not where something reads
 * the sign, or divides by it. */
#include <stdlib.h>

#include "rules/operators.h"
#include "synth/constants/constants.h"
#include "synth/constants/constants_int.h"
#include "synth/joint/joint.h"

static bool same_zeros(const state *s, eg_node a, eg_node b) {
  const rec *x = &s->rec[a.i], *y = &s->rec[b.i];
  for (size_t set = 0; set < s->n_kept && x->cval && y->cval; set++)
    if (!rule_tensor_same_zeros(x->cval[set * x->n_out], y->cval[set * y->n_out])) return false;
  for (size_t d = 0; d < s->n_draws && x->val && y->val; d++)
    if (!rule_tensor_same_zeros(x->val[d * x->n_out], y->val[d * y->n_out])) return false;
  return true;
}

typedef struct flow {
  bool *of;      /* by class: some member's zeros have the sign that is asked for */
  bool *carries; /* by node of one side */
  bool *fixed;
} flow;

/* Once through a graph. Returns: whether something tells the signs apart. */
static bool pass(const state *s, int side, const flow *f, bool *changed) {
  const synth_graph *g = s->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++) {
    const eg_node e = s->map[side][i];
    if (e.i == EG_NONE) continue;
    const size_t class = eg_class_of(s->g, e).i;
    f->carries[i] = f->of[class];
    f->fixed[i] = s->rec[e.i].konst;
    if (g->node[i].kind == SYNTH_OP &&
        rule_zero_sign_matters(g->node[i].call, f->fixed, f->carries, i))
      return true;
    *changed |= f->carries[i] && !f->of[class];
    f->of[class] |= f->carries[i];
  }
  return false;
}

bool st_zeros_told(const state *s, eg_node a, eg_node b) {
  if (same_zeros(s, a, b)) return false;
  if (cn_is_part(s, a) || cn_is_part(s, b)) return true; /* of what has roots and angles */
  const size_t n = s->graph[LEFT]->n_nodes + s->graph[RIGHT]->n_nodes + 1;
  const flow f = {calloc(eg_count_added(s->g) + 1, 1), calloc(n, 1), calloc(n, 1)};
  bool told = !f.of || !f.carries || !f.fixed, changed = true;
  if (!told) f.of[eg_class_of(s->g, a).i] = f.of[eg_class_of(s->g, b).i] = true;
  while (!told && changed) {
    changed = false;
    for (int side = 0; side < 2 && !told; side++) told = pass(s, side, &f, &changed);
  }
  free(f.of);
  free(f.carries);
  free(f.fixed);
  return told;
}
