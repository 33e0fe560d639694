/* Sizes where a rule's integers begin to count. A window of 64 shows nothing in a row of 16, and a
 * slice up to 1000 is the whole of every tensor that chance draws. */
#include <math.h>

#include "validate/sample/instance_int.h"
#include "validate/sample/sample_int.h"

/* Below LEAST sizes come up by chance. */
#define WHOLE (INT64_C(1) << 62)
enum { LEAST = 8, MOST = 1 << 16, BASE = 16, OTHERS = 3, MAX_LITERALS = 8, MAX_ELEMENTS = 1 << 24 };
/* Where operators are many, all results together have at most MAX_ALL. */
enum { MAX_ALL = 1 << 22 };

static void add_literal(int64_t v, int64_t *lit, size_t *n) {
  if (v < 2 || v > MOST || *n == MAX_LITERALS) return;
  for (size_t i = 0; i < *n; i++)
    if (lit[i] == v) return;
  lit[(*n)++] = v;
}

static void literals_of(const rule_term *t, int64_t *lit, size_t *n) {
  if (t->kind == RULE_INT && t->u.i >= -MOST) add_literal(t->u.i < 0 ? -t->u.i : t->u.i, lit, n);
  if (t->kind == RULE_FLOAT && fabs(t->u.f) <= MOST)
    add_literal((int64_t)ceil(fabs(t->u.f)), lit, n);
  for (uint32_t i = 0; i < t->n; i++) literals_of(t->child[i], lit, n);
}

static void add_size(int64_t v, int64_t *size, size_t *n, size_t cap) {
  if (v < LEAST || v > MOST + 1) return;
  for (size_t i = 0; i < *n; i++)
    if (size[i] == v) return;
  if (*n < cap) size[(*n)++] = v;
}

/* Each literal, and one and two more: at the edge itself rounding may explain all. Sums and
 * products of two, which blocks of blocks end at. */
static size_t sizes_of(const val_problem *p, int64_t *size, size_t cap) {
  int64_t lit[MAX_LITERALS];
  size_t n_lit = 0, n = 0;
  literals_of(p->r->lhs, lit, &n_lit);
  literals_of(p->r->rhs, lit, &n_lit);
  for (size_t i = 0; i < n_lit; i++)
    for (int64_t d = 2; d >= 0; d--) add_size(lit[i] + d, size, &n, cap);
  for (size_t i = 0; i < n_lit; i++)
    for (size_t j = i; j < n_lit; j++) {
      add_size(lit[i] * lit[j] + 1, size, &n, cap);
      add_size(lit[i] + lit[j] + 1, size, &n, cap);
    }
  return n;
}

/* What the results on the way to both sides have: `largest` is 0 where they cannot be had. */
static iso_code results_of(val_engine *e, const rule *r, iso_rng *rng, val_probe *p,
                           iso_error *err) {
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  iso_error local;
  *p = (val_probe){.largest = 1};
  iso_code c = val_sample(e, r, NULL, rng, VAL_PLAIN, bind, &local);
  for (int side = 0; side < 2 && !c; side++) {
    rule_tensor *x = NULL;
    c = val_eval_probe(e, side ? r->rhs : r->lhs, bind, p, &x, &local);
    rule_tensor_unref(x);
  }
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  if (c) p->largest = 0;
  return c == ISO_NOMEM ? iso_fail(err, c, "out of memory") : ISO_OK;
}

/* The least size from `size` on that no condition forbids as far as it speaks of this name alone.
 * Returns: 0 where there is none in reach. */
static int64_t allowed_from(val_problem *p, uint32_t name, int64_t size, int64_t room) {
  for (uint32_t i = 0; i < p->n_names; i++) p->name[i].set = false;
  p->name[name].set = true;
  const int64_t end = 4 * size < room ? 4 * size : room;
  for (; size <= end; size++) {
    bool holds = true;
    p->name[name].i = size;
    for (uint32_t i = 0; i < p->n_where && holds; i++)
      holds = val_condition_at(p, p->where[i]) != VAL_FALSE;
    if (holds) return size;
  }
  return 0;
}

/* How large the name may be: results grow by no more than the power of it that some BASE elements
 * show. */
static iso_code room_for(val_engine *e, val_problem *p, uint32_t name, iso_rng *rng, int64_t *room,
                         iso_error *err) {
  iso_arena a = {0};
  val_found at;
  val_probe has = {.largest = 0};
  const int64_t base = allowed_from(p, name, BASE, MOST);
  p->pinned = name + 1;
  p->pin = base;
  *room = 0;
  if (base == 0) return ISO_OK;
  iso_code c = val_find_instance(e, p, rng, &a, &at, err);
  if (!c && at.found && p->name[name].i == base) c = results_of(e, &at.r, rng, &has, err);
  iso_arena_fini(&a);
  if (c || has.largest == 0) return c;
  const bool many = has.n_run > VAL_MANY;
  const double all = (double)(many ? has.all : has.largest), most = many ? MAX_ALL : MAX_ELEMENTS;
  const double power = fmax(1, log((double)has.largest) / log((double)base));
  *room = (int64_t)((double)base * pow(fmax(1, most / all), 1 / power));
  return ISO_OK;
}

static bool holds_literal(const rule_term *t, int64_t v) {
  if (t->kind == RULE_INT && t->u.i == v) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (holds_literal(t->child[i], v)) return true;
  return false;
}

/* An end of WHOLE or more is that of every tensor. */
static int64_t far_literal(const rule_term *t, const rule_term *other) {
  const int64_t v = t->kind == RULE_INT ? t->u.i : 0;
  if ((v > MOST || v < -MOST) && v > -WHOLE && v < WHOLE && !holds_literal(other, v)) return v;
  int64_t far = 0;
  for (uint32_t i = 0; i < t->n && !far; i++) far = far_literal(t->child[i], other);
  return far;
}

int64_t val_beyond_sizes(const val_problem *p) {
  bool sizes = false;
  for (uint32_t i = 0; i < p->n_names; i++) sizes |= p->name[i].kind == 's';
  for (uint32_t i = 0; i < p->r->n_vars; i++)
    sizes |= p->r->var[i].any_shape || p->r->var[i].leading;
  if (!sizes) return 0;
  const int64_t left = far_literal(p->r->lhs, p->r->rhs);
  return left ? left : far_literal(p->r->rhs, p->r->lhs);
}

static void add_edge(uint32_t name, int64_t size, val_size_edge *out, size_t cap, size_t *n) {
  for (size_t i = 0; i < *n; i++)
    if (out[i].name == name && out[i].size == size) return;
  if (size > 0 && *n < cap) out[(*n)++] = (val_size_edge){name, size};
}

iso_code val_size_edges(val_engine *e, val_problem *p, iso_rng *rng, val_size_edge *out, size_t cap,
                        size_t *n, iso_error *err) {
  enum { SIZES = 24, NAMES = 4 };
  int64_t size[SIZES];
  const size_t n_sizes = sizes_of(p, size, SIZES);
  iso_code c = ISO_OK;
  *n = 0;
  p->roomy = false;
  p->max_size = OTHERS;
  for (uint32_t i = 0, seen = 0; i < p->n_names && seen < NAMES && n_sizes && !c; i++) {
    int64_t room = 0;
    if (p->name[i].kind != 's') continue;
    seen++;
    c = room_for(e, p, i, rng, &room, err);
    for (size_t k = 0; k < n_sizes && !c; k++)
      add_edge(i, allowed_from(p, i, size[k], room), out, cap, n);
  }
  p->pinned = 0;
  return c;
}
