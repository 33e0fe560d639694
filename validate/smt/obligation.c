/* A proof obligation as an SMT-LIB file that a stock z3 answers.
 *
 * The elements of both sides are written down as the definitions give them (sc.plain: real numbers
 * are not brought into normal form; conditions on indices stand outside, and arithmetic on indices
 * is simplified), at generic indices and symbolic sizes. Each sum over an index is a constant of
 * which only instances of axioms are told: split at a bound, linearity, factors outside, a range
 * that is a product, exchange, and congruence (two sums over one range are equal, or their summands
 * differ at a place w, which is named). Which instances are needed is a guess: soundness does not
 * rest on it, since the answer is z3's. An obligation that z3 does not answer with `unsat` for the
 * goal and `sat` without it is given up. */
#include "egraph/base/hash.h"
#include "validate/smt/obligation_int.h"
#include "validate/inside.h"
#include "validate/prove/z3_lazy.h"

static void hypotheses(smt_writer *w) {
  sc *c = w->c;
  smt_line(w, "; what holds in this case\n");
  for (size_t i = 0; i < c->here.n_facts; i++) {
    const smt_name n = smt_write(w, c->here.fact[i]);
    smt_line(w, "(assert (>= %s 0))\n", n.s);
  }
  for (size_t i = 0; i < c->here.n_path; i++) {
    const smt_name n = smt_write(w, c->here.path[i].cond);
    smt_line(w, c->here.path[i].holds ? "(assert %s)\n" : "(assert (not %s))\n", n.s);
  }
}

static void comment(FILE *f, const char *text) {
  fputs("; ", f);
  for (; *text; text++) {
    fputc(*text, f);
    if (*text == '\n' && text[1]) fputs("; ", f);
  }
  if (text[-1] != '\n') fputc('\n', f);
}

static long long number_in(const rule_term *t, uint32_t i) { return (long long)t->child[i]->u.i; }

/* Of a chunk, which may have two dimensions in each other's place, which one it is. */
static void chunk(const rule_term *t, FILE *f) {
  const bool turned = strcmp(t->u.s, "getitem") != 0;
  const rule_term *one = turned ? t->child[0] : t, *all = one->child[0];
  fprintf(f, ", of %lld chunks along %lld", number_in(all, 1), number_in(all, 2));
  fprintf(f, " the one at %lld,", number_in(one, 1));
  if (turned) fprintf(f, " dimensions %lld and %lld exchanged,", number_in(t, 1), number_in(t, 2));
}

/* The meaning of the unknown tensors. */
static void parts(const sc *c, FILE *f) {
  const char *name[64];
  for (uint32_t i = 0; i < c->r->n_vars && i < 64; i++) name[i] = c->r->var[i].name;
  for (size_t i = 0; i < c->look->n_cuts; i++) {
    char *text = rule_term_print(c->look->cut[i].term, c->schemas, name);
    const sc_cut *k = &c->look->cut[i];
    fprintf(f, "; %s", c->r->var[k->var].name);
    if (k->piece) chunk(k->as, f);
    fputs(" is\n", f);
    if (text) comment(f, text);
    free(text);
  }
}

static void head(const sc *c, FILE *f) {
  rule own = *c->r;
  if (c->look->n_own) own.n_vars = c->look->n_own;
  char *text = rule_print(&own);
  fputs("; The negation of this rule, at one element of both sides, is unsatisfiable in the case "
        "below:\n",
        f);
  if (text) comment(f, text);
  free(text);
  if (c->look->of)
    fputs("; where both sides of the rule are defined of which these are parts.\n", f);
  if (c->look->n_cuts)
    fputs("; where parts of it, each shown to be the same on both sides by an obligation of its "
          "own, are unknown tensors:\n",
          f);
  parts(c, f);
  fputs(";\n; n_N is the size N, v_x(i, ...) an element of the variable x, i7 an index in its "
        "range, s7 a sum over an index ($ its\n"
        "; bound indices), of which only the instances of axioms below are told. t7, p7, ... are "
        "definitions. Real numbers stand as\n"
        "; the operators' definitions give them; arithmetic on indices is simplified. What is "
        "divided by is not 0: the rule speaks\n"
        "; of values for which both sides are defined. Minus infinity is ninf, any number: what is "
        "equal for all\n; of them is so in the limit.\n",
        f);
  if (c->reading.read_literals)
    fputs("; Float literals stand for the numbers that the rule reads them as: roots, and minus "
          "infinity for masks.\n",
          f);
  for (size_t i = 0; i < c->here.n_bound_sizes; i++) {
    char *from = sx_print((sc *)c, c->here.bound_size[i].from),
         *to = sx_print((sc *)c, c->here.bound_size[i].to);
    fprintf(f, "; in this case %s is %s\n", from ? from : "", to ? to : "");
    free(from);
    free(to);
  }
  /* With products of its own z3 4.8 now and then does not stop, whatever its limits. */
  fputs("(declare-fun mul (Real Real) Real) ; products; of them only what follows is told\n", f);
}

/* Sizes and attributes for which the assumptions are to have a model. */
static void pinned(smt_writer *w, const double *v) {
  const sc *c = w->c;
  for (size_t i = 0; i < c->store.n_syms && i < sizeof w->sym; i++) {
    const sx_sym *s = &c->store.sym[i];
    if (!w->sym[i] || !strchr("saq", s->role)) continue;
    const smt_name n = smt_plain_name(s->role == 's' ? 'n' : s->role, s->name, i);
    const char *negative = v[i] < 0 ? "(- " : "", *end = v[i] < 0 ? ")" : "";
    fprintf(w->f, s->flags & S_INT ? "(assert (= %s %s%.0f%s))\n" : "(assert (= %s %s%.2f%s))\n",
            n.s, negative, v[i] < 0 ? -v[i] : v[i], end);
  }
}

/* Enough for each obligation of the core rules. What takes more is as a rule not answered at all,
 * and is asked in several ways. */
enum { Z3_STEPS = 300000, MAX_GIVEN_UP = 4 };

/* Ways of telling, and of looking at a rule, often come to the same text, which is asked of once.
 */
static char *answers(sc *c, const char *text) {
  sc_obligations *k = c->obligations;
  const uint64_t hash = iso_hash(text, strlen(text), 0);
  for (size_t i = 0; i < k->n_answers; i++)
    if (k->answer[i].hash == hash) return strdup(k->answer[i].said);
  /* What z3 gives up on so often is as a rule its index arithmetic, which is in each text. */
  if (k->given_up >= MAX_GIVEN_UP) return strdup("unknown\n");
  bool overran = false;
  char *r = val_z3_answers(text, Z3_STEPS, &overran); /* the limit is not in the file */
  k->given_up += r && !strncmp(r, "unknown", 7);
  c->fault.overran |= overran;
  if (r && !overran && strlen(r) < sizeof k->answer->said && k->n_answers < SC_MAX_ANSWERS) {
    sc_answer *a = &k->answer[k->n_answers++];
    a->hash = hash;
    strcpy(a->said, r);
  }
  return r;
}

static char *compose(smt_writer *w, const char *body, const char *end) {
  char *text = NULL;
  size_t n = 0;
  FILE *f = open_memstream(&text, &n);
  if (!f) return NULL;
  head(w->c, f);
  fputs(body, f);
  fputs(end, f);
  fclose(f);
  return text;
}

/* Goal and vacuity, in this order. */
static char *ending(smt_writer *w, smt_name x, smt_name y, bool pin) {
  char *text = NULL;
  size_t n = 0;
  double *v = calloc(w->c->store.n_syms + 1, sizeof *v);
  FILE *body = w->f, *f = v && (!pin || sc_model(w->c, v)) ? open_memstream(&text, &n) : NULL;
  if (f) {
    w->f = f;
    fprintf(
        f,
        "; the sides are equal: unsat\n(push 1)\n(assert (not (= %s %s)))\n(check-sat)\n(pop 1)\n",
        x.s, y.s);
    fprintf(f, "; and what was assumed has a model%s: sat\n(push 1)\n",
            pin ? ", at these sizes" : "");
    if (pin) pinned(w, v);
    fputs("(check-sat)\n(pop 1)\n", f);
    fclose(f);
    w->f = body;
  }
  free(v);
  return text;
}

/* A case that no sizes meet: its hypotheses are contradictory by themselves, and that is its
 * obligation. */
static char *empty_case(smt_writer *w) {
  smt_writer *k = calloc(1, sizeof *k);
  char *body = NULL, *text = NULL, *got = NULL;
  size_t n = 0;
  if (k)
    k->c = w->c, k->declared = calloc(w->c->r->n_vars + 1, sizeof *k->declared),
    k->f = open_memstream(&body, &n);
  if (k && k->f) {
    hypotheses(k);
    fclose(k->f);
    text = k->failed || !k->declared
               ? NULL
               : compose(k, body, "; no sizes meet this case: unsat\n(check-sat)\n");
    got = text ? answers(w->c, text) : NULL;
  }
  if (k) free(k->memo), free(k->declared);
  const bool empty = got && !strcmp(got, "unsat\n");
  if (!empty) free(text);
  free(got);
  free(body);
  free(k);
  return empty ? text : NULL;
}

/* Why z3's answer is not the one that is wanted. */
static void explain(const smt_writer *w, const char *got, char *why) {
  char of[120];
  smt_spoken_of(w, of, sizeof of);
  if (!strncmp(got, "sat", 3))
    snprintf(why, 200, "z3 does not see it from the axioms that are told of %s", of);
  else if (!strncmp(got, "unknown", 7))
    snprintf(why, 200, "z3 gives up on the axioms that are told of %s", of);
  else if (!strncmp(got, "unsat", 5))
    snprintf(why, 200, "z3 does not see that what is assumed has a model, told of %s", of);
  else snprintf(why, 200, "z3 does not answer as it should: %.100s", got);
  for (char *p = why; *p; p++)
    if (*p == '\n') *p = ' ';
}

enum { LONG_TEXT = 1 << 18 }; /* what is longer is asked in one way only: it takes z3 seconds */

static void write_case(smt_writer *w, sx x, sx y, char **out, char *why) {
  char *body = NULL;
  size_t n = 0;
  sc *c = w->c;
  w->f = open_memstream(&body, &n);
  if (!w->f) return;
  hypotheses(w);
  const bool truth = smt_sort_of(c, x) == 'b';
  smt_line(w, "; the left side\n");
  w->side = 1;
  const smt_name a = truth ? smt_write(w, x) : smt_real(w, x);
  smt_line(w, "; the right side\n");
  w->side = 2;
  const smt_name b = truth ? smt_write(w, y) : smt_real(w, y);
  if (!truth && w->how == SMT_CLEAR) smt_clear(w, x, y, a, b);
  smt_line(w, "; sums\n");
  smt_tell_axioms(w);
  if (c->fault.failed) smt_give_up(w, c->fault.reason);
  char *end[2] = {NULL, NULL};
  for (int pin = 0; pin < 2 && !w->failed; pin++) end[pin] = ending(w, a, b, pin);
  fclose(w->f);
  /* Sizes of a model that was found, then any. */
  for (int pin = 1; pin >= 0 && !w->failed && !*out; pin--) {
    if (!end[pin]) continue;
    char *text = compose(w, body, end[pin]), *got = text ? answers(w->c, text) : NULL;
    if (got && (c->obligations->unchecked || !strcmp(got, "unsat\nsat\n")))
      *out = text, text = NULL;
    const bool goal = got && !strncmp(got, "unsat", 5);
    c->obligations->is_long = text && strlen(text) > LONG_TEXT;
    if (!*out) explain(w, got ? got : "", why);
    free(got);
    free(text);
    /* Other sizes change nothing in the goal. */
    if (!goal || c->obligations->unchecked || c->obligations->is_long) break;
  }
  if (!*out && !w->failed && !c->obligations->unchecked) *out = empty_case(w);
  else if (*out) c->obligations->some = true;
  if (w->failed) snprintf(why, 200, "%s", w->failed);
  free(body);
  free(end[0]);
  free(end[1]);
}

static void forget_elements(sc *c) {
  free(c->terms.elems);
  c->terms.elems = NULL;
  c->terms.n_elems = c->terms.cap_elems = 0;
}

static char *attempt(sc *c, const pt_tensor *a, const pt_tensor *b, const sx *idx, smt_how how) {
  sc_obligations *k = c->obligations;
  const size_t facts = c->here.n_facts, path = c->here.n_path;
  char *text = NULL;
  smt_writer *w = calloc(1, sizeof *w);
  if (w) w->declared = calloc(c->r->n_vars + 1, sizeof *w->declared);
  if (w && w->declared) {
    w->c = c;
    w->how = how;
    c->reading.plain = true;
    forget_elements(c);
    const sx x = pt_at(c, a, idx), y = pt_at(c, b, idx);
    if (c->fault.failed) snprintf(k->why, sizeof k->why, "%s", c->fault.reason);
    else write_case(w, x, y, &text, k->why);
    forget_elements(c);
    c->reading.plain = false;
  }
  c->here.n_facts = facts;
  c->here.n_path = path;
  if (w) free(w->memo), free(w->declared);
  free(w);
  return text;
}

void sc_write_obligation(sc *c, const pt_tensor *a, const pt_tensor *b, const sx *idx) {
  sc_obligations *k = c->obligations;
  char *text = NULL;
  if (k->why[0]) return;
  const bool room = k->n < SC_MAX_OBLIGATIONS;
  k->is_long = false;
  for (int how = 0; how < SMT_HOWS && room && !text && !c->fault.failed && !k->is_long; how++)
    text = attempt(c, a, b, idx, (smt_how)how);
  if (text) k->why[0] = 0, k->text[k->n++] = text;
  else if (!k->why[0]) snprintf(k->why, sizeof k->why, room ? "out of memory" : "too many cases");
}

void val_obligations_free(val_obligations *k) {
  for (size_t i = 0; i < k->n; i++) free(k->text[i]);
  free(k->text);
  *k = (val_obligations){0};
}

iso_code val_write_obligations(const rule *r, rule_schemas *schemas, const val_options *o,
                               bool unchecked, val_obligations *out, iso_error *err) {
  *out = (val_obligations){0};
  sc_obligations *k = calloc(1, sizeof *k);
  if (!k) return iso_fail(err, ISO_NOMEM, "out of memory");
  rule_verdict v = {0};
  rule inside;
  iso_arena a = {0};
  if (val_inside(&a, r, &inside)) r = &inside;
  k->unchecked = unchecked;
  iso_code c = sc_prove(&(sc_asked){r, schemas, o}, false, k, &v, NULL, err);
  if (!c && v.status != RULE_PROVED &&
      r->reads_literals) { /* it is proved of the numbers that its literals stand for */
    for (size_t i = 0; i < k->n; i++) free(k->text[i]);
    *k = (sc_obligations){.unchecked = unchecked};
    c = sc_prove(&(sc_asked){r, schemas, o}, true, k, &v, NULL, err);
  }
  const char *why = k->why[0]                               ? k->why
                    : v.status != RULE_PROVED && !unchecked ? v.reason
                    : !k->some                              ? "no case has elements to compare"
                                                            : "";
  snprintf(out->reason, sizeof out->reason, "%.199s",
           *why || v.status == RULE_PROVED ? why : v.reason);
  if (!c && !*why) {
    out->text = malloc(k->n * sizeof *out->text);
    if (!out->text) c = iso_fail(err, ISO_NOMEM, "out of memory");
    else memcpy(out->text, k->text, k->n * sizeof *out->text), out->n = k->n, k->n = 0;
  }
  for (size_t i = 0; i < k->n; i++) free(k->text[i]);
  free(k);
  iso_arena_fini(&a);
  return c;
}
