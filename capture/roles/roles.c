/* The argument from beginning to end. */
#include "capture/roles/roles.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "capture/roles/roles_int.h"

iso_code roles_nomem(roles_work *x) { return iso_fail(x->err, ISO_NOMEM, "out of memory"); }

iso_code roles_refuse(roles_work *x, const char *fmt, ...) {
  char text[256];
  va_list args;
  va_start(args, fmt);
  vsnprintf(text, sizeof text, fmt, args);
  va_end(args);
  if (roles_refused(x)) return ISO_OK;
  x->out->why = iso_arena_strdup(&x->out->arena, text);
  return x->out->why ? ISO_OK : roles_nomem(x);
}

/* How many ranks the graph has leaves of. */
static size_t count_ranks(const cap_graph *g) {
  int64_t most = -1;
  const char *rest;
  for (size_t i = 0; i < g->n_nodes; i++) {
    if (g->node[i].kind == CAP_OP) continue;
    const int64_t r = roles_rank_of(g->node[i].name, &rest);
    if (r > most) most = r;
  }
  return (size_t)(most + 1) > g->n_nodes ? 0 : (size_t)(most + 1);
}

static iso_code list_rules(roles_work *x) {
  roles_result *out = x->out;
  const size_t n = rule_set_count(out->rules);
  roles_rule *used = iso_arena_alloc(&out->arena, (n + 1) * sizeof *used);
  if (!used) return roles_nomem(x);
  for (size_t i = 0; i < n; i++)
    if (x->uses[i]) {
      rule_set_evidence(out->rules, i, x->verdict[i].status, x->verdict[i].scope);
      used[out->n_rules++] = (roles_rule){i, x->verdict[i], x->uses[i]};
    }
  out->rule = used;
  return ISO_OK;
}

void roles_end(roles_work *x) {
  for (size_t i = 0; i < x->n_made; i++) {
    for (size_t k = 0; x->made[i].value && k < x->made[i].n_values; k++)
      rule_tensor_unref(x->made[i].value[k]);
    free(x->made[i].value);
  }
  free(x->made);
  free(x->image);
  free(x->needed);
  free(x->leaf);
  free(x->at);
  free(x->order);
  free(x->images);
  free(x->place);
  free(x->verdict);
  free(x->uses);
}

iso_code roles_argue(roles_work *x) {
  const size_t n = x->g->n_nodes;
  x->image = calloc(n + 1, sizeof *x->image);
  x->place = calloc(n + 1, sizeof *x->place);
  iso_code c = x->image && x->place ? rule_set_new(&x->out->rules, x->err) : roles_nomem(x);
  if (!c) c = roles_same(x);
  if (!c && !roles_refused(x)) c = roles_leaves(x);
  if (!c && !roles_refused(x)) c = roles_places(x);
  if (!c && !roles_refused(x)) c = list_rules(x);
  return c || roles_refused(x) ? c : roles_results(x);
}

iso_code roles_fold(cap_graph *g, const roles_asked *q, roles_result *out, iso_error *err) {
  *out = (roles_result){0};
  const size_t n = count_ranks(g);
  if (n < 2 || n < q->least || n > UINT32_MAX / 2 || g->n_symbols || cap_has_trace(g))
    return ISO_OK;
  roles_work x = {.g = g, .q = q, .out = out, .err = err, .n_ranks = (uint32_t)n};
  iso_code c = roles_argue(&x);
  if (!c && !roles_refused(&x)) c = roles_replay(&x);
  if (!c && !roles_refused(&x)) c = roles_replace(&x);
  if (!c && !roles_refused(&x)) out->n_ranks = n;
  roles_end(&x);
  return c;
}

void roles_free(roles_result *r) {
  rule_set_free(r->rules);
  iso_arena_fini(&r->arena);
  *r = (roles_result){0};
}
