/* The ways in which an operator itself can be wrong: its attributes, the order of its arguments,
 * another one of its kind. */
#include "localise/alignment.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "localise/mutate.h"
#include "localise/localise_int.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool is_float(const rule_term *t) { return t->kind == RULE_FLOAT; }
static bool is_number(const rule_term *t) { return t->kind == RULE_FLOAT || t->kind == RULE_INT; }

/* Attributes found elsewhere: at calls of the same operator, and at all calls of the other side's
 * region. */
size_t rp_attribute_pool(repair *r, const rule_term *call, uint32_t k, const rule_term **pool) {
  const rule_term *now = call->child[k];
  const bool real = call->n > 0 && call->child[0]->kind == RULE_VAR &&
                    rule_dtype_is_float(r->g->node[call->child[0]->u.i].dtype);
  size_t n = 0;
  for (int pass = 0; pass < 2; pass++) {
    const synth_graph *g = pass ? r->g : r->other;
    for (uint32_t i = 0; i < g->n_nodes && n < RP_MAX_POOL; i++) {
      const rule_term *c = g->node[i].call;
      if (g->node[i].kind != SYNTH_OP || !c) continue;
      const bool same_op = strcmp(c->u.s, call->u.s) == 0 && c->n == call->n,
                 near = !pass && r->task->other_region[i];
      for (uint32_t j = 0; j < c->n && n < RP_MAX_POOL; j++) {
        const rule_term *a = c->child[j];
        if (!rp_is_attribute(a) || rule_term_eq(a, now)) continue;
        if (!(same_op && j == k) && !(near && real && is_float(a) && is_number(now))) continue;
        bool seen = false;
        for (size_t q = 0; q < n && !seen; q++) seen = rule_term_eq(pool[q], a);
        if (!seen) pool[n++] = a;
      }
    }
  }
  return n;
}

/* Real numbers in the other side's region. */
static size_t floats_beside(const repair *r, const rule_term **pool) {
  size_t n = 0;
  for (uint32_t i = 0; i < r->other->n_nodes && n < RP_MAX_POOL; i++) {
    const rule_term *c = r->other->node[i].kind == SYNTH_OP && r->task->other_region[i]
                             ? r->other->node[i].call
                             : NULL;
    for (uint32_t j = 0; c && j < c->n && n < RP_MAX_POOL; j++) {
      bool seen = !is_float(c->child[j]);
      for (size_t q = 0; q < n && !seen; q++) seen = rule_term_eq(pool[q], c->child[j]);
      if (!seen) pool[n++] = c->child[j];
    }
  }
  return n;
}

static iso_code try_attribute(repair *r, uint32_t n, const rule_term *call, uint32_t k,
                              const rule_term *to, iso_error *err) {
  if (r->found || rule_term_eq(call->child[k], to)) return ISO_OK;
  iso_code c = rp_try_call(r, n, rp_with_child(r, call, k, to), err);
  if (!c && r->found) {
    r->what =
        iso_arena_printf(&r->s->res->arena, "%s is %s, and would have to be %s",
                         rp_argument_name(r, call, k), rp_show(r, call->child[k]), rp_show(r, to));
    r->change = (lo_change){.op = call->u.s, .k = k, .from = call->child[k], .to = to};
  }
  return c;
}

/* Both bounds of a slice, or of a range, that are off by one; `to_zero`: so that it begins at the
 * beginning, as most do; else the others. */
static iso_code shifted_bounds(repair *r, uint32_t n, bool to_zero, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const bool slice = rule_is_overload(call->u.s, OP_SLICE),
             range = strncmp(call->u.s, OP_ARANGE_START, strlen(OP_ARANGE_START)) == 0;
  const uint32_t k = slice ? 2 : 0;
  if (!(slice || range) || call->n < k + 2 || call->child[k]->kind != RULE_INT ||
      call->child[k + 1]->kind != RULE_INT)
    return ISO_OK;
  iso_code c = ISO_OK;
  for (int64_t by = -1; by <= 1 && !c && !r->found; by += 2) {
    if (to_zero != (call->child[k]->u.i + by == 0)) continue;
    const rule_term *start = rule_int(&r->arena, call->child[k]->u.i + by),
                    *end = rule_int(&r->arena, call->child[k + 1]->u.i + by);
    const rule_term *t = start && end ? rp_with_child(r, call, k, start) : NULL;
    c = rp_try_call(r, n, t ? rp_with_child(r, t, k + 1, end) : NULL, err);
    if (!c && r->found)
      r->what = iso_arena_printf(&r->s->res->arena, "\"%s\" begins one too %s", r->g->node[n].id,
                                 by > 0 ? "early" : "late");
  }
  return c;
}

/* Another call of the operator in the same graph has this attribute. */
static bool usual(const repair *r, uint32_t n, uint32_t k) {
  const rule_term *call = r->g->node[n].call;
  for (uint32_t i = 0; i < r->g->n_nodes; i++) {
    const rule_term *c = r->g->node[i].call;
    if (i != n && r->g->node[i].kind == SYNTH_OP && !rp_twin(r, n, i) &&
        strcmp(c->u.s, call->u.s) == 0 && c->n == call->n &&
        rule_term_eq(c->child[k], call->child[k]))
      return true;
  }
  return false;
}

bool rp_can_vary(const rule_term *t) { return rp_is_attribute(t) && t->kind != RULE_DTYPE; }

static bool holds_tensors(const rule_term *t) {
  if (t->kind == RULE_VAR) return true;
  for (uint32_t k = 0; k < t->n; k++)
    if (holds_tensors(t->child[k])) return true;
  return false;
}

/* Arguments that may be left out: neither tensors, nor words that only say how to compute. */
static bool optional(const repair *r, const rule_term *call, uint32_t k) {
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  if (!sc || k >= sc->n_args || rule_is_overload(call->u.s, OP_SLICE)) return false;
  return sc->arg[k].optional && !holds_tensors(call->child[k]) &&
         sc->arg[k].type != RULE_ARG_CONTEXT && sc->arg[k].type != RULE_ARG_DTYPE;
}

/* Attributes as they stand elsewhere. */
iso_code rp_seen_attributes(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    const rule_term *now = call->child[k], *pool[RP_MAX_POOL];
    if (!rp_can_vary(now) || (r->task->changes == LO_ODD && usual(r, n, k))) continue;
    const size_t n_pool = rp_attribute_pool(r, call, k, pool);
    if (now->kind != RULE_NONE && optional(r, call, k))
      c = try_attribute(r, n, call, k, rule_none(&r->arena),
                        err); /* some number may do as well by chance */
    for (size_t q = 0; q < n_pool && !c; q++) c = try_attribute(r, n, call, k, pool[q], err);
    if (!c && now->kind == RULE_BOOLEAN)
      c = try_attribute(r, n, call, k, rule_bool(&r->arena, !now->u.i), err);
  }
  return c || r->found ? c : shifted_bounds(r, n, true, err);
}

/* A whole number that is added: tries the call without it. Two ranges of which one was shifted are
 * as well mended by shifting the other. */
iso_code rp_added_number(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const rule_arithmetic step = rule_operator_of(call->u.s)->arithmetic;
  bool adds = call->n > 1 && call->child[1]->kind == RULE_INT && call->child[1]->u.i != 0;
  adds &= (step == RULE_ARITHMETIC_ADD || step == RULE_ARITHMETIC_SUB) &&
          call->child[0]->kind == RULE_VAR &&
          rule_dtype_is_int(r->g->node[call->child[0]->u.i].dtype);
  return adds ? try_attribute(r, n, call, 1, rule_int(&r->arena, 0), err) : ISO_OK;
}

/* Attributes that are likely: beside the present one, small, given by a size. */
iso_code rp_likely_attributes(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    const rule_term *now = call->child[k];
    if (!rp_can_vary(now)) continue;
    for (int64_t by = -1; by <= 1 && now->kind == RULE_INT && !c; by += 2)
      c = try_attribute(r, n, call, k, rule_int(&r->arena, now->u.i + by), err);
    if (now->kind == RULE_INT)
      for (int64_t d = -2; d <= 4 && !c; d++)
        if (llabs(now->u.i) <= 8) c = try_attribute(r, n, call, k, rule_int(&r->arena, d), err);
    if (is_float(now) ||
        (now->kind == RULE_NONE && strcmp(rp_argument_name(r, call, k), "scale") == 0)) {
      const rule_tensor *v = rp_value(r->task->run, n);
      for (uint32_t d = 0; v && d < v->shape.rank && !c; d++) /* scales that a size gives */
        for (int form = 0; form < 3 && !c; form++) {
          const double size = (double)v->shape.dim[d], x = form == 0   ? 1 / sqrt(size)
                                                           : form == 1 ? 1 / size
                                                                       : sqrt(size);
          if (size > 1) c = try_attribute(r, n, call, k, rule_float(&r->arena, x), err);
        }
      if (!c) c = try_attribute(r, n, call, k, rule_float(&r->arena, 1), err);
    }
  }
  return c || r->found ? c : shifted_bounds(r, n, false, err);
}

/* A mask fills with a number far below everything, or with 0. */
iso_code rp_filled(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool fill = o->choice == RULE_CHOICE_SELECT || (o->fills && o->fill);
  iso_code c = ISO_OK;
  for (uint32_t k = 1; k < call->n && fill && !c && !r->found; k++)
    if (is_number(call->child[k]) && rule_dtype_is_float(r->g->node[n].dtype))
      c = try_attribute(r, n, call, k, rule_float(&r->arena, -INFINITY), err);
  return c;
}

enum { MAX_WINDOW = 16 };

/* An optional attribute that one side gives and the other leaves out: a window, a cap,
 * slopes. */
iso_code rp_optional_attributes(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *pool[RP_MAX_POOL];
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    if (!optional(r, call, k)) continue;
    const rule_arg_type type = sc->arg[k].type;
    const bool real = type == RULE_ARG_FLOAT || type == RULE_ARG_SCALAR;
    if (call->child[k]->kind != RULE_NONE)
      c = try_attribute(r, n, call, k, rule_none(&r->arena), err);
    else if (type == RULE_ARG_INT)
      for (int64_t d = 1; d <= MAX_WINDOW && !c; d++)
        c = try_attribute(r, n, call, k, rule_int(&r->arena, d), err);
    const size_t n_pool =
        !c && real && call->child[k]->kind == RULE_NONE ? floats_beside(r, pool) : 0;
    for (size_t q = 0; q < n_pool && !c; q++) c = try_attribute(r, n, call, k, pool[q], err);
  }
  return c;
}

/* All attributes at once as another call of the operator has them (both ends of a slice). */
iso_code rp_like_a_sibling(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  size_t tried = 0;
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t i = 0;
         i < (pass ? r->other : r->g)->n_nodes && !c && !r->found && tried < RP_MAX_NEAR; i++) {
      const synth_node *m = &(pass ? r->other : r->g)->node[i];
      if (m->kind != SYNTH_OP || strcmp(m->call->u.s, call->u.s) != 0 || m->call->n != call->n)
        continue;
      const rule_term **child = iso_arena_alloc(&r->arena, (call->n + 1) * sizeof *child);
      if (!child) return nomem(err);
      uint32_t changes = 0;
      bool fits = true;
      for (uint32_t k = 0; k < call->n; k++) {
        child[k] = call->child[k];
        fits &= rp_is_attribute(child[k]) == rp_is_attribute(m->call->child[k]);
        if (!fits || !rp_is_attribute(child[k]) || rule_term_eq(child[k], m->call->child[k]))
          continue;
        child[k] = m->call->child[k];
        changes++;
      }
      if (!fits || changes < 2) continue;
      tried++;
      c = rp_try_call(r, n, rule_op(&r->arena, call->u.s, child, call->n), err);
      if (!c && r->found)
        r->what = iso_arena_printf(&r->s->res->arena,
                                   "its attributes would have to be those of \"%s\"", m->id);
    }
  return c;
}

static iso_code renamed(repair *r, uint32_t n, const char *op, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *arg[MAX_CHILDREN], *t = NULL;
  const rule_schema *from = rule_schemas_find(r->s->schemas, call->u.s),
                    *to = rule_schemas_find(r->s->schemas, op);
  if (strcmp(op, call->u.s) == 0 || !from || !to) return ISO_OK;
  uint32_t k = 0;
  for (; k < call->n && k < to->n_args && k < from->n_args &&
         strcmp(from->arg[k].name, to->arg[k].name) == 0;
       k++)
    arg[k] = call->child[k];
  iso_error ignored;
  if (rule_call(&r->arena, r->s->schemas, op, arg, k, &t, &ignored)) return ISO_OK;
  iso_code c = rp_try_call(r, n, t, err);
  if (!c && r->found)
    r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s", call->u.s, op);
  return c;
}

iso_code rp_other_operators(repair *r, uint32_t n, iso_error *err) {
  const char *op = r->g->node[n].call->u.s, *overload = strchr(op, '.');
  const char(*sibling)[RULE_SIBLING_NAME] = rule_operator_of(op)->sibling;
  iso_code c = ISO_OK;
  for (size_t k = 0; k < RULE_MOST_SIBLINGS && *sibling[k] && !c && !r->found; k++) {
    const char *name = iso_arena_printf(&r->s->res->arena, "%s%s%s", OP_ATEN, sibling[k],
                                        overload && !strchr(sibling[k], '.') ? overload : "");
    c = name ? renamed(r, n, name, err) : nomem(err);
  }
  /* An operator of the other side's region over these arguments, with its attributes; an operator
   * that only passes its argument on may lack one after it. */
  const rule_term *call = r->g->node[n].call;
  if (lo_passes(r->g, n)) return c;
  for (uint32_t i = 0; i < r->other->n_nodes && !c && !r->found; i++) {
    const rule_term *m = r->other->node[i].kind == SYNTH_OP && r->task->other_region[i]
                             ? r->other->node[i].call
                             : NULL;
    if (!m || m->n == 0 || m->child[0]->kind != RULE_VAR || call->n == 0 ||
        call->child[0]->kind != RULE_VAR || strcmp(m->u.s, call->u.s) == 0)
      continue;
    bool plain = true;
    for (uint32_t k = 1; k < m->n; k++) plain &= rp_is_attribute(m->child[k]);
    if (!plain) continue;
    const rule_term *t = rp_with_child(r, m, 0, call->child[0]);
    c = rp_try_call(r, n, t, err);
    const rule_tensor *given =
        r->found ? rp_value(r->task->run, (uint32_t)call->child[0]->u.i) : NULL;
    if (given && r->instead[n] && rule_tensor_same(given, r->instead[n]))
      r->what = rp_too_much(r, call, 0);
    else if (!c && r->found)
      r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s", call->u.s, m->u.s);
  }
  return c;
}

/* Elements a and b of list i of a call stand for one another. */
static const char *listed_otherwise(repair *r, const rule_term *call, uint32_t i, uint32_t a,
                                    uint32_t b) {
  iso_arena *const arena = &r->s->res->arena;
  const rule_term *const x = call->child[i]->child[a], *const y = call->child[i]->child[b];
  if (x->kind != RULE_VAR || y->kind != RULE_VAR)
    return iso_arena_printf(arena, "elements %u and %u of %s are exchanged", a, b,
                            rp_argument_name(r, call, i));
  return iso_arena_printf(
      arena, "%s and %s are exchanged in %s", lo_called(arena, r->g, (uint32_t)x->u.i),
      lo_called(arena, r->g, (uint32_t)y->u.i), lo_short_name(arena, call->u.s));
}

iso_code rp_exchanged(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < call->n && !c && !r->found; i++) {
    if (call->child[i]->kind == RULE_LIST && call->child[i]->n > 1) {
      const rule_term *l = call->child[i];
      for (uint32_t a = 0; a < l->n && a < 4 && !c && !r->found; a++)
        for (uint32_t b = a + 1; b < l->n && b < 5 && !c && !r->found; b++) {
          const rule_term **x = iso_arena_alloc(&r->arena, l->n * sizeof *x);
          if (!x) return nomem(err);
          memcpy(x, l->child, l->n * sizeof *x);
          x[a] = l->child[b], x[b] = l->child[a];
          c = rp_try_call(r, n, rp_with_child(r, call, i, rule_list(&r->arena, x, l->n)), err);
          if (!c && r->found) r->what = listed_otherwise(r, call, i, a, b);
        }
    }
    for (uint32_t j = i + 1; j < call->n && !c && !r->found; j++) {
      if (call->child[i]->kind != RULE_VAR || call->child[j]->kind != RULE_VAR) continue;
      const rule_term *t = rp_with_child(r, call, i, call->child[j]);
      c = rp_try_call(r, n, t ? rp_with_child(r, t, j, call->child[i]) : NULL, err);
      if (!c && r->found)
        r->what = iso_arena_printf(&r->s->res->arena, "%s and %s are exchanged",
                                   rp_argument_name(r, call, i), rp_argument_name(r, call, j));
    }
  }
  return c;
}

/* Each one several times, for all of them several times over; or the other way about. */
iso_code rp_repeated(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *arg[4] = {NULL}, *t = NULL;
  const rule_tensor *v = rp_value(r->task->run, n);
  const int64_t rank = v ? v->shape.rank : 0;
  int64_t times = 0, dim = -1;
  const char *to = NULL;
  if (rank == 0 || rank > RULE_MAX_RANK || call->n == 0 || call->child[0]->kind != RULE_VAR)
    return ISO_OK;
  if (strcmp(call->u.s, OP_REPEAT_INTERLEAVE_SELF_INT) == 0 && call->n > 2 &&
      call->child[1]->kind == RULE_INT && call->child[2]->kind == RULE_INT) {
    times = call->child[1]->u.i,
    dim = call->child[2]->u.i < 0 ? call->child[2]->u.i + rank : call->child[2]->u.i;
    to = OP_REPEAT;
  } else if (strcmp(call->u.s, OP_REPEAT) == 0 && call->n > 1 &&
             call->child[1]->kind == RULE_LIST && call->child[1]->n == rank) {
    to = OP_REPEAT_INTERLEAVE_SELF_INT;
    for (uint32_t k = 0; k < rank && to; k++) {
      const rule_term *c = call->child[1]->child[k];
      if (c->kind != RULE_INT || (c->u.i != 1 && dim >= 0)) to = NULL;
      else if (c->u.i != 1) times = c->u.i, dim = k;
    }
  }
  if (!to || dim < 0 || times < 2) return ISO_OK;
  const bool over = strcmp(to, OP_REPEAT) == 0;
  const rule_term *each[RULE_MAX_RANK];
  for (int64_t k = 0; k < rank; k++)
    if (!(each[k] = rule_int(&r->arena, k == dim ? times : 1))) return nomem(err);
  arg[0] = call->child[0];
  arg[1] = over ? rule_list(&r->arena, each, (size_t)rank) : rule_int(&r->arena, times);
  arg[2] = rule_int(&r->arena, dim);
  if (!arg[1] || !arg[2]) return nomem(err);
  iso_error ignored;
  if (rule_call(&r->arena, r->s->schemas, to, arg, over ? 2 : 3, &t, &ignored)) return ISO_OK;
  iso_code c = rp_try_call(r, n, t, err);
  if (!c && r->found)
    r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s", call->u.s, to);
  return c;
}

/* A view where the elements have to be moved: a permutation of the argument that has the same
 * shape. */
iso_code rp_permuted(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const rule_tensor *v = rp_value(r->task->run, n);
  const rule_tensor *x = call->n && call->child[0]->kind == RULE_VAR
                             ? rp_value(r->task->run, (uint32_t)call->child[0]->u.i)
                             : NULL;
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool view = o->sizes && o->rearranges;
  if (!view || !v || !x || x->shape.rank < 2 || x->shape.rank > 4 || x->shape.rank != v->shape.rank)
    return ISO_OK;
  const uint32_t rank = x->shape.rank;
  uint32_t all = 1;
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < rank; i++) all *= rank;
  for (uint32_t code = 0; code < all && !c && !r->found; code++) {
    const rule_term *dim[4];
    uint32_t seen = 0, at = code;
    bool fits = true, moved = false;
    for (uint32_t i = 0; i < rank; i++, at /= rank) {
      const uint32_t d = at % rank;
      seen |= 1u << d;
      moved |= d != i;
      fits &= x->shape.dim[d] == v->shape.dim[i];
      if (!(dim[i] = rule_int(&r->arena, d))) return nomem(err);
    }
    if (!fits || !moved || seen != (1u << rank) - 1) continue;
    const rule_term *arg[] = {call->child[0], rule_list(&r->arena, dim, rank)};
    c = rp_try_call(r, n, arg[1] ? rule_op(&r->arena, OP_PERMUTE, arg, 2) : NULL, err);
    if (!c && r->found)
      r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be " OP_PERMUTE " to %s",
                                 call->u.s, rp_show(r, arg[1]));
  }
  return c;
}

/* Elements moved where the argument should only be viewed, or the tensor of which it is a view. */
iso_code rp_viewed(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call, *dim[RULE_MAX_RANK];
  const rule_tensor *v = rp_value(r->task->run, n);
  if (rule_operator_of(call->u.s)->undo != RULE_UNDONE_BY_PERMUTE || !v ||
      v->shape.rank > RULE_MAX_RANK)
    return ISO_OK;
  for (uint32_t k = 0; k < v->shape.rank; k++)
    if (!(dim[k] = rule_int(&r->arena, v->shape.dim[k]))) return nomem(err);
  const rule_term *arg[] = {call->child[0], rule_list(&r->arena, dim, v->shape.rank)};
  iso_code c = rp_try_call(r, n, arg[1] ? rule_op(&r->arena, OP_RESHAPE, arg, 2) : NULL, err);
  if (!c && r->found)
    r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be a view", call->u.s);
  return c;
}

/* Parts `n` and `m` of one operator's results taken for one another. */
static iso_code try_exchanged(repair *r, uint32_t n, uint32_t m, iso_error *err) {
  rule_tensor *a = rp_value(r->task->run, n), *b = rp_value(r->task->run, m);
  if (!a || !b || !rule_shape_eq(&a->shape, &b->shape)) return ISO_OK;
  r->tries++;
  bool *kept = r->again;
  if (!(r->again = calloc(r->g->n_nodes + 1, 1))) {
    r->again = kept;
    return nomem(err);
  }
  for (uint32_t i = n; i < r->g->n_nodes; i++)
    r->again[i] = i == n || i == m ||
                  (r->to_goal[i] && r->g->node[i].kind == SYNTH_OP &&
                   st_term_uses(r->g->node[i].call, r->again));
  r->instead[n] = rule_tensor_ref(b);
  r->instead[m] = rule_tensor_ref(a);
  const iso_code c = rp_try_values(r, n, err);
  free(r->again);
  r->again = kept;
  if (r->found) return c;
  rule_tensor_unref(r->instead[n]);
  rule_tensor_unref(r->instead[m]);
  r->instead[n] = r->instead[m] = NULL;
  return c;
}

/* Another part of the same results. */
static bool other_part(const repair *r, uint32_t n, uint32_t m) {
  const rule_term *o = r->g->node[m].call;
  return m != n && r->g->node[m].kind == SYNTH_OP && rule_is_getitem(o->u.s) &&
         o->child[0]->u.i == r->g->node[n].call->child[0]->u.i;
}

/* Two parts of one operator's results taken for one another. Exchanging two arguments of their
 * reader is the same function; but where a program unpacks its parts out of order, the fault is
 * here. */
iso_code rp_parts_exchanged(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  if (!rule_is_getitem(call->u.s) || r->found) return ISO_OK;
  bool ordered = true;
  int64_t last = -1;
  for (uint32_t m = 0; m < r->g->n_nodes; m++) {
    if (m != n && !other_part(r, n, m)) continue;
    ordered &= r->g->node[m].call->child[1]->u.i > last;
    last = r->g->node[m].call->child[1]->u.i;
  }
  iso_code c = ISO_OK;
  for (uint32_t m = n + 1; m < r->g->n_nodes && !ordered && !c && !r->found && !rp_spent(r); m++) {
    if (!other_part(r, n, m)) continue;
    c = try_exchanged(r, n, m, err);
    if (r->found)
      r->what = iso_arena_printf(&r->s->res->arena, "parts %lld and %lld are exchanged",
                                 (long long)call->child[1]->u.i,
                                 (long long)r->g->node[m].call->child[1]->u.i);
  }
  return c;
}

/* The other side's name of a tensor of this value. */
static const char *named_there(const repair *r, const rule_tensor *v) {
  for (uint32_t i = 0; i < r->other->n_nodes; i++) {
    const rule_tensor *x = rp_value(r->task->other_run, i);
    if (x && x->numel == v->numel && r->other->node[i].kind == SYNTH_OP &&
        r->s->oracle->compare(r->s->oracle->ctx, x, v, r->s->o->rel_tol).equal)
      return lo_called(&r->s->res->arena, r->other, i);
  }
  return NULL;
}

/* The same of a product with a weight that holds several matrices, whose parts are unpacked in
 * order: the weight holds two of them in the wrong one. */
iso_code rp_rows_exchanged(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  if (!rule_is_getitem(call->u.s) || r->found) return ISO_OK;
  uint32_t of = (uint32_t)r->g->node[call->child[0]->u.i].call->child[0]->u.i;
  while (r->g->node[of].kind == SYNTH_OP && lo_passes(r->g, of) &&
         !rule_is_getitem(r->g->node[of].op))
    of = (uint32_t)r->g->node[of].call->child[0]->u.i;
  if (r->g->node[of].kind != SYNTH_OP || !rule_operator_of(r->g->node[of].op)->product)
    return ISO_OK;
  iso_code c = ISO_OK;
  for (uint32_t m = n + 1; m < r->g->n_nodes && !c && !r->found && !rp_spent(r); m++) {
    if (!other_part(r, n, m)) continue;
    c = try_exchanged(r, n, m, err);
    if (!r->found) continue;
    const char *a = named_there(r, rp_value(r->task->run, n)),
               *b = named_there(r, rp_value(r->task->run, m));
    r->what = iso_arena_printf(&r->s->res->arena, "%s and %s are exchanged in %s",
                               b ? b : r->g->node[n].id, a ? a : r->g->node[m].id,
                               lo_called(&r->s->res->arena, r->g, of));
    r->node = of;
  }
  return c;
}
