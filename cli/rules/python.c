/* A counterexample as a Python snippet: values, both sides in PyTorch, and their results. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rules/report.h"
#include "rules/operators.h"

typedef struct python {
  FILE *f;
  const val_counterexample *w;
  rule_schemas *schemas;
} python;

static void print_real(FILE *f, double v) {
  if (isnan(v)) fputs("float(\"nan\")", f);
  else if (isinf(v)) fprintf(f, "float(\"%sinf\")", v < 0 ? "-" : "");
  else {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, v);
      if (strtod(text, NULL) == v) break;
    }
    fprintf(f, "%s%s", text, strpbrk(text, ".e") != NULL ? "" : ".0");
  }
}

/* Names of variables are any atoms: Python's are numbered where they are none of its own. */
static void print_name(const python *p, uint32_t i) {
  static const char *const reserved[] = {"lhs",  "rhs",  "torch",  "in",   "is",   "if",
                                         "or",   "and",  "not",    "for",  "def",  "del",
                                         "try",  "as",   "lambda", "from", "with", "pass",
                                         "None", "True", "False",  "inf",  "nan",  "print"};
  const char *s = p->w->r->var[i].name;
  bool good = *s == '_' || (*s >= 'a' && *s <= 'z') || (*s >= 'A' && *s <= 'Z');
  for (const char *c = s; *c && good; c++)
    good = *c == '_' || (*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') ||
           (*c >= '0' && *c <= '9');
  for (size_t k = 0; k < sizeof reserved / sizeof *reserved; k++)
    good &= strcmp(s, reserved[k]) != 0;
  if (good) fputs(s, p->f);
  else fprintf(p->f, "x%" PRIu32, i);
}

static void print_term(const python *p, const rule_term *t);

static void print_call(const python *p, const rule_term *t) {
  if (rule_is_getitem(t->u.s)) {
    print_term(p, t->child[0]);
    fprintf(p->f, "[%" PRId64 "]", t->child[1]->u.i);
    return;
  }
  const rule_schema *s = rule_schemas_find(p->schemas, t->u.s);
  const char *colons = strstr(t->u.s, "::");
  const int space = colons != NULL ? (int)(colons - t->u.s) : 0;
  const char *name = colons != NULL ? colons + 2 : t->u.s;
  const size_t base = strcspn(name, ".");
  fprintf(p->f, "torch.ops.%.*s.%.*s.%s(", space, t->u.s, (int)base, name,
          name[base] ? name + base + 1 : "default");
  uint32_t positional = 0;
  for (uint32_t i = 0; i < t->n && s != NULL && i < s->n_args && !s->arg[i].kwarg_only; i++)
    if (s->arg[i].deflt == NULL || !rule_term_eq(s->arg[i].deflt, t->child[i])) positional = i + 1;
  bool first = true;
  for (uint32_t i = 0; i < t->n; i++) {
    const bool by_name = s != NULL && i < s->n_args && s->arg[i].kwarg_only;
    if (by_name ? s->arg[i].deflt != NULL && rule_term_eq(s->arg[i].deflt, t->child[i])
                : s != NULL && i >= positional)
      continue;
    if (!first) fputs(", ", p->f);
    if (by_name) fprintf(p->f, "%s=", s->arg[i].name);
    print_term(p, t->child[i]);
    first = false;
  }
  fputc(')', p->f);
}

static void print_term(const python *p, const rule_term *t) {
  switch (t->kind) {
  case RULE_VAR: print_name(p, (uint32_t)t->u.i); break;
  case RULE_OP: print_call(p, t); break;
  case RULE_LIST:
    fputc('[', p->f);
    for (uint32_t i = 0; i < t->n; i++) {
      if (i) fputs(", ", p->f);
      print_term(p, t->child[i]);
    }
    fputc(']', p->f);
    break;
  case RULE_INT: fprintf(p->f, "%" PRId64, t->u.i); break;
  case RULE_FLOAT: print_real(p->f, t->u.f); break;
  case RULE_BOOLEAN: fputs(t->u.i ? "True" : "False", p->f); break;
  case RULE_STRING: fprintf(p->f, "\"%s\"", t->u.s); break;
  case RULE_DTYPE: fprintf(p->f, "torch.%s", rule_dtype_name((rule_dtype)t->u.i)); break;
  default: fputs("None", p->f);
  }
}

static void print_tensor(const python *p, uint32_t i) {
  const rule_tensor *t = p->w->bind[i];
  print_name(p, i);
  fputs(" = torch.tensor([", p->f);
  for (int64_t k = 0; k < t->numel; k++) {
    if (k) fputs(", ", p->f);
    if (t->dtype == RULE_BOOL) fputs(rule_tensor_get_int(t, k) ? "True" : "False", p->f);
    else if (rule_dtype_is_int(t->dtype)) fprintf(p->f, "%" PRId64, rule_tensor_get_int(t, k));
    else if (t->dtype == RULE_C128)
      fprintf(p->f, "complex(%.17g, %.17g)", ((const double *)t->data)[2 * k],
              ((const double *)t->data)[2 * k + 1]);
    else print_real(p->f, rule_tensor_get(t, k));
  }
  fprintf(p->f, "], dtype=torch.%s).reshape(", rule_dtype_name(t->dtype));
  fputc('[', p->f);
  for (uint32_t d = 0; d < t->shape.rank; d++)
    fprintf(p->f, "%s%" PRId64, d ? ", " : "", t->shape.dim[d]);
  fputs("])\n", p->f);
}

static void print_value(FILE *f, const rule_term *t) {
  if (t->kind == RULE_INT) fprintf(f, "%" PRId64, t->u.i);
  else if (t->kind == RULE_FLOAT) print_real(f, t->u.f);
  else
    for (uint32_t i = 0; i < t->n; i++) fprintf(f, "%s%" PRId64, i ? " " : "", t->child[i]->u.i);
}

char *rules_python(const rule *r, const val_counterexample *w, rule_schemas *schemas) {
  char *text = NULL;
  size_t n = 0;
  const python p = {open_memstream(&text, &n), w, schemas};
  if (p.f == NULL) return NULL;
  fprintf(p.f, "# rule %s does not hold", r->name);
  for (uint32_t i = 0; i < w->n_names; i++) {
    fprintf(p.f, "%s%s = ", i ? ", " : ": at ", w->name[i]);
    print_value(p.f, w->value[i]);
  }
  fputs("\nimport torch\ntorch.set_default_dtype(torch.float64)\n", p.f);
  for (uint32_t i = 0; i < w->r->n_vars; i++) print_tensor(&p, i);
  fputs("lhs = ", p.f);
  print_term(&p, w->r->lhs);
  fputs("\nrhs = ", p.f);
  print_term(&p, w->r->rhs);
  fputs("\nprint(\"lhs\", tuple(lhs.shape), lhs.dtype, lhs)\nprint(\"rhs\", tuple(rhs.shape), "
        "rhs.dtype, rhs)\n",
        p.f);
  if (w->what == 'v')
    fputs("print(\"differ by\", (lhs - rhs).abs().max() if lhs.dtype != torch.bool else (lhs != "
          "rhs).any())\n",
          p.f);
  if (fclose(p.f) != 0) {
    free(text);
    return NULL;
  }
  return text;
}
