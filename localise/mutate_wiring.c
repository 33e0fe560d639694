/* Operators and operands too many, too few, or others than are meant. */
#include "localise/mutate.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "localise/localise_int.h"

#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static iso_code try_instead(repair *r, uint32_t n, rule_tensor *v, const char *what,
                            iso_error *err) {
  const rule_tensor *old = rp_value(r->task->run, n);
  if (r->found || !old || rp_spent(r) || !rule_shape_eq(&v->shape, &old->shape) ||
      v->dtype != old->dtype || rule_tensor_same(v, old))
    return ISO_OK;
  r->tries++;
  r->instead[n] = rule_tensor_ref(v);
  iso_code c = rp_try_values(r, n, err);
  if (r->found) r->what = what;
  else {
    rule_tensor_unref(v);
    r->instead[n] = NULL;
  }
  return c;
}

/* Another part of an operator's results. */
iso_code rp_other_part(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  if (!rule_is_getitem(call->u.s)) return ISO_OK;
  const st_value_list *parts = &r->task->run->value[call->child[0]->u.i];
  iso_code c = ISO_OK;
  for (size_t k = 0; k < parts->n && !c && !r->found; k++) {
    if ((int64_t)k == call->child[1]->u.i) continue;
    c = try_instead(r, n, parts->v[k], NULL, err);
    if (!c && r->found)
      r->what =
          iso_arena_printf(&r->s->res->arena, "it takes part %lld, and would have to take part %zu",
                           (long long)call->child[1]->u.i, k);
  }
  return c;
}

/* An operator too much: its argument stands for it. */
iso_code rp_left_out(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 0; k < call->n && !c && !r->found; k++) {
    rule_tensor *v = call->child[k]->kind == RULE_VAR
                         ? rp_value(r->task->run, (uint32_t)call->child[k]->u.i)
                         : NULL;
    if (v) c = try_instead(r, n, v, NULL, err);
    if (!v || c || !r->found) continue;
    r->change = (lo_change){.op = call->u.s, .k = k};
    r->what = rp_too_much(r, call, k);
  }
  return c;
}

/* Argument k of the other side's node `i` is node `n`; its other tensors are as they are there, as
 * extra values. Returns: false where one of them is a result of the other region and not a cause of
 * it, or stands in a list. */
static bool bind_there(repair *r, uint32_t n, uint32_t i, uint32_t k, const rule_term **child) {
  const rule_term *call = r->other->node[i].call;
  uint32_t extra = (uint32_t)r->g->n_nodes;
  bool fits = call->child[k]->kind == RULE_VAR;
  for (uint32_t j = 0; j < call->n && fits; j++) {
    child[j] = j == k ? rule_var(&r->arena, n) : call->child[j];
    if (j == k || child[j]->kind != RULE_VAR) {
      fits &= child[j] && (child[j]->kind != RULE_LIST || child[j]->n == 0 ||
                           child[j]->child[0]->kind != RULE_VAR);
      continue;
    }
    const uint32_t operand = (uint32_t)child[j]->u.i;
    r->bind[extra] = rp_value(r->task->other_run, operand);
    fits &= r->bind[extra] != NULL &&
            (!r->task->other_region[operand] || r->other->node[operand].kind != SYNTH_OP ||
             r->s->rec[r->s->map[!r->task->side][operand].i].konst);
    child[j] = rule_var(&r->arena, extra++);
  }
  return fits;
}

/* An operator of the other side's region, behind this one. */
static iso_code added_from_there(repair *r, uint32_t n, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < r->other->n_nodes && !c && !r->found; i++) {
    const synth_node *m = &r->other->node[i];
    if (m->kind != SYNTH_OP || !r->task->other_region[i] || m->call->n == 0 || m->call->n > 12)
      continue;
    for (uint32_t k = 0; k < m->call->n && k < 2 && !c && !r->found; k++) {
      const rule_term **child = iso_arena_alloc(&r->arena, m->call->n * sizeof *child);
      if (!child) return nomem(err);
      if (!bind_there(r, n, i, k, child)) continue;
      c = rp_try_call(r, n, rule_op(&r->arena, m->call->u.s, child, m->call->n), err);
      if (c || !r->found) continue;
      r->what = rp_too_little(r, r->other, m->call, k);
      r->missing = i;
    }
  }
  return c;
}

/* A sum or product that lost one of its operands. */
static iso_code added_operand(repair *r, uint32_t n, const rule_tensor *v, iso_error *err) {
  static const char *const binary[] = {OP_ADD_TENSOR, OP_MUL_TENSOR};
  const rule_term *self = rule_var(&r->arena, n);
  iso_code c = self ? ISO_OK : nomem(err);
  for (uint32_t i = n, near = 0; i-- > 0 && !c && !r->found && near < RP_MAX_NEAR;) {
    const rule_tensor *y = rp_value(r->task->run, i);
    if (!y || !rule_shape_eq(&y->shape, &v->shape) || y->dtype != v->dtype) continue;
    near++;
    for (int b = 0; b < 2 && !c && !r->found; b++) {
      const rule_term *arg[2] = {self, rule_var(&r->arena, i)}, *t = NULL;
      iso_error ignored;
      if (!arg[1] || rule_call(&r->arena, r->s->schemas, binary[b], arg, 2, &t, &ignored)) continue;
      c = rp_try_call(r, n, t, err);
      if (!c && r->found) r->what = rp_too_little(r, r->g, t, 0);
    }
  }
  return c;
}

/* An operator too few: behind this one. */
iso_code rp_added(repair *r, uint32_t n, iso_error *err) {
  const rule_tensor *v = rp_value(r->task->run, n);
  if (!v || !rule_dtype_is_float(v->dtype) || rule_is_getitem(r->g->node[n].call->u.s))
    return ISO_OK;
  const rule_term *neg[1] = {rule_var(&r->arena, n)};
  iso_code c = rp_try_call(r, n, rule_op(&r->arena, OP_NEG, neg, 1), err);
  if (!c && r->found) r->what = "its sign is wrong";
  if (!c && !r->found) c = added_from_there(r, n, err);
  if (!c && !r->found) c = added_operand(r, n, v, err);
  return c;
}

/* A tensor that is not given (a bias, a mask), or another one than is meant. */
iso_code rp_other_tensors(repair *r, uint32_t n, iso_error *err) {
  const rule_term *call = r->g->node[n].call;
  const rule_schema *sc = rule_schemas_find(r->s->schemas, call->u.s);
  const uint32_t extra = (uint32_t)r->g->n_nodes;
  iso_code c = ISO_OK;
  if (!sc || rule_is_getitem(call->u.s)) return ISO_OK;
  for (uint32_t k = 0; k < call->n && k < sc->n_args && !c && !r->found; k++) {
    if (sc->arg[k].type != RULE_ARG_TENSOR) continue;
    const rule_term *now = call->child[k];
    const bool none = now->kind == RULE_NONE;
    if (!none && now->kind != RULE_VAR) continue;
    const rule_tensor *have = none ? NULL : rp_value(r->task->run, (uint32_t)now->u.i);
    for (int pass = 0; pass < 2; pass++) {
      const synth_graph *g = pass ? r->other : r->g;
      const st_run *run = pass ? r->task->other_run : r->task->run;
      uint32_t near = 0;
      for (uint32_t i = pass ? (uint32_t)g->n_nodes : n;
           i-- > 0 && !c && !r->found && near < RP_MAX_NEAR;) {
        rule_tensor *v = rp_value(run, i);
        if (!v ||
            (none ? g->node[i].kind == SYNTH_OP &&
                        !r->s->rec[r->s->map[pass ? !r->task->side : r->task->side][i].i].konst
                  : !have || !rule_shape_eq(&v->shape, &have->shape) || v->dtype != have->dtype))
          continue;
        if (pass && g->node[i].kind == SYNTH_OP && !r->s->rec[r->s->map[!r->task->side][i].i].konst)
          continue; /* that would be its result, not its cause */
        near++;
        r->bind[extra] = v;
        c = rp_try_call(r, n, rp_with_child(r, call, k, rule_var(&r->arena, extra)), err);
        if (!c && r->found)
          r->what = iso_arena_printf(&r->s->res->arena, "%s would have to be %s\"%s\"",
                                     rp_argument_name(r, call, k), pass ? "the other side's " : "",
                                     g->node[i].name ? g->node[i].name : g->node[i].id);
        if (!c && r->found && pass && !none && g->node[i].kind != SYNTH_OP)
          r->operand = now->u.i, r->leaf = (int64_t)i;
      }
    }
  }
  return c;
}
