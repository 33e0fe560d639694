/* The C ABI of the libtorch shim (build/libisomer_shim.so), opened with dlopen on first need.
 * Tensors cross as rule_tensor, wrapped without a copy; no C++ exception crosses. Private to
 * validate/. */
#ifndef VALIDATE_SHIM_H
#define VALIDATE_SHIM_H

#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Functions that the shim needs of the program: it resolves no symbol of it, so the program hands
 * them over.
 */
typedef struct shim_hooks {
  iso_code (*wrap)(rule_dtype dtype, const rule_shape *shape, void *data, void *owner,
                   void (*release)(void *), rule_tensor **out,
                   iso_error *err);    /* rule_tensor_wrap */
  rule_tensor *(*ref)(rule_tensor *t); /* rule_tensor_ref: a result may be a view of an argument */
  void (*unref)(rule_tensor *t);       /* rule_tensor_unref */
  void *(*take)(
      size_t bytes); /* rule_memory_take, for tensors of at least RULE_MEMORY_FROM bytes */
  void (*give)(void *data, size_t bytes); /* rule_memory_give */
} shim_hooks;

typedef struct shim_api {
  uint32_t abi;                 /* SHIM_ABI */
  const char *(*version)(void); /* e.g. "2.13.0"; static */
  /* Once, before all else: take the hooks, set threads (1) and the device ("cpu", "cuda"). The
   * state is libtorch's, and so one per process; the float64 default dtype is handled per call. */
  iso_code (*init)(const shim_hooks *hooks, const char *device, iso_error *err);
  /* dlopen a library of operators (TORCH_LIBRARY_FRAGMENT). */
  iso_code (*load)(const char *path, iso_error *err);
  /* The schema's text of an operator, for tables; NULL when it does not exist. Owns: free(). */
  char *(*schema)(const char *op);
  /* See val_call. Operators that write to arguments get clones, and return their own results, then
   * the written ones. */
  iso_code (*call)(const rule_term *call, rule_tensor *const *bind, bool float64, rule_tensor **out,
                   size_t cap, size_t *n_out, iso_error *err);
  /* How many elements its results have, by shapes alone: nothing is computed, nor is there memory
   * for it. An error where that is not known. */
  iso_code (*measure)(const rule_term *call, rule_tensor *const *bind, bool float64,
                      int64_t *elements, iso_error *err);
} shim_api;
enum { SHIM_ABI = 3 };
/* The one exported symbol: `const shim_api *isomer_shim(void)`. */
typedef const shim_api *(*shim_entry)(void);

#ifdef __cplusplus
}
#endif
#endif
