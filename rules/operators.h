/* Facts that any module may ask of an operator: the table rules/operators.def, one line for each.
 *
 * An operator is looked up by its dispatcher's name with overload ("aten::max.dim"). A line names
 * one overload ("max.dim"), or all that have no line of their own ("max"); the namespace aten is
 * left out. An operator without a line is unlisted: no fact is known of it, and none may be
 * assumed.
 *
 * Facts that can be seen by running an operator are checked so (tests/rules/test_operators.c). To
 * add a fact: a member here, a word in operators.c, and the word in the lines of the table. */
#ifndef RULES_OPERATORS_H
#define RULES_OPERATORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How an operator chooses between values, or jumps. */
typedef enum rule_choice {
  RULE_CHOICE_UNLISTED, /* nobody has looked: nothing is known */
  RULE_CHOICE_SMOOTH,   /* none by its documentation; the prover does not define it */
  RULE_CHOICE_UNSEEN,   /* it chooses, and no samples are made for how: it is proved, or unknown */
  RULE_CHOICE_NONE,
  RULE_CHOICE_COMPARE,   /* of two numbers, to a truth value */
  RULE_CHOICE_LOGIC,     /* of truth values, or of bits */
  RULE_CHOICE_UNDEFINED, /* about NaN and infinities, of which samples have none */
  RULE_CHOICE_FLOOR,
  RULE_CHOICE_CEIL,
  RULE_CHOICE_TRUNC,
  RULE_CHOICE_FRAC,
  RULE_CHOICE_ROUND,
  RULE_CHOICE_SIGN,
  RULE_CHOICE_SIGNED,   /* by the sign bit, which tells 0 from -0 */
  RULE_CHOICE_QUOTIENT, /* rounded; RULE_CHOICE_DIVISION: where it has a rounding mode */
  RULE_CHOICE_DIVISION,
  RULE_CHOICE_REMAINDER,
  RULE_CHOICE_BUCKET,    /* among boundaries */
  RULE_CHOICE_CAST,      /* floats to integers or truth values */
  RULE_CHOICE_BOUND,     /* its first operand, or a bound */
  RULE_CHOICE_PIECES,    /* other functions below and above numbers that its arguments give */
  RULE_CHOICE_STEP,      /* of integers alone */
  RULE_CHOICE_ORDER,     /* places, by comparing values */
  RULE_CHOICE_EXTREME,   /* a value, by comparing values: continuous */
  RULE_CHOICE_WEIGHT,    /* all of its operand, weighed by exponentials: the largest count most */
  RULE_CHOICE_DISTANCE,  /* a norm: it has a kink at 0 */
  RULE_CHOICE_DIRECTION, /* of a vector: it jumps where that is 0 */
  RULE_CHOICE_COUNT,     /* of elements that are not 0 */
  RULE_CHOICE_CUT,       /* an angle: it jumps where the second operand is below 0 */
  RULE_CHOICE_END,       /* steep where its domain ends */
  RULE_CHOICE_SELECT,    /* by a truth value that it is given */
  RULE_CHOICE_INDEX      /* by an integer that it is given */
} rule_choice;

/* One step of arithmetic on elements. */
typedef enum rule_arithmetic {
  RULE_ARITHMETIC_NONE,
  RULE_ARITHMETIC_ADD,
  RULE_ARITHMETIC_SUB,
  RULE_ARITHMETIC_RSUB,
  RULE_ARITHMETIC_MUL,
  RULE_ARITHMETIC_DIV,
  RULE_ARITHMETIC_SQRT,
  RULE_ARITHMETIC_SQUARE,
  RULE_ARITHMETIC_RECIPROCAL,
  RULE_ARITHMETIC_RSQRT,
  RULE_ARITHMETIC_NEG,
  RULE_ARITHMETIC_ABS
} rule_arithmetic;

/* How large the integers of a result may be, beside those of its operands. rule_arithmetic says
 * more. */
typedef enum rule_growth {
  RULE_GROWS_NONE,
  RULE_GROWS_PRODUCT,     /* as a product of the operands */
  RULE_GROWS_TERMS,       /* as a sum of as many terms as an operand has */
  RULE_GROWS_CONTRACTION, /* as a sum of so many products */
  RULE_GROWS_SHIFT,       /* by powers of 2 */
  RULE_GROWS_POWER
} rule_growth;

/* The end of the integers by which an operator chooses places. */
typedef enum rule_ends {
  RULE_ENDS_NOWHERE, /* it chooses none, or nothing is known */
  RULE_ENDS_ROWS,    /* the first dimension of its first operand */
  RULE_ENDS_ALONG,   /* the one that argument 1 names */
  RULE_ENDS_EACH,    /* a list: each its own dimension; negative ones count from the end */
  RULE_ENDS_CLASSES, /* the classes of the operand before them; the third argument after them is a
                        number that may mean none */
  RULE_ENDS_COUNT    /* the number after them */
} rule_ends;

/* Where the pieces of RULE_CHOICE_PIECES meet: one number, or two. Arguments are numbered from 0.
 */
typedef struct rule_breaks {
  enum {
    RULE_BREAKS_AT_0,
    RULE_BREAKS_AT_NUMBERS, /* low and high */
    RULE_BREAKS_AT_ARGUMENT,
    RULE_BREAKS_AROUND, /* minus the argument, and the argument */
    RULE_BREAKS_WITHIN, /* the argument, and 1 minus it */
    RULE_BREAKS_AT_RATIO
  } form;
  uint8_t operand; /* whose numbers are compared: 0 or 1 */
  uint8_t argument, over;
  double low, high;
  bool jumps; /* there */
} rule_breaks;

/* The bounds that RULE_CHOICE_BOUND gives its first operand. */
typedef enum rule_bound {
  RULE_BOUND_BOTH,
  RULE_BOUND_BELOW, /* the result is no less than a number */
  RULE_BOUND_ABOVE,
  RULE_BOUND_GIVEN /* by those of its arguments 1, below, and 2, above, that are given */
} rule_bound;

/* Whose memory a result lies in. */
typedef enum rule_shares {
  RULE_SHARES_NOTHING,
  RULE_SHARES_IN_ORDER, /* its first operand's, in the same order */
  RULE_SHARES_VIEW,     /* the same, in another order, or a part of it */
  RULE_SHARES_MAYBE,    /* it copies or not, and no argument tells */
  RULE_SHARES_IF_DENSE, /* where that is dense or keeps its shape; else it may */
  RULE_SHARES_IF_DENSE_ONLY,
  RULE_SHARES_UNLESS_CAST,
  RULE_SHARES_UNLESS_TRAINED
} rule_shares;

/* The operator that gives the first operand back, with a view's new value in it. */
typedef enum rule_undo {
  RULE_UNDONE_BY_NOTHING,
  RULE_UNDONE_BY_RESHAPE,
  RULE_UNDONE_BY_PERMUTE,
  RULE_UNDONE_BY_PARTS, /* a slice_scatter for each part */
  RULE_UNDONE_BY_SLICE,
  RULE_UNDONE_BY_NARROW,
  RULE_UNDONE_BY_SELECT,
  RULE_UNDONE_BY_UNBIND,
  RULE_UNDONE_BY_DIAGONAL,
  RULE_UNDONE_BY_REAL,
  RULE_UNDONE_BY_COMPLEX
} rule_undo;

/* Where an operator that makes_undefined surely has a value. */
typedef enum rule_defined {
  RULE_DEFINED_UNKNOWN, /* rule_arithmetic, and quotients, say more */
  RULE_DEFINED_POSITIVE,
  RULE_DEFINED_NONNEGATIVE
} rule_defined;

/* The dimensions that integers which name one count in. */
typedef enum rule_dims {
  RULE_DIMS_FIRST,  /* the dimensions of the first tensor among the arguments */
  RULE_DIMS_WIDEST, /* those of the tensor of highest rank: the tensors are broadcast first */
  RULE_DIMS_RESULT, /* one more than the first tensor has: the result gets a new one */
  RULE_DIMS_UNTOLD  /* negative ones do not count from the end */
} rule_dims;

/* Integer arguments that name places in the dimension of argument `dim`. */
typedef enum rule_placed {
  RULE_PLACED_NOTHING,
  RULE_PLACED_INDEX, /* `index`: negative ones count from the end */
  RULE_PLACED_RANGE  /* `start` and `end`: the same, and the dimension's bounds where left out */
} rule_placed;

/* Forms of operators that write to their first operand. */
typedef enum rule_in_place {
  RULE_IN_PLACE_PROMOTES,     /* it computes as the plain form, then casts */
  RULE_IN_PLACE_KEEPS_DTYPE,  /* it computes in the dtype of the first operand */
  RULE_IN_PLACE_CHANGES_SHAPE /* it changes the tensor's shape or layout, not its numbers */
} rule_in_place;

/* How an operator treats masks (rules/masks.h) among its arguments. */
typedef enum rule_mask_role {
  RULE_MASK_STOPS,  /* they must not get there, as far as is known */
  RULE_MASK_PASSES, /* moves, chooses or adds them: its result has them */
  RULE_MASK_ROWS,   /* they vanish in a row (along argument `dim`, the last one where there is none)
                       that keeps an element */
  RULE_MASK_REDUCED, /* the same, and the row becomes one number */
  RULE_MASK_ALL      /* they vanish everywhere */
} rule_mask_role;

typedef struct rule_mask_op {
  rule_mask_role role;
  uint32_t masks;   /* bits: arguments that may have masks in them, or be one */
  uint32_t numbers; /* bits: arguments whose numbers occur beside masks */
  uint32_t chooses; /* bits: arguments that say which elements are taken */
  uint32_t factors; /* bits: two arguments whose scalar products occur beside masks */
  uint8_t dim, one; /* arguments: the rows' dimension; a factor that has to be 1; 0: none */
} rule_mask_op;

/* The dimensions over which products are added up. */
typedef enum rule_contracts {
  RULE_CONTRACTS_NOTHING, /* or nothing is known */
  RULE_CONTRACTS_LAST,    /* the first operand's last one alone becomes another one */
  RULE_CONTRACTS_MATRICES /* the first's last one with the second's last but one, those in front
                             broadcast */
} rule_contracts;

enum { RULE_MOST_SIBLINGS = 4, RULE_OPERATOR_NAME = 56, RULE_SIBLING_NAME = 16 };

/* Without pointers: the table is then as the file has it, and a program that asks nothing of
 * operators need not load it. */
typedef struct rule_operator {
  char name[RULE_OPERATOR_NAME]; /* empty: unlisted */
  rule_choice choice;

  /* Where the result's numbers come from. */
  bool moves : 1; /* they are operands' numbers, moved by their places, or the call's literals */
  bool rearranges : 1;  /* moves all numbers of its first operand and no others: another layout */
  bool identity : 1;    /* gives its first operand as it is */
  bool broadcasts : 1;  /* the same, repeated along sizes of 1 and new dimensions in front */
  bool part : 1;        /* moves some of its first operand's numbers, in their order */
  bool fills : 1;       /* makes a tensor of literals and sizes alone */
  bool joins : 1;       /* its operands' numbers in turn: joined, or repeated */
  bool skips_empty : 1; /* leaves out operands of one dimension that have no elements */
  bool accumulates : 1; /* moves numbers, unless an argument says that those of one place add up */
  bool cast : 1;        /* changes the dtype */
  bool elementwise : 1; /* each element is one function of the operands' elements at its place */
  bool unspecified : 1; /* its result's elements are not specified (empty) */
  bool collective : 1;  /* joins the ranks' tensors */
  uint8_t table;        /* the argument by whose integers it reads rows of its first; 0: none */
  rule_ends ends;       /* of the integers that argument `index` holds */
  uint8_t index;
  uint8_t lengths; /* the argument whose integers say how many elements the result has, from 1; 0:
                      none */

  /* How it computes. */
  bool exact : 1;  /* nothing is rounded: its results are among its operands, or integers */
  bool widens : 1; /* of integers of any type it makes int64 */
  rule_arithmetic arithmetic;
  bool algebraic : 1; /* by + - * / and roots: a short result of short numbers is not rounded */
  bool transcendental : 1; /* no two libraries round it alike */
  bool sums : 1;           /* adds up many numbers, in an order that it chooses */
  bool absorbs : 1;        /* adds up, so that a small number may be lost beside a large one */
  bool no_overflow : 1;    /* on finite operands it is finite, or at a pole; implied by exact, moves
                              and cast */
  bool cancels : 1;        /* far below 0 it is computed as 1 - 1, with the rounding of 1 */
  bool exact_at_0 : 1;     /* its result at 0 is a double, and it gives that */
  bool exact_at_1 : 1;
  bool draws : 1; /* random numbers, unless an argument says otherwise (rule_draws) */
  uint8_t drops;  /* without schema: the argument by whose probability it drops, where the next one
                     says that it is trained; 0: not told */
  rule_growth growth;
  bool unordered : 1; /* adds to places that may coincide, in any order */
  bool series : 1;    /* by series, fractions or iterations: few digits are right */
  bool product : 1;   /* a product of matrices */
  bool power : 1;     /* an error of its operand grows as a power */
  bool reduces : 1;   /* the numbers along `dim`, or all, become one, the same in any order */
  rule_contracts contracts;
  bool norm : 1;   /* normalises rows */
  bool narrow : 1; /* some steps are float32 inside, for operands of any dtype: few digits are right
                    */

  /* At the ends of the numbers. */
  bool pole : 1;            /* infinite where an operand is 0 */
  uint8_t signed_pole;      /* one more than the argument whose 0 gives infinities of its sign */
  uint32_t unit;            /* bits: arguments whose numbers lie between 0 and 1, or it fails */
  bool positive : 1;        /* above 0 over the reals: a 0 has underflowed */
  bool nonnegative : 1;     /* never below 0 */
  bool keeps_sign : 1;      /* no more than 0, or no less, where all of its operand are */
  bool same_sign : 1;       /* no more than 0 where its first operand is, and no less */
  bool weighs : 1;          /* an element whose operand is minus infinity weighs nothing */
  bool underflows : 1;      /* may give a 0 that has underflowed, of numbers that are not tiny */
  bool reads_zero_sign : 1; /* tells 0 from -0 */
  bool makes_complex : 1;   /* of real numbers: roots and angles of what it makes read signs of 0 */
  bool drops_zero_sign : 1; /* gives the same for both, or a sum */
  bool sees_undefined : 1;  /* tells NaN or infinities from numbers */
  bool makes_undefined : 1; /* NaN or infinite for some numbers */
  rule_defined defined;
  bool observes : 1;        /* a number or a truth value where an operand is none, and tells it */
  bool keeps_undefined : 1; /* observes, and some operands that are none come out again */
  bool ties : 1;            /* leaves open which of equal elements' places it gives */
  bool places : 1;          /* its first result are places in a dimension; places_too: its second */
  bool places_too : 1;
  uint8_t axis; /* the argument that names its dimension, where that is one; 0: not told */
  uint8_t fill; /* one more than the argument by which it fills, or pads */
  rule_bound bound;
  rule_breaks breaks;

  /* In memory. */
  bool dense : 1;        /* its result is row-major, for any operands */
  bool strided : 1;      /* its result may be a view in another order, or be written in one */
  bool reads_memory : 1; /* reads its operand as it lies in memory */
  bool writes : 1;       /* to an argument, though neither schema nor name says so */
  uint8_t statistics;    /* to this argument and the next, where they are given; 0: it does not */
  uint8_t training;      /* and the argument which says that; 0: always */
  rule_shares shares;    /* of this name alone: names with "_copy" share nothing */
  rule_undo undo;

  /* Spellings of its arguments. */
  rule_dims dims;
  rule_placed placed;
  bool sizes : 1; /* its list of sizes is its result's shape, -1 where one is left open */
  rule_in_place in_place;

  rule_mask_op mask; /* of masks; operators that move, join, cast, fill or weigh need none */

  /* For searches. */
  bool relates : 1; /* relations between tensors of two graphs are written with it */
  /* Easily mistaken for it, likeliest first: with an overload, else with that of the call. Empty
   * ones at the end. */
  char sibling[RULE_MOST_SIBLINGS][RULE_SIBLING_NAME];
} rule_operator;

/* The facts of `op`. Returns: never NULL; a line without facts where it is unlisted. */
const rule_operator *rule_operator_of(const char *op);

/* Whether each element of an operand goes to its own place in the result, counted from the last
 * dimension. True of operators that broadcast, cast, or compute element by element. */
bool rule_keeps_places(const char *op);
/* Whether the result is the first operand, and a dimension of one where argument 1 says. */
bool rule_adds_dimension(const char *op);
/* Whether the name is of PyTorch's own operators, or of those between ranks. */
bool rule_is_aten(const char *op);
bool rule_is_collective(const char *op);
/* Whether it is `base`, or an overload of it. */
bool rule_is_overload(const char *op, const char *base);
/* Whether it is the choice of one of a call's several results. */
bool rule_is_getitem(const char *op);

/* The table, sorted by name, for those who read all of it. */
const rule_operator *rule_operators(size_t *n);

#endif
