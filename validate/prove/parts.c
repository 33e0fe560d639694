/* Proofs in parts. Intermediate terms of the two sides are shown to be equal first, small ones
 * before large ones. Each such part is then replaced by an unknown tensor, the same one on both
 * sides, in the terms above it. So the cube in an activation is that of an unknown number, and not
 * of the sums of products over an attention's heads.
 *
 * A part is a term of the left side and one of the right that read the same variables, and are
 * proved equal, up to layout, under the rule's own conditions; or one term that stands on both
 * sides. Where ranks share the work, a term of the one side is a part whose chunks are terms of the
 * other, one for each rank: these are chunks of the unknown tensor then. A proof for all values of
 * the unknown tensor holds for the values that the parts have: on a sample on which both sides are
 * defined all their parts are. That there is such a sample is shown apart, since parts alone do not
 * tell which values they can have. Only real numbers are cut out, and nothing that may be minus
 * infinity. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/ops/ops.h"
#include "validate/exec/engine_int.h"
#include "validate/prove/prove.h"

enum {
  MAX_TERMS = 160,
  MAX_CUTS = 96 /* terms at a time */,
  MAX_UNKNOWN = 24, /* unknown tensors at a time, and with the rule's own variables */
  MAX_WITH_OWN = 64,
  LEAST_UNKNOWN = 4,
  MAX_RANKS = 16,
  LEAST_TERMS = 4
};
enum { MAX_PAIRS = 400, FIRST_WORK = 1500000, PART_WORK = 250000, PARTS_WORK = 4000000 };
/* Where ranks share the work more pairs come up, and most of them differ in numbers, which takes
 * few steps. */
enum { MAX_CHUNKS = 3000, CHUNKS_WORK = 8000000, MAX_STEPS = 300000 };

/* ---- within a proof ---- */

static sx cut_elem(sc *c, const pt_tensor *t, const sx *idx) {
  return sx_leaf(c, (uint32_t)t->which, idx, t->rank);
}

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

static bool note_sizes_of(sc *c, sc_noted *n, const double *v) {
  for (size_t i = 0; i < c->terms.n_memo; i++) {
    const sc_memo *m = &c->terms.memo[i];
    if (m->t != n->t && !rule_term_eq(m->t, n->t)) continue;
    const pt_tensor *t = m->v->several ? NULL : m->v->t[0];
    if (!t || t->lead) return false;
    n->rank = t->rank;
    n->numel = 1;
    for (uint32_t d = 0; d < t->rank; d++) n->numel *= n->dim[d] = sc_number(c, t->dim[d], v);
    return true;
  }
  return false;
}

void sc_note_sizes(sc *c) {
  if (!c->look->n_noted) return;
  double *v = calloc(c->store.n_syms + 1, sizeof *v);
  const bool found = v && sc_model(c, v);
  for (size_t i = 0; i < c->look->n_noted && found; i++) {
    sc_noted *n = &c->look->noted[i];
    if (!n->known) n->known = note_sizes_of(c, n, v);
  }
  if (!v) c->fault.no_memory = true, sc_fail(c, "out of memory");
  free(v);
}

/* ---- in numbers ---- */

static double some_value(void *ctx, uint32_t var, const int64_t *idx) {
  const sc *c = ctx;
  uint64_t h = 0x9e3779b97f4a7c15ULL * (var + 1);
  for (int i = 0; i < RULE_MAX_RANK; i++)
    h = (h ^ (uint64_t)idx[i]) * 6364136223846793005ULL + 1442695040888963407ULL;
  h = (h ^ h >> 29) * 6364136223846793005ULL;
  return c->r->var[var].kind == 'f' ? (double)((h >> 33) % 4001) / 2000 - 1
                                    : (double)((h >> 33) % 2);
}

/* The element of t that is so far along each of its dimensions; whether it is more than another
 * tensor's. */
static double element(sc *c, const pt_tensor *t, const double *sizes, double along, bool *made) {
  sx idx[RULE_MAX_RANK];
  for (uint32_t i = 0; i < t->rank; i++)
    idx[i] = sx_int(c, (int64_t)(along * sc_number(c, t->dim[i], sizes)));
  const sx x = pt_at(c, t, idx);
  *made = c->fault.failed || sc_op(c, x) != X_LEAF;
  return sc_number_within(c, x, sizes, MAX_STEPS);
}

static void forget_elements(sc *c) {
  free(c->terms.elems);
  c->terms.elems = NULL;
  c->terms.n_elems = c->terms.cap_elems = 0;
}

bool sc_differ_in_numbers(sc *c, const pt_tensor *a, const pt_tensor *b) {
  static const double along[] = {0.4, 0.9};
  const size_t facts = c->here.n_facts, path = c->here.n_path, domain = c->here.n_domain,
               choices = c->here.n_choices;
  double *v = c->hooks.value_of ? NULL : calloc(c->store.n_syms + 1, sizeof *v);
  bool differ = false;
  if (!v || !sc_model(c, v)) return free(v), false;
  c->reading.plain = true;
  c->hooks.value_of = some_value;
  c->hooks.value_ctx = c;
  forget_elements(c);
  for (size_t i = 0; i < sizeof along / sizeof *along && !differ && !c->fault.failed; i++) {
    bool made, other;
    const double x = element(c, a, v, along[i], &made), y = element(c, b, v, along[i], &other);
    differ = c->look->chunk && !made;
    differ |= !c->fault.failed && isfinite(x) && isfinite(y) &&
              fabs(x - y) > 1e-6 * (fabs(x) + fabs(y)) + 1e-12;
  }
  forget_elements(c);
  c->reading.plain = false;
  c->hooks.value_of = NULL;
  c->hooks.value_ctx = NULL;
  if (!c->fault.no_memory) c->fault.failed = c->fault.undefined = false;
  c->here.n_facts = facts, c->here.n_path = path, c->here.n_domain = domain,
  c->here.n_choices = choices;
  free(v);
  return differ;
}

/* ---- what may be a part ---- */

typedef struct part {
  const rule_term *t;
  uint64_t vars;
  uint32_t ops; /* in it */
  bool cut;
  const sc_noted *size; /* NULL: not looked at yet */
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

/* The operators below t and t itself, each after its operands; `above` gets those that are direct
 * operands of it. */
static void collect(side *s, const rule_term *t, bool *above) {
  bool below[MAX_TERMS] = {false};
  part p = {.t = t};
  for (size_t i = 0; t->kind == RULE_OP && i < s->n; i++)
    if (s->part[i].t == t || rule_term_eq(s->part[i].t, t)) {
      above[i] = true;
      return;
    }
  for (uint32_t i = 0; i < t->n; i++) collect(s, t->child[i], t->kind == RULE_OP ? below : above);
  if (t->kind != RULE_OP || !(p.vars = variables(t, &p.ops))) return;
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
  sc_obligations *obligations;
  iso_error *err;
  iso_code code;
  sc_look look;
  side left, right;
  sc_cut cut[MAX_CUTS];
  rule with; /* the rule with a variable for each cut */
  size_t pairs;
  int64_t work;
  size_t n_ranks; /* over which collectives go; 0: there are none */
  sc_noted *noted;
  iso_arena arena;
} sweep;

/* Whether a is b under the cuts so far, and, where it is a chunk of a part, something is computed
 * in it. */
static bool equal_parts(sweep *w, const rule_term *a, const rule_term *b, bool chunk) {
  rule of_parts = w->with;
  sc_sight sight = {0};
  rule_verdict v = {0};
  sc_look look = w->look;
  of_parts.lhs = a;
  of_parts.rhs = b;
  look.part = true;
  look.of = w->n_ranks < 2 ? NULL : w->r;
  look.chunk = chunk;
  look.one_term = a == b;
  look.max_work = PART_WORK;
  const size_t had = w->obligations ? w->obligations->n : 0;
  w->code = sc_attempt(&(sc_asked){&of_parts, w->schemas, w->o}, &look,
                       look.one_term ? NULL : w->obligations, &sight, &v, w->err);
  w->work += sight.work;
  w->pairs++;
  const bool written =
      !w->obligations || !w->obligations->why[0]; /* its obligations, where they are wanted */
  const bool proved = !w->code && v.status == RULE_PROVED && !sight.masked && written;
  if (proved) w->look.used = sight.used;
  if (!proved && w->obligations) { /* of what is no part there is no obligation */
    for (size_t i = had; i < w->obligations->n; i++) free(w->obligations->text[i]);
    w->obligations->n = had;
    w->obligations->why[0] = 0;
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
  bool used[MAX_UNKNOWN] = {false};
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
  w->cut[w->look.n_cuts++] = (sc_cut){a->t, a->t, v, false};
  if (!rule_term_eq(a->t, b->t)) w->cut[w->look.n_cuts++] = (sc_cut){b->t, a->t, v, false};
  w->look.used.parts = true;
  drop_inner(w);
}

static bool exhausted(const sweep *w) {
  const size_t most = 1 + w->n_ranks > 2 ? 1 + w->n_ranks : 2;
  return w->code || w->pairs >= (w->n_ranks < 2 ? MAX_PAIRS : MAX_CHUNKS) ||
         w->work > (w->n_ranks < 2 ? PARTS_WORK : CHUNKS_WORK) ||
         w->look.n_cuts + most > MAX_CUTS || free_variable(w) == w->with.n_vars ||
         val_stopped(w->o);
}

/* Whether b may have `times` as few elements as a. */
static bool fits(const part *a, const part *b, size_t times) {
  return !a->size->known || !b->size->known || a->size->numel == (double)times * b->size->numel;
}

/* The counterpart of part a on the other side: the same term, else one that is proved to be equal,
 * those of the same operator first. */
static void find_other(sweep *w, part *a) {
  for (int round = 0; round < 3 && !a->cut; round++)
    for (size_t i = 0; i < w->right.n && !a->cut && !exhausted(w); i++) {
      part *b = &w->right.part[i];
      const bool same = rule_term_eq(a->t, b->t), alike = strcmp(a->t->u.s, b->t->u.s) == 0;
      if (b->cut || b->vars != a->vars || (w->n_ranks >= 2 && !fits(a, b, 1)) ||
          (a->t == w->r->lhs && b->t == w->r->rhs))
        continue;
      if (round == 0 ? !same : same || alike != (round == 1)) continue;
      if (equal_parts(w, a->t, same ? a->t : b->t, false)) cut_out(w, a, b);
    }
}

/* Whether part i has the elements of one that is cut out, one by one: there is nothing to cut. */
static bool follows(const side *s, size_t i) {
  const part *p = &s->part[i], *of = NULL;
  size_t at = 0, n = 0;
  for (size_t k = 0; k < i; k++)
    if (s->below[i][k]) of = &s->part[k], at = k, n++;
  if (n != 1 || of->ops + 1 != p->ops || !of->size->known || !fits(p, of, 1)) return false;
  return of->cut || follows(s, at);
}

/* Chunk `k` of a along dimension d, one for each rank; not `turn` 0: dimension turn - 1 and the
 * next one change places in it. NULL: out of memory. */
static const rule_term *chunk_of(sweep *w, const part *a, uint32_t d, uint32_t turn, size_t k) {
  iso_arena *m = &w->arena;
  const rule_term *all[3] = {a->t, rule_int(m, (int64_t)w->n_ranks), rule_int(m, d)};
  const rule_term *of[2] = {rule_op(m, "aten::chunk", all, 3), rule_int(m, (int64_t)k)};
  const rule_term *one = rule_op(m, "getitem", of, 2),
                  *turned[3] = {one, rule_int(m, (int64_t)turn - 1), rule_int(m, turn)};
  const rule_term *t = turn ? rule_op(m, "aten::transpose.int", turned, 3) : one;
  if (!t) w->code = iso_fail(w->err, ISO_NOMEM, "out of memory");
  return t;
}

/* The smallest term among `s` that is `chunk`, one of those of a. NULL: none. */
static part *find_chunk(sweep *w, const part *a, const rule_term *chunk, side *s) {
  for (size_t i = 0; i < s->n && chunk && !exhausted(w); i++) {
    part *b = &s->part[i];
    if (b->cut || (a->vars & ~b->vars) || !b->size->known || !fits(a, b, w->n_ranks) ||
        follows(s, i))
      continue;
    if (equal_parts(w, chunk, b->t, true)) return b;
  }
  return NULL;
}

/* Whether the chunks of a along dimension d are terms among `s`; if so, all are cut out. */
static bool cut_chunks(sweep *w, part *a, uint32_t d, uint32_t turn, side *s) {
  sc_cut cut[1 + MAX_RANKS];
  part *b[MAX_RANKS];
  const uint32_t v = free_variable(w);
  cut[0] = (sc_cut){a->t, a->t, v, false};
  for (size_t k = 0; k < w->n_ranks; k++) {
    const rule_term *chunk = chunk_of(w, a, d, turn, k);
    if (!(b[k] = find_chunk(w, a, chunk, s))) return false;
    cut[k + 1] = (sc_cut){b[k]->t, chunk, v, true};
  }
  for (size_t k = 0; k < w->n_ranks; k++) b[k]->cut = true;
  a->cut = true;
  memcpy(w->cut + w->look.n_cuts, cut, (1 + w->n_ranks) * sizeof *cut);
  w->look.n_cuts += 1 + w->n_ranks;
  w->look.used.parts = true;
  drop_inner(w);
  return true;
}

/* Terms of the other side that are chunks of a, one for each rank. */
static void find_chunks(sweep *w, side *of, size_t at, side *s) {
  part *a = &of->part[at];
  if (w->n_ranks < 2 || !a->size->known || a->cut || follows(of, at)) return;
  const sc_noted *z = a->size;
  for (uint32_t turn = 0; turn < z->rank && !a->cut; turn++) {
    if (turn && (z->dim[turn - 1] <= 1 || z->dim[turn] <= 1))
      continue; /* the same in one order as in the other */
    for (uint32_t d = 0; d < z->rank && !a->cut && !exhausted(w); d++) {
      const double each = z->dim[d] / (double)w->n_ranks;
      if (each >= 1 && each == (double)(int64_t)each) cut_chunks(w, a, d, turn, s);
    }
  }
}

/* Over how many ranks the term's collectives go, at most. */
static size_t ranks_in(const rule_term *t) {
  pt_definition d;
  size_t n =
      t->kind == RULE_OP && pt_define_dist(t->u.s, &d) && t->n && t->child[0]->kind == RULE_LIST
          ? t->child[0]->n
          : 0;
  for (uint32_t i = 0; i < t->n; i++) {
    const size_t below = ranks_in(t->child[i]);
    if (below > n) n = below;
  }
  return n;
}

/* Where the sizes of both sides' terms are to be noted. */
static bool ask_sizes(sweep *w) {
  const size_t n = w->left.n + w->right.n;
  sc_noted *s = iso_arena_alloc(&w->arena, n * sizeof *s);
  if (!s) return w->code = iso_fail(w->err, ISO_NOMEM, "out of memory"), false;
  for (size_t i = 0; i < n; i++) {
    part *p = i < w->left.n ? &w->left.part[i] : &w->right.part[i - w->left.n];
    s[i] = (sc_noted){.t = p->t};
    p->size = &s[i];
  }
  w->noted = s;
  return true;
}

static bool begin(sweep *w) {
  bool above[MAX_TERMS];
  collect(&w->left, w->r->lhs, above);
  collect(&w->right, w->r->rhs, above);
  const size_t left = ranks_in(w->r->lhs), right = ranks_in(w->r->rhs);
  w->n_ranks = left > right ? left : right;
  if (w->n_ranks > MAX_RANKS) w->n_ranks = 0;
  if (w->left.full || w->right.full || w->r->n_vars + LEAST_UNKNOWN > MAX_WITH_OWN) return false;
  if (w->n_ranks < 2 && (w->left.n < LEAST_TERMS || w->right.n < LEAST_TERMS)) return false;
  const uint32_t room = MAX_WITH_OWN - w->r->n_vars,
                 unknown = room < MAX_UNKNOWN ? room : MAX_UNKNOWN;
  rule_variable *var = iso_arena_alloc(&w->arena, (w->r->n_vars + unknown) * sizeof *var);
  if (!var) return w->code = iso_fail(w->err, ISO_NOMEM, "out of memory"), false;
  if (w->r->n_vars) memcpy(var, w->r->var, w->r->n_vars * sizeof *var);
  for (uint32_t i = 0; i < unknown; i++) {
    const char *name =
        iso_arena_printf(&w->arena, "part %u", (unsigned)i); /* no name that a rule can give */
    if (!name) return w->code = iso_fail(w->err, ISO_NOMEM, "out of memory"), false;
    var[w->r->n_vars + i] = (rule_variable){.name = name, .kind = 'f'};
  }
  w->with = *w->r;
  w->with.var = var;
  w->with.n_vars = w->r->n_vars + unknown;
  w->look.cut = w->cut;
  w->look.n_own = w->r->n_vars;
  return ask_sizes(w);
}

/* Whether both sides are defined somewhere, where each variable has one value in all places. The
 * parts cut out do not show it. */
static bool has_values(sweep *w) {
  for (int k = 1; k <= 2 && !w->code; k++) {
    sc_look look = w->look;
    sc_sight sight = {0};
    rule_verdict v = {0};
    look.filled = k;
    look.max_work = PART_WORK;
    look.noted = w->noted;
    look.n_noted = w->n_ranks < 2 ? 0 : w->left.n + w->right.n;
    w->code = sc_attempt(&(sc_asked){w->r, w->schemas, w->o}, &look, NULL, &sight, &v, w->err);
    if (!w->code && v.status == RULE_PROVED) return true;
  }
  return false;
}

/* A rule, and how it is looked at. */
typedef struct question {
  const rule *r;
  rule_schemas *schemas;
  const val_options *o;
  sc_obligations *obligations;
  rule_verdict *out;
  iso_error *err;
  sc_look look;
  sc_sight sight;
  int64_t work; /* of all attempts */
} question;

static iso_code as_it_stands(question *q) {
  sc_forget_obligations(q->obligations);
  const iso_code c = sc_attempt(&(sc_asked){q->r, q->schemas, q->o}, &q->look, q->obligations,
                                &q->sight, q->out, q->err);
  q->work += q->sight.work;
  return c;
}

/* The small parts first. */
static void search(sweep *w) {
  for (size_t i = 0; i < w->left.n && !exhausted(w); i++) {
    find_other(w, &w->left.part[i]);
    find_chunks(w, &w->left, i, &w->right);
  }
  for (size_t i = 0; i < w->right.n && !exhausted(w); i++) find_chunks(w, &w->right, i, &w->left);
}

static iso_code in_parts(question *q) {
  sweep *w = calloc(1, sizeof *w);
  if (!w) return iso_fail(q->err, ISO_NOMEM, "out of memory");
  *w = (sweep){.r = q->r,
               .schemas = q->schemas,
               .o = q->o,
               .obligations = q->obligations,
               .err = q->err,
               .look = q->look};
  sc_forget_obligations(q->obligations);
  if (begin(w) && has_values(w)) search(w);
  if (!w->code && w->look.n_cuts) {
    sc_sight sight = {0};
    rule_verdict v = {0};
    w->code = sc_attempt(&(sc_asked){&w->with, q->schemas, q->o}, &w->look, q->obligations, &sight,
                         &v, q->err);
    if (!w->code && v.status == RULE_PROVED) *q->out = v;
    w->work += sight.work;
  }
  const iso_code c = w->code;
  q->work += w->work;
  iso_arena_fini(&w->arena);
  free(w);
  return c;
}

/* The obligations of a proof, which z3 did not answer as they stood, for its parts. Else why there
 * are none stays. */
static iso_code written_in_parts(question *q) {
  char why[sizeof q->obligations->why];
  rule_verdict v = {0}, *out = q->out;
  memcpy(why, q->obligations->why, sizeof why);
  q->out = &v;
  const iso_code c = in_parts(q);
  q->out = out;
  if (c || (v.status == RULE_PROVED && !q->obligations->why[0] && q->obligations->n)) return c;
  sc_forget_obligations(q->obligations);
  memcpy(q->obligations->why, why, sizeof why);
  return ISO_OK;
}

static bool goes_on(const question *q, iso_code c) {
  return !c && q->out->status != RULE_PROVED && !val_stopped(q->o);
}

/* Little work as it stands; then in parts; then, where it was the work that ended it, all of it as
 * it stands. */
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

iso_code sc_prove(const sc_asked *asked, bool read_literals, sc_obligations *obligations,
                  rule_verdict *out, sc_sight *sight, iso_error *err) {
  const rule *r = asked->r;
  const int64_t budget = sc_budget(asked->o);
  question q = {.r = r,
                .schemas = asked->schemas,
                .o = asked->o,
                .obligations = obligations,
                .out = out,
                .err = err,
                .look.read_literals = read_literals};
  *out = (rule_verdict){.status = RULE_UNKNOWN};
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].n_dims > RULE_MAX_RANK)
      return snprintf(out->reason, sizeof out->reason, "a variable of too many dimensions"), ISO_OK;
  iso_code c;
  if (obligations && obligations->unchecked) { /* also what is not proved is wanted, as it stands */
    q.look.max_work = budget;
    c = as_it_stands(&q);
  } else {
    c = answer(&q, budget);
    if (!c && obligations && out->status == RULE_PROVED && obligations->why[0])
      c = written_in_parts(&q);
  }
  if (sight) *sight = q.sight, sight->work = q.work;
  return c;
}
