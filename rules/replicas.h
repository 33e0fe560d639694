/* Names of outputs of several ranks: "NAME" is the first rank's, "NAME_rank<r>" that of another. */
#ifndef RULES_REPLICAS_H
#define RULES_REPLICAS_H

#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RULE_NO_OUTPUT SIZE_MAX

/* The outputs of one graph, by their places from 0. Time n log n, and log n for a name. */
typedef struct rule_replicas {
  size_t n;
  const char **name; /* the texts are the caller's */
  size_t *head;      /* of an output the first one of NAME; itself where there is none */
  size_t *first;     /* of a head its first replica in the graph's order; RULE_NO_OUTPUT: none */
  size_t *next;      /* of a replica the next one of its head; RULE_NO_OUTPUT: none */
  size_t *sorted;    /* private */
} rule_replicas;

/* The length of NAME in "NAME_rank<r>", 0 where the name is not of that form. */
size_t rule_replica_stem(const char *name);
/* `name_at`: the name of an output; it has to live as long. Owns: rule_replicas_fini, also after
 * an error. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code rule_replicas_init(rule_replicas *r, size_t n,
                                         const char *(*name_at)(const void *outputs, size_t i),
                                         const void *outputs, iso_error *err);
/* The first output of that name; RULE_NO_OUTPUT: none. */
size_t rule_replicas_find(const rule_replicas *r, const char *name);
void rule_replicas_fini(rule_replicas *r);

#ifdef __cplusplus
}
#endif
#endif
