/* Shared by the files of capture/ and its tests; see capture.h for the ideas. */
#ifndef CAPTURE_CAPTURE_INT_H
#define CAPTURE_CAPTURE_INT_H

#include <jansson.h>

#include "capture/capture.h"

/* Whether jansson stopped for want of memory; building values, it says so by saying nothing. */
static inline bool cap_json_no_memory(const json_error_t *e) {
  return json_error_code(e) == json_error_out_of_memory || e->text[0] == '\0';
}

/* ---- names.c: strings to indices ---- */

typedef struct cap_name cap_name;
typedef struct cap_names {
  cap_name *first; /* NULL: there is none */
} cap_names;
#define CAP_NO_INDEX SIZE_MAX

/* Returns: CAP_NO_INDEX when `key` is not there. */
size_t cap_names_find(const cap_names *t, const char *key);
/* Requires: `key` is not there and outlives the table. Returns: false when there is no memory. */
bool cap_names_add(cap_names *t, const char *key, size_t index);
void cap_names_fini(cap_names *t);

/* ---- expression.c: sizes and conditions over symbols ---- */

typedef struct cap_numbers { /* numbers that expressions name, each once */
  int64_t *at;
  size_t n, cap;
} cap_numbers;

typedef struct cap_scope {
  const cap_symbol *symbol;
  size_t n;
  const int64_t *value; /* of each; NULL: as they are now */
  cap_numbers *numbers; /* where numbers are noted; may be NULL */
} cap_scope;
/* Errors: ISO_FORMAT in one line, of an unknown symbol, a division by 0, a number too large. */
ISO_MUST_USE iso_code cap_evaluate(const char *text, bool as_condition, const cap_scope *scope,
                                   int64_t *out, iso_error *err);
/* The size, and the term that it is written as: INT, NAME of a symbol, or EXPR of "+", "-", "*",
 * "//", "%", "min" and "max". */
ISO_MUST_USE iso_code cap_size_term(const char *text, const cap_scope *scope, iso_arena *a,
                                    int64_t *now, const rule_term **out, iso_error *err);
/* How many characters of `s` are a symbol's name; 0: it begins with none. */
size_t cap_symbol_length(const char *s);

/* ---- symbols.c ---- */

/* Numbers of the JSON in whose place an expression was. */
typedef struct cap_written {
  struct {
    const json_t *at;
    const rule_term *as;
  } * of; /* malloc'ed; by address once all are there */
  size_t n, cap;
} cap_written;
/* The expression that a node gives for its number ("counts"). */
void cap_read_counts(const json_t *v, cap_node *node);
/* Returns: NULL where `v` was a number from the beginning. */
const rule_term *cap_written_as(const cap_written *w, const json_t *v);

/* The graph's symbols and guards, as `o` (or NULL) wants them, and numbers in place of all sizes in
 * `top`. Returns: in `text`, by node, the member `size` of cap_node; in `written` the sizes, which
 * live in the graph's arena. */
ISO_MUST_USE iso_code cap_settle_sizes(cap_graph *g, json_t *top, const cap_options *o,
                                       const char *const ***text, cap_written *written,
                                       iso_error *err);
/* Whether the symbols have other values than those captured. */
bool cap_is_moved(const cap_graph *g);

/* ---- domain.c ---- */

/* The "domain" of an input leaf into node->domain; `path` is who says so. */
ISO_MUST_USE iso_code cap_read_domain(iso_arena *a, const json_t *leaf, const char *path,
                                      cap_node *node, iso_error *err);
/* Bounds inputs by 0 and 1 that an operator takes between these alone (rule_operator.unit). */
ISO_MUST_USE iso_code cap_note_units(cap_graph *g, iso_error *err);
/* cap_options.sort_unseen: of a graph that was read. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code cap_sort_unseen(cap_graph *g, iso_error *err);
/* Put other input sets in the place of the graph's: `input` as cap_graph has it, malloc'ed, taken
 * over. */
void cap_replace_inputs(cap_graph *g, rule_tensor **input, size_t n_sets);

/* ---- bytes.c: counted bytes, of a file, of memory, or of a part of either ---- */

typedef struct cap_bytes {
  unsigned char *at;
  size_t n, refs;          /* refs: not atomic */
  size_t mapped;           /* bytes to unmap; 0: not a mapping */
  struct cap_bytes *whole; /* the bytes that these are a part of; NULL: none */
} cap_bytes;

/* Map a regular file. Owns: cap_bytes_unref, as of the others. Errors: the reason alone. */
ISO_MUST_USE iso_code cap_bytes_open(const char *path, cap_bytes **out, iso_error *err);
/* `n` bytes of memory, zeroed. */
ISO_MUST_USE iso_code cap_bytes_new(size_t n, cap_bytes **out, iso_error *err);
ISO_MUST_USE iso_code cap_bytes_copy(const void *bytes, size_t n, cap_bytes **out, iso_error *err);
/* Bytes [begin, begin + n) of `whole`, which lives on as long as they do. Requires: they are
 * within. */
ISO_MUST_USE iso_code cap_bytes_part(cap_bytes *whole, size_t begin, size_t n, cap_bytes **out,
                                     iso_error *err);
cap_bytes *cap_bytes_ref(cap_bytes *b);
/* The pages of the file that `t` lies in, if any, are not needed for now. */
void cap_bytes_idle(const rule_tensor *t);
void cap_bytes_unref(void *b); /* a cap_bytes or NULL; takes void * so that tensors can own one */

/* A tensor within a storage: strides and offset in elements. */
typedef struct cap_strided {
  rule_dtype dtype;
  const rule_shape *shape;
  const int64_t *stride;
  int64_t offset;
} cap_strided;
/* A strided tensor over a storage as a dense one: a view where it is dense and aligned, else a
 * copy, whose bytes are taken from `budget` first (which bounds how much memory a hostile file can
 * make us allocate). `stride` and `offset` count elements. Errors: ISO_FORMAT where it reaches
 * outside the storage; ISO_LIMIT where the budget is spent. */
ISO_MUST_USE iso_code cap_bytes_view(cap_bytes *storage, const cap_strided *view, uint64_t *budget,
                                     rule_tensor **out, iso_error *err);

/* ---- archive.c: zip files in memory ---- */

typedef struct cap_archive cap_archive;
/* Read and check the directory. Bytes that unpacking allocates are taken from `budget`, which
 * outlives the archive. Owns: cap_archive_close; bytes taken from it stay valid. Errors: the reason
 * alone. */
ISO_MUST_USE iso_code cap_archive_open(cap_bytes *file, uint64_t *budget, cap_archive **out,
                                       iso_error *err);
void cap_archive_close(cap_archive *a);
size_t cap_archive_count(const cap_archive *a);
const char *cap_archive_name(const cap_archive *a, size_t i);
bool cap_archive_has(const cap_archive *a, const char *name);
/* An entry's bytes, of which the CRC holds. Owns: cap_bytes_unref. */
ISO_MUST_USE iso_code cap_archive_read(cap_archive *a, const char *name, cap_bytes **out,
                                       iso_error *err);

/* ---- pickle.c: files of torch.save, read without running them ---- */

typedef enum cap_pickle_kind {
  CAP_PK_NONE,
  CAP_PK_BOOL,
  CAP_PK_INT,
  CAP_PK_FLOAT,
  CAP_PK_STRING,
  CAP_PK_TUPLE,
  CAP_PK_LIST,
  CAP_PK_DICT,
  CAP_PK_GLOBAL, /* private to the reader, as the next: no value of a file that was read is one */
  CAP_PK_STORAGE,
  CAP_PK_TENSOR
} cap_pickle_kind;

typedef struct cap_pickled {
  cap_pickle_kind kind;
  int64_t i; /* BOOL, INT; GLOBAL: which; STORAGE: number of elements; TENSOR: offset */
  double f;
  const char *s; /* STRING; STORAGE, TENSOR: the storage's key */
  size_t n, cap; /* TUPLE, LIST: items; DICT: keys and values */
  const struct cap_pickled **item;
  rule_dtype dtype; /* STORAGE, TENSOR */
  bool untyped;     /* STORAGE: its dtype is the tensor's */
  rule_shape shape; /* TENSOR */
  int64_t stride[RULE_MAX_RANK];
} cap_pickled;

/* Read a pickle of tensors and plain values (numbers, strings, tuples, lists, dictionaries). Every
 * other object is refused by its name; nothing is ever called. Owns: in the arena. Values may be
 * shared, and contain themselves. Errors: the reason alone. */
ISO_MUST_USE iso_code cap_unpickle(const cap_bytes *text, iso_arena *a, const cap_pickled **out,
                                   iso_error *err);

/* A file of torch.save. */
typedef struct cap_saved cap_saved;
ISO_MUST_USE iso_code cap_saved_open(cap_bytes *file, uint64_t *budget, cap_saved **out,
                                     iso_error *err);
void cap_saved_close(cap_saved *s);
const cap_pickled *cap_saved_value(const cap_saved *s); /* borrowed */
ISO_MUST_USE iso_code cap_saved_tensor(cap_saved *s, const cap_pickled *t, rule_tensor **out,
                                       iso_error *err);

/* ---- safetensors.c ---- */

/* The same as cap_tensors_open over a copy of `n` bytes; messages name it `path`. */
ISO_MUST_USE iso_code cap_tensors_from(const void *bytes, size_t n, const char *path,
                                       cap_tensors **out, iso_error *err);

/* ---- shards.c: a graph's weights, in one file or several ---- */

typedef struct cap_weights cap_weights;
/* The weights in a folder: weights.safetensors and a checkpoint (model.safetensors, or
 * model.safetensors.index.json and its shards), of which one must be there. Owns:
 * cap_weights_close; tensors stay valid. */
ISO_MUST_USE iso_code cap_weights_open(const char *dir, cap_weights **out, iso_error *err);
void cap_weights_close(cap_weights *w);
/* Returns: in `out` a tensor or NULL, in `path` the file it is in, or should be (borrowed). Owns:
 * caller unrefs. */
ISO_MUST_USE iso_code cap_weights_get(cap_weights *w, const char *name, rule_tensor **out,
                                      const char **path, iso_error *err);

/* ---- graph.c ---- */

typedef struct cap_text {
  const char *at;
  size_t n;
} cap_text;
/* Parse, check and lower a graph.json without any tensors: leaves have no value, and there is one
 * input set of NULLs. Messages name the file `dir` "/graph.json". Owns: cap_free. */
ISO_MUST_USE iso_code cap_parse(cap_text text, const char *dir, const cap_options *o,
                                rule_schemas *schemas, cap_graph **out, iso_error *err);

/* Reads the metadata: words about ranks, leaves that are written, outputs that are not tensors,
 * numbers that were read. `metadata` NULL: none of these (metadata.c). */
ISO_MUST_USE iso_code cap_read_metadata(cap_graph *g, const json_t *metadata, iso_error *err);

/* Load an archive of torch.export.save from memory; messages name it `path`. Owns: cap_free. */
ISO_MUST_USE iso_code cap_load_archive(cap_bytes *file, const char *path, const cap_options *o,
                                       rule_schemas *schemas, cap_graph **out, iso_error *err);

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
  const cap_node *node;       /* those before the node in hand are complete */
  const cap_written *written; /* sizes stay as they are written; NULL: they are numbers */
} cap_lowering;

/* Notes which of its places were written as counted from the end. Requires: cap_lower has passed.
 */
ISO_MUST_USE iso_code cap_note_ends(const cap_lowering *l, const cap_raw *raw, cap_node *node,
                                    iso_error *err);
/* The call of operator node `node` (not getitem), whose id, op and outputs are filled in.
 * Errors: ISO_FORMAT with the reason alone. */
ISO_MUST_USE iso_code cap_lower(const cap_lowering *l, const cap_node *node, const cap_raw *raw,
                                const rule_term **out, iso_error *err);
/* Whether it asks for a memory format in which its result does not lie row by row. Requires:
 * cap_lower has passed. */
bool cap_reorders(const cap_raw *raw);
/* Resolve {"ref": id} to the index of an earlier node. `projected`: by getitem, which may name a
 * node of several outputs. */
ISO_MUST_USE iso_code cap_lower_ref(const cap_lowering *l, const json_t *v, bool projected,
                                    uint32_t *out, iso_error *err);

/* ---- between graph.c, load.c and edit.c ---- */

typedef struct impl {
  cap_tensors *trace; /* NULL where there is none */
  cap_graph **after;  /* calls that were put behind this one, up to NULL; their memory is read */
  rule_tensor **input;
  rule_tensor **weight;  /* by node; NULL unless a parameter, buffer or constant */
  const char **stored;   /* by node, while tensors are read: the leaf's name in its file; NULL, and
                            NULL of a node: its own */
  struct cap_role *role; /* of cap_options.keep_role; NULL: none */
} impl;

iso_code cap_no_memory(iso_error *err);
/* A node that calls an operator, with no word of where it is from. */
cap_node cap_operator_node(const char *id, const rule_term *call, const cap_output *output,
                           size_t n_outputs);
void cap_show_values(cap_graph *g);

/* ---- between graph.c and load.c ---- */
iso_code cap_take_value(rule_tensor *x, const cap_node *node, const char *path, rule_tensor **out,
                        iso_error *err);
iso_code cap_load_tensors(cap_graph *g, const char *path, rule_tensor **slot, iso_error *err);
iso_code cap_grow_inputs(cap_graph *g, size_t set, size_t *cap, iso_error *err);
iso_code cap_load_values(cap_graph *g, const cap_options *o, iso_error *err);

/* ---- roles/role.c: ranks that run one program ---- */

typedef struct cap_role {
  uint32_t n_ranks;
  uint32_t *own; /* by node: of leaves of which each rank has its own tensor, a number from 1 that
                    counts inputs and others apart; 0: there is one for all */
  uint32_t n_inputs, n_weights; /* of these */
  rule_tensor **value;          /* by leaf and rank: weights, then the inputs of each set */
  size_t n_values, cap;
} cap_role;
/* The graph that was read is one rank's, of ranks as `said` says. `kept`: it stays so, else it
 * becomes that of all. Errors: ISO_FORMAT, ISO_LIMIT; ISO_NOMEM. */
ISO_MUST_USE iso_code cap_read_role(cap_graph *g, const json_t *said, bool kept, iso_error *err);
/* Whether all ranks of a role meet in the node. */
bool cap_role_joins(const cap_node *n);
/* A leaf's tensor of that name. Returns: in `path` the file where it is, or should be. */
typedef iso_code cap_get_fn(void *ctx, const char *name, rule_tensor **out, const char **path,
                            iso_error *err);
/* Adds the tensors that the ranks have of the leaf, where each has its own. Leaves are added in the
 * graph's order, inputs after all others and set by set. */
ISO_MUST_USE iso_code cap_role_add(cap_graph *g, size_t node, cap_get_fn *get, void *ctx,
                                   iso_error *err);
/* The graph is no longer that of a rank. */
void cap_role_end(cap_graph *g);

/* ---- roles/spread.c ---- */
/* The graph of one rank becomes that of all: a leaf, an operator and an output for each rank, and
 * collectives of all of them. Errors: ISO_LIMIT, ISO_NOMEM. */
ISO_MUST_USE iso_code cap_spread(cap_graph *g, const cap_role *role, iso_error *err);

/* ---- fold.c ---- */
/* A copy in `a`, with node to[i] in place of node i. NULL: no memory. */
const rule_term *cap_renumber(iso_arena *a, const rule_term *t, const uint32_t *to);

/* ---- edit.c ---- */
/* Operators convert integers beside floats to the dtype in which they compute. Where that rounds,
 * it becomes a cast of its own, as a program may write it: k * x is to(k, float32) * x. Before
 * tensors are there. */
ISO_MUST_USE iso_code cap_promote(cap_graph *g, iso_error *err);

/* ---- between graph.c and symbols.c ---- */
/* Reads `dim` and `sized` of cap_node from node `v`, whose numbers are read; `raw`: NULL of a
 * leaf. */
ISO_MUST_USE iso_code cap_read_sized(const cap_lowering *lower, const cap_written *written,
                                     const json_t *v, const cap_raw *raw, cap_node *node,
                                     iso_error *err);

/* ---- between lower.c and lower_sizes.c ---- */
iso_code cap_given(const rule_term *t, const rule_term **out, iso_error *err);
const rule_term **cap_new_list(const cap_lowering *l, size_t n);
size_t cap_find_arg(const rule_schema *s, const char *name);
iso_code cap_one_spelling(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                          const rule_term **child, iso_error *err);
/* Requires: of the same node, cap_one_spelling has succeeded. */
iso_code cap_one_spelling_sized(const cap_lowering *l, const cap_node *node, const rule_schema *s,
                                const rule_term **child, iso_error *err);

#endif
