#include "cli/report/refinement.h"

#include <stdlib.h>
#include <string.h>

#include "cli/config/relations.h"
#include "egraph/base/vec.h"

iso_code refinement_add(refinement *r, refined x, iso_error *err) {
  if (!iso_grow(r->of, r->cap, r->n + 1)) return iso_fail(err, ISO_NOMEM, "out of memory");
  r->of[r->n++] = x;
  return ISO_OK;
}

void refinement_free(refinement *r) {
  free(r->of);
  free(r->left_out);
  iso_arena_fini(&r->arena);
  *r = (refinement){0};
}

char *refinement_lines(const refinement *r, bool inferred) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  bool fine = true;
  iso_arena a;
  iso_arena_init(&a);
  for (size_t i = 0; i < r->n_folds; i++) fine &= fprintf(f, "%s\n", r->fold[i]) > 0;
  for (size_t i = 0; i < r->n; i++) {
    if (!r->of[i].clean || (inferred && !r->of[i].inferred)) continue;
    const char *name = relations_name(&a, r->of[i].output);
    fine &= name && fprintf(f, "output %s = %s\n", name, r->of[i].relation) > 0;
  }
  iso_arena_fini(&a);
  for (size_t i = 0; i < r->n_left_out; i++)
    fine &= fprintf(f, "output none = %s\n", r->left_out[i]) > 0;
  if (fclose(f) == 0 && fine) return text;
  free(text);
  return NULL;
}

void refinement_text(const refinement *r, FILE *f) {
  if (r->n == 0) return;
  fprintf(f, "\nrelations of the outputs (%zu):\n", r->n);
  for (size_t i = 0; i < r->n; i++) {
    const refined *x = &r->of[i];
    if (!x->relation) fprintf(f, "  %s: no clean relation was found\n", x->output);
    else fprintf(f, "  %s = %s%s\n", x->output, x->relation, x->clean ? "" : " (not clean)");
    if (x->where) fprintf(f, "    where %s\n", x->where);
    if (x->surprising) fprintf(f, "    surprising: %s\n", x->surprising);
  }
}
