/* Input sets of two captures, put together from those of each. */
#include <stdlib.h>
#include <string.h>

#include "capture/agree_int.h"

static iso_code no_memory(const agree *a) {
  return iso_fail(a->err, ISO_NOMEM, "out of memory");
}

/* `from` in the dtype and shape of `node`. Owns: the caller unrefs. */
iso_code agree_as_input(agree *a, rule_tensor *from, const cap_node *n, rule_tensor **out) {
  const cap_output *o = &n->output[0];
  if (from->dtype == o->dtype) return rule_tensor_reshape(from, &o->shape, out, a->err);
  iso_code c = rule_tensor_new(o->dtype, &o->shape, out, a->err);
  for (int64_t i = 0; !c && i < from->numel; i++) {
    const double x = rule_tensor_get(from, i);
    rule_tensor_set(*out, i, x);
    if (rule_tensor_get(*out, i) == x || rule_dtype_is_float(o->dtype)) continue;
    rule_tensor_unref(*out);
    c = iso_fail(a->err, ISO_USAGE,
                 "input \"%.80s\" is %s in one capture and cannot hold %.17g, which the other was "
                 "captured on",
                 n->name, rule_dtype_name(o->dtype), x);
  }
  return c;
}

void agree_drop(const agree *a, agree_sets *s) {
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; s->at[side] && i < s->n * a->graph[side]->n_nodes; i++)
      rule_tensor_unref(s->at[side][i]);
    free(s->at[side]);
  }
}

/* Set `set` of each graph by itself, at the end. */
iso_code agree_add(const agree *a, agree_sets *s, size_t set) {
  for (int side = 0; side < 2; side++) {
    const cap_graph *g = a->graph[side];
    rule_tensor **more = realloc(s->at[side], ((s->n + 1) * g->n_nodes + 1) * sizeof *more);
    if (!more) return no_memory(a);
    s->at[side] = more;
    for (size_t i = 0; i < g->n_nodes; i++)
      more[s->n * g->n_nodes + i] = rule_tensor_ref(g->input[set * g->n_nodes + i]);
  }
  s->n++;
  return ISO_OK;
}

rule_tensor **agree_slot(const agree *a, agree_sets *s, size_t set, size_t i) {
  return &s->at[a->in[i].side][set * a->graph[a->in[i].side]->n_nodes + a->in[i].node];
}

/* In the last set, the inputs of the other side take what `side` has. */
static iso_code take_from(agree *a, agree_sets *s, int side) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < a->n && !c; i++) {
    const int64_t from = a->in[i].other;
    rule_tensor *t, **to = agree_slot(a, s, s->n - 1, i);
    if (a->in[i].side == side || from < 0 || agree_equal(a, i, (size_t)from)) continue;
    c = agree_as_input(a, *agree_slot(a, s, s->n - 1, (size_t)from), agree_node(a, i), &t);
    if (c) return c;
    rule_tensor_unref(*to);
    *to = t;
  }
  return c;
}

static bool last_is_new(const agree *a, const agree_sets *s) {
  for (size_t set = 0; set + 1 < s->n; set++) {
    bool same = true;
    for (int side = 0; side < 2; side++) {
      const size_t n = a->graph[side]->n_nodes;
      for (size_t i = 0; i < n && same; i++) {
        const rule_tensor *x = s->at[side][set * n + i], *y = s->at[side][(s->n - 1) * n + i];
        same = !x || rule_tensor_same_bytes(x, y);
      }
    }
    if (same) return false;
  }
  return true;
}

static void forget_last(const agree *a, agree_sets *s) {
  s->n--;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0, n = a->graph[side]->n_nodes; i < n; i++)
      rule_tensor_unref(s->at[side][s->n * n + i]);
}

void agree_use(agree *a, agree_sets *s) {
  for (int side = 0; side < 2; side++) {
    cap_replace_inputs(a->graph[side], s->at[side], s->n);
    s->at[side] = NULL;
  }
  a->sets = s->n;
}

static iso_code note_exchanged(agree *a) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < a->n && a->in[i].side == LEFT && !c; i++) {
    const int64_t j = a->in[i].other;
    if (j < 0 || agree_equal(a, i, (size_t)j)) continue;
    const char *l = agree_node(a, i)->name, *r = agree_node(a, (size_t)j)->name;
    const bool same = strcmp(l, r) == 0;
    c = agree_note(
        a, "input",
        iso_arena_printf(&a->graph[LEFT]->arena,
                         "the captures were made on different values of %s%s%s%s: both ran on the "
                         "left's, and on the right's as a further input set",
                         l, same ? "" : " (right: ", same ? "" : r, same ? "" : ")"),
        i, j);
  }
  return c;
}

/* Both graphs on the left's values, then on the right's. */
iso_code agree_exchange(agree *a) {
  bool other = false;
  agree_sets s = {0};
  for (size_t i = 0; i < a->n; i++)
    other |= a->in[i].other >= 0 && !agree_equal(a, i, (size_t)a->in[i].other);
  if (!other) return ISO_OK;
  iso_code c = note_exchanged(a);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t set = 0; set < a->sets && !c; set++) {
      c = agree_add(a, &s, set);
      if (!c) c = take_from(a, &s, side);
      if (!c && !last_is_new(a, &s)) forget_last(a, &s);
    }
  if (!c) agree_use(a, &s);
  agree_drop(a, &s);
  return c;
}
