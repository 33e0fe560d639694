/* Samples made for the branches that none has shown yet: other samples of the rule, with one
 * variable moved until an operator takes the branch (solve.c). Several for each, since one sample
 * may hide (by a factor that is 0, by a mask) what another one shows. */
#include <stdlib.h>

#include "validate/branch/choice_int.h"
#include "validate/branch/cover_int.h"
#include "validate/branch/meet_int.h"

enum { SOUGHT = 36, WANTED = 4, ROOTS = 8, CLOSE = 6, ELEMENTS = 6, SEAMS_KIND = 3 };

typedef struct seek {
  val_bench on;
  rule_tensor *const *example;
  const val_cover *all;
  const val_seeker *who;
  bool stop;
} seek;

static void let_go(seek *s) {
  for (uint32_t i = 0; i < s->on.r->n_vars; i++) {
    rule_tensor_unref(s->on.bind[i]);
    s->on.bind[i] = NULL;
  }
}

/* Numbers of several sizes, of which some are short: sums of those are exact. */
static iso_code draw(seek *s, iso_error *err) {
  static const unsigned kinds[] = {VAL_PLAIN, VAL_SEAM,      VAL_PLAIN + 2,
                                   VAL_SEAM,  VAL_PLAIN + 3, VAL_SEAM + SEAMS_KIND};
  let_go(s);
  return val_sample(s->on.e, s->on.r, s->example, s->on.rng, kinds[iso_rng_below(s->on.rng, 6)],
                    s->on.bind, err);
}

static uint16_t sought(const seek *s, int side, const val_covered *op) {
  const val_covered *o = val_cover_at(&s->all[side], op);
  return val_cover_sought(o ? o : op, &s->all[!side]) & (uint16_t) ~(VAL_FAR | VAL_SOME);
}

/* An element of the call that this sample's value depends on. Returns: -1 in `*element` where some
 * tries found none. */
static iso_code choose_element(seek *s, int side, const val_covered *op, int64_t *element,
                               iso_error *err) {
  const rule_term *term = side ? s->on.r->rhs : s->on.r->lhs;
  rule_tensor *plain = NULL;
  iso_error local;
  bool shows = false;
  iso_code c = val_eval(s->on.e, term, s->on.bind, VAL_FLOAT64, &plain, &local);
  *element = -1;
  if (c) return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
  for (int k = 0; k < ELEMENTS && !c && !shows; k++) {
    *element = (int64_t)iso_rng_below(s->on.rng, (uint64_t)op->numel);
    c = val_observe_one(s->on.e, &(val_shown){term, s->on.bind, plain}, op->at, *element, &shows,
                        s->on.work, err);
  }
  if (!shows) *element = -1;
  rule_tensor_unref(plain);
  return c;
}

/* The sample on either side of the root: nothing but whether the sides agree there. */
static iso_code weigh_close(seek *s, int side, const val_covered *op, val_root *root,
                            iso_error *err) {
  const val_root none = {.element = root->element, .var = root->var};
  const val_made made = {side, op, 0, &none};
  iso_code c = ISO_OK;
  for (int k = 0; k < 2 && !c && !s->stop && root->close[k]; k++) {
    rule_tensor *was = s->on.bind[root->var];
    s->on.bind[root->var] = root->close[k];
    c = s->who->weigh(s->who->ctx, s->on.r, s->on.bind, &made, &s->stop, err);
    s->on.bind[root->var] = was;
  }
  for (int k = 0; k < 2; k++) rule_tensor_unref(root->close[k]);
  return c;
}

/* `any`: also where the call's result does not show in the sample that is changed. */
static iso_code one(seek *s, int side, const val_covered *op, uint16_t bit, bool any,
                    iso_error *err) {
  val_root root = {.found = false};
  int64_t element = -1;
  iso_code c = draw(s, err);
  if (c == ISO_NOMEM) return c;
  if (c) return ISO_OK;
  c = choose_element(s, side, op, &element, err);
  if (element < 0 && any) element = (int64_t)iso_rng_below(s->on.rng, (uint64_t)op->numel);
  if (c || element < 0) return c;
  c = val_solve(&s->on, &(val_target){op->where, bit, element}, &root, err);
  const val_made made = {side, op, bit, &root};
  if (!c && root.found) c = s->who->weigh(s->who->ctx, s->on.r, s->on.bind, &made, &s->stop, err);
  if (!c) c = weigh_close(s, side, op, &root, err);
  rule_tensor_unref(root.beyond);
  return c;
}

static bool reads_numbers(const rule *r, const rule_term *t) {
  if (t->kind == RULE_VAR) return r->var[t->u.i].kind != 'b';
  for (uint32_t i = 0; i < t->n; i++)
    if (reads_numbers(r, t->child[i])) return true;
  return false;
}

/* Truth values cannot be moved along a line: those have few values, and both answers were seen. */
static void settle_truth(const seek *s, int side, const val_covered *op) {
  val_covered *o = val_cover_at(&s->all[side], op);
  if (o && !reads_numbers(s->on.r, op->where) && (o->seen & VAL_YES) && (o->seen & VAL_NO))
    o->seen |= o->need & VAL_MEET;
}

static iso_code each_bit(seek *s, int side, const val_covered *op, iso_error *err) {
  iso_code c = ISO_OK;
  settle_truth(s, side, op);
  for (unsigned b = 0; b < VAL_BITS && !c && op->numel > 0; b++) {
    const uint16_t bit = (uint16_t)(1U << b);
    const int tries = op->need & bit ? SOUGHT : WANTED;
    for (int k = 0; k < tries && !c && !s->stop && *s->on.work > 0 && (sought(s, side, op) & bit);
         k++)
      c = one(s, side, op, bit, k % 3 == 2, err);
    /* One root of several may be where the sides agree: of multiples of 100 every other one is one
     * of 200. */
    const val_covered *o = val_cover_at(&s->all[side], op);
    for (int k = 0; k < ROOTS && !c && !s->stop && *s->on.work > 0 && o && bit == VAL_MEET &&
                    (o->seen & bit) && o->n_met > 0 && o->n_met < ROOTS;
         k++)
      c = one(s, side, op, bit, false, err);
  }
  const uint16_t edges = op->need & (VAL_EDGE | VAL_MEET | VAL_EDGE_BELOW | VAL_EDGE_ABOVE);
  for (int k = 0; k < CLOSE && !c && edges && op->numel > 0 && !s->stop && *s->on.work > 0; k++)
    c = one(s, side, op, edges & (uint16_t)-edges, false, err);
  return c;
}

/* The operators of both sides, as they run on some sample. */
static iso_code seek_on(seek *s, val_cover *now, iso_error *err) {
  iso_code c = draw(s, err);
  if (!c)
    c = val_domains(s->on.e, val_engine_schemas(s->on.e), s->on.r, s->on.bind, s->on.domain, err);
  if (!c) c = val_reach(s->on.e, s->on.r, s->on.bind, s->on.domain, err);
  for (int side = 0; side < 2 && !c; side++) {
    val_probe p = {.cover = &now[side]};
    rule_tensor *x = NULL;
    iso_error local;
    if (val_eval_probe(s->on.e, side ? s->on.r->rhs : s->on.r->lhs, s->on.bind, &p, &x, &local) ==
        ISO_NOMEM)
      c = iso_fail(err, ISO_NOMEM, "out of memory");
    rule_tensor_unref(x);
  }
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < now[side].n && !c && !s->stop; i++)
      c = each_bit(s, side, &now[side].op[i], err);
  return c == ISO_UNSUPPORTED ? ISO_OK : c;
}

iso_code val_seek(val_engine *e, const rule *r, rule_tensor *const *example, const val_cover all[2],
                  const val_seeker *who, iso_error *err) {
  seek s = {.on = {.e = e, .r = r, .rng = who->rng, .work = who->work},
            .example = example,
            .all = all,
            .who = who};
  val_cover *now = calloc(2, sizeof *now);
  s.on.domain = calloc(r->n_vars + 1, sizeof *s.on.domain);
  s.on.bind = calloc(r->n_vars + 1, sizeof *s.on.bind);
  iso_code c = now && s.on.domain && s.on.bind ? seek_on(&s, now, err)
                                               : iso_fail(err, ISO_NOMEM, "out of memory");
  if (s.on.bind) let_go(&s);
  free(s.on.bind);
  free(s.on.domain);
  free(now);
  return c;
}
