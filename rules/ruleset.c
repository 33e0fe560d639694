/* An ordered set of rules, each in it once.
 *
 * Two rules are one when their keys are equal: the key is the rule as text with variables, sizes
 * and attributes numbered in the order in which the sides use them. A rule's claimed status and its
 * name are not part of its key. Names are kept apart too: rules are reported by name. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "egraph/base/table.h"
#include "egraph/base/vec.h"
#include "rules/rules_int.h"

typedef struct entry {
  rule *r; /* in the arena, as the entry is: borrowers keep it while the set grows */
  const char *key;
  size_t index;
  UT_hash_handle by_key, by_name;
} entry;

struct rule_set {
  iso_arena arena;
  entry **at;
  size_t n, cap;
  entry *keys, *names; /* heads of the tables; of entries with one key the first */
};

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

iso_code rule_set_new(rule_set **out, iso_error *err) {
  rule_set *s = calloc(1, sizeof *s);
  if (s == NULL) return no_memory(err);
  *out = s;
  return ISO_OK;
}

void rule_set_free(rule_set *s) {
  if (s == NULL) return;
  HASH_CLEAR(by_key, s->keys);
  HASH_CLEAR(by_name, s->names);
  iso_arena_fini(&s->arena);
  free(s->at);
  free(s);
}

size_t rule_set_count(const rule_set *s) { return s->n; }
const rule *rule_set_at(const rule_set *s, size_t i) { return s->at[i]->r; }

/* ---- look-up ---- */

static entry *find_key(const rule_set *s, const char *key) {
  entry *e;
  HASH_FIND(by_key, s->keys, key, strlen(key), e);
  return e;
}

static entry *find_name(const rule_set *s, const char *name) {
  entry *e;
  HASH_FIND(by_name, s->names, name, strlen(name), e);
  return e;
}

/* Into both tables, or, without memory, into neither. */
static bool enter(rule_set *s, entry *e, bool known) {
  HASH_ADD_KEYPTR(by_name, s->names, e->r->name, strlen(e->r->name), e);
  if (!e->by_name.tbl) return false;
  if (known) return true;
  HASH_ADD_KEYPTR(by_key, s->keys, e->key, strlen(e->key), e);
  if (e->by_key.tbl) return true;
  HASH_DELETE(by_name, s->names, e);
  return false;
}

/* ---- keys ---- */

/* Numbers given to names in the order of their first use. */
typedef struct numbering {
  rule_text out;
  uint32_t *var; /* number + 1 of a variable, 0 while it has none */
  uint32_t n_vars;
  const char **name;
  size_t n_names, cap_names;
} numbering;

static void key_name(numbering *k, const char *name) {
  size_t i = 0;
  while (i < k->n_names && strcmp(k->name[i], name) != 0) i++;
  if (i == k->n_names) {
    if (!iso_grow(k->name, k->cap_names, i + 1)) k->out.failed = true;
    if (k->out.failed) return;
    k->name[k->n_names++] = name;
  }
  rule_text_fmt(&k->out, " n%zu", i);
}

static void key_term(numbering *k, const rule_term *t) {
  char buf[40];
  rule_text *out = &k->out;
  switch (t->kind) {
  case RULE_VAR:
    if (k->var[t->u.i] == 0) k->var[t->u.i] = ++k->n_vars;
    rule_text_fmt(out, " x%" PRIu32, k->var[t->u.i] - 1);
    return;
  case RULE_NAME: key_name(k, t->u.s); return;
  case RULE_OP:
  case RULE_LIST:
  case RULE_EXPR:
    rule_text_str(out, t->kind == RULE_OP ? " (" : t->kind == RULE_LIST ? " [" : " {");
    if (t->kind != RULE_LIST) rule_text_str(out, t->u.s);
    for (uint32_t i = 0; i < t->n; i++) key_term(k, t->child[i]);
    rule_text_str(out, ")");
    return;
  case RULE_STRING:
    rule_text_str(out, " ");
    rule_text_quoted(out, t->u.s);
    return;
  case RULE_FLOAT:
    rule_text_str(out, " ");
    rule_text_str(out, rule_float_print(t->u.f, buf));
    return;
  default: /* INT, BOOLEAN, NONE, DTYPE: the kind keeps them apart */
    rule_text_fmt(out, " %d:%" PRId64, (int)t->kind, t->kind == RULE_NONE ? 0 : t->u.i);
  }
}

static void key_variable(numbering *k, const rule_variable *v) {
  rule_text_fmt(&k->out, "\n%s%s%s", rule_variable_kind(v), v->any_shape ? "_" : "",
                v->leading ? "..." : "");
  for (uint32_t d = 0; d < v->n_dims; d++) {
    if (v->dim[d]->kind == RULE_NONE) rule_text_str(&k->out, " _");
    else key_term(k, v->dim[d]);
  }
  if (v->low == NULL && v->high == NULL) return;
  rule_text_str(&k->out, " in");
  if (v->low != NULL) key_term(k, v->low);
  rule_text_str(&k->out, " to");
  if (v->high != NULL) key_term(k, v->high);
}

static void key_rule(numbering *k, const rule *r) {
  key_term(k, r->lhs);
  rule_text_str(&k->out, " =");
  key_term(k, r->rhs);
  const uint32_t used = k->n_vars;
  for (uint32_t number = 1; number <= used; number++)
    for (uint32_t i = 0; i < r->n_vars; i++)
      if (k->var[i] == number) key_variable(k, &r->var[i]);
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (k->var[i] == 0) key_variable(k, &r->var[i]); /* on neither side: it can still name sizes */
  rule_text_str(&k->out, "\nwhere");
  for (uint32_t i = 0; i < r->n_where; i++) key_term(k, r->where[i]);
  /* Declarations in the order of the numbers, not of the text; unused ones mean nothing. */
  for (size_t n = 0; n < k->n_names; n++)
    for (uint32_t i = 0; i < r->n_attrs; i++)
      if (strcmp(k->name[n], r->attr[i].name) == 0)
        rule_text_fmt(&k->out, "\nn%zu %c", n, r->attr[i].kind);
}

/* Owns: malloc'ed; NULL when there is no memory. */
static char *key_of(const rule *r) {
  numbering k = {.var = calloc(r->n_vars + 1u, sizeof(uint32_t))};
  if (k.var == NULL) k.out.failed = true;
  else key_rule(&k, r);
  free(k.var);
  free(k.name);
  return rule_text_take(&k.out);
}

/* ---- copies ---- */

/* Copies into one arena; `ok` is false once memory ran out. */
typedef struct copier {
  iso_arena *a;
  bool ok;
} copier;

static void *copy_bytes(copier *c, const void *p, size_t n) {
  void *q = c->ok ? iso_arena_alloc(c->a, n) : NULL;
  if (q == NULL) c->ok = false;
  else if (n > 0) memcpy(q, p, n);
  return q;
}

static const char *copy_text(copier *c, const char *s) {
  return s != NULL ? copy_bytes(c, s, strlen(s) + 1) : NULL;
}

static const rule_term *copy_term(copier *c, const rule_term *t) {
  if (t == NULL || !c->ok) return NULL;
  const rule_term *copy = rule_term_copy(c->a, t);
  if (copy == NULL) c->ok = false;
  return copy;
}

static const rule_term *const *copy_terms(copier *c, const rule_term *const *t, uint32_t n) {
  const rule_term **copy = copy_bytes(c, t, n * sizeof *t);
  for (uint32_t i = 0; i < n && c->ok; i++) copy[i] = copy_term(c, t[i]);
  return copy;
}

/* Names in rule files are atoms: a character that would end one becomes a dash. */
static const char *copy_name(copier *c, const char *name) {
  if (name == NULL || name[0] == '\0') name = "rule";
  char *copy = copy_bytes(c, name, strlen(name) + 1);
  for (char *p = copy; c->ok && *p != '\0'; p++)
    if ((unsigned char)*p <= ' ' || *p == 127 || strchr("()\";", *p) != NULL) *p = '-';
  return copy;
}

static rule *copy_rule(iso_arena *a, const rule *r) {
  copier c = {a, true};
  rule *n = copy_bytes(&c, r, sizeof *r);
  if (n == NULL) return NULL;
  n->name = copy_name(&c, r->name);
  rule_variable *var = copy_bytes(&c, r->var, r->n_vars * sizeof *var);
  for (uint32_t i = 0; i < r->n_vars && c.ok; i++) {
    var[i].name = copy_text(&c, r->var[i].name);
    var[i].dim = copy_terms(&c, r->var[i].dim, r->var[i].n_dims);
    var[i].low = copy_term(&c, r->var[i].low);
    var[i].high = copy_term(&c, r->var[i].high);
  }
  n->var = var;
  rule_attribute *attr = copy_bytes(&c, r->attr, r->n_attrs * sizeof *attr);
  for (uint32_t i = 0; i < r->n_attrs && c.ok; i++) attr[i].name = copy_text(&c, r->attr[i].name);
  n->attr = attr;
  n->lhs = copy_term(&c, r->lhs);
  n->rhs = copy_term(&c, r->rhs);
  n->where = copy_terms(&c, r->where, r->n_where);
  const char **relative = copy_bytes(&c, r->relative_to, r->n_relative * sizeof *relative);
  for (uint32_t i = 0; i < r->n_relative && c.ok; i++)
    relative[i] = copy_text(&c, r->relative_to[i]);
  n->relative_to = relative;
  n->float_class = copy_text(&c, r->float_class);
  return c.ok ? n : NULL;
}

/* A name that no rule has: the wanted one, or with a number behind it: the first from 2 to 9 that
 * is free, or one from the set's size up, so that a thousand rules of one name do not cost a
 * million look-ups. */
static const char *free_name(rule_set *s, const char *wanted) {
  const char *name = wanted;
  for (size_t k = 2; name != NULL && find_name(s, name); k = k == 9 && s->n > 9 ? s->n : k + 1)
    name = iso_arena_printf(&s->arena, "%s-%zu", wanted, k);
  return name;
}

/* A copy of the rule, whose name is free, as the last entry. NULL: no memory. */
static entry *append(rule_set *s, const rule *r, const char *key, bool known) {
  entry *e = iso_arena_alloc(&s->arena, sizeof *e);
  if (!e || !iso_grow(s->at, s->cap, s->n + 1)) return NULL;
  *e = (entry){copy_rule(&s->arena, r), iso_arena_strdup(&s->arena, key), .index = s->n};
  if (!e->r || !e->key || !(e->r->name = free_name(s, e->r->name)) || !enter(s, e, known))
    return NULL;
  return s->at[s->n++] = e;
}

static iso_code add(rule_set *s, const rule *r, bool all, size_t *index, bool *fresh,
                    iso_error *err) {
  char *key = key_of(r);
  if (!key) return no_memory(err);
  entry *known = find_key(s, key), *e = known && !all ? known : append(s, r, key, known != NULL);
  free(key);
  if (!e) return no_memory(err);
  if (index != NULL) *index = e->index;
  if (fresh != NULL) *fresh = all || !known;
  return ISO_OK;
}

iso_code rule_set_add(rule_set *s, const rule *r, size_t *index, bool *fresh, iso_error *err) {
  return add(s, r, false, index, fresh, err);
}

iso_code rule_set_append(rule_set *s, const rule *r, iso_error *err) {
  return add(s, r, true, NULL, NULL, err);
}

void rule_set_evidence(rule_set *s, size_t i, rule_status status, rule_scope scope) {
  s->at[i]->r->claimed = status;
  s->at[i]->r->scope = scope;
}

void rule_set_rests_on(rule_set *s, size_t i, unsigned rests_on) {
  s->at[i]->r->rests_on = rests_on;
}

/* ---- files ---- */

enum { MAX_FILE = 1 << 28 }; /* bytes */

/* Owns: the caller closes. */
static iso_code open_file(const char *path, FILE **out, iso_error *err) {
  const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not make us wait */
  struct stat st;
  iso_code code = ISO_OK;
  if (fd < 0 || fstat(fd, &st) != 0) code = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  else if (S_ISDIR(st.st_mode)) code = iso_fail(err, ISO_IO, "%s: %s", path, strerror(EISDIR));
  else if (!S_ISREG(st.st_mode)) code = iso_fail(err, ISO_IO, "%s: not a regular file", path);
  else if (st.st_size > MAX_FILE)
    code = iso_fail(err, ISO_LIMIT, "%s: %lld bytes are too many for rules", path,
                    (long long)st.st_size);
  else if ((*out = fdopen(fd, "rb")) == NULL) code = no_memory(err);
  if (code != ISO_OK && fd >= 0) close(fd);
  return code;
}

static iso_code load(const char *path, bool all, rule_set **out, iso_error *err) {
  FILE *f;
  const iso_code opened = open_file(path, &f, err);
  if (opened != ISO_OK) return opened;
  char *text = NULL;
  size_t n = 0, cap = 0, got = 1;
  iso_code code = ISO_OK;
  while (got > 0 && code == ISO_OK) {
    if (!iso_grow(text, cap, n + 4096)) code = no_memory(err);
    else n += got = fread(text + n, 1, cap - n, f);
  }
  if (code == ISO_OK && ferror(f)) code = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  fclose(f);
  if (code == ISO_OK) code = rule_set_read(text, n, path, all, out, err);
  free(text);
  return code;
}

iso_code rule_set_load(const char *path, rule_set **out, iso_error *err) {
  return load(path, false, out, err);
}

iso_code rule_set_load_all(const char *path, rule_set **out, iso_error *err) {
  return load(path, true, out, err);
}

static bool write_rules(const rule_set *s, FILE *f, bool *no_mem) {
  for (size_t i = 0; i < s->n; i++) {
    char *text = rule_print(s->at[i]->r);
    if (text == NULL) {
      *no_mem = true;
      return false;
    }
    const bool written = (i == 0 || fputc('\n', f) != EOF) && fputs(text, f) >= 0;
    free(text);
    if (!written) return false;
  }
  return fflush(f) == 0;
}

/* A device or a pipe is written as it is: a rename would replace it. */
static iso_code save_in_place(const rule_set *s, const char *path, iso_error *err) {
  FILE *f = fopen(path, "wb");
  if (f == NULL) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  bool no_mem = false, ok = write_rules(s, f, &no_mem);
  int why = errno;
  if (fclose(f) != 0 && ok) ok = false, why = errno;
  if (no_mem) return no_memory(err);
  return ok ? ISO_OK : iso_fail(err, ISO_IO, "%s: %s", path, strerror(why));
}

iso_code rule_set_save(const rule_set *s, const char *path, iso_error *err) {
  struct stat st;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode)) return save_in_place(s, path, err);
  const size_t room = strlen(path) + 16;
  char *temp = malloc(room);
  if (temp == NULL) return no_memory(err);
  snprintf(temp, room, "%s.XXXXXX", path);
  const int fd = mkstemp(temp);
  FILE *f = fd >= 0 ? fdopen(fd, "wb") : NULL;
  bool no_mem = false, ok = f != NULL && write_rules(s, f, &no_mem);
  int why = errno;
  if (ok && fchmod(fd, 0644) != 0) ok = false, why = errno; /* mkstemp's files are private */
  if (f == NULL && fd >= 0) close(fd);
  if (f != NULL && fclose(f) != 0 && ok) ok = false, why = errno;
  if (ok && rename(temp, path) != 0) ok = false, why = errno;
  if (!ok && fd >= 0) unlink(temp);
  free(temp);
  if (no_mem) return no_memory(err);
  return ok ? ISO_OK : iso_fail(err, ISO_IO, "%s: %s", path, strerror(why));
}
