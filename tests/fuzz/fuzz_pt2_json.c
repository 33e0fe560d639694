/* Any bytes as the JSON of an exported program, which the zip file around it would hide from the
 * fuzzer: it becomes a graph or gives an error, and that graph is read as a graph.json is. Weights
 * are there under every name. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pt2/pt2_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Constants are one tensor, so that tied leaves occur; others have memory of their own. */
static iso_code fetch(void *ctx, const char *name, bool constant, rule_tensor **out,
                      iso_error *err) {
  rule_tensor *shared = ctx;
  (void)name;
  if (constant) {
    *out = rule_tensor_ref(shared);
    return ISO_OK;
  }
  return rule_tensor_new(shared->dtype, &shared->shape, out, err);
}

static void translate(const json_t *v, rule_schemas *schemas) {
  const rule_shape shape = {.rank = 2, .dim = {2, 3}};
  rule_tensor *shared = NULL;
  pt2_program p;
  iso_error err;
  if (rule_tensor_new(RULE_F32, &shape, &shared, &err) != ISO_OK) return;
  if (pt2_translate(v, "fuzz", schemas, fetch, shared, &p, &err) == ISO_OK) {
    char *text = json_dumps(p.top, JSON_COMPACT);
    cap_graph *g = NULL;
    if (p.top == NULL) abort();
    if (text != NULL &&
        cap_parse((cap_text){text, strlen(text)}, "fuzz", NULL, schemas, &g, &err) == ISO_OK)
      cap_free(g);
    free(text);
  }
  pt2_program_fini(&p);
  rule_tensor_unref(shared);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  rule_schemas *schemas = NULL;
  iso_error err;
  json_t *v = json_loadb((const char *)data, n, JSON_REJECT_DUPLICATES, NULL);
  if (v != NULL && rule_schemas_new(&schemas, &err) == ISO_OK) translate(v, schemas);
  rule_schemas_free(schemas);
  json_decref(v);
  return 0;
}
