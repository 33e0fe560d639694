/* Captures on disk to checked graphs; needs no libtorch.
 *
 * A capture is a directory (docs/capture-format.md): graph.json, weights.safetensors,
 * inputs*.safetensors and perhaps trace.safetensors. `cap_load` reads it strictly: whatever is
 * malformed is one error that names the file, the node and the reason. Weights are views of the
 * mapped files and live as long as somebody holds the tensor. Weights that weights.safetensors
 * lacks are looked for in a checkpoint beside it: model.safetensors, or the shards that
 * model.safetensors.index.json names.
 *
 * An archive of torch.export.save (.pt2, of PyTorch 2.6 and later) is read as it is: the graph as
 * graph.json would say it, in-place operators made functions, symbolic sizes at the values with
 * which it was exported, and its weights and example inputs. Nothing in it is run.
 *
 * Lowering gives every node a `call`: a term whose RULE_VAR indices are indices of nodes of the
 * same graph. Arguments stand in schema order, complete, and in one spelling. Ints given for floats
 * are floats, one int given for int[k] is a list, numbers given for tensors stay numbers. Device,
 * layout, memory format, pin_memory and non_blocking are none. Negative dimensions (dim, dims,
 * dim0, dim1, axis and the like, of PyTorch's operators) count from the front, and so does the
 * index of a select. -1 among the sizes of view, reshape and expand is the size of the node's
 * output, which the other sizes must equal. A slice's start and end are numbers within the size.
 *
 * An operator that the table lacks is no error here: positional arguments stand as written, then
 * each keyword argument as a list of its name and value, by name.
 *
 * A kernel outside PyTorch becomes its `.isomer` overload where the table has one: every argument
 * of that overload is taken by name from the node's attributes, else from its arguments. What is
 * only written to and a string that only names the context (`layer_name`, once there are
 * attributes) are dropped there. Where the overload has no place for an attribute or an argument
 * that is not at its default, or wants one that the node lacks, or there is none, the node keeps
 * its own name, and its attributes stand behind its arguments as one list of (name, value) lists,
 * by name: two nodes that differ in one stay different operators.
 *
 * A node with several outputs is referred to by getitem nodes only.
 *
 * Sizes may be expressions over symbols (docs/capture-format.md). They are evaluated when the graph
 * is read, at the captured values or at those of cap_options, so that everything behind the reader
 * has numbers. At other values than those captured there are no inputs: cap_move_inputs makes
 * them. */
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
  bool reordered;        /* a memory format is asked for in which results do not lie row by row */
  size_t n_outputs;
  const cap_output *output;
  rule_tensor *value; /* leaves: the captured value (first input set); borrowed from the graph */
  const rule_domain *domain; /* inputs: what their values may be; NULL: anything */
  const char *const *size;   /* inputs of graphs with symbols: by dimension what it is written as,
                                NULL where a number; else NULL */
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
  size_t n_written; /* leaves that the program writes to: what stays in them is no output */
  const char *const *written;
  size_t n_no_tensors; /* what it returns that is no tensor */
  const cap_no_tensor *no_tensor;
  size_t n_reads; /* numbers that the program read out of tensors and went on with, in words */
  const char *const *read;
  size_t n_symbols;
  const cap_symbol *symbol;
  size_t n_guards; /* conditions over the symbols, outside of which the program does other things */
  const char *const *guard;
  size_t n_numbers; /* that stand in its size expressions and guards */
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

/* The parts that a comparison of the two leaves out, in words, beside what is the same on both:
 * leaves that they write to, outputs that are no tensors. Returns in `apart` an output that is no
 * tensor and is another value on each side, NULL where there is none: the two are not one function
 * then, however their tensors compare. All live in `a`. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code cap_what_is_left_out(const cap_graph *const g[2], iso_arena *a,
                                           const char *const **line, size_t *n, const char **apart,
                                           iso_error *err);
/* What each side's program read out of its tensors: assumptions of kind guard, in words that live
 * in `a`. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code cap_what_was_read(const cap_graph *const g[2], iso_arena *a,
                                        const char *const **line, size_t *n, iso_error *err);

/* The number that a symbol is to be. */
typedef struct cap_size {
  const char *name;
  int64_t value;
} cap_size;

/* A size over the graph's symbols, "2*T + 1", as INT, NAME or EXPR. Errors: ISO_FORMAT where it is
 * none; ISO_NOMEM. */
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
} cap_options;
/* The same, with options (NULL: none). */
ISO_MUST_USE iso_code cap_load_with(const char *path, const cap_options *o, rule_schemas *schemas,
                                    cap_graph **out, iso_error *err);
/* Whether the graph's symbols may have these values, one each. Returns: in `broken` the guard, or
 * the symbol's name, that says no; NULL: they may. Errors: ISO_NOMEM. */
ISO_MUST_USE iso_code cap_admits(const cap_graph *g, const int64_t *value, const char **broken,
                                 iso_error *err);
/* Whether `path` is a file, and so an archive if it is anything. */
bool cap_is_archive(const char *path);
void cap_free(cap_graph *g);
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
 * `exclude` is what said->exclude points to, and is written to. Errors: ISO_FORMAT where nothing is
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
/* What a domain says of each number by itself is said of this input's, too. */
ISO_MUST_USE iso_code cap_pass_domain(cap_graph *g, uint32_t node, const rule_domain *d,
                                      iso_error *err);

/* ---- two captures: which inputs are one, and what they are run on (agree.c) ---- */

typedef struct cap_spoken {  /* what a user said of inputs */
  const uint32_t (*pair)[2]; /* left, right: these are one */
  size_t n_pairs;
  const bool *skip[2]; /* by node: others that were spoken of; NULL: none */
} cap_spoken;

typedef struct cap_note {
  rule_assumption kind;
  const char *text;
  int64_t left, right; /* nodes; -1: none */
} cap_note;

typedef struct cap_agreement {
  size_t n_captured; /* of the input sets; those behind them were drawn inside domains */
  size_t n_notes;
  const cap_note *note; /* as long as the left graph */
} cap_agreement;

/* Make the input sets of two captures those of one run. Where inputs of one name (or of one place,
 * where the names differ and kinds and shapes agree) have different values, both graphs get the
 * left's values, and the right's as further sets. Domains of inputs that are one become what is
 * inside all of theirs. Of inputs whose values have a structure, so that they are kept as they are,
 * and of which a domain says what else they may be, further sets are drawn. Errors: ISO_USAGE where
 * nothing can be compared so: other shapes, domains with nothing in common; ISO_NOMEM. */
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

/* The leaves' values will not be read for a while: memory that maps their files is handed back, and
 * comes again when they are. */
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
