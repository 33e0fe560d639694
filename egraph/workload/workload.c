/* Workload files: reads s-expressions, and picks out their declarations. */
#include "egraph/workload.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/arena.h"
#include "egraph/base/vec.h"

enum { MAX_DEPTH = 4000 };

typedef struct eg_workload_memory {
  iso_arena arena;
} eg_workload_memory;

typedef struct reader {
  const char *file, *begin, *p, *end;
  iso_arena *arena;
  iso_error *err;
} reader;

static iso_code fail_at(const reader *r, const char *at, const char *what) {
  size_t line = 1;
  for (const char *q = r->begin; q < at; q++) line += *q == '\n';
  return iso_fail(r->err, ISO_FORMAT, "%s:%zu: %s", r->file, line, what);
}
static iso_code nomem(const reader *r) {
  return iso_fail(r->err, ISO_NOMEM, "%s: out of memory", r->file);
}

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool ends_atom(char c) {
  return is_space(c) || c == '(' || c == ')' || c == ';' || c == '"' || c == '\0';
}

static void skip(reader *r) {
  for (; r->p < r->end; r->p++) {
    if (*r->p == ';')
      while (r->p + 1 < r->end && r->p[1] != '\n') r->p++;
    else if (!is_space(*r->p)) return;
  }
}

static iso_code read_atom(reader *r, eg_sexp *e) {
  const char *at = r->p;
  if (*at == '"') {
    const char *close = memchr(at + 1, '"', (size_t)(r->end - at - 1));
    if (!close) return fail_at(r, at, "a quote that does not end");
    *e = (eg_sexp){.text = at + 1, .n = (size_t)(close - at - 1), .quoted = true};
    r->p = close + 1;
    return ISO_OK;
  }
  while (r->p < r->end && !ends_atom(*r->p)) r->p++;
  if (r->p == at) return fail_at(r, at, *at ? "a parenthesis that nothing opened" : "a zero byte");
  *e = (eg_sexp){.text = at, .n = (size_t)(r->p - at)};
  return ISO_OK;
}

/* One expression and all below it: open lists on a stack, so that depth costs no C stack. */
static iso_code read_sexp(reader *r, const eg_sexp **out) {
  struct {
    eg_sexp *list;
    const eg_sexp **tail;
  } open[MAX_DEPTH];
  size_t depth = 0;
  do {
    skip(r);
    if (r->p == r->end)
      return fail_at(r, depth ? open[depth - 1].list->text : r->p,
                     "a parenthesis that is not closed");
    if (*r->p == ')' && depth) {
      eg_sexp *list = open[--depth].list;
      list->n = (size_t)(++r->p - list->text);
      continue;
    }
    eg_sexp *e = iso_arena_alloc(r->arena, sizeof *e);
    if (!e) return nomem(r);
    if (*r->p == '(') {
      if (depth == MAX_DEPTH) return fail_at(r, r->p, "too many parentheses inside each other");
      *e = (eg_sexp){.text = r->p++, .is_list = true};
    } else {
      const iso_code code = read_atom(r, e);
      if (code) return code;
    }
    if (depth) {
      *open[depth - 1].tail = e;
      open[depth - 1].tail = &e->next;
    } else {
      *out = e;
    }
    if (e->is_list) {
      open[depth].list = e;
      open[depth++].tail = &e->first;
    }
  } while (depth);
  return ISO_OK;
}

bool eg_sexp_is(const eg_sexp *e, const char *text) {
  return e && !e->is_list && strlen(text) == e->n && memcmp(e->text, text, e->n) == 0;
}

static bool headed(const eg_sexp *e, const char *name) {
  return e && e->is_list && eg_sexp_is(e->first, name);
}

/* The only argument of `(name X)`. */
static const eg_sexp *only(const eg_sexp *e) {
  return e->first && e->first->next && !e->first->next->next ? e->first->next : NULL;
}

static bool number(const eg_sexp *e, uint64_t *out) {
  uint64_t v = 0;
  if (!e || e->is_list || e->n == 0) return false;
  for (size_t i = 0; i < e->n; i++) {
    if (e->text[i] < '0' || e->text[i] > '9') return false;
    if (__builtin_mul_overflow(v, (uint64_t)10, &v) ||
        __builtin_add_overflow(v, (uint64_t)(e->text[i] - '0'), &v))
      return false;
  }
  *out = v;
  return true;
}

static iso_code word(reader *r, const eg_sexp *e, const char **out) {
  const eg_sexp *x = only(e);
  if (!x || x->is_list) return fail_at(r, e->text, "one word is expected");
  *out = iso_arena_strndup(r->arena, x->text, x->n);
  return *out ? ISO_OK : nomem(r);
}

static size_t count(const eg_sexp *list) {
  size_t n = 0;
  for (const eg_sexp *e = list->first ? list->first->next : NULL; e; e = e->next) n++;
  return n;
}

static iso_code read_rule(reader *r, const eg_sexp *e, eg_workload_rule *out) {
  const bool multi = headed(e, "multi-rule");
  if (!multi && !headed(e, "rule")) return fail_at(r, e->text, "a rule is expected");
  const eg_sexp *name = e->first->next, *lhs = name ? name->next : NULL,
                *rhs = lhs ? lhs->next : NULL;
  if (!rhs || name->is_list) return fail_at(r, e->text, "a rule has a name and two sides");
  if (multi && (!lhs->quoted || !rhs->quoted))
    return fail_at(r, e->text, "the sides of a multi-rule are quoted");
  for (const eg_sexp *x = rhs->next; x; x = x->next) {
    if (headed(x, "when") && !out->when) out->when = x;
    else if (headed(x, "if") && !out->cond) out->cond = x;
    else return fail_at(r, x->text, "unknown part of a rule");
  }
  out->name = iso_arena_strndup(r->arena, name->text, name->n);
  out->lhs = iso_arena_strndup(r->arena, lhs->text, lhs->n);
  out->rhs = iso_arena_strndup(r->arena, rhs->text, rhs->n);
  out->multi = multi;
  out->lhs_at = lhs;
  out->rhs_at = rhs;
  return out->name && out->lhs && out->rhs ? ISO_OK : nomem(r);
}

static iso_code read_rules(reader *r, const eg_sexp *list, eg_workload *w) {
  eg_workload_rule *rule = iso_arena_alloc(r->arena, (count(list) + 1) * sizeof *rule);
  if (!rule) return nomem(r);
  w->rule = rule;
  for (const eg_sexp *e = list->first->next; e; e = e->next) {
    const iso_code code = read_rule(r, e, &rule[w->n_rules]);
    if (code) return code;
    w->n_rules++;
  }
  return ISO_OK;
}

static iso_code read_run(reader *r, const eg_sexp *e, eg_workload_run *out) {
  if (!headed(e, "run")) return fail_at(r, e->text, "a run is expected");
  for (const eg_sexp *x = e->first->next; x; x = x->next) {
    const eg_sexp *v = x->is_list ? only(x) : NULL;
    uint64_t n = 0;
    if (headed(x, "scheduler") && (eg_sexp_is(v, "simple") || eg_sexp_is(v, "backoff")))
      out->backoff = eg_sexp_is(v, "backoff");
    else if (headed(x, "iteration-limit") && number(v, &n)) out->iteration_limit = n;
    else if (headed(x, "node-limit") && (number(v, &n) || eg_sexp_is(v, "none")))
      out->node_limit = n;
    else return fail_at(r, x->text, "unknown part of a run");
  }
  return ISO_OK;
}

static iso_code read_runs(reader *r, const eg_sexp *list, eg_workload *w) {
  eg_workload_run *run = iso_arena_alloc(r->arena, (count(list) + 1) * sizeof *run);
  if (!run) return nomem(r);
  w->run = run;
  for (const eg_sexp *e = list->first->next; e; e = e->next) {
    const iso_code code = read_run(r, e, &run[w->n_runs]);
    if (code) return code;
    w->n_runs++;
  }
  return ISO_OK;
}

static iso_code read_workload(reader *r, const eg_sexp *top, eg_workload *w) {
  bool start = false;
  for (const eg_sexp *e = top->first->next; e; e = e->next) {
    iso_code code = ISO_OK;
    if (headed(e, "name")) code = word(r, e, &w->name);
    else if (headed(e, "language")) code = word(r, e, &w->language);
    else if (headed(e, "analysis")) code = word(r, e, &w->analysis);
    else if (headed(e, "rules") && !w->rule) code = read_rules(r, e, w);
    else if (headed(e, "measure") && !w->run) code = read_runs(r, e, w);
    else if (headed(e, "start") && !start) w->start = e->first->next, start = true;
    else if (!headed(e, "expected")) code = fail_at(r, e->text, "unknown part of a workload");
    if (code) return code;
  }
  return w->rule && w->run && start
             ? ISO_OK
             : fail_at(r, top->text, "a workload has rules, start and measure");
}

static iso_code read_case(reader *r, const eg_sexp *e, eg_workload_case *out) {
  const eg_sexp *x = e->first->next;
  if (headed(x, "mirror") || headed(x, "random")) {
    const eg_sexp *v = x->first->next;
    out->mirror = headed(x, "mirror");
    if (number(v, &out->terms) && number(v->next, &out->seed) &&
        (out->mirror
             ? !v->next->next
             : number(v->next->next, &out->divisor) && out->divisor && !v->next->next->next) &&
        out->terms < UINT32_MAX)
      return ISO_OK;
  }
  return fail_at(r, e->text, "a case is (random TERMS SEED DIVISOR) or (mirror TERMS SEED)");
}

static iso_code read_closure(reader *r, const eg_sexp *top, eg_workload *w) {
  eg_workload_case *at = iso_arena_alloc(r->arena, (count(top) + 1) * sizeof *at);
  if (!at) return nomem(r);
  w->closure = true;
  w->at = at;
  for (const eg_sexp *e = top->first->next; e; e = e->next) {
    if (headed(e, "measure")) continue;
    if (!headed(e, "case") || !e->first->next) return fail_at(r, e->text, "a case is expected");
    const iso_code code = read_case(r, e, &at[w->n_cases]);
    if (code) return code;
    w->n_cases++;
  }
  return ISO_OK;
}

static iso_code read_file(reader *r, eg_workload *w) {
  const eg_sexp *top = NULL;
  iso_code code = read_sexp(r, &top);
  if (code) return code;
  skip(r);
  if (r->p != r->end) return fail_at(r, r->p, "more text behind the workload");
  if (headed(top, "workload")) return read_workload(r, top, w);
  if (headed(top, "congruence-closure")) return read_closure(r, top, w);
  return fail_at(r, top->text, "(workload ...) or (congruence-closure ...) is expected");
}

iso_code eg_workload_parse(const char *text, size_t n, const char *file, eg_workload **out,
                           iso_error *err) {
  eg_workload *w = calloc(1, sizeof *w);
  eg_workload_memory *mem = calloc(1, sizeof *mem);
  char *copy = NULL;
  if (w && mem) {
    iso_arena_init(&mem->arena);
    w->mem = mem;
    w->name = w->language = "";
    w->analysis = "none";
    copy = iso_arena_strndup(&mem->arena, text, n);
  } else {
    free(mem);
  }
  iso_code code;
  if (copy) {
    reader r = {
        .file = file, .begin = copy, .p = copy, .end = copy + n, .arena = &mem->arena, .err = err};
    code = read_file(&r, w);
  } else {
    code = iso_fail(err, ISO_NOMEM, "%s: out of memory", file);
  }
  if (code) {
    eg_workload_free(w);
    return code;
  }
  *out = w;
  return ISO_OK;
}

void eg_workload_free(eg_workload *w) {
  if (!w) return;
  if (w->mem) iso_arena_fini(&w->mem->arena);
  free(w->mem);
  free(w);
}
