/* Which right output a left one must equal, and in which shape: the pairs that the comparison has
 * to join.
 *
 * Invariant: a pairing's `aux` is an e-node with values, of the left output's shape. */
#include "synth/loop.h"
#include "rules/names.h"
#include "synth/joint/joint.h"
#include "synth/refute/refute.h"
#include "synth/search/search.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

iso_code st_output_terms(state *s, pairing *p, iso_error *err) {
  const synth_graph *L = s->graph[LEFT], *R = s->graph[RIGHT];
  for (size_t i = 0; i < L->n_outputs; i++) {
    p[i].left = p[i].right = (uint32_t)i; /* st_pair_outputs put them in one order */
    const eg_node l = s->map[LEFT][L->output[i].node],
                  r = s->map[RIGHT][R->output[p[i].right].node];
    const rule_shape *a = &s->rec[l.i].shape, *b = &s->rec[r.i].shape;
    const int dist = st_shape_distance(a, b);
    if (dist == 2) {
      char x[128], y[128];
      return iso_fail(err, ISO_USAGE,
                      "output \"%s\" is %s in %s and %s in %s: only sizes 1 may differ",
                      L->output[i].name, rule_shape_print(a, x, sizeof x), L->path,
                      rule_shape_print(b, y, sizeof y), R->path);
    }
    p[i].aux = r;
    const char *given = R->output[p[i].right].relation;
    p[i].relation = given ? given : "equal";
    if (!(p[i].term = rule_var(&s->arena, R->output[p[i].right].node))) return nomem(err);
    if (dist == 0) continue;
    /* A term that inserts or removes the sizes 1. */
    const rule_term *t = p[i].term;
    uint32_t rank = b->rank;
    const char *text = given ? given : "right";
    for (uint32_t d = b->rank; d-- > 0 && t;)
      if (b->dim[d] == 1) {
        const rule_term *c[2] = {t, rule_int(&s->arena, d)};
        t = rule_op(&s->arena, OP_SQUEEZE_DIM, c, 2);
        text = iso_arena_printf(&s->arena, "squeeze(%s, %u)", text, d);
        rank--;
      }
    for (uint32_t d = 0; d < a->rank && t; d++)
      if (a->dim[d] == 1) {
        const rule_term *c[2] = {t, rule_int(&s->arena, d)};
        t = rule_op(&s->arena, OP_UNSQUEEZE, c, 2);
        text = iso_arena_printf(&s->arena, "unsqueeze(%s, %u)", text, d);
        rank++;
      }
    if (!t || !text) return nomem(err);
    p[i].relation = text;
    p[i].term = t;
    iso_code c = st_add_term(s, t, s->map[RIGHT], &p[i].aux, err);
    rec *aux = c ? NULL : &s->rec[p[i].aux.i];
    if (aux && s->unrun && !aux->konst) {
      aux->typed = aux->valued = true;
      aux->shape = *a;
      aux->dtype = st_dtype(s, l);
    } else if (!c) c = st_value(s, p[i].aux, err);
    if (c) return c;
  }
  return ISO_OK;
}

bool st_outputs_met(state *s, const pairing *p, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!eg_equal(s->g, s->map[LEFT][s->graph[LEFT]->output[p[i].left].node], p[i].aux))
      return false;
  return true;
}

iso_code st_outputs_agree(state *s, const pairing *p, bool *apart, bool *equal, iso_error *err) {
  *equal = true;
  for (size_t d = 0; d < s->n_draws; d++) {
    const rule_tensor *l = st_val(s, s->map[LEFT][s->graph[LEFT]->output[p->left].node], d),
                      *r = st_val(s, p->aux, d);
    if (!l || !r) return st_lost(&s->values, err);
    if (!s->oracle->compare(s->oracle->ctx, l, r, s->o->rel_tol).equal || st_far_apart(l, r))
      apart[d] = true, *equal = false;
  }
  return ISO_OK;
}

iso_code st_outputs_part(state *s, const pairing *p, size_t n, bool *yes, iso_error *err) {
  *yes = false;
  for (size_t i = 0; i < n && !*yes; i++) {
    const rule_tensor *l = st_val(s, s->map[LEFT][s->graph[LEFT]->output[p[i].left].node], 0),
                      *r = st_val(s, p[i].aux, 0);
    if (!l || !r) return st_lost(&s->values, err);
    const rule_diff d = s->oracle->compare(s->oracle->ctx, l, r, s->o->rel_tol);
    *yes = !d.equal && d.max_rel >= ST_BEYOND_CONSTANTS;
  }
  return ISO_OK;
}

iso_code st_outputs_hold_as_numbers(state *s, const pairing *p, bool *apart, bool *equal,
                                    iso_error *err) {
  bool *here = calloc(s->n_draws + 1, 1);
  iso_code c = here ? st_outputs_agree(s, p, here, equal, err) : nomem(err);
  const eg_node l = s->map[LEFT][s->graph[LEFT]->output[p->left].node];
  bool same = true;
  for (size_t d = 0; d < s->n_draws && !c; d++) {
    apart[d] |= here[d];
    if (here[d] && same) c = st_same_numbers(s, d, (eg_node[2]){l, p->aux}, true, &same, err);
  }
  if (!c) *equal = same;
  free(here);
  return c;
}
