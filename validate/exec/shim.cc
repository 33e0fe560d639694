/* Calls libtorch's operators by name, behind the C ABI of shim.h.
 *
 * One call: the schema is found in the dispatcher, each argument is converted by the schema's real
 * type, and the kernel runs boxed. Inputs are views of the caller's bytes; a result that shares
 * storage with an input holds a reference to that input's rule_tensor, so a view may outlive its
 * base. Nothing is ever written through an input: an operand that an operator writes is cloned
 * first, and returned after its own results.
 *
 * Invariants: no C++ exception leaves this file; the default dtype is restored after a call; one
 * thread computes, so that equal calls give equal bits. Plain dispatcher headers only:
 * torch/torch.h costs three times the compile time. */
#include <ATen/Parallel.h>
#include <ATen/ScalarOps.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <ATen/core/jit_type.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/InferenceMode.h>
#include <c10/util/Exception.h>
#include <c10/util/Logging.h>
#include <dlfcn.h>
#include <torch/version.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

#include "validate/exec/device.h"
#include "validate/exec/guarded.h"
#include "validate/exec/memory.h"
#include "validate/exec/narrow_kernels.h"
#include "validate/exec/shim.h"

namespace {

/* ---- dtypes and tensors ---- */

const at::ScalarType scalar_types[RULE_DTYPE_COUNT] = {
    at::kDouble,      at::kFloat,        at::kHalf,          at::kBFloat16, at::kFloat8_e4m3fn,
    at::kFloat8_e5m2, at::kComplexFloat, at::kComplexDouble, at::kLong,     at::kInt,
    at::kShort,       at::kChar,         at::kByte,          at::kBool};

at::ScalarType torch_dtype(int64_t d) {
  if (d < 0 || d >= RULE_DTYPE_COUNT) stop(ISO_USAGE, "no such dtype");
  return scalar_types[d];
}

at::ScalarType widest(at::ScalarType d) {
  if (c10::isComplexType(d)) return at::kComplexDouble;
  return c10::isFloatingType(d) ? at::kDouble : d;
}

rule_dtype our_dtype(at::ScalarType d) {
  for (int i = 0; i < RULE_DTYPE_COUNT; i++)
    if (scalar_types[i] == d) return static_cast<rule_dtype>(i);
  stop(ISO_UNSUPPORTED, std::string("a result has dtype ") + c10::toString(d));
}

shim_hooks hooks;

/* A view of `t`, or a copy on the device; float64 where the call asks for it. */
at::Tensor unwrap(rule_tensor *t, bool float64, const device::Place &place) {
  if (!t) stop(ISO_USAGE, "a variable has no value");
  if (t->dtype >= RULE_DTYPE_COUNT || t->shape.rank > RULE_MAX_RANK)
    stop(ISO_USAGE, "a malformed tensor");
  at::IntArrayRef sizes(t->shape.dim, t->shape.rank);
  auto options = at::TensorOptions().dtype(scalar_types[t->dtype]);
  at::Tensor v = place.apart && !place.on.is_meta() ? device::kept(t) : at::Tensor();
  const bool there = v.defined();
  if (there) {
  } else if (t->numel == 0) {
    v = at::empty(sizes, options);
  } else {
    hooks.ref(t);
    v = at::from_blob(
        t->data, sizes, [t](void *) { hooks.unref(t); }, options);
  }
  if (float64 && widest(v.scalar_type()) != v.scalar_type()) v = v.to(widest(v.scalar_type()));
  return there ? v : device::bring(v, place);
}

/* `narrows`: whether a result narrower than float64 shows that the operator computed so. */
rule_tensor *wrap(at::Tensor t, bool float64, bool narrows) {
  if (!t.defined()) stop(ISO_UNSUPPORTED, "a result is not defined");
  if (t.layout() != at::kStrided || t.is_quantized())
    stop(ISO_UNSUPPORTED, "a result is not a dense tensor");
  if (t.dim() > RULE_MAX_RANK)
    stop(ISO_RANGE, "a result has " + std::to_string(t.dim()) + " dimensions");
  const double coarse = float64 && narrows ? narrow_tolerance(our_dtype(t.scalar_type())) : 0;
  if (float64 && widest(t.scalar_type()) != t.scalar_type()) t = t.to(widest(t.scalar_type()));
  rule_dtype dtype = our_dtype(t.scalar_type());
  rule_shape shape = {};
  shape.rank = static_cast<uint32_t>(t.dim());
  for (int64_t i = 0; i < t.dim(); i++) shape.dim[i] = t.size(i);
  device::Owner *owner = device::keep(t);
  rule_tensor *out = nullptr;
  iso_error err = {};
  iso_code code =
      hooks.wrap(dtype, &shape, owner->here.data_ptr(), owner, device::release, &out, &err);
  if (code != ISO_OK) {
    device::release(owner);
    stop(code, err.msg);
  }
  out->coarse = coarse;
  return out;
}

/* Contents that nothing may depend on: NaN where there is one, else bytes that make indices fail
 * and sums odd. */
void poison(at::Tensor &t) {
  if (!t.defined() || t.numel() == 0 || t.layout() != at::kStrided || t.is_quantized()) return;
  if (c10::isFloatingType(t.scalar_type()) || c10::isComplexType(t.scalar_type()))
    t.fill_(std::numeric_limits<double>::quiet_NaN());
  else if (t.scalar_type() == at::kBool) t.fill_(true);
  else t.fill_(t.element_size() == 1 ? 0x5a : t.element_size() == 2 ? 0x5a5a : 0x5a5a5a5a);
}

/* ---- arguments ---- */

struct Call {
  const rule_term *term;
  rule_tensor *const *bind;
  bool float64;
  bool rounds; /* a cast of integers to a floating dtype: a function, and its dtype is kept */
  device::Place place;
};

const char *kind_name(rule_kind k) {
  switch (k) {
  case RULE_VAR: return "a tensor";
  case RULE_OP: return "an operator";
  case RULE_LIST: return "a list";
  case RULE_INT: return "an integer";
  case RULE_FLOAT: return "a float";
  case RULE_BOOLEAN: return "a boolean";
  case RULE_NONE: return "none";
  case RULE_STRING: return "a string";
  case RULE_DTYPE: return "a dtype";
  case RULE_NAME: return "a name";
  case RULE_EXPR: return "an expression";
  }
  return "a term of unknown kind";
}

[[noreturn]] void mismatch(const c10::TypePtr &type, const rule_term *t) {
  stop(ISO_TORCH, "expected " + type->str() + ", got " + kind_name(t->kind));
}

bool is_number(const rule_term *t) {
  return t->kind == RULE_INT || t->kind == RULE_FLOAT || t->kind == RULE_BOOLEAN;
}

at::Scalar scalar(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return at::Scalar(t->u.f);
  if (t->kind == RULE_BOOLEAN) return at::Scalar(t->u.i != 0);
  return at::Scalar(t->u.i);
}

at::Tensor tensor(const Call &c, const rule_term *t) {
  if (t->kind == RULE_VAR) return unwrap(c.bind[t->u.i], c.float64, c.place);
  /* A number stands for a 0-d tensor that does not take part in type promotion. */
  at::Tensor v = c10::scalar_to_tensor(scalar(t));
  v.unsafeGetTensorImpl()->set_wrapped_number(true);
  return v;
}

c10::IValue convert(const Call &c, const c10::TypePtr &type, std::optional<int32_t> width,
                    const rule_term *t);

template <typename T, typename F> c10::IValue list_of(const rule_term *t, F element) {
  c10::List<T> l;
  l.reserve(t->n);
  for (uint32_t i = 0; i < t->n; i++) l.push_back(element(t->child[i]));
  return l;
}

c10::IValue convert_list(const Call &c, const c10::TypePtr &type, std::optional<int32_t> width,
                         const rule_term *t) {
  const c10::TypePtr &e = type->expectRef<c10::ListType>().getElementType();
  bool scalars =
      t->kind != RULE_LIST && is_number(t) && width && *width > 0; /* int[2] given 3 is [3, 3] */
  if (t->kind != RULE_LIST && !scalars) mismatch(type, t);
  std::vector<const rule_term *> same(scalars ? static_cast<size_t>(*width) : 0, t);
  rule_term broadcast = {};
  if (scalars) {
    broadcast.kind = RULE_LIST;
    broadcast.n = static_cast<uint32_t>(*width);
    broadcast.child = same.data();
    t = &broadcast;
  }
  auto one = [&](const rule_term *x) { return convert(c, e, std::nullopt, x); };
  switch (e->kind()) {
  case c10::TypeKind::TensorType:
    return list_of<at::Tensor>(t, [&](const rule_term *x) { return one(x).toTensor(); });
  case c10::TypeKind::SymIntType:
  case c10::TypeKind::IntType:
    return list_of<int64_t>(t, [&](const rule_term *x) { return one(x).toInt(); });
  case c10::TypeKind::FloatType:
    return list_of<double>(t, [&](const rule_term *x) { return one(x).toDouble(); });
  case c10::TypeKind::BoolType:
    return list_of<bool>(t, [&](const rule_term *x) { return one(x).toBool(); });
  default: break;
  }
  if (e->kind() == c10::TypeKind::OptionalType &&
      e->expectRef<c10::OptionalType>().getElementType()->kind() == c10::TypeKind::TensorType)
    return list_of<std::optional<at::Tensor>>(t, [&](const rule_term *x) {
      c10::IValue v = one(x);
      return v.isNone() ? std::nullopt : std::optional<at::Tensor>(v.toTensor());
    });
  c10::impl::GenericList l(e);
  for (uint32_t i = 0; i < t->n; i++) l.push_back(one(t->child[i]));
  return l;
}

/* A number, from a literal or from a tensor with one element. */
at::Scalar number(const Call &c, const c10::TypePtr &type, const rule_term *t) {
  if (is_number(t)) return scalar(t);
  if (t->kind == RULE_VAR) {
    at::Tensor v = unwrap(c.bind[t->u.i], c.float64, device::host());
    if (v.numel() == 1) return v.item();
  }
  mismatch(type, t);
}

c10::IValue convert(const Call &c, const c10::TypePtr &type, std::optional<int32_t> width,
                    const rule_term *t) {
  switch (type->kind()) {
  case c10::TypeKind::OptionalType: {
    const c10::TypePtr &e = type->expectRef<c10::OptionalType>().getElementType();
    if (t->kind == RULE_NONE && (e->kind() != c10::TypeKind::DeviceObjType || !c.place.apart))
      return {};
    return convert(c, e, width, t);
  }
  case c10::TypeKind::TensorType:
    if (t->kind == RULE_NONE)
      return at::Tensor(); /* "Tensor" of old schemas that may be undefined */
    if (t->kind != RULE_VAR && !is_number(t)) mismatch(type, t);
    return tensor(c, t);
  case c10::TypeKind::SymIntType:
  case c10::TypeKind::IntType: {
    at::Scalar s = number(c, type, t);
    if (s.isFloatingPoint()) mismatch(type, t);
    return s.toLong();
  }
  case c10::TypeKind::SymFloatType:
  case c10::TypeKind::FloatType: return number(c, type, t).toDouble();
  case c10::TypeKind::SymBoolType:
  case c10::TypeKind::BoolType: {
    if (t->kind == RULE_NONE) return false; /* pin_memory and the like */
    at::Scalar s = number(c, type, t);
    if (!s.isBoolean()) mismatch(type, t);
    return s.toBool();
  }
  case c10::TypeKind::NumberType: return number(c, type, t);
  case c10::TypeKind::StringType:
    if (t->kind != RULE_STRING) mismatch(type, t);
    return std::string(t->u.s);
  case c10::TypeKind::ScalarTypeType: {
    if (t->kind != RULE_DTYPE) mismatch(type, t);
    at::ScalarType d = torch_dtype(t->u.i);
    return c.float64 && !c.rounds ? widest(d) : d;
  }
  case c10::TypeKind::DeviceObjType:
    if (t->kind != RULE_NONE) mismatch(type, t);
    return c.place.on;
  case c10::TypeKind::LayoutType:
    if (t->kind != RULE_NONE) mismatch(type, t);
    return at::kStrided;
  case c10::TypeKind::MemoryFormatType:
    if (t->kind != RULE_NONE) mismatch(type, t);
    return at::MemoryFormat::Contiguous;
  case c10::TypeKind::ListType: return convert_list(c, type, width, t);
  default: stop(ISO_UNSUPPORTED, "arguments of type " + type->str());
  }
}

/* Argument `i`: given, or the schema's default. */
c10::IValue argument(const Call &c, const c10::FunctionSchema &schema, size_t i) {
  const c10::Argument &a = schema.arguments()[i];
  const rule_term *t = i < c.term->n ? c.term->child[i] : nullptr;
  static const rule_term none = {RULE_NONE, 0, nullptr, {0}};
  if (!t && a.default_value() && a.default_value()->isNone())
    t = &none; /* so that a device is filled in */
  try {
    if (!t || (t->kind == RULE_NONE && a.default_value() && !a.default_value()->isNone() &&
               a.real_type()->kind() != c10::TypeKind::OptionalType)) {
      if (!a.default_value()) stop(ISO_TORCH, "is missing");
      return *a.default_value();
    }
    /* Softmax of halves into float has no meaning once everything is float64. */
    if (c.float64 && a.name() == "half_to_float") return false;
    return convert(c, a.real_type(), a.N(), t);
  } catch (const Failure &e) {
    stop(e.code, "argument " + a.name() + ": " + e.text);
  }
}

/* ---- the call ---- */

std::optional<c10::OperatorHandle> find(const char *op) {
  std::string full(op);
  size_t colons = full.find("::");
  if (colons == std::string::npos) return std::nullopt;
  size_t dot = full.find('.', colons);
  c10::OperatorName name(full.substr(0, dot), dot == std::string::npos ? "" : full.substr(dot + 1));
  return c10::Dispatcher::singleton().findSchema(name);
}

/* Reinterpreting bits means nothing once the bits are those of a wider type. */
void refuse_bit_views(const Call &c) {
  if (!c.float64 || std::strcmp(c.term->u.s, "aten::view.dtype") != 0 || c.term->n < 2) return;
  if (c.term->child[0]->kind != RULE_VAR || c.term->child[1]->kind != RULE_DTYPE) return;
  const rule_tensor *x = c.bind[c.term->child[0]->u.i];
  at::ScalarType to = widest(torch_dtype(c.term->child[1]->u.i));
  bool real = x && (c10::isFloatingType(scalar_types[x->dtype]) ||
                    c10::isComplexType(scalar_types[x->dtype]));
  bool real_to = c10::isFloatingType(to) || c10::isComplexType(to);
  if ((real || real_to) && !(real && real_to && widest(scalar_types[x->dtype]) == to))
    stop(ISO_UNSUPPORTED,
         "reinterprets the bits of floating point numbers, which float64 does not keep");
}

/* Casts between floating dtypes are identities; digits that a cast of integers loses are part of
 * the function. */
bool casts_integers(const Call &c) {
  static const char *const casts[] = {"aten::to.dtype", "aten::to.dtype_layout", "aten::to.device",
                                      "aten::_to_copy", "prims::convert_element_type"};
  if (c.term->n == 0 || c.term->child[0]->kind != RULE_VAR) return false;
  const rule_tensor *x = c.bind[c.term->child[0]->u.i];
  if (!x || x->dtype >= RULE_DTYPE_COUNT || !c10::isIntegralType(scalar_types[x->dtype], false))
    return false;
  for (const char *name : casts)
    if (std::strcmp(c.term->u.s, name) == 0) return true;
  return false;
}

void flatten(const c10::IValue &v, std::vector<at::Tensor> &out) {
  if (v.isTensor()) {
    out.push_back(v.toTensor());
  } else if (v.isTensorList()) {
    for (const at::Tensor &t : v.toTensorVector()) out.push_back(t);
  } else if (v.isNone()) {
    out.emplace_back();
  } else if (v.isList()) {
    for (const c10::IValue &e : v.toListRef()) flatten(e, out);
  } else {
    stop(ISO_UNSUPPORTED, "a result is not a tensor but " + v.tagKind());
  }
}

c10::IValue cloned(const c10::IValue &v) {
  if (v.isTensor()) return v.toTensor().defined() ? c10::IValue(v.toTensor().clone()) : v;
  if (v.isTensorList()) {
    c10::List<at::Tensor> l;
    for (const at::Tensor &t : v.toTensorVector()) l.push_back(t.clone());
    return l;
  }
  return v;
}

struct DefaultDtype {
  caffe2::TypeMeta before = c10::get_default_dtype();
  explicit DefaultDtype(bool float64) {
    if (float64) c10::set_default_dtype(caffe2::TypeMeta::fromScalarType(at::kDouble));
  }
  ~DefaultDtype() { c10::set_default_dtype(before); }
};

/* Attention whose fused kernel scales scores after a causal mask hid some: by a scale that is not
 * positive minus infinity becomes infinity, or NaN. The float64 reference counts. */
bool scales_masked(const Call &c, const c10::FunctionSchema &schema,
                   const torch::jit::Stack &stack) {
  if (!c.float64 || schema.name() != "aten::scaled_dot_product_attention") return false;
  const auto causal = schema.argumentIndexWithName("is_causal"),
             scale = schema.argumentIndexWithName("scale");
  if (!causal || !scale || !stack[*causal].isBool() || !stack[*causal].toBool()) return false;
  return stack[*scale].isDouble() && !(stack[*scale].toDouble() > 0);
}

void call_attention(const c10::FunctionSchema &schema, torch::jit::Stack &stack) {
  auto math = find("aten::_scaled_dot_product_attention_math");
  if (!math) stop(ISO_UNSUPPORTED, "no _scaled_dot_product_attention_math in libtorch");
  torch::jit::Stack plain;
  for (const c10::Argument &a : math->schema().arguments()) {
    const auto i = schema.argumentIndexWithName(a.name());
    plain.push_back(i ? stack[*i] : c10::IValue());
  }
  math->callBoxed(plain);
  stack = {plain.front()};
}

/* Quotients that no integer of the width holds end the process: the least one by -1. */
void refuse_traps(const c10::FunctionSchema &schema, const torch::jit::Stack &stack) {
  if (schema.name() != "aten::div" && schema.name() != "aten::lcm") return;
  for (const c10::IValue &v : stack) {
    const at::Tensor t = v.isTensor() ? v.toTensor() : at::Tensor();
    if (!t.defined() || t.numel() == 0) continue;
    const int64_t least = t.scalar_type() == at::kLong  ? std::numeric_limits<int64_t>::min()
                          : t.scalar_type() == at::kInt ? std::numeric_limits<int32_t>::min()
                                                        : 0;
    if (least && t.min().item<int64_t>() == least) stop(ISO_TORCH, "it overflows");
  }
}

std::vector<at::Tensor> run_there(const c10::OperatorHandle &op, const Call &c) {
  const c10::FunctionSchema &schema = op.schema();
  size_t n = schema.arguments().size();
  if (c.term->n > n)
    stop(ISO_UNSUPPORTED,
         "takes " + std::to_string(n) + " arguments, and got " + std::to_string(c.term->n));
  refuse_bit_views(c);
  c10::InferenceMode inference;
  DefaultDtype dtype(c.float64);
  torch::jit::Stack stack;
  std::vector<c10::IValue> written;
  for (size_t i = 0; i < n; i++) {
    c10::IValue v = argument(c, schema, i);
    const c10::AliasInfo *alias = schema.arguments()[i].alias_info();
    if (alias && alias->isWrite() && !v.isNone()) written.push_back(v = cloned(v));
    /* Training writes running statistics, and the schema does not say so. */
    const std::string &name = schema.arguments()[i].name();
    if (name == "running_mean" || name == "running_var") v = cloned(v);
    stack.push_back(std::move(v));
  }
  refuse_traps(schema, stack);
  if (scales_masked(c, schema, stack)) call_attention(schema, stack);
  else op.callBoxed(stack);
  std::vector<at::Tensor> out;
  for (const c10::IValue &v : stack) flatten(v, out);
  const std::string &name = schema.name();
  if (name.rfind("aten::empty", 0) == 0 || name.rfind("aten::new_empty", 0) == 0)
    for (at::Tensor &t : out) poison(t);
  for (const c10::IValue &v : written) flatten(v, out);
  return out;
}

/* Where the device's memory has no room, once more without the copies there; where it has no
 * kernel, on the CPU. Results are there, with a copy on the device; unwanted ones are empty. */
iso_code run(const c10::OperatorHandle &op, Call &c, rule_tensor **out, size_t cap, size_t *done) {
  for (bool again = false;; again = true) {
    try {
      if (c.place.apart) device::count_call();
      std::vector<at::Tensor> results = run_there(op, c);
      if (results.size() > cap)
        stop(ISO_RANGE,
             std::to_string(results.size()) + " results, and room for " + std::to_string(cap));
      c10::InferenceMode inference;
      /* PyTorch's own give float64 for float64; a cast of integers keeps its dtype: exact. */
      const bool narrows = std::strncmp(c.term->u.s, "aten::", 6) != 0 &&
                           std::strncmp(c.term->u.s, "prims::", 7) != 0;
      while (*done < results.size()) {
        const bool none = results.size() > 1 && !results[*done].defined();
        out[*done] = wrap(none ? at::empty({0}) : std::move(results[*done]), c.float64, narrows);
        ++*done;
      }
      return ISO_OK;
    } catch (const std::exception &e) {
      while (*done > 0) hooks.unref(out[--*done]);
      if (!c.place.apart) throw;
      if (device::lacks_kernel(e)) {
        c.place = device::host();
        continue;
      }
      try {
        device::rethrow_failure(e);
      } catch (const device::Failed &f) {
        if (f.memory && !again && device::forget()) continue;
        throw;
      }
      throw;
    }
  }
}

iso_code call(const rule_term *term, rule_tensor *const *bind, bool float64, rule_tensor **out,
              size_t cap, size_t *n_out, iso_error *err) {
  size_t done = 0;
  iso_code code = guarded(err, term->u.s, [&] {
    auto op = find(term->u.s);
    if (!op)
      stop(ISO_UNSUPPORTED, "no such operator in libtorch or in the kernels that are loaded");
    Call c{term, bind, float64, false, device::place_of(*op, term, bind)};
    c.rounds = float64 && casts_integers(c);
    run(*op, c, out, cap, &done);
    *n_out = done;
    return ISO_OK;
  });
  if (code != ISO_OK)
    while (done > 0) hooks.unref(out[--done]);
  return code;
}

/* Tensors that have shapes and no elements go through the same call. */
iso_code measure(const rule_term *term, rule_tensor *const *bind, bool float64, int64_t *elements,
                 iso_error *err) {
  return guarded(err, term->u.s, [&] {
    auto op = find(term->u.s);
    if (!op) stop(ISO_UNSUPPORTED, "no such operator in libtorch");
    *elements = 0;
    for (const at::Tensor &t : run_there(*op, {term, bind, float64, false, device::nowhere()}))
      *elements += t.defined() ? t.numel() : 0;
    return ISO_OK;
  });
}

/* ---- the rest of the interface ---- */

const char *version() { return TORCH_VERSION; }

/* Samples at edges (one element, no degrees of freedom) are ours to judge. */
struct Quiet : c10::WarningHandler {
  void process(const c10::Warning &) override {}
};

iso_code init(const shim_hooks *h, const char *where, iso_error *err) {
  return guarded(err, where, [&] {
    static Quiet quiet;
    c10::WarningUtils::set_warning_handler(&quiet);
    /* Refusals are common where sizes are sought, and nobody reads where in libtorch they arose. */
    c10::SetStackTraceFetcher([] { return std::string(); });
    hooks = *h;
    at::set_num_threads(1);
    memory::keep_large(hooks);
    device::choose(where);
    return ISO_OK;
  });
}

iso_code load(const char *path, iso_error *err) {
  return guarded(err, path, [&] {
    if (!dlopen(path, RTLD_NOW | RTLD_GLOBAL)) {
      const char *why = dlerror();
      stop(ISO_IO, why ? why : "cannot be loaded");
    }
    return ISO_OK;
  });
}

char *schema_text(const char *op) {
  try {
    auto handle = find(op);
    if (!handle) return nullptr;
    std::string text = c10::toString(handle->schema());
    return strdup(text.c_str());
  } catch (...) {
    return nullptr;
  }
}

const shim_api api = {SHIM_ABI, version, init, load, schema_text, call, measure};

} // namespace

extern "C" __attribute__((visibility("default"))) const shim_api *isomer_shim(void) { return &api; }
