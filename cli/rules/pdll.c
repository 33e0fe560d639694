/* Rules as MLIR PDLL: a pattern for each direction, and a native constraint with all its
 * preconditions in C++. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rules/export.h"

static const char head[] =
    "// Rewrite rules in MLIR's PDLL, written by isomer rules export: mlir-pdll -x=mlir, or -x=cpp "
    "for a C++ pattern set.\n"
    "//\n"
    "// aten::transpose.int is aten.transpose.int, output k of an operator with several is "
    "isomer.getitem {index = k}, and a list of tensors isomer.list.\n"
    "// Tensors are operands in schema order; all other arguments are attributes by the schema's "
    "names: i64, f64, arrays of i64, bools, strings, dtypes as\n"
    "// strings, a unit for none. Results of operators that are made have the types that the "
    "dialect infers. Equality is over the real numbers; a\n"
    "// pattern is used only where all float tensors in it have one element type, shapes are "
    "static, and every precondition of the rule holds.\n";

/* Functions that bodies call, each after those that it calls itself. Ints have 128 bits; a result
 * that leaves them, or divides with a remainder, is no match. */
static const struct {
  const char *name, *text;
} helpers[] = {
    /* operator: names of what is generated */
    {"typed", "  auto typed = [&](mlir::Value v) { return "
              "mlir::dyn_cast<mlir::RankedTensorType>(v.getType()); };\n"},
    {"known", "  auto known = [&](mlir::Value v) {\n"
              "    auto t = typed(v);\n"
              "    if (!t || !t.hasStaticShape()) return ok = false;\n"
              "    if (mlir::isa<mlir::FloatType>(t.getElementType())) {\n"
              "      if (!element) element = t.getElementType();\n"
              "      if (element != t.getElementType()) return ok = false;\n"
              "    }\n"
              "    for (int64_t n : t.getShape()) ok &= n >= 1;\n"
              "    return ok;\n"
              "  };\n"},
    {"results",
     "  auto results = [&](mlir::Operation *op) {\n"
     "    for (mlir::Value v : op->getResults())\n"
     "      if (typed(v) && mlir::isa<mlir::FloatType>(typed(v).getElementType())) known(v);\n"
     "  };\n"},
    {"tensor",
     "  auto tensor = [&](mlir::Value v, char kind, int64_t rank, bool leading) {\n"
     "    if (!known(v)) return;\n"
     "    mlir::Type e = typed(v).getElementType();\n"
     "    const int64_t r = typed(v).getRank();\n"
     "    const char is = mlir::isa<mlir::FloatType>(e) ? 'f' : "
     "mlir::isa<mlir::ComplexType>(e) ? 'c' : e.isInteger(1) ? 'b' : e.isInteger(64) ? 'i' : '-';\n"
     "    ok &= is == kind && (rank < 0 || (leading ? r >= rank : r == rank));\n"
     "  };\n"},
    {"size", "  auto size = [&](mlir::Value v, int64_t k) -> Int {\n"
             "    auto t = typed(v);\n"
             "    if (!t || k >= t.getRank() || k < -t.getRank()) return ok = false, 0;\n"
             "    return t.getShape()[k < 0 ? k + t.getRank() : k];\n"
             "  };\n"},
    {"integer", "  auto integer = [&](mlir::Attribute a) -> Int {\n"
                "    auto i = mlir::dyn_cast_or_null<mlir::IntegerAttr>(a);\n"
                "    if (!i || !i.getType().isInteger(64)) return ok = false, 0;\n"
                "    return i.getInt();\n"
                "  };\n"},
    {"decimal", "  auto decimal = [&](mlir::Attribute a) {\n"
                "    auto f = mlir::dyn_cast_or_null<mlir::FloatAttr>(a);\n"
                "    return f ? f.getValueAsDouble() : (ok = false, 0.0);\n"
                "  };\n"},
    {"integers", "  auto integers = [&](mlir::Attribute a, int64_t n) {\n"
                 "    auto l = mlir::dyn_cast_or_null<mlir::ArrayAttr>(a);\n"
                 "    ok &= l && (n < 0 || (int64_t)l.size() == n);\n"
                 "    for (int64_t k = 0; ok && k < (int64_t)l.size(); k++) integer(l[k]);\n"
                 "  };\n"},
    {"entry", "  auto entry = [&](mlir::Attribute a, int64_t k) -> Int { return ok ? "
              "integer(mlir::cast<mlir::ArrayAttr>(a)[k]) : 0; };\n"},
    {"add", "  auto add = [&](Int a, Int b) { Int c; ok &= !__builtin_add_overflow(a, b, &c); "
            "return c; };\n"},
    {"sub", "  auto sub = [&](Int a, Int b) { Int c; ok &= !__builtin_sub_overflow(a, b, &c); "
            "return c; };\n"},
    {"mul", "  auto mul = [&](Int a, Int b) { Int c; ok &= !__builtin_mul_overflow(a, b, &c); "
            "return c; };\n"},
    {"quotient", "  auto quotient = [&](Int a, Int b) -> Int { return b && a % b == 0 ? a / b : "
                 "(ok = false, 0); };\n"},
    {"mod_of", "  auto mod_of = [&](Int a, Int b) -> Int { return b ? (a % b + b) % b : (ok = "
               "false, 0); };\n"},
    {"ratio", "  auto ratio = [&](double a, double b) { return b < 0 || b > 0 ? a / b : (ok = "
              "false, 0.0); };\n"},
    {"real", "  auto real = [&](Int a) { return (double)a; };\n"},
    {"close", "  auto close = [&](double a, double b) { return std::fabs(a - b) <= 1e-15 * "
              "std::fmax(std::fabs(a), std::fabs(b)); };\n"},
};
enum { N_HELPERS = sizeof helpers / sizeof *helpers };

static bool calls(const char *text, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = text; (at = strstr(at, name)) != NULL; at += n)
    if (at[n] == '(' && at > text && at[-1] != '_' && at[-1] != '.' &&
        !(at[-1] >= 'a' && at[-1] <= 'z'))
      return true;
  return false;
}

/* A body behind the helpers that it calls, and that they call. */
static void put_body(FILE *f, const char *text) {
  bool use[N_HELPERS];
  for (size_t i = N_HELPERS; i-- > 0;) {
    use[i] = calls(text, helpers[i].name);
    for (size_t k = i + 1; k < N_HELPERS; k++)
      use[i] |= use[k] && calls(helpers[k].text, helpers[i].name);
  }
  fputs("  using Int [[maybe_unused]] = __int128;\n  [[maybe_unused]] bool ok = true;\n", f);
  if (use[1]) fputs("  mlir::Type element; // of all float tensors\n", f);
  for (size_t i = 0; i < N_HELPERS; i++)
    if (use[i]) fputs(helpers[i].text, f);
  fputs(text, f);
}

/* One direction of a rule being written. */
typedef struct writer {
  FILE *f;
  const rules_plan *p;
  rule_schemas *schemas;
  size_t id, n_ops, n_lists, n_made;
  const rule_term *list[256]; /* of the pattern, with names in them: attributes l0 ... */
  const rule_term *made[256]; /* attributes of the other side that are computed: m0 ... */
} writer;

static bool has_names(const rule_term *t) {
  if (t->kind == RULE_NAME || t->kind == RULE_EXPR) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (has_names(t->child[i])) return true;
  return false;
}

static bool has_tensors(const rule_term *t) {
  if (t->kind == RULE_VAR || t->kind == RULE_OP) return true;
  for (uint32_t i = 0; i < t->n && t->kind == RULE_LIST; i++)
    if (has_tensors(t->child[i])) return true;
  return false;
}

static void literal(FILE *f, const rule_term *t) {
  switch (t->kind) {
  case RULE_INT: fprintf(f, "%" PRId64 " : i64", t->u.i); break;
  case RULE_FLOAT:
    if (isfinite(t->u.f)) fprintf(f, "%.17e : f64", t->u.f);
    else
      fputs(isnan(t->u.f) ? "0x7FF8000000000000 : f64"
            : t->u.f > 0  ? "0x7FF0000000000000 : f64"
                          : "0xFFF0000000000000 : f64",
            f);
    break;
  case RULE_BOOLEAN: fputs(t->u.i ? "true" : "false", f); break;
  case RULE_STRING: fprintf(f, "\\\"%s\\\"", t->u.s); break;
  case RULE_DTYPE: fprintf(f, "\\\"%s\\\"", rule_dtype_name((rule_dtype)t->u.i)); break;
  case RULE_LIST:
    fputc('[', f);
    for (uint32_t i = 0; i < t->n; i++) fputs(i ? ", " : "", f), literal(f, t->child[i]);
    fputc(']', f);
    break;
  default: fputs("unit", f);
  }
}

/* aten::add.Tensor as a name of MLIR. */
static void op_name(FILE *f, const char *op) {
  if (strchr(op, ':') == NULL) fputs("isomer.", f);
  for (; *op; op++) {
    if (op[0] == ':' && op[1] == ':') fputc('.', f), op++;
    else fputc(*op, f);
  }
}

/* Whether a name of the pattern stands as an argument itself. */
static bool argument(const writer *w, const rule_term *t, size_t name) {
  for (uint32_t i = 0; i < t->n; i++) {
    const rule_term *c = t->child[i];
    if (t->kind == RULE_OP && c->kind == RULE_NAME && rules_code_index(w->p, c->u.s) == name)
      return true;
    if (has_tensors(c) && argument(w, c, name)) return true;
  }
  return false;
}

/* Whether the pattern has the attribute `t` as it is: then nothing is computed. */
static bool is_matched(const writer *w, const rule_term *t) {
  return t->kind == RULE_NAME && argument(w, w->p->pattern, rules_code_index(w->p, t->u.s));
}

/* The attribute of an argument that is no tensor. */
static void attribute(writer *w, const rule_term *t, bool pattern) {
  FILE *f = w->f;
  if (!has_names(t)) {
    fputs("attr<\"", f);
    literal(f, t);
    fputs("\">", f);
  } else if (is_matched(w, t)) {
    fprintf(f, "n%zu", rules_code_index(w->p, t->u.s)); /* what was matched */
  } else if (pattern) fprintf(f, "l%zu", w->n_lists++);
  else fprintf(f, "m%zu", w->n_made++);
}

static const char *argument_name(writer *w, const rule_term *op, uint32_t i, char *buf, size_t n) {
  const rule_schema *s = rule_schemas_find(w->schemas, op->u.s);
  if (s != NULL && i < s->n_args) return s->arg[i].name;
  snprintf(buf, n, "arg%" PRIu32, i);
  return buf;
}

/* Writes statements for the terms below `t`, then for `t` itself, after `let oK = `. Returns: K. */
static size_t operation(writer *w, const rule_term *t, bool pattern);

static void operand(writer *w, const rule_term *t, bool pattern, char *out, size_t n) {
  if (t->kind == RULE_VAR) snprintf(out, n, "v%" PRId64, t->u.i);
  else snprintf(out, n, "o%zu", operation(w, t, pattern));
}

static size_t operation(writer *w, const rule_term *t, bool pattern) {
  FILE *f = w->f;
  char(*in)[32] = calloc(t->n + 1, sizeof *in), buf[24];
  size_t n_in = 0, n_attrs = 0;
  for (uint32_t i = 0; i < t->n && in != NULL; i++)
    if (has_tensors(t->child[i])) operand(w, t->child[i], pattern, in[n_in++], sizeof *in);
  const size_t k = w->n_ops++;
  fprintf(f, "  %slet o%zu = op<", pattern ? "" : "  ", k);
  op_name(f, t->kind == RULE_LIST ? "list" : t->u.s);
  fputs(">(", f);
  for (size_t i = 0; i < n_in; i++) fprintf(f, "%s%s", i ? ", " : "", in[i]);
  fputc(')', f);
  for (uint32_t i = 0; i < t->n && t->kind == RULE_OP; i++) {
    if (has_tensors(t->child[i])) continue;
    fprintf(f, "%s%s = ", n_attrs++ ? ", " : " {", argument_name(w, t, i, buf, sizeof buf));
    attribute(w, t->child[i], pattern);
  }
  fputs(n_attrs ? "};\n" : ";\n", f);
  free(in);
  return k;
}

/* Collect the attributes in the order in which `attribute` numbers them: lists with names of the
 * pattern, computed ones of the other side. */
static bool collect(writer *w, const rule_term *t, bool pattern) {
  bool ok = true;
  for (uint32_t i = 0; i < t->n && has_tensors(t) && ok; i++)
    if (has_tensors(t->child[i])) ok = collect(w, t->child[i], pattern);
  for (uint32_t i = 0; i < t->n && t->kind == RULE_OP && ok; i++) {
    const rule_term *c = t->child[i];
    if (has_tensors(c) || !has_names(c)) continue;
    if (is_matched(w, c)) continue;
    size_t *n = pattern ? &w->n_lists : &w->n_made;
    if ((ok = *n < 256)) (pattern ? w->list : w->made)[(*n)++] = c;
  }
  return ok;
}

/* ---- C++ ---- */

static void parameters(const writer *w, bool ops) {
  const rules_plan *p = w->p;
  bool first = true;
  for (size_t i = 0; i < (ops ? w->n_ops : 0); i++, first = false)
    fprintf(w->f, "%so%zu: Op", first ? "" : ", ", i);
  for (uint32_t i = 0; i < p->r->n_vars; i++)
    if (rules_plan_has(p, i))
      fprintf(w->f, "%sv%" PRIu32 ": Value", first ? "" : ", ", i), first = false;
  for (size_t i = 0; i < p->n_pattern; i++)
    if (argument(w, p->pattern, i))
      fprintf(w->f, "%sa%zu: Attr", first ? "" : ", ", i), first = false;
  for (size_t i = 0; i < w->n_lists; i++)
    fprintf(w->f, "%sl%zu: Attr", first ? "" : ", ", i), first = false;
}

static void arguments(const writer *w, bool ops) {
  const rules_plan *p = w->p;
  bool first = true;
  for (size_t i = 0; i < (ops ? w->n_ops : 0); i++, first = false)
    fprintf(w->f, "%so%zu", first ? "" : ", ", i);
  for (uint32_t i = 0; i < p->r->n_vars; i++)
    if (rules_plan_has(p, i)) fprintf(w->f, "%sv%" PRIu32, first ? "" : ", ", i), first = false;
  for (size_t i = 0; i < p->n_pattern; i++)
    if (argument(w, p->pattern, i)) fprintf(w->f, "%sn%zu", first ? "" : ", ", i), first = false;
  for (size_t i = 0; i < w->n_lists; i++)
    fprintf(w->f, "%sl%zu", first ? "" : ", ", i), first = false;
}

/* Where the pattern's names get their values: attributes of their own, entries of lists. */
static void bind_names(const writer *w, bool *bound) {
  const rules_plan *p = w->p;
  for (size_t i = 0; i < p->n_pattern; i++) {
    const rule_term name = {.kind = RULE_NAME, .u = {.s = p->bound[i]}};
    if (!(bound[i] = argument(w, p->pattern, i))) continue;
    if (rules_code_is_list(p, p->bound[i])) fprintf(w->f, "  integers(a%zu, -1);\n", i);
    else if (rules_plan_is_real(p, &name))
      fprintf(w->f, "  [[maybe_unused]] const double n%zu = decimal(a%zu);\n", i, i);
    else fprintf(w->f, "  [[maybe_unused]] const Int n%zu = integer(a%zu);\n", i, i);
  }
  for (size_t l = 0; l < w->n_lists; l++) {
    fprintf(w->f, "  integers(l%zu, %" PRIu32 ");\n", l, w->list[l]->n);
    for (uint32_t k = 0; k < w->list[l]->n; k++) {
      const rule_term *c = w->list[l]->child[k];
      const size_t i = c->kind == RULE_NAME ? rules_code_index(p, c->u.s) : 0;
      if (c->kind == RULE_NAME && !bound[i]) {
        fprintf(w->f, "  [[maybe_unused]] const Int n%zu = entry(l%zu, %" PRIu32 ");\n", i, l, k);
        bound[i] = true;
      } else if (c->kind == RULE_NAME)
        fprintf(w->f, "  ok &= n%zu == entry(l%zu, %" PRIu32 ");\n", i, l, k);
      else fprintf(w->f, "  ok &= entry(l%zu, %" PRIu32 ") == %" PRId64 ";\n", l, k, c->u.i);
    }
  }
}

static rules_code code_of(const writer *w) {
  return (rules_code){.f = w->f,
                      .p = w->p,
                      .check = "",
                      .inf = "INFINITY",
                      .minus_inf = "-INFINITY",
                      .nan = "NAN",
                      .let = "  [[maybe_unused]] const Int n%zu = ",
                      .let_real = "  [[maybe_unused]] const double n%zu = ",
                      .require = "  ok &= ",
                      .require_end = ";\n"};
}

/* Writes the preconditions and the names that follow; also before the computations for the other
 * side, where the preconditions hold already. */
static bool body(const writer *w, bool ops) {
  const rules_plan *p = w->p;
  const rules_code o = code_of(w);
  bool *bound = calloc(p->n_bound + 1, 1);
  if (bound == NULL) return false;
  for (size_t i = 0; i < (ops ? w->n_ops : 0); i++) fprintf(w->f, "  results(o%zu);\n", i);
  for (uint32_t i = 0; i < p->r->n_vars; i++) {
    const rule_variable *v = &p->r->var[i];
    if (rules_plan_has(p, i))
      fprintf(w->f, "  tensor(v%" PRIu32 ", '%c', %" PRId64 ", %s);\n", i, v->kind,
              v->any_shape ? (int64_t)-1 : (int64_t)v->n_dims, v->leading ? "true" : "false");
  }
  bind_names(w, bound);
  rules_code_steps(&o);
  free(bound);
  return true;
}

static void put_made(const writer *w, const rule_term *t) {
  const rules_code o = code_of(w);
  FILE *f = w->f;
  if (t->kind == RULE_LIST) {
    fputs("rewriter.getArrayAttr({", f);
    for (uint32_t i = 0; i < t->n; i++) fputs(i ? ", " : "", f), put_made(w, t->child[i]);
    fputs("})", f);
    return;
  }
  const bool r = rules_plan_is_real(w->p, t);
  fputs(r ? "rewriter.getF64FloatAttr(" : "rewriter.getI64IntegerAttr((int64_t)(", f);
  rules_code_number(&o, t, r);
  fputs(r ? ")" : "))", f);
}

/* ---- one direction ---- */

static const char *way(const rules_plan *p) {
  writer w = {.p = p};
  if (!collect(&w, p->pattern, true) || !collect(&w, p->other, false))
    return "it has more than 256 attributes that are computed";
  for (size_t l = 0; l < w.n_lists; l++) {
    if (w.list[l]->kind != RULE_LIST) return "a size in its pattern is an expression";
    for (uint32_t k = 0; k < w.list[l]->n; k++) {
      const rule_term *c = w.list[l]->child[k];
      if (c->kind != RULE_NAME && c->kind != RULE_INT)
        return "a list in its pattern holds more than sizes and integers";
      if (c->kind == RULE_NAME && (rules_code_is_list(p, c->u.s) || rules_plan_is_real(p, c)))
        return "a list in its pattern holds more than sizes and integers";
    }
  }
  for (size_t m = 0; m < w.n_made; m++)
    for (uint32_t k = 0; k < w.made[m]->n && w.made[m]->kind == RULE_LIST; k++) {
      const rule_term *c = w.made[m]->child[k];
      if (c->kind != RULE_NAME && c->kind != RULE_INT && c->kind != RULE_EXPR)
        return "a list in its result holds more than sizes and integers";
    }
  return NULL;
}

const char *rules_pdll_refuse(const rule *r) { return rules_code_refuse(r, way); }

static void pattern_text(writer *w, char **text, size_t *root, bool *ok) {
  size_t len = 0;
  FILE *f = w->f;
  if ((w->f = open_memstream(text, &len)) == NULL) {
    w->f = f;
    *ok = false;
    return;
  }
  w->n_ops = w->n_lists = 0;
  *root = operation(w, w->p->pattern, true);
  *ok = fclose(w->f) == 0 && *ok;
  w->f = f;
}

/* The body of the check (`made` is NULL), or of the function that computes an attribute. */
static bool native(writer *w, const rule_term *made) {
  FILE *f = w->f;
  char *text = NULL;
  size_t len = 0;
  if ((w->f = open_memstream(&text, &len)) == NULL) return w->f = f, false;
  bool ok = body(w, made == NULL);
  fputs(made != NULL ? "  return " : "  return mlir::success(ok);\n", w->f);
  if (made != NULL) put_made(w, made), fputs(";\n", w->f);
  ok = fclose(w->f) == 0 && ok;
  w->f = f;
  if (ok) put_body(f, text);
  free(text);
  return ok;
}

static bool direction(writer *w, bool backward) {
  const rules_plan *p = w->p;
  FILE *f = w->f;
  char *text = NULL;
  size_t root = 0;
  bool ok = true;
  collect(w, p->pattern, true);
  pattern_text(w, &text, &root, &ok);
  collect(w, p->other, false);
  fprintf(f, "Constraint Holds%zu(", w->id);
  parameters(w, true);
  fputs(") [{\n", f);
  ok = native(w, NULL) && ok;
  fputs("}];\n", f);
  for (size_t m = 0; m < w->n_made && ok; m++) {
    fprintf(f, "Rewrite Value%zu_%zu(", w->id, m);
    parameters(w, false);
    fputs(") -> Attr [{\n", f);
    ok = native(w, w->made[m]);
    fputs("}];\n", f);
  }
  fprintf(f, "Pattern Rule%zu%s {\n", w->id, backward ? "Back" : "");
  for (uint32_t i = 0; i < p->r->n_vars; i++)
    if (rules_plan_has(p, i)) fprintf(f, "  let v%" PRIu32 ": Value;\n", i);
  for (size_t i = 0; i < p->n_pattern; i++)
    if (argument(w, p->pattern, i)) fprintf(f, "  let n%zu: Attr;\n", i);
  for (size_t i = 0; i < w->n_lists; i++) fprintf(f, "  let l%zu: Attr;\n", i);
  fprintf(f, "%s  Holds%zu(", ok ? text : "", w->id);
  arguments(w, true);
  fprintf(f, ");\n  rewrite o%zu with {\n", root);
  for (size_t m = 0; m < w->n_made; m++) {
    fprintf(f, "    let m%zu = Value%zu_%zu(", m, w->id, m);
    arguments(w, false);
    fputs(");\n", f);
  }
  w->n_made = 0;
  char to[32];
  operand(w, p->other, false, to, sizeof to);
  fprintf(f, "    replace o%zu with %s;\n  };\n}\n", root, to);
  free(text);
  return ok;
}

static bool one_way(FILE *f, rule_schemas *schemas, const rule *r, bool backward, size_t *id) {
  rules_plan p;
  bool fits, ok = rules_code_direction(f, r, backward, way, &p, &fits);
  if (fits) {
    writer w = {.f = f, .p = &p, .schemas = schemas, .id = (*id)++};
    ok = direction(&w, backward);
  }
  rules_plan_free(&p);
  return ok;
}

bool rules_pdll(FILE *f, const rule_set *set, const char *const *reason) {
  rule_schemas *schemas = NULL;
  size_t id = 0;
  bool ok = rule_schemas_new(&schemas, NULL) == ISO_OK;
  fputs(head, f);
  rules_comment_refused(f, set, reason, "// ");
  for (size_t i = 0; i < rule_set_count(set) && ok; i++) {
    if (reason[i] != NULL) continue;
    fputc('\n', f);
    rules_comment_rule(f, rule_set_at(set, i), "// ");
    ok = one_way(f, schemas, rule_set_at(set, i), false, &id) &&
         one_way(f, schemas, rule_set_at(set, i), true, &id);
  }
  rule_schemas_free(schemas);
  return ok;
}
