/* Errors: one code and one line of text, owned by the caller.
 *
 * A function that can fail returns `iso_code`; ISO_OK is 0. The message is made where the fact is
 * known
 * (`iso_fail`) and prefixed on the way up (`iso_prefix`), so that a user reads
 * `mlp/right/graph.json: node "split": output 1 is [8, 64], its operator gives [8, 32]`.
 * `err` may be NULL wherever a function takes one. A verdict is not an error. */
#ifndef EGRAPH_BASE_ERROR_H
#define EGRAPH_BASE_ERROR_H

#include <stdarg.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

#define ISO_MUST_USE __attribute__((warn_unused_result))
#define ISO_PRINTF(f, a) __attribute__((format(printf, f, a)))

typedef enum iso_code {
  ISO_OK = 0,
  ISO_NOMEM,       /* out of memory */
  ISO_IO,          /* a file could not be read or written */
  ISO_FORMAT,      /* malformed input */
  ISO_RANGE,       /* a number that the program cannot represent */
  ISO_USAGE,       /* wrong arguments given by the user */
  ISO_TORCH,       /* libtorch refused a call */
  ISO_UNSUPPORTED, /* nothing here can execute the operator */
  ISO_DEVICE,      /* the device or process that runs operators failed (a GPU out of memory, a lost
                      context), for no fault of the operator */
  ISO_LIMIT,       /* a limit on time, memory or size was reached */
  ISO_INTERNAL     /* an internal check failed: a bug of ours */
} iso_code;

typedef struct iso_error {
  iso_code code;
  char msg[480]; /* one line, no newline at its end; cut where it is too long */
} iso_error;

#pragma GCC visibility push(default)
/* Fill `err` (if not NULL) and return `code`. Newlines in the text become spaces. */
iso_code iso_fail(iso_error *err, iso_code code, const char *fmt, ...) ISO_PRINTF(3, 4);

/* Put text in front of the message that is there. Returns `err->code`, or ISO_INTERNAL if err is
 * NULL. */
iso_code iso_prefix(iso_error *err, const char *fmt, ...) ISO_PRINTF(2, 3);
#pragma GCC visibility pop

/* Stays on in release builds: for the few steps on which soundness rests. */
#define ISO_CHECK(cond) \
  do { \
    if (!(cond)) iso_check_failed(#cond, __FILE__, __LINE__); \
  } while (0)
void iso_check_failed(const char *cond, const char *file, int line) __attribute__((noreturn));

#ifdef __cplusplus
}
#endif
#endif
