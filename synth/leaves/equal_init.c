/* Relations of leaves that hold by the captured values alone: parameters begin with zeros, or ones,
 * and one leaf may have been given the same numbers twice. */
#include "synth/leaves/leaves.h"
#include "rules/names.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

static bool float_parameter(const synth_node *n) {
  return n->kind == SYNTH_PARAMETER && rule_dtype_is_float(n->value[0]->dtype);
}

/* Equal, or equal up to a prefix of one of them: a rank, a wrapper. */
static bool same_name(const char *a, const char *b) {
  const size_t na = strlen(a), nb = strlen(b), n = na < nb ? na : nb;
  const char *longer = na < nb ? b : a;
  return strcmp(a + na - n, b + nb - n) == 0 &&
         (na == nb || longer[(na < nb ? nb : na) - n - 1] == '.');
}

static bool one_number(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get(t, i) != rule_tensor_get(t, 0)) return false;
  return true;
}

/* A parameter of those numbers that nothing is related to yet; -1. */
static int64_t unclaimed(const state *s, int side, const rule_tensor *v, const bool *claimed) {
  const synth_graph *g = s->graph[side];
  for (size_t k = 0; k < g->n_nodes; k++)
    if (float_parameter(&g->node[k]) && !claimed[k] && s->leaves.replica[side][k] < 0 &&
        rule_tensor_same(v, g->node[k].value[0]))
      return (int64_t)k;
  return -1;
}

/* Zeros are equal to zeros, and ones to ones. Where several parameters are so related to one, and
 * that is by its name one of them, the others are not it: they are related to one that is left, or
 * have no partner. */
iso_code st_drop_coincidences(state *s, int side, synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side], *src = s->graph[!side];
  int64_t *named =
      malloc((src->n_nodes + 1) * sizeof *named); /* by source: the target of its name */
  bool *claimed = calloc(src->n_nodes + 1, 1), *drop = calloc(t->n_nodes + 1, 1);
  iso_code c = named && claimed && drop ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t k = 0; k < src->n_nodes && !c; k++) named[k] = -1;
  for (int pass = 0; pass < 3 && !c; pass++)
    for (size_t i = 0; i < t->n_nodes && !c; i++) {
      const rule_term *r = of[i].term;
      if (!r || r->kind != RULE_VAR || !float_parameter(&t->node[i]) || !t->node[i].name ||
          s->leaves.settled[side][i])
        continue;
      const size_t k = (size_t)r->u.i;
      const bool same = src->node[k].kind == SYNTH_PARAMETER && src->node[k].name &&
                        same_name(t->node[i].name, src->node[k].name);
      if (pass == 0 && same) named[k] = (int64_t)i;
      if (pass == 1)
        drop[i] = !same && named[k] >= 0 && one_number(t->node[i].value[0]), claimed[k] |= !drop[i];
      if (pass < 2 || !drop[i]) continue;
      const int64_t m = unclaimed(s, !side, t->node[i].value[0], claimed);
      of[i].term = m < 0 ? NULL : rule_var(&s->arena, (uint32_t)m);
      if (m >= 0) claimed[m] = true;
      if (m >= 0 && !of[i].term) c = iso_fail(err, ISO_NOMEM, "out of memory");
    }
  free(named);
  free(claimed);
  free(drop);
  return c;
}

/* Whether some leaf stands at two places of the term, or an operator may repeat it. */
static bool stands_twice(const rule_term *t, bool *seen) {
  if (t->kind == RULE_VAR) {
    const bool twice = seen[t->u.i];
    seen[t->u.i] = true;
    return twice;
  }
  const rule_operator *o = t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
  bool any =
      o && (o->broadcasts || !(o->rearranges || o->part || rule_is_overload(t->u.s, OP_CAT)));
  for (uint32_t i = 0; i < t->n; i++) any |= stands_twice(t->child[i], seen);
  return any;
}

/* Whether the term has an element of its leaves at two places. */
static iso_code repeats(state *s, int from, const rule_term *t, bool *yes, iso_error *err) {
  const synth_graph *g = s->graph[from];
  bool *seen = calloc(g->n_nodes + 1, 1);
  rule_tensor **number = calloc(g->n_nodes + 1, sizeof *number), *v = NULL;
  char *taken = NULL;
  int64_t n = 0;
  iso_code c = seen && number ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  const bool may = !c && stands_twice(t, seen);
  *yes = false;
  for (size_t i = 0; i < g->n_nodes && may && !c; i++) {
    if (!seen[i]) continue;
    c = rule_tensor_new(RULE_I64, &g->node[i].value[0]->shape, &number[i], err);
    for (int64_t k = 0; !c && k < number[i]->numel; k++) ((int64_t *)number[i]->data)[k] = n++;
  }
  if (!c && may) c = st_term_over(s, t, number, &v, err);
  if (!c && may && !(taken = calloc((size_t)n + 1, 1)))
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  for (int64_t i = 0; !c && may && i < v->numel && !*yes; i++) {
    const int64_t at = rule_tensor_get_int(v, i);
    *yes = taken[at];
    taken[at] = true;
  }
  for (size_t i = 0; number && i < g->n_nodes; i++) rule_tensor_unref(number[i]);
  rule_tensor_unref(v);
  free(number);
  free(taken);
  free(seen);
  return c;
}

/* Drops relations that repeat an element of a leaf. A leaf may have any values: a relation that
 * gives two of its elements one value would show the graphs equal on few of them. Relations that
 * the user gave stay. */
iso_code st_drop_repeats(state *s, int side, synth_relation *of, iso_error *err) {
  const synth_graph *t = s->graph[side];
  iso_code c = ISO_OK;
  for (size_t i = 0; i < t->n_nodes && !c; i++) {
    const rule_term *r = of[i].term;
    bool twice = false;
    if (!r || r->kind == RULE_VAR || s->leaves.written[side][i] || s->rec[s->map[side][i].i].konst)
      continue;
    c = repeats(s, !side, r, &twice, err);
    if (twice) of[i].term = NULL;
  }
  return c;
}
