/* The allocator of memory.h. */
#include <c10/core/CPUAllocator.h>

#include <mutex>
#include <new>
#include <unordered_map>

#include "validate/exec/memory.h"

namespace {

/* Large results take blocks that the program keeps; all else is libtorch's. */
class Memory : public c10::Allocator {
public:
  Memory(c10::Allocator *o, const shim_hooks &h) : other(o), hooks(h) {}
  c10::DataPtr allocate(size_t n) override {
    if (n < RULE_MEMORY_FROM) return other->allocate(n);
    void *p = hooks.take(n);
    if (!p) throw std::bad_alloc();
    try {
      std::lock_guard<std::mutex> hold(lock);
      size[p] = n;
    } catch (...) {
      hooks.give(p, n);
      throw;
    }
    return {p, p, &release, c10::Device(c10::kCPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override {
    return other->raw_deleter() ? &release : nullptr;
  }
  void copy_data(void *to, const void *from, std::size_t n) const override {
    default_copy_data(to, from, n);
  }

private:
  static void release(void *p);
  c10::Allocator *other;
  shim_hooks hooks;
  std::mutex lock;
  std::unordered_map<void *, size_t> size; /* of the large ones */
};

Memory *kept; /* never freed: tensors may outlive all else */

void Memory::release(void *p) {
  size_t n = 0;
  {
    std::lock_guard<std::mutex> hold(kept->lock);
    auto found = kept->size.find(p);
    if (found != kept->size.end()) {
      n = found->second;
      kept->size.erase(found);
    }
  }
  if (n) kept->hooks.give(p, n);
  else if (p) kept->other->raw_deleter()(p);
}

} // namespace

void memory::keep_large(const shim_hooks &hooks) {
  if (kept) return;
  kept = new Memory(c10::GetCPUAllocator(), hooks);
  c10::SetCPUAllocator(kept, 1);
}
