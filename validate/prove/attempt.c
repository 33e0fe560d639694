/* One attempt at a rule: its cases under one reading, and the verdict with its assumptions. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove/cases_int.h"
#include "validate/prove/z3_lazy.h"

static void say(rule_verdict *out, const char *why) {
  *out = (rule_verdict){.status = RULE_UNKNOWN};
  snprintf(out->reason, sizeof out->reason, "%s", why);
}

static void describe(const sc *c, rule_verdict *out) {
  bool open = false, named = c->r->n_attrs > 0;
  for (uint32_t i = 0; i < c->r->n_vars; i++) {
    const rule_variable *v = &c->r->var[i];
    open |= v->any_shape || v->leading;
    for (uint32_t k = 0; k < v->n_dims; k++) named |= v->dim[k]->kind != RULE_INT;
  }
  *out = (rule_verdict){.status = RULE_PROVED,
                        .scope = open    ? RULE_ALL_SHAPES
                                 : named ? RULE_THESE_RANKS
                                         : RULE_THESE_SHAPES};
  out->method = c->used.z3 ? RULE_BY_CASES : RULE_BY_ELEMENT;
  out->rests_on =
      (c->used.literal ? RULE_RESTS_ON_LITERALS : 0u) | (c->used.masks ? RULE_RESTS_ON_MASKS : 0u) |
      (c->used.in_parts ? RULE_RESTS_IN_PARTS : 0u) | (c->used.ties ? RULE_RESTS_ON_TIES : 0u) |
      (c->used.unsorted ? RULE_RESTS_ON_ORDER : 0u) |
      (c->reading.whole_used ? RULE_RESTS_ON_WHOLE : 0u);
  out->n_relative = (uint32_t)c->terms.n_relative;
  if (c->terms.n_relative && strlen(c->terms.relative[0]) < sizeof out->relative_to)
    snprintf(out->relative_to, sizeof out->relative_to, "%s", c->terms.relative[0]);
  size_t at = 0;
  for (size_t i = 0; i < c->terms.n_relative && at < sizeof out->reason; i++) {
    const int n = snprintf(out->reason + at, sizeof out->reason - at, "%s%s",
                           i ? ", " : "relative to ", c->terms.relative[i]);
    at += n > 0 ? (size_t)n : 0;
  }
}

void sc_forget_obligations(sc_obligations *k) {
  for (size_t i = 0; k && i < k->n; i++) free(k->text[i]);
  if (k) k->n = 0, k->some = false, k->why[0] = 0;
}

int64_t sc_budget(const val_options *o) {
  return o->z3_rlimit < SC_MAX_WORK / 8 ? SC_LEAST_WORK + 8 * (int64_t)o->z3_rlimit : SC_MAX_WORK;
}

static void begin(sc *c, const sc_look *look, const val_options *o, sc_obligations *obligations) {
  c->look = look;
  c->reading.machine = true;
  c->reading.whole = o && o->whole;
  c->reading.read_literals = look->read_literals;
  c->reading.read_masks = look->read_literals && sc_only_masks(c->r);
  c->reading.mask_frames = look->mask_frames;
  c->budget.rlimit = o->z3_rlimit;
  c->budget.max_work = look->max_work;
  c->obligations = obligations;
  c->used.literal = look->used.literal;
  c->used.z3 = look->used.z3;
  c->used.ties = look->used.ties;
  c->used.unsorted = look->used.unsorted;
  c->used.in_parts = look->used.parts;
  c->reading.whole_used = look->used.whole;
}

static void look_back(const sc *c, sc_sight *sight) {
  sight->has_frames = c->reading.has_frames;
  sight->readable |= c->reading.readable || sc_only_masks(c->r);
  sight->masked = c->used.masked;
  sight->work = c->budget.work;
  sight->used = (sc_used){c->used.literal,  c->used.z3,       c->used.ties,
                          c->used.unsorted, c->used.in_parts, c->reading.whole_used};
}

iso_code sc_attempt(const sc_asked *q, const sc_look *look, sc_obligations *obligations,
                    sc_sight *sight, rule_verdict *out, iso_error *err) {
  sc *c = calloc(1, sizeof *c);
  sc_cases *k = calloc(1, sizeof *k);
  bool ok = c && k && sc_init(c, q->r, q->schemas, q->o), memory = ok, overran = false;
  if (ok) {
    begin(c, look, q->o, obligations);
    k->c = c;
    sc_declare_names(c);
    ok = !c->fault.failed && sc_prove_case(k);
    memory = !c->fault.no_memory;
    overran = c->fault.overran;
    if (ok && !k->some_model) {
      ok = false;
      snprintf(k->why, sizeof k->why, "%s", SC_NOWHERE);
    }
    if (ok) describe(c, out);
    else say(out, k->why[0] ? k->why : c->fault.reason);
    look_back(c, sight);
  }
  if (c) sc_fini(c);
  free(c);
  free(k);
  if (overran) return iso_fail(err, ISO_LIMIT, "%s on rule %s", VAL_Z3_OVERRAN, q->r->name);
  return memory ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}
