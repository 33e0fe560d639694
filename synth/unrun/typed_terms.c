/* Types of the terms that rules add: an operator is called once on small tensors of ones of its
 * arguments' shapes (synth/saturate/types.c). Terms that would need large ones stay without a type,
 * and no variable of a rule stands for them. */
#include "synth/unrun/unrun.h"
#include "synth/joint/joint.h"
#include "synth/saturate/saturate_int.h"

#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

struct st_term_types {
  sat_types types;
  const sat_type **of; /* by e-node: of operators with several results */
  size_t cap;
};

iso_code st_term_types_new(state *s, st_term_types **out, iso_error *err) {
  if (!(*out = calloc(1, sizeof **out))) return nomem(err);
  (*out)->types.s = s;
  return ISO_OK;
}

void st_term_types_free(st_term_types *t) {
  if (!t) return;
  sat_types_free(&t->types);
  free(t->of);
  free(t);
}

/* NULL: it is not known. */
static const sat_type *type_of(st_term_types *t, eg_class c) {
  state *s = t->types.s;
  const eg_node rep = st_rep(s, c), *m;
  if (rep.i != EG_NONE && s->rec[rep.i].tensor)
    return sat_tensor(&t->types, st_dtype(s, rep), &s->rec[rep.i].shape);
  const size_t n = eg_class_nodes(s->g, c, &m);
  for (size_t i = 0; i < n; i++) {
    const rule_term *lit = st_literal(s, m[i]);
    if (lit) return sat_literal(&t->types, lit);
    if (m[i].i < t->cap && t->of[m[i].i]) return t->of[m[i].i];
    if (!st_is_list(s, m[i])) continue;
    const sat_type *of[MAX_CHILDREN];
    const eg_node list = m[i];
    const size_t k = eg_node_arity(s->g, list);
    for (size_t j = 0; j < k; j++)
      if (!(of[j] = type_of(t, eg_node_child(s->g, list, j)))) return NULL;
    return sat_list(&t->types, of, k);
  }
  return NULL;
}

static iso_code type_one(st_term_types *t, eg_node e, iso_error *err) {
  enum { ELEMENTS = 1 << 20 };
  state *s = t->types.s;
  const sat_type *arg[MAX_CHILDREN], *type;
  const size_t n = eg_node_arity(s->g, e), had = t->cap;
  for (size_t k = 0; k < n; k++)
    if (!(arg[k] = type_of(t, eg_node_child(s->g, e, k)))) return ISO_OK;
  t->types.elements_left = ELEMENTS;
  type = sat_result(&t->types, st_operator(s, e), arg, n);
  if (t->types.starved) return nomem(err);
  if (!type) return ISO_OK;
  rec *r = &s->rec[e.i];
  if (type->kind == SAT_TENSOR && r->tensor) {
    r->typed = r->valued = true;
    r->shape = type->shape;
    r->dtype = type->dtype;
  } else if (type->kind == SAT_MULTI) {
    if (!iso_grow(t->of, t->cap, (size_t)e.i + 1)) return nomem(err);
    for (size_t i = had; i < t->cap; i++) t->of[i] = NULL;
    t->of[e.i] = type;
  }
  return ISO_OK;
}

iso_code st_type_terms(st_term_types *t, size_t from, iso_error *err) {
  state *s = t->types.s;
  iso_code c = ISO_OK;
  for (size_t i = from; i < s->n_rec && !c; i++) {
    const rec *r = &s->rec[i];
    if (r->valued || r->konst || !(r->tensor || r->multi) || r->node[LEFT] >= 0 ||
        r->node[RIGHT] >= 0)
      continue;
    c = type_one(t, (eg_node){(uint32_t)i}, err);
  }
  return c;
}
