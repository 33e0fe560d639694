/* Terms of an eg_graph from texts and as texts. */
#include "egraph/graph/text_int.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/sat/query_int.h"

enum { MAX_TEXT = 1 << 26 };

bool egi_text_put(egi_text *t, const char *s, size_t n) {
  t->full = t->full || n >= MAX_TEXT || t->n + n >= MAX_TEXT;
  if (t->full || !iso_grow(t->p, t->cap, t->n + n + 1)) return false;
  memcpy(t->p + t->n, s, n);
  t->n += n;
  t->p[t->n] = '\0';
  return true;
}

iso_code egi_text_done(egi_text *t, bool ok, char **out, iso_error *err) {
  if (ok) {
    *out = t->p;
    return ISO_OK;
  }
  free(t->p);
  return t->full ? iso_fail(err, ISO_LIMIT, "a term of more than %d characters", MAX_TEXT)
                 : iso_fail(err, ISO_NOMEM, "out of memory for a term");
}

/* Words on the stack: an e-node to print, or EG_NONE for a closing parenthesis. */
iso_code eg_node_text(const eg_graph *g, eg_node node, char **out, iso_error *err) {
  egi_text t = {0};
  uint32_t *stack = NULL;
  size_t n = 0, cap = 0;
  bool ok = iso_grow(stack, cap, 1);
  if (ok) stack[n++] = node.i;
  while (ok && n > 0) {
    const eg_node at = {stack[--n]};
    if (at.i == EG_NONE) {
      ok = egi_text_put(&t, ")", 1);
      continue;
    }
    const char *name = eg_symbol_name(g, eg_node_symbol(g, at));
    const size_t arity = eg_node_arity(g, at);
    ok = (!t.n || egi_text_put(&t, " ", 1)) && (!arity || egi_text_put(&t, "(", 1)) &&
         egi_text_put(&t, name, strlen(name)) && iso_grow(stack, cap, n + arity + 1);
    if (!ok || !arity) continue;
    stack[n++] = EG_NONE;
    for (size_t k = arity; k-- > 0;) stack[n++] = eg_node_original(g, at, k).i;
  }
  free(stack);
  return egi_text_done(&t, ok, out, err);
}

/* The terms of a pattern without variables. */
static iso_code add_terms(eg_graph *g, const eg_sat *s, const eg_pattern *p, eg_node *made,
                          eg_class *child, iso_error *err) {
  iso_code code = ISO_OK;
  for (size_t i = 0; i < p->n_terms && !code; i++) {
    const egi_term *t = &p->term[i];
    const egi_op *op = &s->op[t->sym];
    eg_symbol symbol;
    for (uint32_t k = 0; k < t->n; k++) child[k].i = made[p->kid[t->kid + k]].i;
    code = eg_intern(g, op->name, op->n_name, &symbol, err);
    if (!code) code = egi_add_exact(g, symbol, child, t->n, &made[i], err);
  }
  return code;
}

/* The reader of patterns takes an eg_sat for its operators, so one is made for them. */
iso_code eg_add_term(eg_graph *g, const char *text, size_t n, eg_node *out, iso_error *err) {
  eg_pattern p = {0};
  eg_sat *s;
  iso_code code = eg_sat_new(NULL, &s, err);
  if (code) return code;
  code = egi_pattern_read(s, text, n, true, &p, err);
  if (!code && (p.n_vars || p.n_roots != 1))
    code = iso_fail(err, ISO_FORMAT, "a term has no variables");
  eg_node *made = code ? NULL : malloc(p.n_terms * sizeof *made);
  eg_class *child = code ? NULL : malloc((s->max_arity + 1) * sizeof *child);
  if (!code && (!made || !child)) code = iso_fail(err, ISO_NOMEM, "out of memory for a term");
  if (!code) code = add_terms(g, s, &p, made, child, err);
  if (!code) *out = made[p.root[0]];
  free(made);
  free(child);
  egi_pattern_fini(&p);
  eg_sat_free(s);
  return code;
}
