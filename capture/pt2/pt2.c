/* Archives of torch.export.save (.pt2), read without Python: three generations, told apart by their
 * contents.
 *
 * Up to PyTorch 2.7 the files lie at the top of the zip file and weights, constants and example
 * inputs are files of torch.save; from 2.8 on there is a folder, in it `archive_format`,
 * `models/NAME.json` and `data/`, where 2.8 has a file of torch.save for the weights and another
 * for the constants, and later ones a configuration beside raw storages. The graph's JSON is the
 * same in all of them (pt2_graph.c). Weights are views of the mapped file where they are stored,
 * dense and aligned.
 *
 * An archive is data: nothing in it is run, and no name in it is used as a path.
 *
 * Source: PyTorch, torch/export/pt2_archive/constants.py and torch/_export/serde/serialize.py. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/pt2/pt2_int.h"
#include "egraph/base/vec.h"

enum { MAX_MODEL = 1 << 30, MAX_LEAVES = 1 << 20, MAX_TREE = 200 };
static const uint64_t ROOM_BYTES = 1u << 30,
                      ROOM_TIMES =
                          16; /* what reading may allocate: this, and so often the file's size */

/* One of weights and constants. */
typedef struct table {
  json_t *config; /* raw storages */
  const char *folder;
  cap_saved *saved; /* or a file of torch.save */
  cap_names names;  /* keys of its dictionary */
} table;

struct pt2_archive {
  cap_archive *zip;
  iso_arena arena;
  uint64_t budget;
  const char *model_path, *example_path, *model;
  json_t *exported;
  table weights, constants;
  pt2_program program;
  cap_names leaves;
  cap_saved *example;
  const cap_pickled **item; /* the example's leaves, by place */
  size_t n_items, cap_items;
};

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- weights and constants ---- */

static iso_code open_saved(pt2_archive *a, const char *path, cap_saved **out, iso_error *err) {
  cap_bytes *b = NULL;
  iso_code code = cap_archive_read(a->zip, path, &b, err);
  if (code != ISO_OK) return code;
  code = cap_saved_open(b, &a->budget, out, err);
  cap_bytes_unref(b);
  if (code != ISO_OK) iso_prefix(err, "entry \"%.120s\": ", path);
  return code;
}

static iso_code index_dictionary(table *t, iso_error *err) {
  const cap_pickled *d = cap_saved_value(t->saved);
  if (d->kind != CAP_PK_DICT)
    return iso_fail(err, ISO_FORMAT, "its pickle is no dictionary of tensors");
  for (size_t i = 0; i + 1 < d->n; i += 2) {
    if (d->item[i]->kind != CAP_PK_STRING)
      return iso_fail(err, ISO_FORMAT, "a key of its dictionary is no string");
    if (cap_names_find(&t->names, d->item[i]->s) != CAP_NO_INDEX)
      return iso_fail(err, ISO_FORMAT, "\"%.120s\" is there twice", d->item[i]->s);
    if (!cap_names_add(&t->names, d->item[i]->s, i + 1)) return no_memory(err);
  }
  return ISO_OK;
}

/* Python's json writes infinities and NaN as words, which JSON does not know; later versions of
 * PyTorch write them as strings, and so does this. Returns: the length of the word at `at`, 0 where
 * there is none. */
static size_t word_at(const unsigned char *at, size_t left) {
  static const char *const words[] = {"-Infinity", "Infinity", "NaN"};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
    if (left >= strlen(words[i]) && memcmp(at, words[i], strlen(words[i])) == 0)
      return strlen(words[i]);
  return 0;
}

/* `to` with quotes around those words, `from` outside of strings; NULL: only count. Returns: the
 * length. */
static size_t quote_words(const cap_bytes *from, unsigned char *to) {
  size_t n = 0;
  bool in_string = false;
  for (size_t i = 0; i < from->n;) {
    const unsigned char c = from->at[i];
    const size_t word = in_string ? 0 : word_at(from->at + i, from->n - i),
                 copied = word > 0                                    ? word
                          : in_string && c == '\\' && i + 1 < from->n ? 2
                                                                      : 1;
    if (to != NULL && word > 0) to[n] = to[n + word + 1] = '"';
    if (to != NULL) memcpy(to + n + (word > 0), from->at + i, copied);
    n += copied + (word > 0 ? 2 : 0);
    i += copied;
    if (c == '"') in_string = !in_string;
  }
  return n;
}

static iso_code in_json(cap_bytes **b, iso_error *err) {
  const size_t n = quote_words(*b, NULL);
  cap_bytes *fresh = NULL;
  if (n == (*b)->n) return ISO_OK;
  iso_code code = cap_bytes_new(n, &fresh, err);
  if (code != ISO_OK) return code;
  quote_words(*b, fresh->at);
  cap_bytes_unref(*b);
  *b = fresh;
  return ISO_OK;
}

static iso_code read_json(pt2_archive *a, const char *path, json_t **out, iso_error *err) {
  cap_bytes *b = NULL;
  json_error_t je;
  iso_code code = cap_archive_read(a->zip, path, &b, err);
  if (code == ISO_OK && b->n <= MAX_MODEL) code = in_json(&b, err);
  if (code != ISO_OK) {
    cap_bytes_unref(b);
    return code;
  }
  if (b->n > MAX_MODEL)
    code = iso_fail(err, ISO_LIMIT, "entry \"%.120s\": %zu bytes are too many", path, b->n);
  else if ((*out = json_loadb((const char *)b->at, b->n, JSON_REJECT_DUPLICATES, &je)) == NULL)
    code = cap_json_no_memory(&je)
               ? no_memory(err)
               : iso_fail(err, ISO_FORMAT, "entry \"%.120s\": line %d, column %d: %s", path,
                          je.line, je.column, je.text);
  cap_bytes_unref(b);
  return code;
}

/* `config` is the path of a configuration, `saved` that of a file of torch.save: whichever is
 * there. */
static iso_code open_table(pt2_archive *a, const char *config, const char *saved, table *t,
                           iso_error *err) {
  if (config == NULL || saved == NULL) return no_memory(err);
  if (cap_archive_has(a->zip, config)) {
    iso_code code = read_json(a, config, &t->config, err);
    if (code == ISO_OK && !json_is_object(json_object_get(t->config, "config")))
      code = iso_fail(err, ISO_FORMAT, "entry \"%.120s\": there is no \"config\"", config);
    t->folder = iso_arena_strndup(&a->arena, config, (size_t)(strrchr(config, '/') + 1 - config));
    return code == ISO_OK && t->folder == NULL ? no_memory(err) : code;
  }
  if (!cap_archive_has(a->zip, saved)) return ISO_OK; /* a program without weights may have none */
  iso_code code = open_saved(a, saved, &t->saved, err);
  if (code == ISO_OK && (code = index_dictionary(t, err)) != ISO_OK)
    iso_prefix(err, "entry \"%.120s\": ", saved);
  return code;
}

/* The one tensor of a file of torch.save. */
static iso_code saved_tensor(pt2_archive *a, const char *path, rule_tensor **out, iso_error *err) {
  cap_saved *s = NULL;
  iso_code code = open_saved(a, path, &s, err);
  if (code == ISO_OK) code = cap_saved_tensor(s, cap_saved_value(s), out, err);
  cap_saved_close(s);
  return code;
}

static iso_code raw_tensor(pt2_archive *a, const table *t, const json_t *entry, rule_tensor **out,
                           iso_error *err) {
  const char *name = json_string_value(json_object_get(entry, "path_name"));
  pt2_cell meta;
  int64_t offset = 0;
  cap_bytes *b = NULL;
  if (name == NULL || strchr(name, '/') != NULL)
    return iso_fail(err, ISO_FORMAT, "its configuration names no entry beside it");
  const char *path = iso_arena_printf(&a->arena, "%s%s", t->folder, name);
  if (path == NULL) return no_memory(err);
  if (json_is_true(json_object_get(entry, "use_pickle"))) return saved_tensor(a, path, out, err);
  iso_code code = pt2_meta(json_object_get(entry, "tensor_meta"), &meta, &offset, err);
  if (code == ISO_OK) code = cap_archive_read(a->zip, path, &b, err);
  if (code == ISO_OK)
    code = cap_bytes_view(b, &(cap_strided){meta.dtype, &meta.shape, meta.stride, offset},
                          &a->budget, out, err);
  cap_bytes_unref(b);
  return code;
}

/* Returns: in `out` NULL where the table has no tensor of that name. */
static iso_code from_table(pt2_archive *a, const table *t, const char *name, rule_tensor **out,
                           iso_error *err) {
  *out = NULL;
  const json_t *entry = json_object_get(json_object_get(t->config, "config"), name);
  if (entry != NULL) return raw_tensor(a, t, entry, out, err);
  size_t at = t->saved != NULL ? cap_names_find(&t->names, name) : CAP_NO_INDEX;
  return at != CAP_NO_INDEX
             ? cap_saved_tensor(t->saved, cap_saved_value(t->saved)->item[at], out, err)
             : ISO_OK;
}

static iso_code fetch(void *ctx, const char *name, bool constant, rule_tensor **out,
                      iso_error *err) {
  pt2_archive *a = ctx;
  iso_code code = from_table(a, constant ? &a->constants : &a->weights, name, out, err);
  if (code == ISO_OK && *out == NULL)
    code = from_table(a, constant ? &a->weights : &a->constants, name, out, err);
  if (code == ISO_OK && *out == NULL)
    code = iso_fail(err, ISO_FORMAT, "the archive has no tensor of that name");
  if (code != ISO_OK) iso_prefix(err, "tensor \"%.120s\": ", name);
  return code;
}

/* ---- the layout ---- */

static const char *path_of(pt2_archive *a, const char *root, const char *middle, const char *name,
                           const char *end) {
  return iso_arena_printf(&a->arena, "%s%s%s%s", root, middle, name, end);
}

/* The folder that holds `archive_format`, with its slash; NULL where there is none. */
static const char *root_folder(pt2_archive *a) {
  for (size_t i = 0; i < cap_archive_count(a->zip); i++) {
    const char *name = cap_archive_name(a->zip, i), *slash = strchr(name, '/');
    if (slash != NULL && strcmp(slash, "/archive_format") == 0)
      return iso_arena_strndup(&a->arena, name, (size_t)(slash + 1 - name));
  }
  return NULL;
}

/* The one model's name. */
static iso_code only_model(pt2_archive *a, const char *root, const char **out, iso_error *err) {
  const char *folder = iso_arena_printf(&a->arena, "%smodels/", root), *found = NULL;
  if (folder == NULL) return no_memory(err);
  for (size_t i = 0; i < cap_archive_count(a->zip); i++) {
    const char *name = cap_archive_name(a->zip, i);
    if (strncmp(name, folder, strlen(folder)) != 0) continue;
    name += strlen(folder);
    const size_t n = strlen(name);
    if (n <= 5 || strcmp(name + n - 5, ".json") != 0 || strchr(name, '/') != NULL) continue;
    if (found != NULL)
      return iso_fail(err, ISO_UNSUPPORTED,
                      "the archive holds several models (\"%.80s\" and another); save one", found);
    if ((found = iso_arena_strndup(&a->arena, name, n - 5)) == NULL) return no_memory(err);
  }
  *out = found;
  return found != NULL ? ISO_OK : iso_fail(err, ISO_FORMAT, "the archive holds no model");
}

static iso_code check_entry(pt2_archive *a, const char *path, const char *want, const char *what,
                            iso_error *err) {
  cap_bytes *b = NULL;
  if (path == NULL) return no_memory(err);
  if (!cap_archive_has(a->zip, path)) return ISO_OK;
  iso_code code = cap_archive_read(a->zip, path, &b, err);
  if (code == ISO_OK && (b->n != strlen(want) || memcmp(b->at, want, b->n) != 0))
    code = iso_fail(err, ISO_UNSUPPORTED, "%s", what);
  cap_bytes_unref(b);
  return code;
}

static iso_code open_flat(pt2_archive *a, iso_error *err) {
  a->model_path = "serialized_exported_program.json";
  a->example_path = "serialized_example_inputs.pt";
  iso_code code = open_table(a, "", "serialized_state_dict.pt", &a->weights, err);
  return code == ISO_OK ? open_table(a, "", "serialized_constants.pt", &a->constants, err) : code;
}

static iso_code open_folder(pt2_archive *a, const char *root, iso_error *err) {
  const char *name = NULL;
  iso_code code = check_entry(a, path_of(a, root, "", "archive_format", ""), "pt2",
                              "archive_format is not \"pt2\"", err);
  if (code == ISO_OK)
    code = check_entry(a, path_of(a, root, "", "byteorder", ""), "little",
                       "its tensors are not little-endian", err);
  if (code == ISO_OK) code = only_model(a, root, &name, err);
  if (code == ISO_OK)
    code = open_table(a, path_of(a, root, "data/weights/", name, "_weights_config.json"),
                      path_of(a, root, "data/weights/", name, ".pt"), &a->weights, err);
  if (code == ISO_OK)
    code = open_table(a, path_of(a, root, "data/constants/", name, "_constants_config.json"),
                      path_of(a, root, "data/constants/", name, ".pt"), &a->constants, err);
  if (code != ISO_OK) return code;
  a->model_path = path_of(a, root, "models/", name, ".json");
  a->example_path = path_of(a, root, "data/sample_inputs/", name, ".pt");
  return a->model_path != NULL && a->example_path != NULL ? ISO_OK : no_memory(err);
}

/* Says of an archive that no torch.export.save wrote which kind it seems to be, and how to convert
 * it. */
static const char *what_it_is(const pt2_archive *a) {
  bool pickle = false, code = false;
  for (size_t i = 0; i < cap_archive_count(a->zip); i++) {
    const char *name = cap_archive_name(a->zip, i);
    const size_t n = strlen(name);
    pickle |= n >= 9 && strcmp(name + n - 9, "/data.pkl") == 0;
    code |= strstr(name, "/code/") != NULL;
  }
  return code     ? "is TorchScript, which is not read: export the module with torch.export"
         : pickle ? "holds weights without a graph (torch.save): torch.export.save writes a graph"
                  : "is no archive of torch.export.save";
}

static iso_code read_program(pt2_archive *a, rule_schemas *schemas, iso_error *err) {
  const char *root = root_folder(a);
  iso_code code;
  if (root != NULL) code = open_folder(a, root, err);
  else if (cap_archive_has(a->zip, "serialized_exported_program.json")) code = open_flat(a, err);
  else return iso_fail(err, ISO_FORMAT, "%s", what_it_is(a));
  if (code == ISO_OK) code = read_json(a, a->model_path, &a->exported, err);
  if (code == ISO_OK)
    code = pt2_translate(a->exported, a->model, schemas, fetch, a, &a->program, err);
  for (size_t i = 0; i < a->program.n_leaves && code == ISO_OK; i++)
    if (!cap_names_add(&a->leaves, a->program.leaf[i].name, i)) code = no_memory(err);
  return code;
}

/* "llama" of "/tmp/llama.pt2" */
static const char *model_name(iso_arena *arena, const char *path) {
  const char *slash = strrchr(path, '/'), *base = slash != NULL ? slash + 1 : path,
             *dot = strrchr(base, '.');
  return iso_arena_strndup(arena, base,
                           dot != NULL && dot != base ? (size_t)(dot - base) : strlen(base));
}

iso_code pt2_open(cap_bytes *file, const char *path, rule_schemas *schemas, pt2_archive **out,
                  iso_error *err) {
  pt2_archive *a = calloc(1, sizeof *a);
  if (a == NULL) return no_memory(err);
  iso_arena_init(&a->arena);
  a->budget = ROOM_BYTES + ROOM_TIMES * file->n;
  a->model = model_name(&a->arena, path);
  iso_code code =
      a->model != NULL ? cap_archive_open(file, &a->budget, &a->zip, err) : no_memory(err);
  if (code == ISO_OK) code = read_program(a, schemas, err);
  if (code == ISO_OK) *out = a;
  else pt2_close(a);
  return code;
}

void pt2_close(pt2_archive *a) {
  if (a == NULL) return;
  table *both[] = {&a->weights, &a->constants};
  for (size_t i = 0; i < 2; i++) {
    json_decref(both[i]->config);
    cap_saved_close(both[i]->saved);
    cap_names_fini(&both[i]->names);
  }
  cap_names_fini(&a->leaves);
  pt2_program_fini(&a->program);
  cap_saved_close(a->example);
  free(a->item);
  json_decref(a->exported);
  cap_archive_close(a->zip);
  iso_arena_fini(&a->arena);
  free(a);
}

json_t *pt2_top(const pt2_archive *a) { return a->program.top; }

rule_tensor *pt2_weight(const pt2_archive *a, const char *name) {
  size_t at = cap_names_find(&a->leaves, name);
  return at != CAP_NO_INDEX ? rule_tensor_ref(a->program.leaf[at].value) : NULL;
}

/* ---- example inputs ---- */

static iso_code add_item(pt2_archive *a, const cap_pickled *v, iso_error *err) {
  if (a->n_items >= MAX_LEAVES) return iso_fail(err, ISO_LIMIT, "too many example inputs");
  if (!iso_grow(a->item, a->cap_items, a->n_items + 1)) return no_memory(err);
  a->item[a->n_items++] = v;
  return ISO_OK;
}

static const cap_pickled *member(const cap_pickled *v, const char *key, size_t i) {
  if (v->kind == CAP_PK_TUPLE || v->kind == CAP_PK_LIST) return i < v->n ? v->item[i] : NULL;
  for (size_t k = 0; v->kind == CAP_PK_DICT && key != NULL && k + 1 < v->n; k += 2)
    if (v->item[k]->kind == CAP_PK_STRING && strcmp(v->item[k]->s, key) == 0) return v->item[k + 1];
  return NULL;
}

/* The leaves of `v` in the order of the tree that the export describes: a dictionary's are found by
 * its keys. */
static iso_code flatten(pt2_archive *a, const json_t *spec, const cap_pickled *v, int depth,
                        iso_error *err) {
  if (depth > MAX_TREE) return iso_fail(err, ISO_LIMIT, "they are nested too deeply");
  if (!json_is_string(json_object_get(spec, "type"))) return add_item(a, v, err);
  const json_t *children = json_object_get(spec, "children_spec");
  const char *context = json_string_value(json_object_get(spec, "context"));
  json_t *keys = context != NULL && *context == '[' ? json_loads(context, 0, NULL) : NULL;
  iso_code code = ISO_OK;
  for (size_t i = 0; i < json_array_size(children) && code == ISO_OK; i++) {
    const cap_pickled *item = member(v, json_string_value(json_array_get(keys, i)), i);
    code = item != NULL ? flatten(a, json_array_get(children, i), item, depth + 1, err)
                        : iso_fail(err, ISO_FORMAT, "they are not what the program takes");
  }
  json_decref(keys);
  return code;
}

static iso_code open_example(pt2_archive *a, iso_error *err) {
  const json_t *calls =
      json_object_get(json_object_get(a->exported, "graph_module"), "module_call_graph");
  const char *text = json_string_value(
      json_object_get(json_object_get(json_array_get(calls, 0), "signature"), "in_spec"));
  json_t *spec = text != NULL ? json_loads(text, 0, NULL) : NULL;
  cap_bytes *b = NULL;
  iso_code code = cap_archive_read(a->zip, a->example_path, &b, err);
  const bool empty = code == ISO_OK && b->n == 0; /* how a program without them is saved */
  cap_bytes_unref(b);
  if (code == ISO_OK && !empty) code = open_saved(a, a->example_path, &a->example, err);
  if (empty) {
    json_decref(spec);
    return ISO_OK;
  }
  if (code == ISO_OK && cap_saved_value(a->example)->kind == CAP_PK_NONE) {
    json_decref(spec);
    return ISO_OK;
  }
  if (code == ISO_OK && !json_is_array(spec))
    code = iso_fail(err, ISO_FORMAT, "the program does not say what it takes");
  if (code == ISO_OK)
    code = flatten(a, json_array_get(spec, 1), cap_saved_value(a->example), 0, err);
  if (code == ISO_OK && a->n_items != a->program.n_inputs)
    code = iso_fail(err, ISO_FORMAT, "there are %zu of them, and the program takes %zu", a->n_items,
                    a->program.n_inputs);
  json_decref(spec);
  if (code != ISO_OK) iso_prefix(err, "example inputs: ");
  return code;
}

iso_code pt2_example(pt2_archive *a, const char *name, rule_tensor **out, iso_error *err) {
  *out = NULL;
  if (!cap_archive_has(a->zip, a->example_path)) return ISO_OK;
  iso_code code = a->example == NULL ? open_example(a, err) : ISO_OK;
  if (code != ISO_OK || a->n_items == 0) return code;
  for (size_t i = 0; i < a->program.n_inputs; i++) {
    if (a->program.input[i] == NULL || strcmp(a->program.input[i], name) != 0) continue;
    code = cap_saved_tensor(a->example, a->item[i], out, err);
    if (code != ISO_OK) iso_prefix(err, "example input \"%.120s\": ", name);
    return code;
  }
  return iso_fail(err, ISO_FORMAT, "there is no example input \"%.120s\"", name);
}
