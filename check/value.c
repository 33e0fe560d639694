/* The checker's computations: relations of leaves and constants by value, and examples for the
 * rules' variables.
 *
 * Leaves are compared as they were captured, bit for bit. Constants are computed in captured
 * dtypes, one value for each class of terms known to be equal: where two tables differ by 2 ulp,
 * both sides go on with one of them, so that calls on them can be compared in turn. */
#include "check/value_int.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/operators.h"

static const double output_tol =
    1e-6; /* by slice; tables that differ in their last places are one value by then */

void chk_drop_values(chk_values *v) {
  for (size_t i = 0; i < v->n; i++) rule_tensor_unref(v->v[i]);
  free(v->v);
  *v = (chk_values){0};
}

static iso_code keep(chk_state *k, rule_tensor *const *t, size_t n, chk_values *out) {
  rule_tensor **v = calloc(n + 1, sizeof *v);
  if (!v) return chk_nomem(k);
  for (size_t i = 0; i < n; i++) v[i] = rule_tensor_ref(t[i]);
  *out = (chk_values){v, n};
  return ISO_OK;
}

void chk_free_values(chk_state *k) {
  for (size_t i = 0; i < k->n_terms; i++) {
    if (k->here.konst) chk_drop_values(&k->here.konst[i]);
    if (k->here.real) chk_drop_values(&k->here.real[i]);
  }
  free(k->here.konst);
  free(k->here.real);
  free(k->asked.answered);
  free(k->asked.on);
  k->here.konst = k->here.real = NULL;
  k->asked.answered = k->asked.on = NULL;
}

static iso_code keep_constant(chk_state *k, uint32_t leaf) {
  rule_tensor *v = k->here.other && k->here.other[leaf] ? k->here.other[leaf]
                                                        : chk_captured(k, leaf, k->here.set);
  return keep(k, &v, 1, &k->here.konst[leaf]);
}

iso_code chk_set_constant(chk_state *k, uint32_t term, rule_tensor *v) {
  chk_drop_values(&k->here.konst[term]);
  return keep(k, &v, 1, &k->here.konst[term]);
}

/* The certificate's own calls spell what captures compute in other ways: some times as much, and
 * not without end. */
static double most_elements(const chk_state *k) {
  enum { LEAST = 1 << 26, TIMES = 32 };
  double sum = 0;
  for (size_t i = 0; i < k->n_terms; i++)
    for (size_t o = 0; k->term[i].node && o < k->term[i].node->n_outputs; o++) {
      const rule_shape *s = &k->term[i].node->output[o].shape;
      double n = 1;
      for (uint32_t d = 0; d < s->rank; d++) n *= (double)s->dim[d];
      sum += n;
    }
  return fmax(LEAST, TIMES * sum);
}

iso_code chk_begin_values(chk_state *k) {
  iso_code c = ISO_OK;
  chk_free_values(k);
  free(k->here.up);
  k->here.own = 0;
  k->here.most = most_elements(k);
  k->here.konst = calloc(k->n_terms + 1, sizeof *k->here.konst);
  k->here.real = calloc(k->n_terms + 1, sizeof *k->here.real);
  k->here.up = malloc((k->n_terms + 1) * sizeof *k->here.up);
  k->asked.answered = calloc(k->n_terms + 1, sizeof *k->asked.answered);
  k->asked.on = calloc(k->n_terms + 1, sizeof *k->asked.on);
  k->asked.n = 0;
  if (!k->here.konst || !k->here.real || !k->here.up || !k->asked.answered || !k->asked.on)
    return chk_nomem(k);
  for (uint32_t i = 0; i < k->n_terms && !c; i++) {
    const cap_node *n = k->term[i].node;
    k->here.up[i] = i;
    if (!n || n->kind == CAP_OP || n->kind == CAP_INPUT) continue;
    if (!k->here.unpinned[i] && n->value && !chk_is_weight(n)) c = keep_constant(k, i);
  }
  for (size_t i = 0; i < k->cert.n_fixed && !c; i++)
    if (!k->here.konst[k->cert.fixed[i]].v) c = keep_constant(k, k->cert.fixed[i]);
  return c;
}

const rule_term *chk_local_call(local *l, const rule_term *t, iso_arena *a) {
  if (t->kind == RULE_VAR) {
    if (l->n == MAX_CALL) return NULL;
    l->var[l->n] = (uint32_t)t->u.i;
    return rule_var(a, l->n++);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = chk_local_call(l, t->child[i], a))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

/* Whether the argument is where a range in a dimension begins or ends. Behind the dimension's own
 * end it makes nothing larger: 2^63 - 1 is how PyTorch writes that end. */
static bool ends_range(const rule_schema *s, size_t i) {
  const char *name = s && i < s->n_args ? s->arg[i].name : "";
  bool along = false;
  for (size_t k = 0; s && k < s->n_args; k++) along |= strcmp(s->arg[k].name, "dim") == 0;
  return along && (strcmp(name, "start") == 0 || strcmp(name, "end") == 0);
}

/* Sizes that no capture has: a changed certificate must not make the machine run out of memory. */
static bool oversized(const chk_state *k, const rule_term *t) {
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(k->schemas, t->u.s) : NULL;
  double product = 1;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *x = t->child[i];
    if (x->kind == RULE_INT && t->kind == RULE_LIST) product *= fmax(1, fabs((double)x->u.i));
    if (x->kind == RULE_INT && t->kind == RULE_OP && !ends_range(s, i) &&
        fabs((double)x->u.i) > MAX_SCALE)
      return true;
    if (x->kind == RULE_LIST && oversized(k, x)) return true;
  }
  return product > MAX_SCALE;
}

iso_code chk_call(chk_state *k, uint32_t t, const local *l, rule_tensor *const *bind, bool float64,
                  chk_values *out) {
  rule_tensor *result[MAX_OUT];
  size_t n = 0;
  iso_error why = {0};
  *out = (chk_values){0};
  const char *name = k->term[t].node ? k->term[t].node->id : l->call->u.s;
  if (!k->oracle) return chk_settle(k, CHK_REFUSED, "nothing here can run \"%s\"", name);
  if (!k->term[t].node && oversized(k, l->call))
    return chk_settle(k, CHK_REFUSED, "\"%s\" has sizes past all bounds", name);
  iso_code c = k->oracle->call(k->oracle->ctx, l->call, bind, float64, result, MAX_OUT, &n, &why);
  if (c == ISO_NOMEM) return chk_nomem(k);
  if (c == ISO_DEVICE) return iso_fail(k->err, c, "\"%s\" cannot be run: %s", name, why.msg);
  if (c) return chk_settle(k, CHK_REFUSED, "\"%s\" cannot be run: %s", name, why.msg);
  c = keep(k, result, n, out);
  for (size_t i = 0; i < n; i++) {
    if (!k->term[t].node) k->here.own += (double)result[i]->numel;
    rule_tensor_unref(result[i]);
  }
  return c || k->here.own <= k->here.most
             ? c
             : chk_settle(k, CHK_REFUSED,
                          "\"%s\" and other calls of the certificate's own make "
                          "more than any capture needs",
                          name);
}

bool chk_unspecified(const rule_term *t) { return rule_operator_of(t->u.s)->unspecified; }

bool chk_is_getitem(const rule_term *t) {
  return rule_is_getitem(t->u.s) && t->n == 2 && t->child[0]->kind == RULE_VAR &&
         t->child[1]->kind == RULE_INT;
}

iso_code chk_project(chk_state *k, const rule_term *t, const chk_values *from, chk_values *out) {
  const int64_t i = t->child[1]->u.i;
  *out = (chk_values){0};
  if (i < 0 || (size_t)i >= from->n)
    return chk_settle(k, CHK_REFUSED, "there is no output %lld", (long long)i);
  return keep(k, &from->v[i], 1, out);
}

static void mark_below(const rule_term *t, bool *need) {
  if (t->kind == RULE_VAR) need[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_below(t->child[i], need);
}

void chk_mark_below(chk_state *k, bool *need) {
  for (uint32_t i = (uint32_t)k->n_terms; i-- > 0;)
    if (need[i] && k->term[i].call && (k->here.as_captured || !k->here.konst[chk_root(k, i)].v))
      mark_below(k->term[i].call, need);
}

static iso_code widen(chk_state *k, uint32_t id, const chk_values *from) {
  rule_tensor **v = calloc(from->n + 1, sizeof *v);
  if (!v) return chk_nomem(k);
  k->here.real[id] = (chk_values){v, from->n};
  for (size_t i = 0; i < from->n; i++) {
    iso_code c = rule_tensor_to_float64(from->v[i], &v[i], k->err);
    if (c) return c;
  }
  return ISO_OK;
}

iso_code chk_run_term(chk_state *k, uint32_t id) {
  const chk_values *fixed = &k->here.konst[chk_root(k, id)];
  const rule_term *term = k->term[id].call;
  chk_drop_values(&k->here.real[id]);
  if (fixed->v && !k->here.as_captured) return widen(k, id, fixed);
  if (!term) {
    rule_tensor *v =
        k->here.drawn && k->here.drawn[id] ? k->here.drawn[id] : chk_captured(k, id, k->here.set);
    return widen(k, id, &(chk_values){&v, 1});
  }
  rule_tensor *bind[MAX_CALL];
  iso_arena a;
  local *l = calloc(1, sizeof *l);
  iso_code c = l ? ISO_OK : chk_nomem(k);
  iso_arena_init(&a);
  if (!c && !(l->call = chk_local_call(l, term, &a))) c = chk_nomem(k);
  for (uint32_t i = 0; !c && i < l->n; i++) {
    const chk_values *arg = &k->here.real[l->var[i]];
    if (arg->n < 1) c = chk_settle(k, CHK_REFUSED, "an operator without outputs is an argument");
    if (!c && chk_settled(k)) goto done;
    bind[i] = arg->v[0];
  }
  if (!c && chk_is_getitem(term))
    c = chk_project(k, term, &k->here.real[l->var[0]], &k->here.real[id]);
  else if (!c) c = chk_call(k, id, l, bind, true, &k->here.real[id]);
done:
  iso_arena_fini(&a);
  free(l);
  return c;
}

/* Memory that nothing wrote yet: `fill` everywhere. */
static iso_code fill_memory(chk_values *x, double fill, iso_error *err) {
  for (size_t i = 0; i < x->n; i++) {
    rule_tensor *t;
    iso_code c = rule_tensor_new(x->v[i]->dtype, &x->v[i]->shape, &t, err);
    if (c) return c;
    for (int64_t e = 0; e < t->numel; e++) rule_tensor_set(t, e, fill);
    rule_tensor_unref(x->v[i]);
    x->v[i] = t;
  }
  return ISO_OK;
}

static iso_code run_needed(chk_state *k, const bool *need, bool filled, bool *empty) {
  enum { FILL = 3 }; /* the first time it is what operators are run with: NaN */
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < k->n_terms && !c && !chk_settled(k); i++) {
    if (!need[i]) continue;
    c = chk_run_term(k, i);
    if (!k->term[i].call || !chk_unspecified(k->term[i].call)) continue;
    *empty = true;
    if (!c && filled) c = fill_memory(&k->here.real[i], FILL, k->err);
  }
  return c;
}

static const rule_tensor *value_at(const chk_state *k, uint32_t t) {
  return k->here.real[t].n == 1 ? k->here.real[t].v[0] : NULL;
}

/* Outputs that differ as float64 has them: more than an open order or rounding explains is a
 * difference. */
static iso_code weigh_apart(chk_state *k, const chk_output *o, const bool *need, double by) {
  bool rounds, open;
  iso_code c = chk_order_explains(k, need, o, output_tol, &open);
  if (c || open) return c; /* an open order is assumed wherever an operator leaves one */
  c = chk_rounding_explains(k, need, o, output_tol, &rounds);
  if (c || chk_settled(k)) return c;
  if (!rounds)
    return chk_settle(k, CHK_REFUSED,
                      "outputs %s and %s differ by %.3g (relative) on the captured inputs", o->left,
                      o->right, by);
  return chk_assume(k, RULE_ASSUMES_ROUNDING,
                    iso_arena_printf(k->arena,
                                     "outputs %s and %s differ by %.3g (relative) on the captured "
                                     "inputs, where rounding moves them as far",
                                     o->left, o->right, by));
}

/* A chain of true steps joins terms of one value. As a safeguard, outputs that differ where they
 * were captured are not equal. */
static iso_code outputs_agree(chk_state *k, rule_tensor *const *before, const bool *need) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < k->cert.n_outputs && !c && !chk_settled(k); i++) {
    const chk_output *o = &k->cert.output[i];
    const rule_tensor *a = value_at(k, o->a), *b = value_at(k, o->b);
    if (!a || !b || a->numel != b->numel)
      return chk_settle(k, CHK_REFUSED, "outputs %s and %s have no one value each", o->left,
                        o->right);
    if (before && !k->oracle->compare(k->oracle->ctx, before[i], a, output_tol).equal)
      return chk_settle(k, CHK_REFUSED, "output %s depends on memory that is left unspecified",
                        o->left);
    const rule_diff d = k->oracle->compare(k->oracle->ctx, a, b, output_tol);
    if (!d.equal && !before) c = weigh_apart(k, o, need, d.max_rel);
  }
  return c;
}

/* Constants that are one but for rounding are given the value of one of them. With each constant at
 * its captured value, outputs may move by little only: a floor of 3 and of 2.9999998 are no
 * roundings of each other. */
static iso_code rounding_moves_little(chk_state *k, const bool *need) {
  const double most = 0.25;
  bool empty, *all = calloc(k->n_terms + 1, 1);
  if (!all) return chk_nomem(k);
  memcpy(all, need, k->n_terms);
  k->here.as_captured = true;
  chk_mark_below(k, all);
  iso_code c = run_needed(k, all, false, &empty);
  k->here.as_captured = false;
  free(all);
  for (size_t i = 0; i < k->cert.n_outputs && !c && !chk_settled(k); i++) {
    const chk_output *o = &k->cert.output[i];
    const rule_tensor *a = value_at(k, o->a), *b = value_at(k, o->b);
    if (!a || !b || a->numel != b->numel) continue; /* as is said elsewhere */
    const rule_diff d = k->oracle->compare(k->oracle->ctx, a, b, output_tol);
    if (!d.equal && !(d.max_rel <= most))
      c = chk_settle(k, CHK_REFUSED,
                     "outputs %s and %s move by %.3g (relative) because of constants that are one "
                     "but for rounding",
                     o->left, o->right, d.max_rel);
  }
  return c;
}

iso_code chk_run(chk_state *k) {
  bool *need = calloc(k->n_terms + 1, 1), empty = false;
  rule_tensor **before = calloc(k->cert.n_outputs + 1, sizeof *before);
  iso_code c = need && before ? ISO_OK : chk_nomem(k);
  for (size_t i = 0; i < k->cert.n_vars && !c; i++)
    if (k->cert.var[i] != CHK_NONE) need[k->cert.var[i]] = true;
  for (size_t i = 0; i < k->cert.n_outputs && !c; i++)
    need[k->cert.output[i].a] = need[k->cert.output[i].b] = true;
  if (!c) chk_mark_below(k, need);
  if (!c && k->used.rounded) c = rounding_moves_little(k, need);
  if (!c && !chk_settled(k)) c = run_needed(k, need, false, &empty);
  if (!c && !chk_settled(k)) c = outputs_agree(k, NULL, need);
  for (size_t i = 0; i < k->cert.n_outputs && !c && !chk_settled(k) && empty; i++)
    before[i] = rule_tensor_ref(k->here.real[k->cert.output[i].a].v[0]);
  if (!c && !chk_settled(k) && empty && !(c = run_needed(k, need, true, &empty)) && !chk_settled(k))
    c = outputs_agree(k, before, need);
  for (size_t i = 0; before && i < k->cert.n_outputs; i++) rule_tensor_unref(before[i]);
  free(before);
  free(need);
  return c;
}

/* ---- on other zeros and ones ---- */

iso_code chk_run_set(chk_state *k, bool *need, bool *done, bool *hides) {
  bool empty = false;
  iso_code c = chk_begin_values(k);
  for (size_t i = 0; i < k->cert.n_outputs && !c; i++)
    need[k->cert.output[i].a] = need[k->cert.output[i].b] = true;
  if (!c) chk_mark_below(k, need);
  if (!c) c = chk_find_masks(k);
  if (!c && !chk_settled(k)) c = run_needed(k, need, false, &empty);
  *done = !c && !chk_settled(k);
  *hides = *done && chk_hides_row(k);
  chk_unsettle(k); /* an operator that cannot take these values, or masks that hide more */
  return c;
}

iso_code chk_agree_clearly(chk_state *k, const bool *need, const char *where) {
  const double clear = 1e-4; /* by more than any table is rounded */
  iso_code c = ISO_OK;
  for (size_t i = 0; i < k->cert.n_outputs && !c && !chk_settled(k); i++) {
    const chk_output *o = &k->cert.output[i];
    const rule_tensor *a = value_at(k, o->a), *b = value_at(k, o->b);
    bool rounds = false, open = false;
    if (!a || !b || a->numel != b->numel) continue;
    const rule_diff d = k->oracle->compare(k->oracle->ctx, a, b, clear);
    if (d.equal) continue;
    c = chk_order_explains(k, need, o, clear, &open);
    if (!c && !open) c = chk_rounding_explains(k, need, o, clear, &rounds);
    if (c || open || rounds) continue;
    c = chk_settle(k, CHK_REFUSED,
                   "outputs %s and %s differ by %.3g (relative) where an input has %s", o->left,
                   o->right, d.max_rel, where);
  }
  return c;
}

iso_code chk_run_looks(chk_state *k) {
  const size_t n[2] = {k->graph[LEFT]->n_sets, k->graph[RIGHT]->n_sets};
  bool *need = calloc(k->n_terms + 1, 1), done, hides, hidden = false;
  iso_code c = need ? ISO_OK : chk_nomem(k);
  for (size_t set = 0; set < n[LEFT] && set < n[RIGHT] && !c && !chk_settled(k); set++) {
    if (set > 0 && set < chk_n_sets(k)) continue;
    k->here.set = set;
    c = chk_run_set(k, need, &done, &hides);
    if (set == 0) hidden = hides;
    else if (!c && done && (hidden || !hides))
      c = chk_agree_clearly(k, need, "other zeros and ones, which look like those captured");
  }
  free(need);
  return c;
}
