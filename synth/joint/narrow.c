/* Parameters that stand in a run as they are stored: a model's weights in float64 take two to four
 * times the room, and a run reads each once. The numbers are the same; a call gets them in float64,
 * which is let go behind it. */
#include "rules/names.h"
#include "synth/joint/run_int.h"

#include <string.h>

bool st_is_narrow(const rule_tensor *t) {
  return t && rule_dtype_is_float(t->dtype) && t->dtype != RULE_F64;
}

/* Whether what is stored are these numbers, to the bit. */
static bool holds(const rule_tensor *stored, const rule_tensor *v) {
  enum { BLOCK = 4096 };
  double room[BLOCK];
  const double *x = v->data;
  if (v->dtype != RULE_F64 || !rule_shape_eq(&stored->shape, &v->shape)) return false;
  for (int64_t at = 0; at < v->numel; at += BLOCK) {
    const int64_t n = v->numel - at < BLOCK ? v->numel - at : BLOCK;
    rule_tensor_widen(stored, at, n, room);
    if (memcmp(room, x + at, (size_t)n * sizeof *room) != 0) return false;
  }
  return true;
}

/* A lonely one is disturbed as its storage rounds it, which is done in float64. */
iso_code st_stored_leaf(state *s, int side, size_t i, size_t draw, rule_tensor **out,
                        iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const eg_node own = s->map[side][i], home = st_home(s, own);
  const rec *r = &s->rec[home.i];
  *out = NULL;
  if (n->kind != SYNTH_PARAMETER || draw >= s->n_sets || !st_spare(s, home) || r->lonely ||
      s->rec[own.i].lonely || st_masked(s, side, i) || !st_is_narrow(n->value[0]))
    return ISO_OK;
  if (r->leaf) { /* what st_draw_atom reads */
    const int at = r->node[LEFT] >= 0 ? LEFT : RIGHT;
    rule_tensor *stored = s->graph[at]->node[r->node[at]].value[0];
    if (st_is_narrow(stored)) *out = stored;
    return ISO_OK;
  }
  const rule_tensor *v = st_val(s, home, draw);
  if (!v) return st_lost(&s->values, err);
  if (holds(n->value[0], v)) *out = n->value[0];
  st_trim(s);
  return ISO_OK;
}

iso_code st_widen_operands(const rule_term *t, st_wide *w, unsigned threads, rule_tensor **bind,
                           iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < t->n && !c; k++)
    c = st_widen_operands(t->child[k], w, threads, bind, err);
  if (c || t->kind != RULE_VAR || !st_is_narrow(bind[t->u.i])) return c;
  uint32_t at = 0;
  while (at < w->n && w->of[at] != bind[t->u.i]) at++;
  if (at == ST_WIDE) return ISO_OK; /* the call makes it wide for itself */
  if (at == w->n) {
    if ((c = rule_tensor_to_float64_in(bind[t->u.i], threads, &w->is[at], err))) return c;
    w->of[w->n++] = bind[t->u.i];
  }
  bind[t->u.i] = w->is[at];
  return ISO_OK;
}

void st_wide_free(st_wide *w) {
  while (w->n > 0) rule_tensor_unref(w->is[--w->n]);
}

/* Whether the call looks few rows of a stored table up, all of which are there. */
static bool reads_few(const rule_term *call, rule_tensor *const *bind) {
  if (strcmp(call->u.s, OP_EMBEDDING) != 0 || call->n < 2 || call->child[0]->kind != RULE_VAR ||
      call->child[1]->kind != RULE_VAR || call->child[0]->u.i == call->child[1]->u.i)
    return false;
  const rule_tensor *table = bind[call->child[0]->u.i], *ids = bind[call->child[1]->u.i];
  if (!st_is_narrow(table) || table->shape.rank != 2 || !ids || !rule_dtype_is_int(ids->dtype) ||
      ids->numel > table->shape.dim[0] / 4)
    return false;
  for (int64_t i = 0; i < ids->numel; i++) {
    const int64_t at = rule_tensor_get_int(ids, i);
    if (at < 0 || at >= table->shape.dim[0]) return false; /* libtorch is to say so */
  }
  return true;
}

iso_code st_few_rows(const rule_term *call, rule_tensor **bind, rule_tensor *own[2], size_t *n,
                     iso_error *err) {
  if (!reads_few(call, bind)) return ISO_OK;
  const rule_tensor *table = bind[call->child[0]->u.i], *ids = bind[call->child[1]->u.i];
  const int64_t width = table->shape.dim[1];
  const rule_shape shape = {.rank = 2, .dim = {ids->numel, width}};
  iso_code c = rule_tensor_new_unset(RULE_F64, &shape, &own[*n], err);
  if (!c) c = rule_tensor_new_unset(RULE_I64, &ids->shape, &own[++*n], err);
  if (c) return c;
  rule_tensor *rows = own[*n - 1], *place = own[*n];
  ++*n;
  for (int64_t i = 0; i < ids->numel; i++) {
    rule_tensor_widen(table, rule_tensor_get_int(ids, i) * width, width,
                      (double *)rows->data + i * width);
    rule_tensor_set_int(place, i, i);
  }
  bind[call->child[0]->u.i] = rows;
  bind[call->child[1]->u.i] = place;
  return ISO_OK;
}
