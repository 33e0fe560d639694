/* Common parts of reports for other programs: places in files, and texts as each format has
 * them. */
#ifndef CLI_CI_TEXT_H
#define CLI_CI_TEXT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* "file:line". Returns: the file's length, and 0 in `line` where there is none. */
size_t ci_split_source(const char *source, long *line);
/* A file's name as SARIF has it. Returns: NULL when there is no memory. */
json_t *ci_uri(const char *file, size_t n);
/* Text in XML, and an attribute with a blank before it. */
void ci_put_xml(FILE *f, const char *s);
void ci_put_attribute(FILE *f, const char *name, const char *value);
/* Text in a workflow command of GitHub's, as a message or as a property. */
void ci_put_command(FILE *f, const char *s, size_t n, bool property);

#endif
