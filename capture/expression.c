/* Sizes as expressions over symbols: "2*T + 1", and conditions over them: "T <= 16 or T % 4 == 0".
 *
 *   condition  and ("or" and)*         sum      term (("+" | "-") term)*
 *   and        not ("and" not)*        term     unary (("*" | "//" | "%") unary)*
 *   not        "not" not | compare     unary    "-" unary | primary
 *   compare    sum (RELATION sum)?     primary  NUMBER | NAME | "(" inner ")" |
 *                                               ("min" | "max") "(" sum ("," sum)+ ")"
 *
 * A condition is 1 or 0, and a parenthesised part of it may be a condition, too. Both sides of
 * `and` and `or` are evaluated. // and % round downwards, as Python's do. An expression is read and
 * evaluated in one walk, and becomes a term over its symbols where one is asked for: captures have
 * thousands of them, each of a few characters. */
#include <ctype.h>
#include <inttypes.h>
#include <string.h>

#include "capture/capture_int.h"
#include "egraph/base/vec.h"

enum { MAX_DEPTH = 64, MAX_NUMBERS = 4096 };

typedef struct parser {
  const char *at;
  const cap_scope *scope;
  bool condition;
  int depth;
  const char *wrong; /* what, static; NULL: nothing yet */
  const char *name;  /* an unknown symbol, and its length */
  size_t n_name;
  bool no_memory;
  iso_arena *terms; /* NULL: no term is asked for */
} parser;

/* A number, and what it is written as. */
typedef struct size {
  int64_t x;
  const rule_term *as; /* NULL where no term is asked for */
} size;

static int64_t fail(parser *p, const char *wrong) {
  if (p->wrong == NULL) p->wrong = wrong;
  return 0;
}

static size nothing(parser *p, const char *wrong) { return (size){.x = fail(p, wrong)}; }

/* `op` of terms; y: NULL where there is one operand. */
static const rule_term *written(parser *p, const char *op, const rule_term *x, const rule_term *y) {
  const rule_term *of[2] = {x, y};
  if (p->terms == NULL || p->wrong != NULL) return NULL;
  const rule_term *t = rule_expr(p->terms, op, of, y != NULL ? 2 : 1);
  p->no_memory |= t == NULL;
  return t;
}

static void blank(parser *p) {
  while (*p->at == ' ') p->at++;
}

/* Take `word`. A word of letters ends where letters end. */
static bool take(parser *p, const char *word) {
  blank(p);
  const size_t n = strlen(word);
  if (p->wrong != NULL || strncmp(p->at, word, n) != 0) return false;
  if (isalpha((unsigned char)*word) && (isalnum((unsigned char)p->at[n]) || p->at[n] == '_'))
    return false;
  p->at += n;
  return true;
}

static void note_number(parser *p, int64_t x) {
  cap_numbers *all = p->scope->numbers;
  if (all == NULL || all->n >= MAX_NUMBERS) return;
  for (size_t i = 0; i < all->n; i++)
    if (all->at[i] == x) return;
  if (!iso_grow(all->at, all->cap, all->n + 1)) p->no_memory = true;
  else all->at[all->n++] = x;
}

static size number(parser *p) {
  int64_t x = 0;
  for (; isdigit((unsigned char)*p->at); p->at++)
    if (__builtin_mul_overflow(x, 10, &x) || __builtin_add_overflow(x, *p->at - '0', &x))
      return nothing(p, "a number is too large");
  note_number(p, x);
  const rule_term *t = p->terms != NULL ? rule_int(p->terms, x) : NULL;
  p->no_memory |= p->terms != NULL && t == NULL;
  return (size){x, t};
}

size_t cap_symbol_length(const char *s) {
  static const char *const reserved[] = {"and", "or", "not", "min", "max"};
  size_t n = 0;
  if (!isalpha((unsigned char)*s) && *s != '_') return 0;
  while (isalnum((unsigned char)s[n]) || s[n] == '_') n++;
  for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
    if (strlen(reserved[k]) == n && strncmp(s, reserved[k], n) == 0) return 0;
  return n;
}

static size symbol(parser *p) {
  const size_t n = cap_symbol_length(p->at);
  if (n == 0) return nothing(p, *p->at ? "a size is expected there" : "it ends too early");
  for (size_t i = 0; i < p->scope->n; i++) {
    const cap_symbol *s = &p->scope->symbol[i];
    if (strncmp(s->name, p->at, n) != 0 || s->name[n]) continue;
    p->at += n;
    const rule_term *t = p->terms != NULL ? rule_name(p->terms, s->name) : NULL;
    p->no_memory |= p->terms != NULL && t == NULL;
    return (size){p->scope->value != NULL ? p->scope->value[i] : s->now, t};
  }
  p->name = p->at;
  p->n_name = n;
  return nothing(p, "there is no such symbol");
}

static size sum(parser *p);
static int64_t condition(parser *p);

static size extreme(parser *p, bool largest) {
  if (!take(p, "(")) return nothing(p, "min and max stand before parentheses");
  size x = sum(p);
  if (!take(p, ",")) return nothing(p, "min and max are of two sizes at least");
  do {
    const size y = sum(p);
    if (largest ? y.x > x.x : y.x < x.x) x.x = y.x;
    x.as = written(p, largest ? "max" : "min", x.as, y.as);
  } while (take(p, ","));
  return take(p, ")") ? x : nothing(p, "a parenthesis is not closed");
}

static size primary(parser *p) {
  if (take(p, "min")) return extreme(p, false);
  if (take(p, "max")) return extreme(p, true);
  if (take(p, "(")) {
    const size x = p->condition ? (size){.x = condition(p)} : sum(p);
    return take(p, ")") ? x : nothing(p, "a parenthesis is not closed");
  }
  blank(p);
  if (p->wrong != NULL) return (size){0};
  return isdigit((unsigned char)*p->at) ? number(p) : symbol(p);
}

static size unary(parser *p) {
  size x;
  if (++p->depth > MAX_DEPTH) return nothing(p, "it is nested too deeply");
  if (!take(p, "-")) x = primary(p);
  else {
    x = unary(p);
    if (__builtin_sub_overflow(0, x.x, &x.x)) x = nothing(p, "it is too large");
    else x.as = written(p, "-", x.as, NULL);
  }
  p->depth--;
  return x;
}

/* x // y and x % y. */
static int64_t divided(parser *p, int64_t x, int64_t y, bool rest) {
  if (p->wrong != NULL) return 0;
  if (y == 0) return fail(p, "it divides by 0");
  if (y == -1) /* the one quotient that may not be a number */
    return rest ? 0 : __builtin_sub_overflow(0, x, &x) ? fail(p, "it is too large") : x;
  const int64_t r = x % y, down = r != 0 && (r < 0) != (y < 0);
  return rest ? r + (down ? y : 0) : x / y - down;
}

static size term(parser *p) {
  size x = unary(p);
  for (;;) {
    const char *op = take(p, "//") ? "//" : take(p, "%") ? "%" : take(p, "*") ? "*" : NULL;
    if (op == NULL) return x;
    const size y = unary(p);
    if (*op != '*') x.x = divided(p, x.x, y.x, *op == '%');
    else if (__builtin_mul_overflow(x.x, y.x, &x.x)) return nothing(p, "it is too large");
    x.as = written(p, op, x.as, y.as);
  }
}

static size sum(parser *p) {
  size x = term(p);
  for (;;) {
    const char *op = take(p, "+") ? "+" : take(p, "-") ? "-" : NULL;
    if (op == NULL) return x;
    const size y = term(p);
    if (*op == '+' ? __builtin_add_overflow(x.x, y.x, &x.x)
                   : __builtin_sub_overflow(x.x, y.x, &x.x))
      return nothing(p, "it is too large");
    x.as = written(p, op, x.as, y.as);
  }
}

static int64_t compare(parser *p) {
  const int64_t x = sum(p).x;
  if (take(p, "==")) return x == sum(p).x;
  if (take(p, "!=")) return x != sum(p).x;
  if (take(p, "<=")) return x <= sum(p).x;
  if (take(p, ">=")) return x >= sum(p).x;
  if (take(p, "<")) return x < sum(p).x;
  if (take(p, ">")) return x > sum(p).x;
  return x;
}

static int64_t negated(parser *p) {
  if (++p->depth > MAX_DEPTH) return fail(p, "it is nested too deeply");
  const int64_t x = take(p, "not") ? !negated(p) : compare(p);
  p->depth--;
  return x;
}

static int64_t both(parser *p) {
  int64_t x = negated(p);
  while (take(p, "and")) {
    const int64_t y = negated(p);
    x = x && y;
  }
  return x;
}

static int64_t condition(parser *p) {
  int64_t x = both(p);
  while (take(p, "or")) {
    const int64_t y = both(p);
    x = x || y;
  }
  return x;
}

static iso_code read(const char *text, bool as_condition, const cap_scope *scope, size *out,
                     iso_arena *terms, iso_error *err) {
  parser p = {.at = text, .scope = scope, .condition = as_condition, .terms = terms};
  *out = as_condition ? (size){.x = condition(&p)} : sum(&p);
  blank(&p);
  if (p.no_memory) return cap_no_memory(err);
  if (p.wrong == NULL && *p.at != '\0') p.wrong = "something is left over at its end";
  if (p.wrong == NULL) return ISO_OK;
  if (p.name != NULL)
    return iso_fail(err, ISO_FORMAT, "size \"%.80s\": there is no symbol \"%.*s\"", text,
                    (int)(p.n_name < 40 ? p.n_name : 40), p.name);
  return iso_fail(err, ISO_FORMAT, "%s \"%.80s\": %s (character %zu)",
                  as_condition ? "condition" : "size", text, p.wrong, (size_t)(p.at - text));
}

iso_code cap_evaluate(const char *text, bool as_condition, const cap_scope *scope, int64_t *out,
                      iso_error *err) {
  size x;
  const iso_code c = read(text, as_condition, scope, &x, NULL, err);
  *out = x.x;
  return c;
}

iso_code cap_size_term(const char *text, const cap_scope *scope, iso_arena *a, int64_t *now,
                       const rule_term **out, iso_error *err) {
  size x;
  const iso_code c = read(text, false, scope, &x, a, err);
  *now = x.x;
  *out = x.as;
  return c;
}
