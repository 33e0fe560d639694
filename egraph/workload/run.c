/* Start items of a workload added, and the cases of congruence closure. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "egraph/base/vec.h"
#include "egraph/workload.h"

/* ---- start items ---- */

typedef struct name {
  const char *text;
  size_t n;
  eg_class c;
} name;

typedef struct starter {
  eg_sat *s;
  name *let;
  size_t n_lets, cap_lets;
  eg_class *made; /* classes of children read so far, of all open lists */
  size_t n_made, cap_made;
  iso_error *err;
} starter;

static iso_code push(starter *x, eg_class c) {
  if (!iso_grow(x->made, x->cap_made, x->n_made + 1))
    return iso_fail(x->err, ISO_NOMEM, "out of memory for a term");
  x->made[x->n_made++] = c;
  return ISO_OK;
}

static iso_code add_op(starter *x, const eg_sexp *op, size_t first) {
  eg_op id;
  eg_class c;
  iso_code code = eg_sat_op(x->s, op->text, op->n, x->n_made - first, &id, x->err);
  if (!code) code = eg_sat_add(x->s, id, x->made + first, &c, x->err);
  x->n_made = first;
  return code ? code : push(x, c);
}

static iso_code add_atom(starter *x, const eg_sexp *e) {
  if (e->n && *e->text == '$') {
    for (size_t i = x->n_lets; i-- > 0;)
      if (x->let[i].n == e->n && memcmp(x->let[i].text, e->text, e->n) == 0)
        return push(x, x->let[i].c);
    return iso_fail(x->err, ISO_FORMAT, "%.*s has no meaning yet", (int)e->n, e->text);
  }
  if (e->n && *e->text == '?') return iso_fail(x->err, ISO_FORMAT, "a start term has no variables");
  return add_op(x, e, x->n_made);
}

/* Depth is bounded by the reader. */
static iso_code add_term(starter *x, const eg_sexp *e) {
  if (!e->is_list) return add_atom(x, e);
  if (!e->first || e->first->is_list)
    return iso_fail(x->err, ISO_FORMAT, "a term without an operator");
  const size_t first = x->n_made;
  for (const eg_sexp *k = e->first->next; k; k = k->next) {
    const iso_code code = add_term(x, k);
    if (code) return code;
  }
  return add_op(x, e->first, first);
}

static iso_code add_whole(starter *x, const eg_sexp *e, eg_class *out) {
  x->n_made = 0;
  const iso_code code = add_term(x, e);
  if (!code) *out = x->made[0];
  return code;
}

static iso_code add_item(starter *x, const eg_sexp *e, eg_class *out) {
  const eg_sexp *head = e->is_list ? e->first : NULL, *a = head ? head->next : NULL,
                *b = a ? a->next : NULL;
  eg_class d;
  if (eg_sexp_is(head, "term") && a && !b) return add_whole(x, a, out);
  if (!b || b->next) return iso_fail(x->err, ISO_FORMAT, "unknown start item");
  if (eg_sexp_is(head, "let") && !a->is_list && a->n && *a->text == '$') {
    const iso_code code = add_whole(x, b, out);
    if (code) return code;
    if (!iso_grow(x->let, x->cap_lets, x->n_lets + 1))
      return iso_fail(x->err, ISO_NOMEM, "out of memory for a name");
    x->let[x->n_lets++] = (name){a->text, a->n, *out};
    return ISO_OK;
  }
  if (!eg_sexp_is(head, "union")) return iso_fail(x->err, ISO_FORMAT, "unknown start item");
  iso_code code = add_whole(x, a, out);
  if (!code) code = add_whole(x, b, &d);
  return code ? code : eg_sat_merge(x->s, *out, d, (eg_why){EG_WHY_GIVEN, 0}, x->err);
}

size_t eg_workload_count_starts(const eg_workload *w) {
  size_t n = 0;
  for (const eg_sexp *e = w->start; e; e = e->next) n++;
  return n;
}

iso_code eg_workload_start(const eg_workload *w, eg_sat *s, eg_class *root, iso_error *err) {
  starter x = {.s = s, .err = err};
  iso_code code = ISO_OK;
  size_t i = 0;
  for (const eg_sexp *e = w->start; e && !code; e = e->next, i++) {
    eg_class c = {0};
    code = add_item(&x, e, &c);
    if (!code && root) root[i] = c;
  }
  free(x.let);
  free(x.made);
  return code ? code : eg_sat_rebuild(s, err);
}

/* ---- congruence closure of random equations ---- */

static uint64_t mix(uint64_t z) {
  z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
  return z ^ (z >> 31);
}
static uint64_t draw(uint64_t *state) { return mix(*state += UINT64_C(0x9E3779B97F4A7C15)); }

enum { F1, G1, F2, G2, H3, N_OPS, BLOCK = 1024 };
typedef struct closer {
  eg_sat *s;
  eg_op op[N_OPS];
  eg_class *term;
  size_t n_terms;
  eg_closure_cost cost;
  double wall_from, cpu_from;
  iso_error *err;
} closer;

static double now(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void start_clock(closer *x) {
  x->wall_from = now(CLOCK_MONOTONIC);
  x->cpu_from = now(CLOCK_PROCESS_CPUTIME_ID);
}
static void stop_clock(closer *x) {
  x->cost.cpu_seconds += now(CLOCK_PROCESS_CPUTIME_ID) - x->cpu_from;
  x->cost.seconds += now(CLOCK_MONOTONIC) - x->wall_from;
}

/* A term as it is drawn: children are indices of terms. */
typedef struct drawn {
  eg_op op;
  uint32_t n, kid[3];
} drawn;

static iso_code draw_leaf(closer *x, uint64_t label, drawn *out) {
  char text[24];
  size_t at = sizeof text;
  do text[--at] = (char)('0' + label % 10);
  while (label /= 10);
  out->n = 0;
  return eg_sat_op(x->s, text + at, sizeof text - at, 0, &out->op, x->err);
}

/* The i-th term; children are moved by `shift` in the mirrored half. */
static void draw_term(closer *x, uint64_t *state, uint64_t i, size_t shift, drawn *out) {
  static const unsigned char op_of[8] = {F1, F1, G1, F2, F2, G2, G2, H3},
                             arity[N_OPS] = {1, 1, 2, 2, 3};
  const unsigned op = op_of[draw(state) % 8];
  out->op = x->op[op];
  out->n = arity[op];
  for (unsigned k = 0; k < out->n; k++) {
    const uint64_t c = draw(state) % i;
    out->kid[k] = (uint32_t)(shift + draw(state) % (c + 1));
  }
}

static iso_code add_block(closer *x, const drawn *d, size_t n) {
  eg_addition a[BLOCK];
  for (size_t i = 0; i < n; i++) a[i] = (eg_addition){d[i].op, d[i].kid};
  start_clock(x);
  const iso_code code = eg_sat_add_all(x->s, a, n, x->term, x->n_terms, x->err);
  stop_clock(x);
  x->n_terms += n;
  return code;
}

/* Drawn in blocks, off the clock. */
static iso_code add_half(closer *x, uint64_t m, uint64_t seed, size_t shift) {
  const uint64_t leaves = m / 16 ? m / 16 : 1;
  uint64_t state = seed;
  drawn block[BLOCK];
  iso_code code = ISO_OK;
  for (uint64_t i = 0; i < m && !code;) {
    size_t n = 0;
    for (; n < BLOCK && i < m && !code; n++, i++) {
      if (i < leaves) code = draw_leaf(x, i + shift, &block[n]);
      else draw_term(x, &state, i, shift, &block[n]);
    }
    if (!code) code = add_block(x, block, n);
  }
  return code;
}

/* The state of the generator behind the terms. */
static uint64_t after_terms(uint64_t m, uint64_t seed) {
  static const unsigned char arity[8] = {1, 1, 1, 2, 2, 2, 2, 3};
  uint64_t state = seed;
  for (uint64_t i = m / 16 ? m / 16 : 1; i < m; i++)
    for (unsigned k = 2u * arity[draw(&state) % 8]; k > 0; k--) (void)draw(&state);
  return state;
}

static iso_code unite(closer *x, const eg_workload_case *c, size_t batches, uint64_t state) {
  const uint64_t m = c->terms, half = m / 2;
  const uint64_t n = c->mirror ? (half / 16 ? half / 16 : 1) : m / c->divisor;
  if (m < 2) return ISO_OK;
  const uint64_t part = batches ? (n + batches - 1) / batches : n;
  for (uint64_t i = 0; i < n;) {
    for (uint64_t end = n - i < part ? n : i + part; i < end;) {
      eg_equation e[BLOCK];
      size_t k = 0;
      for (; k < BLOCK && i < end; k++, i++) {
        const uint64_t a = c->mirror ? i : draw(&state) % m,
                       b = c->mirror ? half + i : draw(&state) % m;
        e[k] = (eg_equation){x->term[a], x->term[b]};
      }
      const iso_code code = eg_sat_merge_all(x->s, e, k, (eg_why){EG_WHY_GIVEN, 0}, x->err);
      if (code) return code;
    }
    const iso_code code = eg_sat_rebuild(x->s, x->err);
    if (code) return code;
  }
  return ISO_OK;
}

static iso_code checksum_of(const closer *x, uint64_t *out) {
  uint32_t *least = malloc((eg_sat_count_ids(x->s) + 1) * sizeof *least);
  if (!least) return iso_fail(x->err, ISO_NOMEM, "out of memory for a checksum");
  memset(least, 0xff, (eg_sat_count_ids(x->s) + 1) * sizeof *least);
  uint64_t h = 0;
  for (size_t i = 0; i < x->n_terms; i++) {
    uint32_t *rep = &least[eg_sat_find(x->s, x->term[i]).i];
    if (*rep == UINT32_MAX) *rep = (uint32_t)i;
    h = mix(h ^ *rep);
  }
  free(least);
  *out = h;
  return ISO_OK;
}

static iso_code rebuild(closer *x) {
  start_clock(x);
  const iso_code code = eg_sat_rebuild(x->s, x->err);
  stop_clock(x);
  return code;
}

iso_code eg_workload_close(const eg_workload_case *c, size_t batches, eg_sat *s, uint64_t *checksum,
                           eg_closure_cost *cost, iso_error *err) {
  static const struct {
    const char *name;
    size_t arity;
  } ops[N_OPS] = {{"f1", 1}, {"g1", 1}, {"f2", 2}, {"g2", 2}, {"h3", 3}};
  closer x = {.s = s, .err = err};
  iso_code code = ISO_OK;
  x.term = malloc((c->terms + 1) * sizeof *x.term);
  if (!x.term) return iso_fail(err, ISO_NOMEM, "out of memory for the terms");
  const uint64_t state = c->mirror ? 0 : after_terms(c->terms, c->seed);
  for (int i = 0; i < N_OPS && !code; i++)
    code = eg_sat_op(s, ops[i].name, 2, ops[i].arity, &x.op[i], err);
  const uint64_t half = c->mirror ? c->terms / 2 : c->terms;
  if (!code) code = add_half(&x, half, c->seed, 0);
  if (!code && c->mirror) code = add_half(&x, half, c->seed, half);
  if (!code) code = rebuild(&x);
  start_clock(&x);
  if (!code) code = unite(&x, c, batches, state);
  stop_clock(&x);
  *cost = x.cost;
  if (!code) code = checksum_of(&x, checksum);
  free(x.term);
  return code;
}
