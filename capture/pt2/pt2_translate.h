/* Private to pt2_emit.c, pt2_graph.c and pt2_signature.c: the translation of torch.export's program
 * under way. */
#ifndef CAPTURE_PT2_TRANSLATE_H
#define CAPTURE_PT2_TRANSLATE_H

#include "capture/pt2/pt2_int.h"

typedef struct value {
  enum { V_UNKNOWN, V_TENSOR, V_INT, V_FLOAT, V_BOOL, V_NONE } kind;
  pt2_cell *cell;
  int64_t i;
  double f;
} value;

/* The names of one graph. */
typedef struct frame {
  const json_t *graph;
  cap_names names;
  value *value;
  size_t n, cap;
  int depth;
} frame;

typedef struct translation {
  pt2_writer w;
  pt2_program *out;
  pt2_fetch fetch;
  void *ctx;
  bool training; /* operators may write to their arguments */
} translation;

/* The string of `object` under `key`; "" where there is none. */
const char *pt2_str(const json_t *object, const char *key);
/* The one key of a union, and its value. */
const char *pt2_variant(const json_t *arg, const json_t **v);
bool pt2_kind_is(const char *kind, const char *a, const char *b);
/* A size: {"as_int"} or {"as_expr": {"hint": {"as_int"}}}. Returns: false where it has no
 * number. */
bool pt2_size_of(const json_t *v, int64_t *out);

/* Append a node of any kind, which is taken over. Returns: its id, from `hint`, and the node where
 * `out` is not NULL. */
ISO_MUST_USE iso_code pt2_append(pt2_writer *w, json_t *node, const char *hint, const char **id,
                                 json_t **out);

/* Names of a graph. Errors: a name that is bound twice, or not yet. */
ISO_MUST_USE iso_code pt2_bind(translation *t, frame *f, const char *name, value v);
ISO_MUST_USE iso_code pt2_bind_tensor(translation *t, frame *f, const char *name, pt2_cell *c);
ISO_MUST_USE iso_code pt2_lookup_tensor(translation *t, const frame *f, const char *name,
                                        pt2_cell **out);
/* The meta data that the graph has for the tensor of that name. */
ISO_MUST_USE iso_code pt2_meta_of(translation *t, const frame *f, const char *name, pt2_cell *out);

/* Translate the graph's nodes. Requires: its inputs are bound. */
ISO_MUST_USE iso_code pt2_read_graph(translation *t, frame *f);

/* ---- operators (pt2_operator.c) ---- */

typedef struct results {
  const char **name;
  size_t n, cap;
  bool list; /* given as a list of tensors */
} results;

iso_code pt2_arguments(translation *t, const frame *f, const json_t *node, bool keep_none,
                       json_t **out);
pt2_cell *pt2_tensor_argument(translation *t, const frame *f, const json_t *node, size_t i,
                              const char **name);
bool pt2_is_any(const char *name, const char *const *names);
iso_code pt2_operator_call(translation *t, frame *f, const json_t *node, const char *target,
                           const results *r);

#endif
