/* Proofs in parts. What both sides of a rule compute on their way is shown to be equal first, the small things before the
 * large ones; then it is an unknown tensor, the same one on both sides, for what is made of it. So the cube in an
 * activation is one of an unknown number, and not of the sums of products over an attention's heads that it stands for.
 *
 * A part is a term of the left side and one of the right that read the same variables, and are proved equal, up to layout,
 * under the rule's own conditions; or one term that stands on both sides. What is proved of all values of the unknown
 * tensor holds for the values that the parts have: on a sample on which both sides are defined all their parts are. That
 * there is such a sample is shown apart, since parts alone do not say what their values can be. Only real numbers are cut
 * out, and nothing that may be minus infinity. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/prove_int.h"

enum { MAX_TERMS = 160, MAX_CUTS = 24 /* at a time */, MAX_PAIRS = 400, FIRST_WORK = 1500000, PART_WORK = 250000, PARTS_WORK = 4000000, LEAST_TERMS = 4 };

/* ---- within a proof ---- */

static sx cut_elem(sc *c, const pt_tensor *t, const sx *idx) { return sx_leaf(c, (uint32_t)t->which, idx, t->rank); }

const pt_value *sc_cut_value(sc *c, const rule_term *t, const pt_value *v) {
  const size_t n = c->look ? c->look->n_cuts : 0;
  for (size_t i = 0; i < n; i++) {
    const sc_cut *k = &c->look->cut[i];
    if (v->several || !rule_term_eq(k->term, t)) continue;
    const pt_tensor *own = v->t[0];
    if (!rule_term_eq(k->as, t)) {
      const pt_tensor *as = pt_eval_tensor(c, k->as);
      return as ? pt_one(c, pt_reshape(c, as, own->dim, own->rank)) : NULL;
    }
    pt_tensor *u = pt_like(c, own, 'f', cut_elem);
    if (u) u->which = (int)k->var;
    return pt_one(c, u);
  }
  return v;
}

/* ---- what may be a part ---- */

typedef struct part {
  const rule_term *t;
  uint64_t vars;
  uint32_t size; /* operators in it */
  bool cut;
} part;

typedef struct side {
  part part[MAX_TERMS];
  bool below[MAX_TERMS][MAX_TERMS]; /* part j is an argument of part i */
  bool live[MAX_TERMS];             /* not only within what is cut out */
  size_t n;
  bool full;
} side;

static uint64_t variables(const rule_term *t, uint32_t *size) {
  uint64_t v = t->kind == RULE_VAR && t->u.i < 64 ? 1ULL << t->u.i : 0;
  *size += t->kind == RULE_OP;
  for (uint32_t i = 0; i < t->n; i++) v |= variables(t->child[i], size);
  return v;
}

/* The operators below t and t itself, each behind what it is made of; `above` gets those that stand directly in it. */
static void collect(side *s, const rule_term *t, bool *above) {
  bool below[MAX_TERMS] = {false};
  part p = {.t = t};
  for (size_t i = 0; t->kind == RULE_OP && i < s->n; i++)
    if (s->part[i].t == t || rule_term_eq(s->part[i].t, t)) {
      above[i] = true;
      return;
    }
  for (uint32_t i = 0; i < t->n; i++) collect(s, t->child[i], t->kind == RULE_OP ? below : above);
  if (t->kind != RULE_OP || !(p.vars = variables(t, &p.size))) return;
  if (s->n == MAX_TERMS) {
    s->full = true;
    return;
  }
  above[s->n] = true;
  memcpy(s->below[s->n], below, sizeof below);
  s->part[s->n++] = p;
}

static void reach(side *s, size_t i) {
  if (s->live[i]) return;
  s->live[i] = true;
  for (size_t k = 0; k < s->n && !s->part[i].cut; k++)
    if (s->below[i][k]) reach(s, k);
}

/* ---- the search ---- */

typedef struct sweep {
  const rule *r;
  rule_schemas *schemas;
  const val_options *o;
  sc_certificate *certify;
  iso_error *err;
  iso_code code;
  sc_look look;
  side left, right;
  sc_cut cut[MAX_CUTS];
  rule with; /* the rule with a variable for each cut */
  size_t pairs;
  int64_t work;
  iso_arena arena;
} sweep;

/* Whether a is b under the cuts so far. */
static bool equal_parts(sweep *w, const rule_term *a, const rule_term *b) {
  rule of_parts = w->with;
  sc_sight sight = {0};
  rule_verdict v = {0};
  sc_look look = w->look;
  of_parts.lhs = a;
  of_parts.rhs = b;
  look.part = true;
  look.one_term = a == b;
  look.max_work = PART_WORK;
  const size_t had = w->certify ? w->certify->n : 0;
  w->code = sc_attempt(&of_parts, w->schemas, w->o, &look, look.one_term ? NULL : w->certify, &sight, &v, w->err);
  w->work += sight.work;
  w->pairs++;
  const bool written = !w->certify || !w->certify->why[0]; /* its obligations, where they are wanted */
  const bool proved = !w->code && v.status == RULE_PROVED && !sight.masked && written;
  if (proved) w->look.used = sight.used;
  if (!proved && w->certify) { /* of what is no part there is no obligation */
    for (size_t i = had; i < w->certify->n; i++) free(w->certify->text[i]);
    w->certify->n = had;
    w->certify->why[0] = 0;
  }
  return proved;
}

/* A cut is kept as long as a term that is not within another one has it. */
static bool is_live(const sweep *w, const sc_cut *k) {
  for (int side_no = 0; side_no < 2; side_no++) {
    const side *s = side_no ? &w->right : &w->left;
    for (size_t i = 0; i < s->n; i++)
      if (s->live[i] && s->part[i].t == k->term) return true;
  }
  return false;
}

static void drop_inner(sweep *w) {
  bool used[MAX_CUTS + 2] = {false};
  memset(w->left.live, 0, sizeof w->left.live);
  memset(w->right.live, 0, sizeof w->right.live);
  reach(&w->left, w->left.n - 1);
  reach(&w->right, w->right.n - 1);
  for (size_t i = 0; i < w->look.n_cuts; i++) /* the left term of what stands on the right */
    if (is_live(w, &w->cut[i])) used[w->cut[i].var - w->r->n_vars] = true;
  size_t n = 0;
  for (size_t i = 0; i < w->look.n_cuts; i++)
    if (used[w->cut[i].var - w->r->n_vars]) w->cut[n++] = w->cut[i];
  w->look.n_cuts = n;
}

/* Of the variables for cuts one that none has. */
static uint32_t free_variable(const sweep *w) {
  uint32_t v = w->r->n_vars;
  for (size_t i = 0; i < w->look.n_cuts; i++)
    if (w->cut[i].var == v) v++, i = SIZE_MAX;
  return v;
}

static void cut_out(sweep *w, part *a, part *b) {
  const uint32_t v = free_variable(w);
  a->cut = b->cut = true;
  w->cut[w->look.n_cuts++] = (sc_cut){a->t, a->t, v};
  if (!rule_term_eq(a->t, b->t)) w->cut[w->look.n_cuts++] = (sc_cut){b->t, a->t, v};
  w->look.used.parts = true;
  drop_inner(w);
}

static bool exhausted(const sweep *w) {
  return w->code || w->pairs >= MAX_PAIRS || w->work > PARTS_WORK || w->look.n_cuts + 2 > MAX_CUTS || val_stopped(w->o);
}

/* What is on the other side of part a: the same term, else one that is proved to be equal, those of the same operator first. */
static void find_other(sweep *w, part *a) {
  for (int round = 0; round < 3 && !a->cut; round++)
    for (size_t i = 0; i < w->right.n && !a->cut && !exhausted(w); i++) {
      part *b = &w->right.part[i];
      const bool same = rule_term_eq(a->t, b->t), alike = strcmp(a->t->u.s, b->t->u.s) == 0;
      if (b->cut || b->vars != a->vars || (a->t == w->r->lhs && b->t == w->r->rhs)) continue;
      if (round == 0 ? !same : same || alike != (round == 1)) continue;
      if (equal_parts(w, a->t, same ? a->t : b->t)) cut_out(w, a, b);
    }
}

static bool begin(sweep *w) {
  bool above[MAX_TERMS];
  collect(&w->left, w->r->lhs, above);
  collect(&w->right, w->r->rhs, above);
  if (w->left.full || w->right.full || w->left.n < LEAST_TERMS || w->right.n < LEAST_TERMS || w->r->n_vars + MAX_CUTS > 64) return false;
  rule_variable *var = iso_arena_alloc(&w->arena, (w->r->n_vars + MAX_CUTS) * sizeof *var);
  if (!var) return w->code = iso_fail(w->err, ISO_NOMEM, "out of memory"), false;
  if (w->r->n_vars) memcpy(var, w->r->var, w->r->n_vars * sizeof *var);
  for (uint32_t i = 0; i < MAX_CUTS; i++) {
    const char *name = iso_arena_printf(&w->arena, "part %u", (unsigned)i); /* no name that a rule can give */
    if (!name) return w->code = iso_fail(w->err, ISO_NOMEM, "out of memory"), false;
    var[w->r->n_vars + i] = (rule_variable){.name = name, .kind = 'f'};
  }
  w->with = *w->r;
  w->with.var = var;
  w->with.n_vars = w->r->n_vars + MAX_CUTS;
  w->look.cut = w->cut;
  w->look.n_own = w->r->n_vars;
  return true;
}

/* Whether both sides are defined somewhere, where each variable has one value in all places. What is cut out does not show it. */
static bool has_values(sweep *w) {
  for (int k = 1; k <= 2 && !w->code; k++) {
    sc_look look = w->look;
    sc_sight sight = {0};
    rule_verdict v = {0};
    look.witness = k;
    look.max_work = PART_WORK;
    w->code = sc_attempt(w->r, w->schemas, w->o, &look, NULL, &sight, &v, w->err);
    if (!w->code && v.status == RULE_PROVED) return true;
  }
  return false;
}

/* A rule, and how it is looked at. */
typedef struct question {
  const rule *r;
  rule_schemas *schemas;
  const val_options *o;
  sc_certificate *certify;
  rule_verdict *out;
  iso_error *err;
  sc_look look;
  sc_sight sight;
  int64_t work; /* of all attempts */
} question;

static iso_code as_it_stands(question *q) {
  sc_forget_certificates(q->certify);
  const iso_code c = sc_attempt(q->r, q->schemas, q->o, &q->look, q->certify, &q->sight, q->out, q->err);
  q->work += q->sight.work;
  return c;
}

static iso_code in_parts(question *q) {
  sweep *w = calloc(1, sizeof *w);
  if (!w) return iso_fail(q->err, ISO_NOMEM, "out of memory");
  *w = (sweep){.r = q->r, .schemas = q->schemas, .o = q->o, .certify = q->certify, .err = q->err, .look = q->look};
  sc_forget_certificates(q->certify);
  if (begin(w) && has_values(w))
    for (size_t i = 0; i < w->left.n && !exhausted(w); i++) find_other(w, &w->left.part[i]);
  if (!w->code && w->look.n_cuts) {
    sc_sight sight = {0};
    rule_verdict v = {0};
    w->code = sc_attempt(&w->with, q->schemas, q->o, &w->look, q->certify, &sight, &v, q->err);
    if (!w->code && v.status == RULE_PROVED) *q->out = v;
    w->work += sight.work;
  }
  const iso_code c = w->code;
  q->work += w->work;
  iso_arena_fini(&w->arena);
  free(w);
  return c;
}

/* The obligations of a proof, which z3 did not answer as they stood, for its parts. Else why there are none stays. */
static iso_code written_in_parts(question *q) {
  char why[sizeof q->certify->why];
  rule_verdict v = {0}, *out = q->out;
  memcpy(why, q->certify->why, sizeof why);
  q->out = &v;
  const iso_code c = in_parts(q);
  q->out = out;
  if (c || (v.status == RULE_PROVED && !q->certify->why[0] && q->certify->n)) return c;
  sc_forget_certificates(q->certify);
  memcpy(q->certify->why, why, sizeof why);
  return ISO_OK;
}

static bool goes_on(const question *q, iso_code c) { return !c && q->out->status != RULE_PROVED && !val_stopped(q->o); }

/* Little work as it stands; then in parts; then, where it was the work that ended it, all of it as it stands. */
static iso_code answer(question *q, int64_t all) {
  q->look.max_work = all < FIRST_WORK ? all : FIRST_WORK;
  iso_code c = as_it_stands(q);
  const bool ended = q->work > q->look.max_work;
  q->look.mask_frames = true;
  if (goes_on(q, c) && q->sight.has_frames) c = as_it_stands(q);
  q->look.mask_frames = false;
  if (all <= FIRST_WORK) return c;
  if (goes_on(q, c)) c = in_parts(q);
  q->look.max_work = all;
  return goes_on(q, c) && ended ? as_it_stands(q) : c;
}

iso_code sc_prove(const rule *r, rule_schemas *schemas, const val_options *o, bool read_literals, sc_certificate *certify, rule_verdict *out,
                  sc_sight *sight, iso_error *err) {
  question q = {.r = r, .schemas = schemas, .o = o, .certify = certify, .out = out, .err = err, .look.read_literals = read_literals};
  *out = (rule_verdict){.status = RULE_UNKNOWN};
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].n_dims > RULE_MAX_RANK) return snprintf(out->reason, sizeof out->reason, "a variable of too many dimensions"), ISO_OK;
  iso_code c;
  if (certify && certify->unchecked) { /* also what is not proved is wanted, as it stands */
    q.look.max_work = sc_budget(o);
    c = as_it_stands(&q);
  } else {
    c = answer(&q, sc_budget(o));
    if (!c && certify && out->status == RULE_PROVED && certify->why[0]) c = written_in_parts(&q);
  }
  if (sight) *sight = q.sight, sight->work = q.work;
  return c;
}
