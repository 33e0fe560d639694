/* A graph's weights: weights.safetensors, and beside it a checkpoint as Hugging Face lays it out,
 * in one file or in shards with an index. Shards are mapped when a tensor of theirs is first asked
 * for.
 *
 * The index is not trusted: a shard must be a file in the same folder, named plainly. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "capture/capture_int.h"
#include "egraph/base/vec.h"

typedef struct shard {
  const char *path; /* in the arena */
  cap_tensors *file;
} shard;

struct cap_weights {
  iso_arena arena;
  const char *dir, *own_path, *index_path;
  cap_tensors *own; /* weights.safetensors; NULL: there is none */
  json_t *index;    /* NULL: no shards */
  shard *shard;     /* opened so far; without an index, the checkpoint's one file */
  size_t n, cap;
};

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool is_there(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 || errno != ENOENT;
}

static iso_code open_shard(cap_weights *w, const char *path, shard **out, iso_error *err) {
  for (size_t i = 0; i < w->n; i++)
    if (strcmp(w->shard[i].path, path) == 0) {
      *out = &w->shard[i];
      return ISO_OK;
    }
  if (!iso_grow(w->shard, w->cap, w->n + 1)) return no_memory(err);
  shard *s = &w->shard[w->n];
  *s = (shard){.path = path};
  iso_code code = cap_tensors_open(path, &s->file, err);
  if (code != ISO_OK) return code;
  w->n++;
  *out = s;
  return ISO_OK;
}

static iso_code open_index(cap_weights *w, iso_error *err) {
  json_error_t je;
  cap_bytes *b = NULL;
  iso_code code = cap_bytes_open(w->index_path, &b, err);
  if (code == ISO_OK &&
      (w->index = json_loadb((const char *)b->at, b->n, JSON_REJECT_DUPLICATES, &je)) == NULL)
    code = cap_json_no_memory(&je)
               ? no_memory(err)
               : iso_fail(err, ISO_FORMAT, "line %d, column %d: %s", je.line, je.column, je.text);
  cap_bytes_unref(b);
  if (code == ISO_OK && !json_is_object(json_object_get(w->index, "weight_map")))
    code = iso_fail(err, ISO_FORMAT, "there is no \"weight_map\"");
  if (code != ISO_OK) iso_prefix(err, "%s: ", w->index_path);
  return code;
}

static iso_code open_all(cap_weights *w, iso_error *err) {
  w->own_path = iso_arena_printf(&w->arena, "%s/weights.safetensors", w->dir);
  w->index_path = iso_arena_printf(&w->arena, "%s/model.safetensors.index.json", w->dir);
  const char *single = iso_arena_printf(&w->arena, "%s/model.safetensors", w->dir);
  if (w->own_path == NULL || w->index_path == NULL || single == NULL) return no_memory(err);
  shard *s;
  const bool index = is_there(w->index_path), one = !index && is_there(single);
  iso_code code = ISO_OK;
  /* Without a checkpoint, a missing weights.safetensors is the error that names it. */
  if (is_there(w->own_path) || !(index || one)) code = cap_tensors_open(w->own_path, &w->own, err);
  if (code == ISO_OK && index) code = open_index(w, err);
  return code == ISO_OK && one ? open_shard(w, single, &s, err) : code;
}

iso_code cap_weights_open(const char *dir, cap_weights **out, iso_error *err) {
  cap_weights *w = calloc(1, sizeof *w);
  if (w == NULL) return no_memory(err);
  iso_arena_init(&w->arena);
  w->dir = dir;
  iso_code code = open_all(w, err);
  if (code == ISO_OK) *out = w;
  else cap_weights_close(w);
  return code;
}

void cap_weights_close(cap_weights *w) {
  if (w == NULL) return;
  for (size_t i = 0; i < w->n; i++) cap_tensors_close(w->shard[i].file);
  free(w->shard);
  cap_tensors_close(w->own);
  json_decref(w->index);
  iso_arena_fini(&w->arena);
  free(w);
}

/* The shard that the index names for a tensor; NULL where it names none. */
static iso_code shard_of(cap_weights *w, const char *name, shard **out, iso_error *err) {
  *out = NULL;
  if (w->index == NULL) {
    *out = w->n > 0 ? &w->shard[0] : NULL;
    return ISO_OK;
  }
  const json_t *v = json_object_get(json_object_get(w->index, "weight_map"), name);
  if (v == NULL) return ISO_OK;
  const char *file = json_string_value(v);
  if (file == NULL || *file == '\0' || strchr(file, '/') != NULL || strcmp(file, "..") == 0)
    return iso_fail(err, ISO_FORMAT, "%s: the shard of \"%.120s\" is no plain file name",
                    w->index_path, name);
  const char *path = iso_arena_printf(&w->arena, "%s/%s", w->dir, file);
  return path != NULL ? open_shard(w, path, out, err) : no_memory(err);
}

iso_code cap_weights_get(cap_weights *w, const char *name, rule_tensor **out, const char **path,
                         iso_error *err) {
  *out = NULL;
  *path = w->own_path;
  iso_code code = w->own != NULL ? cap_tensors_get(w->own, name, out, err) : ISO_OK;
  if (code != ISO_OK || *out != NULL) return code;
  shard *s = NULL;
  if ((code = shard_of(w, name, &s, err)) != ISO_OK) return code;
  if (s == NULL) {
    if (w->index != NULL) *path = w->index_path;
    return ISO_OK;
  }
  *path = s->path;
  return cap_tensors_get(s->file, name, out, err);
}
