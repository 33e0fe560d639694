/* The result of a comparison: leaves without a counterpart, classes, rules,
 * assumptions. */
#include "synth/result/result.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static iso_code unexplained(state *s, bool *const live[2], iso_error *err) {
  size_t n = 0;
  struct synth_leaf_ref *ref = iso_arena_alloc(
      &s->res->arena, (s->graph[0]->n_nodes + s->graph[1]->n_nodes + 1) * sizeof *ref);
  if (!ref) return nomem(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++) {
      const synth_node *nd = &s->graph[side]->node[i];
      if (nd->kind == SYNTH_OP || !live[side][i] || s->rec[s->map[side][i].i].konst) continue;
      /* Explained: its class has a leaf or a term of the other side, or it occurs in the other
       * side's definitions. */
      const eg_node e = s->map[side][i];
      const eg_node *m;
      bool other = st_has_side(s, e, !side) || !s->rec[e.i].atom;
      const size_t cnt = eg_class_parents(s->g, eg_class_of(s->g, e), &m);
      for (size_t k = 0; k < cnt && !other; k++) {
        eg_node p = m[k];
        for (int hop = 0; hop < 6 && !other;
             hop++) { /* cat(slice(leaf), ...) = a leaf of the other side */
          if (st_has_side(s, p, !side)) other = true;
          const eg_node *pp;
          if (!st_made(&s->rec[p.i])) break;
          if (eg_class_parents(s->g, eg_class_of(s->g, p), &pp) == 0) break;
          p = pp[0];
        }
      }
      if (!other) ref[n++] = (struct synth_leaf_ref){side == RIGHT, (uint32_t)i};
    }
  s->res->unexplained = ref;
  s->res->n_unexplained = n;
  return ISO_OK;
}

static iso_code publish(state *s, iso_error *err) {
  synth_result *r = s->res;
  const size_t n = rule_set_count(s->rules.set);
  synth_rule_use *use = iso_arena_alloc(&r->arena, (n + 1) * sizeof *use);
  synth_assumption *as = iso_arena_alloc(&r->arena, (s->assumed.n + 1) * sizeof *as);
  if (!use || !as) return nomem(err);
  for (size_t i = 0; i < n; i++) {
    if (s->rules.info[i].verdict.status < RULE_TESTED || s->rules.info[i].uses == 0) continue;
    use[r->n_rules] = (synth_rule_use){rule_set_at(s->rules.set, i),
                                       s->rules.info[i].verdict,
                                       s->rules.info[i].uses,
                                       s->rules.info[i].loaded,
                                       s->rules.info[i].needed,
                                       NULL,
                                       0};
    iso_code c = st_rule_classes(s, i, &use[r->n_rules++], err);
    if (c) return c;
  }
  r->rule = use;
  for (size_t i = 0; i < s->assumed.n; i++) {
    const synth_assumption *a = &s->assumed.of[i];
    as[i] = (synth_assumption){.kind = a->kind,
                               .what = a->what ? iso_arena_strdup(&r->arena, a->what) : NULL,
                               .text = iso_arena_strdup(&r->arena, a->text),
                               .left = a->left,
                               .right = a->right,
                               .relation =
                                   a->relation ? iso_arena_strdup(&r->arena, a->relation) : NULL};
  }
  r->assumption = as;
  r->n_assumptions = s->assumed.n;
  r->rules = s->rules.set;
  s->rules.set = NULL;
  return ISO_OK;
}

iso_code st_publish(state *s, bool *const live[2], iso_error *err) {
  iso_code c = unexplained(s, live, err);
  if (!c) c = st_publish_classes(s, err);
  return c ? c : publish(s, err);
}

void synth_result_free(synth_result *r) {
  if (!r) return;
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; r->witness_leaf[side] && i < r->n_leaf[side]; i++)
      rule_tensor_unref(r->witness_leaf[side][i]);
    free(r->witness_leaf[side]);
    for (size_t i = 0; r->cut && i < r->cut->n_given[side]; i++)
      rule_tensor_unref(r->cut->value[side][i]);
  }
  rule_set_free(r->rules);
  iso_arena_fini(&r->arena);
  iso_arena_fini(&r->terms);
  free(r);
}
