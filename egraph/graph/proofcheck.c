/* Replays an explanation, and trusts nothing else here.
 *
 * Of the graph it reads only the arguments with which an e-node was added: its symbol and its
 * original children, where a class id stands for the e-node with that id, for which the class was
 * made. Equality is a small union-find of its own over the e-nodes that the proof names; the
 * engine's union-find, hashcons and proof forest are not looked at. */
#include <stdlib.h>

#include "egraph/egraph.h"

typedef struct known {
  uint32_t *id, *up; /* the e-nodes that matter, ascending; and which one each is equal to */
  size_t n;
} known;

static int by_id(const void *a, const void *b) {
  uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return (x > y) - (x < y);
}

/* The place of an e-node's representative. Every id asked for was collected. */
static size_t place(known *s, uint32_t node) {
  size_t i = 0, j = s->n;
  while (j - i > 1) {
    size_t mid = i + (j - i) / 2;
    if (s->id[mid] <= node) i = mid;
    else j = mid;
  }
  while (s->up[i] != i) i = s->up[i] = s->up[s->up[i]];
  return i;
}

static bool same(known *s, uint32_t a, uint32_t b) { return a == b || place(s, a) == place(s, b); }

/* NULL if all e-nodes exist and congruences are between equal shapes. */
static const char *malformed(const eg_graph *g, const eg_step *step, size_t n, eg_node a,
                             eg_node b) {
  const size_t end = eg_count_added(g);
  if (a.i >= end || b.i >= end) return "no such e-node";
  for (size_t i = 0; i < n; i++) {
    const eg_step *s = &step[i];
    if (s->from.i >= end || s->to.i >= end) return "a step names no e-node";
    if (s->why.kind != EG_WHY_CONGRUENCE) continue;
    if (eg_node_symbol(g, s->from).i != eg_node_symbol(g, s->to).i)
      return "a congruence between different symbols";
    if (eg_node_arity(g, s->from) != eg_node_arity(g, s->to))
      return "a congruence between different arities";
  }
  return NULL;
}

static size_t arity_of(const eg_graph *g, const eg_step *s) {
  return s->why.kind == EG_WHY_CONGRUENCE ? eg_node_arity(g, s->from) : 0;
}

static bool collect(known *s, const eg_graph *g, const eg_step *step, size_t n, eg_node a,
                    eg_node b) {
  size_t m = 2 + 2 * n, k = 0, unique = 0;
  for (size_t i = 0; i < n; i++) m += 2 * arity_of(g, &step[i]);
  if (m > UINT32_MAX) return false;
  s->id = malloc(m * sizeof *s->id);
  s->up = malloc(m * sizeof *s->up);
  if (!s->id || !s->up) return false;
  s->id[k++] = a.i;
  s->id[k++] = b.i;
  for (size_t i = 0; i < n; i++) {
    s->id[k++] = step[i].from.i;
    s->id[k++] = step[i].to.i;
    for (size_t c = 0; c < arity_of(g, &step[i]); c++) {
      s->id[k++] = eg_node_original(g, step[i].from, c).i;
      s->id[k++] = eg_node_original(g, step[i].to, c).i;
    }
  }
  qsort(s->id, m, sizeof *s->id, by_id);
  for (size_t i = 0; i < m; i++)
    if (unique == 0 || s->id[unique - 1] != s->id[i]) {
      s->id[unique] = s->id[i];
      s->up[unique] = (uint32_t)unique;
      unique++;
    }
  s->n = unique;
  return true;
}

/* NULL if the step follows from those before it. */
static const char *refused(known *s, const eg_graph *g, const eg_step *t,
                           bool (*accept)(void *, const eg_step *), void *ctx) {
  if (t->why.kind != EG_WHY_CONGRUENCE)
    return accept && !accept(ctx, t) ? "a step's reason was not accepted" : NULL;
  for (size_t c = 0; c < arity_of(g, t); c++)
    if (!same(s, eg_node_original(g, t->from, c).i, eg_node_original(g, t->to, c).i))
      return "a congruence with children that are not equal yet";
  return NULL;
}

/* parameters: a proof and its claim, who accepts its steps, and the answer with its reason. */
iso_code eg_proof_check(const eg_graph *g, const eg_step *step, size_t n, eg_node a, eg_node b,
                        bool (*accept)(void *ctx, const eg_step *s), void *ctx, bool *ok,
                        const char **why_not, iso_error *err) {
  known s = {0};
  const char *reason = malformed(g, step, n, a, b);
  iso_code code = ISO_OK;
  if (reason) goto done;
  if (!collect(&s, g, step, n, a, b)) {
    code = iso_fail(err, ISO_NOMEM, "out of memory for a proof of %zu steps", n);
    goto done;
  }
  for (size_t i = 0; i < n && !reason; i++) {
    reason = refused(&s, g, &step[i], accept, ctx);
    if (!reason) s.up[place(&s, step[i].from.i)] = (uint32_t)place(&s, step[i].to.i);
  }
  if (!reason && !same(&s, a.i, b.i)) reason = "the steps do not connect the two e-nodes";
done:
  free(s.id);
  free(s.up);
  if (code) return code;
  *ok = !reason;
  if (why_not) *why_not = reason;
  return ISO_OK;
}
