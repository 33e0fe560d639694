/* Shared by the files that read torch.export's archives (pt2*.c); see pt2.c for the ideas. */
#ifndef CAPTURE_PT2_INT_H
#define CAPTURE_PT2_INT_H

#include "capture/capture_int.h"

/* One tensor of the exported program. A view knows the tensor that it views, so that a write
 * through any view reaches all of them: a view whose version is not its root's is stale, and is
 * recomputed when it is next read. */
typedef struct pt2_cell {
  const char *id; /* the node that holds its value */
  rule_shape shape;
  rule_dtype dtype;
  int64_t stride[RULE_MAX_RANK]; /* as exported */
  bool within;                   /* it begins after the beginning of its memory */
  struct pt2_cell *parent;       /* NULL: a root, which has memory of its own */
  const json_t *node;            /* of a view: the node that made it; borrowed */
  const char *arg;               /* of a view: the argument that is viewed */
  int64_t index;                 /* of a view: which output of `node`; -1: its only one */
  uint32_t version, depth;
  bool unsure;      /* of a root: a tensor made from it may share its memory, or may not */
  const char *next; /* private to pt2_write */
} pt2_cell;

/* The graph that is being written, as graph.json would say it. */
typedef struct pt2_writer {
  iso_arena *arena; /* ids and cells */
  rule_schemas *schemas;
  json_t *nodes;
  cap_names ids;
  const json_t *here; /* metadata of the node that is being read: where emitted nodes come from */
  iso_error *err;
} pt2_writer;

/* ---- pt2_emit.c ---- */

iso_code pt2_no_memory(pt2_writer *w);
/* Append a node. Takes over `kwargs` and `outputs`, also on error (NULL: no memory). Returns: its
 * id, from `hint`, and the node. */
ISO_MUST_USE iso_code pt2_emit(pt2_writer *w, const char *op, json_t *kwargs, json_t *outputs,
                               const char *hint, const char **id, json_t **node);
ISO_MUST_USE iso_code pt2_getitem(pt2_writer *w, const char *of, int64_t index,
                                  const pt2_cell *meta, const char *hint, const char **id);
json_t *pt2_ref(const char *id);           /* {"ref": id} */
json_t *pt2_meta_json(const pt2_cell *t);  /* {"shape", "dtype"} */
json_t *pt2_outputs(const pt2_cell *meta); /* one of them in a list */
/* A root, of which only the meta data is filled in. NULL: no memory. */
pt2_cell *pt2_cell_new(pt2_writer *w, const pt2_cell *meta, const char *id);

/* Shape, dtype and strides of a TensorMeta; its storage offset where `offset` is not NULL. Errors:
 * the reason alone. */
ISO_MUST_USE iso_code pt2_meta(const json_t *m, pt2_cell *out, int64_t *offset, iso_error *err);

/* ---- pt2_alias.c ---- */

/* Whether the strides of `t` are row-major and without gaps. */
bool pt2_is_dense(const pt2_cell *t);

typedef enum pt2_sharing { PT2_FRESH, PT2_VIEW, PT2_SAME, PT2_UNSURE } pt2_sharing;
/* Whether the result `out` of aten::`name` shares memory with its first argument `base`: fresh
 * memory, a view, the argument's elements in their own order under another shape or none
 * (PT2_SAME), or not known. */
pt2_sharing pt2_shares(const char *name, const json_t *kwargs, const pt2_cell *base,
                       const pt2_cell *out);
/* Make `c` a view of `base` by the node; of an output where index >= 0. */
void pt2_view(pt2_cell *c, pt2_cell *base, pt2_sharing how, const json_t *node, const char *arg,
              int64_t index);
/* See to it that c->id holds the value now. */
ISO_MUST_USE iso_code pt2_read(pt2_writer *w, pt2_cell *c);
/* Node `id` is the value that was written to `c`. Errors: ISO_UNSUPPORTED where no function carries
 * the write to the other views. */
ISO_MUST_USE iso_code pt2_write(pt2_writer *w, pt2_cell *c, const char *id);
/* An operator that writes, and the name that its result gets. */
typedef struct pt2_named {
  const char *name, *overload, *hint;
} pt2_named;
/* The new value of `self` after aten::`name` (as "add_") with `kwargs`, which are taken over. */
ISO_MUST_USE iso_code pt2_in_place(pt2_writer *w, const pt2_named *op, json_t *kwargs,
                                   pt2_cell *const *args, size_t n_args, pt2_cell *self);

/* ---- pt2_signature.c ---- */

typedef struct pt2_leaf {
  const char *name;   /* in the capture */
  rule_tensor *value; /* of a parameter, buffer or constant; owned */
} pt2_leaf;

typedef struct pt2_program {
  iso_arena arena;
  json_t *top;    /* graph.json */
  pt2_leaf *leaf; /* by name: weights */
  size_t n_leaves, cap_leaves;
  const char **input; /* names of the inputs, by place among the user's inputs; NULL where one is no
                         tensor */
  size_t n_inputs, cap_inputs;
} pt2_program;

/* How the translation gets at a weight: a parameter or buffer that is saved (`constant`: else). */
typedef iso_code (*pt2_fetch)(void *ctx, const char *name, bool constant, rule_tensor **out,
                              iso_error *err);

/* Translate `exported` (an ExportedProgram). `model`: its name. Owns: pt2_program_fini, also after
 * an error. */
ISO_MUST_USE iso_code pt2_translate(const json_t *exported, const char *model,
                                    rule_schemas *schemas, pt2_fetch fetch, void *ctx,
                                    pt2_program *out, iso_error *err);
void pt2_program_fini(pt2_program *p);

/* ---- pt2.c ---- */

typedef struct pt2_archive pt2_archive;
/* Read an archive of torch.export.save. The model is named after `path`. Owns: pt2_close. Errors:
 * the reason alone. */
ISO_MUST_USE iso_code pt2_open(cap_bytes *file, const char *path, rule_schemas *schemas,
                               pt2_archive **out, iso_error *err);
void pt2_close(pt2_archive *a);
json_t *pt2_top(const pt2_archive *a); /* as graph.json; borrowed */
/* A reference to the parameter, buffer or constant of that name in pt2_top. NULL: there is none. */
rule_tensor *pt2_weight(const pt2_archive *a, const char *name);
/* The example inputs. Returns: in `out`, ISO_OK and NULL where the archive has none. Owns: caller
 * unrefs. */
ISO_MUST_USE iso_code pt2_example(pt2_archive *a, const char *name, rule_tensor **out,
                                  iso_error *err);

#endif
