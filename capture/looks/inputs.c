/* Inputs of zeros and ones that both captures are given, and of which nobody says what else they
 * may be: which of them are drawn by their looks, and on which of these draws a difference counts.
 *
 * A caller may have computed one input from another, positions from a mask say. Drawn alone it
 * would be one that no program has. Then equal outputs still count, and others do not. */
#include <stdlib.h>
#include <string.h>

#include "capture/agree_int.h"
#include "rules/masks.h"

static iso_code no_memory(agree *a) { return iso_fail(a->err, ISO_NOMEM, "out of memory"); }

static bool is_part_of(const agree *a, size_t j, size_t g) {
  return a->in[j].whole >= 0 && a->in[a->in[j].whole].group == g;
}

/* ---- the same zeros and ones in another dtype, or ones for zeros ---- */

static bool has_partner(const agree *a, size_t i) {
  bool any = a->in[i].other >= 0 || a->in[i].whole >= 0 || agree_unread(a, i);
  for (size_t j = 0; j < a->n && !any; j++)
    any =
        a->in[j].side != a->in[i].side && (a->in[j].group == a->in[i].group || is_part_of(a, j, i));
  return any;
}

/* Whether a float input is one of zeros and ones by more than chance. */
static bool is_float_bits(const agree *a, size_t i) {
  enum { SOME = 2, ELEMENTS = 5 };
  int64_t count[2] = {0, 0};
  if (agree_look_of(a, i) != FLOATS || !rule_dtype_is_float(agree_node(a, i)->output[0].dtype))
    return false;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *t = agree_value(a, i, set);
    for (int64_t k = 0; k < t->numel; k++) {
      const double x = rule_tensor_get(t, k);
      if (x != 0 && x != 1) return false;
      count[x != 0]++;
    }
  }
  return count[0] >= SOME && count[1] >= SOME && count[0] + count[1] >= ELEMENTS;
}

/* A graph that has no other numbers is a function of these. */
static bool is_bits(const agree *a, size_t i) {
  if (agree_look_of(a, i) == BITS) return true;
  if (!is_float_bits(a, i)) return false;
  for (size_t j = 0; j < a->n; j++) {
    const agree_look x = agree_look_of(a, j);
    if (a->in[j].side == a->in[i].side && (x == NUMBERS || (x == FLOATS && !is_float_bits(a, j))))
      return true;
  }
  return false;
}

static bool may_be_drawn(const agree *a, size_t i) {
  return !a->in[i].settled && !agree_node(a, i)->domain && is_bits(a, i);
}

/* Whether input `j` is input `i` element by element, with ones for zeros where `swapped`. */
static bool same_bits(const agree *a, size_t i, size_t j, bool swapped) {
  bool same = agree_value(a, i, 0)->numel == agree_value(a, j, 0)->numel;
  for (size_t set = 0; set < a->sets && same; set++) {
    const rule_tensor *x = agree_value(a, i, set), *y = agree_value(a, j, set);
    for (int64_t k = 0; k < x->numel && same; k++)
      same = ((rule_tensor_get(x, k) != 0) != (rule_tensor_get(y, k) != 0)) == swapped;
  }
  return same;
}

static bool varies(const agree *a, size_t i) {
  bool any = false;
  for (size_t set = 0; set < a->sets; set++) any |= rule_tensor_varies(agree_value(a, i, set));
  return any;
}

bool agree_swapped(const agree *a, size_t i) {
  bool any = false;
  if (!is_bits(a, i) || !varies(a, i)) return false;
  for (size_t j = 0; j < a->n && !any; j++)
    any = a->in[j].side != a->in[i].side && is_bits(a, j) && same_bits(a, i, j, true);
  return any;
}

bool agree_zeros_and_ones(const agree *a, size_t i) {
  if (rule_dtype_is_complex(agree_node(a, i)->output[0].dtype)) return false;
  for (size_t set = 0; set < a->sets; set++) {
    const rule_tensor *t = agree_value(a, i, set);
    for (int64_t k = 0; k < t->numel; k++) {
      const double x = rule_tensor_get(t, k);
      if (x != 0 && x != 1) return false;
    }
  }
  return true;
}

/* That each number is the other one is no chance, as what one input holds may be: where nothing was
 * padded one side has ones alone, and the other one zeros. One number alone says nothing. */
bool agree_complement(const agree *a, size_t i, size_t j) {
  return agree_value(a, i, 0)->numel > 1 && agree_zeros_and_ones(a, i) &&
         agree_zeros_and_ones(a, j) && same_bits(a, i, j, true);
}

iso_code agree_of_one_mask(agree *a, size_t i, size_t j, bool *yes) {
  iso_code c = ISO_OK;
  *yes = is_bits(a, i) && is_bits(a, j) && varies(a, i) &&
         (same_bits(a, i, j, false) || same_bits(a, i, j, true));
  for (int k = 0; k < 2 && !c && !*yes; k++) {
    const size_t base = k ? j : i;
    if (is_bits(a, base) && varies(a, base)) c = agree_has_law(a, base, k ? i : j, yes);
  }
  return c;
}

static iso_code look(agree *a, size_t g) {
  const rule_tensor **set = malloc((a->sets + 1) * sizeof *set);
  if (!set) return no_memory(a);
  for (size_t k = 0; k < a->sets; k++) set[k] = agree_value(a, g, k);
  const bool ok = looks_at_bits(set, a->sets, &a->in[g].looks);
  free(set);
  return ok ? ISO_OK : no_memory(a);
}

/* Inputs of either side with the zeros and ones of one, as they are or exchanged: the first of each
 * group. */
typedef struct alike {
  size_t *of;
  size_t n;
  int64_t head; /* the one that is drawn: which has a partner already, else what looks like more */
  size_t n_heads;
  bool side[2];
} alike;

static iso_code find_alike(agree *a, size_t i, alike *x) {
  iso_code c = ISO_OK;
  x->n = x->n_heads = 0;
  x->head = -1;
  x->side[LEFT] = x->side[RIGHT] = false;
  for (size_t j = 0; j < a->n && !c; j++) {
    if (a->in[j].group != j || !may_be_drawn(a, j) ||
        !(same_bits(a, i, j, false) || same_bits(a, i, j, true)))
      continue;
    const bool partner = has_partner(a, j);
    c = look(a, j);
    const bool more =
        x->head < 0 || (a->in[j].looks.kind != LOOKS_ANY && a->in[x->head].looks.kind == LOOKS_ANY);
    if (partner ? x->n_heads++ == 0 : x->n_heads == 0 && more) x->head = (int64_t)j;
    x->side[LEFT] |= partner || a->in[j].side == LEFT;
    x->side[RIGHT] |= partner || a->in[j].side == RIGHT;
    x->of[x->n++] = j;
  }
  for (size_t k = 0; k < x->n; k++)
    if (a->in[x->of[k]].looks.kind == LOOKS_KEPT) x->n = 0; /* a structure, either way */
  return c;
}

static iso_code note_twin(agree *a, size_t i) {
  static const char *const whose[] = {"left's", "right's"};
  const size_t of = (size_t)a->in[i].twin;
  return agree_note(
      a, RULE_ASSUMES_INPUT,
      iso_arena_printf(&a->graph[LEFT]->arena, "%s %s has %s %s %s, and is drawn with it",
                       whose[a->in[i].side], agree_node(a, i)->name,
                       a->in[i].swapped ? "ones for the zeros of" : "the zeros and ones of",
                       whose[a->in[of].side], agree_node(a, of)->name),
      i, a->in[of].side != a->in[i].side ? (int64_t)of : -1);
}

/* Of inputs that are one in zeros and ones one is drawn for all: the one that has a partner by
 * name or value; else that which looks like more, padding as it is and with ones for zeros, but a
 * choice of one only as it is. Where several have partners, which of them an input goes with is not
 * known. */
static iso_code find_twins(agree *a) {
  iso_code c = ISO_OK;
  alike x = {.of = malloc((a->n + 1) * sizeof *x.of)};
  if (!x.of) return no_memory(a);
  for (size_t i = 0; i < a->n && !c; i++) {
    if (a->in[i].group != i || a->in[i].twin >= 0 || !may_be_drawn(a, i) || has_partner(a, i) ||
        !varies(a, i))
      continue;
    c = find_alike(a, i, &x);
    const bool one = x.n > 1 && x.n_heads < 2 && x.side[LEFT] && x.side[RIGHT];
    for (size_t k = 0; k < x.n && !c && one; k++) {
      const size_t j = x.of[k], of = (size_t)x.head;
      if (j == of || a->in[j].twin >= 0) continue;
      a->in[j].twin = x.head;
      a->in[j].swapped = same_bits(a, of, j, true);
      c = note_twin(a, j);
    }
  }
  for (size_t i = 0; i < a->n; i++) a->in[i].looks.kind = LOOKS_KEPT;
  free(x.of);
  return c;
}

/* ---- the same zeros and ones more than once ---- */

static bool is_one_with(const agree *a, size_t i, size_t g) {
  return a->in[i].group == g || a->in[i].twin == (int64_t)g;
}

/* Whether input `i` is what an earlier one of its side is on another rank. */
static bool is_replica(const agree *a, size_t i, size_t g) {
  const char *name = agree_node(a, i)->name, *stem = agree_stem(name);
  for (size_t j = 0; j < i; j++) {
    const char *other = agree_node(a, j)->name;
    if (a->in[j].side == a->in[i].side && is_one_with(a, j, g) &&
        (other != agree_stem(other) || stem != name) && strcmp(agree_stem(other), stem) == 0)
      return true;
  }
  return false;
}

/* Queries and keys were captured with one mask, and the other side has one for both. Whether they
 * always are is not known: which of them go with it is told by names, else by their order. */
static void find_spares(agree *a, size_t g) {
  size_t n[2] = {0, 0};
  for (size_t i = 0; i < a->n; i++)
    if (is_one_with(a, i, g) && !a->in[i].spoken && !is_replica(a, i, g)) n[a->in[i].side]++;
  if (n[LEFT] == n[RIGHT] || !n[LEFT] || !n[RIGHT]) return;
  const int side = n[LEFT] > n[RIGHT] ? LEFT : RIGHT;
  bool named = false, first = true;
  for (size_t i = 0; i < a->n; i++)
    named |= is_one_with(a, i, g) && a->in[i].side == side && agree_namesake(a, i) >= 0;
  for (size_t i = 0; i < a->n; i++) {
    if (a->in[i].side != side || a->in[i].spoken || !is_one_with(a, i, g)) continue;
    a->in[i].spare = named ? agree_namesake(a, i) < 0 : !first;
    first = false;
  }
}

/* Targets, weights and rates are zeros and ones as well as other numbers. What is padded is a mask.
 * Where something else was computed from them, or has another dtype, they are nothing else. */
static void find_fractions(agree *a, size_t g) {
  looks_bits *x = &a->in[g].looks;
  const bool padding = x->kind == LOOKS_LEFT || x->kind == LOOKS_RIGHT;
  bool real = !padding || x->by_chance >> LOOKS_ORDER & 1;
  for (size_t i = 0; i < a->n && real; i++) {
    if (is_one_with(a, i, g)) real = rule_dtype_is_float(agree_node(a, i)->output[0].dtype);
    real &= a->in[i].hangs != (int64_t)g && a->in[i].twin != (int64_t)g;
  }
  if (real) x->by_chance |= 1u << LOOKS_FRACTION;
}

/* ---- which are drawn ---- */

/* Whether both sides have the input, read or not, whole or in parts. */
static bool of_both(const agree *a, size_t g) {
  bool both = agree_unread(a, g) != NULL;
  for (size_t i = 0; i < a->n; i++) {
    both |= a->in[i].group == g && a->in[i].side != a->in[g].side;
    both |= is_part_of(a, i, g) || a->in[i].twin == (int64_t)g;
    both |= a->in[i].hangs == (int64_t)g && a->in[i].side != a->in[g].side;
  }
  return both;
}

/* Nobody says anything of the input, of what is one with it, or of its parts. */
bool agree_unsaid(const agree *a, size_t g) {
  bool unsaid = true;
  for (size_t i = 0; i < a->n; i++)
    if (a->in[i].group == g || is_part_of(a, i, g))
      unsaid &= !agree_node(a, i)->domain && !a->in[i].settled;
  return unsaid;
}

/* ---- what may hang on one ---- */

/* In every row, bounds of sequences or positions that begin again. */
static bool of_sequences(const rule_tensor *t) {
  const int64_t row = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  bool bounds = row > 2, restarts = row > 2;
  for (int64_t from = 0; row > 0 && from < t->numel; from += row)
    for (int64_t i = from; i < from + row; i++) {
      const int64_t x = rule_tensor_get_int(t, i),
                    was = i > from ? rule_tensor_get_int(t, i - 1) : 0;
      bounds &= i == from ? x == 0 : x >= was;
      restarts &= i == from ? x == 0 || x == 1 : x == was || x == was + 1 || x == 0;
    }
  return t->numel > 0 && (bounds || restarts);
}

static bool hides(const rule_tensor *t) {
  for (int64_t i = 0; i < t->numel; i++)
    if (!(rule_tensor_get(t, i) > -RULE_MASK_HIDES)) return true;
  return false;
}

/* Zeros everywhere, and positions from 0 on, are the same whatever a mask holds. */
static bool may_hang(const agree *a, size_t j) {
  const rule_tensor *t = agree_value(a, j, 0);
  const agree_look x = agree_look_of(a, j);
  if (t->numel == 0) return false;
  if (is_bits(a, j)) return varies(a, j);
  if (x == FLOATS) return hides(t);
  if (x == NUMBERS) return of_sequences(t);
  return rule_tensor_get_int(t, 0) != 0;
}

static int64_t what_hangs(const agree *a, size_t g) {
  for (size_t j = 0; j < a->n; j++)
    if (a->in[j].group != g && !is_part_of(a, j, g) && a->in[j].twin != (int64_t)g &&
        a->in[a->in[j].group].hangs != (int64_t)g && may_hang(a, j))
      return (int64_t)j;
  return -1;
}

static iso_code say_unsure(agree *a, size_t g, const char *where, const char *why) {
  const looks_bits *x = &a->in[g].looks;
  const char *name = agree_node(a, g)->name;
  const char *form = x->kind == LOOKS_LEFT ? "left" : x->kind == LOOKS_RIGHT ? "right" : "any";
  if (a->out->unsure) return ISO_OK;
  a->out->unsure = why ? iso_arena_printf(&a->graph[LEFT]->arena,
                                          "the outputs differ only where %.80s has %s, and %s: a "
                                          "relations file may say what it may be (input %.80s "
                                          "mask %s)",
                                          name, where, why, name, form)
                       : NULL;
  return a->out->unsure ? ISO_OK : no_memory(a);
}

/* Why a difference on draws of `g` may be none. Returns: in `all` whether that is so of all. */
static iso_code doubt(agree *a, size_t g, bool *all) {
  const int64_t j = what_hangs(a, g);
  const char *other = "other zeros and ones than it was captured with";
  *all = true;
  if (j >= 0)
    return say_unsure(a, g, other,
                      iso_arena_printf(&a->graph[LEFT]->arena,
                                       "%.80s, which may hang on it, keeps its captured values",
                                       agree_node(a, (size_t)j)->name));
  if (a->in[g].looks.doubtful)
    return say_unsure(a, g, other,
                      a->in[g].looks.structure
                          ? "it may as well be the shape of attention, or of segments"
                          : "it may as well be no mask of rows");
  *all = false;
  return ISO_OK;
}

static iso_code say_by_chance(agree *a, size_t g, size_t j, const char *why) {
  iso_arena *arena = &a->graph[LEFT]->arena;
  const char *law = looks_law_words(a->in[j].law, arena), *name = agree_node(a, j)->name;
  if (a->out->unsure) return ISO_OK;
  a->out->unsure = law ? iso_arena_printf(arena,
                                          "the outputs differ only where %.80s is not %s (%.80s), "
                                          "and %s: a relations file may say what it may be (input "
                                          "%.80s range LOW HIGH)",
                                          name, law, agree_node(a, g)->name, why, name)
                       : NULL;
  return a->out->unsure ? ISO_OK : no_memory(a);
}

/* Numbers that a law gives, as another does, too, or as few numbers are by chance. Returns: in
 * `all` whether no draw of the mask is sure to have those that go with it. */
static iso_code doubt_laws(agree *a, size_t g, bool *all) {
  iso_code c = ISO_OK;
  for (size_t j = 0; j < a->n && !c; j++) {
    if (a->in[j].hangs != (int64_t)g || (!a->in[j].torn && !a->in[j].by_chance)) continue;
    *all |= a->in[j].torn;
    c = say_by_chance(a, g, j,
                      a->in[j].torn ? "it may as well be something else of it"
                                    : "so few numbers are that by chance, too");
  }
  return c;
}

/* A spare one has other zeros and ones only where a program gives it others. */
static iso_code doubt_spares(agree *a, size_t g) {
  for (size_t i = 0; i < a->n && !a->out->unsure; i++) {
    if (!a->in[i].spare || !is_one_with(a, i, g)) continue;
    size_t k = 0;
    while (a->in[k].side == a->in[i].side || !is_one_with(a, k, g)) k++;
    iso_arena *arena = &a->graph[LEFT]->arena;
    const char *own = agree_node(a, i)->name, *other = agree_node(a, k)->name;
    const bool left = a->in[i].side == LEFT, swapped = a->in[i].swapped || a->in[k].swapped;
    const char *line = swapped ? iso_arena_printf(arena, "any (input %.80s mask any)", own)
                               : iso_arena_printf(arena, "the same (input %.80s = %.80s)",
                                                  left ? own : other, left ? other : own);
    if (line)
      a->out->unsure = iso_arena_printf(
          arena,
          "the outputs differ only where %.80s has other zeros and ones beside the %s's %.80s than "
          "it was captured with: a relations file may say that they are %s",
          own, left ? "right" : "left", other, line);
    if (!a->out->unsure) return no_memory(a);
  }
  return ISO_OK;
}

/* What draws have that no captured value has, and why that counts for nothing. */
static iso_code doubt_more(agree *a, size_t g) {
  static const char *const chance = "so few of them look like anything by chance";
  static const struct {
    const char *has, *why;
  } of[N_LOOKS] = {
      [LOOKS_ORDER] = {"zeros and ones in another order", NULL},
      [LOOKS_REPEATS] = {"others along a dimension where they repeat", NULL},
      [LOOKS_DISTINCT] = {"two ones in a column", NULL},
      [LOOKS_SYMMETRIC] = {"others across the diagonal", NULL},
      [LOOKS_DIAGONAL] = {"a 0 on the diagonal", NULL},
      [LOOKS_HOLLOW] = {"a 1 on the diagonal", NULL},
      [LOOKS_COUNT] = {"other numbers of ones", "each row was captured with as many"},
      [LOOKS_FIRST] = {"a row that begins with 0", "none was captured so"},
      [LOOKS_LAST] = {"a row that ends with 0", "none was captured so"},
      [LOOKS_FRACTION] = {"numbers between 0 and 1", "it was captured without"},
      [LOOKS_EITHER] = {"ones alone in a row", "it was not captured so: whether ones or zeros are "
                                               "left out is not known"},
  };
  const unsigned what = a->in[g].looks.by_chance;
  const char *has = NULL, *why = NULL;
  for (int k = 0; k < N_LOOKS; k++) {
    if (!(what >> k & 1)) continue;
    if (!has) why = of[k].why ? of[k].why : chance;
    has = has ? iso_arena_printf(&a->graph[LEFT]->arena, "%s, or %s", has, of[k].has) : of[k].has;
    if (!has) return no_memory(a);
  }
  return has ? say_unsure(a, g, has, why) : ISO_OK;
}

/* An input that the other side was given and reads nowhere is one with it, too, and ranks' parts go
 * with their whole. */
static void keep(agree *a, size_t g) {
  const bool by_chance = a->in[g].hangs >= 0 && a->in[g].by_chance;
  for (size_t i = 0; i < a->n; i++) {
    if (a->in[i].group != g && a->in[i].twin != (int64_t)g && !is_part_of(a, i, g)) continue;
    const int side = a->in[i].side;
    const cap_node *unread = agree_unread(a, i);
    cap_keep_input(a->graph[side], a->in[i].node, by_chance);
    if (unread)
      cap_keep_input(a->graph[!side], (uint32_t)(unread - a->graph[!side]->node), by_chance);
  }
}

static iso_code note_looks(agree *a, size_t g) {
  iso_arena *arena = &a->graph[LEFT]->arena;
  const char *name = agree_node(a, g)->name;
  keep(a, g);
  iso_code c =
      agree_note(a, RULE_ASSUMES_RANGE,
                 iso_arena_printf(
                     arena, "%s, of which nothing is said, was run as what it looks like, too: %s",
                     name, looks_say_bits(&a->in[g].looks)),
                 g, -1);
  for (size_t j = 0; j < a->n && !c; j++) {
    if (a->in[j].hangs != (int64_t)g) continue;
    const char *law = looks_law_words(a->in[j].law, arena);
    keep(a, j);
    c = law ? agree_note(a, RULE_ASSUMES_RANGE,
                         iso_arena_printf(arena, "%s is of %s, as it was captured: %s",
                                          agree_node(a, j)->name, name, law),
                         j, -1)
            : no_memory(a);
  }
  return c;
}

iso_code agree_find_looks(agree *a, bool *all) {
  iso_code c = find_twins(a);
  for (size_t g = 0; g < a->n && !c; g++)
    if (a->in[g].group == g && a->in[g].twin < 0 && may_be_drawn(a, g) && agree_unsaid(a, g))
      c = look(a, g);
  if (!c) c = agree_find_hanging(a);
  for (size_t g = 0; g < a->n && !c; g++) {
    if (a->in[g].looks.kind == LOOKS_KEPT) continue;
    /* What tells the segments, too, is not drawn with them. */
    if (of_both(a, g) && !(a->in[g].looks.data && what_hangs(a, g) >= 0)) {
      find_spares(a, g);
      find_fractions(a, g);
      c = note_looks(a, g);
      continue;
    }
    a->in[g].looks.kind = LOOKS_KEPT;
    for (size_t j = 0; j < a->n; j++)
      if (a->in[j].hangs == (int64_t)g) a->in[j].hangs = -1;
  }
  *all = false;
  for (size_t g = 0; g < a->n && !c && !*all; g++)
    if (a->in[g].looks.kind != LOOKS_KEPT) c = doubt(a, g, all);
  for (size_t g = 0; g < a->n && !c && !*all; g++)
    if (a->in[g].looks.kind != LOOKS_KEPT) c = doubt_laws(a, g, all);
  for (size_t g = 0; g < a->n && !c && !*all; g++)
    if (a->in[g].looks.kind != LOOKS_KEPT) c = doubt_spares(a, g);
  for (size_t g = 0; g < a->n && !c && !*all; g++)
    if (a->in[g].looks.kind != LOOKS_KEPT) c = doubt_more(a, g);
  return c;
}

/* ---- drawing ---- */

static iso_code as_twin(agree *a, rule_tensor *t, size_t i, rule_tensor **out) {
  const cap_output *o = &agree_node(a, i)->output[0];
  const iso_code c = rule_tensor_new(o->dtype, &o->shape, out, a->err);
  for (int64_t k = 0; !c && k < t->numel; k++)
    rule_tensor_set(*out, k, (rule_tensor_get(t, k) != 0) != a->in[i].swapped);
  return c;
}

/* Another draw of the group, in `out`, for what comes of it by chance. */
static iso_code draw_apart(agree *a, size_t g, const looks_bits *x, const agree_form *by,
                           iso_rng *rng, rule_tensor **out) {
  const rule_tensor *was = agree_value(a, g, 0);
  const iso_code c = rule_tensor_new(was->dtype, &was->shape, out, a->err);
  if (c || looks_draw_bits(x, by->form + 1, rng, *out)) return c;
  rule_tensor_unref(*out);
  *out = NULL;
  return no_memory(a);
}

/* In every other form some numbers are between those that look so. */
static void divide_ones(rule_tensor *t, unsigned form, iso_rng *rng) {
  for (int64_t i = 0; i < t->numel && form % 2; i++)
    if (iso_rng_below(rng, 2)) rule_tensor_set(t, i, iso_rng_uniform(rng));
}

iso_code agree_draw_looks(agree *a, agree_sets *s, size_t g, const agree_form *by, iso_rng *rng) {
  const rule_tensor *was = agree_value(a, g, 0);
  looks_bits x = a->in[g].looks;
  x.counts = by->counts, x.n_counts = by->n_counts;
  if (by->full) looks_widen(&x);
  for (size_t i = 0; i < a->n; i++) /* what is full on one side is empty on the other */
    x.empty |= by->full && x.either && a->in[i].twin == (int64_t)g && a->in[i].swapped;
  rule_tensor *t, *own, *apart = NULL;
  bool inside = true;
  iso_code c = rule_tensor_new(was->dtype, &was->shape, &t, a->err);
  if (c) return c;
  if (!looks_draw_bits(&x, by->form, rng, t)) c = no_memory(a);
  if (by->full && x.by_chance >> LOOKS_FRACTION & 1) divide_ones(t, by->form, rng);
  if (!c && by->full) c = draw_apart(a, g, &x, by, rng, &apart);
  for (size_t i = 0; i < a->n && !c; i++) {
    const bool twin = a->in[i].group != g;
    rule_tensor *from = by->full && a->in[i].spare ? apart : t;
    if (!is_one_with(a, i, g)) continue;
    c = twin ? as_twin(a, from, i, &own) : agree_as_input(a, from, agree_node(a, i), &own);
    if (!c) agree_set_last(a, s, i, own);
  }
  if (!c) c = agree_draw_hanging(a, s, g, t, apart);
  rule_tensor_unref(apart);
  if (!c) c = agree_fill(a, s, g, t);
  if (!c) c = agree_cut_parts(a, g, t, s, &inside);
  rule_tensor_unref(t);
  return c;
}
