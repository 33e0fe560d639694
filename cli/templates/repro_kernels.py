# ---- hidden_pairs
def hidden_pairs(tokens, causal, window):
    i, j = torch.arange(tokens)[:, None], torch.arange(tokens)[None]
    hidden = j > i if causal else torch.zeros(tokens, tokens, dtype=torch.bool)
    return hidden | (j <= i - window) if window else hidden


# ---- unified_attention
def unified_attention(
    query,
    key,
    value,
    *,
    num_heads,
    num_kv_heads,
    head_size,
    scale,
    sliding_window,
    logits_soft_cap,
    alibi_slopes,
    causal,
):
    """Attention over the tokens of one sequence, with grouped key/value heads."""
    tokens, groups = query.size(0), num_heads // num_kv_heads
    q = query.reshape(tokens, num_heads, -1).transpose(0, 1)
    k, v = (
        x.reshape(tokens, num_kv_heads, -1).transpose(0, 1).repeat_interleave(groups, 0)
        for x in (key, value)
    )
    s = q @ k.transpose(1, 2) * scale
    if logits_soft_cap:
        s = torch.tanh(s / logits_soft_cap) * logits_soft_cap
    if alibi_slopes is not None:
        at = torch.arange(tokens)
        s = s + torch.tensor(alibi_slopes).view(-1, 1, 1) * (at[None] - at[:, None])
    s = s.masked_fill(hidden_pairs(tokens, causal, sliding_window), float("-inf"))
    out = (torch.softmax(s, -1) @ v).transpose(0, 1)
    return out.contiguous() if query.dim() == 3 else out.reshape(tokens, -1)


# ---- unified_attention_with_output
unified_attention_with_output = unified_attention


# ---- rms_norm
def rms_norm(input, weight, epsilon):
    return input * torch.rsqrt(input.pow(2).mean(-1, keepdim=True) + epsilon) * weight


# ---- fused_add_rms_norm
def fused_add_rms_norm(input, residual, weight, epsilon):
    return rms_norm(input + residual, weight, epsilon), input + residual


# ---- rotary_embedding
def rotary_embedding(positions, query, key, head_size, cos_sin_cache, is_neox):
    """Rows of the table hold the cosines, then the sines."""
    cos, sin = cos_sin_cache[positions.reshape(-1)].unsqueeze(1).chunk(2, -1)
    width = cos_sin_cache.size(1)

    def rotate(x):
        heads = x.reshape(positions.numel(), -1, head_size)
        turned, rest = heads[..., :width], heads[..., width:]
        a, b = turned.chunk(2, -1) if is_neox else (turned[..., ::2], turned[..., 1::2])
        parts = a * cos - b * sin, b * cos + a * sin
        turned = torch.cat(parts, -1) if is_neox else torch.stack(parts, -1).flatten(-2)
        return torch.cat([turned, rest], -1).reshape(x.shape)

    return rotate(query), torch.empty(0) if key is None else rotate(key)


# ---- halves
def halves(x):
    return x.chunk(2, -1)


# ---- silu_and_mul
def silu_and_mul(input):
    gate, up = halves(input)
    return torch.nn.functional.silu(gate) * up


# ---- gelu_and_mul
def gelu_and_mul(input):
    gate, up = halves(input)
    return torch.nn.functional.gelu(gate) * up


# ---- gelu_tanh_and_mul
def gelu_tanh_and_mul(input):
    gate, up = halves(input)
    return torch.nn.functional.gelu(gate, approximate="tanh") * up


# ---- gelu_new
def gelu_new(input):
    return torch.nn.functional.gelu(input, approximate="tanh")


# ---- gelu_fast
def gelu_fast(input):
    return torch.nn.functional.gelu(input, approximate="tanh")


# ---- gelu_quick
def gelu_quick(input):
    return input * torch.sigmoid(input * 1.702)


# ---- topk_softmax
def topk_softmax(gating_output, *, topk):
    """Ties: the lower expert first."""
    tokens = gating_output.size(0)
    weight, expert = torch.sort(
        torch.softmax(gating_output, -1), stable=True, dim=-1, descending=True
    )
    place = (
        torch.arange(topk, dtype=torch.int32)[None] * tokens
        + torch.arange(tokens, dtype=torch.int32)[:, None]
    )
    return weight[:, :topk].contiguous(), expert[:, :topk].to(torch.int32), place


# ---- fused_experts
def fused_experts(
    hidden_states,
    w1,
    w2,
    topk_weights,
    topk_ids,
    activation="silu",
    apply_router_weight_on_input=False,
):
    tokens, topk = topk_ids.shape
    ids, weights = topk_ids.reshape(-1).long(), topk_weights.reshape(-1, 1)
    x = hidden_states.repeat_interleave(topk, 0)
    if apply_router_weight_on_input:
        x = x * weights
    act = silu_and_mul if activation == "silu" else gelu_and_mul
    out = (
        torch.stack([act(x[i] @ w1[e].t()) @ w2[e].t() for i, e in enumerate(ids.tolist())])
        if ids.numel()
        else x
    )
    if not apply_router_weight_on_input:
        out = out * weights
    return out.reshape(tokens, topk, -1).sum(1)


# ---- outplace_fused_experts
outplace_fused_experts = fused_experts


# ---- inplace_fused_experts
inplace_fused_experts = fused_experts


# ---- all_reduce
def all_reduce(inputs, op):
    x = torch.stack(inputs)
    return {"sum": x.sum, "avg": x.mean, "max": x.amax, "min": x.amin}[op](0)


# ---- all_gather
def all_gather(inputs, dim):
    return torch.cat(inputs, dim)


# ---- reduce_scatter
def reduce_scatter(inputs, op, dim):
    x = torch.stack(inputs)
    x = {"sum": x.sum, "avg": x.mean, "max": x.amax, "min": x.amin}[op](0)
    return x.chunk(len(inputs), dim)


# ---- all_to_all
def all_to_all(inputs, split_dim, cat_dim):
    parts = [t.chunk(len(inputs), split_dim) for t in inputs]
    return [torch.cat([p[r] for p in parts], cat_dim) for r in range(len(inputs))]


# ---- broadcast
def broadcast(inputs, src):
    return inputs[src]


# ---- receive
def receive(x):
    return x
