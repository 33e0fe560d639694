/* Terms to arrays of element expressions, and the decision: pointer equality at three levels of expansion, then Z3. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "validate/encode_int.h"
#include "validate/oracle_int.h"
#include "validate/prove_int.h"

typedef struct pv_memo {
  const rule_term *t;
  pv_value *v;
} pv_memo;

/* ---- tensors ---- */

static void *take(pv_cx *c, size_t n) {
  void *p = c->failed ? NULL : iso_arena_alloc(&c->arena, n);
  if (!p && !c->failed) {
    c->no_memory = true;
    pv_fail(c, "out of memory");
  }
  return p;
}

pv_tensor *pv_tensor_new(pv_cx *c, char kind, const rule_shape *s) {
  int64_t n = 0;
  if (c->failed) return NULL;
  if (rule_shape_numel(s, &n, NULL) != ISO_OK || n > PV_MAX_ELEMENTS - c->n_elements) {
    pv_fail(c, "more than %d tensor elements", (int)PV_MAX_ELEMENTS);
    return NULL;
  }
  c->n_elements += n;
  pv_tensor *t = take(c, sizeof *t);
  if (!t) return NULL;
  *t = (pv_tensor){kind, *s, n, take(c, (size_t)n * sizeof(pv_id))};
  return t->e ? t : NULL;
}

pv_value *pv_value_list(pv_cx *c, pv_tensor **t, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!t[i]) return NULL;
  pv_value *v = take(c, sizeof *v);
  pv_tensor **copy = take(c, n * sizeof *copy);
  if (!v || !copy) return NULL;
  if (n) memcpy(copy, t, n * sizeof *copy);
  *v = (pv_value){n, copy, true};
  return v;
}

pv_value *pv_value_of(pv_cx *c, pv_tensor *t) {
  pv_value *v = t ? pv_value_list(c, &t, 1) : NULL;
  if (v) v->several = false;
  return v;
}

/* ---- terms ---- */

static pv_tensor *variable(pv_cx *c, int64_t index) {
  if (index < 0 || index >= (int64_t)c->r->n_vars) {
    pv_fail(c, "a variable that is not declared");
    return NULL;
  }
  const rule_variable *v = &c->r->var[index];
  if (!strchr("fib", v->kind)) pv_fail(c, "a variable of complex numbers");
  rule_shape s = {.rank = 0};
  for (uint32_t k = 0; k < v->n_dims; k++) s.dim[s.rank++] = v->dim[k]->u.i;
  pv_tensor *t = pv_tensor_new(c, v->kind, &s);
  for (int64_t i = 0; t && i < t->n; i++) t->e[i] = c->var_base[index] + (pv_id)i;
  return t;
}

static pv_value *getitem(pv_cx *c, const rule_term *t) {
  if (t->n != 2 || t->child[1]->kind != RULE_INT) {
    pv_fail(c, "a getitem without a number");
    return NULL;
  }
  const pv_value *v = pv_eval(c, t->child[0]);
  if (!v) return NULL;
  int64_t i = t->child[1]->u.i;
  if (i < 0 && v->several) i += (int64_t)v->n;
  if (!v->several || i < 0 || i >= (int64_t)v->n) {
    pv_fail(c, "getitem out of range");
    return NULL;
  }
  return pv_value_of(c, v->t[i]);
}

static void note_relative(pv_cx *c, const char *op) {
  if (!strncmp(op, "aten::", 6)) return;
  for (size_t i = 0; i < c->n_relative; i++)
    if (!strcmp(c->relative[i], op)) return;
  if (c->n_relative < PV_MAX_RELATIVE) c->relative[c->n_relative++] = op;
}

static const pv_definition *find_definition(const char *op) {
  const pv_definition *d = pv_define_elementwise(op);
  if (!d) d = pv_define_layout(op);
  if (!d) d = pv_define_nn(op);
  return d ? d : pv_define_dist(op);
}

static pv_value *call(pv_cx *c, const rule_term *t) {
  if (!strcmp(t->u.s, "getitem")) return getitem(c, t);
  const pv_definition *d = find_definition(t->u.s);
  const rule_schema *schema = d ? rule_schemas_find(c->schemas, t->u.s) : NULL;
  if (!d || !schema) {
    pv_fail(c, "%s has no definition here", t->u.s);
    return NULL;
  }
  if (t->n != schema->n_args) {
    pv_fail(c, "%s with %" PRIu32 " arguments instead of %zu", t->u.s, t->n, schema->n_args);
    return NULL;
  }
  pv_call_args a = {c, t, schema};
  pv_value *v = d->f(&a, d->which);
  if (!v && !c->failed) pv_fail(c, "%s is not modelled with these arguments", t->u.s);
  if (v && !c->failed) note_relative(c, t->u.s);
  return c->failed ? NULL : v;
}

static size_t memo_slot(const pv_cx *c, const rule_term *t) {
  size_t h = iso_hash(&t, sizeof t, 0) & (c->cap_memo - 1);
  while (c->memo[h].t && c->memo[h].t != t) h = (h + 1) & (c->cap_memo - 1);
  return h;
}

static bool remember(pv_cx *c, const rule_term *t, pv_value *v) {
  if (2 * (c->n_memo + 1) > c->cap_memo) {
    pv_memo *old = c->memo;
    size_t n = c->cap_memo;
    c->cap_memo = n ? 2 * n : 64;
    c->memo = calloc(c->cap_memo, sizeof *c->memo);
    if (!c->memo) {
      c->memo = old;
      c->cap_memo = n;
      c->no_memory = true;
      pv_fail(c, "out of memory");
      return false;
    }
    for (size_t i = 0; i < n; i++)
      if (old[i].t) c->memo[memo_slot(c, old[i].t)] = old[i];
    free(old);
  }
  size_t h = memo_slot(c, t);
  if (!c->memo[h].t) c->n_memo++;
  c->memo[h] = (pv_memo){t, v};
  return true;
}

const pv_value *pv_eval(pv_cx *c, const rule_term *t) {
  if (c->failed) return NULL;
  if (c->cap_memo) {
    size_t h = memo_slot(c, t);
    if (c->memo[h].t) return c->memo[h].v;
  }
  pv_value *v = NULL;
  if (t->kind == RULE_VAR) v = pv_value_of(c, variable(c, t->u.i));
  else if (t->kind == RULE_OP) v = call(c, t);
  else pv_fail(c, "a literal where a tensor belongs");
  if (!v || c->failed) return NULL;
  return remember(c, t, v) ? v : NULL;
}

pv_tensor *pv_eval_tensor(pv_cx *c, const rule_term *t) {
  const pv_value *v = pv_eval(c, t);
  if (!v) return NULL;
  if (v->several) {
    pv_fail(c, "several tensors where one belongs");
    return NULL;
  }
  return v->t[0];
}

/* ---- what a rule's variables look like ---- */

typedef enum shapes { CONCRETE, OPEN, UNSUPPORTED } shapes;

static bool has_name(const rule_term *t) {
  if (t->kind == RULE_NAME) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_name(t->child[i])) return true;
  return false;
}

static shapes shapes_of(const rule *r) {
  bool concrete = !has_name(r->lhs) && !has_name(r->rhs);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_variable *v = &r->var[i];
    if (v->any_shape || v->leading) concrete = false;
    if (v->n_dims > RULE_MAX_RANK) return UNSUPPORTED;
    for (uint32_t k = 0; k < v->n_dims; k++)
      if (v->dim[k]->kind != RULE_INT || v->dim[k]->u.i < 0) concrete = false;
  }
  return concrete ? CONCRETE : OPEN;
}

bool pv_lay_out_leaves(const rule *r, pv_id *base, pv_id *attr, pv_id *total) {
  int64_t next = 0;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_variable *v = &r->var[i];
    rule_shape s = {.rank = 0};
    int64_t n = 1;
    for (uint32_t k = 0; k < v->n_dims; k++) s.dim[s.rank++] = v->dim[k]->u.i;
    if (rule_shape_numel(&s, &n, NULL) != ISO_OK || n > (1 << 30) - next) return false;
    base[i] = (pv_id)next;
    next += n;
  }
  for (uint32_t i = 0; i < r->n_attrs; i++) attr[i] = (pv_id)next++;
  *total = (pv_id)next + 1;
  return true;
}

/* ---- the decision ---- */

static void unknown(rule_verdict *out, const char *fmt, ...) ISO_PRINTF(2, 3);
static void unknown(rule_verdict *out, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  *out = (rule_verdict){.status = RULE_UNKNOWN};
  vsnprintf(out->reason, sizeof out->reason, fmt, ap);
  va_end(ap);
}

static void proved(const pv_cx *c, rule_verdict *out, const char *how) {
  *out = (rule_verdict){.status = RULE_PROVED, .scope = RULE_THESE_SHAPES};
  const char *read = c->literal || c->big_mask ? ", literals read" : "";
  int n = snprintf(out->method, sizeof out->method, "%s%s%s%s", how, read, c->n_relative ? ", relative to " : "",
                   c->n_relative ? c->relative[0] : "");
  if (n >= (int)sizeof out->method || c->n_relative > 1)
    snprintf(out->method, sizeof out->method, "%s%s, relative to kernels", how, read);
  size_t at = 0;
  for (size_t i = 0; i < c->n_relative && at < sizeof out->reason; i++) {
    n = snprintf(out->reason + at, sizeof out->reason - at, "%s%s", i ? ", " : "relative to ", c->relative[i]);
    at += n > 0 ? (size_t)n : 0;
  }
}

/* Words of an expression that Z3 is given: what is larger takes it minutes and gigabytes. */
enum { MAX_TEXT = 1 << 16 };

/* The expression with its leaves numbered by first occurrence: two pairs with one text are one question. */
typedef struct text {
  uint32_t *w;
  size_t n, cap;
  bool failed;
} text;
static void put(text *t, uint32_t w) {
  if (t->failed || t->n > MAX_TEXT || !iso_grow(t->w, t->cap, t->n + 1)) t->failed = true;
  else t->w[t->n++] = w;
}

typedef struct numbering {
  uint32_t *of; /* by id: 1 + number, 0 where not met */
  pv_id *met;
  size_t n_met, cap_met;
  uint32_t n_leaf, n_node;
} numbering;

static void write_id(const pv_cx *c, numbering *m, text *out, pv_id id, int depth) {
  if (m->of[id] || depth > 5000) {
    if (!m->of[id]) out->failed = true;
    put(out, id < c->n_leaves ? 1 : 2);
    put(out, m->of[id]);
    return;
  }
  if (!iso_grow(m->met, m->cap_met, m->n_met + 1)) {
    out->failed = true;
    return;
  }
  m->met[m->n_met++] = id;
  if (id < c->n_leaves) {
    m->of[id] = ++m->n_leaf;
    put(out, 1);
    put(out, m->of[id]);
    return;
  }
  const pv_node *p = pv_at(c, id);
  const uint32_t *w = pv_words(c, p);
  put(out, 3);
  put(out, p->op);
  put(out, p->n);
  for (uint32_t i = 0; i < p->n && !out->failed; i++) {
    bool raw = p->op == PV_CONST || p->op == PV_BOOL || (p->op == PV_SUM && !(i & 1)) || (p->op == PV_PROD && (i & 1)) ||
               (p->op == PV_FN && i == 0) || (p->op == PV_POW && i == 1);
    if (raw) put(out, w[i]);
    else write_id(c, m, out, w[i], depth + 1);
  }
  m->of[id] = ++m->n_node;
}

enum { MAX_CLASSES = 32 };
typedef struct classes {
  text seen[MAX_CLASSES];
  size_t n;
  numbering names;
  uint64_t rlimit;
} classes;

static void free_classes(classes *k) {
  for (size_t i = 0; i < k->n; i++) free(k->seen[i].w);
  free(k->names.of);
  free(k->names.met);
}

/* Returns: false when this pair settles the rule as unknown (with `reason`). */
static bool settle_pair(pv_cx *c, classes *k, pv_id a, pv_id b, char *reason) {
  text t = {NULL, 0, 0, false};
  write_id(c, &k->names, &t, a, 0);
  write_id(c, &k->names, &t, b, 0);
  for (size_t i = 0; i < k->names.n_met; i++) k->names.of[k->names.met[i]] = 0;
  k->names.n_met = k->names.n_leaf = k->names.n_node = 0;
  bool seen = false;
  for (size_t i = 0; i < k->n && !t.failed && !seen; i++)
    seen = k->seen[i].n == t.n && !memcmp(k->seen[i].w, t.w, t.n * sizeof *t.w);
  if (seen || t.failed || k->n == MAX_CLASSES) {
    free(t.w);
    if (!seen) snprintf(reason, 200, t.failed ? "elements too large for z3" : "too many different elements for z3");
    return seen;
  }
  k->seen[k->n++] = t;
  pv_answer r = pv_solve(c, a, b, &k->rlimit, reason);
  if (r == PV_NOT_VALID) snprintf(reason, 200, "z3 found no proof (its model need not be a counterexample)");
  return r == PV_VALID;
}

static iso_code ask_z3(pv_cx *c, const pv_tensor *a, const pv_tensor *b, uint64_t rlimit, rule_verdict *out,
                       iso_error *err) {
  classes *k = calloc(1, sizeof *k);
  char reason[200] = "";
  bool ok = true;
  if (k) k->names.of = calloc((size_t)c->n_leaves + PV_MAX_NODES, sizeof *k->names.of);
  if (!k || !k->names.of) {
    free(k);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  k->rlimit = rlimit;
  for (int64_t i = 0; i < a->n && ok; i++)
    if (a->e[i] != b->e[i]) ok = settle_pair(c, k, a->e[i], b->e[i], reason);
  if (ok) proved(c, out, "z3");
  else unknown(out, "%s", reason);
  free_classes(k);
  free(k);
  return ISO_OK;
}

static bool all_equal(const pv_tensor *a, const pv_tensor *b) {
  return a->n == 0 || !memcmp(a->e, b->e, (size_t)a->n * sizeof *a->e);
}

/* Evaluate at one level. Returns: whether the verdict stands (else the next level may do better). */
static bool try_level(pv_cx *c, pv_tensor **a, pv_tensor **b, rule_verdict *out) {
  char p[64], q[64];
  *a = pv_eval_tensor(c, c->r->lhs);
  *b = *a ? pv_eval_tensor(c, c->r->rhs) : NULL;
  if (!*a || !*b || c->failed) {
    unknown(out, "%s", c->reason);
    return false;
  }
  if (!rule_shape_eq(&(*a)->s, &(*b)->s)) {
    unknown(out, "shapes differ: %s and %s", rule_shape_print(&(*a)->s, p, sizeof p),
            rule_shape_print(&(*b)->s, q, sizeof q));
    return true;
  }
  if ((*a)->kind != (*b)->kind) {
    unknown(out, "dtypes differ in kind: %c and %c", (*a)->kind, (*b)->kind);
    return true;
  }
  if (!all_equal(*a, *b)) {
    unknown(out, "the normal forms differ");
    return false;
  }
  proved(c, out, c->arithmetic ? "normal form" : "rearrangement");
  return true;
}

static iso_code prove_at(const rule *r, rule_schemas *s, const val_options *o, int level, pv_id *leaf,
                         bool *done, rule_verdict *out, iso_error *err) {
  pv_cx *c = calloc(1, sizeof *c);
  pv_id total = 0;
  iso_code code = ISO_OK;
  if (!c) return iso_fail(err, ISO_NOMEM, "out of memory");
  *done = true;
  if (!pv_lay_out_leaves(r, leaf, leaf + r->n_vars, &total)) {
    unknown(out, "variables with too many elements");
    free(c);
    return ISO_OK;
  }
  bool ok = pv_init(c, r, s, level, total);
  c->o = o;
  c->var_base = leaf;
  c->attr_leaf = leaf + r->n_vars;
  if (ok) {
    pv_tensor *a = NULL, *b = NULL;
    *done = try_level(c, &a, &b, out);
    bool left = c->expansion_left || level == 0;
    /* Below the last level Z3 is asked only where expanding further changes nothing. */
    if (!*done && !c->failed && (level == 2 || !left)) {
      *done = true;
      code = ask_z3(c, a, b, o->z3_rlimit, out, err);
    }
  }
  if (!ok || c->no_memory) code = iso_fail(err, ISO_NOMEM, "out of memory");
  pv_fini(c);
  free(c);
  return code;
}

/* At the rule's own sizes, element by element. */
static iso_code prove_elements(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out, iso_error *err) {
  pv_id *leaf = calloc((size_t)r->n_vars + r->n_attrs + 1, sizeof *leaf);
  iso_code code = ISO_OK;
  bool done = false;
  if (!leaf) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (int level = 0; level <= 2 && !done && code == ISO_OK; level++) code = prove_at(r, schemas, o, level, leaf, &done, out, err);
  free(leaf);
  return code;
}

/* For all sizes that the rule leaves open, first with literals as they stand, then as what they stand for. */
static iso_code prove_symbolic(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out, iso_error *err) {
  iso_code code = sc_prove(r, schemas, o, false, NULL, out, err);
  if (code != ISO_OK || out->status == RULE_PROVED) return code;
  rule_verdict read;
  code = sc_prove(r, schemas, o, true, NULL, &read, err);
  if (code == ISO_OK && read.status == RULE_PROVED) *out = read;
  return code;
}

iso_code val_prove(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out, iso_error *err) {
  unknown(out, "nothing was tried");
  const shapes kind = shapes_of(r);
  if (kind == UNSUPPORTED) {
    unknown(out, "a rank above %d", (int)RULE_MAX_RANK);
    return ISO_OK;
  }
  if (kind == OPEN || r->n_where || r->n_attrs) return prove_symbolic(r, schemas, o, out, err);
  rule_verdict elements;
  iso_code code = prove_elements(r, schemas, o, &elements, err);
  *out = elements;
  if (code != ISO_OK || elements.status == RULE_PROVED) return code;
  code = prove_symbolic(r, schemas, o, out, err);
  if (code == ISO_OK && out->status != RULE_PROVED) *out = elements;
  return code;
}

iso_code val_prove_as_written(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out, iso_error *err) {
  return sc_prove(r, schemas, o, false, NULL, out, err);
}
