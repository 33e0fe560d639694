/* The argument from beginning to end. */
#include "capture/roles/roles.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
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

size_t roles_count(const cap_graph *g) {
  int64_t most = (int64_t)cap_role_ranks(g) - 1;
  const char *rest;
  for (size_t i = 0; i < g->n_nodes; i++) {
    if (g->node[i].kind == CAP_OP) continue;
    const int64_t r = roles_rank_of(g->node[i].name, &rest);
    if (r > most) most = r;
  }
  const size_t n = (size_t)(most + 1);
  return n > g->n_nodes && !cap_role_ranks(g) ? 0 : n;
}

static iso_code list_rules(roles_work *x) {
  roles_result *out = x->out;
  const size_t n = x->n_asked;
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

/* Frees all but the oracle's answers, which serve the next ranks too. */
static void end_argument(roles_work *x) {
  for (size_t i = 0; i < x->n_made; i++) {
    for (size_t k = 0; x->made[i].value && k < x->made[i].n_values; k++)
      rule_tensor_unref(x->made[i].value[k]);
    free(x->made[i].value);
  }
  free(x->made);
  free(x->image);
  free(x->meets);
  free(x->common);
  free(x->form);
  free(x->needed);
  free(x->leaf);
  free(x->at);
  free(x->order);
  free(x->images);
  free(x->place);
  free(x->own);
  free(x->own_name);
}

void roles_end(roles_work *x) {
  end_argument(x);
  free(x->verdict);
  free(x->uses);
}

iso_code roles_argue(roles_work *x) {
  const size_t n = x->g->n_nodes;
  x->image = calloc(n + 1, sizeof *x->image);
  x->place = calloc(n + 1, sizeof *x->place);
  iso_code c = x->image && x->place ? ISO_OK : roles_nomem(x);
  if (!c && !x->out->rules) c = rule_set_new(&x->out->rules, x->err);
  if (!c) c = roles_same(x);
  if (!c && !roles_refused(x)) c = roles_leaves(x);
  if (!c && !roles_refused(x)) c = roles_places(x);
  return c || roles_refused(x) ? c : roles_results(x);
}

static iso_code add_notes(roles_work *x) {
  roles_result *out = x->out;
  const size_t n = out->n_notes + x->n_notes;
  const char **all = iso_arena_alloc(&out->arena, (n + 1) * sizeof *all);
  if (!all) return roles_nomem(x);
  for (size_t i = 0; i < n; i++)
    all[i] = i < out->n_notes ? out->note[i] : x->note[i - out->n_notes];
  out->note = all;
  out->n_notes = n;
  return ISO_OK;
}

/* Those ranks as one, where that is shown. */
static iso_code become_one(roles_work *x) {
  roles_result *out = x->out;
  const size_t n = x->n_asked;
  size_t *uses = malloc((n + 1) * sizeof *uses);
  if (!uses) return roles_nomem(x);
  if (n) memcpy(uses, x->uses, n * sizeof *uses);
  out->why = NULL;
  iso_code c = roles_argue(x);
  if (!c && !roles_refused(x)) c = roles_replay(x);
  if (!c && !roles_refused(x)) c = roles_replace(x);
  if (!c && !roles_refused(x)) c = add_notes(x);
  for (size_t i = 0; !c && roles_refused(x) && i < x->n_asked; i++)
    x->uses[i] = i < n ? uses[i] : 0;
  free(uses);
  return c;
}

/* Whether so many ranks are told by one collective, or are all of them. */
static bool may_meet(const cap_graph *g, size_t n_all, size_t n) {
  bool found = n == n_all;
  for (size_t i = 0; i < g->n_nodes && !found && !cap_role_ranks(g); i++) {
    const cap_node *node = &g->node[i];
    if (!cap_role_joins(node) || !node->call->n) continue;
    const rule_term *list = node->call->child[0];
    found = list->kind == RULE_LIST && list->n == n;
  }
  return found;
}

/* Tries ranks in rows of any length, the longest first, and those that are furthest apart: in the
 * order in which plans cut a batch before they cut weights. */
static iso_code try_ranks(roles_work *x, size_t n_all, bool *became) {
  iso_code c = ISO_OK;
  const char *first = NULL;
  *became = false;
  for (size_t n = n_all; n > 1 && !c && !*became; n--) {
    if (n_all % n || !may_meet(x->g, n_all, n)) continue;
    for (size_t stride = n_all / n; stride > 0 && !c && !*became; stride--) {
      if (n_all / n % stride) continue;
      roles_work one = {.g = x->g, .q = x->q, .out = x->out, .err = x->err};
      one.once = cap_role_ranks(x->g) > 0;
      one.n_all = (uint32_t)n_all, one.n_ranks = (uint32_t)n, one.stride = (uint32_t)stride;
      one.verdict = x->verdict, one.uses = x->uses, one.n_asked = x->n_asked;
      one.cap_verdict = x->cap_verdict, one.cap_uses = x->cap_uses;
      c = become_one(&one);
      *became = !c && !roles_refused(&one);
      if (!first) first = x->out->why;
      x->verdict = one.verdict, x->uses = one.uses, x->n_asked = one.n_asked;
      x->cap_verdict = one.cap_verdict, x->cap_uses = one.cap_uses;
      if (*became) x->out->n_ranks = (x->out->n_ranks ? x->out->n_ranks : 1) * n;
      end_argument(&one);
    }
  }
  x->out->why = first;
  return c;
}

/* Whether memory is read where some leaf does not lie row by row: ranks whose leaves lie in other
 * orders are not one role then, though they make the same calls. */
static bool reads_order(const cap_graph *g) {
  bool reads = false, reordered = false;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const cap_node *n = &g->node[i];
    reads |= n->call && rule_reads_memory(n->call);
    reordered |= !n->call && n->reordered;
  }
  return reads && reordered;
}

iso_code roles_fold(cap_graph *g, const roles_asked *q, roles_result *out, iso_error *err) {
  *out = (roles_result){0};
  const size_t n = roles_count(g);
  if (n < 2 || n < q->least || n > UINT32_MAX / 2 || g->n_symbols || cap_has_trace(g) ||
      reads_order(g))
    return ISO_OK;
  roles_work x = {.g = g, .q = q, .out = out, .err = err};
  iso_code c = ISO_OK;
  bool became = true;
  for (size_t left = n; left > 1 && became && !c; left = n / (out->n_ranks ? out->n_ranks : 1))
    c = try_ranks(&x, left, &became);
  if (!c) c = list_rules(&x);
  out->left = out->n_ranks ? n / out->n_ranks : n;
  if (out->n_ranks) out->why = NULL;
  roles_end(&x);
  return c;
}

void roles_free(roles_result *r) {
  rule_set_free(r->rules);
  iso_arena_fini(&r->arena);
  *r = (roles_result){0};
}
