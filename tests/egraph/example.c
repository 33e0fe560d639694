// Three and five applications of f to x give x back. Is f(x) = x, and why?
#include <stdio.h>
#include <stdlib.h>

#include "egraph/egraph.h"

int main(void) {
  eg_graph *g = NULL;
  eg_symbol x, f;
  eg_node n[6]; // n[k] is f applied k times to x
  eg_step *step = NULL;
  size_t n_steps = 0;
  bool ok = false;
  iso_error err = {0};
  if (eg_new(NULL, &g, &err)) goto done;
  if (eg_intern(g, "x", 1, &x, &err) || eg_intern(g, "f", 1, &f, &err)) goto done;
  if (eg_add(g, x, NULL, 0, &n[0], &err)) goto done;
  for (int k = 1; k < 6; k++) {
    eg_class child = eg_class_of(g, n[k - 1]);
    if (eg_add(g, f, &child, 1, &n[k], &err)) goto done;
  }
  // Reasons are the caller's numbers: here kind 1, and which of the two equations.
  if (eg_merge(g, n[3], n[0], (eg_why){1, 3}, &err)) goto done;
  if (eg_merge(g, n[5], n[0], (eg_why){1, 5}, &err)) goto done;
  if (eg_rebuild(g, &err)) goto done; // congruence finds the rest

  printf("f(x) = x: %s\n", eg_equal(g, n[1], n[0]) ? "yes" : "no");
  if (eg_explain(g, n[1], n[0], &step, &n_steps, &err)) goto done;
  for (size_t i = 0; i < n_steps; i++)
    printf("f^%u(x) = f^%u(x) by %s\n", step[i].from.i, step[i].to.i,
           step[i].why.kind == EG_WHY_CONGRUENCE ? "congruence" : "an equation");
  if (eg_proof_check(g, step, n_steps, n[1], n[0], NULL, NULL, &ok, NULL, &err)) goto done;
  printf("the proof %s\n", ok ? "holds" : "does not hold");
done:
  if (err.code) fprintf(stderr, "%s\n", err.msg);
  free(step);
  eg_free(g);
  return ok ? 0 : 1;
}
