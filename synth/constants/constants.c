/* Constants: nodes that depend on neither parameters nor values of inputs (rotary tables, masks,
 * positions). They are evaluated in their captured dtypes, where two frameworks agree to 2 ulp,
 * related by those values, and never redrawn. */
#include "synth/constants/constants_int.h"
#include "rules/names.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool signs_count(const state *s) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->graph[side]->n_nodes; i++)
      if (s->graph[side]->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE &&
          rule_reads_zero_sign(s->graph[side]->node[i].call))
        return true;
  return false;
}

bool cn_is_part(const state *s, eg_node e) {
  const rec *r = &s->rec[e.i];
  if (!r->konst || r->node[LEFT] >= 0 || r->node[RIGHT] >= 0) return false;
  const char *op = st_operator(s, e);
  return strcmp(op, OP_REAL) == 0 || strcmp(op, OP_IMAG) == 0;
}

/* Whether a member of the class is of that side, or is part of a constant of that side. */
bool st_constant_on(state *s, eg_node e, int side) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].node[side] >= 0 ||
        (cn_is_part(s, m[i]) && st_constant_on(s, st_rep(s, eg_node_child(s->g, m[i], 0)), side)))
      return true;
  return false;
}

bool st_feeds_values(state *s, eg_node e) {
  const eg_node *p, *m;
  const size_t members = eg_class_nodes(s->g, eg_class_of(s->g, e), &m);
  for (size_t i = 0; i < members; i++)
    if (cn_is_part(s, m[i])) return true; /* parts are made of what feeds values */
  const size_t n = eg_class_parents(s->g, eg_class_of(s->g, e), &p);
  for (size_t i = 0; i < n; i++) {
    const rec *r = &s->rec[p[i].i];
    if (r->konst) continue;
    if (r->tensor || r->multi) return true;
    if (st_feeds_values(s, p[i])) return true; /* a list */
  }
  return false;
}

/* Every class of constants takes one value, computed from its children's: the related term's where
 * there is one (so that it agrees with the constant that it was related to, and so do all calls
 * above), else the oldest member's. */
static iso_code refresh_class(state *s, eg_class cls, uint8_t *mark, iso_error *err) {
  if (mark[cls.i]) return ISO_OK;
  mark[cls.i] = 1;
  const eg_node *m;
  size_t n = eg_class_nodes(s->g, cls, &m);
  if (n == 0) return ISO_OK;
  eg_node pick = m[0];
  for (size_t i = 0; i < n; i++)
    if (s->rec[m[i].i].def != EG_NONE) pick.i = s->rec[m[i].i].def;
  for (size_t k = 0; k < eg_node_arity(s->g, pick); k++) {
    iso_code c = refresh_class(s, eg_node_child(s->g, pick, k), mark, err);
    if (c) return c;
  }
  rec *r = &s->rec[pick.i];
  if (!r->konst || !r->valued || !(r->tensor || r->multi)) return ISO_OK;
  if (!r->leaf) {
    st_forget(s, pick);
    iso_code c = st_value(s, pick, err);
    if (c) return c;
  }
  n = eg_class_nodes(s->g, cls, &m);
  for (size_t i = 0; i < n; i++) {
    rec *q = &s->rec[m[i].i];
    r = &s->rec[pick.i];
    if (m[i].i == pick.i || !q->valued || q->n_out != r->n_out || !q->cval || !r->cval) continue;
    for (size_t k = 0; k < q->n_out * s->n_draws; k++) {
      rule_tensor_unref(q->val[k]);
      q->val[k] = rule_tensor_ref(r->val[k]);
    }
    /* One of another dtype keeps its own value: calls that read it expect that dtype. */
    for (size_t k = 0; k < q->n_out * s->n_kept; k++) {
      if (q->cval[k]->dtype != r->cval[k]->dtype) continue;
      rule_tensor_unref(q->cval[k]);
      q->cval[k] = rule_tensor_ref(r->cval[k]);
    }
  }
  return ISO_OK;
}

static iso_code refresh_constants(state *s, iso_error *err) {
  uint8_t *mark = calloc(s->n_rec + 1, 1);
  if (!mark) return nomem(err);
  iso_code c = ISO_OK;
  const size_t n = s->n_rec, before = s->assumed.n;
  for (uint32_t i = 0; i < n && !c; i++)
    if (s->rec[i].konst && s->rec[i].valued)
      c = refresh_class(s, eg_class_of(s->g, (eg_node){i}), mark, err);
  s->assumed.n = before; /* literals were noted the first time */
  free(mark);
  return c;
}

/* ---- complex numbers ----
 * One side rotates by a table of complex numbers and the other one by cosines and sines: the parts
 * are constants like any other, and the whole is put together from them. */

static iso_code add_call(state *s, const char *op, const eg_node *arg, size_t n, eg_node *out,
                         iso_error *err) {
  const rule_term *var[2], *call;
  for (size_t i = 0; i < n; i++)
    if (!(var[i] = rule_var(&s->arena, (uint32_t)i))) return nomem(err);
  iso_code c = rule_call(&s->arena, s->schemas, op, var, n, &call, err);
  if (!c) c = st_add_term(s, call, arg, out, err);
  return c ? c : st_value(s, *out, err);
}

/* Returns: in `part` the real and the imaginary part of `e`. */
static iso_code relate_parts(state *s, eg_node e, eg_node part[2], iso_error *err) {
  eg_node whole;
  iso_code c = add_call(s, OP_REAL, &e, 1, &part[0], err);
  if (!c) c = add_call(s, OP_IMAG, &e, 1, &part[1], err);
  if (!c) c = add_call(s, OP_COMPLEX, part, 2, &whole, err);
  if (c || eg_equal(s->g, e, whole)) return c;
  ISO_CHECK(cn_identical(s, e, whole));
  if (s->rec[e.i].leaf) s->rec[part[0].i].def = part[0].i, s->rec[part[1].i].def = part[1].i;
  else s->rec[whole.i].def = whole.i;
  const bool left = s->rec[e.i].node[LEFT] >= 0;
  const char *id = st_any_id(s, e),
             *text = iso_arena_printf(&s->arena,
                                      "(" OP_COMPLEX " (" OP_REAL " %s) (" OP_IMAG " %s))", id, id);
  if (!text) return nomem(err);
  c = cn_note(s, left ? e : whole, left ? whole : e, text, err);
  return c ? c : cn_merge(s, e, whole, err);
}

iso_code cn_join_equal(state *s, eg_node *all, size_t *n, eg_node e, iso_error *err) {
  iso_code c = ISO_OK;
  bool joined = false;
  for (size_t k = 0; k < *n && !c && !joined; k++) {
    const rec *q = &s->rec[all[k].i], *r = &s->rec[e.i];
    joined = eg_equal(s->g, all[k], e);
    if (joined || q->cval[0]->numel != r->cval[0]->numel || !cn_alike(s, all[k], e) ||
        cn_two_inputs(s, all[k], e))
      continue;
    const bool left_first = q->node[LEFT] >= 0;
    bool fine;
    if ((c = cn_note_agreement(s, left_first ? all[k] : e, left_first ? e : all[k], NULL, &fine,
                               err)))
      break;
    if (!fine) continue;
    c = cn_merge(s, all[k], e, err);
    joined = true;
  }
  if (!c && !joined) all[(*n)++] = e;
  return c;
}

iso_code st_relate_constants(state *s, iso_error *err) {
  s->constants.signs = signs_count(s);
  eg_node *all = calloc(4 * s->n_rec + 1, sizeof *all); /* complex ones and their parts; masks */
  size_t n = 0;
  iso_code c = all ? ISO_OK : nomem(err);
  const size_t n_rec = s->n_rec;
  for (uint32_t i = 0; i < n_rec && !c; i++) {
    const eg_node e = {i};
    rec *r = &s->rec[i];
    if (!r->konst || !(r->tensor || r->multi) || st_made(r)) continue;
    if (st_unread(s, r)) continue;
    if ((c = st_value(s, e, err))) {
      const int side = s->rec[i].node[0] >= 0 ? LEFT : RIGHT;
      iso_prefix(err, "%s: node \"%s\": ", s->graph[side]->path, st_any_id(s, e));
      break;
    }
    r = &s->rec[i];
    if (!r->tensor) continue;
    ISO_CHECK(r->cval);
    c = cn_join_equal(s, all, &n, e, err);
  }
  for (size_t k = 0, whole = n; k < whole && !c; k++) {
    if (!rule_dtype_is_complex(s->rec[all[k].i].cval[0]->dtype) || !st_feeds_values(s, all[k]))
      continue;
    eg_node part[2];
    c = relate_parts(s, all[k], part, err);
    for (int i = 0; i < 2 && !c; i++) c = cn_join_equal(s, all, &n, part[i], err);
  }
  if (!c) c = st_relate_literals(s, all, n, err);
  for (size_t k = 0, whole = n; k < whole && !c; k++) c = cn_relate_hiding(s, all[k], all, &n, err);
  for (size_t k = 0; k < n && !c; k++) {
    c = cn_relate_triangle(s, all[k], err);
    if (!c) c = cn_relate_numbers(s, all[k], err);
    if (!c) c = cn_relate_flags(s, all[k], err);
  }
  bool *related = calloc(n + 1, 1);
  if (!related && !c) c = nomem(err);
  for (int smaller = 1; smaller >= 0 && !c; smaller--)
    for (size_t k = 0; k < n && !c; k++) {
      const rule_tensor *t = s->rec[all[k].i].cval[0];
      const bool l = st_constant_on(s, all[k], LEFT), r = st_constant_on(s, all[k], RIGHT);
      if (related[k] || (l && r) || t->dtype == RULE_BOOL || t->numel < 2 ||
          !rule_tensor_varies(t) || !st_feeds_values(s, all[k]))
        continue;
      c = cn_relate_layout(s, &(cn_list){all, n, related}, k, smaller == 1, err);
    }
  for (size_t k = 0; k < n && !c; k++) c = cn_relate_tiled(s, &(cn_list){all, n, related}, k, err);
  if (!c) c = st_relate_rounded(s, all, n, related, err);
  free(related);
  free(all);
  if (!c && s->constants.inexact) c = refresh_constants(s, err);
  return c;
}
