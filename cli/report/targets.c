/* Results are written beside their place and moved there (report_write), so that only the folder
 * must be writable. */
#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/report/targets.h"

/* The folder that `path` is in; NULL where there is no memory. */
static char *folder_of(const char *path) {
  const char *slash = strrchr(path, '/');
  if (!slash) return strdup(".");
  return strndup(path, slash == path ? 1 : (size_t)(slash - path));
}

static const char *name_of(const char *path) {
  const char *slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

/* 0, or an errno. */
static int writable(const char *path) {
  struct stat st;
  if (strlen(name_of(path)) == 0) return EISDIR;
  if (stat(path, &st) == 0 && S_ISDIR(st.st_mode)) return EISDIR;
  if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
    return access(path, W_OK) == 0 ? 0 : errno; /* a device or pipe */
  char *folder = folder_of(path);
  if (!folder) return ENOMEM;
  int why = 0;
  if (stat(folder, &st) != 0) why = errno;
  else if (!S_ISDIR(st.st_mode)) why = ENOTDIR;
  else if (access(folder, W_OK | X_OK) != 0) why = errno;
  free(folder);
  return why;
}

/* By folder and name: the files need not be there yet. */
static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  if (strcmp(a, b) == 0) return true;
  if (stat(a, &x) == 0 && stat(b, &y) == 0)
    return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
  char *p = folder_of(a), *q = folder_of(b);
  const bool same = p && q && stat(p, &x) == 0 && stat(q, &y) == 0 && x.st_dev == y.st_dev &&
                    x.st_ino == y.st_ino && strcmp(name_of(a), name_of(b)) == 0;
  free(p);
  free(q);
  return same;
}

iso_code targets_check(const char *const *path, size_t n, iso_error *err) {
  for (size_t i = 0; i < n; i++) {
    if (!path[i]) continue;
    const int why = strcmp(path[i], "-") == 0 ? 0 : writable(path[i]);
    if (why) return iso_fail(err, ISO_USAGE, "%s: cannot be written: %s", path[i], strerror(why));
    for (size_t j = 0; j < i; j++)
      if (path[j] && strncmp(path[i], "/dev/", 5) != 0 && same_file(path[i], path[j]))
        return iso_fail(err, ISO_USAGE, "%s: two results cannot be written to one file", path[i]);
  }
  return ISO_OK;
}
