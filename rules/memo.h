/* Results of a walk over terms, by a term's address: walks that would otherwise go through a shared
 * part once for each of its occurrences. */
#ifndef RULES_MEMO_H
#define RULES_MEMO_H

#include "rules/rules.h"

typedef struct rule_memo { /* all bits zero: empty. Owns: rule_memo_free */
  struct rule_memo_entry *entry;
  iso_arena arena;
} rule_memo;

/* The result put for t beside `with` (any address, also NULL). NULL: there is none. */
const rule_term *rule_memo_find(const rule_memo *m, const rule_term *t, const void *with);
/* Returns: false without memory; then nothing is put. */
bool rule_memo_put(rule_memo *m, const rule_term *t, const void *with, const rule_term *result);
void rule_memo_free(rule_memo *m);

#endif
