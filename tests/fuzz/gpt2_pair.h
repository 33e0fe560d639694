/* Two captures that belong together, loaded once for all inputs. */
#ifndef TESTS_FUZZ_GPT2_PAIR_H
#define TESTS_FUZZ_GPT2_PAIR_H

#include <stdlib.h>

#include "capture/capture.h"

static rule_schemas *schemas;
static cap_graph *graph[2];

static void drop(void) {
  cap_free(graph[0]);
  cap_free(graph[1]);
  rule_schemas_free(schemas);
}

static inline void load(void) {
  iso_error err;
  if (rule_schemas_new(&schemas, &err) ||
      cap_load("models/gpt2-2l/hf-sdpa", schemas, &graph[0], &err) ||
      cap_load("models/gpt2-2l/vllm", schemas, &graph[1], &err))
    abort();
  atexit(drop);
}

#endif
