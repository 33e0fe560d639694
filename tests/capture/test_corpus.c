/* The fuzzers' corpora: files named good* load, files named bad* give an error, and no other file
 * crashes. */
#include "tests/capture/capture_test.h"

typedef bool (*loads)(const char *bytes, size_t n);

static bool loads_tensors(const char *bytes, size_t n) {
  cap_tensors *t = NULL;
  iso_error err;
  bool ok = cap_tensors_from(bytes, n, "corpus", &t, &err) == ISO_OK;
  for (size_t i = 0; ok && i < cap_tensors_count(t); i++) {
    rule_tensor *x = NULL;
    ok = cap_tensors_get(t, cap_tensors_name(t, i), &x, &err) == ISO_OK;
    rule_tensor_unref(x);
  }
  if (!ok) check_message(&err, "corpus: ", "");
  cap_tensors_close(t);
  return ok;
}

static bool loads_graph(const char *bytes, size_t n) {
  rule_schemas *schemas = NULL;
  cap_graph *g = NULL;
  iso_error err;
  ck_assert_int_eq(rule_schemas_new(&schemas, NULL), ISO_OK);
  bool ok = cap_parse((cap_text){bytes, n}, "corpus", NULL, schemas, &g, &err) == ISO_OK;
  if (!ok) check_message(&err, "corpus/graph.json: ", "");
  cap_free(g);
  rule_schemas_free(schemas);
  return ok;
}

static char *read_whole(const char *path, size_t *n) {
  FILE *f = fopen(path, "rb");
  ck_assert_msg(f != NULL, "%s", path);
  ck_assert_int_eq(fseek(f, 0, SEEK_END), 0);
  *n = (size_t)ftell(f);
  rewind(f);
  char *p = malloc(*n > 0 ? *n : 1);
  ck_assert_uint_eq(fread(p, 1, *n, f), *n);
  fclose(f);
  return p;
}

static void run_corpus(const char *dir, loads f) {
  DIR *d = opendir(dir);
  if (d == NULL) return; /* not run from the top of the tree */
  for (struct dirent *e; (e = readdir(d)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    char path[512];
    size_t n;
    snprintf(path, sizeof path, "%s/%s", dir, e->d_name);
    char *bytes = read_whole(path, &n);
    bool ok = f(bytes, n);
    if (strncmp(e->d_name, "good", 4) == 0) ck_assert_msg(ok, "%s does not load", path);
    if (strncmp(e->d_name, "bad", 3) == 0) ck_assert_msg(!ok, "%s loads", path);
    free(bytes);
  }
  closedir(d);
}

START_TEST(safetensors_corpus) { run_corpus("tests/fuzz/corpus/safetensors", loads_tensors); }
END_TEST
START_TEST(graph_corpus) { run_corpus("tests/fuzz/corpus/graph", loads_graph); }
END_TEST

int main(void) {
  TCase *c = tcase_create("corpus");
  tcase_add_test(c, safetensors_corpus);
  tcase_add_test(c, graph_corpus);
  return run_case("corpus", c);
}
