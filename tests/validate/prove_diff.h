/* Calls of all operators that the prover defines, and samples of them: libtorch's results beside
 * the definition's. */
#ifndef TESTS_VALIDATE_PROVE_DIFF_H
#define TESTS_VALIDATE_PROVE_DIFF_H

#include "egraph/base/hash.h"
#include "tests/validate/engine_test.h"
#include "validate/prove/prove.h"

/* $A..$D are sizes of 0 to 4, $P..$S of 1 to 4, $i..$k integers of -3 to 4. Variables: "i" holds
 * indices 0 and 1, "n" other integers, "p" positive numbers, "d" numbers that all differ. */
typedef struct call {
  const char *vars, *text;
  bool less; /* with names for its numbers the definition does not go as far */
} call;

#define X "(var x f ($A $B))"
#define XY "(var x f ($A $B)) (var y f ($C $B))"
#define X3 "(var x f ($A $B $C))"
#define QKV "(var q f (2 4 $P $Q)) (var k f (2 2 $R $Q)) (var v f (2 2 $R $S))"

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const call calls[] = {
#include "tests/validate/prove_calls.inc"
/* And those that stand beside definitions. */
#include "definition_calls.inc"
};
static const call refusals[] = {
#include "tests/validate/prove_refused.inc"
};
#pragma GCC diagnostic pop

/* What is drawn for a call follows from the call alone, whatever others there are besides. */
static iso_rng rng_of(const call *k, uint64_t seed) {
  const uint64_t vars = iso_hash(k->vars, strlen(k->vars), 0);
  return iso_rng_new(seed, iso_hash(k->text, strlen(k->text), vars));
}

typedef struct values {
  rule_tensor *bind[8];
} values;

static double value_of(void *ctx, uint32_t var, const int64_t *idx) {
  const rule_tensor *t = ((const values *)ctx)->bind[var];
  int64_t at = 0;
  for (uint32_t k = 0; k < t->shape.rank; k++) {
    if (idx[k] < 0 || idx[k] >= t->shape.dim[k])
      return rule_dtype_is_float(t->dtype) ? 12345.678 : 1; /* must not matter */
    at = at * t->shape.dim[k] + idx[k];
  }
  return rule_tensor_get(t, at);
}

/* `names`: $A becomes A, $i becomes at_i. */
static void fill_in(const char *from, char *to, size_t cap, const int64_t *number, bool names) {
  size_t n = 0;
  for (; *from && n + 16 < cap; from++) {
    if (*from != '$') to[n++] = *from;
    else if (names)
      n += (size_t)snprintf(to + n, cap - n, "%s%c", from[1] >= 'i' ? "at_" : "", from[1]), from++;
    else n += (size_t)snprintf(to + n, cap - n, "%d", (int)number[(unsigned char)*++from]);
  }
  to[n] = 0;
}

static void draw_numbers(iso_rng *rng, int64_t *number) {
  static const int64_t sizes[] = {0, 1, 1, 2, 2, 3, 3, 4};
  for (int c = 'A'; c <= 'D'; c++) number[c] = sizes[iso_rng_below(rng, 8)];
  for (int c = 'P'; c <= 'S'; c++) number[c] = sizes[1 + iso_rng_below(rng, 7)];
  for (int c = 'i'; c <= 'k'; c++) number[c] = (int64_t)iso_rng_below(rng, 8) - 3;
  if (iso_rng_below(rng, 2)) number['C'] = number['A'];
  if (iso_rng_below(rng, 4) == 0) number['C'] = 1;
}

static rule_tensor *draw_value(iso_rng *rng, const rule_variable *v, double large) {
  const double edges[] = {0, 1, -1, 0.5, large, 3, -3, 6};
  rule_shape s = {.rank = v->n_dims};
  rule_tensor *t = NULL;
  iso_error err;
  for (uint32_t k = 0; k < v->n_dims; k++) s.dim[k] = v->dim[k]->u.i;
  ck_assert(rule_tensor_new(v->kind == 'f'   ? RULE_F64
                            : v->kind == 'b' ? RULE_BOOL
                            : v->narrow      ? v->narrow
                                             : RULE_I64,
                            &s, &t, &err) == ISO_OK);
  const bool edge = iso_rng_below(rng, 4) == 0;
  for (int64_t i = 0; i < t->numel; i++) {
    double x = iso_rng_normal(rng);
    if (edge) x = edges[iso_rng_below(rng, 8)];
    if (v->kind != 'f') x = (double)iso_rng_below(rng, 2);
    if (v->name[0] == 'n') x = (double)iso_rng_below(rng, 9) - 4;
    if (v->name[0] == 'd') x = iso_rng_normal(rng);
    if (v->name[0] == 'p') x = fabs(x) + 0.1371; /* no quotient of edges is whole */
    if (v->narrow) x = (double)iso_rng_below(rng, 21) - 10;
    if (v->narrow == RULE_U8) x = fabs(x);
    rule_tensor_set(t, i, x);
  }
  return t;
}

/* One sample of a call, with libtorch's answer. */
typedef struct sample {
  rule_set *set, *open; /* with its numbers; with names for them, NULL where one is 0 */
  values v;
  int64_t number[256];
  rule_tensor *want; /* NULL: it refuses */
  char refusal[160]; /* why */
  char text[5000];
  bool reaches; /* the definition has its value with names for sizes too: of sample_compare */
} sample;

typedef enum outcome { NO_VALUE, SAME, OTHER } outcome; /* NO_VALUE: on neither side */

static rule_set *as_rule(const call *k, const int64_t *number, bool names, char *text, size_t cap) {
  char vars[500], body[2000], attrs[200] = "";
  rule_set *set = NULL;
  iso_error err = {ISO_OK, ""};
  fill_in(k->vars, vars, sizeof vars, number, names);
  fill_in(k->text, body, sizeof body, number, names);
  for (const char *p = strchr(k->text, '$'); names && p;
       p = strchr(p + 1, '$')) { /* whole numbers */
    char of[8] = {'$', p[1], 0}, name[16], one[32];
    fill_in(of, name, sizeof name + 16, number, true);
    snprintf(one, sizeof one, "(attr %s int) ", name);
    if (!strstr(k->vars, of) && !strstr(attrs, one)) strcat(attrs, one);
  }
  snprintf(text, cap, "(rule r %s %s(lhs %s) (rhs %s))", vars, attrs, body, body);
  return rule_set_parse(text, SIZE_MAX, "test", &set, &err) == ISO_OK ? set : NULL;
}

/* `empty`: sizes may be 0, which rules do not have. Returns: false where the text is no rule. */
static bool sample_take(sample *s, const call *k, iso_rng *rng, bool empty) {
  iso_error err = {ISO_OK, ""};
  bool all = true;
  char text[5000];
  *s = (sample){0};
  draw_numbers(rng, s->number);
  for (int c = 'A'; c <= 'D' && !empty; c++) s->number[c] += s->number[c] == 0;
  s->set = as_rule(k, s->number, false, s->text, sizeof s->text);
  if (!s->set) return false;
  for (int c = 'A'; c <= 'S'; c++)
    all &= s->number[c] > 0 || !(strchr(k->vars, '$') && (c <= 'D' || c >= 'P'));
  if (all && (strchr(k->vars, '$') || strchr(k->text, '$')))
    s->open = as_rule(k, s->number, true, text, sizeof text);
  const rule *r = rule_set_at(s->set, 0);
  for (uint32_t i = 0; i < r->n_vars; i++)
    s->v.bind[i] = draw_value(rng, &r->var[i], strstr(k->text, "softplus") ? 20.5 : 2.5);
  if (val_eval(engine, r->lhs, s->v.bind, VAL_FLOAT64, &s->want, &err) != ISO_OK) {
    s->want = NULL;
    snprintf(s->refusal, sizeof s->refusal, "%.159s", err.msg);
  }
  if (getenv("DIFF_VERBOSE") && !s->want) fprintf(stderr, "%s: %s\n", err.msg, s->text);
  return true;
}

static void sample_free(sample *s) {
  const rule *r = rule_set_at(s->set, 0);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(s->v.bind[i]);
  rule_tensor_unref(s->want);
  rule_set_free(s->set);
  rule_set_free(s->open);
}

/* Whether minus infinity may be a value: a mask's, or the largest number of an empty window. */
static bool has_masks(const sample *s) {
  return strstr(s->text, "-inf") || strstr(s->text, "::max_pool");
}

/* A definition's result beside libtorch's. */
static outcome same_values(const rule_tensor *want, const rule_shape *shape, char kind,
                           const double *got, bool masks, char *why) {
  char a[100], b[100];
  const char is = rule_dtype_is_float(want->dtype) ? 'f' : want->dtype == RULE_BOOL ? 'b' : 'i';
  if (!rule_shape_eq(shape, &want->shape)) {
    snprintf(why, 300, "%s and %s", rule_shape_print(shape, a, sizeof a),
             rule_shape_print(&want->shape, b, sizeof b));
    return OTHER;
  }
  if (is != kind) {
    snprintf(why, 300, "kind %c and %c", kind, is);
    return OTHER;
  }
  for (int64_t i = 0; i < want->numel; i++) {
    const double x = got[i], y = rule_tensor_get(want, i);
    /* A value that is not finite is none, but for a mask's minus infinity. */
    const bool hidden = masks && isinf(y) && y < 0;
    if (isfinite(y)         ? fabs(x - y) <= fmax(1e-9, want->coarse) * (1 + fabs(y))
        : masks && isnan(y) ? true
        : hidden            ? isinf(x) && x < 0
                            : isnan(x) || (isinf(x) && x > 0))
      continue;
    snprintf(why, 300, "element %d is %.17g instead of %.17g", (int)i, x, y);
    return OTHER;
  }
  return SAME;
}

/* A size of 0, which rules do not have. */
static bool is_empty(const sample *s) {
  bool any = s->want && s->want->numel == 0;
  for (uint32_t i = 0; i < rule_set_at(s->set, 0)->n_vars; i++) any |= s->v.bind[i]->numel == 0;
  return any;
}

static bool some_value(const rule_tensor *t) {
  for (int64_t i = 0; t && i < t->numel; i++)
    if (isfinite(rule_tensor_get(t, i))) return true;
  return false;
}

/* libtorch's fast attention does not ask whether there are as many values as keys. */
static bool unchecked(const sample *s) {
  return strstr(s->text, "::scaled_dot_product") != NULL ||
         strstr(s->text, "attention_math") != NULL;
}

/* The case of a proof for all sizes that this sample's sizes meet. NO_VALUE: the definition does
 * not go that far. */
static outcome open_compare(sample *s, char *why) {
  static const char *const names[] = {"A", "B", "C",    "D",    "P",   "Q",
                                      "R", "S", "at_i", "at_j", "at_k"};
  int64_t number[11];
  char where[300] = "";
  sc_numbers got;
  for (int i = 0; i < 11; i++)
    number[i] = s->number[(unsigned char)(i < 8 ? names[i][0] : names[i][3])];
  const sc_point at = {11, names, number, value_of, &s->v, false};
  const bool defined = sc_values(rule_set_at(s->open, 0), schemas, &at, &got);
  outcome o = NO_VALUE;
  if (defined && s->want)
    o = same_values(s->want, &got.shape, got.kind, got.value, has_masks(s), where);
  const bool sought =
      s->want && s->want->numel <= 64; /* larger numbers that sizes stand for are not looked for */
  if (got.undefined && sought && some_value(s->want) && !unchecked(s))
    o = OTHER, snprintf(where, sizeof where, "not defined: %s", got.reason);
  if (o == OTHER) snprintf(why, 300, "with names for its sizes: %.250s", where);
  free(got.value);
  return o;
}

/* The definition's answer beside libtorch's; `why` (300 bytes) says where they differ. */
__attribute__((unused)) static outcome sample_compare(sample *s, char *why) {
  sc_numbers got;
  outcome o = NO_VALUE;
  int64_t elements = 0;
  const bool defined = sc_values(rule_set_at(s->set, 0), schemas,
                                 &(sc_point){.value_of = value_of, .ctx = &s->v}, &got);
  if (s->want && defined) {
    o = same_values(s->want, &got.shape, got.kind, got.value, has_masks(s), why);
  } else {
    const bool none = defined && !s->open &&
                      rule_shape_numel(&got.shape, &elements, NULL) == ISO_OK &&
                      elements == 0; /* some operators refuse what is empty */
    const bool gap =
        s->want && ((s->want->numel == 0 && !s->open) ||
                    (is_empty(s) && strstr(got.reason, "may not be positive"))); /* no rule's */
    const bool open =
        strstr(got.reason, "some bits of an integer") ||
        strstr(got.reason, "one_hot is not modelled") ||
        strstr(got.reason, "more around than"); /* the definition goes not that far, and says so */
    if ((some_value(s->want) || defined) && !none && !gap && !open) {
      snprintf(why, 300, "%s: %s",
               defined ? "defined where the operator refuses" : "the operator has a value",
               got.reason);
      o = OTHER;
    }
  }
  free(got.value);
  const outcome open_too = o != OTHER && s->open ? open_compare(s, why) : NO_VALUE;
  s->reaches = open_too == SAME;
  return open_too == OTHER ? OTHER : o;
}

enum { SEEDS = 64, LEAST_GOOD = 3, N_CALLS = sizeof calls / sizeof *calls };

#endif
