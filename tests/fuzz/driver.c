/* Runs a fuzz target on the files of a corpus, without a fuzzer: an ordinary test, for any
 * compiler. */
#include <dirent.h>
#include <stdio.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int run_file(const char *path) {
  FILE *f = fopen(path, "rb");
  if (!f) return 1;
  /* An exact copy, so that a read past its end is seen by ASan. */
  uint8_t *data = NULL, *fit = NULL;
  long n = -1;
  int rc = 1;
  if (fseek(f, 0, SEEK_END) || (n = ftell(f)) < 0 || fseek(f, 0, SEEK_SET)) goto done;
  data = malloc((size_t)n + 1);
  if (!data || fread(data, 1, (size_t)n, f) != (size_t)n) goto done;
  fit = malloc((size_t)n + (n == 0));
  if (!fit) goto done;
  memcpy(fit, data, (size_t)n);
  LLVMFuzzerTestOneInput(fit, (size_t)n);
  rc = 0;
done:
  free(data);
  free(fit);
  fclose(f);
  return rc;
}

int main(int argc, char **argv) {
  int passed = 0, failed = 0;
  for (int i = 1; i < argc; i++) {
    struct dirent **entry = NULL;
    int n = scandir(argv[i], &entry, NULL, alphasort);
    if (n < 0) fprintf(stderr, "%s: no such folder\n", argv[i]), failed++;
    for (int k = 0; k < n; k++) {
      char path[4096];
      if (entry[k]->d_name[0] != '.') {
        snprintf(path, sizeof path, "%s/%s", argv[i], entry[k]->d_name);
        printf("%s\n", path); /* the last one printed is the one that crashed */
        fflush(stdout);
        if (run_file(path)) failed++;
        else passed++;
      }
      free(entry[k]);
    }
    free(entry);
  }
  printf("%d passed, %d failed\n", passed, failed);
  return failed != 0;
}
