/* The table of operators, and looking one up by its name. */
#include "rules/operators.h"
#include "rules/rules.h"

#include <math.h>
#include <string.h>

/* The words of rules/operators.def. A word that names a special case includes the general one. */
#define EXACT .exact = true
#define WIDENS .widens = true
#define MOVES .moves = true, EXACT
#define REARRANGES .rearranges = true, MOVES
#define BROADCASTS .broadcasts = true, REARRANGES
#define IDENTITY .identity = true, MOVES
#define PART .part = true, MOVES
#define JOINS .joins = true, MOVES
#define SKIPS_EMPTY .skips_empty = true
#define ACCUMULATES .accumulates = true, MOVES
#define UNCHANGED .identity = true, EXACT
#define FILLS .fills = true, MOVES
#define CASTS .cast = true, EXACT
#define ELEMENTWISE .elementwise = true
#define UNSPECIFIED .unspecified = true
#define COLLECTIVE .collective = true
#define TABLE(k) .table = (k)
#define ENDS(how, k) .ends = RULE_ENDS_##how, .index = (k)
#define LENGTHS(k) .lengths = (k) + 1
#define ARITHMETIC(which) \
  .arithmetic = RULE_ARITHMETIC_##which, .elementwise = true, ARITHMETIC_##which
#define ARITHMETIC_ADD ALGEBRAIC
#define ARITHMETIC_SUB ALGEBRAIC
#define ARITHMETIC_RSUB ALGEBRAIC
#define ARITHMETIC_MUL ALGEBRAIC
#define ARITHMETIC_DIV ALGEBRAIC
#define ARITHMETIC_SQRT ALGEBRAIC
#define ARITHMETIC_SQUARE ALGEBRAIC
#define ARITHMETIC_RECIPROCAL ALGEBRAIC
#define ARITHMETIC_RSQRT TRANSCENDENTAL
#define ARITHMETIC_NEG EXACT
#define ARITHMETIC_ABS EXACT
#define EXACT_AT(x) .exact_at_##x = true
#define GROWS(how) .growth = RULE_GROWS_##how
#define ABSORBS .absorbs = true
#define CANCELS .cancels = true
#define DRAWS .draws = true
#define DROPS(by) DRAWS, .drops = (by)
#define WRITES .writes = true
#define WRITES_STATISTICS(from, training_at) .statistics = (from), .training = (training_at)
#define NONNEGATIVE .nonnegative = true
#define KEEPS_SIGN .keeps_sign = true
#define SAME_SIGN .same_sign = true
#define DEFINED(where) .defined = RULE_DEFINED_##where
#define WEIGHS .weighs = true
#define FILLS_WITH(k) .fill = (k) + 1, FILLS
#define PADS_WITH(k) .fill = (k) + 1
#define PLACES(k) PLACES_##k
#define PLACES_0 .places = true
#define PLACES_1 .places_too = true
#define AXIS(k) .axis = (k), .mask.dim = (k)
#define ARG(k) (UINT32_C(1) << (k))
#define UNIT(args) .unit = (args)
#define MASKS_PASS(args) .mask.role = RULE_MASK_PASSES, .mask.masks = (args)
#define MASKS_END(how, k) .mask.role = RULE_MASK_##how, .mask.masks = ARG(k)
#define MASKS_TIMES(k) .mask.one = (k)
#define BESIDE_MASKS(args) .mask.numbers = (args)
#define CHOSEN_BY(k) .mask.chooses = ARG(k)
#define SCORES_OF(a, b) .mask.factors = ARG(a) | ARG(b)
#define DIMS(which) .dims = RULE_DIMS_##which
#define PLACED(what) .placed = RULE_PLACED_##what
#define SIZES .sizes = true
#define IN_PLACE(what) .in_place = RULE_IN_PLACE_##what
#define BOUND_BELOW .bound = RULE_BOUND_BELOW
#define BOUND_ABOVE .bound = RULE_BOUND_ABOVE
#define BOUND_GIVEN .bound = RULE_BOUND_GIVEN
#define BREAKS(a, b) .breaks.form = RULE_BREAKS_AT_NUMBERS, .breaks.low = (a), .breaks.high = (b)
#define BREAKS_AT(k) .breaks.form = RULE_BREAKS_AT_ARGUMENT, .breaks.argument = (k)
#define BREAKS_AROUND(k) .breaks.form = RULE_BREAKS_AROUND, .breaks.argument = (k)
#define BREAKS_WITHIN(k) .breaks.form = RULE_BREAKS_WITHIN, .breaks.argument = (k)
#define BREAKS_AT_RATIO(k, by) \
  .breaks.form = RULE_BREAKS_AT_RATIO, .breaks.argument = (k), .breaks.over = (by)
#define BREAKS_OF(k) .breaks.operand = (k)
#define JUMPS .breaks.jumps = true
#define SHARES(what) .shares = RULE_SHARES_##what
#define UNDONE_BY(what) .undo = RULE_UNDONE_BY_##what
#define ALGEBRAIC .algebraic = true
#define TRANSCENDENTAL .transcendental = true
#define SUMS .sums = true, ABSORBS
#define UNORDERED .unordered = true
#define SERIES .series = true
#define NO_OVERFLOW .no_overflow = true
#define PRODUCT .product = true
#define POWER .power = true
#define REDUCES .reduces = true
#define CONTRACTS(which) .contracts = RULE_CONTRACTS_##which
#define NORM .norm = true
#define NARROW .narrow = true
#define POLE .pole = true
#define SIGNED_POLE(k) .signed_pole = (k) + 1, POLE
#define POSITIVE .positive = true
#define UNDERFLOWS .underflows = true
#define READS_ZERO_SIGN .reads_zero_sign = true
#define MAKES_COMPLEX .makes_complex = true
#define DROPS_ZERO_SIGN .drops_zero_sign = true
#define SEES_UNDEFINED .sees_undefined = true
#define MAKES_UNDEFINED .makes_undefined = true
#define OBSERVES .observes = true
#define KEEPS_UNDEFINED .keeps_undefined = true
#define TIES .ties = true
#define DENSE .dense = true
#define STRIDED .strided = true
#define READS_MEMORY .reads_memory = true
#define RELATES .relates = true
#define SIBLINGS(...) .sibling = {__VA_ARGS__}

static const rule_operator table[] = {
#define OPERATOR(text, kind, ...) {.name = text, .choice = RULE_CHOICE_##kind, __VA_ARGS__},
#include "rules/operators.def"
#undef OPERATOR
};

enum { N = sizeof table / sizeof *table };

static const rule_operator unlisted;

const rule_operator *rule_operators(size_t *n) { return *n = N, table; }

/* As strncmp: names are short, and this is asked for each operator of each term. */
static int order_of(const char *line, const char *name, size_t n) {
  size_t i = 0;
  while (i < n && line[i] == name[i]) i++;
  return i == n ? 0 : (unsigned char)line[i] - (unsigned char)name[i];
}

/* The line of a name whose first `n` bytes are before its overload: the overload's own, which comes
 * right behind the operator's, or that. NULL if there is none. */
static const rule_operator *find(const char *name, size_t n) {
  const rule_operator *found = NULL;
  size_t low = 0, high = N;
  while (low < high) {
    const size_t middle = low + (high - low) / 2;
    if (order_of(table[middle].name, name, n) < 0) low = middle + 1;
    else high = middle;
  }
  for (; low < N && order_of(table[low].name, name, n) == 0; low++) {
    const char *rest = table[low].name + n;
    if (*rest == 0) found = &table[low];
    else if (*rest != '.') break;
    else if (strcmp(rest, name + n) == 0) return &table[low];
  }
  return found;
}

static bool begins(const char *s, size_t n, const char *with) {
  const size_t m = strlen(with);
  return n > m && strncmp(s, with, m) == 0;
}

/* Operators of torch.special, and those that copy where others give views, are named after the
 * operator that they are. */
static const rule_operator *of_base(const char *name, size_t n) {
  static const char special[] = "special_", copy[] = "_copy";
  const rule_operator *o = find(name, n);
  if (o) return o;
  if (begins(name, n, special)) {
    name += sizeof special - 1, n -= sizeof special - 1;
    if ((o = find(name, n))) return o;
  }
  const size_t m = sizeof copy - 1;
  return n > m && strncmp(name + n - m, copy, m) == 0 ? find(name, n - m) : NULL;
}

bool rule_adds_dimension(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->rearranges && o->shares == RULE_SHARES_IN_ORDER && o->dims == RULE_DIMS_RESULT;
}

static const char aten[] = "aten::", dist[] = "dist::";

bool rule_keeps_places(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->elementwise || o->identity || o->cast || o->broadcasts;
}

bool rule_is_aten(const char *op) { return strncmp(op, aten, sizeof aten - 1) == 0; }
bool rule_is_collective(const char *op) { return strncmp(op, dist, sizeof dist - 1) == 0; }
bool rule_is_overload(const char *op, const char *base) {
  const size_t n = strlen(base);
  return strncmp(op, base, n) == 0 && (op[n] == 0 || op[n] == '.');
}
bool rule_leaves_ties(const rule_term *call) {
  if (!rule_operator_of(call->u.s)->ties) return false;
  const bool stable = strstr(call->u.s, ".stable") != NULL && call->n > 1;
  return !stable || call->child[1]->kind != RULE_BOOLEAN || call->child[1]->u.i == 0;
}
bool rule_is_getitem(const char *op) { return strcmp(op, "getitem") == 0; }

const rule_operator *rule_operator_of(const char *op) {
  const bool plain = rule_is_aten(op);
  const char *name = plain ? op + sizeof aten - 1 : op;
  size_t n = 0;
  bool spaced = false;
  for (; name[n] && name[n] != '.'; n++) spaced |= name[n] == ':' && name[n + 1] == ':';
  if (plain == (spaced || rule_is_getitem(name))) return &unlisted;
  const rule_operator *o = plain ? of_base(name, n) : find(name, n);
  return o ? o : &unlisted;
}

/* ---- operators that tell NaN and infinity from numbers ---- */

/* Over the reals they do nothing, so that no proof sees them. */
/* A comparison of something with itself, or with an infinity. */
static bool compares_nothing(const rule_term *call) {
  if (call->n < 2 || rule_operator_of(call->u.s)->choice != RULE_CHOICE_COMPARE) return false;
  const rule_term *a = call->child[0], *b = call->child[1];
  return (b->kind == RULE_FLOAT && !isfinite(b->u.f)) ||
         ((a->kind == RULE_VAR || a->kind == RULE_OP) && rule_term_eq(a, b));
}

bool rule_sees_undefined(const rule_term *call) {
  return call->kind == RULE_OP &&
         (rule_operator_of(call->u.s)->sees_undefined || compares_nothing(call));
}
