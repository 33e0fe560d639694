// Is a matrix transposed twice the matrix itself? One sample says so (needs libtorch).
#include <float.h>
#include <stdio.h>

#include "validate/validate.h"

int main(void) {
  iso_error err = {0};
  iso_arena arena = {0};
  rule_schemas *schemas = NULL;
  val_engine *e = NULL;
  rule_tensor *x = NULL, *y = NULL;
  bool ok = false;
  if (rule_schemas_new(&schemas, &err) || val_new(NULL, schemas, &e, &err)) goto done;

  iso_rng rng = iso_rng_new(0, 0);
  rule_shape shape = {.rank = 2, .dim = {3, 5}};
  if (rule_tensor_new(RULE_F32, &shape, &x, &err)) goto done;
  val_sample_normal(&rng, x, 0, 1);

  // Variable 0 of the term is the tensor that stands at index 0 of its bindings.
  const rule_term *once = NULL, *side = NULL;
  const rule_term *first[] = {rule_var(&arena, 0), rule_int(&arena, 0), rule_int(&arena, 1)};
  if (rule_call(&arena, schemas, "aten::transpose.int", first, 3, &once, &err)) goto done;
  const rule_term *second[] = {once, rule_int(&arena, 0), rule_int(&arena, 1)};
  if (rule_call(&arena, schemas, "aten::transpose.int", second, 3, &side, &err)) goto done;

  double magnitude = 0;
  if (val_eval_magnitude(e, side, &x, VAL_FLOAT64, &y, &magnitude, &err)) goto done;
  val_diff d = val_compare(x, y, 1e-9, 64 * DBL_EPSILON * magnitude);
  printf("transposing twice %s\n", d.equal ? "changes nothing" : "changes something");
  ok = d.equal;
done:
  if (err.code) fprintf(stderr, "%s\n", err.msg);
  rule_tensor_unref(x);
  rule_tensor_unref(y);
  val_free(e);
  rule_schemas_free(schemas);
  iso_arena_fini(&arena);
  return ok ? 0 : 1;
}
