/* Calls with one or two things changed: a number, a size, a dimension more or less, another kind,
 * another variable. Many of them are refused by the operator, and then the definition must have no
 * value either. */
#ifndef TESTS_VALIDATE_PROVE_ODD_H
#define TESTS_VALIDATE_PROVE_ODD_H

#include "tests/validate/prove_diff.h"

typedef struct odd_call {
  char vars[500], text[2000];
} odd_call;

typedef struct piece {
  const char *at;
  size_t n;
} piece;

/* Whole numbers and names of numbers that stand for themselves in `text`, not in strings. */
static size_t numbers_in(const char *text, piece *out, size_t cap) {
  size_t n = 0;
  bool quoted = false;
  for (const char *p = text; *p; p++) {
    if (*p == '"') quoted = !quoted;
    if (quoted || p == text || !strchr(" (", p[-1])) continue;
    size_t k = *p == '$' ? 2 : *p == '-' ? 1 : 0;
    if (*p != '$') k += strspn(p + k, "0123456789");
    if (k > (*p == '-') && strchr(" )", p[k]) && n < cap) out[n++] = (piece){p, k};
  }
  return n;
}

/* Uses of variables in a call's text: names without a colon, a dot or a digit in front. */
static size_t names_in(const char *text, piece *out, size_t cap) {
  size_t n = 0;
  for (const char *p = text; *p; p++)
    if (p > text && p[-1] == ' ' && *p >= 'a' && *p <= 'z' && strchr(" )", p[1]) && p[1] && n < cap)
      out[n++] = (piece){p, 1};
  return n;
}

static bool replace(char *text, size_t cap, piece p, const char *by) {
  const size_t at = (size_t)(p.at - text), n = strlen(text), m = strlen(by);
  if (n - p.n + m >= cap) return false;
  memmove(text + at + m, text + at + p.n, n - at - p.n + 1);
  memcpy(text + at, by, m);
  return true;
}

static const char *of_sizes(iso_rng *rng) {
  static const char *const sizes[] = {"1", "2", "3", "4", "5", "$A", "$B", "$P", "$Q"};
  return sizes[iso_rng_below(rng, 9)];
}

static bool change_number(odd_call *k, iso_rng *rng) {
  static const char *const numbers[] = {"-5", "-4", "-3", "-2", "-1", "0",  "1",  "2",
                                        "3",  "4",  "5",  "7",  "$i", "$j", "$P", "$A"};
  piece p[64];
  const size_t n = numbers_in(k->text, p, 64);
  return n && replace(k->text, sizeof k->text, p[iso_rng_below(rng, n)],
                      numbers[iso_rng_below(rng, 16)]);
}

/* A variable's size, or a dimension more or less. */
static bool change_size(odd_call *k, iso_rng *rng, bool rank) {
  piece p[64];
  char more[16];
  const size_t n = numbers_in(k->vars, p, 64);
  if (!n) return false;
  const piece at = p[iso_rng_below(rng, n)];
  if (!rank) return replace(k->vars, sizeof k->vars, at, of_sizes(rng));
  if (iso_rng_below(rng, 2)) return replace(k->vars, sizeof k->vars, at, "");
  snprintf(more, sizeof more, "%s %.*s", of_sizes(rng), (int)at.n, at.at);
  return replace(k->vars, sizeof k->vars, at, more);
}

static bool change_kind(odd_call *k, iso_rng *rng) {
  static const char *const kinds[] = {" f ", " i ", " b "};
  piece p[8];
  size_t n = 0;
  for (const char *v = strstr(k->vars, "(var "); v && n < 8; v = strstr(v + 1, "(var ")) {
    const char *name = v + 5, *end = strchr(name, ' ');
    if (*name != 'd') p[n++] = (piece){end, 3}; /* whole numbers would tie */
  }
  return n &&
         replace(k->vars, sizeof k->vars, p[iso_rng_below(rng, n)], kinds[iso_rng_below(rng, 3)]);
}

static bool change_name(odd_call *k, iso_rng *rng) {
  piece p[32];
  char by[2] = "";
  const size_t n = names_in(k->text, p, 32);
  if (n < 2) return false;
  by[0] = *p[iso_rng_below(rng, n)].at;
  return replace(k->text, sizeof k->text, p[iso_rng_below(rng, n)], by);
}

static bool change(odd_call *k, iso_rng *rng) {
  switch (iso_rng_below(rng, 6)) {
  case 0:
  case 1: return change_number(k, rng);
  case 2: return change_size(k, rng, false);
  case 3: return change_size(k, rng, true);
  case 4: return change_kind(k, rng);
  default: return change_name(k, rng);
  }
}

/* Operators that trust their caller that the arguments fit together, and read beyond them or divide
 * by 0 where they do not, or keep one of several that are put in one place, or refuse to broadcast
 * where other operators do. */
static bool trusting(const char *text) {
  static const char *const names[] = {
      "flash_attention_for_cpu", "::native_batch_norm", "::_native_batch_norm",
      "::_fused_rms_norm",       "::native_group_norm", "::take_along_dim",
      "::scatter.src",           "::index_copy",        "index_put",
      "::linalg_vecdot",         "::bilinear",          "::slice_backward",
      "::select_backward"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strstr(text, names[i])) return true;
  return false;
}

/* One or two changes. false: there is nothing of the kind to change. */
static bool make_odd(const call *from, iso_rng *rng, odd_call *k) {
  if (trusting(from->text)) return false;
  snprintf(k->vars, sizeof k->vars, "%s", from->vars);
  snprintf(k->text, sizeof k->text, "%s", from->text);
  return change(k, rng) && (iso_rng_below(rng, 2) || change(k, rng));
}

/* Whether the operator refuses values that a definition takes for granted: that indices lie within
 * their table, and divisors are not 0. */
static bool refuses_values(const sample *s) {
  return strstr(s->refusal, "index out of range") || strstr(s->refusal, "out of bounds for") ||
         strstr(s->refusal, "out of DATA bounds") || strstr(s->refusal, "Class values") ||
         strstr(s->refusal, "is out of bounds") || strstr(s->refusal, "out of range: tried") ||
         strstr(s->refusal, "ZeroDivision");
}

/* Operators that order their elements: numbers changed may make some equal, and then the order is
 * open. */
static bool orders(const sample *s) {
  return strstr(s->text, "::topk") || strstr(s->text, "::sort") || strstr(s->text, "::argsort") ||
         strstr(s->text, "::argm");
}

/* The fault: a value where the operator has none or another one, or "not defined" where it has
 * one. */
static outcome odd_compare(sample *s, char *why) {
  char where[300] = "";
  sc_numbers got;
  int64_t n = 0;
  outcome o = NO_VALUE;
  const bool refused = !s->want && !refuses_values(s);
  if (s->want && (orders(s) || s->want->numel == 0)) return NO_VALUE;
  const bool defined = sc_values(rule_set_at(s->set, 0), schemas,
                                 &(sc_point){.value_of = value_of, .ctx = &s->v}, &got);
  if (defined && s->want)
    o = same_values(s->want, &got.shape, got.kind, got.value, has_masks(s), where);
  else if (defined && refused && rule_shape_numel(&got.shape, &n, NULL) == ISO_OK && n > 0)
    o = OTHER, snprintf(where, sizeof where, "defined where the operator refuses");
  else if (got.undefined && some_value(s->want) && !unchecked(s))
    o = OTHER, snprintf(where, sizeof where, "not defined: %s", got.reason);
  if (o == OTHER) snprintf(why, 300, "%s", where);
  free(got.value);
  if (o != OTHER && s->open) o = open_compare(s, why);
  return o;
}

#endif
