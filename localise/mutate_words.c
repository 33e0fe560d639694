/* An operator that the other side leaves out, in the words of a person who reads the report: a
 * residual, a bias, a factor, a bound, a norm. The table of operators says which it is.
 */
#include "localise/mutate.h"
#include "rules/operators.h"

#include <stdlib.h>
#include <string.h>

/* Marks node i and the nodes that it is computed from. Nodes come after their operands. */
static void mark_causes(const synth_graph *g, uint32_t i, bool *cause) {
  cause[i] = true;
  for (uint32_t n = i + 1; n-- > 0;) {
    const rule_term *call = cause[n] && g->node[n].kind == SYNTH_OP ? g->node[n].call : NULL;
    for (uint32_t k = 0; call && k < call->n; k++) {
      const rule_term *a = call->child[k];
      if (a->kind == RULE_VAR) cause[a->u.i] = true;
      for (uint32_t j = 0; a->kind == RULE_LIST && j < a->n; j++)
        if (a->child[j]->kind == RULE_VAR) cause[a->child[j]->u.i] = true;
    }
  }
}

/* Whether one of two operands is computed from the other, so that it is led past an operator. */
static bool is_residual(const synth_graph *g, uint32_t a, uint32_t b) {
  bool *cause = calloc(g->n_nodes, sizeof *cause);
  if (!cause) return false; /* then the words say less */
  const uint32_t late = a > b ? a : b, early = a > b ? b : a;
  mark_causes(g, late, cause);
  const bool is = cause[early];
  free(cause);
  return is;
}

/* The first argument beside number `kept` that says something; NULL: there is none. */
static const rule_term *beside(const rule_term *call, uint32_t kept) {
  for (uint32_t k = 0; k < call->n; k++)
    if (k != kept && (call->child[k]->kind == RULE_VAR || call->child[k]->kind == RULE_INT ||
                      call->child[k]->kind == RULE_FLOAT))
      return call->child[k];
  return NULL;
}

const char *lo_called(iso_arena *a, const synth_graph *g, uint32_t i) {
  const synth_node *n = &g->node[i];
  if (n->kind != SYNTH_OP || !n->scope || !*n->scope)
    return iso_arena_printf(a, "\"%s\"", n->name ? n->name : n->id);
  return iso_arena_printf(a, "\"%s\" of %s", n->id, n->scope);
}

/* A tensor of `g` or a number by its name. */
static const char *named(state *s, const synth_graph *g, const rule_term *t) {
  iso_arena *a = &s->res->arena;
  if (t->kind == RULE_VAR && t->u.i < (int64_t)g->n_nodes) return lo_called(a, g, (uint32_t)t->u.i);
  char *text = rule_term_print(t, s->schemas, NULL);
  const char *kept = text ? iso_arena_strdup(a, text) : NULL;
  free(text);
  return kept ? kept : "?";
}

const char *lo_short_name(iso_arena *a, const char *op) {
  const char *from = strstr(op, "::");
  from = from ? from + 2 : op;
  return iso_arena_strndup(a, from, strcspn(from, "."));
}

/* The tensor that is added to `kept`, with its role. */
static const char *summand(state *s, const synth_graph *g, const rule_term *kept,
                           const rule_term *t) {
  const bool var = t->kind == RULE_VAR && t->u.i < (int64_t)g->n_nodes;
  const synth_node *n = var ? &g->node[t->u.i] : NULL;
  const char *role = "";
  if (n && n->kind == SYNTH_PARAMETER) role = "the bias ";
  else if (n && (n->kind == SYNTH_OP || n->kind == SYNTH_INPUT) && kept->kind == RULE_VAR &&
           is_residual(g, (uint32_t)kept->u.i, (uint32_t)t->u.i))
    role = "the residual ";
  return iso_arena_printf(&s->res->arena, "%s%s", role, named(s, g, t));
}

void lo_step_in_words(state *s, const synth_graph *g, const rule_term *call, uint32_t kept,
                      const char **subject, const char **done) {
  iso_arena *a = &s->res->arena;
  const rule_arithmetic as = rule_operator_of(call->u.s)->arithmetic;
  const rule_term *with = beside(call, kept);
  *subject = "it";
  if (with && as == RULE_ARITHMETIC_ADD) {
    *subject = summand(s, g, call->child[kept], with);
    *done = "added";
  } else if (with && as == RULE_ARITHMETIC_SUB && kept == 0) {
    *subject = named(s, g, with);
    *done = "subtracted";
  } else if (with && as == RULE_ARITHMETIC_MUL)
    *done = iso_arena_printf(a, "multiplied by %s", named(s, g, with));
  else if (with && as == RULE_ARITHMETIC_DIV && kept == 0)
    *done = iso_arena_printf(a, "divided by %s", named(s, g, with));
  else {
    *subject = lo_short_name(a, call->u.s);
    *done = "applied";
  }
}

static const char *other_side(const repair *r) { return r->task->side == LEFT ? "right" : "left"; }

const char *rp_too_much(repair *r, const rule_term *call, uint32_t kept) {
  const char *subject, *done;
  lo_step_in_words(r->s, r->g, call, kept, &subject, &done);
  return iso_arena_printf(&r->s->res->arena, "%s is %s, and on the %s it is not", subject, done,
                          other_side(r));
}

const char *rp_too_little(repair *r, const synth_graph *g, const rule_term *call, uint32_t kept) {
  const char *subject, *done;
  lo_step_in_words(r->s, g, call, kept, &subject, &done);
  return iso_arena_printf(&r->s->res->arena, "%s is not %s, and on the %s it is", subject, done,
                          other_side(r));
}
