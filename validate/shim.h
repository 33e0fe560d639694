/* The C ABI of the libtorch shim (build/libisomer_shim.so), opened with dlopen on first need.
 * Tensors cross as rule_tensor, wrapped without a copy; no C++ exception crosses. Private to validate/. */
#ifndef VALIDATE_SHIM_H
#define VALIDATE_SHIM_H

#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct shim_api {
  uint32_t abi; /* SHIM_ABI */
  const char *(*version)(void);
  /* Set threads (1) and the device; float64 default dtype is handled per call. */
  iso_code (*init)(const char *device, iso_error *err);
  /* dlopen a library of operators (TORCH_LIBRARY_FRAGMENT). */
  iso_code (*load)(const char *path, iso_error *err);
  /* The schema's text of an operator, for tables; NULL when it does not exist. Owns: free(). */
  char *(*schema)(const char *op);
  /* See val_call. Operators that write to arguments get clones, and return their own results, then the written ones. */
  iso_code (*call)(const rule_term *call, rule_tensor *const *bind, bool float64, rule_tensor **out, size_t cap, size_t *n_out,
                   iso_error *err);
} shim_api;
enum { SHIM_ABI = 1 };
/* The one exported symbol: `const shim_api *isomer_shim(void)`. */
typedef const shim_api *(*shim_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
