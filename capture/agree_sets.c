/* Input sets of two captures, put together from those of each. */
#include <stdlib.h>
#include <string.h>

#include "capture/agree_int.h"

static iso_code no_memory(const agree *a) { return iso_fail(a->err, ISO_NOMEM, "out of memory"); }

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

/* Room for one more set on each side. */
static iso_code grow(const agree *a, agree_sets *s) {
  for (int side = 0; side < 2; side++) {
    const size_t need = (s->n + 1) * a->graph[side]->n_nodes + 1;
    rule_tensor **more = realloc(s->at[side], need * sizeof *more);
    if (!more) return no_memory(a);
    s->at[side] = more;
  }
  return ISO_OK;
}

/* Set `set` of each graph by itself, at the end. Both sides get room before either takes a
 * reference: agree_drop releases exactly the sets that s->n counts. */
iso_code agree_add(const agree *a, agree_sets *s, size_t set) {
  const iso_code c = grow(a, s);
  if (c) return c;
  for (int side = 0; side < 2; side++) {
    const cap_graph *g = a->graph[side];
    for (size_t i = 0; i < g->n_nodes; i++)
      s->at[side][s->n * g->n_nodes + i] = rule_tensor_ref(g->input[set * g->n_nodes + i]);
  }
  s->n++;
  return ISO_OK;
}

rule_tensor **agree_slot(const agree *a, agree_sets *s, size_t set, size_t i) {
  return &s->at[a->in[i].side][set * a->graph[a->in[i].side]->n_nodes + a->in[i].node];
}

/* The other side's value, in the last set, of the input that has the name of input `i` and that it
 * never reads. NULL: it has none. */
static rule_tensor *unread_value(const agree *a, const agree_sets *s, size_t i) {
  const cap_node *n = a->in[i].settled || a->in[i].other >= 0 ? NULL : agree_unread(a, i);
  const cap_graph *other = a->graph[!a->in[i].side];
  return n ? s->at[!a->in[i].side][(s->n - 1) * other->n_nodes + (size_t)(n - other->node)] : NULL;
}

/* Whether the other side holds another value for the input of this name that it never reads. */
static bool holds_another(const agree *a, size_t i) {
  const cap_node *n = a->in[i].settled || a->in[i].other >= 0 ? NULL : agree_unread(a, i);
  const cap_graph *other = a->graph[!a->in[i].side];
  for (size_t set = 0; n && set < a->sets; set++) {
    const rule_tensor *x = other->input[set * other->n_nodes + (size_t)(n - other->node)];
    if (x && !rule_tensor_same_bytes(x, agree_value(a, i, set))) return true;
  }
  return false;
}

/* `from` as agree_as_input has it, with ones for its zeros. */
static iso_code as_opposed(agree *a, rule_tensor *from, const cap_node *n, rule_tensor **out) {
  const cap_output *o = &n->output[0];
  const iso_code c = rule_tensor_new(o->dtype, &o->shape, out, a->err);
  for (int64_t i = 0; !c && i < from->numel; i++)
    rule_tensor_set(*out, i, rule_tensor_get(from, i) == 0);
  return c;
}

/* In the last set, the inputs of the other side take the values of `side`. */
static iso_code take_from(agree *a, agree_sets *s, int side) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < a->n && !c; i++) {
    const int64_t from = a->in[i].other;
    rule_tensor *t, **to = agree_slot(a, s, s->n - 1, i);
    if (a->in[i].side == side) continue;
    rule_tensor *value = from < 0 ? unread_value(a, s, i)
                         : agree_equal(a, i, (size_t)from)
                             ? NULL
                             : *agree_slot(a, s, s->n - 1, (size_t)from);
    if (!value) continue;
    c = (a->in[i].opposed ? as_opposed : agree_as_input)(a, value, agree_node(a, i), &t);
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
        a, RULE_ASSUMES_INPUT,
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
    other |= a->in[i].other >= 0 ? !agree_equal(a, i, (size_t)a->in[i].other) : holds_another(a, i);
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
  for (size_t i = 0; i < a->n; i++)
    if (a->in[i].opposed) a->in[i].other = -1;
  return c;
}

/* ---- one capture has more sets than the other ---- */

/* The one input of the longer side that has these values on the sets of both: the namesake first,
 * then one that is no namesake of another input of the shorter side. -1: there is none, or more
 * than one. */
static int64_t source_of(const agree *a, size_t i) {
  int64_t found = -1;
  for (size_t j = 0; j < a->n; j++) {
    if (a->in[j].side == a->in[i].side || a->in[j].settled || !agree_equal(a, i, j)) continue;
    if (strcmp(agree_node(a, i)->name, agree_node(a, j)->name) == 0) return (int64_t)j;
    if (agree_namesake(a, j) >= 0) continue;
    if (found >= 0) return -1;
    found = (int64_t)j;
  }
  return found;
}

/* The sources of all inputs of `side`; false: one has none. */
static bool sources(const agree *a, int side, int64_t *from) {
  for (size_t i = 0; i < a->n; i++) {
    if (a->in[i].side != side) continue;
    if (a->in[i].settled || (from[i] = source_of(a, i)) < 0) return false;
  }
  return true;
}

/* Input sets that `side` lacks. `more`: as cap_graph has its inputs. */
static iso_code fill_sets(agree *a, int side, const int64_t *from, rule_tensor **more, size_t n) {
  const cap_graph *g = a->graph[side], *other = a->graph[!side];
  iso_code c = ISO_OK;
  for (size_t set = 0; set < n; set++)
    for (size_t i = 0; i < g->n_nodes; i++)
      more[set * g->n_nodes + i] =
          rule_tensor_ref(g->input[(set < g->n_sets ? set : 0) * g->n_nodes + i]);
  for (size_t set = g->n_sets; set < n && !c; set++)
    for (size_t i = 0; i < a->n && !c; i++) {
      if (a->in[i].side != side) continue;
      rule_tensor **to = &more[set * g->n_nodes + a->in[i].node], *own;
      rule_tensor *value = other->input[set * other->n_nodes + a->in[from[i]].node];
      if ((c = agree_as_input(a, value, agree_node(a, i), &own))) break;
      rule_tensor_unref(*to);
      *to = own;
    }
  return c;
}

iso_code agree_lengthen(agree *a) {
  const size_t n[2] = {a->graph[LEFT]->n_sets, a->graph[RIGHT]->n_sets};
  const int side = n[LEFT] < n[RIGHT] ? LEFT : RIGHT;
  if (n[LEFT] == n[RIGHT]) return ISO_OK;
  const size_t all = n[!side] * (a->graph[side]->n_nodes + 1);
  int64_t *from = calloc(a->n + 1, sizeof *from);
  rule_tensor **more = calloc(all + 1, sizeof *more);
  iso_code c = from && more ? ISO_OK : no_memory(a);
  const bool known = !c && sources(a, side, from);
  if (known) c = fill_sets(a, side, from, more, n[!side]);
  if (known && !c) {
    cap_replace_inputs(a->graph[side], more, n[!side]);
    a->sets = n[!side];
    more = NULL;
  }
  for (size_t i = 0; more && i < all; i++) rule_tensor_unref(more[i]);
  free(more);
  free(from);
  return c;
}
