/* Captures on disk to checked graphs; needs no libtorch.
 *
 * A capture is a directory (docs/capture-format.md): graph.json, weights.safetensors,
 * inputs*.safetensors and perhaps trace.safetensors. `cap_load` reads it strictly: any malformed
 * part is an error that names the file, the node and the reason. Weights are views of the mapped
 * files and live as long as somebody holds the tensor. Weights that weights.safetensors lacks are
 * looked for in a checkpoint beside it: model.safetensors, or the shards that
 * model.safetensors.index.json names.
 *
 * An archive of torch.export.save (.pt2, of PyTorch 2.6 and later) is read as it is: the graph as
 * graph.json would say it, in-place operators made functions, symbolic sizes at the values with
 * which it was exported, and its weights and example inputs. Nothing in it is run.
 *
 * Lowering gives every node a `call`: a term whose RULE_VAR indices are indices of nodes of the
 * same graph. Arguments are in schema order, complete, and in one spelling. An int given for a
 * float becomes a float, one int given for int[k] becomes a list, and a number given for a tensor
 * stays a number. Device, layout, memory format, pin_memory and non_blocking are none. Negative
 * dimensions (dim, dims, dim0, dim1, axis and the like, of PyTorch's operators) count from the
 * front, and so does the index of a select. -1 among the sizes of view, reshape and expand is the
 * size of the node's output, which the other sizes must equal. A slice's start and end are numbers
 * within the size.
 *
 * An operator that the table lacks is no error here: its call has the positional arguments as
 * written, then each keyword argument as a list of its name and value, sorted by name.
 *
 * A kernel outside PyTorch becomes its `.isomer` overload where the table has one: every argument
 * of that overload is taken by name from the node's attributes, else from its arguments. Arguments
 * that are only written to are dropped, and so is a string that only names the context
 * (`layer_name`, once there are attributes). The node keeps its own name where there is no such
 * overload, where the overload wants an argument that the node lacks, and where it has no place for
 * an attribute or for an argument that is not at its default. Its attributes then follow its
 * arguments as one list of (name, value) lists, sorted by name, so that two nodes that differ in
 * one of them stay different operators.
 *
 * A node with several outputs is referred to by getitem nodes only.
 *
 * Sizes may be expressions over symbols (docs/capture-format.md). They are evaluated when the graph
 * is read, at the captured values or at those of cap_options, so that all code after the reader
 * sees numbers. At values other than the captured ones the graph has no inputs: cap_move_inputs
 * makes them. */
#ifndef CAPTURE_CAPTURE_H
#define CAPTURE_CAPTURE_H

#include "rules/assumption.h"
#include "rules/domain.h"
#include "rules/rules.h"

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef enum cap_kind { CAP_INPUT, CAP_PARAMETER, CAP_BUFFER, CAP_CONSTANT, CAP_OP } cap_kind;

typedef struct cap_output {
  rule_shape shape;
  rule_dtype dtype;
} cap_output;

/* A size that the program does not fix. */
typedef struct cap_symbol {
  const char *name;
  int64_t min, max; /* max: INT64_MAX where nothing bounds it */
  int64_t value;    /* at which it was captured */
  int64_t now;      /* at which this graph was read */
} cap_symbol;

typedef struct cap_node {
  const char *id, *name; /* name: of a leaf, else NULL */
  cap_kind kind;         /* CAP_OP for getitem too */
  const char *op;        /* as in the file */
  const rule_term *call; /* NULL for leaves; RULE_VAR i is node i */
  bool reordered;        /* its elements do not lie row by row: of a leaf so said, else by a memory
                            format that is asked for */
  size_t n_outputs;
  const cap_output *output;
  rule_tensor *value; /* leaves: the captured value (first input set); borrowed from the graph */
  const rule_domain *domain; /* inputs: the values that they may have; NULL: all */
  bool kept; /* inputs: it is drawn in input sets alone (agree.c), and is a constant otherwise */
  bool by_chance;    /* and by what so few numbers are by chance */
  uint32_t part_of;  /* inputs: one more than the input of the other graph of which it is its rank's
                        part (agree.c), 0: of none */
  uint32_t part_dim; /* along which, and the first of its rows there */
  int64_t part_from;
  const char *const *size; /* inputs of graphs with symbols: by dimension the size as written, NULL
                              where it is a number; else NULL */
  /* Of graphs with symbols, else NULL. Sizes are INT, NAME of a symbol, or EXPR over such: "+",
   * "-", "*", "//", "%", "min", "max", and of places in a dimension (place, size): "bound" and
   * "wrap", that place counted from the front, within the dimension or not. */
  const rule_term *const *dim; /* the sizes of output 0 */
  const rule_term *sized;      /* the call with sizes for numbers; NULL: it is not to be had */
  const char *scope, *source, *caller; /* "" where not given */
  /* It multiplies or divides by a number of ranks, which is 1 for one rank; by one that counts
   * neither ranks nor elements. */
  bool counts_ranks, counts_elements, counts_nothing;
  /* It was written with places that count from the end, of which the call has the same counted from
   * the front: an index or a beginning, an end. */
  bool from_end, to_end;
} cap_node;

typedef struct cap_result {
  const char *name;
  uint32_t node;
} cap_result;

/* An output that is a number, a text or none. */
typedef struct cap_no_tensor {
  const char *output, *value; /* its name; as JSON writes it, reals to 17 digits */
  bool known;                 /* two of one text are one value */
} cap_no_tensor;

typedef struct cap_graph {
  const char *path, *model, *framework, *framework_version, *torch_version; /* "" where not given */
  /* The metadata's words about ranks: "dp=2,tp=4", and a line "name = S(0)" for each tensor; ""
   * where nothing, "?" where it is of another form. */
  const char *mesh, *placements;
  size_t n_written; /* leaves that the program writes to: their final values are no outputs */
  const char *const *written;
  size_t n_no_tensors; /* results of the program that are not tensors */
  const cap_no_tensor *no_tensor;
  size_t n_reads; /* numbers that the program read out of tensors and went on with, in words */
  const char *const *read;
  size_t n_then; /* captures of later calls that are in this graph (calls/calls.h) */
  const char *const *then;
  size_t n_said; /* how they were put together, in words */
  const char *const *said;
  size_t n_symbols;
  const cap_symbol *symbol;
  size_t n_guards; /* conditions over the symbols, outside of which the program does other things */
  const char *const *guard;
  size_t n_numbers; /* that occur in its size expressions and guards */
  const int64_t *number;
  size_t n_nodes;
  const cap_node *node;
  size_t n_results;
  const cap_result *result;
  size_t n_sets;             /* input sets, at least 1 */
  rule_tensor *const *input; /* n_sets * n_nodes: value of node i in set s at [s * n_nodes + i],
                                NULL unless an input */
  rule_schemas *schemas;     /* borrowed */
  iso_arena arena;           /* private */
  void *impl;                /* private */
} cap_graph;

/* Load and lower a capture, or an archive of torch.export.save (a file, in place of a folder).
 * `schemas` must outlive the graph. Owns: cap_free. Errors: ISO_IO, ISO_FORMAT, ISO_RANGE,
 * ISO_LIMIT, ISO_UNSUPPORTED, the message beginning with the file's path; ISO_NOMEM. */
ISO_MUST_USE iso_code cap_load(const char *path, rule_schemas *schemas, cap_graph **out,
                               iso_error *err);

/* In words, how several calls of a side were put together, and the parts that a comparison of the
 * two leaves out, unless both sides have the same: leaves that they write to, outputs that are not
 * tensors. Returns: in `apart` an output that is
 * not a tensor and whose value differs between the sides; NULL: there is none. With such an output
 * the two are not one function, however their tensors compare. All texts live in `a`. Errors:
 * ISO_NOMEM. */
ISO_MUST_USE iso_code cap_what_is_left_out(const cap_graph *const g[2], iso_arena *a,
                                           const char *const **line, size_t *n, const char **apart,
                                           iso_error *err);
/* The numbers that each side's program read out of its tensors: assumptions of kind guard, in words
 * that live in `a`. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code cap_what_was_read(const cap_graph *const g[2], iso_arena *a,
                                        const char *const **line, size_t *n, iso_error *err);

/* The number that a symbol is to be. */
typedef struct cap_size {
  const char *name;
  int64_t value;
} cap_size;

/* Parses a size over the graph's symbols, such as "2*T + 1", to INT, NAME or EXPR. Errors:
 * ISO_FORMAT where `text` is not a size; ISO_NOMEM. */
ISO_MUST_USE iso_code cap_read_size(const cap_graph *g, const char *text, iso_arena *a,
                                    const rule_term **out, iso_error *err);

typedef struct cap_options {
  /* Archives only: safetensors files with the inputs, one for each input set, in place of the
   * example inputs that the archive has. Borrowed. */
  const char *const *inputs;
  size_t n_inputs;
  const cap_size *size; /* of symbols that are not to be as captured */
  size_t n_sizes;
  bool no_weights; /* parameters need not be there: then their value is NULL */
  /* Calls that leave the order of their results open are read as ones that sort, where no output
   * sees the order (orders/). */
  bool sort_unseen;
  /* Ranks that are written once (version 3) stay one graph, that of each of them, whose leaves have
   * the first rank's values: for roles_fold, which alone knows of the others, and needs their
   * weights. */
  bool keep_role;
} cap_options;
/* The same, with options (NULL: none). */
ISO_MUST_USE iso_code cap_load_with(const char *path, const cap_options *o, rule_schemas *schemas,
                                    cap_graph **out, iso_error *err);
/* Whether the graph's symbols may have these values, one each. Returns: in `broken` the guard that
 * fails, or the name of the symbol whose bounds do; NULL: they may. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code cap_admits(const cap_graph *g, const int64_t *value, const char **broken,
                                 iso_error *err);
/* Whether `path` is a file: a capture that is a file is an archive. */
bool cap_is_archive(const char *path);
void cap_free(cap_graph *g);
/* Of a graph that is each rank's: how many ranks there are; 0: it is none. */
uint32_t cap_role_ranks(const cap_graph *g);
/* The rank's tensor of a leaf in an input set; borrowed. Of other graphs, the leaf's. */
rule_tensor *cap_role_value(const cap_graph *g, size_t node, uint32_t rank, size_t set);
/* Whether two nodes have as many outputs, of the same shapes and dtypes. */
bool cap_same_outputs(const cap_node *a, const cap_node *b);

/* Additions by a user to a loaded graph. Append an operator over its nodes, of one output; `call`
 * is as in cap_node and lives as long as the graph, `id` is made one that no node has. Errors:
 * ISO_NOMEM, and then nothing changed; ISO_LIMIT. */
ISO_MUST_USE iso_code cap_append(cap_graph *g, const char *id, const rule_term *call,
                                 const cap_output *output, uint32_t *node, iso_error *err);
/* The result of a call of a term. */
typedef struct cap_typed_call {
  const rule_term *term;
  cap_output what;
} cap_typed_call;
/* A parameter that was computed from leaves of another graph when its model was loaded. */
typedef struct cap_fold {
  uint32_t leaf;         /* of the graph that is changed */
  const cap_graph *from; /* the other graph */
  const rule_term *term; /* over its nodes: leaves that are no inputs, and operators over such */
  const cap_typed_call *call; /* of every call in the term */
  size_t n_calls;
} cap_fold;
/* The parameter becomes the computation, over copies of these leaves (or over those of one name and
 * value that the graph has). Other nodes keep their ids, and are numbered anew. Errors: ISO_NOMEM,
 * ISO_LIMIT, and then nothing changed. */
ISO_MUST_USE iso_code cap_fold_leaf(cap_graph *g, const cap_fold *f, iso_error *err);
/* Other results in place of those that it has; `result` is copied, the names are not. Errors:
 * ISO_NOMEM. */
ISO_MUST_USE iso_code cap_set_results(cap_graph *g, const cap_result *result, size_t n,
                                      iso_error *err);
/* A node that takes the place of others. `value`: of a leaf, one for each input set of an input,
 * else one. */
typedef struct cap_new_node {
  cap_node node; /* its texts and terms live as long as the graph; `value` is not read */
  rule_tensor *const *value;
} cap_new_node;
/* Other nodes in place of all that the graph has, in topological order, of fresh ids and names. It
 * has no results then: cap_set_results. Values are referred to, and stay the caller's. Errors:
 * ISO_NOMEM, and then nothing changed. */
ISO_MUST_USE iso_code cap_replace_nodes(cap_graph *g, const cap_new_node *node, size_t n,
                                        iso_error *err);
/* The domain that `said` gives to an input, in words that its dtype and shape allow, from `a`.
 * `exclude` is the array of said->exclude, and is written to. Errors: ISO_FORMAT where no value is
 * inside. */
ISO_MUST_USE iso_code cap_domain_new(iso_arena *a, const rule_domain *said, double *exclude,
                                     const cap_node *node, const rule_domain **out, iso_error *err);
/* "any", "left" or "right". Returns: false for other words. */
bool cap_mask_form(const char *word, unsigned *out);
/* Whether the captured values of an input are inside its domain. Errors: ISO_FORMAT with the
 * graph's path and the node. */
ISO_MUST_USE iso_code cap_check_domain(const cap_graph *g, uint32_t node, iso_error *err);
/* Another domain for an input; it lives as long as the graph. */
void cap_set_domain(cap_graph *g, uint32_t node, const rule_domain *d);
void cap_keep_input(cap_graph *g, uint32_t node, bool by_chance);
/* The input is rows of `whole` of the other graph, along `dim` and from `from` on. */
void cap_set_part(cap_graph *g, uint32_t node, uint32_t whole, uint32_t dim, int64_t from);
/* Bounds this input by the part of `d` that is about single numbers: its range and its exclusions.
 * Relations between elements are not passed on. */
ISO_MUST_USE iso_code cap_pass_domain(cap_graph *g, uint32_t node, const rule_domain *d,
                                      iso_error *err);

/* ---- two captures: which inputs are one, and the input sets of both (agree.c) ---- */

typedef struct cap_spoken {  /* a user's statements about inputs */
  const uint32_t (*pair)[2]; /* left, right: these are one */
  size_t n_pairs;
  const bool *skip[2]; /* by node: others that were spoken of; NULL: none */
  /* By bit: of inputs that may be what is kept on one side and what is left out on the other
   * (n_doubts of the agreement), in the order of the left's nodes, those that are read so. */
  unsigned opposed;
} cap_spoken;

typedef struct cap_note {
  rule_assumption kind;
  const char *text;
  int64_t left, right; /* nodes; -1: none */
} cap_note;

typedef struct cap_agreement {
  size_t n_captured; /* of the input sets; later ones were drawn inside domains */
  size_t n_said;     /* and after these by what inputs of zeros and ones look like */
  size_t n_sure;     /* a difference on those from here on may be none: `unsure` says why */
  const char *unsure;
  const char *doubt; /* why no difference at all may be one, NULL: there is no such reason */
  size_t n_doubts;   /* inputs that make it so */
  size_t n_notes;
  const cap_note *note; /* as long as the left graph */
} cap_agreement;

/* Make the input sets of two captures those of one run. Where inputs of one name (or of one place,
 * where the names differ and kinds and shapes agree) have different values, both graphs get the
 * left's values, and the right's as further sets. Inputs that are one get the intersection of their
 * domains. Inputs whose values have a structure are kept as they are; where a domain says which
 * other values they may have, or they look like masks, further sets are drawn from that. Errors:
 * ISO_USAGE where the two cannot be compared so: different shapes, domains with nothing in common;
 * ISO_NOMEM. */
ISO_MUST_USE iso_code cap_agree(cap_graph *left, cap_graph *right, const cap_spoken *said,
                                uint64_t seed, cap_agreement *out, iso_error *err);

/* ---- two captures at other sizes (agree_sizes.c) ----
 * `left` and `right` are as captured, and were agreed. */

/* The values of the right's symbols that go with `value` of the left's: by name, and by the inputs
 * that are one. Errors: ISO_USAGE where there are none. */
ISO_MUST_USE iso_code cap_relate_sizes(const cap_graph *left, const cap_graph *right,
                                       const int64_t *value, int64_t *out, iso_error *err);
/* Inputs for the two graphs `to`, which are those of `from` read at other sizes: inputs that are
 * one have one value. Errors: ISO_USAGE where an input cannot be made. */
ISO_MUST_USE iso_code cap_move_inputs(const cap_graph *const from[2], cap_graph *const to[2],
                                      uint64_t seed, iso_error *err);

/* Parameters of both keep their captured values: they are constants from now on, and that is noted.
 * Errors: ISO_NOMEM, and then nothing changed. */
ISO_MUST_USE iso_code cap_pin(cap_graph *left, cap_graph *right, cap_agreement *a, iso_error *err);

/* Hints that the leaves' values will not be read for a while: the pages that map their files are
 * given back to the system, and are read again on the next access. */
void cap_idle(const cap_graph *g);
/* The recorded value of output `k` of node `i`. Owns: caller unrefs. Returns ISO_OK and NULL where
 * the capture has none. Errors: ISO_FORMAT where its shape or dtype is not the graph's. */
ISO_MUST_USE iso_code cap_trace(const cap_graph *g, uint32_t node, size_t k, rule_tensor **out,
                                iso_error *err);
bool cap_has_trace(const cap_graph *g);

/* ---- safetensors ---- */

typedef struct cap_tensors cap_tensors; /* a mapped file and its index */
/* Map `path` and check its header: bounds, overlaps, sizes against shapes, dtypes, duplicate keys.
 * Owns: cap_tensors_close (tensors taken from it stay valid). */
ISO_MUST_USE iso_code cap_tensors_open(const char *path, cap_tensors **out, iso_error *err);
void cap_tensors_close(cap_tensors *t);
size_t cap_tensors_count(const cap_tensors *t);
const char *cap_tensors_name(const cap_tensors *t, size_t i); /* in the header's order */
/* A view of the mapped bytes (copied only where they are misaligned). Returns ISO_OK and NULL where
 * there is none. */
ISO_MUST_USE iso_code cap_tensors_get(cap_tensors *t, const char *name, rule_tensor **out,
                                      iso_error *err);

typedef struct cap_named_tensor {
  const char *name;
  const rule_tensor *tensor;
} cap_named_tensor;
/* Write a safetensors file (to a temporary file beside it, then renamed). */
ISO_MUST_USE iso_code cap_tensors_save(const char *path, const cap_named_tensor *t, size_t n,
                                       iso_error *err);

#ifdef __cplusplus
}
#endif
#endif
