/* Sizes in reports: those that the captures leave open, for which the verdict is, and
 * those at which it was looked besides. */
#include "cli/report/looked.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static const char *word(const looked_at *x) {
  return !x->compared                     ? "not compared"
         : x->verdict == SYNTH_EQUIVALENT ? "equivalent"
         : x->verdict == SYNTH_DIFFERENT  ? "different"
                                          : "undecided";
}

void looked_free(looked *l) {
  free(l->of);
  iso_arena_fini(&l->arena);
}

const char *looked_range(iso_arena *a, const char *name, int64_t min, int64_t max) {
  if (max == INT64_MAX) return iso_arena_printf(a, "%s >= %" PRId64, name, min);
  return iso_arena_printf(a, "%" PRId64 " <= %s <= %" PRId64, min, name, max);
}

iso_code looked_scope(looked *l, const synth_scope *s, iso_error *err) {
  iso_arena *a = &l->arena;
  const char *text = "";
  if (!s->all) {
    l->held = s->held;
    l->n_held = s->n_held;
    return ISO_OK;
  }
  for (size_t i = 0; i < s->n_symbols && text; i++) {
    const synth_symbol *x = &s->symbol[i];
    const char *range = looked_range(a, x->name, x->min, x->max);
    text = range ? iso_arena_printf(a, "%s%s%s", text, i ? ", " : "", range) : NULL;
  }
  l->scope = text;
  return text ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

/* The sizes of one verdict in one line; each with its reason where there are reasons. */
static void print_those(const looked *l, const char *title, FILE *f) {
  bool any = false;
  for (size_t i = 0; i < l->n; i++) {
    const looked_at *x = &l->of[i];
    if (word(x)[0] != title[0]) continue;
    fprintf(f, "%s%s", any ? "; " : "", any ? "" : "  ");
    if (!any) fprintf(f, "%s at ", title);
    fputs(x->text, f);
    if (x->why) fprintf(f, " (%s)", x->why);
    any = true;
  }
  if (any) fputc('\n', f);
}

/* " T = 9 (of 2 to 512)", of each symbol as captured. */
static void print_captured(const looked *l, FILE *f) {
  for (size_t i = 0; i < l->n_symbols; i++) {
    const cap_symbol *s = &l->symbol[i];
    fprintf(f, "%s %s = %" PRId64 " (of %" PRId64, i ? "," : "", s->name, s->value, s->min);
    if (s->max < INT64_MAX) fprintf(f, " to %" PRId64 ")", s->max);
    else fputs(" and more)", f);
  }
  fputc('\n', f);
}

void looked_text(const looked *l, FILE *f) {
  if (!l->n_symbols) return;
  if (l->first) {
    fprintf(f, "\nsizes:\n  all of the above is of %s, the smallest that was found; captured at",
            l->first);
    print_captured(l, f);
  } else {
    if (l->scope) fprintf(f, "\nsizes:\n  the verdict is for %s; captured at", l->scope);
    else fputs("\nsizes:\n  the verdict is for the captured sizes:", f);
    print_captured(l, f);
    for (size_t i = 0; i < l->n_held && !l->scope; i++)
      fprintf(f, "  held back by %s\n", l->held[i]);
  }
  if (l->none) fprintf(f, "  no other sizes were looked at: %s\n", l->none);
  print_those(l, "equivalent", f);
  print_those(l, "different", f);
  print_those(l, "undecided", f);
  print_those(l, "not compared", f);
}

static json_t *text_or_null(const char *s) { return s ? json_string(s) : json_null(); }

json_t *looked_json(const looked *l) {
  json_t *symbols = json_array(), *at = json_array(), *held = json_array();
  for (size_t i = 0; i < l->n_symbols; i++) {
    const cap_symbol *s = &l->symbol[i];
    json_array_append_new(
        symbols, json_pack("{s:s, s:I, s:o, s:I}", "name", s->name, "min", (json_int_t)s->min,
                           "max", s->max < INT64_MAX ? json_integer(s->max) : json_null(),
                           "captured", (json_int_t)s->value));
  }
  for (size_t i = 0; i < l->n; i++) {
    json_t *sizes = json_object();
    for (size_t k = 0; k < l->n_symbols; k++)
      json_object_set_new(sizes, l->symbol[k].name, json_integer(l->of[i].value[k]));
    json_array_append_new(at, json_pack("{s:o, s:s, s:o}", "sizes", sizes, "verdict",
                                        word(&l->of[i]), "reason", text_or_null(l->of[i].why)));
  }
  for (size_t i = 0; i < l->n_held && !l->first && !l->scope; i++)
    json_array_append_new(held, json_string(l->held[i]));
  if (!l->n_symbols) json_array_append_new(held, json_string("the captures fix every size"));
  const char *text = l->first ? l->first : l->scope ? l->scope : "captured sizes";
  return json_pack("{s:s, s:o, s:o, s:o, s:o, s:o}", "text", text, "symbols", symbols,
                   "held_back_by", held, "looked_at", at, "first", text_or_null(l->first),
                   "not_looked", text_or_null(l->none));
}
