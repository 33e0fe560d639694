/* The table of options, reading them and printing them. */
#include "cli/config/options.h"

#include <getopt.h>
#include <string.h>

#include "cli/cli.h"

static const cli_option options[] = {
#define HEAD(command, text)
#define TAIL(command, text)
#define OPTION(command, name, kind, of, value, help) \
  {command, name, CONFIG_##kind, of, value, help, false},
#define ONCE(command, name, kind, of, value, help) \
  {command, name, CONFIG_##kind, of, value, help, true},
#include "cli/options.def"
#undef OPTION
#undef ONCE
#undef HEAD
#undef TAIL
};
enum { N_OPTIONS = sizeof options / sizeof *options, MOST_OF_ONE = 64, SECOND_COLUMN = 25 };

typedef struct text {
  const char *command, *text;
} text;
#define OPTION(command, name, kind, of, value, help)
#define ONCE(command, name, kind, of, value, help)
static const text heads[] = {
#define HEAD(command, text) {command, text},
#define TAIL(command, text)
#include "cli/options.def"
#undef HEAD
#undef TAIL
};
static const text tails[] = {
#define HEAD(command, text)
#define TAIL(command, text) {command, text},
#include "cli/options.def"
#undef HEAD
#undef TAIL
};
#undef OPTION
#undef ONCE

const cli_option *cli_options(size_t *n) { return *n = N_OPTIONS, options; }

/* The letter that an option may be given by, 0: none. */
static char letter_of(const cli_option *o) {
  static const char *const with_letter[] = {"output", "quiet", "verbose"};
  for (size_t i = 0; i < sizeof with_letter / sizeof *with_letter; i++)
    if (strcmp(o->name, with_letter[i]) == 0) return *o->name;
  return 0;
}

/* ---- help ---- */

static const char *text_of(const text *t, size_t n, const char *command) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(t[i].command, command) == 0) return t[i].text;
  return "";
}

/* Words of `s` in lines of at most 100 columns, from column `at` on. */
static void print_wrapped(FILE *f, const char *s, size_t at) {
  enum { COLUMNS = 100 };
  size_t column = at;
  while (*s) {
    const size_t n = strcspn(s, " ");
    if (column > at && column + 1 + n > COLUMNS)
      fprintf(f, "\n%*s", SECOND_COLUMN, ""), at = column = SECOND_COLUMN;
    column += (size_t)fprintf(f, "%s%.*s", column > at ? " " : "", (int)n, s);
    s += n + (s[n] == ' ');
  }
  fputc('\n', f);
}

static void print_option(FILE *f, const cli_option *o) {
  const char letter = letter_of(o);
  size_t n = 2;
  fputs("  ", f);
  if (letter) n += (size_t)fprintf(f, "-%c, ", letter);
  n += (size_t)fprintf(f, "--%s%s%s", o->name, o->value ? " " : "", o->value ? o->value : "");
  const size_t to = n + 2 > SECOND_COLUMN ? n + 2 : SECOND_COLUMN;
  fprintf(f, "%*s", (int)(to - n), "");
  print_wrapped(f, o->help, to);
}

void cli_help(const char *command, FILE *f) {
  const size_t n = strlen(command);
  const char *group = command;
  fputs(text_of(heads, sizeof heads / sizeof *heads, command), f);
  for (size_t i = 0; i < N_OPTIONS; i++) {
    const cli_option *o = &options[i];
    if (strncmp(o->command, command, n) != 0 || (o->command[n] && o->command[n] != '.')) continue;
    if (strcmp(o->command, group) != 0) fprintf(f, "options of %s:\n", o->command + n + 1);
    group = o->command;
    print_option(f, o);
  }
  fputs(text_of(tails, sizeof tails / sizeof *tails, command), f);
}

/* The command without its verb, in `buf`. */
static void plain(const char *command, char buf[32]) {
  snprintf(buf, 32, "%.*s", (int)strcspn(command, "."), command);
}

/* ---- reading ---- */

typedef struct known {
  struct option of[MOST_OF_ONE + 2];
  const cli_option *option[MOST_OF_ONE];
  char letters[16];
  int n, help;
} known;

static void know(known *k, const char *command) {
  char *p = k->letters;
  *p++ = '-', *p++ = ':', *p++ = 'h';
  for (size_t i = 0; i < N_OPTIONS && k->n < MOST_OF_ONE; i++) {
    const cli_option *o = &options[i];
    if (strcmp(o->command, command) != 0) continue;
    k->option[k->n] = o;
    k->of[k->n++] = (struct option){o->name, o->value ? required_argument : no_argument, NULL, 0};
    if (letter_of(o)) *p++ = letter_of(o);
    if (letter_of(o) && o->value) *p++ = ':';
  }
  k->help = k->n;
  k->of[k->n] = (struct option){"help", no_argument, NULL, 0};
}

/* getopt_long takes the beginning of a name for the name; settings would not know it. */
static bool is_whole(const char *word, const char *name) {
  return strncmp(word, "--", 2) != 0 ||
         (strncmp(word + 2, name, strlen(name)) == 0 && strchr("=", word[2 + strlen(name)]));
}

static int by_letter(const known *k, int c) {
  for (int i = 0; i < k->n; i++)
    if (letter_of(k->option[i]) == c) return i;
  return k->help;
}

int cli_options_read(const char *command, int argc, char **argv, cli_take take, void *ctx) {
  known k = {.n = 0};
  char buf[32];
  int status = -1, c, at = 0;
  know(&k, command);
  plain(command, buf);
  opterr = 0;
  optind = 0; /* glibc's way of beginning anew */
  for (const char *word = argc > 1 ? argv[1] : NULL;
       status < 0 && (c = getopt_long(argc, argv, k.letters, k.of, &at)) != -1;
       word = optind < argc ? argv[optind] : NULL) {
    if (c == 1) {
      status = take(ctx, NULL, optarg, NULL);
      continue;
    }
    if (c == ':') return cli_usage_error(buf, "no value for", word);
    if (c == '?' || (c == 0 && !is_whole(word, k.of[at].name)))
      return cli_usage_error(buf, "unknown option", word);
    const int i = c == 0 ? at : by_letter(&k, c);
    if (i == k.help) return cli_help(buf, stdout), 0;
    const bool two = k.option[i]->kind == CONFIG_PAIRS;
    if (two && optind >= argc) return cli_usage_error(buf, "two captures are needed by", word);
    const char *second = two ? argv[optind++] : NULL;
    status = take(ctx, k.option[i]->name, optarg ? optarg : "", second);
  }
  while (status < 0 && optind < argc) status = take(ctx, NULL, argv[optind++], NULL);
  return status;
}
