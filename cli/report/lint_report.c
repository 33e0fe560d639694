/* Findings as text and as JSON (docs/events.md). */
#include "cli/report/lint_report.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "cli/report/baseline.h"
#include "cli/config/utf8.h"

/* ---- what is known ---- */

typedef struct entry {
  const char *kind, *name, *node, *reason;
  json_int_t rank, event;
} entry;

static bool read_entry(json_t *j, entry *e) {
  json_error_t why;
  *e = (entry){.rank = -1, .event = -1};
  return json_unpack_ex(j, &why, JSON_STRICT, "{s:s, s:s, s?s, s?s, s?I, s?I}", "kind", &e->kind,
                        "reason", &e->reason, "name", &e->name, "node", &e->node, "rank", &e->rank,
                        "event", &e->event) == 0 &&
         e->reason[0];
}

static bool matches(const entry *e, const lint_finding *f) {
  if (strcmp(e->kind, lint_kind_word(f->kind)) != 0) return false;
  if (e->node && (!f->n_nodes || strcmp(e->node, f->node[0].id) != 0)) return false;
  if (e->name && (!f->name || strcmp(e->name, f->name) != 0)) return false;
  if (e->rank < 0 && e->event < 0) return true;
  if (!f->n_events) return e->event < 0 && f->n_ranks && e->rank == f->rank[0];
  return (e->rank < 0 || e->rank == f->event[0].rank) &&
         (e->event < 0 || e->event == f->event[0].position);
}

static iso_code match_all(const char *path, const json_t *list, const lint_report *r,
                          lint_known *out, iso_error *err) {
  const size_t n = json_array_size(list);
  out->stale = iso_arena_alloc(&out->arena, (n + 1) * sizeof *out->stale);
  out->reason = iso_arena_alloc(&out->arena, (r->n_findings + 1) * sizeof *out->reason);
  if (!out->stale || !out->reason) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < n; i++) {
    entry e;
    bool used = false;
    if (!read_entry(json_array_get(list, i), &e))
      return iso_fail(
          err, ISO_FORMAT,
          "%s: entry %zu: it takes a kind, a reason, and perhaps name, node, rank and event", path,
          i);
    for (size_t k = 0; k < r->n_findings; k++) {
      if (!matches(&e, &r->finding[k])) continue;
      used = true;
      if (!out->reason[k] && !(out->reason[k] = iso_arena_strdup(&out->arena, e.reason)))
        return iso_fail(err, ISO_NOMEM, "out of memory");
    }
    if (!used && !(out->stale[out->n_stale++] = iso_arena_printf(
                       &out->arena, "%s%s%s", e.kind, e.name ? " " : "", e.name ? e.name : "")))
      return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  for (size_t k = 0; k < r->n_findings; k++) out->n_known += out->reason[k] != NULL;
  return ISO_OK;
}

iso_code lint_known_load(const char *path, const lint_report *r, lint_known *out, iso_error *err) {
  json_t *doc = NULL, *list = NULL;
  *out = (lint_known){0};
  iso_code c = baseline_read(path, "findings", &doc, &list, err);
  if (c) return c;
  c = match_all(path, list, r, out, err);
  json_decref(doc);
  return c;
}

void lint_known_free(lint_known *k) { iso_arena_fini(&k->arena); }

static bool counts(const lint_view *v, size_t i) { return v->strict || v->r->finding[i].error; }
static const char *reason_of(const lint_view *v, size_t i) {
  return v->known ? v->known->reason[i] : NULL;
}

size_t lint_view_open(const lint_view *v) {
  size_t n = 0;
  for (size_t i = 0; i < v->r->n_findings; i++) n += counts(v, i) && !reason_of(v, i);
  return n;
}

/* ---- text ---- */

/* Texts of an input may hold anything but NUL: control characters must not reach a terminal. */
static void put(FILE *f, const char *s) {
  for (; *s; s++) fputc((unsigned char)*s < 32 || *s == 127 ? '?' : *s, f);
}

/* "deadlock at rank 1 event 14 (2SEND_F0)" */
static void put_head(const lint_finding *x, FILE *f) {
  fputs(lint_kind_word(x->kind), f);
  if (x->n_events) {
    fprintf(f, " at rank %" PRIu32 " event %" PRIu32, x->event[0].rank, x->event[0].position);
    if (x->name) fputs(" (", f), put(f, x->name), fputc(')', f);
  } else if (x->n_nodes) {
    fprintf(f, " at rank %" PRIu32 " node ", x->node[0].rank), put(f, x->node[0].id);
    if (x->name) fputs(" (", f), put(f, x->name), fputc(')', f);
  } else if (x->n_ranks) {
    fprintf(f, " at rank %" PRIu32, x->rank[0]);
  }
}

static void put_finding(const lint_view *v, size_t i, FILE *f) {
  const lint_finding *x = &v->r->finding[i];
  const char *reason = reason_of(v, i);
  fputs(reason ? "known: " : x->error ? "error: " : "warning: ", f);
  put_head(x, f);
  fputs("\n  ", f);
  put(f, x->text);
  if (x->source) fputs("\n  source: ", f), put(f, x->source);
  if (x->mend) fputs("\n  mend: ", f), put(f, x->mend);
  if (reason) fputs("\n  accepted: ", f), put(f, reason);
  fputs("\n\n", f);
}

static const char *progress_word(lint_progress p) {
  return p == LINT_RUNS ? "ok" : p == LINT_HANGS ? "deadlock" : "unknown";
}

static void put_figures(const lint_view *v, FILE *f) {
  const lint_report *r = v->r;
  fputs("progress:", f);
  for (int i = 0; i < LINT_MODELS; i++)
    fprintf(f, "%s %s %s%s", i ? "," : "", lint_model_word((lint_model)i),
            progress_word(r->progress[i]), (int)r->decides == i ? " (decides)" : "");
  fputc('\n', f);
  if (r->makespan > 0) {
    fprintf(f, "makespan %.10g, bubble %.1f %%, activations held", r->makespan, 100 * r->bubble);
    enum { SHOWN = 32 };
    for (size_t i = 0; i < r->n_ranks && i < SHOWN; i++) fprintf(f, " %" PRIu32, r->peak[i]);
    fputs(r->n_ranks > SHOWN ? " ...\n" : "\n", f);
  }
  fputc('\n', f);
}

static void put_verdict(const lint_view *v, FILE *f) {
  const lint_report *r = v->r;
  const size_t open = lint_view_open(v);
  size_t all = 0, first = r->n_findings;
  for (size_t i = r->n_findings; i-- > 0;) {
    if (!counts(v, i)) continue;
    all++;
    if (!reason_of(v, i) || !open) first = i;
  }
  if (all) {
    fprintf(f, "isomer: FINDINGS %zu: ", open ? open : all);
    put_head(&r->finding[first], f);
    fputs(open ? "\n" : " [known]\n", f);
  } else if (r->undecided) {
    fputs("isomer: UNDECIDED: ", f);
    put(f, r->undecided);
    fputc('\n', f);
  } else {
    fputs("isomer: CLEAN\n", f);
  }
}

/* How many tensors are placed, by evidence, and those that vary with the reason. */
static void put_placed(const lint_report *r, FILE *f) {
  enum { SHOWN = 12 };
  size_t placed = 0, proved = 0, tested = 0, shown = 0;
  for (size_t i = 0; i < r->n_placed; i++) {
    const lint_placed *p = &r->placed[i];
    placed += !p->why;
    proved += p->evidence && strcmp(p->evidence, "proved") == 0;
    tested += p->evidence && strcmp(p->evidence, "tested") == 0;
  }
  fprintf(f, "placed: %zu of %zu tensors, %zu proved, %zu tested\n", placed, r->n_placed, proved,
          tested);
  for (size_t i = 0; i < r->n_placed; i++) {
    const lint_placed *p = &r->placed[i];
    if (!p->why || shown++ >= SHOWN) continue;
    fputs("varying: ", f), put(f, p->id), fputs(" (", f), put(f, p->op), fputs("): ", f);
    put(f, p->why), fputc('\n', f);
  }
  if (shown > SHOWN) fprintf(f, "varying: %zu more\n", shown - SHOWN);
  fputc('\n', f);
}

void lint_put_text(const lint_view *v, FILE *f) {
  if (!v->quiet) {
    fprintf(f, "%zu ranks, %zu %s\n\n", v->r->n_ranks, v->r->n_events,
            v->r->capture ? "nodes" : "events");
    for (size_t i = 0; i < v->r->n_findings; i++) put_finding(v, i, f);
    for (size_t i = 0; v->known && i < v->known->n_stale; i++)
      fputs("baseline: no finding matches ", f), put(f, v->known->stale[i]), fputc('\n', f);
    if (v->r->capture) put_placed(v->r, f);
    else put_figures(v, f);
  }
  put_verdict(v, f);
}

/* ---- JSON ---- */

static json_t *text_or_null(const char *s) {
  if (!s) return json_null();
  char *clean = utf8_clean(s);
  json_t *j = clean ? json_string(clean) : NULL;
  free(clean);
  return j;
}

static json_t *finding_json(const lint_view *v, size_t i) {
  const lint_finding *x = &v->r->finding[i];
  json_t *ranks = json_array(), *events = json_array(), *nodes = json_array();
  for (size_t k = 0; k < x->n_ranks; k++) json_array_append_new(ranks, json_integer(x->rank[k]));
  for (size_t k = 0; k < x->n_events; k++)
    json_array_append_new(events, json_pack("[I, I]", (json_int_t)x->event[k].rank,
                                            (json_int_t)x->event[k].position));
  for (size_t k = 0; k < x->n_nodes; k++)
    json_array_append_new(
        nodes, json_pack("[I, o]", (json_int_t)x->node[k].rank, text_or_null(x->node[k].id)));
  return json_pack("{s:s, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "kind",
                   lint_kind_word(x->kind), "severity", x->error ? "error" : "warning", "ranks",
                   ranks, "events", events, "nodes", nodes, "name", text_or_null(x->name), "text",
                   text_or_null(x->text), "source", text_or_null(x->source), "mend",
                   text_or_null(x->mend), "known", text_or_null(reason_of(v, i)));
}

static json_t *placed_json(const lint_report *r) {
  json_t *all = json_array();
  for (size_t i = 0; i < r->n_placed; i++) {
    const lint_placed *p = &r->placed[i];
    json_array_append_new(all, json_pack("{s:[I, o], s:o, s:s, s:o, s:o}", "node",
                                         (json_int_t)p->rank, text_or_null(p->id), "op",
                                         text_or_null(p->op), "placement", p->place, "evidence",
                                         text_or_null(p->evidence), "why", text_or_null(p->why)));
  }
  return all;
}

char *lint_to_json(const lint_view *v) {
  const lint_report *r = v->r;
  json_t *findings = json_array(), *peak = json_array(), *progress = json_object();
  for (size_t i = 0; i < r->n_findings; i++) json_array_append_new(findings, finding_json(v, i));
  for (size_t i = 0; r->peak && i < r->n_ranks; i++)
    json_array_append_new(peak, json_integer(r->peak[i]));
  for (int i = 0; i < LINT_MODELS; i++)
    json_object_set_new(progress, lint_model_word((lint_model)i),
                        json_string(progress_word(r->progress[i])));
  const bool ran = r->makespan >= 0;
  const char *verdict = lint_view_open(v) ? "findings" : r->undecided ? "undecided" : "clean";
  json_t *doc =
      json_pack("{s:s, s:i, s:s, s:o, s:o, s:o, s:s, s:o, s:o, s:o}", "format", "isomer-lint",
                "version", 1, "verdict", verdict, "undecided", text_or_null(r->undecided),
                "findings", findings, "progress", progress, "decides", lint_model_word(r->decides),
                "makespan", ran ? json_real(r->makespan) : json_null(), "bubble",
                ran ? json_real(r->bubble) : json_null(), "peak_in_flight", peak);
  if (ran && doc && r->makespan < 1e15 && r->makespan == (double)(int64_t)r->makespan)
    json_object_set_new(doc, "makespan", json_integer((json_int_t)r->makespan));
  if (doc && r->capture) json_object_set_new(doc, "placements", placed_json(r));
  char *text = doc ? json_dumps(doc, JSON_INDENT(1)) : NULL;
  json_decref(doc);
  return text;
}
