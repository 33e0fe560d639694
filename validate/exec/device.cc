/* See device.h. */
#include "validate/exec/device.h"

#include <ATen/Context.h>
#include <ATen/ops/empty.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>

#include <cstdlib>
#include <cstring>
#include <mutex>
#include <stdexcept>
#include <unordered_set>

namespace device {

namespace {

c10::Device chosen(c10::kCPU);
bool separate = false;
long calls_left = -1; /* of a dry device; negative: as many as there are */
std::mutex lock;
std::unordered_set<Owner *> with_copy;

const char *dry() {
  const char *v = std::getenv("ISOMER_DRY_DEVICE");
  return v && *v ? v : nullptr;
}

/* Without the backtrace, which takes a tenth of a second to put into words. */
const char *words_of(const std::exception &e) {
  auto *own = dynamic_cast<const c10::Error *>(&e);
  return own ? own->what_without_backtrace() : e.what();
}

bool has(const std::exception &e, const char *text) {
  return std::strstr(words_of(e), text) != nullptr;
}

/* The program's own test cannot be called from here: the shim resolves no symbol of it. */
bool is_integer(rule_dtype d) { return d >= RULE_I64 && d <= RULE_U8; }

bool reads_integers(const rule_term *t, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR) return bind[t->u.i] && is_integer(bind[t->u.i]->dtype);
  for (uint32_t i = 0; i < t->n; i++)
    if (reads_integers(t->child[i], bind)) return true;
  return false;
}

void choose_cuda() {
  /* Read when the first product is computed: with it cuBLAS takes the same way each time. */
  setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);
  auto &context = at::globalContext();
  context.setAllowTF32CuBLAS(false);
  context.setAllowTF32CuDNN(false);
  context.setBenchmarkCuDNN(false);
  context.setDeterministicAlgorithms(true, true);
  c10::InferenceMode inference;
  at::empty({1}, at::TensorOptions()).to(c10::Device("cuda")); /* fails here where there is none */
  chosen = c10::Device("cuda");
}

} // namespace

void choose(const char *where) {
  const c10::Device d(where);
  if (!d.is_cpu() && !d.is_cuda()) throw std::runtime_error("the device is cpu or cuda");
  chosen = c10::Device(c10::kCPU);
  separate = d.is_cuda();
  calls_left = -1;
  if (separate && dry())
    calls_left = std::strtol(dry(), nullptr, 10) > 1 ? std::strtol(dry(), nullptr, 10) : -1;
  else if (separate) choose_cuda();
}

bool apart() { return separate; }
Place host() { return {c10::Device(c10::kCPU), false}; }
Place nowhere() { return {c10::Device(c10::kMeta), true}; }

Place place_of(const c10::OperatorHandle &op, const rule_term *call, rule_tensor *const *bind) {
  if (!separate) return host();
  const bool only_there = op.hasKernelForDispatchKey(c10::DispatchKey::CUDA) &&
                          !op.hasKernelForDispatchKey(c10::DispatchKey::CPU);
  if (!only_there && reads_integers(call, bind)) return host();
  return {chosen, true};
}

at::Tensor bring(const at::Tensor &t, const Place &p) {
  return p.apart ? t.to(t.options().device(p.on), /*non_blocking=*/false, /*copy=*/true) : t;
}

Owner *keep(const at::Tensor &result) {
  at::Tensor dense = result.resolve_conj().resolve_neg().contiguous();
  if (!separate) return new Owner{dense.to(c10::kCPU), at::Tensor()};
  /* A result of the CPU is no copy on the device, nor is one of a dry device that the CPU made. */
  const bool there = dense.device() == chosen;
  auto *o = new Owner{there ? dense.to(dense.options().device(c10::kCPU), false, true) : dense,
                      at::Tensor()};
  if (!there) return o;
  o->there = dense;
  std::lock_guard<std::mutex> hold(lock);
  with_copy.insert(o);
  return o;
}

void release(void *owner) {
  auto *o = static_cast<Owner *>(owner);
  if (o->there.defined()) {
    std::lock_guard<std::mutex> hold(lock);
    with_copy.erase(o);
  }
  delete o;
}

at::Tensor kept(const rule_tensor *t) {
  return separate && t->release == release ? static_cast<const Owner *>(t->owner)->there
                                           : at::Tensor();
}

bool forget() {
  std::lock_guard<std::mutex> hold(lock);
  const bool any = !with_copy.empty();
  for (Owner *o : with_copy) o->there = at::Tensor();
  with_copy.clear();
  return any;
}

bool lacks_kernel(const std::exception &e) {
  return separate &&
         (dynamic_cast<const c10::NotImplementedError *>(&e) || has(e, "not implemented for"));
}

void rethrow_failure(const std::exception &e) {
  if (!separate) return;
  const bool memory = dynamic_cast<const c10::OutOfMemoryError *>(&e) ||
                      has(e, "CUDA out of memory") || has(e, "CUBLAS_STATUS_ALLOC_FAILED") ||
                      has(e, "CUDNN_STATUS_ALLOC_FAILED");
  if (memory) throw Failed{true, "the GPU's memory ran out"};
  /* Kernels report late: the failure of an earlier call shows here, and in all later ones. */
  if (has(e, "CUDA error") || has(e, "CUBLAS_STATUS_") || has(e, "CUDNN_STATUS_"))
    throw Failed{false, std::string("the GPU failed: ") + words_of(e)};
}

void count_call() {
  if (calls_left < 0) return;
  if (calls_left == 0) throw Failed{true, "the GPU's memory ran out"};
  calls_left--;
}

} // namespace device
