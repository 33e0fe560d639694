"""Routed experts without a GPU: vLLM's own choice of experts in PyTorch, then each chosen expert's product, written out.

vLLM's loop over experts on the CPU has sizes that depend on the data; its other kernels need a GPU. This goes in as
vLLM lets platforms from outside replace a layer."""
import torch
from vllm.model_executor.layers.fused_moe import cpu_fused_moe
from vllm.model_executor.layers.fused_moe.unquantized_fused_moe_method import UnquantizedFusedMoEMethod


@UnquantizedFusedMoEMethod.register_oot(name="UnquantizedFusedMoEMethod")
class ReferenceExperts(UnquantizedFusedMoEMethod):
    @property
    def is_monolithic(self):
        return True

    def apply_monolithic(self, layer, x, router_logits, input_ids=None):
        if layer.expert_map is not None:
            raise NotImplementedError("experts on several ranks")
        weights, ids = cpu_fused_moe.select_experts(
            hidden_states=x, router_logits=router_logits, top_k=layer.top_k, use_grouped_topk=layer.use_grouped_topk,
            renormalize=layer.renormalize, topk_group=layer.topk_group, num_expert_group=layer.num_expert_group,
            custom_routing_function=layer.custom_routing_function, scoring_func=layer.scoring_func,
            routed_scaling_factor=layer.routed_scaling_factor, e_score_correction_bias=layer.e_score_correction_bias)
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


def open_layers(model):
    """Calls the expert layers directly: wrapped as one operator they would hide their router and their weights."""
    for module in model.modules():
        if hasattr(module, "_forward_entry") and hasattr(module, "_forward_impl"):
            def entry(hidden_states, router_logits, shared_input, input_ids, name, width, layer=module):
                return layer._forward_impl(hidden_states, router_logits, shared_input, input_ids)
            module._forward_entry = entry
