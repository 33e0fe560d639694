/* The domain that a capture, or its user, gives to the values that an input may have. Values
 * outside are not part of the function that is compared: the values drawn for the input lie inside,
 * on both sides, and a difference on other values does not count.
 *
 * A domain is an interval of numbers less some of them; `distinct`: no number occurs in the tensor
 * twice; `sorted`: no element of a row is less than the one before; `mask`: zeros and ones, and a
 * one in every row at least. A row is the last dimension. */
#ifndef RULES_DOMAIN_H
#define RULES_DOMAIN_H

#include "egraph/base/arena.h"
#include "egraph/base/rng.h"
#include "rules/tensor.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  RULE_MASK = 1,       /* zeros and ones, at any place */
  RULE_MASK_LEFT = 2,  /* padded on the left: the ones of a row follow its zeros */
  RULE_MASK_RIGHT = 4, /* padded on the right: they precede them. With both all are ones */
};

typedef struct rule_domain {
  double low, high;      /* both inside; infinite where nothing is said */
  const double *exclude; /* ascending, each within low and high */
  size_t n_exclude;
  bool distinct, sorted;
  unsigned mask;   /* RULE_MASK, with the others added; 0: it is none */
  const char *who; /* who says so, for messages */
} rule_domain;

/* Everything. */
rule_domain rule_domain_all(const char *who);
/* Whether it says nothing about a number by itself: no interval, nothing left out. */
bool rule_domain_is_open(const rule_domain *d);
/* Whether it says something about elements together. */
bool rule_domain_is_joint(const rule_domain *d);

/* Whether two domains say the same. NULL: a domain that says nothing. */
bool rule_domain_same(const rule_domain *a, const rule_domain *b);

/* Sorts the excluded numbers, moves the ends of integers' intervals inwards past them, and checks
 * that some tensor of this dtype and shape is inside. Returns: in `why` (at most `n` bytes) why
 * none is, else false. `exclude` is written to. */
bool rule_domain_settle(rule_domain *d, double *exclude, rule_dtype dtype, const rule_shape *shape,
                        char *why, size_t n);

/* The intersection, from `arena`; `who` becomes both names. Returns: NULL where there is no
 * memory. */
rule_domain *rule_domain_meet(iso_arena *arena, const rule_domain *a, const rule_domain *b,
                              rule_dtype dtype, const rule_shape *shape, bool *empty);

bool rule_domain_has(const rule_domain *d, double x);
/* Whether the tensor is inside. Returns: in `why` (may be NULL) the reason why not, in words. */
bool rule_domain_admits(const rule_domain *d, const rule_tensor *t, char *why, size_t n);

/* Changes the elements that are outside, in place: numbers are drawn inside the interval (within
 * `low` and `high` as well, where some of it is), masks anew. `form`: how masks are padded, where
 * the domain leaves that open: counted through by the caller. Returns: false where that did not put
 * the tensor inside: another one has to serve. */
bool rule_domain_fit(const rule_domain *d, double low, double high, unsigned form, iso_rng *rng,
                     rule_tensor *t);
/* The same, and every number is drawn anew. */
bool rule_domain_draw(const rule_domain *d, double low, double high, unsigned form, iso_rng *rng,
                      rule_tensor *t);

/* In words, "from 0 to 63, without 0 and 2, distinct"; cut where it does not fit. Returns buf. */
char *rule_domain_print(const rule_domain *d, char *buf, size_t n);

#ifdef __cplusplus
}
#endif
#endif
