/* Meshes and placements as a user writes them. */
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "rules/operators.h"

void *plc_need(plc *x, const void *p) {
  if (!p && !x->code) x->code = iso_fail(x->err, ISO_NOMEM, "out of memory");
  return (void *)(uintptr_t)p;
}

uint32_t plc_stride(const plc_mesh *m, uint32_t axis) {
  uint32_t s = 1;
  for (uint32_t a = axis + 1; a < m->n_axes; a++) s *= m->size[a];
  return s;
}

uint32_t plc_along(const plc_mesh *m, uint32_t rank, uint32_t axis) {
  return rank / plc_stride(m, axis) % m->size[axis];
}

/* ---- words ---- */

typedef struct words {
  const char *at;
  char word[128];
} words;

static void skip(words *w) {
  while (*w->at == ' ' || *w->at == '\t' || *w->at == '\r') w->at++;
}

static bool next_is(words *w, char c) {
  skip(w);
  if (*w->at != c) return false;
  w->at++;
  return true;
}

/* Letters, digits and the other characters of axes' names. */
static bool word(words *w) {
  size_t n = 0;
  skip(w);
  while ((isalnum((unsigned char)*w->at) || *w->at == '_' || *w->at == '-' || *w->at == '.') &&
         n + 1 < sizeof w->word)
    w->word[n++] = *w->at++;
  w->word[n] = 0;
  return n > 0;
}

static bool number(words *w, uint32_t most, uint32_t *out) {
  if (!word(w) || strlen(w->word) > 6) return false;
  char *end;
  const unsigned long v = strtoul(w->word, &end, 10);
  if (*end || w->word[0] == '-' || v > most) return false;
  *out = (uint32_t)v;
  return true;
}

/* ---- the mesh ---- */

iso_code plc_mesh_parse(iso_arena *a, const char *text, plc_mesh *out, iso_error *err) {
  words w = {.at = text};
  *out = (plc_mesh){.n = 1};
  do {
    uint32_t size = 0;
    if (out->n_axes == PLC_AXES)
      return iso_fail(err, ISO_USAGE, "mesh \"%.80s\": more than %d axes", text, PLC_AXES);
    const bool named = word(&w);
    if (!(out->name[out->n_axes] = iso_arena_strdup(a, w.word)))
      return iso_fail(err, ISO_NOMEM, "out of memory");
    if (!named || !next_is(&w, '=') || !number(&w, PLC_RANKS, &size) || size == 0)
      return iso_fail(err, ISO_USAGE, "mesh \"%.80s\": not of the form dp=2,tp=4", text);
    for (uint32_t i = 0; i < out->n_axes; i++)
      if (strcmp(out->name[i], out->name[out->n_axes]) == 0)
        return iso_fail(err, ISO_USAGE, "mesh \"%.80s\": two axes of one name", text);
    out->size[out->n_axes++] = size;
    out->n *= size;
    if (out->n > PLC_RANKS)
      return iso_fail(err, ISO_LIMIT, "mesh \"%.80s\": more than %d ranks", text, PLC_RANKS);
  } while (next_is(&w, ','));
  skip(&w);
  if (*w.at) return iso_fail(err, ISO_USAGE, "mesh \"%.80s\": not of the form dp=2,tp=4", text);
  return ISO_OK;
}

/* The least group that says something: its size is the last axis's. */
void plc_mesh_guess(plc *x) {
  uint32_t n = x->mesh.n, inner = n;
  for (size_t i = 0; i < x->g->n_nodes; i++) {
    const rule_term *list = plc_group_list(plc_node(x, (uint32_t)i));
    if (list && list->n > 1 && list->n < inner && n % list->n == 0) inner = list->n;
  }
  x->mesh = (plc_mesh){.n_axes = 1, .size = {n}, .n = n, .name = {"ranks"}};
  if (inner < n)
    x->mesh =
        (plc_mesh){.n_axes = 2, .size = {n / inner, inner}, .n = n, .name = {"outer", "inner"}};
}

/* ---- placements ---- */

/* "3", or "2+1+1": how large they are beside one another. */
static bool read_blocks(words *w, plc_one *out) {
  uint32_t first = 0, next = 0, n = 1;
  if (!number(w, UINT8_MAX, &first) || first == 0) return false;
  out->blocks = first;
  while (next_is(w, '+')) {
    if (n == PLC_SHARES || !number(w, UINT8_MAX, &next) || next == 0) return false;
    out->share[0] = (uint8_t)first;
    out->share[n++] = (uint8_t)next;
    out->blocks = n;
  }
  return out->blocks <= PLC_BLOCKS;
}

/* operator: these are words of placements. */
static bool read_one(words *w, plc_one *out, double *avg, uint32_t size) {
  static const char *const reduce[] = {"sum", "max", "min"};
  if (strcmp(w->word, "R") == 0) return *out = (plc_one){.kind = PLC_R}, true;
  const bool shard = strcmp(w->word, "S") == 0;
  if ((!shard && strcmp(w->word, "P") != 0) || !next_is(w, '(')) return false;
  *out = (plc_one){.kind = shard ? PLC_S : PLC_P};
  if (shard)
    return number(w, RULE_MAX_RANK - 1, &out->dim) && (!next_is(w, ':') || read_blocks(w, out)) &&
           next_is(w, ')');
  if (!word(w)) return false;
  if (strcmp(w->word, "avg") == 0) {
    *avg *= size;
    return next_is(w, ')');
  }
  for (int i = 0; i < 3; i++)
    if (strcmp(w->word, reduce[i]) == 0) {
      out->reduce = (plc_reduce)i;
      return next_is(w, ')');
    }
  return false;
}

static uint32_t axis_named(const plc_mesh *m, const char *name) {
  for (uint32_t i = 0; i < m->n_axes; i++)
    if (strcmp(m->name[i], name) == 0) return i;
  return PLC_NONE;
}

/* "V", or "S(0)" for each axis in turn, or "dp S(0), tp R". */
static bool read_place(const plc_mesh *m, words *w, plc_line *out) {
  uint32_t next = 0;
  out->place = plc_replica();
  do {
    if (!word(w)) return false;
    uint32_t axis = axis_named(m, w->word);
    skip(w);
    const bool named = axis != PLC_NONE && isalpha((unsigned char)*w->at); /* it may be called S */
    if (!named && strcmp(w->word, "V") == 0 && next == 0) {
      out->varies = true;
      break;
    }
    if (!named) axis = next;
    else if (!word(w)) return false;
    if (axis >= m->n_axes || !read_one(w, &out->place.axis[axis], &out->place.scale, m->size[axis]))
      return false;
    next = axis + 1;
  } while (next_is(w, ','));
  skip(w);
  return *w->at == 0 || *w->at == '#';
}

static const char *trimmed(iso_arena *a, const char *s, size_t n) {
  while (n && (*s == ' ' || *s == '\t')) s++, n--;
  while (n && (s[n - 1] == ' ' || s[n - 1] == '\t')) n--;
  return iso_arena_strndup(a, s, n);
}

static bool read_line(plc *x, const char *text, plc_line *out) {
  const char *eq = strrchr(text, '=');
  *out = (plc_line){0};
  if (!eq) return false;
  out->name = trimmed(&x->steps, text, (size_t)(eq - text));
  if (!plc_need(x, out->name)) return false;
  if (strncmp(out->name, "output ", 7) == 0) {
    out->output = true;
    out->name += 7;
    while (*out->name == ' ') out->name++;
  }
  words w = {.at = eq + 1};
  return *out->name && read_place(&x->mesh, &w, out);
}

iso_code plc_lines_parse(plc *x, const char *text, const char *file) {
  size_t most = 1, row = 0;
  for (const char *s = text; *s; s++) most += *s == '\n';
  plc_line *all = iso_arena_alloc(&x->steps, (x->n_lines + most) * sizeof *all);
  if (!plc_need(x, all)) return x->code;
  if (x->n_lines) memcpy(all, x->line, x->n_lines * sizeof *all);
  x->line = all;
  for (const char *s = text; *s;) {
    const size_t n = strcspn(s, "\n");
    const char *line = trimmed(&x->steps, s, n);
    row++;
    s += n + (s[n] == '\n');
    if (!plc_need(x, line)) return x->code;
    if (!*line || *line == '#') continue;
    if (read_line(x, line, &all[x->n_lines])) x->n_lines++;
    else if (!plc_failed(x))
      x->code = iso_fail(x->err, ISO_FORMAT,
                         "%s:%zu: \"%.60s\" is no placement: NAME = R, S(dim), "
                         "P(sum|avg|max|min) for each axis of the mesh, or V",
                         file, row, line);
    if (plc_failed(x)) return x->code;
  }
  return ISO_OK;
}

/* A rest that does not fit behind a "*" is tried again with one more taken by it: the last is
 * enough, for an earlier one can leave nothing better to it. */
static bool fits(const char *pattern, const char *name) {
  const char *star = NULL, *held = NULL;
  while (*name) {
    if (*pattern == '*') star = ++pattern, held = name;
    else if (*pattern == *name) pattern++, name++;
    else if (star) pattern = star, name = ++held;
    else return false;
  }
  while (*pattern == '*') pattern++;
  return *pattern == 0;
}

plc_line *plc_line_for(plc *x, const char *name, bool output) {
  for (size_t i = x->n_lines; i-- > 0;)
    if (x->line[i].output == output && fits(x->line[i].name, name)) {
      x->line[i].used = true;
      return &x->line[i];
    }
  return NULL;
}

bool plc_overridden(const plc *x, size_t line) {
  for (size_t i = line + 1; i < x->n_lines; i++)
    if (x->line[i].output == x->line[line].output && fits(x->line[i].name, x->line[line].name))
      return true;
  return false;
}

/* ---- printing ---- */

bool plc_is_replica(const plc *x, const plc_place *p) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (p->axis[a].kind != PLC_R) return false;
  return true;
}

bool plc_has(const plc *x, const plc_place *p, plc_kind k) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (p->axis[a].kind == k) return true;
  return false;
}

static bool same_one(const plc_one *o, const plc_one *p) {
  if (o->kind != p->kind) return false;
  if (o->kind == PLC_P) return o->reduce == p->reduce;
  return o->kind == PLC_R || (o->dim == p->dim && plc_blocks(o) == plc_blocks(p) &&
                              memcmp(o->share, p->share, sizeof o->share) == 0);
}

bool plc_same(const plc *x, const plc_place *p, const plc_place *q) {
  for (uint32_t a = 0; a < x->mesh.n_axes; a++)
    if (!same_one(&p->axis[a], &q->axis[a])) return false;
  return p->scale == q->scale;
}

uint32_t plc_sections(const plc_one *o, int64_t size, int64_t out[PLC_BLOCKS]) {
  const uint32_t n = plc_blocks(o);
  int64_t all = 0;
  if (n > PLC_BLOCKS) return 0;
  for (uint32_t i = 0; i < n; i++) all += plc_shared(o) ? o->share[i] : 1;
  for (uint32_t i = 0; i < n; i++) out[i] = size / all * (plc_shared(o) ? o->share[i] : 1);
  return size % all ? 0 : n;
}

static void print_shard(const plc_one *o, char *out, size_t n) {
  size_t at = (size_t)snprintf(out, n, "S(%u", o->dim);
  if (o->blocks > 1 && !o->share[0]) at += (size_t)snprintf(out + at, n - at, ":%u", o->blocks);
  for (uint32_t i = 0; plc_shared(o) && i < o->blocks; i++)
    at += (size_t)snprintf(out + at, n - at, "%c%u", i ? '+' : ':', o->share[i]);
  snprintf(out + at, n - at, ")");
}

/* operator: these are words of placements. */
const char *plc_print(const plc *x, const plc_place *p, iso_arena *a) {
  static const char *const reduce[] = {"sum", "max", "min", "norm"};
  const char *text = "";
  double scale = p->scale;
  for (uint32_t i = 0; i < x->mesh.n_axes && text; i++) {
    const plc_one *o = &p->axis[i];
    char one[32] = "R";
    const bool mean = o->kind == PLC_P && o->reduce == PLC_SUM && scale == x->mesh.size[i];
    if (o->kind == PLC_S) print_shard(o, one, sizeof one);
    if (o->kind == PLC_P) snprintf(one, sizeof one, "P(%s)", mean ? "avg" : reduce[o->reduce]);
    if (mean) scale = 1;
    text = x->mesh.n_axes == 1
               ? iso_arena_strdup(a, one)
               : iso_arena_printf(a, "%s%s%s %s", text, i ? ", " : "", x->mesh.name[i], one);
  }
  if (text && scale != 1) text = iso_arena_printf(a, "%s of %g times the whole", text, scale);
  return text ? text : "?";
}

double plc_size_near(const plc *x, double v) {
  for (uint32_t i = 0; i < 25; i++) {
    double say = 1;
    for (uint32_t a = 0, e = i; a < x->mesh.n_axes && a < 2; a++, e /= 5) {
      const double m = x->mesh.size[a], power[] = {1, m, 1 / m, m * m, 1 / (m * m)};
      say *= power[e % 5];
    }
    if (fabs(v - say) < 1e-3 * say) return say;
  }
  return 0;
}
