/* Rules compiled for the matcher (compiled.h). */
#include "synth/search/compiled.h"

#include <string.h>

static iso_code compile(state *s, const rule_term *t, st_pattern *out, iso_error *err) {
  *out = (st_pattern){.t = t, .op = {EG_NONE}};
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return ISO_OK;
  iso_code c = ISO_OK;
  if (t->kind == RULE_LIST) out->op = s->literals.list;
  else c = eg_intern(s->g, t->u.s, strlen(t->u.s), &out->op, err);
  st_pattern *child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
  if (!c && !child) c = iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t k = 0; k < t->n && !c; k++) c = compile(s, t->child[k], &child[k], err);
  out->child = child;
  return c;
}

iso_code st_compile(state *s, st_compiled_rules *of, size_t i, const rule *r, st_compiled *out,
                    iso_error *err) {
  if (!iso_grow(of->rule, of->cap, i + 1)) return iso_fail(err, ISO_NOMEM, "out of memory");
  st_compiled *at = &of->rule[i];
  for (int k = 0; k < 2 && !at->side[k]; k++) {
    st_pattern *p = iso_arena_alloc(&s->arena, sizeof *p);
    iso_code c =
        p ? compile(s, k ? r->rhs : r->lhs, p, err) : iso_fail(err, ISO_NOMEM, "out of memory");
    if (c) return c;
    at->side[k] = p;
  }
  *out = *at;
  return ISO_OK;
}
