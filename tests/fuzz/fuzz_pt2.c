/* Any bytes as an archive of torch.export.save: they load or give an error, and a loaded graph can
 * be read. Bytes that are no zip file are taken for a pickle, which the CRC of an archive would
 * hide from the fuzzer. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static double read_all(const cap_graph *g) {
  double sum = 0;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_tensor *x = g->node[i].value;
    for (int64_t k = 0; x != NULL && k < x->numel; k++) sum += rule_tensor_get(x, k);
  }
  return sum;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  cap_bytes *b = NULL;
  iso_error err;
  double sum = 0;
  if (cap_bytes_copy(data, n, &b, &err) != ISO_OK) return 0;
  if (n < 2 || memcmp(data, "PK", 2) != 0) {
    iso_arena a;
    iso_arena_init(&a);
    const cap_pickled *v = NULL;
    if (cap_unpickle(b, &a, &v, &err) == ISO_OK && v == NULL) abort();
    iso_arena_fini(&a);
  } else {
    rule_schemas *schemas = NULL;
    cap_graph *g = NULL;
    if (rule_schemas_new(&schemas, &err) == ISO_OK &&
        cap_load_archive(b, "fuzz.pt2", NULL, schemas, &g, &err) == ISO_OK)
      sum = read_all(g);
    cap_free(g);
    rule_schemas_free(schemas);
  }
  cap_bytes_unref(b);
  return sum == 0.5 ? -1 : 0; /* so that the sum is needed */
}
