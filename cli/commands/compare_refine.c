/* Relations of outputs that nobody gave: inferred, read as lines of a relations file, and checked
 * against a user's expectation. */
#include "cli/commands/compare_int.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct refining {
  const options *o;
  pair *p;
  relations expected; /* of --expect */
  synth_refinement *found;
  const char **right; /* names of the right results */
  iso_error *err;
} refining;

/* ---- what is expected ---- */

static iso_code load_expected(refining *r) {
  cap_graph *const *g = r->p->graph;
  return r->o->expect ? relations_load(r->o->expect, true, g[0], g[1], &r->expected, r->err)
                      : ISO_OK;
}

/* The lines of --expect as relations to try first. Owns: free(). */
static synth_found *hopes(const refining *r, size_t *n) {
  synth_found *all = calloc(r->expected.n_outputs + 1, sizeof *all);
  *n = 0;
  for (size_t i = 0; all && i < r->expected.n_outputs; i++)
    if (r->expected.output[i].term)
      all[(*n)++] =
          (synth_found){.left = r->expected.output[i].left, .term = r->expected.output[i].term};
  return all;
}

static bool was_found(const refining *r, const relations_line *l) {
  for (size_t i = 0; i < r->found->n && l->term; i++) {
    const synth_found *f = &r->found->found[i];
    if (f->left == l->left && f->clean && rule_term_eq(f->term, l->term)) return true;
  }
  for (size_t i = 0; i < r->p->relations.n_outputs && l->term; i++) { /* given by --relations */
    const relations_line *x = &r->p->relations.output[i];
    if (x->left == l->left && rule_term_eq(x->term, l->term)) return true;
  }
  return false;
}

/* Whether a line of --expect speaks of left output `left`. */
static bool spoken_of(const refining *r, uint32_t left) {
  return r->o->expect && r->expected.left[left].where;
}

static iso_code note_unexpected(refining *r) {
  refinement *out = &r->p->refinement;
  for (size_t i = 0; i < r->expected.n_outputs; i++) {
    const relations_line *l = &r->expected.output[i];
    if (out->unexpected || was_found(r, l)) continue;
    out->unexpected = iso_arena_printf(&out->arena, "%s expects %s = %s", l->where,
                                       r->p->relations.result[0][l->left].name, l->text);
    if (!out->unexpected) return nomem(r->err);
  }
  for (size_t i = 0; i < r->found->n && r->o->expect && !out->unexpected; i++) {
    const synth_found *f = &r->found->found[i];
    if (spoken_of(r, f->left) || (f->clean && !f->surprise)) continue;
    out->unexpected = iso_arena_printf(&out->arena, "%s says nothing of %s", r->o->expect,
                                       r->p->relations.result[0][f->left].name);
    if (!out->unexpected) return nomem(r->err);
  }
  return ISO_OK;
}

/* ---- what was found ---- */

/* As a line of the file, and for the report. */
static iso_code take(refining *r, const synth_found *f) {
  pair *p = r->p;
  refinement *out = &p->refinement;
  iso_arena *a = &out->arena;
  refined x = {.output = p->relations.result[0][f->left].name, .clean = f->clean, .inferred = true};
  const char *name = relations_name(a, x.output);
  if (f->surprise && !spoken_of(r, f->left) && !(x.surprising = iso_arena_strdup(a, f->surprise)))
    return nomem(r->err);
  if (f->surprise && !x.surprising && !f->clean) x.surprising = iso_arena_strdup(a, f->surprise);
  if (!f->term) {
    if (!p->unrelated || p->why.apart < 0) p->why = *f, p->unrelated = x.output;
    return refinement_add(out, x, r->err);
  }
  const char *text = relations_print(a, f->term, r->right);
  const char *line = text ? iso_arena_printf(a, "output %s = %s", name, text) : NULL;
  if (!name || !line) return nomem(r->err);
  if (f->holds) x.relation = f->clean ? text : iso_arena_printf(a, "%.6g * %s", f->scale, text);
  if (f->holds && !x.relation) return nomem(r->err);
  const refined *last = out->n ? &out->of[out->n - 1] : NULL;
  const bool again = last && !last->relation && !x.relation && last->output == x.output;
  const iso_code c = again ? ISO_OK : refinement_add(out, x, r->err);
  return c ? c : relations_add(&p->relations, line, p->graph[0], p->graph[1], r->err);
}

/* Outputs without a relation are left out, with the outputs that they would pair with. Others,
 * which would have paired, may not any more: a relation found may use their partner. */
static iso_code leave_out_unrelated(refining *r) {
  pair *p = r->p;
  const size_t n = p->relations.n_results[0];
  for (size_t i = 0; i < r->found->n; i++)
    if (!r->found->found[i].term && !relations_leave_out(&p->relations, r->found->found[i].left))
      return nomem(r->err);
  bool *open = calloc(n + 1, 1), fine = open != NULL;
  const bool any = fine && relations_open(&p->relations, p->graph[0], p->graph[1], false, open);
  for (size_t i = 0; i < n && any && fine; i++) {
    if (!open[i]) continue;
    if (!p->unrelated) {
      p->unrelated = p->relations.result[0][i].name;
      p->why = (synth_found){.left = (uint32_t)i, .apart = -1};
    }
    fine = relations_leave_out(&p->relations, i);
  }
  free(open);
  return fine ? ISO_OK : nomem(r->err);
}

/* Leaves out right outputs that no relation uses, unless they pair with a left output that no line
 * speaks of. Without --refine, which asks for the left's outputs alone, and a line of --expect that
 * leaves it out, too, there is no equivalence without it. */
static iso_code leave_out_rest(refining *r) {
  pair *p = r->p;
  refinement *out = &p->refinement;
  for (size_t i = 0; i < p->relations.n_results[0]; i++)
    if (!p->relations.left[i].where) return ISO_OK;
  for (size_t i = 0; i < p->relations.n_results[1]; i++) {
    if (p->relations.right[i].where || r->found->used[i]) continue;
    const char *name = relations_name(&out->arena, r->right[i]);
    if (!name || !iso_grow(out->left_out, out->cap_left_out, out->n_left_out + 1))
      return nomem(r->err);
    out->left_out[out->n_left_out++] = name;
    const bool may = (r->o->refine && !relations_is_model_memory(r->right[i])) ||
                     (r->o->expect && r->expected.right[i].left_out);
    if (!out->extra && !may) out->extra = r->right[i];
    const iso_code c = relations_leave_out_right(&p->relations, i, r->err);
    if (c) return c;
  }
  return ISO_OK;
}

/* Relations that the user gave stand in the report beside the inferred ones. */
static iso_code list_given(refining *r) {
  const relations *given = &r->p->relations;
  iso_arena *a = &r->p->refinement.arena;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < given->n_outputs && !c; i++) {
    const relations_line *l = &given->output[i];
    if (l->inferred) continue;
    const refined x = {.output = given->result[0][l->left].name,
                       .relation = iso_arena_strdup(a, l->text),
                       .clean = relations_clean(l->term)};
    c = x.relation ? refinement_add(&r->p->refinement, x, r->err) : nomem(r->err);
  }
  return c;
}

static iso_code infer(refining *r, const synth_options *so, rule_schemas *schemas,
                      val_engine *engine, const bool *open) {
  pair *p = r->p;
  view v[2] = {0};
  bool fine = true;
  size_t n_hoped = 0;
  synth_found *hoped = hopes(r, &n_hoped);
  r->right = calloc(p->relations.n_results[1] + 1, sizeof *r->right);
  for (size_t i = 0; r->right && i < p->relations.n_results[1]; i++)
    r->right[i] = p->relations.result[1][i].name;
  for (int side = 0; side < 2; side++)
    fine &= cmp_make_view(p->graph[side], NULL, &p->agreed, &v[side]);
  iso_code c = fine && hoped && r->right ? ISO_OK : nomem(r->err);
  const rule_oracle oracle = val_oracle(engine);
  if (!c)
    c = synth_infer(&v[0].g, &v[1].g, &oracle, schemas, so, open, hoped, n_hoped, &r->found,
                    r->err);
  if (!c && r->found->stopped &&
      !(p->stopped = iso_arena_strdup(&p->refinement.arena, r->found->stopped)))
    c = nomem(r->err);
  if (!c) c = list_given(r);
  for (size_t i = 0; !c && i < r->found->n; i++) c = take(r, &r->found->found[i]);
  if (!c) c = leave_out_unrelated(r);
  if (!c) c = leave_out_rest(r);
  if (!c) c = note_unexpected(r);
  for (int side = 0; side < 2; side++) cmp_free_view(&v[side]);
  free(hoped);
  free(r->right);
  synth_refinement_free(r->found);
  return c;
}

iso_code cmp_refine(const options *o, const synth_options *so, rule_schemas *schemas,
                    val_engine *engine, pair *p, iso_error *err) {
  refining r = {.o = o, .p = p, .err = err};
  bool *open = calloc(p->relations.n_results[0] + 1, 1);
  const bool all = o->refine || o->expect || o->save_relations;
  iso_code c = open ? load_expected(&r) : nomem(err);
  if (!c && (relations_open(&p->relations, p->graph[0], p->graph[1], all, open) || all))
    c = infer(&r, so, schemas, engine, open);
  relations_free(&r.expected);
  free(open);
  return c;
}
