/* Expressions of relations files are computed as they are written (needs libtorch): their terms,
 * run, give what each word says of elements; what does not fit is refused with its line. */
#include <sys/mman.h>
#include <unistd.h>

#include "cli/config/relations_int.h"
#include "tests/support/small_operators.h"
#include "tests/validate/engine_test.h"

enum { SEEDS = 500, LEAVES = 3, MOST_MADE = 4096 };

static cap_graph graph[2];
static cap_node node[2][LEAVES];
static cap_output output[2][LEAVES];
static cap_result result[2][LEAVES];
static rule_tensor *leaf_value[LEAVES], *made[MOST_MADE];
static size_t n_made;

static rule_tensor *keep(rule_tensor *t) {
  ck_assert_uint_lt(n_made, MOST_MADE);
  return made[n_made++] = t;
}

/* The right gives r0, r1 and r2, all of one shape and with numbers of their own; the left gives y.
 */
static void begin(rule_shape s) {
  static const char *const names[] = {"r0", "r1", "r2"};
  n_made = 0;
  for (int side = 0; side < 2; side++) {
    graph[side] = (cap_graph){.path = side ? "right" : "left",
                              .node = node[side],
                              .n_nodes = side ? LEAVES : 1,
                              .result = result[side],
                              .n_results = side ? LEAVES : 1,
                              .n_sets = 1,
                              .schemas = schemas};
    iso_arena_init(&graph[side].arena);
    for (uint32_t i = 0; i < LEAVES; i++) {
      output[side][i] = (cap_output){s, RULE_F64};
      node[side][i] = (cap_node){.id = side ? names[i] : "y",
                                 .name = side ? names[i] : "y",
                                 .kind = CAP_PARAMETER,
                                 .n_outputs = 1,
                                 .output = &output[side][i]};
      result[side][i] = (cap_result){side ? names[i] : "y", i};
    }
  }
  for (int i = 0; i < LEAVES; i++) {
    leaf_value[i] = keep(make(s));
    for (int64_t e = 0; e < leaf_value[i]->numel; e++)
      rule_tensor_set(leaf_value[i], e, (double)(e + 1000 * i));
  }
}

static void end(void) {
  for (size_t i = 0; i < n_made; i++) rule_tensor_unref(made[i]);
  for (int side = 0; side < 2; side++) iso_arena_fini(&graph[side].arena);
}

/* ---- expressions, as they are written and as their elements are ---- */

typedef struct expression {
  const char *text;
  rule_tensor *value;
} expression;

static expression written(rule_tensor *value, const char *format, ...) {
  char *text;
  va_list args;
  va_start(args, format);
  ck_assert_int_ge(vasprintf(&text, format, args), 0);
  va_end(args);
  const expression x = {iso_arena_strdup(&arena, text), keep(value)};
  free(text);
  return x;
}

/* Dimension d of the result is dimension of[d]. */
static rule_tensor *permuted(const rule_tensor *x, const int64_t *of) {
  rule_shape s = x->shape;
  for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = x->shape.dim[of[d]];
  rule_tensor *r = make(s);
  for (int64_t i = 0; i < r->numel; i++) {
    int64_t at[RULE_MAX_RANK] = {0}, rest = i, from = 0;
    for (uint32_t d = s.rank; d-- > 0; rest /= s.dim[d]) at[of[d]] = rest % s.dim[d];
    for (uint32_t d = 0; d < s.rank; d++) from = from * x->shape.dim[d] + at[d];
    rule_tensor_set(r, i, rule_tensor_get(x, from));
  }
  return r;
}

static const char *numbers(const int64_t *x, uint32_t n) {
  const char *text = "";
  for (uint32_t i = 0; i < n; i++)
    text = iso_arena_printf(&arena, "%s%s%d", text, i ? ", " : "", (int)x[i]);
  return text;
}

static expression permutation(iso_rng *rng, expression x) {
  int64_t of[RULE_MAX_RANK];
  const uint32_t rank = x.value->shape.rank;
  for (uint32_t d = 0; d < rank; d++) {
    const uint32_t k = (uint32_t)iso_rng_below(rng, d + 1);
    of[d] = of[k];
    of[k] = d;
  }
  return written(permuted(x.value, of), "permute(%s, [%s])", x.text, numbers(of, rank));
}

static expression transposition(iso_rng *rng, expression x) {
  const int64_t rank = x.value->shape.rank, d = (int64_t)iso_rng_below(rng, (uint64_t)rank),
                e = (int64_t)iso_rng_below(rng, (uint64_t)rank);
  rule_tensor *t = transposed(x.value, d, e);
  if (rank == 2 && d != e) return written(t, "t(%s)", x.text);
  return written(t, "transpose( %s ,%d, %d )", x.text, (int)(iso_rng_below(rng, 2) ? d - rank : d),
                 (int)e);
}

/* In two dimensions, or in one. */
static expression reshaping(iso_rng *rng, expression x) {
  int64_t n = x.value->numel, d = 1 + (int64_t)iso_rng_below(rng, (uint64_t)n);
  while (n % d) d--;
  const rule_shape s = iso_rng_below(rng, 3) ? SHAPE(d, n / d) : SHAPE(n);
  return written(reshaped(x.value, s), "reshape(%s, [%s])", x.text, numbers(s.dim, s.rank));
}

static expression with_one_more(iso_rng *rng, expression x) {
  rule_shape s = x.value->shape;
  const uint32_t d = (uint32_t)iso_rng_below(rng, s.rank + 1);
  if (s.rank > 4) return x;
  for (uint32_t i = s.rank++; i > d; i--) s.dim[i] = s.dim[i - 1];
  s.dim[d] = 1;
  const expression more = written(reshaped(x.value, s), "unsqueeze(%s, %d)", x.text,
                                  iso_rng_below(rng, 2) ? (int)d : (int)d - (int)s.rank);
  return iso_rng_below(rng, 3)
             ? more
             : written(reshaped(x.value, x.value->shape), "squeeze(%s, %u)", more.text, d);
}

static expression part(iso_rng *rng, expression x) {
  const uint32_t d = (uint32_t)iso_rng_below(rng, x.value->shape.rank);
  const int64_t size = x.value->shape.dim[d], from = (int64_t)iso_rng_below(rng, (uint64_t)size),
                to = from + 1 + (int64_t)iso_rng_below(rng, (uint64_t)(size - from));
  rule_shape s = x.value->shape;
  s.dim[d] = to - from;
  return written(strided(x.value, d, from, 1, s), "slice(%s, %u, %d, %d)", x.text, d, (int)from,
                 (int)to);
}

/* Two of one shape: one behind the other, or their sum. */
static expression together(iso_rng *rng, expression x, expression y) {
  const uint32_t d = (uint32_t)iso_rng_below(rng, x.value->shape.rank);
  rule_shape s = x.value->shape;
  if (iso_rng_below(rng, 2)) {
    rule_tensor *sum = make(s);
    for (int64_t i = 0; i < sum->numel; i++)
      rule_tensor_set(sum, i, rule_tensor_get(x.value, i) + rule_tensor_get(y.value, i));
    return written(sum, iso_rng_below(rng, 2) ? "add(%s, %s)" : "sum([%s,%s])", x.text, y.text);
  }
  rule_tensor *both[2] = {x.value, y.value};
  const rule_term *list[2] = {rule_var(&arena, 0), rule_var(&arena, 1)};
  return written(joined(rule_list(&arena, list, 2), d, both), "cat([%s, %s], %u)", x.text, y.text,
                 d);
}

static expression draw(iso_rng *rng, int depth) {
  const uint64_t kind = iso_rng_below(rng, 7), i = iso_rng_below(rng, LEAVES);
  if (depth == 0)
    return (expression){iso_arena_printf(&arena, i ? "r%d" : "\"r%d\"", (int)i), leaf_value[i]};
  const expression x = draw(rng, depth - 1);
  switch (kind) {
  case 0: return permutation(rng, x);
  case 1: return transposition(rng, x);
  case 2: return reshaping(rng, x);
  case 3: return with_one_more(rng, x);
  case 4: return part(rng, x);
  case 5: {
    const expression y = draw(rng, depth - 1);
    return rule_shape_eq(&x.value->shape, &y.value->shape) ? together(rng, x, y) : x;
  }
  default: return together(rng, x, x);
  }
}

/* ---- read ---- */

static iso_code read_lines(const char *text, relations *r, iso_error *err) {
  char path[64];
  const int fd = memfd_create("relations", MFD_CLOEXEC);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const iso_code c = relations_load(path, false, &graph[0], &graph[1], r, err);
  close(fd);
  return c;
}

START_TEST(an_expression_is_computed_as_it_is_written) {
  for (uint64_t seed = 0; seed < SEEDS; seed++) {
    iso_rng rng = iso_rng_new(seed, 1);
    rule_shape s = {.rank = 1 + (uint32_t)iso_rng_below(&rng, 3)};
    for (uint32_t d = 0; d < s.rank; d++) s.dim[d] = 1 + (int64_t)iso_rng_below(&rng, 3);
    begin(s);
    const expression x = draw(&rng, 1 + (int)iso_rng_below(&rng, 5));
    output[0][0].shape = x.value->shape;
    const char *line = iso_arena_printf(&arena, "# why\n\n output y = %s # so\n", x.text);
    relations r;
    iso_error err = {0};
    rule_tensor *got = NULL;
    ck_assert_msg(read_lines(line, &r, &err) == ISO_OK, "%s: %s", x.text, err.msg);
    ck_assert_uint_eq(r.n_outputs, 1);
    ck_assert(rule_shape_eq(&r.output[0].what.shape, &x.value->shape));
    ck_assert_msg(val_eval(engine, r.output[0].term, leaf_value, VAL_FLOAT64, &got, &err) == ISO_OK,
                  "%s: %s", x.text, err.msg);
    ck_assert_msg(rule_tensor_same(keep(got), x.value), "seed %d: %s", (int)seed, x.text);
    relations_free(&r);
    end();
  }
}
END_TEST

/* Of tensors [2, 3]. */
START_TEST(what_does_not_fit_is_refused_with_its_line) {
  static const struct {
    const char *text, *says;
  } bad[] = {{"r3", "no output \"r3\""},
             {"y", "no output \"y\""},
             {"\"t\"(r0)", "no output \"t\""},
             {"t(r0, 0)", "\")\" is expected"},
             {"t(unsqueeze(r0, 0))", "a matrix is expected"},
             {"transpose(r0, 0, 2)", "no such dimension"},
             {"transpose(r0, 0, -3)", "no such dimension"},
             {"permute(r0, [])", "every dimension once"},
             {"permute(r0, [0])", "every dimension once"},
             {"permute(r0, [0, 0])", "every dimension once"},
             {"permute(r0, [0, 2])", "every dimension once"},
             {"reshape(r0, [4])", "6 elements are not 4"},
             {"reshape(r0, [-1, 6])", "no size"},
             {"unsqueeze(r0, 3)", "no such dimension"},
             {"squeeze(r0, 0)", "dimension 0 has size 2"},
             {"slice(r0, 0, 0, 3)", "no part of size 2"},
             {"slice(r0, 0, 1, 1)", "no part of size 2"},
             {"slice(r0, 0, -1, 1)", "no part of size 2"},
             {"cat([r0, t(r1)], 0)", "another dimension than 0"},
             {"cat([r0, unsqueeze(r1, 0)], 0)", "one dtype and rank"},
             {"cat([], 0)", "of nothing"},
             {"cat([r0 r1], 0)", "\",\" is expected"},
             {"add(r0)", "\",\" is expected"},
             {"add(r0, t(r1))", "one shape and dtype"},
             {"sum(r0, r1)", "\"[\" is expected"},
             {"flip(r0, 0)", "is none of t, transpose"},
             {"r0 r1", "r1"},
             {"t(r0", "\")\" is expected"},
             {"\"r0", "does not end"},
             {"transpose(r0, 0x, 1)", "an integer is expected"},
             {"", "a name is expected"}};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    begin(SHAPE(2, 3));
    relations r;
    iso_error err = {0};
    const char *line = iso_arena_printf(&arena, "# first\noutput y = %s\n", bad[i].text);
    ck_assert_msg(read_lines(line, &r, &err) != ISO_OK, "%s", bad[i].text);
    ck_assert_msg(strstr(err.msg, ":2: ") && strstr(err.msg, bad[i].says), "%s: %s", bad[i].text,
                  err.msg);
    ck_assert_ptr_null(strchr(err.msg, '\n'));
    relations_free(&r);
    end();
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("relations");
  TCase *t = tcase_create("relations");
  tcase_set_timeout(t, 120);
  tcase_add_test(t, an_expression_is_computed_as_it_is_written);
  tcase_add_test(t, what_does_not_fit_is_refused_with_its_line);
  suite_add_tcase(s, t);
  return run_suite_with_engine(s);
}
