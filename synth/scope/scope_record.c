/* The chain for all sizes as the certificate has it: whoever checks it searches for nothing. */
#include <stdlib.h>

#include "synth/scope/scope_int.h"

/* Terms over the certificate's own numbers. `of`: by term here, that of the certificate. */
static const rule_term *over(iso_arena *a, const rule_term *t, const uint32_t *of) {
  if (t->kind == RULE_VAR) return rule_var(a, of[t->u.i]);
  if (t->n == 0) return rule_term_copy(a, t);
  const rule_term **child = iso_arena_alloc(a, t->n * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = over(a, t->child[i], of))) return NULL;
  if (!child) return NULL;
  return t->kind == RULE_OP     ? rule_op(a, t->u.s, child, t->n)
         : t->kind == RULE_LIST ? rule_list(a, child, t->n)
                                : rule_expr(a, t->u.s, child, t->n);
}

static iso_code record_steps(scoping *z, const synth_sized_step *step, size_t n) {
  synth_certificate *out = z->s->res->certificate;
  iso_arena *a = &z->s->res->arena;
  synth_sized_step *own = iso_arena_alloc(a, (n + 1) * sizeof *own);
  if (!own) return scope_no_memory(z);
  for (size_t i = 0; i < n; i++) {
    own[i] = step[i];
    const rule_term **value = iso_arena_alloc(a, (step[i].n_names + 1) * sizeof *value);
    for (uint32_t k = 0; value && k < step[i].n_names; k++)
      if (!(value[k] = over(a, step[i].value[k], NULL))) return scope_no_memory(z);
    if (!(own[i].value = value)) return scope_no_memory(z);
  }
  out->sized_step = own;
  out->n_sized_steps = n;
  return ISO_OK;
}

/* The certificate's own calls that have sizes. */
static iso_code record_calls(scoping *z, const uint32_t *of) {
  synth_certificate *out = z->s->res->certificate;
  iso_arena *a = &z->s->res->arena;
  synth_sized_call *own = iso_arena_alloc(a, (z->cert->n_terms + 1) * sizeof *own);
  size_t n = 0;
  if (!own) return scope_no_memory(z);
  for (uint32_t i = 0; i < z->cert->n_terms; i++) {
    const uint32_t t = z->of[i];
    if (z->captured[t] || !z->sized[t] || rule_term_eq(z->sized[t], z->call[t])) continue;
    own[n] = (synth_sized_call){i, over(a, z->sized[t], of)};
    if (!own[n++].call) return scope_no_memory(z);
  }
  out->sized_call = own;
  out->n_sized_calls = n;
  return ISO_OK;
}

iso_code scope_record(scoping *z, const synth_sized_step *step, size_t n) {
  uint32_t *of = calloc(z->n_terms + 1, sizeof *of);
  if (!of) return scope_no_memory(z);
  for (uint32_t i = 0; i < z->cert->n_terms; i++) of[z->of[i]] = i;
  iso_code c = record_steps(z, step, n);
  if (!c) c = record_calls(z, of);
  free(of);
  return c;
}
