/* Integers that have one number exactly where a mask hides them: ids of padding, labels that a loss
 * leaves out. A caller made one of the other, so inputs in which they contradict each other show no
 * difference. */
#include "synth/loop.h"
#include "synth/refute/refute.h"

/* Of captured values: whether `t` is one number exactly where `m` is zero, or exactly where it is
 * not, as `where` says. */
static bool is_filled(const rule_tensor *t, const rule_tensor *m, bool where, int64_t *fill) {
  enum { SOME = 2 }; /* one element is one number anyway */
  int64_t hidden = 0;
  for (int64_t i = 0; i < t->numel; i++)
    if ((rule_tensor_get(m, i) != 0) == where) *fill = rule_tensor_get_int(t, i), hidden++;
  if (hidden < SOME || hidden == t->numel) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if ((rule_tensor_get_int(t, i) == *fill) != ((rule_tensor_get(m, i) != 0) == where))
      return false;
  return true;
}

static bool is_mask(const rule_tensor *t) {
  if (rule_dtype_is_complex(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (rule_tensor_get(t, i) != 0 && rule_tensor_get(t, i) != 1) return false;
  return t->numel > 0;
}

static bool is_input(const synth_node *n) { return n->kind == SYNTH_INPUT && n->value[0]; }

/* An input of integers and a mask, which of them is hidden, and by which number. */
typedef struct fill {
  int64_t number;
  bool where;
} fill;

/* From captured values. */
static bool find_fill(const state *s, int side, size_t i, size_t m, fill *out) {
  const synth_node *t = &s->graph[side]->node[i], *mask = &s->graph[side]->node[m];
  if (i == m || !is_input(t) || !is_input(mask) || t->value[0]->numel != mask->value[0]->numel ||
      !rule_dtype_is_int(t->value[0]->dtype) || is_mask(t->value[0]) || !is_mask(mask->value[0]))
    return false;
  for (int where = 0; where < 2; where++) {
    out->where = where;
    if (is_filled(t->value[0], mask->value[0], where, &out->number)) return true;
  }
  return false;
}

static const rule_tensor *in_witness(const state *s, int side, size_t i) {
  const rule_tensor *t = s->res->witness_leaf[side][i];
  return t ? t : s->graph[side]->node[i].value[0];
}

static bool is_hidden(const rule_tensor *mask, int64_t k, const fill *f) {
  return (rule_tensor_get(mask, k) != 0) == f->where;
}

static bool contradicts(const rule_tensor *x, const rule_tensor *mask, const fill *f) {
  for (int64_t k = 0; k < x->numel; k++)
    if ((rule_tensor_get(x, k) == (double)f->number) != is_hidden(mask, k, f)) return true;
  return false;
}

/* A number of the captured ones that hides nothing. */
static double other_number(const rule_tensor *captured, int64_t from, const fill *f) {
  int64_t k = from;
  while (rule_tensor_get_int(captured, k) == f->number) k = (k + 1) % captured->numel;
  return rule_tensor_get(captured, k);
}

bool st_agree_with_masks(const state *s, int side, size_t node, rule_tensor *value) {
  bool any = false;
  fill f;
  for (size_t m = 0; m < s->graph[side]->n_nodes; m++) {
    if (!find_fill(s, side, node, m, &f)) continue;
    const rule_tensor *mask = in_witness(s, side, m);
    if (!contradicts(value, mask, &f)) continue;
    any = true;
    for (int64_t k = 0; k < value->numel; k++)
      if (is_hidden(mask, k, &f)) rule_tensor_set(value, k, (double)f.number);
      else if (rule_tensor_get(value, k) == (double)f.number)
        rule_tensor_set(value, k, other_number(s->graph[side]->node[node].value[0], k, &f));
  }
  return any;
}

iso_code st_doubt_fills(state *s, iso_error *err) {
  fill f;
  if (!s->res->witness_leaf[LEFT] || !s->res->witness_leaf[RIGHT]) return ISO_OK;
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      for (size_t m = 0; m < s->graph[side]->n_nodes; m++) {
        if (!find_fill(s, side, i, m, &f) ||
            !contradicts(in_witness(s, side, i), in_witness(s, side, m), &f))
          continue;
        s->res->verdict = SYNTH_UNDECIDED;
        s->res->reason = iso_arena_printf(
            &s->res->arena,
            "the outputs differ only where %.80s and %.80s contradict each other: as they were "
            "captured, %lld stands in the first exactly where the second hides it",
            s->graph[side]->node[i].name, s->graph[side]->node[m].name, (long long)f.number);
        return s->res->reason ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
      }
  return ISO_OK;
}
