/* A plain textbook e-graph with equality saturation: the reference that eg_sat is measured against
 * and tested with. It follows Willsey et al., egg, POPL 2021, figure by figure: a hashcons, a
 * union-find, per class a list of e-nodes and one of parents, a worklist; matching by recursion
 * over classes; nothing incremental. Rules without guards only. */
#ifndef TESTS_SUPPORT_TEXTBOOK_H
#define TESTS_SUPPORT_TEXTBOOK_H

#include "egraph/workload.h"

typedef struct textbook textbook;

textbook *textbook_new(void); /* ends the program where there is no memory */
void textbook_free(textbook *t);
/* Returns: false where the workload uses features that this lacks (guards, conditions, analyses,
 * several patterns). */
bool textbook_load(textbook *t, const eg_workload *w);
size_t textbook_iterate(textbook *t,
                        bool *changed); /* one iteration, simple scheduler; Returns: matches */
size_t textbook_count_nodes(const textbook *t);
size_t textbook_count_classes(const textbook *t);

#endif
