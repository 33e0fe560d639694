/* Concatenation, of tensors whose ranks are known and of tensors of any shape (open): an element
 * belongs to the one part in which its index lies. */
#include <stdio.h>
#include <string.h>
#include "validate/ops/ops.h"

/* ---- joining ---- */

/* What has to hold where a part's element has a value, said of the whole: k (0 where the part has
 * one element) is `at` there, and of other places it says nothing. */
static void only_within(sc *c, size_t first, sx k, sx at, sx size) {
  const sx outside = sx_or(c, sx_lt(c, at, c->zero), sx_le(c, size, at));
  for (size_t i = first; i < c->here.n_domain; i++) {
    const sx there = c->here.domain[i];
    c->here.domain[i] =
        sx_or(c, outside, k == c->zero ? there : sx_subst(c, there, &(sx_map){k, at}, 1));
  }
}

/* The element of a part at idx, which counts only where idx[d] lies within it: it is asked for at
 * an index of which that is known, so that whatever takes the index apart (a reshape), or has no
 * value elsewhere (a softmax of a block of a mask), sees the part as it does alone. */
static sx part_elem(sc *c, const pt_tensor *part, uint32_t d, sx *idx) {
  const sx at = idx[d], size = part->dim[d];
  if (sx_ge0(c, at) && sx_gt0(c, sx_sub(c, size, at))) return pt_at(c, part, idx);
  const size_t first = c->here.n_domain;
  const sx k = idx[d] = sc_index(c, size);
  sx x = pt_at(c, part, idx);
  idx[d] = at;
  only_within(c, first, k, at, size);
  return k == c->zero ? x : sx_subst(c, x, &(sx_map){k, at}, 1);
}

/* The element at idx from the parts k on, the first of which begins at `start`. Diagrams have the
 * older conditions outside: made from the first end to the last they are a chain, where the other
 * way round each new one would go down all of the diagram, which doubles with each part. */
static sx from_part(sc *c, const pt_tensor *t, const sx *idx, size_t k, sx start) {
  const uint32_t d = (uint32_t)t->which;
  const sx end = sx_add(c, start, t->list[k]->dim[d]);
  sx in[RULE_MAX_RANK], within = c->yes, rest = c->zero;
  if (c->fault.failed) return c->zero;
  if (k + 1 < t->n_list) {
    within = sx_lt(c, idx[d], end);
    rest = from_part(c, t, idx, k + 1, end);
  }
  if (within == c->no) return rest; /* a part that the index misses need not be looked into */
  memcpy(in, idx, t->rank * sizeof *in);
  in[d] = sx_sub(c, idx[d], start);
  const sx x = t->n_list > 1 ? part_elem(c, t->list[k], d, in) : pt_at(c, t->list[k], in);
  return sx_ite(c, within, x, rest);
}

static sx cat_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return from_part(c, t, idx, 0, c->zero);
}

const pt_tensor *pt_cat(sc *c, const pt_tensor *const *t, size_t n, uint32_t d) {
  if (n == 0) return NULL;
  char kind = t[0]->kind;
  for (size_t i = 0; i < n; i++)
    kind = t[i]->kind == 'f' || kind == 'f' ? 'f' : t[i]->kind == 'i' || kind == 'i' ? 'i' : 'b';
  const pt_tensor **list = sc_take(c, n * sizeof *list);
  pt_tensor *r = list ? pt_like(c, t[0], kind, cat_elem) : NULL;
  if (!r) return NULL;
  r->dim[d] = c->zero;
  for (size_t i = 0; i < n; i++) {
    if (t[i]->rank != r->rank) {
      sc_fail(c, "a concatenation of different ranks");
      return NULL;
    }
    if (r->lead || t[i]->lead) {
      if (!r->lead || !t[i]->lead) return NULL;
      pt_join_leads(c, r->lead, t[i]->lead);
    }
    for (uint32_t k = 0; k < r->rank; k++)
      if (k != d && !sc_require_eq(c, r->dim[k], t[i]->dim[k])) return NULL;
    r->dim[d] = sx_add(c, r->dim[d], t[i]->dim[d]);
    if (!(list[i] = pt_kind(c, t[i], kind))) return NULL;
  }
  r->which = (int)d;
  r->list = list;
  r->n_list = n;
  return r;
}

/* Tensors of any shape: which part an element is in, and where there, depends on the parts' shapes
 * and the dimension alone. Each such concatenation stands for a shape of its own (a bit from the
 * top among the leading dimensions). */
static sx open_cat_elem(sc *c, const pt_tensor *t, const sx *idx) {
  const uint32_t outer = c->parts.at_place;
  sx r = 0;
  for (size_t k = t->n_list; k-- > 0 && !c->fault.failed;) {
    char name[64];
    uint32_t p = 0;
    while (p < c->parts.n_places &&
           (c->parts.place[p].join != (size_t)t->which || c->parts.place[p].part != k ||
            c->parts.place[p].outer != outer))
      p++;
    if (p == 63 || c->terms.n_owned == 256) {
      sc_fail(c, "too many concatenations");
      break;
    }
    if (p == c->parts.n_places) {
      c->parts.place[p].join = (size_t)t->which, c->parts.place[p].part = k,
      c->parts.place[p].outer = outer;
      c->parts.n_places++;
    }
    c->parts.at_place = p + 1;
    const sx x = pt_at(c, t->list[k], idx);
    c->parts.at_place = outer;
    snprintf(name, sizeof name, "part %d %zu %u", t->which, k, (unsigned)outer);
    r = r ? sx_ite(c, sx_lt(c, sc_unknown(c, name), c->zero), x, r) : x;
  }
  return r ? r : c->zero;
}

static const pt_tensor *open_cat(sc *c, const pt_tensor *const *t, size_t n, sx dim) {
  size_t j = 0;
  pt_tensor *r = pt_new(c, t[0]->kind, open_cat_elem);
  if (!r || n > 8 || c->r->n_vars > 40) return NULL;
  for (size_t i = 0; i < n; i++)
    if (t[i]->rank || !t[i]->lead || t[i]->kind != t[0]->kind) return NULL;
  for (bool found = false; j < c->parts.n_joins && !found; j += !found) {
    found = c->parts.join[j].n == n && c->parts.join[j].dim == dim;
    for (size_t i = 0; i < n && found; i++) found = c->parts.join[j].lead[i] == t[i]->lead;
  }
  if (j == 16) return NULL;
  if (j == c->parts.n_joins) {
    c->parts.join[j].n = n;
    c->parts.join[j].dim = dim;
    for (size_t i = 0; i < n; i++) c->parts.join[j].lead[i] = t[i]->lead;
    c->parts.n_joins++;
  }
  const pt_tensor **list = sc_take(c, n * sizeof *list);
  if (!list) return NULL;
  memcpy(list, t, n * sizeof *list);
  r->lead = 1ULL << (63 - j);
  r->which = (int)j;
  r->list = list;
  r->n_list = n;
  return r;
}

enum { CAT, STACK, HSTACK, VSTACK, COLUMNS };

static const pt_value *define_cat(pt_args *a, int which) {
  sc *c = a->c;
  const char *name = pt_arg(a, "tensors") ? "tensors" : "inputs";
  const rule_term *t = pt_arg(a, name);
  const pt_tensor *const *list, *each[64];
  size_t n;
  uint32_t d = 0;
  if (t && t->kind == RULE_OP && which == CAT) { /* all pieces of one tensor, however many */
    const pt_value *v = pt_eval(c, t);
    if (v && !v->t && !v->unbind && pt_arg_dim(a, "dim", 0, v->base, &d) && d == v->dim)
      return pt_one(c, v->base);
  }
  if (!pt_arg_list(a, name, &list, &n) || n == 0 || n > 64) return NULL;
  for (size_t i = 0; i < n; i++)
    if (!(each[i] = list[i])) return NULL;
  if (which == CAT && each[0]->lead && each[0]->rank == 0)
    return pt_one(c, open_cat(c, each, n, pt_arg_size(a, "dim", 0)));
  switch (which) {
  case STACK:
    if (!pt_arg(a, "dim") || !pt_dim(c, pt_arg(a, "dim"), each[0], 1, &d)) return NULL;
    for (size_t i = 0; i < n; i++)
      if (list[i]->rank != list[0]->rank || !(each[i] = pt_unsqueeze(c, list[i], d))) return NULL;
    break;
  case HSTACK:
  case VSTACK:
  case COLUMNS:
    for (size_t i = 0; i < n; i++) {
      if (each[i]->lead || each[i]->rank == 0) return NULL;
      if (which != HSTACK && each[i]->rank == 1)
        each[i] = pt_unsqueeze(c, each[i], which == COLUMNS);
      if (!each[i]) return NULL;
    }
    d = which == COLUMNS || (which == HSTACK && each[0]->rank > 1);
    break;
  default:
    if (each[0]->rank == 0 || !pt_arg_dim(a, "dim", 0, each[0], &d)) return NULL;
  }
  return pt_one(c, pt_cat(c, each, n, d));
}

static const pt_definition table[] = {
    {"cat", define_cat, CAT},          {"concat", define_cat, CAT},
    {"concatenate", define_cat, CAT},  {"stack", define_cat, STACK},
    {"hstack", define_cat, HSTACK},    {"vstack", define_cat, VSTACK},
    {"row_stack", define_cat, VSTACK}, {"column_stack", define_cat, COLUMNS},
};

bool pt_define_cat(const char *name, pt_definition *out) {
  if (!strcmp(name, "dist::all_gather")) return *out = (pt_definition){name, define_cat, CAT}, true;
  return pt_find(table, sizeof table / sizeof *table, name, out);
}
