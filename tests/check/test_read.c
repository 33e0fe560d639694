/* A certificate's JSON is read as written; without any one of its parts, with one more, or with one
 * of another type it is malformed. */
#include <check.h>
#include <jansson.h>
#include <stdio.h>
#include <unistd.h>

#include "tests/check/small_captures.h"
#include "tests/support/suite.h"

/* Every kind of argument and of step. */
static const char whole[] =
    "{\"format\": \"isomer-certificate\", \"version\": 1, \"evidence\": \"proved\","
    " \"left\": {\"model\": \"l\", \"files\": {}}, \"right\": {\"model\": \"r\", \"files\": {}},"
    " \"fixed\": [{\"left\": \"l0\"}, {\"right\": \"r1\"}],"
    " \"rules\": [\"(rule a (var x f (size0)) (lhs (aten::neg (aten::neg x))) (rhs x))\"],"
    " \"terms\": [{\"right\": \"r0\"}, {\"left\": \"l1\"},"
    "  {\"op\": \"aten::a\", \"args\": [{\"ref\": 1}, 7, -0.5, true, false, null, \"s\","
    "   [1, [2, {\"ref\": 0}]], {\"dtype\": \"float16\"}, {\"float\": \"inf\"},"
    "   {\"float\": \"-inf\"}, {\"float\": \"nan\"}]},"
    "  {\"op\": \"aten::b\", \"args\": [{\"ref\": 2}]}, {\"left\": \"l0\"}],"
    " \"steps\": [{\"leaf\": [0, 4]}, {\"bound\": [1, 2]}, {\"value\": [2, 3]},"
    "  {\"rounding\": [3, 2]}, {\"same\": [2, 1]},"
    "  {\"rule\": 0, \"vars\": [2], \"terms\": [3, 1], \"names\": {\"size0\": 4}},"
    "  {\"rule\": 0, \"vars\": [null], \"terms\": [3, 1]}],"
    " \"outputs\": [{\"left\": \"y\", \"right\": \"z\", \"terms\": [4, 0]}]}";

/* Two leaves and a call on each side. */
static void begin_reading(void) {
  setup();
  for (int s = 0; s < 2; s++) {
    leaf(s, CAP_INPUT, "x", keep(make(SHAPE(2))));
    leaf(s, CAP_PARAMETER, "w", keep(make(SHAPE(2))));
    op(s, CALL("aten::add.Tensor", v(0), v(1), num(1)));
  }
  k.term = NULL, k.cert.step = NULL, k.cert.output = NULL, k.cert.fixed = NULL;
}

static void end_reading(void) {
  for (size_t i = 0; i < k.rules.n; i++) rule_set_free(k.rules.rule[i]);
  void *owned[] = {k.rules.rule, k.term,      k.cert.number, k.cert.step,
                   k.cert.var,   k.cert.name, k.cert.output, k.cert.fixed};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
  k.n_terms = 0;
  teardown();
}

/* A new file with the text. `path` ends with six X. */
static void write_file(char *path, const char *text) {
  const int fd = mkstemp(path);
  ck_assert_int_ge(fd, 0);
  ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
  close(fd);
}

static chk_outcome read_text(const char *text) {
  char path[] = "/tmp/test_read_XXXXXX";
  write_file(path, text);
  ck_assert_msg(chk_read(&k, path) == ISO_OK, "%s", err.msg);
  unlink(path);
  return report.outcome;
}

/* The outcome of reading a certificate by itself. Takes `doc`. */
static chk_outcome read_alone(json_t *doc) {
  char *text = json_dumps(doc, JSON_COMPACT | JSON_ENCODE_ANY);
  begin_reading();
  const chk_outcome o = read_text(text);
  end_reading();
  free(text);
  json_decref(doc);
  return o;
}

static json_t *parsed(const char *text) {
  json_t *j = json_loads(text, JSON_DECODE_ANY, NULL);
  ck_assert_ptr_nonnull(j);
  return j;
}

/* ---- what is read ---- */

START_TEST(what_a_certificate_says_is_read) {
  begin_reading();
  ck_assert_msg(read_text(whole) == CHK_HOLDS, "%s", report.reason);
  const uint32_t number[] = {3, 1, 6, 7, 0};
  ck_assert_uint_eq(k.cert.n_numbers, 5);
  for (size_t i = 0; i < 5; i++) ck_assert_uint_eq(k.cert.number[i], number[i]);
  ck_assert_uint_eq(k.n_terms, 8);
  for (uint32_t i = 0; i < 6; i++) {
    ck_assert(k.term[i].node == &side[i / 3].node[i % 3] && k.term[i].side == (int)i / 3);
    ck_assert_uint_eq(k.term[i].depth, i % 3 == 2 ? 2 : 1);
  }
  ck_assert_int_eq(k.term[5].call->child[1]->u.i, 4); /* the right capture's leaves */
  const rule_term *const *a = k.term[6].call->child;
  ck_assert_str_eq(k.term[6].call->u.s, "aten::a");
  ck_assert(a[0]->kind == RULE_VAR && a[0]->u.i == 1 && a[1]->kind == RULE_INT && a[1]->u.i == 7);
  ck_assert(a[2]->kind == RULE_FLOAT && a[2]->u.f == -0.5);
  ck_assert(a[3]->kind == RULE_BOOLEAN && a[3]->u.i == 1 && a[4]->u.i == 0);
  ck_assert(a[5]->kind == RULE_NONE && a[6]->kind == RULE_STRING && !strcmp(a[6]->u.s, "s"));
  ck_assert(a[7]->n == 2 && a[7]->child[1]->child[1]->u.i == 3);
  ck_assert(a[8]->kind == RULE_DTYPE && a[8]->u.i == RULE_F16);
  ck_assert(a[9]->u.f == INFINITY && a[10]->u.f == -INFINITY && isnan(a[11]->u.f));
  ck_assert_uint_eq(k.term[6].depth, 2);
  ck_assert_uint_eq(k.term[7].depth, 3);
  end_reading();
}
END_TEST

START_TEST(steps_are_read_in_order) {
  static const chk_kind kinds[] = {CHK_LEAF, CHK_BOUND, CHK_VALUE, CHK_ROUNDING,
                                   CHK_SAME, CHK_RULE,  CHK_RULE};
  static const uint32_t pairs[][2] = {{3, 0}, {1, 6}, {6, 7}, {7, 6}, {6, 1}, {7, 1}, {7, 1}};
  begin_reading();
  ck_assert(read_text(whole) == CHK_HOLDS);
  ck_assert_uint_eq(k.cert.n_steps, 7);
  for (size_t i = 0; i < 7; i++)
    ck_assert(k.cert.step[i].kind == kinds[i] && k.cert.step[i].a == pairs[i][0] &&
              k.cert.step[i].b == pairs[i][1]);
  ck_assert(k.cert.n_vars == 2 && k.cert.var[k.cert.step[5].first_var] == 6 &&
            k.cert.step[6].first_var == 1);
  ck_assert(k.cert.var[1] == CHK_NONE);
  ck_assert(k.cert.n_names == 1 && k.cert.step[5].n_names == 1 && k.cert.step[6].n_names == 0);
  ck_assert(!strcmp(k.cert.name[0].name, "size0") && k.cert.name[0].value->u.i == 4);
  ck_assert(k.cert.n_fixed == 2 && k.cert.fixed[0] == 0 && k.cert.fixed[1] == 4);
  ck_assert(k.cert.n_outputs == 1 && k.cert.output[0].a == 0 && k.cert.output[0].b == 3);
  ck_assert(!strcmp(k.cert.output[0].left, "y") && !strcmp(k.cert.output[0].right, "z"));
  ck_assert(k.rules.n == 1 && k.cert.evidence == RULE_PROVED);
  ck_assert(!k.mask.reads[CHK_MASK_HALF] && !k.mask.reads[CHK_MASK_OTHER]);
  end_reading();
}
END_TEST

/* ---- every part of it ---- */

typedef struct walk {
  size_t at, seen; /* the change that is made, and how many there were so far */
  int what;
  char path[200];
} walk;
enum { WITHOUT, WITH_MORE, OF_ANOTHER_TYPE, CHANGES };

/* Values of the other types. */
static json_t *another_type(const json_t *j) {
  return json_is_string(j) ? json_integer(0) : json_string("x");
}

/* A name of `names` and a file may have any name; the lists hold as many as they like. */
static bool may_have_more(const char *path) {
  return strstr(path, "names") || strstr(path, "files") != NULL;
}
static bool may_be_left_out(const char *path, const char *key) {
  return strcmp(key, "names") == 0 || may_have_more(path);
}
static bool may_be_any(const char *path) { return strstr(path, "args") || strstr(path, "names"); }

/* Make change number `at` of a kind, in place. Returns: whether it was made. */
static bool change(json_t *j, walk *w, const char *path) {
  const char *key;
  json_t *v;
  size_t i;
  char below[200];
  if (json_is_object(j)) {
    if (w->what == WITH_MORE && !may_have_more(path) && w->seen++ == w->at)
      return snprintf(w->path, sizeof w->path, "%s", path),
             json_object_set_new(j, "more", json_integer(1)), true;
    json_object_foreach(j, key, v) {
      snprintf(below, sizeof below, "%.150s/%.40s", path, key);
      const bool here = (w->what == WITHOUT && !may_be_left_out(path, key) && w->seen++ == w->at) ||
                        (w->what == OF_ANOTHER_TYPE && !may_be_any(below) && w->seen++ == w->at);
      if (here) {
        snprintf(w->path, sizeof w->path, "%s", below);
        if (w->what == WITHOUT) json_object_del(j, key);
        else json_object_set_new(j, key, another_type(v));
        return true;
      }
      if (change(v, w, below)) return true;
    }
  } else {
    json_array_foreach(j, i, v) {
      snprintf(below, sizeof below, "%.150s/%zu", path, i);
      if (w->what == OF_ANOTHER_TYPE && !may_be_any(below) && w->seen++ == w->at) {
        snprintf(w->path, sizeof w->path, "%s", below);
        json_array_set_new(j, i, another_type(v));
        return true;
      }
      if (change(v, w, below)) return true;
    }
  }
  return false;
}

START_TEST(a_certificate_without_a_part_or_with_another_is_malformed) {
  size_t n[CHANGES] = {0};
  for (int what = 0; what < CHANGES; what++)
    for (;; n[what]++) {
      walk w = {.at = n[what], .what = what};
      json_t *doc = parsed(whole);
      if (!change(doc, &w, "")) {
        json_decref(doc);
        break;
      }
      /* A digest, a name of an output and an id are strings that are looked up, and not here. */
      const chk_outcome o = read_alone(doc);
      ck_assert_msg(o == CHK_MALFORMED, "%d: %s: %d", what, w.path, (int)o);
    }
  ck_assert_msg(n[WITHOUT] > 35 && n[WITH_MORE] > 20 && n[OF_ANOTHER_TYPE] > 50, "%zu %zu %zu",
                n[WITHOUT], n[WITH_MORE], n[OF_ANOTHER_TYPE]);
}
END_TEST

/* ---- one value in place of another ---- */

/* The certificate with the value at `path` replaced; a last part behind the end is appended. */
static json_t *with(const char *path, const char *value) {
  json_t *doc = parsed(whole), *j = doc, *new = parsed(value);
  char text[100], *rest = text, *part = NULL, *next;
  snprintf(text, sizeof text, "%s", path);
  for (part = strsep(&rest, "/"); (next = strsep(&rest, "/")); part = next)
    j = json_is_object(j) ? json_object_get(j, part) : json_array_get(j, (size_t)atoi(part));
  if (json_is_object(j)) json_object_set_new(j, part, new);
  else if ((size_t)atoi(part) < json_array_size(j)) json_array_set_new(j, (size_t)atoi(part), new);
  else json_array_append_new(j, new);
  return doc;
}

static const struct {
  const char *path, *value;
  chk_outcome outcome;
} edits[] = {
    {"format", "\"isomer-capture\"", CHK_MALFORMED},
    {"version", "2", CHK_MALFORMED},
    {"version", "0", CHK_MALFORMED},
    {"evidence", "\"unknown\"", CHK_MALFORMED},
    {"evidence", "\"certified\"", CHK_HOLDS},
    {"evidence", "\"tested\"", CHK_HOLDS},
    {"masks_read", "[true, false]", CHK_HOLDS},
    {"masks_read", "[true]", CHK_MALFORMED},
    {"masks_read", "[true, false, true]", CHK_MALFORMED},
    {"at_these_weights", "false", CHK_HOLDS},
    {"at_these_weights", "true", CHK_REFUSED}, /* the options do not say it */
    {"relations", "[]", CHK_HOLDS},
    {"relations", "{}", CHK_MALFORMED},
    {"relations", "[1]", CHK_MALFORMED},
    {"relations", "[\"x = y\"]", CHK_REFUSED},
    {"fixed/0", "{\"left\": \"r0\"}", CHK_REFUSED},
    {"fixed/0", "{\"right\": \"l0\"}", CHK_REFUSED},
    {"fixed/0", "{\"left\": \"l0\", \"right\": \"r0\"}", CHK_MALFORMED},
    {"terms/0", "{\"left\": \"l3\"}", CHK_REFUSED},
    {"terms/0", "{\"left\": \"\"}", CHK_REFUSED},
    {"terms/0", "{\"left\": \"l2\"}", CHK_HOLDS},
    {"terms/2/args/0", "{\"ref\": 2}", CHK_MALFORMED}, /* not before it */
    {"terms/2/args/0", "{\"ref\": -1}", CHK_MALFORMED},
    {"terms/2/args/0", "{\"ref\": 1.0}", CHK_MALFORMED},
    {"terms/2/args/0", "{}", CHK_MALFORMED},
    {"terms/2/args/0", "{\"ref\": 1, \"float\": \"inf\"}", CHK_MALFORMED},
    {"terms/2/args/7", "[1, [2, {\"ref\": 9}]]", CHK_MALFORMED},
    {"terms/2/args/8", "{\"dtype\": \"float17\"}", CHK_MALFORMED},
    {"terms/2/args/8", "{\"dtype\": 1}", CHK_MALFORMED},
    {"terms/2/args/9", "{\"float\": \"1\"}", CHK_MALFORMED},
    {"terms/2/args/9", "{\"float\": 1}", CHK_MALFORMED},
    {"rules/0", "\"(rule\"", CHK_MALFORMED},
    {"rules/0", "\"\"", CHK_MALFORMED},
    {"rules/0", "\"(rule a (var x f) (lhs x) (rhs x)) (rule b (var x f) (lhs x) (rhs x))\"",
     CHK_MALFORMED},
    {"steps/0/leaf/0", "5", CHK_MALFORMED},
    {"steps/0/leaf/1", "-1", CHK_MALFORMED},
    {"steps/0/leaf", "[0]", CHK_MALFORMED},
    {"steps/0/leaf", "[0, 4, 1]", CHK_MALFORMED},
    {"steps/0", "{\"leaf\": [0, 4], \"same\": [0, 4]}", CHK_MALFORMED},
    {"steps/5/rule", "1", CHK_MALFORMED},
    {"steps/5/rule", "-1", CHK_MALFORMED},
    {"steps/5/vars", "[]", CHK_MALFORMED},
    {"steps/5/vars", "[2, 2]", CHK_MALFORMED},
    {"steps/5/vars", "[5]", CHK_MALFORMED},
    {"steps/5/names", "{}", CHK_MALFORMED},
    {"steps/5/names/size0", "{\"ref\": 0}", CHK_MALFORMED},
    {"steps/5/names/size0", "[1, 2]", CHK_HOLDS},
    {"steps/5/names/size0", "[{\"ref\": 7}]", CHK_MALFORMED},
    {"outputs/0/terms", "[4]", CHK_MALFORMED},
    {"outputs/0/terms/1", "5", CHK_MALFORMED},
    {"left/files/graph.json", "\"00\"", CHK_REFUSED},
};

START_TEST(values_out_of_range_are_malformed_or_refused) {
  for (size_t i = 0; i < sizeof edits / sizeof *edits; i++) {
    const chk_outcome o = read_alone(with(edits[i].path, edits[i].value));
    ck_assert_msg(o == edits[i].outcome, "%s: %s: %d", edits[i].path, edits[i].value, (int)o);
  }
}
END_TEST

START_TEST(masks_that_are_read_are_told_apart) {
  for (int bits = 0; bits < 4; bits++) {
    char masks[40];
    snprintf(masks, sizeof masks, "[%s, %s]", bits & 1 ? "true" : "false",
             bits & 2 ? "true" : "false");
    json_t *doc = with("masks_read", masks);
    char *text = json_dumps(doc, 0);
    begin_reading();
    ck_assert(read_text(text) == CHK_HOLDS);
    ck_assert(k.mask.reads[CHK_MASK_HALF] == (bits & 1));
    ck_assert(k.mask.reads[CHK_MASK_OTHER] == (bits & 2) / 2);
    end_reading();
    free(text);
    json_decref(doc);
  }
}
END_TEST

/* The captures were changed by these lines, or are not those of the certificate. */
START_TEST(relations_are_those_that_the_captures_were_read_with) {
  static const char *const given[] = {"x = y", "z = w"};
  static const struct {
    const char *lines;
    chk_outcome outcome;
  } c[] = {{"[\"x = y\", \"z = w\"]", CHK_HOLDS},
           {"[\"z = w\", \"x = y\"]", CHK_REFUSED},
           {"[\"x = y\"]", CHK_REFUSED},
           {"[\"x = y\", \"z = w\", \"z = w\"]", CHK_REFUSED}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++)
    for (int pinned = 0; pinned < 2; pinned++) {
      json_t *doc = with("relations", c[i].lines);
      if (pinned) json_object_set_new(doc, "at_these_weights", json_true());
      char *text = json_dumps(doc, 0);
      begin_reading();
      options.relation = given;
      options.n_relations = 2;
      options.pinned = pinned;
      ck_assert_msg(read_text(text) == c[i].outcome, "%s", c[i].lines);
      end_reading();
      free(text);
      json_decref(doc);
    }
}
END_TEST

/* Facts that are read from a certificate before the captures are loaded. */
START_TEST(how_captures_are_to_be_read_is_asked_before) {
  static const struct {
    const char *text;
    size_t n;
    bool pinned;
  } c[] = {{"{\"relations\": [\"x = y\", \"z = w\"], \"at_these_weights\": true}", 2, true},
           {"{\"relations\": [\"x = y\", 1, \"z = w\"], \"at_these_weights\": 1}", 1, false},
           {"{\"relations\": {}}", 0, false},
           {"{\"at_these_weights\": false}", 0, false},
           {"nonsense", 0, false}};
  for (size_t i = 0; i < sizeof c / sizeof *c; i++) {
    char path[] = "/tmp/test_read_XXXXXX";
    const char *const *line;
    size_t n = 9;
    bool pinned = !c[i].pinned;
    iso_arena a = {0};
    write_file(path, c[i].text);
    ck_assert(chk_relation_lines(path, &a, &line, &n, &err) == ISO_OK);
    ck_assert(chk_at_these_weights(path, &pinned, &err) == ISO_OK);
    ck_assert_msg(n == c[i].n && pinned == c[i].pinned, "%s: %zu", c[i].text, n);
    for (size_t j = 0; j < n; j++) ck_assert_str_eq(line[j], j ? "z = w" : "x = y");
    unlink(path);
    ck_assert_int_eq(chk_relation_lines(path, &a, &line, &n, &err), ISO_IO);
    ck_assert_int_eq(chk_at_these_weights(path, &pinned, &err), ISO_IO);
    iso_arena_fini(&a);
  }
}
END_TEST

/* ---- text ---- */

START_TEST(text_that_is_no_json_is_malformed_with_its_line) {
  static const char *const text[] = {
      "", "{", "[1, 2]", "nonsense", "{\"format\": 1, \"format\": 2}", "{}\n{}"};
  for (size_t i = 0; i < sizeof text / sizeof *text; i++) {
    begin_reading();
    ck_assert_msg(read_text(text[i]) == CHK_MALFORMED, "%s", text[i]);
    ck_assert_ptr_nonnull(report.reason);
    end_reading();
  }
  begin_reading();
  ck_assert_int_eq(chk_read(&k, "/nonexistent/certificate.json"), ISO_IO);
  end_reading();
}
END_TEST

/* Lists of more than sixteen levels are refused, and terms are as deep as they like. */
START_TEST(lists_are_nested_so_deep_and_no_deeper) {
  for (int depth = 14; depth < 19; depth++) {
    char value[100] = "";
    for (int i = 0; i < depth; i++) strcat(value, "[");
    for (int i = 0; i < depth; i++) strcat(value, "]");
    ck_assert_int_eq(read_alone(with("terms/2/args/1", value)),
                     depth <= 16 ? CHK_HOLDS : CHK_MALFORMED);
  }
}
END_TEST

int main(void) {
  Suite *s = suite_create("read");
  TCase *t = tcase_create("read");
  tcase_set_timeout(t, 60);
  tcase_add_test(t, what_a_certificate_says_is_read);
  tcase_add_test(t, steps_are_read_in_order);
  tcase_add_test(t, a_certificate_without_a_part_or_with_another_is_malformed);
  tcase_add_test(t, values_out_of_range_are_malformed_or_refused);
  tcase_add_test(t, masks_that_are_read_are_told_apart);
  tcase_add_test(t, relations_are_those_that_the_captures_were_read_with);
  tcase_add_test(t, how_captures_are_to_be_read_is_asked_before);
  tcase_add_test(t, text_that_is_no_json_is_malformed_with_its_line);
  tcase_add_test(t, lists_are_nested_so_deep_and_no_deeper);
  suite_add_tcase(s, t);
  return run_suite(s);
}
