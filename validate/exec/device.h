/* Where operators run: the CPU, or a device with memory of its own. C++, private to the shim.
 *
 * Results are handed to the program as CPU tensors, since every one of them is looked at. A copy
 * stays on the device as long as the result lives, so that the next operator need not bring it
 * there again; all copies go when the device's memory runs out, and the call is tried once more.
 *
 * With ISOMER_DRY_DEVICE set, "cuda" is the CPU treated as such a device: the same copies, the same
 * choices of where a call runs. So a machine without a GPU tests all of this but the kernels. A
 * number N in it lets the device's memory run out for good at the N-th call. */
#ifndef VALIDATE_DEVICE_H
#define VALIDATE_DEVICE_H

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <exception>
#include <string>

#include "validate/exec/shim.h"

namespace device {

/* A failure of the device that does not depend on the operands: out of memory, or a lost
 * context. */
struct Failed {
  bool memory;
  std::string text;
};

/* Choose "cpu" or "cuda" for the process. Throws where there is none. Arithmetic is made that of
 * the CPU as far as it can be: no TF32, kernels that give the same bits each time. */
void choose(const char *where);
bool apart(); /* whether the device has memory of its own */

/* Where a call runs, and where its tensors are moved. */
struct Place {
  c10::Device on;
  bool apart;
};

/* An index beyond its table is an error on the CPU. On a GPU it ends the context, and with it every
 * later call of the process: calls that take integers stay on the CPU unless they have no kernel
 * there. */
Place place_of(const c10::OperatorHandle &op, const rule_term *call, rule_tensor *const *bind);
Place host();
Place nowhere(); /* shapes alone, with no elements */

at::Tensor bring(const at::Tensor &t, const Place &p);

/* A result, and its copy on the device. `release` frees an Owner. */
struct Owner {
  at::Tensor here, there;
};
Owner *keep(const at::Tensor &result);
void release(void *owner);
/* The copy of `t` on the device; undefined where there is none. */
at::Tensor kept(const rule_tensor *t);
/* Let all copies go. Returns: whether there were any. */
bool forget();

/* Whether `e` says that the device has no kernel for the call, so that the CPU may have one. */
bool lacks_kernel(const std::exception &e);
/* Throws Failed where `e` is the device's failure and not the operator's. */
void rethrow_failure(const std::exception &e);
/* Before each call: a dry device's memory may run out. */
void count_call();

} // namespace device

#endif
