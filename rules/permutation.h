/* An input of different integers of a small range, as the first places of some numbers in order:
 * x = argsort(w)[:n] + low, where any numbers w give such an x, and each such x comes of some. */
#ifndef RULES_PERMUTATION_H
#define RULES_PERMUTATION_H

#include "rules/domain.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Whether a domain says exactly that of a tensor of this dtype, and no more. */
bool rule_domain_permutes(const rule_domain *d, rule_dtype dtype);
/* How many numbers w has. */
int64_t rule_domain_span(const rule_domain *d);
/* The input of that shape as a term over `w`. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code rule_places(iso_arena *a, rule_schemas *s, const rule_domain *d,
                                  const rule_shape *shape, const rule_term *w,
                                  const rule_term **out, iso_error *err);
/* Some w as a term over the input: its elements first, then all others by their values. The places
 * of these are the input again, for all values inside of the domain. */
ISO_MUST_USE iso_code rule_order(iso_arena *a, rule_schemas *s, const rule_domain *d,
                                 const rule_shape *shape, const rule_term *input,
                                 const rule_term **out, iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
