/* needs libtorch: the example of check/check.h: a file that is no certificate, and two captures. */
#include <stdio.h>

#include "check/check.h"

int main(void) {
  iso_error err = {0};
  rule_schemas *schemas = NULL;
  cap_graph *left = NULL, *right = NULL;
  const chk_options options = {.trust_rules = true};
  const char *path = "models/llama-2l/vllm/graph.json";
  int status = 1;
  if (rule_schemas_new(&schemas, &err) || cap_load("models/llama-2l/vllm", schemas, &left, &err) ||
      cap_load("models/llama-2l/hf-sdpa", schemas, &right, &err))
    goto done;
  chk_report report;
  if (chk_check(path, left, right, schemas, NULL, &options, &report, &err) == ISO_OK)
    printf("%s\n", report.outcome == CHK_MALFORMED ? "no certificate" : "a certificate");
  chk_report_free(&report);
  status = err.code != 0;
done:
  if (err.code) fprintf(stderr, "%s\n", err.msg);
  cap_free(left);
  cap_free(right);
  rule_schemas_free(schemas);
  return status;
}
