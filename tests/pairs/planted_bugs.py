"""The bugs of planted.py: for each, the family, what is wrong, the change of its code, and a
pattern for the words of a report that names the cause."""

import collections

# changes: pairs of texts; the first place of the first one becomes the second.
Bug = collections.namedtuple("Bug", "name family what words changes")

# What isomer-capture hf is told beside --reduce --layers 2.
FAMILIES = {
    "helium": [],
    "nanochat": [],
    "diffllama": ["--attn", "eager"],
    "xglm": ["--attn", "eager"],
    "gpt_neo": ["--attn", "eager", "--set", "window_size=4"],
    "codegen": ["--attn", "eager"],
    "distilbert": [],
    "electra": ["--attn", "eager"],
    "dinov2": [],
    "biogpt": [],
    "solar_open": [],
    "cohere2": ["--attn", "eager"],
    "persimmon": ["--attn", "eager"],
    "albert": ["--attn", "eager"],
    "olmo3": ["--attn", "eager"],
    "bloom": ["--attn", "eager"],
    "bart": ["--attn", "eager"],
    "seed_oss": [],
    "apertus": [],
    "beit": [],
    "mpt": ["--attn", "eager"],
    "gemma2": ["--attn", "eager", "--set", "sliding_window=4", "--set", "query_pre_attn_scalar=24"],
    "phi3": [],
    "deepseek_v3": ["--attn", "eager"],
    "gpt_neox": ["--attn", "eager"],
    "siglip": [],
}

MLP = "self.act_fn(self.gate_proj(x)) * self.up_proj(x)"

BUGS = [
    Bug(
        "helium-eps",
        "helium",
        "the norms' eps is 1e-6, not the configured 1e-8",
        r"1e-08.* 1e-06",
        [("torch.rsqrt(variance + self.variance_epsilon)", "torch.rsqrt(variance + 1e-6)")],
    ),
    Bug(
        "helium-rotary-halves",
        "helium",
        "the first and the second half are rotated, not pairs",
        r"end is 16 on the left and 8|halves",
        [
            ("x1 = x[..., 0::2]", "x1 = x[..., : x.shape[-1] // 2]"),
            ("x2 = x[..., 1::2]", "x2 = x[..., x.shape[-1] // 2 :]"),
        ],
    ),
    Bug(
        "helium-gate-up",
        "helium",
        "gate and up are exchanged",
        r"gate_proj and .*up_proj are exchanged",
        [(MLP, "self.act_fn(self.up_proj(x)) * self.gate_proj(x)")],
    ),
    Bug(
        "helium-final-norm",
        "helium",
        "the last norm is left out",
        r"on the left model\.norm is applied",
        [("hidden_states = self.norm(hidden_states)\n        return", "return")],
    ),
    Bug(
        "helium-tied-head",
        "helium",
        "the head reads the table of the tokens",
        r"embed_tokens.* where the left reads .*lm_head",
        [
            (
                "logits = self.lm_head(hidden_states[:, slice_indices, :])",
                "logits = nn.functional.linear("
                "hidden_states[:, slice_indices, :], self.model.embed_tokens.weight)",
            )
        ],
    ),
    Bug(
        "helium-mask-second-layer",
        "helium",
        "layer 1 does not mask",
        r"is_causal is true on the left and false",
        [("self.is_causal = True", "self.is_causal = layer_idx == 0")],
    ),
    Bug(
        "nanochat-rotation-sign",
        "nanochat",
        "the rotation goes the other way",
        r"sign|neg|exchanged",
        [("return torch.cat((x2, -x1), dim=-1)", "return torch.cat((-x2, x1), dim=-1)")],
    ),
    Bug(
        "nanochat-activation",
        "nanochat",
        "relu without its square",
        r"pow|square|relu",
        [("self.activation_fn = ACT2FN[config.hidden_act]", 'self.activation_fn = ACT2FN["relu"]')],
    ),
    Bug(
        "nanochat-residual",
        "nanochat",
        "no residual about the MLP",
        r"residual",
        [
            (
                "hidden_states = self.mlp(hidden_states)\n        hidden_states = residual + ",
                "hidden_states = self.mlp(hidden_states)\n        hidden_states = ",
            )
        ],
    ),
    Bug(
        "nanochat-layer",
        "nanochat",
        "layer 0 runs twice, layer 1 never",
        r"layers\.1.*layers\.0|layers\.0.*layers\.1|layer 1.*layer 0|layer 0.*layer 1",
        [
            (
                "self.layers[: self.config.num_hidden_layers]:",
                "[self.layers[0]] * self.config.num_hidden_layers:",
            )
        ],
    ),
    Bug(
        "nanochat-kv-norm",
        "nanochat",
        "the keys are not normalised",
        r"k_norm is applied",
        [("key_states = self.k_norm(key_states)", "pass")],
    ),
    Bug(
        "diffllama-sign",
        "diffllama",
        "the two maps of attention are added",
        r"aten::sub.*aten::add|sign|subtract",
        [
            (
                "attn_output1 - lambda_full * attn_output2",
                "attn_output1 + lambda_full * attn_output2",
            )
        ],
    ),
    Bug(
        "diffllama-factor",
        "diffllama",
        "the factor of 1 - lambda_init is left out",
        r"times|multiplied|factor",
        [("(1 - self.lambda_init) * self.groupnorm", "self.groupnorm")],
    ),
    Bug(
        "diffllama-lambda",
        "diffllama",
        "lambda_k2 is read in the place of lambda_k1",
        r"lambda_k1|lambda_k2",
        [("self.lambda_q1 * self.lambda_k1", "self.lambda_q1 * self.lambda_k2")],
    ),
    Bug(
        "xglm-position",
        "xglm",
        "positions are one too early",
        r"rows that are 1 earlier",
        [("position_ids = position_ids + self.offset", "position_ids = position_ids + 1")],
    ),
    Bug(
        "xglm-scale",
        "xglm",
        "queries are not scaled",
        r"multiplied by 0\.25|times|scale",
        [("self.q_proj(hidden_states) * self.scaling", "self.q_proj(hidden_states)")],
    ),
    Bug(
        "xglm-norm",
        "xglm",
        "the MLP has the norm of the attention",
        r"final_layer_norm|self_attn_layer_norm",
        [
            (
                "hidden_states = self.final_layer_norm(hidden_states)",
                "hidden_states = self.self_attn_layer_norm(hidden_states)",
            )
        ],
    ),
    Bug(
        "gpt_neo-window",
        "gpt_neo",
        "the local layers' window is one token larger",
        r"right's mask shows 5 places",
        [
            ("tril(bias, -config.window_size)", "tril(bias, -config.window_size - 1)"),
            ("-module.config.window_size", "-module.config.window_size - 1"),
        ],
    ),
    Bug(
        "gpt_neo-scale",
        "gpt_neo",
        "scores are scaled, which this model does not",
        r"divided by 4",
        [
            (
                "attn_weights = torch.matmul(query, key.transpose(-1, -2))",
                "attn_weights = torch.matmul(query, key.transpose(-1, -2)) / self.head_dim**0.5",
            )
        ],
    ),
    Bug(
        "gpt_neo-key-value",
        "gpt_neo",
        "keys and values are exchanged",
        r"k_proj and .*v_proj are exchanged",
        [("self._attn(query, key, value,", "self._attn(query, value, key,")],
    ),
    Bug(
        "codegen-split",
        "codegen",
        "the fused projection is split in the usual order",
        r"part 2 of .* and part 1 of .* exchanged",
        [("query, value, key = torch.split", "query, key, value = torch.split")],
    ),
    Bug(
        "codegen-sin-cos",
        "codegen",
        "sine and cosine are exchanged",
        r"exchanged",
        [("sin, cos = torch.split", "cos, sin = torch.split")],
    ),
    Bug(
        "codegen-parallel",
        "codegen",
        "the MLP reads what was not normalised",
        r"reads .* where the left reads .*ln_1",
        [("self.mlp(hidden_states)", "self.mlp(residual)")],
    ),
    Bug(
        "distilbert-residual",
        "distilbert",
        "no residual about the attention",
        r"residual",
        [
            (
                "self.sa_layer_norm(attention_output + hidden_states)",
                "self.sa_layer_norm(attention_output)",
            )
        ],
    ),
    Bug(
        "distilbert-norm-first",
        "distilbert",
        "the norm stands before the residual, not after it",
        r"residual.* added before layer_norm",
        [
            (
                "self.output_layer_norm(ffn_output + attention_output)",
                "self.output_layer_norm(ffn_output) + attention_output",
            )
        ],
    ),
    Bug(
        "distilbert-position",
        "distilbert",
        "positions begin at one",
        r"start is 0 on the left and 1 on",
        [("self.position_ids[:, :seq_length]", "self.position_ids[:, 1 : seq_length + 1]")],
    ),
    Bug(
        "electra-softmax-dim",
        "electra",
        "softmax over the queries",
        r"dim is 3 on the left and 2",
        [
            (
                "nn.functional.softmax(attn_weights, dim=-1)",
                "nn.functional.softmax(attn_weights, dim=-2)",
            )
        ],
    ),
    Bug(
        "electra-key-projection",
        "electra",
        "the keys are projected as the queries are",
        r"key\.weight",
        [
            (
                "# get all proj\n        query_layer = self.query(hidden_states)"
                ".view(*hidden_shape).transpose(1, 2)\n        key_layer = self.key(hidden_states)",
                "# get all proj\n        query_layer = self.query(hidden_states)"
                ".view(*hidden_shape).transpose(1, 2)\n        key_layer = "
                "nn.functional.linear(hidden_states, self.query.weight, self.query.bias)",
            )
        ],
    ),
    Bug(
        "electra-token-type",
        "electra",
        "the table of token types is not added",
        r"token_type",
        [("embeddings = inputs_embeds + token_type_embeddings", "embeddings = inputs_embeds")],
    ),
    Bug(
        "dinov2-layer-scale",
        "dinov2",
        "the second branch is not scaled",
        r"layer_scale2\.lambda1",
        [("layer_output = self.layer_scale2(layer_output)", "pass")],
    ),
    Bug(
        "dinov2-cls-last",
        "dinov2",
        "the class token stands last",
        r"exchanged|order",
        [
            (
                "torch.cat((cls_tokens, embeddings), dim=1)",
                "torch.cat((embeddings, cls_tokens), dim=1)",
            )
        ],
    ),
    Bug(
        "dinov2-double-scale",
        "dinov2",
        "scores are scaled twice",
        r"0\.25.*0\.0625|times|scale",
        [("scaling=self.scaling,", "scaling=self.scaling * self.scaling,")],
    ),
    Bug(
        "biogpt-position",
        "biogpt",
        "positions lack their offset of two",
        r"2 is added",
        [("super().forward(position_ids + self.offset)", "super().forward(position_ids)")],
    ),
    Bug(
        "biogpt-gelu",
        "biogpt",
        "GELU by tanh, not exactly",
        r"approximate|tanh|gelu",
        [("ACT2FN[config.hidden_act]", 'ACT2FN["gelu_pytorch_tanh"]')],
    ),
    Bug(
        "biogpt-embed-scale",
        "biogpt",
        "tokens are not scaled by the root of the width",
        r"multiplied|times|scale",
        [("super().forward(input_ids) * self.embed_scale", "super().forward(input_ids)")],
    ),
    Bug(
        "solar-shared-expert",
        "solar_open",
        "the shared experts are left out",
        r"shared_experts|not added",
        [("hidden_states = hidden_states + self.shared_experts(residuals)", "pass")],
    ),
    Bug(
        "solar-renormalise",
        "solar_open",
        "the chosen experts' weights are not renormalised",
        r"divided|renorm|div",
        [("            topk_weights /= denominator\n", "")],
    ),
    Bug(
        "solar-router-softmax",
        "solar_open",
        "the router has softmax in the place of sigmoid",
        r"sigmoid on the left and aten::softmax",
        [("router_logits.sigmoid()", "router_logits.softmax(-1)")],
    ),
    Bug(
        "solar-rotary-rows",
        "solar_open",
        "cosine is read where sine should be",
        r"cos.* and .*sin.* are exchanged",
        [
            (
                "q_embed = (q * cos) + (rotate_half(q) * sin)",
                "q_embed = (q * sin) + (rotate_half(q) * cos)",
            )
        ],
    ),
]
