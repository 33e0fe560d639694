/* Relations files of any bytes: they are refused in one line, or read; relations of outputs are
 * printed in a form that reads back as the same. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cli/config/relations.h"
#include "tests/fuzz/gpt2_pair.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Every term about an output, printed, reads as the same term. */
static void read_again(const relations *r) {
  iso_error err;
  relations again;
  const char *name[64];
  if (relations_load(NULL, false, graph[0], graph[1], &again, &err)) abort();
  for (size_t i = 0; i < again.n_results[1] && i < 64; i++) name[i] = again.result[1][i].name;
  for (size_t i = 0; i < r->n_outputs; i++) {
    const char *text = relations_print(&again.arena, r->output[i].term, name);
    const char *line =
        text ? iso_arena_printf(&again.arena, "output %s = %s",
                                relations_name(&again.arena, r->result[0][r->output[i].left].name),
                                text)
             : NULL;
    if (!line) abort();
    if (!relations_clean(r->output[i].term)) continue;
    if (relations_add(&again, line, graph[0], graph[1], &err)) abort();
    if (!rule_term_eq(again.output[again.n_outputs - 1].term, r->output[i].term)) abort();
  }
  relations_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
  iso_error err = {0};
  relations r;
  char path[64];
  if (!schemas) load();
  const int fd = memfd_create("relations", MFD_CLOEXEC);
  if (fd < 0 || write(fd, data, n) != (ssize_t)n) abort();
  snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
  const iso_code c = relations_load(path, false, graph[0], graph[1], &r, &err);
  if (c && (!err.msg[0] || strchr(err.msg, '\n'))) abort();
  if (!c) read_again(&r);
  relations_free(&r);
  close(fd);
  return 0;
}
