/* The costs of a comparison: clocks, and the rule that took longest. Figures of the report; no
 * verdict depends on them but for the limits that a caller sets. */
#include "synth/comparison.h"

#include <time.h>

double synth_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

double synth_cpu_clock(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

void st_note_cost(state *s, const char *title, double cpu_from) {
  const double cost = synth_cpu_clock() - cpu_from;
  const char *name =
      cost > s->res->slowest_rule_cpu_s ? iso_arena_strdup(&s->res->arena, title) : NULL;
  if (!name) return;
  s->res->slowest_rule_cpu_s = cost;
  s->res->slowest_rule = name;
}
