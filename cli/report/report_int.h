/* Common to both forms of a report. */
#ifndef CLI_REPORT_REPORT_INT_H
#define CLI_REPORT_REPORT_INT_H

#include "cli/report/report.h"

static inline const char *report_verdict_name(synth_verdict v) {
  return v == SYNTH_EQUIVALENT ? "equivalent" : v == SYNTH_DIFFERENT ? "different" : "undecided";
}

/* NULL for -1: there is none on that side. */
static inline const cap_node *report_node(const cap_graph *g, int64_t i) {
  return i < 0 ? NULL : &g->node[i];
}

#endif
