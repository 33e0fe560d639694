/* Private to egraph/: the log of an e-graph that explains. Every function does nothing,
 * successfully, where there is no log.
 *
 * A class id stands for the term for which its class was made: an operator over earlier class ids.
 * An event is either a merge of two such terms with the caller's reason, or the application of a
 * rule: its number and the classes bound, so that replaying it instantiates both sides. */
#ifndef EGRAPH_SAT_LOG_INT_H
#define EGRAPH_SAT_LOG_INT_H

#include "egraph/sat/sat_int.h"

typedef struct egi_log {
  uint32_t *term; /* operator, then children, of each class in order of their ids */
  size_t n_term, cap_term;
  size_t *term_at; /* where that of a class starts */
  size_t n_at, cap_at;
  uint32_t *event; /* EGI_LOG_MERGE kind data a b, or EGI_LOG_RULE + rule, then its variables */
  size_t n_event, cap_event;
} egi_log;
enum { EGI_LOG_MERGE = 0, EGI_LOG_RULE = 1 };

bool egi_log_reserve(eg_sat *s, size_t n, uint32_t arity); /* for so many classes */
void egi_log_class(eg_sat *s, uint32_t row); /* a class was made for this row; Requires: reserved */
bool egi_log_merge(eg_sat *s, uint32_t a, uint32_t b, eg_why why);
bool egi_log_rule(eg_sat *s, uint32_t rule, const uint32_t *var, size_t n_vars);
void egi_log_free(egi_log *log);

#endif
