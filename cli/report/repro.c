/* A divergence as a PyTorch script that runs alone; see repro.h. */
#include "cli/embedded.h"
#include "rules/operators.h"
#include "cli/report/repro.h"

#include <inttypes.h>
#include <math.h>
#include <nettle/base64.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_EMBEDDED = 1 << 20 /* elements, all together */, LISTED = 16 };

typedef struct script {
  FILE *f;
  const report *p;
  const synth_cut *cut;
  char **name[2]; /* by node: of those that occur */
  int shown;      /* the side whose values are written out: the left, or the one that fails */
  bool *drawn;    /* by given of that side */
} script;

static const cap_graph *graph(const script *s, int side) {
  return side == 0 ? s->p->left : s->p->right;
}

/* The piece of `repro_kernels` that defines `name`, NULL if there is none. */
static const char *kernel_piece(const char *name, size_t n) {
  static const char mark[] = "# ---- ";
  for (const char *at = strstr(repro_kernels, mark); at; at = strstr(at + 1, mark)) {
    const char *begin = at + sizeof mark - 1;
    if (strncmp(begin, name, n) == 0 && begin[n] == '\n') return begin + n + 1;
  }
  return NULL;
}

/* ---- names ---- */

static bool reserved(const char *s) {
  static const char *const words[] = {
      "and",    "as",    "assert", "async",     "await",    "break",  "class", "continue", "def",
      "del",    "elif",  "else",   "except",    "finally",  "for",    "from",  "global",   "if",
      "import", "in",    "is",     "lambda",    "nonlocal", "not",    "or",    "pass",     "raise",
      "return", "try",   "while",  "with",      "yield",    "None",   "True",  "False",    "torch",
      "left",   "right", "main",   "base64",    "sys",      "values", "drawn", "l",        "r",
      "wide",   "same",  "sum",    "enumerate", "len",      "float"};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strcmp(s, words[i]) == 0) return true;
  return kernel_piece(s, strlen(s)) != NULL;
}

static bool taken(const script *s, int side, const char *name) {
  for (size_t i = 0; i < graph(s, side)->n_nodes; i++)
    if (s->name[side][i] && strcmp(s->name[side][i], name) == 0) return true;
  return false;
}

/* A Python name like the node's id, one for each node. */
static bool name_node(script *s, int side, uint32_t node, bool given) {
  const char *id = graph(s, side)->node[node].id;
  const size_t n = strlen(id);
  if (s->name[side][node]) return true;
  char *t = malloc(n + 32);
  if (!t) return false;
  size_t k = given ? (size_t)sprintf(t, "%s_", side == 0 ? "left" : "right") : 0;
  for (size_t i = 0; i < n; i++) {
    const char c = id[i];
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_',
               digit = c >= '0' && c <= '9';
    if (k == 0 && digit) t[k++] = '_';
    t[k++] = letter || digit ? c : '_';
  }
  t[k] = 0;
  if (k == 0 || reserved(t) || taken(s, side, t)) sprintf(t + k, "_%" PRIu32, node);
  s->name[side][node] = t;
  return true;
}

/* ---- terms ---- */

static void print_text(FILE *f, const char *s) {
  fputc('"', f);
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') fputc('\\', f);
    if (*s == '\n') fputs("\\n", f);
    else fputc(*s, f);
  }
  fputc('"', f);
}

static void print_real(FILE *f, double v) {
  if (!isfinite(v)) fprintf(f, "float(\"%s\")", isnan(v) ? "nan" : v < 0 ? "-inf" : "inf");
  else {
    char text[40];
    for (int digits = 1; digits <= 17; digits++) {
      snprintf(text, sizeof text, "%.*g", digits, v);
      if (strtod(text, NULL) == v) break;
    }
    fprintf(f, "%s%s", text, strpbrk(text, ".e") ? "" : ".0");
  }
}

/* "aten::add.Tensor" in its parts. */
static void split_op(const char *op, int *space, const char **name, size_t *base) {
  const char *colons = strstr(op, "::");
  *space = colons ? (int)(colons - op) : 0;
  *name = colons ? colons + 2 : op;
  *base = strcspn(*name, ".");
}

typedef void name_of(const script *s, int side, uint32_t var);
static void print_term(const script *s, int side, const rule_term *t, name_of *name);

static void node_name(const script *s, int side, uint32_t var) {
  fputs(s->name[side][var] ? s->name[side][var] : "None", s->f);
}
static void given_name(const script *s, int side, uint32_t var) {
  node_name(s, side, s->cut->given[side][var]);
}

static void print_call(const script *s, int side, const rule_term *t, name_of *name) {
  if (rule_is_getitem(t->u.s)) {
    print_term(s, side, t->child[0], name);
    fprintf(s->f, "[%" PRId64 "]", t->child[1]->u.i);
    return;
  }
  const rule_schema *sc = rule_schemas_find(s->p->schemas, t->u.s);
  int space;
  const char *op;
  size_t base;
  split_op(t->u.s, &space, &op, &base);
  if (!rule_is_aten(t->u.s) && kernel_piece(op, base)) fprintf(s->f, "%.*s(", (int)base, op);
  else
    fprintf(s->f, "torch.ops.%.*s.%.*s.%s(", space, t->u.s, (int)base, op,
            op[base] ? op + base + 1 : "default");
  uint32_t positional = 0;
  for (uint32_t i = 0; i < t->n && sc && i < sc->n_args && !sc->arg[i].kwarg_only; i++)
    if (!sc->arg[i].deflt || !rule_term_eq(sc->arg[i].deflt, t->child[i])) positional = i + 1;
  bool first = true;
  for (uint32_t i = 0; i < t->n; i++) {
    const bool by_name = sc && i < sc->n_args && sc->arg[i].kwarg_only;
    if (by_name ? sc->arg[i].deflt && rule_term_eq(sc->arg[i].deflt, t->child[i])
                : sc && i >= positional)
      continue;
    if (!first) fputs(", ", s->f);
    if (by_name) fprintf(s->f, "%s=", sc->arg[i].name);
    print_term(s, side, t->child[i], name);
    first = false;
  }
  fputc(')', s->f);
}

static void print_term(const script *s, int side, const rule_term *t, name_of *name) {
  switch (t->kind) {
  case RULE_VAR: name(s, side, (uint32_t)t->u.i); break;
  case RULE_OP: print_call(s, side, t, name); break;
  case RULE_LIST:
    fputc('[', s->f);
    for (uint32_t i = 0; i < t->n; i++) {
      if (i) fputs(", ", s->f);
      print_term(s, side, t->child[i], name);
    }
    fputc(']', s->f);
    break;
  case RULE_INT: fprintf(s->f, "%" PRId64, t->u.i); break;
  case RULE_FLOAT: print_real(s->f, t->u.f); break;
  case RULE_BOOLEAN: fputs(t->u.i ? "True" : "False", s->f); break;
  case RULE_STRING: print_text(s->f, t->u.s); break;
  case RULE_DTYPE: /* everything floating is float64 here */
    fprintf(s->f, "torch.%s",
            rule_dtype_is_float((rule_dtype)t->u.i) ? "float64"
                                                    : rule_dtype_name((rule_dtype)t->u.i));
    break;
  default: fputs("None", s->f);
  }
}

/* ---- values ---- */

static void print_shape(FILE *f, const rule_shape *s) {
  fputc('[', f);
  for (uint32_t d = 0; d < s->rank; d++) fprintf(f, "%s%" PRId64, d ? ", " : "", s->dim[d]);
  fputc(']', f);
}

static void print_base64(FILE *f, const unsigned char *x, size_t n) {
  enum { PIECE = 3 * 256 }; /* a multiple of 3: only the last piece is padded */
  char text[BASE64_ENCODE_RAW_LENGTH(PIECE)];
  for (size_t i = 0; i < n; i += PIECE) {
    const size_t m = n - i < PIECE ? n - i : PIECE;
    base64_encode_raw(text, m, x + i);
    fwrite(text, 1, BASE64_ENCODE_RAW_LENGTH(m), f);
  }
}

static bool fits_float32(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = rule_tensor_get(t, i);
    if ((double)(float)x != x && !isnan(x)) return false;
  }
  return true;
}

static bool print_tensor(FILE *f, const rule_tensor *t) {
  if (t->numel <= LISTED && t->dtype != RULE_C128 && t->dtype != RULE_C64) {
    fputs("torch.tensor([", f);
    for (int64_t i = 0; i < t->numel; i++) {
      if (i) fputs(", ", f);
      if (t->dtype == RULE_BOOL) fputs(rule_tensor_get_int(t, i) ? "True" : "False", f);
      else if (rule_dtype_is_int(t->dtype)) fprintf(f, "%" PRId64, rule_tensor_get_int(t, i));
      else print_real(f, rule_tensor_get(t, i));
    }
    fprintf(f, "], dtype=torch.%s).reshape(", rule_dtype_name(t->dtype));
    print_shape(f, &t->shape);
    fputc(')', f);
    return true;
  }
  const bool narrow = t->dtype == RULE_F64 && fits_float32(t);
  fprintf(f, "values(torch.%s, ", narrow ? "float32" : rule_dtype_name(t->dtype));
  print_shape(f, &t->shape);
  fputs(", \"", f);
  if (narrow) {
    float *x = malloc((size_t)t->numel * sizeof *x + 1);
    if (!x) return false;
    for (int64_t i = 0; i < t->numel; i++) x[i] = (float)rule_tensor_get(t, i);
    print_base64(f, (const unsigned char *)x, (size_t)t->numel * sizeof *x);
    free(x);
  } else print_base64(f, t->data, (size_t)t->numel * rule_dtype_size(t->dtype));
  fputs("\")", f);
  return true;
}

/* Large tensors are drawn anew, with the mean and deviation that they had: the regions are one
 * function of them or they are not. */
static void print_drawn(FILE *f, const rule_tensor *t, size_t seed) {
  double sum = 0, sq = 0;
  for (int64_t i = 0; i < t->numel; i++) sum += rule_tensor_get(t, i);
  const double mean = sum / (double)t->numel;
  for (int64_t i = 0; i < t->numel; i++)
    sq += (rule_tensor_get(t, i) - mean) * (rule_tensor_get(t, i) - mean);
  fprintf(f, "drawn(%zu, ", seed);
  print_shape(f, &t->shape);
  fprintf(f, ", %.6g, %.6g)", mean, sqrt(sq / (double)t->numel));
}

/* The largest floating values are drawn, until the rest fits. */
static void choose_drawn(script *s) {
  rule_tensor *const *value = s->cut->value[s->shown];
  const size_t n = s->cut->n_given[s->shown];
  int64_t total = 0;
  for (size_t i = 0; i < n; i++) total += value[i]->numel;
  while (total > MAX_EMBEDDED) {
    int64_t largest = -1;
    for (size_t i = 0; i < n; i++) {
      const rule_tensor *t = value[i];
      if (!s->drawn[i] && rule_dtype_is_float(t->dtype) && t->numel > LISTED &&
          (largest < 0 || t->numel > value[largest]->numel))
        largest = (int64_t)i;
    }
    if (largest < 0) return;
    s->drawn[largest] = true;
    total -= value[largest]->numel;
  }
}

static bool print_given(script *s) {
  for (int side = 0; side < 2; side++) {
    if (s->cut->fails == !side) continue;
    fprintf(s->f, "\n# What the %s region reads.\n", side == 0 ? "left" : "right");
    for (size_t i = 0; i < s->cut->n_given[side]; i++) {
      const cap_node *n = &graph(s, side)->node[s->cut->given[side][i]];
      fprintf(s->f, "%s = ", s->name[side][s->cut->given[side][i]]);
      if (side == 1 && s->cut->same && s->cut->same[i])
        print_term(s, 0, s->cut->same[i], given_name);
      else if (side == s->shown && s->drawn[i]) print_drawn(s->f, s->cut->value[side][i], i + 1);
      else if (!print_tensor(s->f, s->cut->value[side][i])) return false;
      if (n->name) fprintf(s->f, "  # %s", n->name);
      fputc('\n', s->f);
    }
  }
  return true;
}

/* ---- the whole ---- */

static void print_kernel(FILE *f, const char *name, size_t n) {
  const char *piece = kernel_piece(name, n), *end = piece ? strstr(piece, "# ---- ") : NULL;
  if (piece) fprintf(f, "\n\n%.*s", (int)(end ? end - piece - 2 : (long)strlen(piece) - 2), piece);
}

/* The kernels that the regions call, and the kernels that these call. */
static void print_kernels(const script *s) {
  static const struct {
    const char *name, *needs;
  } needs[] = {{"unified_attention", "hidden_pairs"},
               {"unified_attention_with_output", "unified_attention"},
               {"fused_add_rms_norm", "rms_norm"},
               {"silu_and_mul", "halves"},
               {"gelu_and_mul", "halves"},
               {"gelu_tanh_and_mul", "halves"},
               {"fused_experts", "silu_and_mul"},
               {"fused_experts", "gelu_and_mul"},
               {"outplace_fused_experts", "fused_experts"},
               {"inplace_fused_experts", "fused_experts"}};
  const char *todo[64];
  size_t n = 0, length[64];
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < s->cut->n_nodes[side]; i++) {
      int space;
      const char *op, *call = graph(s, side)->node[s->cut->node[side][i]].call->u.s;
      size_t base;
      split_op(call, &space, &op, &base);
      bool seen = rule_is_aten(call) || !kernel_piece(op, base);
      for (size_t k = 0; k < n; k++) seen |= length[k] == base && strncmp(todo[k], op, base) == 0;
      if (!seen && n < 32) todo[n] = op, length[n++] = base;
    }
  for (size_t k = 0; k < n; k++)
    for (size_t j = 0; j < sizeof needs / sizeof *needs; j++) {
      if (strlen(needs[j].name) != length[k] || strncmp(needs[j].name, todo[k], length[k]) != 0)
        continue;
      bool seen = false;
      for (size_t i = 0; i < n; i++)
        seen |=
            length[i] == strlen(needs[j].needs) && strncmp(todo[i], needs[j].needs, length[i]) == 0;
      if (!seen && n < 64) todo[n] = needs[j].needs, length[n++] = strlen(needs[j].needs);
    }
  while (n-- > 0) print_kernel(s->f, todo[n], length[n]);
}

static void print_region(const script *s, int side) {
  const cap_graph *g = graph(s, side);
  fprintf(s->f, "\n\ndef %s():\n", side == 0 ? "left" : "right");
  for (size_t i = 0; i < s->cut->n_nodes[side]; i++) {
    const cap_node *n = &g->node[s->cut->node[side][i]];
    fprintf(s->f, "    %s = ", s->name[side][s->cut->node[side][i]]);
    print_term(s, side, n->call, node_name);
    const bool scope = n->scope && *n->scope, source = n->source && *n->source;
    if (scope || source)
      fprintf(s->f, "  # %s%s%s", scope ? n->scope : "", scope && source ? ", " : "",
              source ? n->source : "");
    fputc('\n', s->f);
  }
  fprintf(s->f, "    return %s\n", s->name[side][s->cut->end[side]]);
}

static void print_head(const script *s) {
  const synth_divergence *d = &s->p->r->divergence[s->cut->divergence];
  const bool fails = s->cut->fails >= 0;
  fprintf(s->f, "#!/usr/bin/env python3\n\"\"\"%s\n\n",
          fails ? "An operator that cannot be run on one side."
                : "Two regions that should compute one tensor, and do not.");
  for (int side = 0; side < 2; side++) {
    const int64_t at = side == 0 ? d->left : d->right;
    if (at < 0) continue;
    const cap_node *n = &graph(s, side)->node[at];
    fprintf(s->f, "%-6s %s", side == 0 ? "left" : "right", n->id);
    if (n->kind == CAP_OP) fprintf(s->f, " (%s)", n->op);
    if (n->scope && *n->scope) fprintf(s->f, " in %s", n->scope);
    if (n->source && *n->source) fprintf(s->f, ", %s", n->source);
    fprintf(s->f, "; %s\n", graph(s, side)->model);
  }
  if (d->hint) fprintf(s->f, "hint   %s\n", d->hint);
  fprintf(s->f, "\nNeeds PyTorch only, computes in float64. Exit status 1 while %s.\"\"\"\n",
          fails ? "it cannot be run, 0 once it can" : "the two differ, 0 once they are one");
  fputs("import base64\nimport sys\n\nimport torch\n\ntorch.set_default_dtype(torch.float64)\n\n\n"
        "def values(dtype, shape, text):\n"
        "    t = torch.frombuffer(bytearray(base64.b64decode(text)), dtype=dtype).reshape(shape)\n"
        "    return t.double() if t.is_floating_point() else t\n\n\n"
        "def drawn(seed, shape, mean, deviation):\n"
        "    return mean + deviation * torch.randn(shape, "
        "generator=torch.Generator().manual_seed(seed))\n",
        s->f);
}

static void print_attempt(const script *s) {
  const char *side = s->cut->fails == 0 ? "left" : "right";
  fprintf(s->f,
          "\n\ntry:\n    %s()\nexcept Exception as why:\n    print(\"the %s cannot be run:\", "
          "str(why).splitlines()[0])\n    sys.exit(1)\n"
          "print(\"it runs\")\nsys.exit(0)\n",
          side, side);
}

static void print_comparison(const script *s) {
  fprintf(
      s->f,
      "\n\nl, r = left().flatten(), right().flatten()\n"
      "wide = torch.complex128 if l.is_complex() or r.is_complex() else torch.float64\n"
      "l, r = l.to(wide), r.to(wide)\n"
      "if l.shape != r.shape:\n    print(\"the left has\", l.numel(), \"elements, the right\", "
      "r.numel())\n    sys.exit(1)\n"
      "same = (l == r) | (l.isnan() & r.isnan())\n"
      "difference = torch.where(same, 0.0, (l - r).abs()).nan_to_num(float(\"inf\"))\n"
      "largest = l[l.abs() < 1e30].abs().max() if (l.abs() < 1e30).any() else torch.tensor(1.0)\n"
      "relative = (difference.max() / largest.clamp_min(1e-300)).item()\n"
      "print(\"largest difference %%.6g at element %%d, relative %%.3g\" %% (difference.max(), "
      "difference.argmax(), relative))\n"
      "sys.exit(1 if relative > %s else 0)\n",
      s->cut->constants ? "1e-6" : "1e-9");
}

static bool print_script(script *s) {
  print_head(s);
  print_kernels(s);
  fputc('\n', s->f);
  if (!print_given(s)) return false;
  for (int side = 0; side < 2; side++)
    if (s->cut->fails != !side) print_region(s, side);
  if (s->cut->fails < 0) print_comparison(s);
  else print_attempt(s);
  return true;
}

char *repro_script(const report *p) {
  char *text = NULL;
  size_t n = 0;
  script s = {.p = p, .cut = p->r->cut, .shown = p->r->cut->fails == 1};
  bool ok = (s.f = open_memstream(&text, &n)) != NULL &&
            (s.drawn = calloc(s.cut->n_given[s.shown] + 1, 1)) != NULL;
  for (int side = 0; side < 2 && ok; side++)
    ok = (s.name[side] = calloc(graph(&s, side)->n_nodes + 1, sizeof(char *))) != NULL;
  for (int side = 0; side < 2 && ok; side++) {
    for (size_t i = 0; i < s.cut->n_given[side] && ok; i++)
      ok = name_node(&s, side, s.cut->given[side][i], true);
    for (size_t i = 0; i < s.cut->n_nodes[side] && ok; i++)
      ok = name_node(&s, side, s.cut->node[side][i], false);
  }
  if (ok) {
    choose_drawn(&s);
    ok = print_script(&s);
  }
  if (s.f) ok &= fclose(s.f) == 0;
  for (int side = 0; side < 2; side++) {
    for (size_t i = 0; s.name[side] && i < graph(&s, side)->n_nodes; i++) free(s.name[side][i]);
    free(s.name[side]);
  }
  free(s.drawn);
  if (ok) return text;
  free(text);
  return NULL;
}

/* ---- the inputs ---- */

/* In its captured dtype where that loses nothing. Owns: the caller unrefs. */
static iso_code as_captured(rule_tensor *t, rule_dtype dtype, rule_tensor **out, bool *exact,
                            iso_error *err) {
  *exact = t->dtype == dtype;
  *out = rule_tensor_ref(t);
  if (*exact || !rule_dtype_is_float(dtype) || t->dtype != RULE_F64) return ISO_OK;
  rule_tensor *narrow;
  iso_code c = rule_tensor_new(dtype, &t->shape, &narrow, err);
  if (c) return c;
  *exact = true;
  for (int64_t i = 0; i < t->numel && *exact; i++) {
    const double x = rule_tensor_get(t, i);
    rule_tensor_set(narrow, i, x);
    *exact = rule_tensor_get(narrow, i) == x || isnan(x);
  }
  if (!*exact) {
    rule_tensor_unref(narrow);
    return ISO_OK;
  }
  rule_tensor_unref(*out);
  *out = narrow;
  return ISO_OK;
}

static bool as_it_was(const cap_node *n, const rule_tensor *t) {
  if (t->dtype != n->value->dtype || t->numel != n->value->numel) return false;
  return memcmp(t->data, n->value->data, (size_t)t->numel * rule_dtype_size(t->dtype)) == 0;
}

iso_code repro_inputs(const report *p, const char *path, iso_error *err) {
  const cap_graph *g[2] = {p->left, p->right};
  cap_named_tensor *list = calloc(g[0]->n_nodes + g[1]->n_nodes + 1, sizeof *list);
  size_t n = 0;
  iso_code c = list ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < g[side]->n_nodes && !c; i++) {
      const cap_node *node = &g[side]->node[i];
      rule_tensor *t = p->r->witness_leaf[side] ? p->r->witness_leaf[side][i] : NULL, *out;
      if (!t && node->kind == CAP_INPUT) t = node->value; /* nothing reads it */
      if (node->kind == CAP_OP || !t) continue;
      bool exact;
      if ((c = as_captured(t, node->output[0].dtype, &out, &exact, err))) break;
      char *name = malloc(strlen(node->name) + 8);
      if (!name) c = iso_fail(err, ISO_NOMEM, "out of memory");
      if (c || (node->kind != CAP_INPUT && (node->kind != CAP_PARAMETER || as_it_was(node, out)))) {
        rule_tensor_unref(out);
        free(name);
        continue;
      }
      sprintf(name, "%s.%s", side == 0 ? "left" : "right", node->name);
      list[n++] = (cap_named_tensor){name, out};
    }
  if (!c) c = cap_tensors_save(path, list, n, err);
  for (size_t i = 0; i < n; i++) {
    rule_tensor_unref((rule_tensor *)(uintptr_t)list[i].tensor);
    free((char *)(uintptr_t)list[i].name);
  }
  free(list);
  return c;
}
