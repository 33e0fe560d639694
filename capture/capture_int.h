/* Shared by the files of capture/ and its tests; see capture.h for the ideas. */
#ifndef CAPTURE_CAPTURE_INT_H
#define CAPTURE_CAPTURE_INT_H

#include <jansson.h>

#include "capture/capture.h"

/* Whether jansson stopped for want of memory; building values, it says so by saying nothing. */
static inline bool cap_json_no_memory(const json_error_t *e) {
  return json_error_code(e) == json_error_out_of_memory || e->text[0] == '\0';
}

/* ---- names.c: strings to indices, open addressing ---- */

typedef struct cap_names {
  const char **key; /* borrowed; NULL where free */
  size_t *index;
  size_t cap, n; /* cap is 0 or a power of two, at least twice n */
} cap_names;
#define CAP_NO_INDEX SIZE_MAX

/* Returns: CAP_NO_INDEX when `key` is not there. */
size_t cap_names_find(const cap_names *t, const char *key);
/* Requires: `key` is not there and outlives the table. Returns: false when there is no memory. */
bool cap_names_add(cap_names *t, const char *key, size_t index);
void cap_names_fini(cap_names *t);

/* ---- safetensors.c ---- */

/* The same as cap_tensors_open over a copy of `n` bytes; `path` is what messages say. */
ISO_MUST_USE iso_code cap_tensors_from(const void *bytes, size_t n, const char *path,
                                       cap_tensors **out, iso_error *err);

/* ---- graph.c ---- */

/* Parse, check and lower a graph.json of `n` bytes without any tensors: leaves have no value, and
 * there is one input set of NULLs. `dir` is what messages say in front of "/graph.json". Owns:
 * cap_free. */
ISO_MUST_USE iso_code cap_parse(const char *text, size_t n, const char *dir, rule_schemas *schemas,
                                cap_graph **out, iso_error *err);

/* A node in the JSON on its way to a cap_node. */
typedef struct cap_raw {
  const json_t *args, *kwargs, *attributes; /* NULL where not given */
  const json_t *writes; /* of functionalized: array of strings; NULL where not given */
} cap_raw;

/* ---- lower.c ---- */

typedef struct cap_lowering {
  iso_arena *arena;
  rule_schemas *schemas;
  const cap_names *ids;
  const cap_node *node; /* those before the node in hand are complete */
} cap_lowering;

/* The call of operator node `node` (not getitem), whose id, op and outputs are filled in.
 * Errors: ISO_FORMAT with the reason alone. */
ISO_MUST_USE iso_code cap_lower(const cap_lowering *l, const cap_node *node, const cap_raw *raw,
                                const rule_term **out, iso_error *err);
/* Resolve {"ref": id} to the index of an earlier node. `projected`: by getitem, which may name a
 * node of several outputs. */
ISO_MUST_USE iso_code cap_lower_ref(const cap_lowering *l, const json_t *v, bool projected,
                                    uint32_t *out, iso_error *err);

#endif
