/* The way from files to a report. */
#include "lint/lint.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "lint/check.h"
#include "lint/json.h"
#include "lint/recorder/recorder.h"

typedef struct result {
  lint_report r;
  iso_arena arena;
  lint_finding *finding;
} result;

lint_options lint_options_default(void) {
  return (lint_options){.stages = -1, .microbatches = -1, .max_in_flight = -1, .model = -1};
}

/* ---- what is it? ---- */

/* The keys by which a document is known, as far as it must be read for that. */
static iso_code sniff_json(const char *path, lint_form *form, iso_error *err) {
  lint_json j;
  iso_code c = lint_json_open(&j, path, err);
  bool more = false;
  *form = LINT_EVENTS;
  if (!c) c = lint_json_enter(&j, '{');
  while (!c && !(c = lint_json_next(&j, '}', &more)) && more) {
    static const char *const ours[] = {"format", "ranks", "programs", "world", "groups", "mesh"};
    static const char *const dump[] = {"entries", "pg_config", "pg_status", "comm_lib_version"};
    for (size_t i = 0; i < sizeof ours / sizeof *ours; i++)
      if (strcmp(j.str, ours[i]) == 0) goto done;
    for (size_t i = 0; i < sizeof dump / sizeof *dump; i++)
      if (strcmp(j.str, dump[i]) == 0) {
        *form = LINT_RECORDER;
        goto done;
      }
    c = lint_json_skip(&j);
  }
done:
  lint_json_close(&j);
  return c;
}

static iso_code sniff(const char *path, lint_form *form, iso_error *err) {
  unsigned char head[64];
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  ssize_t n = fd < 0 ? -1 : read(fd, head, sizeof head);
  const int why = errno;
  if (fd >= 0) close(fd);
  if (n < 0 && why == EISDIR)
    return iso_fail(err, ISO_FORMAT, "%s: a folder that is no capture; dumps are given as files",
                    path);
  if (n < 0) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(why));
  ssize_t i = 0;
  while (i < n && (head[i] == ' ' || head[i] == '\t' || head[i] == '\r' || head[i] == '\n')) i++;
  if (i < n && head[i] == '{') return sniff_json(path, form, err);
  if (n > 1 && head[0] == 0x80 && head[1] <= 5) {
    *form = LINT_RECORDER;
    return ISO_OK;
  }
  *form = LINT_TABLE;
  for (ssize_t k = 0; k < n; k++)
    if (head[k] >= 0x7F || (head[k] < 0x20 && !memchr("\t\r\n", head[k], 3)))
      return iso_fail(err, ISO_FORMAT, "%s: neither a pipeline table nor events in JSON", path);
  return n ? ISO_OK : iso_fail(err, ISO_FORMAT, "%s: it is empty", path);
}

static iso_code read_input(lint_check *c, const char *const *path, size_t n) {
  lint_form form = LINT_TABLE;
  c->t->path = path[0];
  iso_code code = sniff(path[0], &form, c->err);
  if (code) return code;
  if (form == LINT_RECORDER) return lint_read_dumps(c->t, path, n, c->err);
  if (n > 1)
    return iso_fail(c->err, ISO_USAGE, "%s: a table or a file of events stands alone", path[1]);
  if (form == LINT_TABLE) return lint_read_table(c->t, path[0], &c->o, c->err);
  code = lint_read_events(c->t, path[0], c->err);
  if (!code && c->o.stages >= 0) c->t->stages = c->o.stages;
  if (!code && c->o.microbatches >= 0) c->t->microbatches = c->o.microbatches;
  return code;
}

/* ---- the checks ---- */

static lint_model deciding(const lint_check *c) {
  if (c->o.model >= 0) return (lint_model)c->o.model;
  const lint_backend b = c->t->backend;
  return b == LINT_GLOO || b == LINT_MPI ? LINT_RENDEZVOUS : LINT_STREAM;
}

static iso_code check(lint_check *c, lint_model decides) {
  iso_code code = lint_link(c);
  if (code || c->undecided) return code;
  if (c->t->form == LINT_RECORDER) {
    code = lint_check_dumps(c);
    if (!code) lint_findings_sort(c);
    return code;
  }
  if (!code) code = lint_hint_values(c);
  if (!code) code = lint_check_schedule(c);
  if (!code) code = lint_match_messages(c);
  if (!code) code = lint_match_collectives(c);
  if (!code) code = lint_check_handles(c);
  if (!code) code = lint_check_races(c);
  if (!code) code = lint_check_values(c);
  if (!code) code = lint_check_progress(c, decides);
  if (!code) code = lint_check_peak(c);
  if (!code && c->o.timeline) code = lint_draw(c, decides);
  if (!code) lint_findings_sort(c);
  if (c->t->may_be_cut && !c->undecided)
    c->undecided = "the table's last line has no end, so that it may be cut off; end it, or say "
                   "--stages and --microbatches";
  return code;
}

/* Peaks of ranks, from those of procs. */
static iso_code peaks(lint_check *c, result *x) {
  const lint_trace *t = c->t;
  uint32_t *peak = iso_arena_alloc(&x->arena, (t->n_ranks + 1) * sizeof *peak);
  if (!peak) return lint_no_memory(c->err);
  for (size_t i = 0; i < t->n_ranks && c->peak; i++) peak[i] = c->peak[t->proc_of[i]];
  x->r.peak = peak;
  return ISO_OK;
}

static void summarise(const lint_check *c, result *x, lint_model decides) {
  lint_report *r = &x->r;
  r->finding = x->finding = c->finding;
  r->n_findings = c->n;
  for (size_t i = 0; i < c->n; i++) *(c->finding[i].error ? &r->n_errors : &r->n_warnings) += 1;
  memcpy(r->progress, c->progress, sizeof r->progress);
  r->decides = decides;
  r->undecided = c->undecided;
  r->makespan = c->makespan;
  r->n_ranks = c->t->n_ranks;
  r->lane = c->lane;
  r->n_lanes = c->lane ? c->t->n_procs : 0;
  r->word = c->word;
  r->n_words = c->n_words;
  for (size_t i = 0; i < r->n_ranks; i++) r->n_events += c->t->program[c->t->run_by[i]].n;
  if (c->makespan > 0) r->bubble = 1 - c->busy / (c->makespan * (double)c->t->n_ranks);
}

iso_code lint_run(const char *const *path, size_t n, const lint_options *o, lint_report **out,
                  iso_error *err) {
  result *x = calloc(1, sizeof *x);
  if (!x) return lint_no_memory(err);
  lint_trace t = {.world = -1, .stages = -1, .microbatches = -1};
  lint_check c = {.t = &t, .o = *o, .err = err, .arena = &x->arena, .makespan = -1};
  iso_code code = read_input(&c, path, n);
  const lint_model decides = deciding(&c);
  if (!code) code = check(&c, decides);
  if (!code) code = peaks(&c, x);
  if (!code) {
    summarise(&c, x, decides);
    *out = &x->r;
  } else {
    free(c.finding);
    iso_arena_fini(&x->arena);
    free(x);
  }
  free(c.disorder);
  lint_trace_fini(&t);
  return code;
}

lint_report *lint_report_new(iso_arena **arena) {
  result *x = calloc(1, sizeof *x);
  if (x) *arena = &x->arena;
  return x ? &x->r : NULL;
}

void lint_report_take(lint_report *r, lint_finding *finding, size_t n) {
  result *x = (result *)(void *)r; /* its first member */
  r->finding = x->finding = finding;
  r->n_findings = n;
  for (size_t i = 0; i < n; i++) *(finding[i].error ? &r->n_errors : &r->n_warnings) += 1;
}

void lint_free(lint_report *r) {
  if (!r) return;
  result *x = (result *)(void *)r; /* its first member */
  free(x->finding);
  iso_arena_fini(&x->arena);
  free(x);
}
