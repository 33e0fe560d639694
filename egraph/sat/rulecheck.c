/* Steps of an explanation held against the rules' texts: a reader and a matcher of their own, which
 * trust neither the reader of patterns nor the engine. Two e-nodes are instances of two sides if
 * the sides can be read over their original children, with each variable standing for one e-node.
 */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

enum { MAX_VARS = 192, MAX_DEPTH = 1000 };

typedef struct reading {
  const eg_graph *g;
  const char *p;
  size_t n_vars;
  bool closed;  /* variables are those of the left side */
  bool unbound; /* another one was met: the name of a class, whose e-node a step does not have */
  struct {
    const char *name;
    size_t n;
    uint32_t node;
  } var[MAX_VARS];
} reading;

static void skip_space(reading *r) {
  for (;; r->p++) {
    if (*r->p == ';') r->p += strcspn(r->p, "\n");
    if (!*r->p || !strchr(" \t\n\v\f\r", *r->p)) return;
  }
}

/* The atom that is next. Returns: its length. */
static size_t atom(reading *r, const char **out) {
  skip_space(r);
  const size_t n = strcspn(r->p, " \t\n\v\f\r();\"");
  *out = r->p;
  r->p += n;
  return n;
}

static bool stands_for(reading *r, const char *name, size_t n, uint32_t node) {
  for (size_t i = 0; i < r->n_vars; i++)
    if (r->var[i].n == n && !memcmp(r->var[i].name, name, n)) return r->var[i].node == node;
  r->unbound = r->unbound || r->closed;
  if (r->closed || r->n_vars == MAX_VARS) return false;
  r->var[r->n_vars].name = name;
  r->var[r->n_vars].n = n;
  r->var[r->n_vars++].node = node;
  return true;
}

static bool has_symbol(const reading *r, eg_node node, const char *name, size_t n, size_t arity) {
  const char *have = eg_symbol_name(r->g, eg_node_symbol(r->g, node));
  return eg_node_arity(r->g, node) == arity && strlen(have) == n && !memcmp(have, name, n);
}

/* The term that is next read over an e-node. */
static bool read_over(reading *r, eg_node node, int depth) {
  const char *name;
  skip_space(r);
  if (*r->p != '(') {
    const size_t n = atom(r, &name);
    if (n && *name == '?') return stands_for(r, name, n, node.i);
    return n && has_symbol(r, node, name, n, 0);
  }
  r->p++;
  const size_t n = atom(r, &name), arity = eg_node_arity(r->g, node);
  if (!n || depth == MAX_DEPTH || !has_symbol(r, node, name, n, arity)) return false;
  for (size_t k = 0; k < arity; k++)
    if (!read_over(r, (eg_node){eg_node_original(r->g, node, k).i}, depth + 1)) return false;
  skip_space(r);
  return *r->p++ == ')';
}

/* A whole side: a term, which may have a name for its class in front, as in `?v = T`. */
static bool side_over(reading *r, const char *text, eg_node node) {
  const char *name;
  r->p = text;
  skip_space(r);
  if (*r->p == '?') {
    const size_t n = atom(r, &name);
    skip_space(r);
    if (*r->p != '=') return !*r->p && stands_for(r, name, n, node.i);
    r->p++;
  }
  if (!read_over(r, node, 0)) return false;
  skip_space(r);
  return !*r->p;
}

/* Returns: in `open` whether it is because of a name that it is none. */
static bool is_instance(const eg_graph *g, const egi_rule *rule, eg_node lhs, eg_node rhs,
                        bool *open) {
  reading r = {.g = g};
  if (!side_over(&r, rule->user.lhs, lhs)) return false;
  r.closed = true;
  const bool ok = side_over(&r, rule->user.rhs, rhs);
  *open = *open || r.unbound;
  return ok;
}

bool eg_rule_check_step(void *check, const eg_step *s) {
  const eg_rule_check *x = check;
  const uint32_t k = s->why.kind - EG_WHY_RULE;
  if (s->why.kind < EG_WHY_RULE || k >= x->rules->n) return x->other && x->other(x->ctx, s);
  const egi_rule *rule = &x->rules->rule[k];
  if (!rule->user.rhs || rule->several || rule->lhs.n_roots > 1)
    return x->other && x->other(x->ctx, s);
  bool open = false;
  if (is_instance(x->g, rule, s->from, s->to, &open) ||
      is_instance(x->g, rule, s->to, s->from, &open))
    return true;
  return open && x->other && x->other(x->ctx, s);
}
