/* Patterns compiled: each start at an operator application gives a program that walks outwards from
 * it, always to the atom that is cheapest to reach next. A search picks the start with the fewest
 * rows (de Moura and Bjorner, Efficient E-matching for SMT solvers, CADE 2007, has the machine;
 * starting anywhere is what relational matching does with its join order). */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

/* Which register a term's class is in. The roots of a part share one. */
static uint32_t reg_of(const eg_pattern *p, uint32_t term) {
  const egi_term *t = &p->term[term];
  if (t->is_var) return t->sym;
  uint32_t start = 0;
  for (size_t k = 0; k < p->n_parts; start = p->part[k++].end)
    for (uint32_t i = start; i < p->part[k].end; i++)
      if (p->root[i] == term)
        return p->part[k].var != EG_NONE ? p->part[k].var : (uint32_t)(p->n_vars + p->root[start]);
  return (uint32_t)(p->n_vars + term);
}

static bool add_atom(egi_query *q, const eg_pattern *p, uint32_t term) {
  const egi_term *t = &p->term[term];
  uint32_t *kid = iso_arena_alloc(&q->mem, (t->n + 1) * sizeof *kid);
  if (!kid) return false;
  for (uint32_t k = 0; k < t->n; k++) kid[k] = reg_of(p, p->kid[t->kid + k]);
  q->atom[q->n_atoms++] =
      (egi_atom){.op = t->sym, .n = t->n, .cls = reg_of(p, term), .kid = kid, .ground = t->ground};
  return true;
}

static size_t known_kids(const egi_atom *a, const bool *reg) {
  size_t n = 0;
  for (uint32_t k = 0; k < a->n; k++) n += reg[a->kid[k]];
  return n;
}

enum { LOOKED_UP, BELOW, ON_THE_WAY, ABOVE, ABOVE_VARIABLE, ABOVE_GROUND, ANYWHERE, RANKS };

/* The rank of an atom as the next step, smaller is better: a lookup; in a known class; on the way
 * from the start up to the root; above another class that the pattern describes; above a variable's
 * class; above a ground term, which may have very many parents; anywhere. Classes reached downwards
 * from the root come before all upward steps: otherwise an operator over many parts that share a
 * subterm would be reached upwards from that subterm once for each part, before it shows that the
 * parts are in no list together. `way`: by register, whether its class is on the way. */
static int rank(const egi_query *q, const egi_atom *a, const bool *reg, const bool *way) {
  if (known_kids(a, reg) == a->n) return LOOKED_UP;
  if (reg[a->cls]) return BELOW;
  int best = ANYWHERE;
  for (uint32_t k = 0; k < a->n; k++) {
    const uint32_t kid = a->kid[k];
    if (!reg[kid]) continue;
    const int r = q->ground[kid]    ? ABOVE_GROUND
                  : kid < q->n_vars ? ABOVE_VARIABLE
                  : way[kid]        ? ON_THE_WAY
                                    : ABOVE;
    if (r < best) best = r;
  }
  return best;
}

/* Whether the class of an atom is on the way once the atom is reached. */
static bool leads_up(const egi_atom *a, const bool *way) {
  for (uint32_t k = 0; k < a->n; k++)
    if (way[a->kid[k]]) return true;
  return false;
}

/* Marks a use: copies have only the operators in use when they were made. */
static void use(eg_sat *s, uint32_t op, uint32_t bit) {
  if (!(s->op[op].used & bit)) s->flat->off = true;
  s->op[op].used |= bit;
}

/* How the row of an atom binds its children; its class comes before them, and may be one of them.
 * Returns: false without memory. */
static bool bind_kids(egi_query *q, egi_ins *out, const egi_atom *a, bool *reg) {
  egi_bind *compare = iso_arena_alloc(&q->mem, (3 * a->n + 1) * sizeof *compare),
           *set = compare + a->n, *again = set + a->n;
  if (!compare) return false;
  out->from = out->compare = compare;
  out->set = set;
  out->again = again;
  for (uint32_t k = 0; k < a->n; k++)
    if (reg[a->kid[k]]) compare[out->n_compare++] = (egi_bind){a->kid[k], k};
  for (uint32_t k = 0, c = 0; k < a->n; k++) {
    const egi_bind b = {a->kid[k], k};
    if (c < out->n_compare && compare[c].at == k) {
      c++;
      continue;
    }
    if (reg[b.reg] || b.reg == a->cls) again[out->n_again++] = b;
    else set[out->n_set++] = b;
    reg[b.reg] = true;
  }
  reg[a->cls] = true;
  out->n_from = out->n_compare;
  if (out->kind == EGI_UP && out->n_from == 1) out->n_compare = 0;
  return true;
}

/* parameters: the program's instruction, and the registers known before it. */
static bool emit(egi_query *q, egi_ins *out, const egi_atom *a, bool *reg, bool *way, bool start,
                 bool old) {
  static const enum egi_kind kinds[] = {EGI_LOOKUP, EGI_DOWN, EGI_UP,  EGI_UP,
                                        EGI_UP,     EGI_UP,   EGI_SCAN};
  const bool known = reg[a->cls];
  const int how = rank(q, a, reg, way);
  way[a->cls] = way[a->cls] || start || (how != BELOW && leads_up(a, way));
  *out = (egi_ins){.kind = start ? EGI_SCAN : kinds[how],
                   .cls_known = known,
                   .plain = known || (a->cls == q->root && a->cls >= q->n_vars),
                   .want = a->op | ROW_IS_HEAD,
                   .mask = old ? UINT32_MAX : ~ROW_FRESH,
                   .n = a->n,
                   .cls = a->cls,
                   .old = old,
                   .slot = q->s->op[a->op].slot,
                   .bit = q->s->op[a->op].bit,
                   .kid = a->kid};
  if (!bind_kids(q, out, a, reg)) return false;
  out->plain = out->plain && !out->n_compare && !out->n_again;
  for (uint32_t k = 0; k < out->n_set; k++) out->plain = out->plain && out->set[k].reg < q->n_vars;
  if (out->kind == EGI_DOWN) use(q->s, a->op, EGI_USED_DOWN);
  for (uint32_t k = 0; out->kind == EGI_UP && k < out->n_from; k++)
    use(q->s, a->op, egi_used_up(out->from[k].at));
  return true;
}

/* What a row can be asked beforehand of the next one. */
static void look_on(egi_ins *ins, const egi_ins *next) {
  for (uint32_t k = 0; next->kind == EGI_DOWN && k < ins->n_set; k++)
    if (ins->set[k].reg == next->cls) {
      ins->next_bit = next->bit;
      ins->next_at = ins->set[k].at;
    }
}

static bool build(egi_query *q, size_t start, bool fresh) {
  egi_program *out = &q->program[2 * start + fresh];
  bool *reg = calloc(2 * q->n_regs + q->n_atoms + 1, sizeof *reg), *way = reg + q->n_regs,
       *used = way + q->n_regs;
  out->ins = iso_arena_alloc(&q->mem, (q->n_atoms + 2) * sizeof *out->ins);
  bool ok = reg && out->ins;
  size_t n = 0;
  for (size_t i = 0; ok && i < q->n_ground; i++) {
    reg[q->atom[i].cls] = used[i] = true;
  }
  if (ok && start < q->n_ground) way[q->atom[start].cls] = true;
  if (ok && start >= q->n_ground) {
    ok = emit(q, &out->ins[n++], &q->atom[start], reg, way, true, false);
    used[start] = true;
  }
  while (ok) {
    size_t best = q->n_atoms;
    int best_rank = 2 * RANKS;
    for (size_t i = 0; i < q->n_atoms; i++) {
      /* From a ground start, the first step goes up from its class. */
      const bool from_start = start < q->n_ground && n == 0;
      if (used[i]) continue;
      int r = rank(q, &q->atom[i], reg, way);
      if (from_start) {
        bool touches = false;
        for (uint32_t k = 0; k < q->atom[i].n; k++)
          touches = touches || q->atom[i].kid[k] == q->atom[start].cls;
        if (!touches) r += RANKS;
      }
      if (best == q->n_atoms || r < best_rank) best = i, best_rank = r;
    }
    if (best == q->n_atoms) break;
    used[best] = true;
    egi_ins *ins = &out->ins[n++];
    ok = emit(q, ins, &q->atom[best], reg, way, false, fresh && best < start);
    q->scans = q->scans || ins->kind == EGI_SCAN;
  }
  if (ok) out->ins[n].kind = EGI_YIELD;
  for (size_t i = 0; ok && i < n; i++) look_on(&out->ins[i], &out->ins[i + 1]);
  free(reg);
  return ok;
}

static bool is_single(const egi_query *q) {
  if (q->n_atoms != 1 || q->n_ground) return false;
  const egi_atom *a = q->atom;
  for (uint32_t k = 0; k < a->n; k++) {
    if (a->kid[k] == a->cls) return false;
    for (uint32_t i = 0; i < k; i++)
      if (a->kid[i] == a->kid[k]) return false;
  }
  return true;
}

enum { LEAST = 1 << 10 }; /* with so few rows, a join begins later than a program ends */

/* Who asks for several classes joins them, and one pass over all rows is the price of that. The
 * classes of one term hang together, and its program seldom passes much in vain. */
static size_t patience_of(const egi_query *q, const eg_pattern *p) {
  enum { PARTS = 1 };
  if (!egi_join_can(q)) return EGI_NEVER;
  return p->n_parts > 1 ? PARTS : EGI_PATIENT;
}

iso_code egi_query_new(eg_sat *s, const eg_pattern *p, bool late, egi_query **out, iso_error *err) {
  egi_query *q = calloc(1, sizeof *q);
  if (!q) return iso_fail(err, ISO_NOMEM, "out of memory for a pattern");
  iso_arena_init(&q->mem);
  q->s = s;
  q->n_vars = p->n_vars;
  q->n_regs = p->n_vars + p->n_terms;
  for (size_t i = 0; i < p->n_terms; i++)
    if (!p->term[i].is_var && p->term[i].n > q->most_kids) q->most_kids = p->term[i].n;
  q->root = p->n_roots ? reg_of(p, p->root[0]) : p->root_var;
  q->atom = iso_arena_alloc(&q->mem, (p->n_terms + 1) * sizeof *q->atom);
  q->ground = iso_arena_alloc(&q->mem, (q->n_regs + 1) * sizeof *q->ground);
  bool ok = q->atom != NULL && q->ground != NULL;
  for (int ground = 1; ground >= 0; ground--) {
    for (size_t i = 0; ok && i < p->n_terms; i++)
      if (!p->term[i].is_var && p->term[i].ground == (bool)ground) ok = add_atom(q, p, (uint32_t)i);
    if (ground) q->n_ground = q->n_atoms;
    for (size_t i = 0; ok && ground && i < q->n_ground; i++) q->ground[q->atom[i].cls] = true;
  }
  q->program = iso_arena_alloc(&q->mem, (2 * q->n_atoms + 1) * sizeof *q->program);
  ok = ok && q->program;
  q->single = ok && is_single(q);
  q->patience = patience_of(q, p);
  q->least = LEAST;
  /* Of a long term few starts ever are the best, and building costs the square of its length: its
   * programs wait. One term is connected: no program scans beside its start, whichever is built. */
  enum { LONG = 16 };
  const bool wait = (late || q->n_atoms > LONG) && p->n_parts <= 1 && p->n_roots == 1;
  for (size_t i = 0; ok && !wait && i < q->n_atoms; i++)
    ok = build(q, i, false) && build(q, i, true);
  if (!ok) {
    egi_query_free(q);
    return iso_fail(err, ISO_NOMEM, "out of memory for a pattern");
  }
  *out = q;
  return ISO_OK;
}

const egi_ins *egi_program_of(egi_query *q, size_t start, bool fresh) {
  const egi_program *p = &q->program[2 * start + fresh];
  return p->ins || build(q, start, fresh) ? p->ins : NULL;
}

void egi_query_free(egi_query *q) {
  if (!q) return;
  iso_arena_fini(&q->mem);
  free(q);
}
