/* Damaged captures, in memory and on disk: cut at every byte, every bit turned, bytes replaced at
 * random. Each loads or is an error of one line that names the file; under a sanitizer this shows
 * reads out of bounds. */
#include "tests/capture/loading_test.h"

#include "egraph/base/rng.h"

enum { N_RANDOM = 20000, N_DISK = 1500 };

/* One of everything that a graph may hold. */
static const char *const graph =
    "{'format':'isomer-capture','version':2,'model':'m','framework':'f',"
    "'symbols':[{'name':'T','min':1,'max':8,'value':4}],'guards':['T%2==0 or not (T<3 and T>1)'],"
    "'nodes':["
    "{'id':'x','op':'input','name':'x','outputs':[{'shape':['max(T-2, 1)','T'],'dtype':'float32'}]"
    "},"
    "{'id':'w','op':'parameter','name':'fc.weight','outputs':[{'shape':[4,4],'dtype':'float32'}]},"
    "{'id':'l','op':'aten::linear','args':[{'ref':'x'},{'ref':'w'}],'kwargs':{},'outputs':[{'shape'"
    ":[2,4],'dtype':'float32'}],"
    "'scope':'layers.0','source':'a.py:1'},"
    "{'id':'s','op':'aten::split.Tensor','args':[{'ref':'l'},{'size':'-T//"
    "-2'},-1],'outputs':[{'shape':[2,2],'"
    "dtype':'float32'},{'shape':[2,2],"
    "'dtype':'float32'}]},"
    "{'id':'g','op':'getitem','args':[{'ref':'s'},1],'outputs':[{'shape':[2,2],'dtype':'float32'}]}"
    ","
    "{'id':'c','op':'aten::cat','args':[[{'ref':'g'},{'ref':'g'}],1],'outputs':[{'shape':[2,4],'"
    "dtype':'float32'}]},"
    "{'id':'t','op':'aten::to.dtype','args':[{'ref':'c'},{'dtype':'float32'}],'kwargs':{'memory_"
    "format':null},"
    "'outputs':[{'shape':[2,4],'dtype':'float32'}]},"
    "{'id':'f','op':'aten::clamp','args':[{'ref':'t'},{'float':'-inf'},1.5e0],'outputs':[{'shape':["
    "2,4],'dtype':'float32'}]},"
    "{'id':'k','op':'vllm::other','args':[{'ref':'f'},'layer.0'],'attributes':{'scale':0.25,'"
    "window':null,'slopes':[1,2.5]},"
    "'functionalized':{'returns':0,'writes':['out']},'outputs':[{'shape':[2,4],'dtype':'float32'}]}"
    "],"
    "'outputs':[{'name':'y','ref':'k'}],'metadata':{'tied':{'a':'b'}}}";

static void one_line(const iso_error *err, const char *path) {
  ck_assert_msg(strncmp(err->msg, path, strlen(path)) == 0, "\"%s\" does not begin with %s",
                err->msg, path);
  ck_assert_msg(!strchr(err->msg, '\n'), "\"%s\" has lines", err->msg);
}

static void try_graph(const char *text, size_t n) {
  char *exact = malloc(n ? n : 1); /* so that a sanitizer sees where it ends */
  ck_assert_ptr_nonnull(exact);
  memcpy(exact, text, n);
  cap_graph *g = NULL;
  iso_error err = {0};
  if (cap_parse((cap_text){exact, n}, "dir", NULL, schemas, &g, &err) == ISO_OK) cap_free(g);
  else one_line(&err, "dir/graph.json");
  free(exact);
}

static void try_tensors(const unsigned char *bytes, size_t n) {
  unsigned char *exact = malloc(n ? n : 1);
  ck_assert_ptr_nonnull(exact);
  memcpy(exact, bytes, n);
  cap_tensors *t = NULL;
  iso_error err = {0};
  if (cap_tensors_from(exact, n, "file", &t, &err) == ISO_OK) {
    for (size_t i = 0; i < cap_tensors_count(t); i++) {
      rule_tensor *x = NULL;
      ck_assert_int_eq(cap_tensors_get(t, cap_tensors_name(t, i), &x, &err), ISO_OK);
      double sum = 0;
      for (int64_t k = 0; k < x->numel; k++)
        sum += rule_dtype_is_complex(x->dtype) ? 0 : rule_tensor_get(x, k);
      (void)sum;
      rule_tensor_unref(x);
    }
    cap_tensors_close(t);
  } else {
    one_line(&err, "file");
  }
  free(exact);
}

static void replace_bytes(iso_rng *rng, unsigned char *p, size_t n) {
  static const char likely[] = "{}[]\",:0123456789-eE.\\ntf";
  for (uint64_t k = 1 + iso_rng_below(rng, 4); k-- > 0;) {
    const size_t at = (size_t)iso_rng_below(rng, n);
    p[at] = iso_rng_below(rng, 2) ? (unsigned char)likely[iso_rng_below(rng, sizeof likely - 1)]
                                  : (unsigned char)iso_rng_below(rng, 256);
  }
}

START_TEST(graph_cut_anywhere) {
  char *text = quotes(graph);
  for (size_t n = 0; n <= strlen(text); n++) try_graph(text, n);
  free(text);
}
END_TEST

START_TEST(graph_with_a_bit_turned) {
  char *text = quotes(graph);
  const size_t n = strlen(text);
  for (size_t i = 0; i < 8 * n; i++) {
    text[i / 8] = (char)(text[i / 8] ^ (1 << (i % 8)));
    try_graph(text, n);
    text[i / 8] = (char)(text[i / 8] ^ (1 << (i % 8)));
  }
  free(text);
}
END_TEST

START_TEST(graph_with_bytes_replaced) {
  char *text = quotes(graph);
  const size_t n = strlen(text);
  iso_rng rng = iso_rng_new(1, 0);
  for (int i = 0; i < N_RANDOM; i++) {
    char *copy = strdup(text);
    ck_assert_ptr_nonnull(copy);
    replace_bytes(&rng, (unsigned char *)copy, n);
    try_graph(copy, n);
    free(copy);
  }
  free(text);
}
END_TEST

/* Returns: a file of three tensors; free(). */
static unsigned char *tensors(size_t *n) {
  static const char head[] =
      "{'a':{'dtype':'F32','shape':[2,2],'data_offsets':[0,16]},'b':{'dtype':'I64','shape':[1],'"
      "data_offsets':[16,24]},"
      "'c':{'dtype':'BF16','shape':[0,3],'data_offsets':[24,24]},'__metadata__':{'k':'v'}}";
  char *text = quotes(head);
  const uint64_t len = strlen(text);
  unsigned char *p = calloc(1, 8 + len + 24);
  ck_assert_ptr_nonnull(p);
  memcpy(p, &len, 8);
  memcpy(p + 8, text, len);
  free(text);
  *n = 8 + len + 24;
  return p;
}

START_TEST(tensors_damaged) {
  size_t n;
  unsigned char *p = tensors(&n), *copy = malloc(n);
  ck_assert_ptr_nonnull(copy);
  for (size_t k = 0; k <= n; k++) try_tensors(p, k);
  for (size_t i = 0; i < 8 * n; i++) {
    p[i / 8] ^= (unsigned char)(1 << (i % 8));
    try_tensors(p, n);
    p[i / 8] ^= (unsigned char)(1 << (i % 8));
  }
  iso_rng rng = iso_rng_new(2, 0);
  for (int i = 0; i < N_RANDOM; i++) {
    memcpy(copy, p, n);
    replace_bytes(&rng, copy, n - 24);
    try_tensors(copy, n);
  }
  free(copy);
  free(p);
}
END_TEST

static void save(const char *file, const char *name, int64_t rows) {
  rule_tensor *t = NULL;
  rule_shape s = {.rank = 2, .dim = {rows, 4}};
  ck_assert_int_eq(rule_tensor_new(RULE_F32, &s, &t, NULL), ISO_OK);
  cap_named_tensor named = {name, t};
  ck_assert_int_eq(cap_tensors_save(in_tmp(file), &named, 1, NULL), ISO_OK);
  rule_tensor_unref(t);
}

static unsigned char *slurp(const char *file, size_t *n) {
  FILE *f = fopen(in_tmp(file), "rb");
  ck_assert_ptr_nonnull(f);
  unsigned char *p = malloc(1 << 16);
  ck_assert_ptr_nonnull(p);
  *n = fread(p, 1, 1 << 16, f);
  fclose(f);
  return p;
}

START_TEST(files_damaged) {
  static const char *const file[] = {"graph.json", "weights.safetensors", "inputs.safetensors",
                                     "trace.safetensors"};
  char *text = quotes(graph);
  write_bytes("graph.json", text, strlen(text));
  free(text);
  save("weights.safetensors", "fc.weight", 4);
  save("inputs.safetensors", "x", 2);
  save("trace.safetensors", "l", 2);
  iso_rng rng = iso_rng_new(3, 0);
  for (int i = 0; i < N_DISK; i++) {
    const char *name = file[i % 4];
    size_t n, keep;
    unsigned char *was = slurp(name, &n), *p = slurp(name, &keep);
    if (i % 3 == 0) keep = (size_t)iso_rng_below(&rng, n);
    else replace_bytes(&rng, p, n);
    write_bytes(name, p, keep);
    cap_graph *g = NULL;
    iso_error err = {0};
    if (cap_load(tmp_dir, schemas, &g, &err) == ISO_OK) {
      rule_tensor *t = NULL;
      if (g->n_nodes > 2 && g->node[2].n_outputs == 1 && cap_trace(g, 2, 0, &t, &err) != ISO_OK)
        ck_assert_ptr_null(strchr(err.msg, '\n'));
      rule_tensor_unref(t);
      cap_free(g);
    } else {
      one_line(&err, tmp_dir);
    }
    write_bytes(name, was, n);
    free(was);
    free(p);
  }
}
END_TEST

int main(void) {
  TCase *c = tcase_create("damage");
  tcase_set_timeout(c, 120);
  tcase_add_checked_fixture(c, setup, teardown);
  tcase_add_test(c, graph_cut_anywhere);
  tcase_add_test(c, graph_with_a_bit_turned);
  tcase_add_test(c, graph_with_bytes_replaced);
  tcase_add_test(c, tensors_damaged);
  tcase_add_test(c, files_damaged);
  return run_case("damaged captures", c);
}
