/* Reference implementations of operators outside PyTorch, in plain ATen calls.
 *
 * Each is the functional form of a kernel as vLLM registers it (overload ".isomer",
 * rules/kernels.def): data that the kernel reads from a context become arguments, tensors that it
 * writes are returned. They say what a kernel means, in any floating dtype, and are not fast. The
 * order of operations is that of the kernels' plain PyTorch versions, so that captured values come
 * out to a few units in the last place; half-precision norms and softmaxes accumulate in float32,
 * as the kernels do.
 *
 * Arguments that do not fit are errors, and so are reads out of range: a kernel would return
 * garbage there. An operator that another library has defined already is left alone, so that users
 * may bring their own. */
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/library.h>

#include <limits>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

namespace {

using at::Tensor;

bool is_half(const Tensor &x) {
  return x.scalar_type() == at::kHalf || x.scalar_type() == at::kBFloat16;
}
Tensor accumulating(const Tensor &x) { return is_half(x) ? x.to(at::kFloat) : x; }

/* ---- attention ---- */

/* `x` as [heads, tokens, head size]. Shape: [T, heads * size] or [T, heads, size]. */
Tensor by_head(const Tensor &x, const char *name, int64_t heads, int64_t size) {
  TORCH_CHECK(x.dim() == 2 || x.dim() == 3, name, " has ", x.dim(),
              " dimensions, expected [tokens, heads * size] or [tokens, heads, size]");
  if (x.dim() == 3) {
    TORCH_CHECK(x.size(1) == heads && (size < 0 || x.size(2) == size), name, " is ", x.sizes(),
                ", expected ", heads, " heads of ", size);
    return x.transpose(0, 1);
  }
  TORCH_CHECK(x.size(1) % heads == 0 && (size < 0 || x.size(1) == heads * size), name, " is ",
              x.sizes(), ", expected ", heads, " heads of ", size);
  return x.reshape({x.size(0), heads, x.size(1) / heads}).transpose(0, 1);
}

/* Which (query i, key j) pairs do not attend, or undefined where all do. Shape: [T, T]. */
Tensor hidden_pairs(int64_t tokens, bool causal, int64_t window, const at::TensorOptions &on) {
  Tensor i = at::arange(tokens, on.dtype(at::kLong)).unsqueeze(1),
         j = at::arange(tokens, on.dtype(at::kLong)).unsqueeze(0);
  Tensor hidden;
  if (causal) hidden = j > i;
  if (window > 0) hidden = hidden.defined() ? hidden | (j <= i - window) : j <= i - window;
  return hidden;
}

/* Attention over the tokens of one sequence, with grouped key/value heads. Returns: the query's
 * layout. */
/* parameters: the operator's schema has them. */
Tensor unified_attention(const Tensor &query, const Tensor &key, const Tensor &value,
                         int64_t num_heads, int64_t num_kv_heads, int64_t head_size, double scale,
                         std::optional<int64_t> sliding_window,
                         std::optional<double> logits_soft_cap,
                         const std::optional<c10::List<double>> &alibi_slopes, bool causal) {
  TORCH_CHECK(num_heads > 0 && num_kv_heads > 0 && head_size > 0 && num_heads % num_kv_heads == 0,
              num_heads, " heads of ", head_size, " over ", num_kv_heads, " key/value heads");
  TORCH_CHECK(sliding_window.value_or(0) >= 0, "a sliding window of ", sliding_window.value_or(0));
  Tensor q = by_head(query, "query", num_heads, head_size);
  Tensor k =
      by_head(key, "key", num_kv_heads, head_size).repeat_interleave(num_heads / num_kv_heads, 0);
  Tensor v =
      by_head(value, "value", num_kv_heads, -1).repeat_interleave(num_heads / num_kv_heads, 0);
  int64_t tokens = q.size(1);
  TORCH_CHECK(k.size(1) == tokens && v.size(1) == tokens, "query, key and value have ", tokens,
              ", ", k.size(1), " and ", v.size(1), " tokens");
  Tensor s = at::matmul(q, k.transpose(1, 2)) * scale;
  if (double cap = logits_soft_cap.value_or(0); cap != 0) s = at::tanh(s / cap) * cap;
  if (alibi_slopes) {
    std::vector<double> slopes = alibi_slopes->vec();
    TORCH_CHECK(static_cast<int64_t>(slopes.size()) == num_heads, slopes.size(),
                " ALiBi slopes for ", num_heads, " heads");
    Tensor at_tokens = at::arange(tokens, s.options().dtype(at::kLong));
    Tensor distance = (at_tokens.unsqueeze(0) - at_tokens.unsqueeze(1)).to(s.scalar_type());
    s = s + at::tensor(slopes, at::kDouble).to(s.options()).view({num_heads, 1, 1}) * distance;
  }
  Tensor hidden = hidden_pairs(tokens, causal, sliding_window.value_or(0), s.options());
  if (hidden.defined()) s = s.masked_fill(hidden, -std::numeric_limits<double>::infinity());
  Tensor out = at::matmul(at::softmax(s, -1), v).transpose(0, 1);
  return query.dim() == 3 ? out.contiguous() : out.reshape({tokens, num_heads * v.size(2)});
}

/* ---- norms and positions ---- */

void check_weight(const Tensor &x, const Tensor &weight) {
  TORCH_CHECK(x.dim() >= 1 && weight.dim() == 1 && weight.size(0) == x.size(-1), "input is ",
              x.sizes(), ", weight is ", weight.sizes());
  TORCH_CHECK(at::isFloatingType(x.scalar_type()), "input is ", x.scalar_type());
}

Tensor rms_norm(const Tensor &input, const Tensor &weight, double epsilon) {
  check_weight(input, weight);
  Tensor x = accumulating(input);
  return (x * at::rsqrt(at::mean(x.pow(2), {-1}, true) + epsilon)).to(input.scalar_type()) * weight;
}

std::tuple<Tensor, Tensor> fused_add_rms_norm(const Tensor &input, const Tensor &residual,
                                              const Tensor &weight, double epsilon) {
  TORCH_CHECK(input.sizes() == residual.sizes(), "input is ", input.sizes(), ", residual is ",
              residual.sizes());
  Tensor sum = input + residual;
  return {rms_norm(sum, weight, epsilon), sum};
}

/* One tensor rotated. cos, sin: [tokens, 1, half the rotary width]; positions: of the tokens, in
 * front of x's other sizes. */
Tensor rotate(const Tensor &x, const char *name, int64_t head_size, const Tensor &positions,
              const Tensor &cos, const Tensor &sin, bool is_neox) {
  int64_t tokens = cos.size(0), width = 2 * cos.size(2);
  TORCH_CHECK(x.scalar_type() == cos.scalar_type(), name, " is ", x.scalar_type(),
              ", the table is ", cos.scalar_type());
  if (x.numel() == 0) return x.clone();
  TORCH_CHECK(x.dim() >= positions.dim() &&
                  x.sizes().slice(0, positions.dim()) == positions.sizes(),
              name, " is ", x.sizes(), ", the positions are ", positions.sizes());
  TORCH_CHECK(tokens > 0 && x.numel() % (tokens * head_size) == 0, name, " is ", x.sizes(),
              ", expected heads of ", head_size, " for ", tokens, " positions");
  Tensor heads = x.reshape({tokens, -1, head_size});
  Tensor turned = heads.narrow(-1, 0, width), rest = heads.narrow(-1, width, head_size - width);
  if (is_neox) {
    Tensor a = turned.narrow(-1, 0, width / 2), b = turned.narrow(-1, width / 2, width / 2);
    turned = at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
  } else {
    Tensor a = turned.slice(-1, 0, std::nullopt, 2), b = turned.slice(-1, 1, std::nullopt, 2);
    turned = at::stack({a * cos - b * sin, b * cos + a * sin}, -1).flatten(-2);
  }
  return at::cat({turned, rest}, -1).reshape(x.sizes());
}

/* Rows of the table hold the cosines, then the sines. Without a key the second result has no
 * elements. */
std::tuple<Tensor, Tensor> rotary_embedding(const Tensor &positions, const Tensor &query,
                                            const std::optional<Tensor> &key, int64_t head_size,
                                            const Tensor &cos_sin_cache, bool is_neox) {
  TORCH_CHECK(cos_sin_cache.dim() == 2 && cos_sin_cache.size(1) % 2 == 0, "the table is ",
              cos_sin_cache.sizes());
  TORCH_CHECK(head_size > 0 && cos_sin_cache.size(1) <= head_size, "the table is ",
              cos_sin_cache.sizes(), " for heads of ", head_size);
  Tensor row = at::index_select(cos_sin_cache, 0, positions.reshape(-1)).unsqueeze(1);
  int64_t half = row.size(2) / 2;
  Tensor cos = row.narrow(-1, 0, half), sin = row.narrow(-1, half, half);
  Tensor q = rotate(query, "query", head_size, positions, cos, sin, is_neox);
  if (!key || !key->defined()) return {q, at::empty({0}, query.options())};
  return {q, rotate(*key, "key", head_size, positions, cos, sin, is_neox)};
}

/* ---- activations ---- */

/* The two halves of the last dimension. */
std::pair<Tensor, Tensor> halves(const Tensor &x) {
  TORCH_CHECK(x.dim() >= 1 && x.size(-1) % 2 == 0, "input is ", x.sizes(),
              ", expected an even last dimension");
  int64_t d = x.size(-1) / 2;
  return {x.narrow(-1, 0, d), x.narrow(-1, d, d)};
}

Tensor silu_and_mul(const Tensor &input) {
  auto [gate, up] = halves(input);
  return at::silu(gate) * up;
}
Tensor gelu_and_mul(const Tensor &input) {
  auto [gate, up] = halves(input);
  return at::gelu(gate) * up;
}
Tensor gelu_tanh_and_mul(const Tensor &input) {
  auto [gate, up] = halves(input);
  return at::gelu(gate, "tanh") * up;
}
/* gelu_new and gelu_fast are two ways to write the tanh approximation. */
Tensor gelu_tanh(const Tensor &input) { return at::gelu(input, "tanh"); }
Tensor gelu_quick(const Tensor &input) { return input * at::sigmoid(input * 1.702); }

/* ---- experts ---- */

/* The topk largest probabilities of each token (ties: the lower expert first), their experts, and
 * the place of each pair in the order that sorts by rank first. */
std::tuple<Tensor, Tensor, Tensor> topk_softmax(const Tensor &gating_output, int64_t topk) {
  TORCH_CHECK(gating_output.dim() == 2 && topk >= 0 && topk <= gating_output.size(1), "the ", topk,
              " best of ", gating_output.sizes());
  int64_t tokens = gating_output.size(0);
  Tensor p = at::softmax(accumulating(gating_output), -1);
  auto [sorted, order] = at::sort(p, /*stable=*/true, /*dim=*/-1, /*descending=*/true);
  auto ints = gating_output.options().dtype(at::kInt);
  Tensor place =
      at::arange(topk, ints).unsqueeze(0) * tokens + at::arange(tokens, ints).unsqueeze(1);
  return {sorted.narrow(1, 0, topk).contiguous(), order.narrow(1, 0, topk).to(at::kInt), place};
}

/* The experts' own numbers, by the map of this rank where there is one: below 0 for those of other
 * ranks. */
Tensor local_experts(const Tensor &topk_ids, int64_t experts, int64_t global_num_experts,
                     const std::optional<Tensor> &expert_map) {
  TORCH_CHECK(at::isIntegralType(topk_ids.scalar_type(), false), "topk_ids is ",
              topk_ids.scalar_type());
  const int64_t all = expert_map ? expert_map->numel() : experts;
  TORCH_CHECK(global_num_experts == -1 || global_num_experts == all, "global_num_experts is ",
              global_num_experts, ", there are ", all);
  Tensor ids = topk_ids.reshape(-1).to(at::kLong);
  TORCH_CHECK(ids.numel() == 0 ||
                  (ids.min().item<int64_t>() >= 0 && ids.max().item<int64_t>() < all),
              "topk_ids name experts out of range");
  if (!expert_map) return ids;
  TORCH_CHECK(expert_map->dim() == 1 && at::isIntegralType(expert_map->scalar_type(), false),
              "expert_map is ", expert_map->sizes(), " of ", expert_map->scalar_type());
  ids = at::index_select(expert_map->to(at::kLong), 0, ids);
  TORCH_CHECK(ids.numel() == 0 || ids.max().item<int64_t>() < experts,
              "expert_map names experts out of range");
  return ids;
}

/* One expert's rows; biases are [experts, 2 * inner] and [experts, hidden]. */
Tensor one_expert(const Tensor &rows, int64_t e, const Tensor &w1, const Tensor &w2,
                  const std::string &activation, const std::optional<Tensor> &w1_bias,
                  const std::optional<Tensor> &w2_bias) {
  Tensor h = at::matmul(rows, w1.select(0, e).transpose(0, 1));
  if (w1_bias) h = h + w1_bias->select(0, e);
  h = activation == "silu" ? silu_and_mul(h) : gelu_and_mul(h);
  h = at::matmul(h, w2.select(0, e).transpose(0, 1));
  return w2_bias ? h + w2_bias->select(0, e) : h;
}

/* w1: [experts, 2 * inner, hidden], w2: [experts, hidden, inner]; topk_weights, topk_ids: [tokens,
 * topk]. */
/* parameters: the operator's schema has them. */
Tensor fused_experts(const Tensor &hidden_states, const Tensor &w1, const Tensor &w2,
                     const Tensor &topk_weights, const Tensor &topk_ids,
                     const std::string &activation, bool apply_router_weight_on_input,
                     int64_t global_num_experts, const std::optional<Tensor> &expert_map,
                     const std::optional<Tensor> &w1_bias, const std::optional<Tensor> &w2_bias) {
  TORCH_CHECK(activation == "silu" || activation == "gelu", "activation \"", activation, "\"");
  TORCH_CHECK(hidden_states.dim() == 2 && w1.dim() == 3 && w2.dim() == 3 && topk_ids.dim() == 2 &&
                  topk_weights.sizes() == topk_ids.sizes() &&
                  topk_ids.size(0) == hidden_states.size(0) &&
                  w1.size(2) == hidden_states.size(1) && w2.size(1) == hidden_states.size(1) &&
                  w1.size(0) == w2.size(0) && w1.size(1) == 2 * w2.size(2),
              "hidden_states is ", hidden_states.sizes(), ", w1 ", w1.sizes(), ", w2 ", w2.sizes(),
              ", topk_weights ", topk_weights.sizes(), ", topk_ids ", topk_ids.sizes());
  int64_t tokens = topk_ids.size(0), topk = topk_ids.size(1), experts = w1.size(0);
  TORCH_CHECK(!apply_router_weight_on_input || topk == 1,
              "router weights go on the input of one expert only");
  TORCH_CHECK(!w1_bias || (w1_bias->dim() == 2 && w1_bias->size(0) == experts &&
                           w1_bias->size(1) == w1.size(1)),
              "w1_bias does not fit");
  TORCH_CHECK(!w2_bias || (w2_bias->dim() == 2 && w2_bias->size(0) == experts &&
                           w2_bias->size(1) == w2.size(1)),
              "w2_bias does not fit");
  Tensor ids = local_experts(topk_ids, experts, global_num_experts, expert_map);
  Tensor weights = topk_weights.reshape({-1, 1}).to(hidden_states.scalar_type());
  Tensor in = hidden_states.repeat_interleave(topk, 0);
  if (apply_router_weight_on_input) in = in * weights;
  Tensor out = at::zeros({tokens * topk, hidden_states.size(1)}, hidden_states.options());
  for (int64_t e = 0; e < experts; e++) {
    Tensor rows = at::nonzero(ids == e).reshape(-1);
    if (rows.numel() == 0) continue;
    Tensor y = one_expert(at::index_select(in, 0, rows), e, w1, w2, activation, w1_bias, w2_bias);
    out.index_copy_(0, rows, y);
  }
  if (!apply_router_weight_on_input) out = out * weights;
  return out.reshape({tokens, topk, hidden_states.size(1)}).sum(1);
}

/* ---- collectives, over the tensors of all ranks ---- */

Tensor all_reduce(at::TensorList inputs, const std::string &op) {
  TORCH_CHECK(!inputs.empty(), "no ranks");
  TORCH_CHECK(op == "sum" || op == "avg" || op == "max" || op == "min", "reduction \"", op, "\"");
  TORCH_CHECK(op != "avg" || inputs[0].is_floating_point(), "the average of ",
              inputs[0].scalar_type());
  Tensor total = inputs[0];
  for (size_t i = 1; i < inputs.size(); i++) {
    TORCH_CHECK(inputs[i].sizes() == total.sizes(), "rank ", i, " has ", inputs[i].sizes(),
                ", rank 0 ", total.sizes());
    total = op == "max"   ? at::maximum(total, inputs[i])
            : op == "min" ? at::minimum(total, inputs[i])
                          : total + inputs[i];
  }
  return op == "avg" ? total / static_cast<double>(inputs.size()) : total;
}

/* Along `dim` ranks may have parts of other sizes. */
Tensor all_gather(at::TensorList inputs, int64_t dim) {
  TORCH_CHECK(!inputs.empty(), "no ranks");
  const int64_t at = c10::maybe_wrap_dim(dim, inputs[0].dim());
  for (size_t i = 1; i < inputs.size(); i++) {
    bool fits = inputs[i].dim() == inputs[0].dim();
    for (int64_t d = 0; fits && d < inputs[0].dim(); d++)
      fits = d == at || inputs[i].size(d) == inputs[0].size(d);
    TORCH_CHECK(fits, "rank ", i, " has ", inputs[i].sizes(), ", rank 0 ", inputs[0].sizes());
  }
  return at::cat(inputs, dim);
}

/* A part for each rank: of nothing too, where a split by size gives one. */
std::vector<Tensor> parts_of(const Tensor &t, int64_t n, int64_t dim) {
  TORCH_CHECK(t.size(dim) % n == 0, "dimension ", dim, " of ", t.sizes(), " cannot be cut for ", n,
              " ranks");
  return t.tensor_split(n, dim);
}

std::vector<Tensor> reduce_scatter(at::TensorList inputs, const std::string &op, int64_t dim) {
  Tensor total = all_reduce(inputs, op);
  std::vector<Tensor> part;
  for (const Tensor &t : parts_of(total, static_cast<int64_t>(inputs.size()), dim))
    part.push_back(t.contiguous());
  return part;
}

std::vector<Tensor> all_to_all(at::TensorList inputs, int64_t split_dim, int64_t cat_dim) {
  const int64_t n = static_cast<int64_t>(inputs.size());
  std::vector<std::vector<Tensor>> sent(inputs.size());
  for (const Tensor &t : inputs) {
    const std::vector<Tensor> part = parts_of(t, n, split_dim);
    for (int64_t k = 0; k < n; k++) sent[k].push_back(part[k]);
  }
  std::vector<Tensor> got;
  for (const std::vector<Tensor> &parts : sent) got.push_back(at::cat(parts, cat_dim));
  return got;
}

Tensor broadcast(at::TensorList inputs, int64_t src) {
  TORCH_CHECK(src >= 0 && src < static_cast<int64_t>(inputs.size()), "there is no rank ", src);
  for (const Tensor &t : inputs)
    TORCH_CHECK(t.sizes() == inputs[src].sizes(), "ranks of sizes ", t.sizes(), " and ",
                inputs[src].sizes());
  return inputs[src].clone();
}

Tensor receive(const Tensor &input) { return input.clone(); }

/* ---- registration ---- */

/* Defines "name(arguments) -> results" in the library's namespace, unless somebody has. */
template <typename F>
void define(torch::Library &m, const char *ns, const std::string &schema, F *f) {
  std::string name = schema.substr(0, schema.find('('));
  size_t dot = name.find('.');
  c10::OperatorName full(std::string(ns) + "::" + name.substr(0, dot),
                         dot == std::string::npos ? "" : name.substr(dot + 1));
  if (!c10::Dispatcher::singleton().findSchema(full))
    m.def(torch::schema(schema.c_str()), torch::CppFunction(f));
}

const char *const attention_arguments =
    "(Tensor query, Tensor key, Tensor value, *, int num_heads, int num_kv_heads, int head_size, "
    "float scale, "
    "int? sliding_window, float? logits_soft_cap, float[]? alibi_slopes, bool causal) -> Tensor";
const char *const experts_arguments = "(Tensor hidden_states, Tensor w1, Tensor w2, Tensor "
                                      "topk_weights, Tensor topk_ids, str activation=\"silu\", "
                                      "bool apply_router_weight_on_input=False, "
                                      "SymInt global_num_experts=-1, Tensor? expert_map=None, "
                                      "Tensor? w1_bias=None, Tensor? w2_bias=None) -> Tensor";

} // namespace

TORCH_LIBRARY_FRAGMENT(vllm, m) {
  for (const char *name : {"unified_attention.isomer", "unified_attention_with_output.isomer"})
    define(m, "vllm", std::string(name) + attention_arguments, unified_attention);
  for (const char *name : {"outplace_fused_experts.isomer", "inplace_fused_experts.isomer"})
    define(m, "vllm", std::string(name) + experts_arguments, fused_experts);
}

TORCH_LIBRARY_FRAGMENT(_C, m) {
  define(m, "_C", "rms_norm.isomer(Tensor input, Tensor weight, float epsilon) -> Tensor",
         rms_norm);
  define(m, "_C",
         "fused_add_rms_norm.isomer(Tensor input, Tensor residual, Tensor weight, float epsilon) "
         "-> (Tensor, Tensor)",
         fused_add_rms_norm);
  define(m, "_C",
         "rotary_embedding.isomer(Tensor positions, Tensor query, Tensor? key, int head_size, "
         "Tensor cos_sin_cache, "
         "bool is_neox) -> (Tensor, Tensor)",
         rotary_embedding);
  define(m, "_C", "silu_and_mul.isomer(Tensor input) -> Tensor", silu_and_mul);
  define(m, "_C", "gelu_and_mul.isomer(Tensor input) -> Tensor", gelu_and_mul);
  define(m, "_C", "gelu_tanh_and_mul.isomer(Tensor input) -> Tensor", gelu_tanh_and_mul);
  define(m, "_C", "gelu_new.isomer(Tensor input) -> Tensor", gelu_tanh);
  define(m, "_C", "gelu_fast.isomer(Tensor input) -> Tensor", gelu_tanh);
  define(m, "_C", "gelu_quick.isomer(Tensor input) -> Tensor", gelu_quick);
}

TORCH_LIBRARY_FRAGMENT(_moe_C, m) {
  define(m, "_moe_C",
         "topk_softmax.isomer(Tensor gating_output, *, int topk) -> (Tensor, Tensor, Tensor)",
         topk_softmax);
}

TORCH_LIBRARY_FRAGMENT(dist, m) {
  define(m, "dist", "all_reduce(Tensor[] inputs, str op) -> Tensor", all_reduce);
  define(m, "dist", "all_gather(Tensor[] inputs, int dim) -> Tensor", all_gather);
  define(m, "dist", "all_to_all(Tensor[] inputs, int split_dim, int cat_dim) -> Tensor[]",
         all_to_all);
  define(m, "dist", "broadcast(Tensor[] inputs, int src) -> Tensor", broadcast);
  define(m, "dist", "receive(Tensor input) -> Tensor", receive);
  define(m, "dist", "reduce_scatter(Tensor[] inputs, str op, int dim) -> Tensor[]", reduce_scatter);
}
