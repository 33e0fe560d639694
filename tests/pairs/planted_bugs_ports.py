"""More of planted_bugs.py: the mistakes of a person who ports a model, in five families more."""

from planted_bugs import MLP, Bug

ROUTED = "topk_weights = topk_weights * self.routed_scaling_factor"

BUGS = [
    Bug(
        "gemma2-score-cap",
        "gemma2",
        "the scores' soft cap is left out",
        r"tanh",
        [("if softcap is not None:", "if False:")],
    ),
    Bug(
        "gemma2-logit-cap",
        "gemma2",
        "the logits' soft cap is left out",
        r"tanh",
        [("if self.config.final_logit_softcapping is not None:", "if False:")],
    ),
    Bug(
        "gemma2-norm-plus-one",
        "gemma2",
        "the norms scale by w, not by 1 + w",
        r"on the left 1(\.0)? is added, and on the right it is not",
        [("output * (1.0 + self.weight.float())", "output * self.weight.float()")],
    ),
    Bug(
        "gemma2-layer-types",
        "gemma2",
        "the windowed and the full layers change places",
        r"mask (shows|hides)",
        [("self.config.layer_types[i]", "self.config.layer_types[1 - i]")],
    ),
    Bug(
        "gemma2-gelu",
        "gemma2",
        "the exact GELU, not the one by tanh",
        r'approximate is "tanh" on the left and "none"',
        [("ACT2FN[config.hidden_activation]", 'ACT2FN["gelu"]')],
    ),
    Bug(
        "gemma2-scale",
        "gemma2",
        "scores are scaled by the head's width, not by query_pre_attn_scalar",
        r"other is [0-9.]+ on the left and [0-9.]+ on the right",
        [("config.query_pre_attn_scalar**-0.5", "self.head_dim**-0.5")],
    ),
    Bug(
        "gemma2-embed-scale",
        "gemma2",
        "tokens are not scaled by the root of the width",
        r"on the left .*multiplied by .*, and on the right it is not",
        [
            (
                "super().forward(input_ids) * self.embed_scale.to(self.weight.dtype)",
                "super().forward(input_ids)",
            )
        ],
    ),
    Bug(
        "gemma2-repeat",
        "gemma2",
        "heads of keys and values are repeated as a whole, not one by one",
        r"in another order: .*expand, reshape, .*expand, transpose, reshape",
        [
            (
                "return hidden_states.reshape(batch, num_key_value_heads * n_rep, slen, head_dim)",
                "return hidden_states.transpose(1, 2).reshape("
                "batch, num_key_value_heads * n_rep, slen, head_dim)",
            )
        ],
    ),
    Bug(
        "gemma2-post-norm",
        "gemma2",
        "the norm behind the attention is left out",
        r"on the left \S*post_attention_layernorm is applied, and on the right it is not",
        [("hidden_states = self.post_attention_layernorm(hidden_states)", "pass")],
    ),
    Bug(
        "phi3-gate-up",
        "phi3",
        "gate and up are exchanged in the fused projection",
        r"part 0 .*part 1 .*are exchanged|part 1 .*part 0 .*are exchanged",
        [("gate, up_states = up_states", "up_states, gate = up_states")],
    ),
    Bug(
        "phi3-residual-normed",
        "phi3",
        "the residual is taken behind the norm",
        r"reads .*input_layernorm where the left reads .*embed_tokens",
        [
            (
                "residual = hidden_states\n"
                "        hidden_states = self.input_layernorm(hidden_states)",
                "hidden_states = self.input_layernorm(hidden_states)\n"
                "        residual = hidden_states",
            )
        ],
    ),
    Bug(
        "phi3-scale",
        "phi3",
        "scores are not scaled",
        r"scale is 0\.25 on the left and 1\.0 on the right",
        [("self.scaling = self.head_dim**-0.5", "self.scaling = 1.0")],
    ),
    Bug(
        "phi3-base",
        "phi3",
        "the rotation's base is 500000, not the configured 10000",
        r"another base",
        [('base = config.rope_parameters["rope_theta"]', "base = 500000.0")],
    ),
    Bug(
        "phi3-mean",
        "phi3",
        "the norms subtract the mean, as layer norms do",
        r"mean.* is subtracted, and on the left it is not",
        [
            (
                "variance = hidden_states.pow(2)",
                "hidden_states = hidden_states - hidden_states.mean(-1, keepdim=True)\n"
                "        variance = hidden_states.pow(2)",
            )
        ],
    ),
    Bug(
        "deepseek-router-scale",
        "deepseek_v3",
        "the chosen experts' weights are not scaled",
        r"on the left .*multiplied by 2\.5, and on the right it is not",
        [(ROUTED, "pass")],
    ),
    Bug(
        "deepseek-renormalise",
        "deepseek_v3",
        "the chosen experts' weights are not renormalised",
        r"divided by .*, and on the right it is not",
        [("if self.norm_topk_prob:", "if False:")],
    ),
    Bug(
        "deepseek-shared-input",
        "deepseek_v3",
        "the shared experts read what the routed ones give",
        r"reads .* where the left reads .*(post_attention_layernorm|mul)",
        [("self.shared_experts(residuals)", "self.shared_experts(hidden_states)")],
    ),
    Bug(
        "deepseek-latent-norm",
        "deepseek_v3",
        "the compressed keys and values are not normalised",
        r"kv_a_layernorm is applied, and on the right it is not",
        [("self.kv_a_layernorm(k_pass)", "k_pass")],
    ),
    Bug(
        "deepseek-rotary-style",
        "deepseek_v3",
        "halves are rotated, not pairs",
        r"halves are every second element",
        [("if self.config.rope_interleave:", "if False:")],
    ),
    Bug(
        "deepseek-nope-rope",
        "deepseek_v3",
        "the rotated part of the keys stands first",
        r"are exchanged in cat",
        [("torch.cat((k_pass, k_rot), dim=-1)", "torch.cat((k_rot, k_pass), dim=-1)")],
    ),
    Bug(
        "deepseek-gate-up",
        "deepseek_v3",
        "gate and up of the dense layers are exchanged",
        r"gate_proj and .*up_proj are exchanged",
        [(MLP, "self.act_fn(self.up_proj(x)) * self.gate_proj(x)")],
    ),
    Bug(
        "neox-serial",
        "gpt_neox",
        "the MLP reads what the attention made, not the layer's input",
        r"the residual .*post_attention_dropout is added, and on the left it is not",
        [("if self.use_parallel_residual:", "if False:")],
    ),
    Bug(
        "neox-gelu",
        "gpt_neox",
        "GELU by tanh, not exactly",
        r'approximate is "none" on the left and "tanh"',
        [("self.act = ACT2FN[config.hidden_act]", 'self.act = ACT2FN["gelu_pytorch_tanh"]')],
    ),
    Bug(
        "neox-bias",
        "gpt_neox",
        "the output projection's bias is left out",
        r"the bias of linear is .*dense\.bias.*it has none",
        [
            (
                "attn_output = self.dense(attn_output)",
                "attn_output = nn.functional.linear(attn_output, self.dense.weight)",
            )
        ],
    ),
    Bug(
        "neox-qkv-layout",
        "gpt_neox",
        "the fused projection is cut into q, k and v before it is cut into heads",
        r"query_key_value is taken apart otherwise: by view, .*by chunk",
        [
            (
                "qkv = self.query_key_value(hidden_states).view(hidden_shape).transpose(1, 2)\n"
                "        query_states, key_states, value_states = qkv.chunk(3, dim=-1)",
                "query_states, key_states, value_states = (\n"
                "            one.view(*input_shape, -1, self.head_size).transpose(1, 2)\n"
                "            for one in self.query_key_value(hidden_states).chunk(3, dim=-1)\n"
                "        )",
            )
        ],
    ),
    Bug(
        "siglip-causal",
        "siglip",
        "the encoder of images masks causally",
        r"is_causal is false on the left and true|mask",
        [("self.is_causal = False", "self.is_causal = True")],
    ),
    Bug(
        "siglip-patch-order",
        "siglip",
        "patches are counted column by column",
        r"conv2d.* in another order: .*through flatten, .*through transpose, flatten",
        [
            (
                "patch_embeds.flatten(2).transpose(1, 2)",
                "patch_embeds.transpose(2, 3).flatten(2).transpose(1, 2)",
            )
        ],
    ),
    Bug(
        "siglip-post-norm",
        "siglip",
        "the norm behind the encoder of images is left out",
        r"post_layernorm .*is applied, and on the right it is not",
        [("last_hidden_state = self.post_layernorm(last_hidden_state)", "pass")],
    ),
    Bug(
        "siglip-head-residual",
        "siglip",
        "the pooling head has no residual",
        r"residual",
        [
            (
                "hidden_state = residual + self.mlp(hidden_state)",
                "hidden_state = self.mlp(hidden_state)",
            )
        ],
    ),
    Bug(
        "siglip-positions",
        "siglip",
        "patches have no positions",
        r"position_embedding is added, and on the right it is not",
        [("embeddings = embeddings + self.position_embedding(self.position_ids)", "pass")],
    ),
]
