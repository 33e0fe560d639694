/* Terms over outputs in the syntax of relations files. */
#include "cli/config/relations_int.h"
#include "rules/names.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct word {
  const char *op, *word;
} word;

/* operator: the words of relation files */
static const word words[] = {{OP_T, "t"},
                             {OP_TRANSPOSE_INT, "transpose"},
                             {OP_PERMUTE, "permute"},
                             {OP_RESHAPE, "reshape"},
                             {OP_UNSQUEEZE, "unsqueeze"},
                             {OP_SQUEEZE_DIM, "squeeze"},
                             {OP_SLICE_TENSOR, "slice"},
                             {OP_CAT, "cat"},
                             {OP_DIST_ALL_REDUCE, "sum"}};

static bool uses(const rule_term *t, int64_t result) {
  if (t->kind == RULE_VAR) return t->u.i == result;
  for (uint32_t i = 0; i < t->n; i++)
    if (uses(t->child[i], result)) return true;
  return false;
}

/* Whether `t` uses a result that an item of `list` before number `n` uses. */
static bool shared(const rule_term *t, const rule_term *list, uint32_t n) {
  if (t->kind == RULE_VAR) {
    for (uint32_t i = 0; i < n; i++)
      if (uses(list->child[i], t->u.i)) return true;
    return false;
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (shared(t->child[i], list, n)) return true;
  return false;
}

bool relations_clean(const rule_term *t) {
  const bool sum = t->kind == RULE_OP && strcmp(t->u.s, OP_DIST_ALL_REDUCE) == 0;
  for (uint32_t i = 0; i < t->n; i++)
    if (!relations_clean(t->child[i])) return false;
  for (uint32_t i = 0; sum && i < t->child[0]->n; i++)
    if (shared(t->child[0]->child[i], t->child[0], i)) return false;
  return true;
}

const char *relations_name(iso_arena *a, const char *s) {
  bool plain = *s && strcmp(s, "none") != 0;
  for (const char *p = s; *p; p++) plain &= relfile_name_char(*p);
  return plain ? s : iso_arena_printf(a, "\"%s\"", s);
}

static const char *print_list(iso_arena *a, const rule_term *t, const char *const *name) {
  const char *text = "[";
  for (uint32_t i = 0; i < t->n && text; i++) {
    const char *item = relations_print(a, t->child[i], name);
    text = item ? iso_arena_printf(a, "%s%s%s", text, i ? ", " : "", item) : NULL;
  }
  return text ? iso_arena_printf(a, "%s]", text) : NULL;
}

/* In as few digits as give it back. */
static const char *print_number(iso_arena *a, double x) {
  char text[64];
  for (int digits = 6; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, x);
    if (strtod(text, NULL) == x) break;
  }
  return iso_arena_strdup(a, text);
}

/* How many arguments are written: all later ones are at their defaults. */
static uint32_t written(const rule_term *t) {
  if (strcmp(t->u.s, OP_DIST_ALL_REDUCE) == 0) return 1;
  return strcmp(t->u.s, OP_SLICE_TENSOR) == 0 && t->n > 4 ? 4 : t->n;
}

const char *relations_print(iso_arena *a, const rule_term *t, const char *const *name) {
  if (t->kind == RULE_VAR) return relations_name(a, name[t->u.i]);
  if (t->kind == RULE_INT) return iso_arena_printf(a, "%" PRId64, t->u.i);
  if (t->kind == RULE_FLOAT) return print_number(a, t->u.f);
  if (t->kind == RULE_LIST) return print_list(a, t, name);
  const char *arithmetic = t->kind == RULE_OP ? relfile_arithmetic_word(t->u.s) : NULL;
  const char *text = NULL;
  for (size_t k = 0; t->kind == RULE_OP && k < sizeof words / sizeof *words; k++)
    if (strcmp(t->u.s, words[k].op) == 0) text = iso_arena_printf(a, "%s(", words[k].word);
  if (arithmetic) text = iso_arena_printf(a, "%s(", arithmetic);
  for (uint32_t i = 0; text && i < written(t); i++) {
    const char *arg = relations_print(a, t->child[i], name);
    text = arg ? iso_arena_printf(a, "%s%s%s", text, i ? ", " : "", arg) : NULL;
  }
  return text ? iso_arena_printf(a, "%s)", text) : NULL;
}
