/* Settings become arguments: options from isomer.toml and the environment are put before the
 * user's, so that each command reads only arguments. */
#include "cli/config/config.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/config/limits.h"
#include "egraph/base/vec.h"

static const char file_name[] = "isomer.toml";
enum { MAX_FILE_BYTES = 1 << 20 };

typedef cli_option option;

/* The options that settings may give, and those of one call. */
static const option *all(size_t *n) { return cli_options(n); }

/* Whether `command` is `table` or part of it: rules.check of rules, everything of "". */
static bool within(const char *command, const char *table) {
  const size_t n = strlen(table);
  return n == 0 || (strncmp(command, table, n) == 0 && (command[n] == 0 || command[n] == '.'));
}

/* ---- values ---- */

/* One value of an option, and its source. */
typedef struct given {
  const char *where; /* "isomer.toml:3: seed", "ISOMER_SEED" */
  const toml_entry *e;
} given;

static bool has_word(const char *words, const char *w, size_t n) {
  for (const char *p = words; n && *p; p += strspn(p, ", ")) {
    const size_t len = strcspn(p, ",");
    if (len == n && strncmp(p, w, n) == 0) return true;
    p += len;
  }
  return false;
}

static iso_code expected(const given *g, const char *what, iso_error *err) {
  return iso_fail(err, ISO_FORMAT, "%s: %s is expected, not %s", g->where, what,
                  toml_kind_name(g->e->kind));
}

static iso_code check_words(const option *o, const given *g, const char *words, iso_error *err) {
  const bool several = o->kind == CONFIG_CHOICES;
  for (const char *p = words;; p++) {
    const size_t n = several ? strcspn(p, ",") : strlen(p);
    if (!has_word(o->of, p, n))
      return iso_fail(err, ISO_FORMAT, "%s: \"%.*s\" is none of %s", g->where, n > 60 ? 60 : (int)n,
                      p, o->of);
    p += n;
    if (!*p) return ISO_OK;
  }
}

static iso_code check_count(const option *o, const given *g, iso_error *err) {
  int64_t least = 0, most = INT64_MAX;
  if (g->e->kind != TOML_INTEGER) return expected(g, "an integer", err);
  if (o->of) sscanf(o->of, "%" SCNd64 " %" SCNd64, &least, &most);
  if (g->e->integer >= least && g->e->integer <= most) return ISO_OK;
  if (!o->of) return iso_fail(err, ISO_FORMAT, "%s: %s is below 0", g->where, g->e->text);
  return iso_fail(err, ISO_FORMAT, "%s: %s is not from %" PRId64 " to %" PRId64, g->where,
                  g->e->text, least, most);
}

static iso_code check_limit(const option *o, const given *g, iso_error *err) {
  const toml_kind k = g->e->kind;
  double seconds;
  uint64_t bytes;
  if (o->kind == CONFIG_SECONDS) {
    if (k != TOML_INTEGER && k != TOML_FLOAT) return expected(g, "a number", err);
    return limits_parse_seconds(g->e->text, &seconds)
               ? ISO_OK
               : iso_fail(err, ISO_FORMAT, "%s: not a number of seconds: %.60s", g->where,
                          g->e->text);
  }
  if (k != TOML_INTEGER && k != TOML_STRING) return expected(g, "an integer or a string", err);
  return limits_parse_bytes(g->e->text, &bytes)
             ? ISO_OK
             : iso_fail(err, ISO_FORMAT, "%s: not a number of bytes: %.60s", g->where, g->e->text);
}

static iso_code check_list(const option *o, const given *g, iso_error *err) {
  if (g->e->kind != TOML_STRINGS) return expected(g, "a list of strings", err);
  for (size_t i = 0; i < g->e->n_items; i++) {
    if (!*g->e->item[i]) return iso_fail(err, ISO_FORMAT, "%s: a string is empty", g->where);
    const iso_code c = o->kind == CONFIG_CHOICES ? check_words(o, g, g->e->item[i], err) : ISO_OK;
    if (c) return c;
  }
  if (o->kind == CONFIG_PAIRS && g->e->n_items % 2)
    return iso_fail(err, ISO_FORMAT, "%s: a left capture has no right one", g->where);
  return ISO_OK;
}

static iso_code check_value(const option *o, const given *g, iso_error *err) {
  switch (o->kind) {
  case CONFIG_FLAG: return g->e->kind == TOML_BOOLEAN ? ISO_OK : expected(g, "true or false", err);
  case CONFIG_COUNT: return check_count(o, g, err);
  case CONFIG_SECONDS:
  case CONFIG_BYTES: return check_limit(o, g, err);
  case CONFIG_PAIRS: return check_list(o, g, err);
  case CONFIG_CHOICES:
  case CONFIG_FILES:
    if (g->e->kind != TOML_STRING) return check_list(o, g, err);
    break;
  default:
    if (g->e->kind != TOML_STRING) return expected(g, "a string", err);
  }
  if (!*g->e->text) return iso_fail(err, ISO_FORMAT, "%s: the string is empty", g->where);
  return o->kind == CONFIG_CHOICE || o->kind == CONFIG_CHOICES ? check_words(o, g, g->e->text, err)
                                                               : ISO_OK;
}

static iso_code check_entry(const toml_entry *e, const char *path, iso_error *err) {
  char where[256];
  bool known = false;
  size_t n;
  const option *options = all(&n);
  snprintf(where, sizeof where, "%.150s:%d: %.60s", path, e->line, e->key);
  for (size_t i = 0; i < n; i++) {
    if (options[i].once || strcmp(options[i].name, e->key) != 0 ||
        !within(options[i].command, e->table))
      continue;
    const iso_code c = check_value(&options[i], &(given){where, e}, err);
    if (c) return c;
    known = true;
  }
  if (known) return ISO_OK;
  return iso_fail(err, ISO_FORMAT, "%s: %s%s has no such option that settings may give", where,
                  *e->table ? "isomer " : "no command", e->table);
}

iso_code config_check(const toml *t, const char *path, iso_error *err) {
  size_t n;
  const option *options = all(&n);
  for (size_t i = 0; i < t->n_tables; i++) {
    bool known = false;
    for (size_t k = 0; k < n && !known; k++)
      known = !options[k].once && within(options[k].command, t->table[i].name);
    if (!known || !*t->table[i].name)
      return iso_fail(err, ISO_FORMAT, "%.150s:%d: [%.60s] is no command", path, t->table[i].line,
                      t->table[i].name);
  }
  for (size_t i = 0; i < t->n; i++) {
    const iso_code c = check_entry(&t->entry[i], path, err);
    if (c) return c;
  }
  return ISO_OK;
}

/* ---- the command line ---- */

typedef struct line {
  char **word; /* the command's own, less --config and --no-config */
  int n;
  const char *path; /* --config FILE */
  bool none, help;  /* --no-config, --help */
  char command[64]; /* with its verb: "rules.check"; "" where none is named */
  int n_command;    /* words of it, and of the program before it */
  bool *said;       /* by option */
} line;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static const option *option_of(const line *l, const char *name, size_t n) {
  size_t n_options;
  const option *options = all(&n_options);
  for (size_t i = 0; i < n_options; i++)
    if (strcmp(options[i].command, l->command) == 0 && strlen(options[i].name) == n &&
        strncmp(options[i].name, name, n) == 0)
      return &options[i];
  return NULL;
}

/* Arguments behind an option as it stands there. */
static int values_of(line *l, const char *a) {
  const size_t n = strcspn(a, "=");
  const option *o = strncmp(a, "--", 2) == 0 ? option_of(l, a + 2, n - 2) : NULL;
  if (!o) return strcmp(a, "-o") == 0;
  size_t n_options;
  l->said[o - all(&n_options)] = true;
  return a[n] || o->kind == CONFIG_FLAG ? 0 : o->kind == CONFIG_PAIRS ? 2 : 1;
}

/* A word that names the command, or its verb. */
static void name_command(line *l, const char *a) {
  const size_t n = strlen(l->command);
  if (n && strcmp(l->command, "rules") != 0) return;
  snprintf(l->command + n, sizeof l->command - n, "%s%s", n ? "." : "", a);
  l->n_command++;
}

static iso_code read_line(int argc, char **argv, line *l, iso_error *err) {
  int values = 0; /* of the option before, still to come */
  bool words_only = false;
  for (int i = 1; i < argc; i++) {
    char *const a = argv[i];
    if (values > 0) values--;
    else if (words_only) {
    } else if (strcmp(a, "--") == 0) words_only = true;
    else if (strcmp(a, "--no-config") == 0) {
      l->none = true;
      continue;
    } else if (strcmp(a, "--config") == 0 || strncmp(a, "--config=", 9) == 0) {
      l->path = a[8] ? a + 9 : i + 1 < argc ? argv[++i] : NULL;
      if (!l->path || !*l->path)
        return iso_fail(err, ISO_USAGE, "no value for \"--config\" (isomer --help)");
      continue;
    } else if (strcmp(a, "--help") == 0 || strcmp(a, "-h") == 0) l->help = true;
    else if (a[0] == '-' && a[1]) values = values_of(l, a);
    else if (l->n == l->n_command) name_command(l, a);
    l->word[l->n++] = a;
  }
  if (l->none && l->path)
    return iso_fail(err, ISO_USAGE, "--config and --no-config do not go together (isomer --help)");
  return ISO_OK;
}

/* ---- files ---- */

static bool there(const char *folder, const char *name) {
  char path[4096];
  struct stat st;
  return snprintf(path, sizeof path, "%s/%s", strcmp(folder, "/") ? folder : "", name) <
             (int)sizeof path &&
         stat(path, &st) == 0;
}

static void to_parent(char *folder) {
  char *slash = strrchr(folder, '/');
  if (slash == folder) slash++;
  if (slash) *slash = 0;
}

/* How far upwards settings are looked for: the root of the repository; else the home folder, where
 * the current one lies in it; else no further than here, so that nobody else's /tmp/isomer.toml is
 * taken. */
static void search_end(const char *here, char *end, size_t n) {
  const char *home = getenv("HOME");
  const size_t len = home ? strlen(home) : 0;
  snprintf(end, n, "%s", here);
  for (;; to_parent(end)) {
    if (there(end, ".git")) return;
    if (strcmp(end, "/") == 0) break;
  }
  const bool at_home =
      len > 1 && strncmp(here, home, len) == 0 && (here[len] == 0 || here[len] == '/');
  snprintf(end, n, "%s", at_home ? home : here);
}

/* The settings found from the current folder upwards, in `arena`, or NULL. */
static iso_code find_file(iso_arena *arena, const char **out, iso_error *err) {
  char folder[4096], end[4096];
  *out = NULL;
  if (!getcwd(folder, sizeof folder)) return ISO_OK;
  if (there(folder, file_name)) return *out = file_name, ISO_OK;
  search_end(folder, end, sizeof end);
  while (strcmp(folder, end) != 0 && strcmp(folder, "/") != 0) {
    to_parent(folder);
    if (!there(folder, file_name)) continue;
    *out = iso_arena_printf(arena, "%s/%s", strcmp(folder, "/") ? folder : "", file_name);
    return *out ? ISO_OK : nomem(err);
  }
  return ISO_OK;
}

static iso_code read_whole(FILE *f, const char *path, char *text, size_t *n, iso_error *err) {
  *n = fread(text, 1, MAX_FILE_BYTES + 1, f);
  if (ferror(f)) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  return *n > MAX_FILE_BYTES ? iso_fail(err, ISO_FORMAT, "%s: this is too large for settings", path)
                             : ISO_OK;
}

/* Settings that were found and not named may come with somebody else's files: these run nothing. */
static iso_code check_owner(const toml *t, FILE *f, const char *path, iso_error *err) {
  struct stat st;
  if (fstat(fileno(f), &st) == 0 && (st.st_uid == geteuid() || st.st_uid == 0)) return ISO_OK;
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->entry[i].key, "ops") == 0 || strcmp(t->entry[i].key, "helper") == 0)
      return iso_fail(err, ISO_FORMAT,
                      "%.150s:%d: %s: the file is another user's: name it with --config FILE, or "
                      "leave it with --no-config",
                      path, t->entry[i].line, t->entry[i].key);
  return ISO_OK;
}

static iso_code load(const char *path, bool found, toml *out, iso_error *err) {
  FILE *f = fopen(path, "rbe");
  char *text = malloc(MAX_FILE_BYTES + 1);
  size_t n = 0;
  iso_code c = !f      ? iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno))
               : !text ? nomem(err)
                       : read_whole(f, path, text, &n, err);
  if (!c) c = toml_parse(text, n, path, out, err);
  if (!c) c = config_check(out, path, err);
  if (!c && found) c = check_owner(out, f, path, err);
  if (f) fclose(f);
  free(text);
  return c;
}

/* ---- the environment ---- */

/* The variable of an option as an entry of settings would have it; its kind follows from the
 * option's. Returns: false where there is none. */
static bool from_environment(const option *o, iso_arena *a, given *g, toml_entry *e, bool *fits) {
  char *name = iso_arena_printf(a, "ISOMER_%s", o->name);
  for (char *p = name; p && *p; p++) *p = *p == '-' ? '_' : (char)toupper((unsigned char)*p);
  const char *v = name ? getenv(name) : NULL;
  *fits = name != NULL;
  if (!v || !*v) return false;
  *g = (given){name, e};
  *e = (toml_entry){.kind = TOML_STRING, .key = o->name, .text = v, .table = ""};
  char *end;
  if (o->kind == CONFIG_FLAG && (strcmp(v, "1") == 0 || strcmp(v, "true") == 0))
    e->kind = TOML_BOOLEAN, e->boolean = true;
  if (o->kind == CONFIG_FLAG && (strcmp(v, "0") == 0 || strcmp(v, "false") == 0))
    e->kind = TOML_BOOLEAN;
  if (o->kind == CONFIG_SECONDS) e->kind = TOML_FLOAT;
  if (o->kind == CONFIG_COUNT && *v >= '0' && *v <= '9') {
    errno = 0;
    e->integer = strtoll(v, &end, 10);
    if (!errno && !*end) e->kind = TOML_INTEGER;
  }
  if (o->kind == CONFIG_FILES || o->kind == CONFIG_PAIRS) { /* as PATH has them */
    size_t n = 1, k = 0;
    for (const char *p = v; *p; p++) n += *p == ':';
    const char **item = iso_arena_alloc(a, n * sizeof *item);
    for (const char *p = v; item; p += strcspn(p, ":") + 1) {
      if (!(item[k++] = iso_arena_strndup(a, p, strcspn(p, ":")))) item = NULL;
      if (!p[strcspn(p, ":")]) break;
    }
    e->kind = TOML_STRINGS, e->item = item, e->n_items = n;
    *fits = item != NULL;
  }
  return true;
}

/* ---- arguments ---- */

typedef struct words {
  char **at;
  size_t n, cap;
} words;

static iso_code put(words *w, const char *s, iso_error *err) {
  if (!s || !iso_grow(w->at, w->cap, w->n + 2)) return nomem(err);
  w->at[w->n++] = (char *)s;
  w->at[w->n] = NULL;
  return ISO_OK;
}

/* A file that settings name: beside them. "-" is no file. */
static const char *beside(const char *settings, const char *file, iso_arena *a) {
  const char *slash = settings ? strrchr(settings, '/') : NULL;
  if (!slash || *file == '/' || strcmp(file, "-") == 0) return file;
  return iso_arena_printf(a, "%.*s/%s", (int)(slash - settings), settings, file);
}

static iso_code put_option(words *w, const option *o, const toml_entry *e, const char *settings,
                           iso_arena *a, iso_error *err) {
  const char *flag = iso_arena_printf(a, "--%s", o->name);
  const bool file = o->kind == CONFIG_FILE || o->kind == CONFIG_FILES || o->kind == CONFIG_PAIRS;
  if (o->kind == CONFIG_FLAG) return e->boolean ? put(w, flag, err) : ISO_OK;
  const char *const *item = e->kind == TOML_STRINGS ? e->item : &e->text;
  const size_t n = e->kind == TOML_STRINGS ? e->n_items : 1, each = o->kind == CONFIG_PAIRS ? 2 : 1;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < n && !c; i++) {
    if (i % each == 0) c = put(w, flag, err);
    if (!c) c = put(w, file ? beside(settings, item[i], a) : item[i], err);
  }
  return c;
}

/* The entry of settings that is nearest to the command. */
static const toml_entry *from_file(const toml *t, const option *o) {
  const toml_entry *best = NULL;
  for (size_t i = 0; i < t->n; i++)
    if (strcmp(t->entry[i].key, o->name) == 0 && within(o->command, t->entry[i].table) &&
        (!best || strlen(t->entry[i].table) > strlen(best->table)))
      best = &t->entry[i];
  return best;
}

static iso_code put_settings(words *w, const line *l, config_args *out, iso_error *err) {
  iso_code c = ISO_OK;
  size_t n;
  const option *options = all(&n);
  for (size_t i = 0; i < n && !c; i++) {
    const option *o = &options[i];
    given g;
    toml_entry e;
    bool fits;
    if (o->once || strcmp(o->command, l->command) != 0 || l->said[i]) continue;
    if (from_environment(o, &out->arena, &g, &e, &fits)) {
      if (!fits) return nomem(err);
      if (!(c = check_value(o, &g, err))) c = put_option(w, o, &e, NULL, &out->arena, err);
      continue;
    }
    const toml_entry *f = from_file(&out->settings, o);
    if (!fits) return nomem(err);
    if (f) c = put_option(w, o, f, out->file, &out->arena, err);
  }
  return c;
}

iso_code config_apply(int argc, char **argv, config_args *out, iso_error *err) {
  *out = (config_args){0};
  size_t n_options;
  all(&n_options);
  line l = {.word = calloc((size_t)argc + 1, sizeof *l.word), .said = calloc(n_options, 1)};
  words w = {0};
  iso_code c = l.word && l.said ? read_line(argc, argv, &l, err) : nomem(err);
  const bool wanted = !c && l.n_command && !l.help;
  if (wanted && !l.none) {
    const char *named = l.path ? l.path : getenv("ISOMER_CONFIG");
    const bool found = !named || !*named;
    out->file = found ? NULL : named;
    if (found) c = find_file(&out->arena, &out->file, err);
    if (!c && out->file) c = load(out->file, found, &out->settings, err);
  }
  if (!c) c = put(&w, argc ? argv[0] : "isomer", err);
  for (int i = 0; i < l.n && i < l.n_command && !c; i++) c = put(&w, l.word[i], err);
  if (!c && wanted) c = put_settings(&w, &l, out, err);
  for (int i = l.n_command; i < l.n && !c; i++) c = put(&w, l.word[i], err);
  free(l.word);
  free(l.said);
  out->argv = w.at;
  out->argc = (int)w.n;
  return c;
}

void config_free(config_args *c) {
  free(c->argv);
  toml_free(&c->settings);
  iso_arena_fini(&c->arena);
  *c = (config_args){0};
}
