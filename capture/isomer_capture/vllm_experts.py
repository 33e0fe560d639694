"""Routed experts without a GPU: vLLM's own choice of experts in PyTorch, then each chosen expert's
product, written out.

vLLM's loop over experts on the CPU has sizes that depend on the data; its other kernels need a GPU.
This goes in as vLLM lets platforms from outside replace a layer."""

import contextlib

import torch
from vllm.model_executor.layers.fused_moe import cpu_fused_moe
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import (
    UnquantizedFusedMoEMethod,
)


def by_corrected_scores(
    router_logits, top_k, renormalize, scoring_func, routed_scaling_factor, e_score_correction_bias
):
    """Experts are chosen by their scores and a bias, and weighted by the scores alone. vLLM's CPU
    path leaves this bias out; its kernels for GPUs (topk_softmax, topk_sigmoid) do this."""
    if scoring_func not in ("softmax", "sigmoid"):
        raise NotImplementedError("experts chosen by %s with a bias" % scoring_func)
    logits = router_logits.float()
    scores = torch.softmax(logits, -1) if scoring_func == "softmax" else torch.sigmoid(logits)
    ids = torch.topk(scores + e_score_correction_bias.float(), top_k, dim=-1, sorted=False)[1]
    weights = scores.gather(1, ids)
    if renormalize:
        weights = weights / weights.sum(-1, keepdim=True)
    return weights * routed_scaling_factor if routed_scaling_factor != 1.0 else weights, ids


def choose(layer, x, router_logits):
    """(weights, ids) of the experts of each token."""
    if (
        layer.e_score_correction_bias is not None
        and not layer.use_grouped_topk
        and layer.custom_routing_function is None
    ):
        return by_corrected_scores(
            router_logits,
            layer.top_k,
            layer.renormalize,
            layer.scoring_func,
            layer.routed_scaling_factor,
            layer.e_score_correction_bias,
        )
    return cpu_fused_moe.select_experts(
        hidden_states=x,
        router_logits=router_logits,
        top_k=layer.top_k,
        use_grouped_topk=layer.use_grouped_topk,
        renormalize=layer.renormalize,
        topk_group=layer.topk_group,
        num_expert_group=layer.num_expert_group,
        custom_routing_function=layer.custom_routing_function,
        scoring_func=layer.scoring_func,
        routed_scaling_factor=layer.routed_scaling_factor,
        e_score_correction_bias=layer.e_score_correction_bias,
    )


@UnquantizedFusedMoEMethod.register_oot(name="UnquantizedFusedMoEMethod")
class ReferenceExperts(UnquantizedFusedMoEMethod):
    @property
    def is_monolithic(self):
        return True

    def apply_monolithic(self, layer, x, router_logits, input_ids=None):
        if layer.expert_map is not None:
            raise NotImplementedError("experts on several ranks")
        weights, ids = choose(layer, x, router_logits)
        ids, weights = ids.long(), weights.to(x.dtype)
        given = x.unsqueeze(1)
        if layer.apply_router_weight_on_input:
            given = given * weights.unsqueeze(-1)
        inner = torch.matmul(layer.w13_weight[ids], given.unsqueeze(-1)).squeeze(-1)
        if self.moe.has_bias:
            inner = inner + layer.w13_bias[ids]
        inner = cpu_fused_moe._CPU_MOE_ACT_FN[layer.activation](inner)
        out = torch.matmul(layer.w2_weight[ids], inner.unsqueeze(-1)).squeeze(-1)
        if self.moe.has_bias:
            out = out + layer.w2_bias[ids]
        if not layer.apply_router_weight_on_input:
            out = out * weights.unsqueeze(-1)
        return out.sum(1)


ROUTED = ".routed_experts."


def was_renamed(model, old):
    """Whether a parameter's name ends in this one but for the layer that experts have by now."""
    return any(
        ROUTED in name and name.replace(ROUTED, ".").endswith(old)
        for name, _ in model.named_parameters()
    )


@contextlib.contextmanager
def old_names(model):
    """Experts' parameters are found under the names of before they had a layer of their own, too,
    while weights are loaded: some of vLLM's loaders (0.24: GPT-OSS in bfloat16) look for these."""
    changed = [m for m in model.modules() if hasattr(m, "load_weights")]
    for module in changed:
        module.named_parameters = lambda *a, of=module, **k: with_old(of, *a, **k)
    try:
        yield
    finally:
        for module in changed:
            del module.named_parameters


def with_old(module, *args, **kwargs):
    for name, p in type(module).named_parameters(module, *args, **kwargs):
        yield name, p
        if ROUTED in name:
            yield name.replace(ROUTED, "."), p


def open_layers(model):
    """Calls the expert layers directly: wrapped as one operator they would hide their router and
    their weights."""
    for module in model.modules():
        if hasattr(module, "_forward_entry") and hasattr(module, "_forward_impl"):

            def entry(
                hidden_states, router_logits, shared_input, input_ids, name, width, layer=module
            ):
                return layer._forward_impl(hidden_states, router_logits, shared_input, input_ids)

            module._forward_entry = entry
