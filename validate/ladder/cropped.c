/* A rule about large tensors, looked at on small ones: a wrong one mostly shows there too, for a
 * thousandth of the work. */
#include <stdio.h>
#include <string.h>

#include "rules/memo.h"
#include "validate/ladder/ladder.h"

enum { MOST_SIZES = 16, MOST_NUMBERS = 16, LARGE = 64, LEAST = 3 };

/* Large sizes in ascending order, and what each becomes. Their order stays, and all of them are
 * above the numbers that the terms hold, so that slices and places still fit. */
typedef struct cropping {
  iso_arena *a;
  size_t n;
  int64_t size[MOST_SIZES], small[MOST_SIZES];
  int64_t most;                   /* the largest integer of the terms that is none of these sizes */
  double number[2][MOST_NUMBERS]; /* what each side calculates with, each once */
  size_t n_numbers[2];
  bool unfit, starved;
  rule_schemas *schemas;
  rule_memo seen, done;
} cropping;

static void note_size(cropping *k, int64_t size) {
  size_t at = 0;
  while (at < k->n && k->size[at] < size) at++;
  if (size < LARGE || k->n == MOST_SIZES || (at < k->n && k->size[at] == size)) return;
  memmove(&k->size[at + 1], &k->size[at], (k->n - at) * sizeof *k->size);
  k->size[at] = size;
  k->n++;
}

static int64_t cropped_number(const cropping *k, int64_t x) {
  for (size_t i = 0; i < k->n; i++)
    if (k->size[i] == x) return k->small[i];
  return x;
}

static void note_number(cropping *k, int side, double x) {
  for (size_t i = 0; i < k->n_numbers[side]; i++)
    if (k->number[side][i] == x) return;
  if (k->n_numbers[side] == MOST_NUMBERS) k->unfit = true;
  else k->number[side][k->n_numbers[side]++] = x;
}

/* Whether a number that stands for `arg` is calculated with: others are sizes and places. */
static bool calculates(const rule_arg *arg) {
  switch (arg ? arg->type : RULE_ARG_INT) {
  case RULE_ARG_TENSOR:
  case RULE_ARG_TENSORS:
  case RULE_ARG_FLOAT:
  case RULE_ARG_FLOATS:
  case RULE_ARG_SCALAR:
  case RULE_ARG_SCALARS: return true;
  default: return false;
  }
}

static void note_integer(cropping *k, int64_t given) {
  const int64_t end = (int64_t)1 << 40; /* beyond all sizes: as far as there is something */
  if (given > end || given < -end || cropped_number(k, given) != given) return;
  const int64_t x = given < 0 ? -given : given;
  if (x > k->most) k->most = x;
}

static void note_literals(cropping *k, int side, const rule_arg *arg, const rule_term *t) {
  const bool few = t->kind == RULE_INT && k->n && t->u.i < k->size[0] && -t->u.i < k->size[0];
  if (t->kind == RULE_INT && (few || !calculates(arg))) note_integer(k, t->u.i);
  else if (t->kind == RULE_INT) note_number(k, side, (double)t->u.i);
  else if (t->kind == RULE_FLOAT) note_number(k, side, t->u.f);
  if (k->starved || t->n == 0 || rule_memo_find(&k->seen, t, arg)) return;
  if (!rule_memo_put(&k->seen, t, arg, t)) k->starved = true;
  const rule_schema *of = t->kind == RULE_OP ? rule_schemas_find(k->schemas, t->u.s) : NULL;
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_arg *formal = of && i < of->n_args ? &of->arg[i] : NULL;
    note_literals(k, side, t->kind == RULE_LIST ? arg : formal, t->child[i]);
  }
}

static bool among(const cropping *k, int side, double x) {
  for (size_t i = 0; i < k->n_numbers[side]; i++)
    if (k->number[side][i] == x) return true;
  return false;
}

/* A number that one side alone calculates with may be made of sizes: a mean is a sum times 1/n. So
 * may one that is a size. Integers below all sizes count as places (arange(5)). */
static bool of_sizes(const cropping *k) {
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < k->n_numbers[side]; i++) {
      if (!among(k, !side, k->number[side][i])) return true;
      for (size_t d = 0; d < k->n; d++)
        if (k->number[side][i] == (double)k->size[d]) return true;
    }
  return false;
}

/* Returns: whether any size gets smaller. */
static bool choose(cropping *k) {
  int64_t next = k->most < LEAST ? LEAST : k->most + 1;
  bool any = false;
  for (size_t i = 0; i < k->n; i++) {
    k->small[i] = k->size[i] < next ? k->size[i] : next;
    any |= k->small[i] < k->size[i];
    next = k->small[i] + 1;
  }
  return any;
}

/* Returns: NULL where there is no memory. */
static const rule_term *cropped_term(cropping *k, const rule_term *t) {
  if (t->kind == RULE_INT) {
    const int64_t x = cropped_number(k, t->u.i);
    return x == t->u.i ? t : rule_int(k->a, x);
  }
  if (t->n == 0) return t;
  const rule_term *before = rule_memo_find(&k->done, t, NULL);
  if (before) return before;
  const rule_term **child = iso_arena_alloc(k->a, t->n * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = cropped_term(k, t->child[i]))) return NULL;
  rule_term *own = child ? iso_arena_alloc(k->a, sizeof *own) : NULL;
  if (!own) return NULL;
  *own = *t;
  own->child = child;
  return rule_memo_put(&k->done, t, NULL, own) ? own : NULL;
}

/* The elements of `t` at the first places along each dimension that got smaller. */
static iso_code cropped_tensor(const cropping *k, const rule_tensor *t, rule_tensor **out,
                               iso_error *err) {
  rule_shape shape = t->shape;
  for (uint32_t d = 0; d < shape.rank; d++) shape.dim[d] = cropped_number(k, shape.dim[d]);
  const iso_code c = rule_tensor_new(t->dtype, &shape, out, err);
  if (c) return c;
  const size_t bytes = rule_dtype_size(t->dtype);
  for (int64_t i = 0; i < (*out)->numel; i++) {
    int64_t from = 0, left = i, stride = 1;
    for (uint32_t d = shape.rank; d-- > 0;) {
      from += left % shape.dim[d] * stride;
      left /= shape.dim[d];
      stride *= t->shape.dim[d];
    }
    memcpy((char *)(*out)->data + (size_t)i * bytes, (const char *)t->data + (size_t)from * bytes,
           bytes);
  }
  return ISO_OK;
}

static iso_code crop_rule(cropping *k, const rule *r, rule *out, bool *yes, iso_error *err) {
  *yes = false;
  for (uint32_t v = 0; v < r->n_vars; v++)
    for (uint32_t d = 0; d < r->var[v].n_dims; d++) note_size(k, r->var[v].dim[d]->u.i);

  for (int side = 0; side < 2; side++) {
    rule_memo_free(&k->seen);
    note_literals(k, side, NULL, side ? r->rhs : r->lhs);
  }
  if (k->starved) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (k->unfit || of_sizes(k) || !choose(k)) return ISO_OK;
  *out = *r;
  rule_variable *var = iso_arena_alloc(k->a, (r->n_vars + 1) * sizeof *var);
  if (!var) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t v = 0; v < r->n_vars; v++) {
    var[v] = r->var[v];
    const rule_term **dim = iso_arena_alloc(k->a, (var[v].n_dims + 1) * sizeof *dim);
    for (uint32_t d = 0; dim && d < var[v].n_dims; d++)
      if (!(dim[d] = cropped_term(k, r->var[v].dim[d]))) dim = NULL;
    if (!dim) return iso_fail(err, ISO_NOMEM, "out of memory");
    var[v].dim = dim;
    if (var[v].low && !(var[v].low = cropped_term(k, var[v].low))) *yes = true;
    if (var[v].high && !(var[v].high = cropped_term(k, var[v].high))) *yes = true;
  }
  out->var = var;
  out->lhs = cropped_term(k, r->lhs);
  out->rhs = cropped_term(k, r->rhs);
  if (*yes || !out->lhs || !out->rhs) return iso_fail(err, ISO_NOMEM, "out of memory");
  *yes = true;
  return ISO_OK;
}

/* One sample of the cropped rule; what does not run says nothing. */
static iso_code sample_cropped(val_ladder *l, const cropping *k, const rule *r,
                               rule_tensor *const *example, iso_rng *rng, unsigned kind,
                               iso_error *err) {
  rule_tensor *bind[RULE_MAX_VARS] = {NULL};
  val_trial t = {0};
  const val_trying how = {rng, val_engine_options(l->e)->rel_tol, false, false};
  iso_code c = val_sample(l->e, r, l->example ? example : NULL, rng, kind, bind, err);
  if (!c) c = val_try(l->e, r, bind, &how, &t, err);
  l->agree_cropped += !c && t.outcome == VAL_AGREE;
  if (!c && t.outcome == VAL_DIFFER && t.what == 'v' && !t.soft) {
    l->refuted = true;
    snprintf(l->out->reason, sizeof l->out->reason,
             "element %lld differs by %.3g (relative %.3g) where a size of %lld is %lld",
             (long long)t.index, t.abs, t.rel, (long long)k->size[k->n - 1],
             (long long)k->small[k->n - 1]);
  }
  val_trial_fini(&t);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return c;
}

static bool numbered(const rule *r, int64_t *elements) {
  *elements = 0;
  for (uint32_t v = 0; v < r->n_vars; v++) {
    int64_t n = 1;
    for (uint32_t d = 0; d < r->var[v].n_dims; d++)
      if (r->var[v].dim[d]->kind != RULE_INT ||
          __builtin_mul_overflow(n, r->var[v].dim[d]->u.i, &n))
        return false;
    if (r->var[v].any_shape || r->var[v].leading || __builtin_add_overflow(*elements, n, elements))
      return false;
  }
  return true;
}

iso_code val_sample_cropped(val_ladder *l, iso_error *err) {
  enum { ELEMENTS = 1 << 14, SAMPLES = 2 };
  int64_t elements;
  if (l->strict || l->poles || l->problem.open || !numbered(l->r, &elements)) return ISO_OK;
  if (elements < ELEMENTS || l->r->n_vars > RULE_MAX_VARS) return ISO_OK;
  iso_arena a = {0};
  cropping k = {.a = &a, .schemas = val_engine_schemas(l->e)};
  rule small;
  rule_tensor *example[RULE_MAX_VARS] = {NULL};
  bool yes;
  iso_code c = crop_rule(&k, l->r, &small, &yes, err);
  for (uint32_t i = 0; !c && yes && l->example && i < l->r->n_vars; i++)
    if (l->example[i]) c = cropped_tensor(&k, l->example[i], &example[i], err);
  iso_rng rng = iso_rng_new(l->seed, (uint64_t)elements);
  for (unsigned s = 0; s < SAMPLES && !c && yes && !l->refuted; s++)
    c = sample_cropped(l, &k, &small, example, &rng, s, err);
  for (uint32_t i = 0; i < l->r->n_vars; i++) rule_tensor_unref(example[i]);
  rule_memo_free(&k.seen);
  rule_memo_free(&k.done);
  iso_arena_fini(&a);
  return c;
}
