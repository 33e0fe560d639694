/* The report of a comparison for people: the verdict first, then where the graphs differ, then the
 * evidence and assumptions of the verdict. Without -v it fits a screen. The verdict is the last
 * line again, for programs that read only that. */
#include "cli/report/report_int.h"
#include "cli/report/rounding.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many of a list are printed without -v. */
enum { SHOWN = 8 };

static const char *short_op(const char *op) {
  const char *p = strstr(op, "::");
  return p ? p + 2 : op;
}

/* The rank that a node of a capture of several belongs to, by its name; -1: all of them, or there
 * is one. */
static int rank_of(const cap_node *n) {
  int rank, end = 0;
  if (n->name && sscanf(n->name, "rank%4d.%n", &rank, &end) == 1 && end > 0) return rank;
  end = 0;
  return !n->name && sscanf(n->id, "r%4d_%n", &rank, &end) == 1 && end > 0 ? rank : -1;
}

static void print_place(FILE *f, const char *side, const cap_node *n) {
  if (!n) return;
  fprintf(f, "  %-5s %s", side, n->id);
  if (n->kind == CAP_OP) fprintf(f, " (%s)", n->op);
  else fprintf(f, " (leaf %s)", n->name);
  const int rank = rank_of(n);
  if (rank >= 0) fprintf(f, " on rank %d", rank);
  if (n->scope && *n->scope) fprintf(f, " in %s", n->scope);
  if (n->source && *n->source) fprintf(f, ", %s", n->source);
  if (n->caller && *n->caller) fprintf(f, ", called at %s", n->caller);
  fputc('\n', f);
}

static void print_index(FILE *f, const rule_shape *s, int64_t index) {
  int64_t at[RULE_MAX_RANK];
  for (uint32_t d = s->rank; index >= 0 && d-- > 0 && s->dim[d] > 0; index /= s->dim[d])
    at[d] = index % s->dim[d];
  for (uint32_t d = 0; index >= 0 && d < s->rank; d++)
    fprintf(f, "%s%" PRId64, d ? ", " : ", at [", at[d]);
  fputs(index >= 0 && s->rank ? "]\n" : "\n", f);
}

/* z3's answer on the i-th rule where it was asked; "" where not. */
static void say_z3(const report *p, size_t i, char *text, size_t size) {
  const obligations *o = p->obligations;
  text[0] = '\0';
  if (!o || !o->asked) return;
  if (o->n[i])
    snprintf(text, size, "; z3 answers %" PRIu32 " obligation%s", o->n[i], o->n[i] == 1 ? "" : "s");
  else if (o->why[i][0]) snprintf(text, size, "; not certified: %s", o->why[i]);
}

static void print_rule(const report *p, size_t i, FILE *f) {
  const synth_rule_use *u = &p->r->rule[i];
  char *lhs = rule_side_print(u->what, false), *rhs = rule_side_print(u->what, true);
  char how[RULE_METHOD_TEXT], z3[240];
  say_z3(p, i, z3, sizeof z3);
  fprintf(f, "  %s: %s, %s, %s; used %zu time%s%s%s\n    %s\n    <=> %s\n", u->what->name,
          rule_status_name(u->verdict.status), rule_scope_name(u->verdict.scope),
          rule_verdict_method(&u->verdict, how), u->uses, u->uses == 1 ? "" : "s",
          u->loaded ? "; loaded" : "", z3, lhs ? lhs : "?", rhs ? rhs : "?");
  free(lhs);
  free(rhs);
}

/* A rule that keeps the verdict from the strongest evidence that was asked for. */
static bool holds_back(const report *p, size_t i) {
  const bool asked = p->obligations && p->obligations->asked;
  return p->r->rule[i].verdict.status < RULE_PROVED || (asked && !p->obligations->n[i]);
}

/* All rules with -v; without it how many are of which status, and those that hold the evidence
 * back. */
static void print_rules(const report *p, FILE *f) {
  const synth_result *r = p->r;
  if (r->n_rules == 0) return;
  if (p->verbose) {
    fprintf(f, "\nrules (%zu):\n", r->n_rules);
    for (size_t i = 0; i < r->n_rules; i++) print_rule(p, i, f);
    return;
  }
  fprintf(f, "\nrules: ");
  const char *before = "";
  for (int status = RULE_PROVED; status >= 0; status--) {
    size_t n = 0;
    for (size_t i = 0; i < r->n_rules; i++) n += (int)r->rule[i].verdict.status == status;
    if (n) fprintf(f, "%s%zu %s", before, n, rule_status_name((rule_status)status)), before = ", ";
  }
  fputs(" (-v lists them)\n", f);
  size_t shown = 0;
  for (size_t i = 0; i < r->n_rules; i++)
    if (holds_back(p, i) && shown++ < SHOWN) print_rule(p, i, f);
  if (shown > SHOWN) fprintf(f, "  and %zu more that are not as strong\n", shown - SHOWN);
}

static void print_leaves(size_t n, size_t by_name, FILE *f) {
  if (n > by_name) fprintf(f, "  leaf: %zu leaves related by value\n", n - by_name);
  if (by_name) fprintf(f, "  leaf: by name, not compared: %zu leaves\n", by_name);
}

/* All assumptions with -v; without it the first few of each kind. */
static void print_assumptions(const report *p, FILE *f) {
  enum { OF_A_KIND = 2 };
  const synth_result *r = p->r;
  fprintf(f, "\nassumes (%zu%s):\n", r->n_assumptions, p->verbose ? "" : "; -v lists them");
  for (size_t i = 0; i < r->n_assumptions; i++) {
    const rule_assumption kind = r->assumption[i].kind;
    const char *name = rule_assumption_name(kind);
    size_t before = 0, all = 0;
    for (size_t j = 0; j < r->n_assumptions; j++)
      if (r->assumption[j].kind == kind) all++, before += j < i;
    if (p->verbose || (before < OF_A_KIND && kind != RULE_ASSUMES_LEAF))
      fprintf(f, "  %s: %s\n", name, r->assumption[i].text);
    else if (kind == RULE_ASSUMES_LEAF && before == 0) print_leaves(all, r->n_by_name, f);
    else if (before == OF_A_KIND && kind != RULE_ASSUMES_LEAF)
      fprintf(f, "  %s: and %zu more\n", name, all - before);
  }
}

/* The verdict's word; colour never says more than the word does. */
static void print_verdict(const report *p, const char *word, FILE *f) {
  static const int colour[] = {
      [SYNTH_EQUIVALENT] = 32, [SYNTH_DIFFERENT] = 31, [SYNTH_UNDECIDED] = 33}; /* green, red,
                                                                                   yellow */
  if (p->colour) fprintf(f, "isomer: \033[1;%dm%s\033[0m", colour[p->r->verdict], word);
  else fprintf(f, "isomer: %s", word);
}

static const char *redrawn_what(const synth_result *r) {
  return !r->redrawn_parameters ? "inputs"
         : r->n_changed_all     ? "inputs and parameters"
                                : "parameters";
}

/* The sizes that a difference was found at, where they are not the captured ones. */
static const char *first_at(const report *p) { return p->looked ? p->looked->first : NULL; }

/* The sizes that an equivalence is for, where they are more than the captured ones. */
static const char *scope_of(const report *p) { return p->looked ? p->looked->scope : NULL; }

static const char *witness_on(const report *p) {
  const synth_result *r = p->r;
  if (p->counterexample) return "on the inputs that were written";
  if (!r->redrawn && first_at(p)) return "on inputs of these sizes and the captured parameters";
  if (!r->redrawn) return "on the captured inputs and parameters";
  return !r->redrawn_parameters ? "on redrawn inputs and the captured parameters"
         : r->n_changed_all     ? "on redrawn inputs and parameters"
                                : "on redrawn parameters";
}

/* The elements of a drawn witness that have to be other than they were captured. */
static void print_changed(const report *p, FILE *f) {
  const synth_result *r = p->r;
  for (size_t i = 0; i < r->n_changed; i++) {
    const synth_changed *x = &r->changed[i];
    int64_t at[RULE_MAX_RANK], index = x->index;
    for (uint32_t d = x->shape.rank; d-- > 0 && x->shape.dim[d] > 0; index /= x->shape.dim[d])
      at[d] = index % x->shape.dim[d];
    fprintf(f, "  with %s", (x->right ? p->right : p->left)->node[x->node].name);
    for (uint32_t d = 0; d < x->shape.rank; d++) fprintf(f, "%s%" PRId64, d ? ", " : "[", at[d]);
    fprintf(f, "%s = %.9g (captured: %.9g)\n", x->shape.rank ? "]" : "", x->value, x->captured);
  }
  if (r->n_changed_all > r->n_changed)
    fprintf(f, "  and %zu more elements\n", r->n_changed_all - r->n_changed);
}

/* `where`: "", or which pair it is that decides. */
static void print_verdict_line(const report *p, const char *where, FILE *f) {
  const synth_result *r = p->r;
  const char *pinned = p->pinned ? ", at these weights" : "";
  if (r->verdict == SYNTH_EQUIVALENT) {
    print_verdict(p, "EQUIVALENT", f);
    /* Obligations are asked of the captured sizes' chain. */
    const char *more = r->evidence == RULE_CERTIFIED ? "; proved for " : ", for ";
    fprintf(f, " [%s%s%s]", rule_status_name(r->evidence), scope_of(p) ? more : "",
            scope_of(p) ? scope_of(p) : "");
    fputs(pinned, f);
    if (p->refinement && p->refinement->unexpected)
      fprintf(f, ", not as expected: %s", p->refinement->unexpected);
    fputc('\n', f);
    return;
  }
  if (r->verdict == SYNTH_UNDECIDED) {
    print_verdict(p, "UNDECIDED", f);
    fprintf(f, ": %s%s%s\n", r->reason ? r->reason : "no reason", pinned, where);
    return;
  }
  const cap_node *n = r->n_divergences ? report_node(p->right, r->divergence[0].right) : NULL;
  if (!n && r->n_divergences) n = report_node(p->left, r->divergence[0].left);
  print_verdict(p, "DIFFERENT", f);
  fprintf(f, " at %s (%s)%s%s [witness: ",
          n && n->scope && *n->scope ? n->scope
          : n                        ? n->id
                                     : "the outputs",
          n ? (n->kind == CAP_OP ? short_op(n->op) : n->name) : "?",
          first_at(p) ? ", first at " : "", first_at(p) ? first_at(p) : "");
  if (r->redrawn)
    fprintf(f, "seed %" PRIu64 ", %s redrawn%s]", r->witness_seed, redrawn_what(r), where);
  else
    fprintf(f, "%s%s]",
            p->counterexample ? "written inputs"
            : first_at(p)     ? "inputs of these sizes"
                              : "captured inputs",
            where);
  fputs(pinned, f);
  if (p->known && p->known->n_new == 0 && p->known->n) fputs(" [known]", f);
  fputc('\n', f);
}

/* The inputs that were written, where they are short. */
static void print_inputs(const report *p, FILE *f) {
  enum { SHORT = 32 };
  fprintf(f, "counterexample: %s\n", p->counterexample);
  for (int side = 0; side < 2; side++) {
    const cap_graph *g = side == 0 ? p->left : p->right;
    for (size_t i = 0; i < g->n_nodes && p->r->witness_leaf[side]; i++) {
      const rule_tensor *t = p->r->witness_leaf[side][i];
      if (!t || g->node[i].kind != CAP_INPUT || t->numel > SHORT) continue;
      fprintf(f, "  %s.%s =", side == 0 ? "left" : "right", g->node[i].name);
      for (int64_t k = 0; k < t->numel; k++) fprintf(f, " %.6g", rule_tensor_get(t, k));
      fputc('\n', f);
    }
  }
}

/* Of a training step on many ranks all states of the optimizer are inputs. */
static void print_shapes(const report *p, const cap_graph *g, const char *side, FILE *f) {
  char text[256];
  size_t n = 0;
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == CAP_INPUT && (n++ < SHOWN || p->verbose))
      fprintf(f, ", %s's %s %s", side, g->node[i].name,
              rule_shape_print(&g->node[i].output[0].shape, text, sizeof text));
  if (n > SHOWN && !p->verbose) fprintf(f, " and %zu more (-v)", n - SHOWN);
}

static void print_coverage(const report *p, FILE *f) {
  const synth_coverage *v = &p->r->coverage;
  fputs("\ncoverage:\n  nodes: ", f);
  for (int side = 0; side < 2; side++) {
    const cap_graph *g = side == 0 ? p->left : p->right;
    fprintf(f, "%s %zu of %zu reached", side == 0 ? "left" : ", right", v->n_reached[side],
            g->n_nodes);
    for (size_t i = 0; i < v->n_unreached[side] && (i < SHOWN || p->verbose); i++)
      fprintf(f, "%s%s", i == 0 ? " (not: " : ", ", g->node[v->unreached[side][i]].id);
    if (v->n_unreached[side])
      fputs(v->n_unreached[side] > SHOWN && !p->verbose ? ", ...)" : ")", f);
    if (v->not_run[side] >= 0) fprintf(f, ", %s could not be run", g->node[v->not_run[side]].id);
  }
  fprintf(f,
          "\n  draws: %zu captured, %zu with fresh inputs and parameters, %zu in search of a "
          "difference",
          v->n_captured, v->n_redrawn, v->n_searched);
  print_shapes(p, p->left, "left", f);
  print_shapes(p, p->right, "right", f);
  fprintf(f, "\n  branches on values: %zu", v->n_points);
  for (size_t i = 0; i < v->n_branches && (i < SHOWN || p->verbose); i++) {
    const synth_branch *b = &v->branch[i];
    const cap_node *n = &(b->right ? p->right : p->left)->node[b->node];
    fprintf(f, "\n    %s %s (%s): %s", b->right ? "right" : "left ", n->id, n->op, b->missing);
  }
  if (v->n_branches > SHOWN && !p->verbose)
    fprintf(f, "\n    and %zu more (-v)", v->n_branches - SHOWN);
  if (p->same_graph)
    fprintf(f, "\n  same graph: both sides are the same operators with the same arguments; %s",
            p->r->verdict == SYNTH_DIFFERENT
                ? "what differs is which leaves they read, or the values of these"
                : "a setting that was to change one of them changed nothing here");
  fprintf(f, "\n  merged tensors differ by up to %.3g (relative)\n", p->r->largest_merged);
}

static void print_side(const cap_graph *g, const char *side, FILE *f) {
  fprintf(f, "%-5s  %s", side, g->path);
  for (size_t i = 0; i < g->n_then; i++) fprintf(f, ", then %s", g->then[i]);
  fprintf(f, ": %s, %s, %zu nodes\n", g->model, g->framework, g->n_nodes);
}

static void print_divergence(const report *p, size_t i, FILE *f) {
  const synth_divergence *d = &p->r->divergence[i];
  fprintf(f, "\n%s:\n",
          p->r->verdict != SYNTH_DIFFERENT ? "first gap"
          : i == 0                         ? "first divergence"
                                           : "another divergence");
  print_place(f, "left", report_node(p->left, d->left));
  print_place(f, "right", report_node(p->right, d->right));
  if (d->hint) fprintf(f, "  hint  %s\n", d->hint);
  if (p->known && p->known->reason[i]) fprintf(f, "  known %s\n", p->known->reason[i]);
  if (d->max_abs > 0) {
    fprintf(f, "  there the values differ by up to %.3g (relative %.3g)", d->max_abs, d->max_rel);
    print_index(f, &d->shape, d->index);
  }
}

static void print_witness(const report *p, FILE *f) {
  const synth_result *r = p->r;
  if (r->verdict != SYNTH_DIFFERENT) return;
  if (isinf(r->witness_abs))
    fprintf(f, "\nwitness: output %s is a number on one side only %s\n", r->witness_output,
            witness_on(p));
  else if (r->witness_abs == 0)
    fprintf(f, "\nwitness: output %s has other sizes, whatever the inputs\n", r->witness_output);
  else
    fprintf(f, "\nwitness: output %s differs by up to %.3g (relative %.3g) %s\n", r->witness_output,
            r->witness_abs, r->witness_rel, witness_on(p));
  if (!p->counterexample) print_changed(p, f);
}

/* Whether a divergence repeats the text of an earlier one, for another place. */
static bool repeats(const report *p, size_t i) {
  const synth_divergence *d = p->r->divergence;
  for (size_t j = 0; j < i; j++)
    if (d[i].hint && d[j].hint && strcmp(d[i].hint, d[j].hint) == 0) return true;
  return false;
}

/* A divergence that repeats another in one line, unless all is to be told. */
static void print_divergences(const report *p, FILE *f) {
  for (size_t i = 0; i < p->r->n_divergences; i++) {
    const cap_node *n = report_node(p->right, p->r->divergence[i].right);
    if (!n) n = report_node(p->left, p->r->divergence[i].left);
    const bool known = p->known && p->known->reason[i];
    if (p->verbose || known || !n || !repeats(p, i)) print_divergence(p, i, f);
    else fprintf(f, "  also  %s in %s\n", n->id, n->scope && *n->scope ? n->scope : "the model");
  }
}

/* Where the graphs differ, with the witness. */
static void print_difference(const report *p, FILE *f) {
  const synth_result *r = p->r;
  print_divergences(p, f);
  for (size_t i = 0; i < r->n_unexplained; i++) {
    const cap_graph *g = r->unexplained[i].right ? p->right : p->left;
    fprintf(f, "unexplained leaf: %s's %s\n", r->unexplained[i].right ? "right" : "left",
            g->node[r->unexplained[i].node].name);
  }
  for (size_t i = 0; p->known && i < p->known->n_stale; i++)
    fprintf(f, "\nin the baseline, and not found: %s\n", p->known->stale[i]);
  print_witness(p, f);
  if (p->counterexample) print_inputs(p, f);
  if (p->repro) fprintf(f, "script: %s shows it alone\n", p->repro);
}

/* All outputs with -v; without it the first, and of the others those that were not shown equal. */
static void print_outputs(const report *p, FILE *f) {
  const synth_result *r = p->r;
  size_t hidden = 0;
  for (size_t i = 0; i < r->n_pairs; i++) {
    if (!p->verbose && i >= SHOWN && r->pair[i].equivalent) {
      hidden++;
      continue;
    }
    const char *as =
        strcmp(r->pair[i].relation, "equal") == 0 ? r->pair[i].right : r->pair[i].relation;
    fprintf(f, "output %s = %s: %s\n", r->pair[i].left, as,
            r->pair[i].equivalent ? "equivalent" : "not shown equal");
  }
  if (hidden) fprintf(f, "and %zu more outputs: equivalent (-v lists them)\n", hidden);
}

static void print_pair(const report *p, FILE *f) {
  const synth_result *r = p->r;
  print_side(p->left, "left", f);
  print_side(p->right, "right", f);
  print_outputs(p, f);
  if (p->refinement) refinement_text(p->refinement, f);
  print_difference(p, f);
  report_rounding_text(p, f);
  print_rules(p, f);
  if (p->explain && r->n_steps) {
    fprintf(f, "\nwhy (%zu steps):\n", r->n_steps);
    for (size_t i = 0; i < r->n_steps; i++) fprintf(f, "  %zu. %s\n", i + 1, r->step[i]);
  }
  print_assumptions(p, f);
  if (p->looked) looked_text(p->looked, f);
  print_coverage(p, f);
  fputc('\n', f);
}

void report_text(const report *p, size_t n, size_t decides, FILE *f) {
  char where[64] = "";
  if (n > 1) snprintf(where, sizeof where, ", pair %zu of %zu", decides + 1, n);
  if (!p->quiet) {
    print_verdict_line(&p[decides], where, f);
    report_rounding_line(&p[decides], f);
    fputc('\n', f);
  }
  for (size_t k = 0; k < n && !p->quiet; k++) {
    if (n > 1) fprintf(f, "pair %zu of %zu: %s\n", k + 1, n, report_verdict_name(p[k].r->verdict));
    print_pair(&p[k], f);
  }
  print_verdict_line(&p[decides], where, f);
}
