"""More of planted_bugs.py, of families that it has not."""

from planted_bugs import MLP, Bug

BUGS = [
    Bug(
        "cohere2-mean",
        "cohere2",
        "norm doesn't subtract the mean when scaling",
        r"reads .*embedding.* where the left reads .*sub",
        [
            (
                "hidden_states = (hidden_states - mean) * torch.rsqrt",
                "hidden_states = hidden_states * torch.rsqrt",
            )
        ],
    ),
    Bug(
        "cohere2-serial",
        "cohere2",
        "MLP reads the attention's output",
        r"o_proj where the left reads .*input_layernorm",
        [
            (
                "hidden_states_mlp = self.mlp(hidden_states)",
                "hidden_states_mlp = self.mlp(hidden_states_attention)",
            )
        ],
    ),
    Bug(
        "cohere2-logit-scale",
        "cohere2",
        "logits not scaled",
        r"0\.0625 on the left and 1\.0",
        [("logits = logits * self.logit_scale", "logits = logits * 1.0")],
    ),
    Bug(
        "persimmon-qk-swap",
        "persimmon",
        "q and k exchanged in fused",
        r"are exchanged",
        [
            (
                "return fused_qkv[..., 0, :], fused_qkv[..., 1, :]",
                "return fused_qkv[..., 1, :], fused_qkv[..., 0, :]",
            )
        ],
    ),
    Bug(
        "persimmon-partial",
        "persimmon",
        "rotated part is appended behind",
        r"are exchanged in cat",
        [
            (
                "torch.cat((query_rot, query_pass), dim=-1)",
                "torch.cat((query_pass, query_rot), dim=-1)",
            )
        ],
    ),
    Bug(
        "persimmon-klayernorm",
        "persimmon",
        "keys take q's norm",
        r"q_layernorm where the left reads those of .*k_layernorm",
        [
            (
                "key_states = self.k_layernorm(key_states)",
                "key_states = self.q_layernorm(key_states)",
            )
        ],
    ),
    Bug(
        "albert-postnorm",
        "albert",
        "attention's residual missing",
        r"the residual .* is added, and on the right it is not",
        [("self.LayerNorm(hidden_states + attn_output)", "self.LayerNorm(attn_output)")],
    ),
    Bug(
        "albert-positions",
        "albert",
        "no position embeddings",
        r"position_embeddings is added, and on the right it is not",
        [("embeddings = embeddings + position_embeddings", "embeddings = embeddings")],
    ),
    Bug(
        "albert-shift",
        "albert",
        "one position further",
        r"start is 0 on the left and 1",
        [
            (
                "position_ids = self.position_ids[:, :seq_length]",
                "position_ids = self.position_ids[:, 1 : seq_length + 1]",
            )
        ],
    ),
    Bug(
        "albert-scale",
        "albert",
        "scale of hidden size, not head",
        r"0\.25 on the left and 0\.125",
        [
            (
                "self.scaling = self.attention_head_size**-0.5",
                "self.scaling = self.hidden_size**-0.5",
            )
        ],
    ),
    Bug(
        "olmo3-norm-place",
        "olmo3",
        "norm before o_proj residual: pre instead of post",
        r"mlp is applied before .*post_feedforward_layernorm, and on the right after",
        [
            (
                "hidden_states = self.mlp(hidden_states)\n"
                "        hidden_states = self.post_feedforward_layernorm(hidden_states)",
                "hidden_states = self.post_feedforward_layernorm(hidden_states)\n"
                "        hidden_states = self.mlp(hidden_states)",
            )
        ],
    ),
    Bug(
        "olmo3-knorm",
        "olmo3",
        "values normalised in place of keys",
        r"v_proj where the left reads .*k_proj",
        [
            (
                "key_states = self.k_norm(self.k_proj(hidden_states))\n"
                "        value_states = self.v_proj(hidden_states)",
                "key_states = self.k_proj(hidden_states)\n"
                "        value_states = self.k_norm(self.v_proj(hidden_states))",
            )
        ],
    ),
    Bug(
        "olmo3-up",
        "olmo3",
        "no up projection",
        r"multiplied by .*up_proj, and on the right it is not",
        [("self.act_fn(self.gate_proj(x)) * self.up_proj(x)", "self.act_fn(self.gate_proj(x))")],
    ),
    Bug(
        "olmo3-rope-k",
        "olmo3",
        "keys aren't rotated",
        r"goes through .* with the results of model\.rotary_emb .*, and on the right it does not",
        [("k_embed = (k * cos) + (rotate_half(k) * sin)", "k_embed = k")],
    ),
    Bug(
        "bloom-alibi",
        "bloom",
        "slopes from power 0",
        r"arange.* begins one too late",
        [
            (
                "powers = torch.arange(1, 1 + closest_power_of_2",
                "powers = torch.arange(0, closest_power_of_2",
            )
        ],
    ),
    Bug(
        "bloom-v-k",
        "bloom",
        "value and key exchanged",
        r"are exchanged",
        [
            ("key_layer = fused_qkv[..., 1, :]", "key_layer = fused_qkv[..., 2, :]"),
            ("value_layer = fused_qkv[..., 2, :]", "value_layer = fused_qkv[..., 1, :]"),
        ],
    ),
    Bug(
        "bart-pos-offset",
        "bart",
        "positions without offset 2",
        r"on the left 2 is added, and on the right it is not",
        [
            (
                "return super().forward(position_ids + self.offset)",
                "return super().forward(position_ids)",
            )
        ],
    ),
    Bug(
        "bart-cross-self",
        "bart",
        "cross attention reads the decoder's states",
        r"decoder.* where the left reads .*encoder",
        [
            (
                "current_states = key_value_states if is_cross_attention else hidden_states",
                "current_states = hidden_states",
            )
        ],
    ),
    Bug(
        "bart-prenorm",
        "bart",
        "norm left out behind cross attention",
        r"encoder_attn_layer_norm .*is applied, and on the right it is not",
        [
            (
                "hidden_states = self.encoder_attn_layer_norm(hidden_states)",
                "hidden_states = hidden_states",
            )
        ],
    ),
    Bug(
        "seed-last-layer",
        "seed_oss",
        "last layer left out",
        r"model\.layers\.1 is applied, and on the right it is not",
        [
            (
                "self.layers[: self.config.num_hidden_layers]",
                "self.layers[: self.config.num_hidden_layers - 1]",
            )
        ],
    ),
    Bug(
        "apertus-qnorm",
        "apertus",
        "queries not normalised",
        r"q_norm is applied, and on the right it is not",
        [("query_states = self.q_norm(query_states)", "query_states = query_states")],
    ),
    Bug(
        "apertus-norms",
        "apertus",
        "attention_layernorm used twice",
        r"attention_layernorm.* where the left reads .*feedforward_layernorm",
        [
            (
                "hidden_states = self.feedforward_layernorm(hidden_states)",
                "hidden_states = self.attention_layernorm(hidden_states)",
            )
        ],
    ),
    Bug(
        "mpt-alibi-sign",
        "mpt",
        "alibi with the sign turned",
        r"neg is applied",
        [("alibi = alibi * slopes", "alibi = -alibi * slopes")],
    ),
    Bug(
        "mpt-scale",
        "mpt",
        "no softmax scale",
        r"multiplied by 0\.25, and on the right it is not",
        [
            (
                "attention_scores = torch.matmul(query_states, "
                "key_states.transpose(-1, -2)) * self.softmax_scale",
                "attention_scores = torch.matmul(query_states, key_states.transpose(-1, -2))",
            )
        ],
    ),
    Bug(
        "mpt-residual",
        "mpt",
        "residual of MLP is normed value",
        r"norm_2 where the left reads .*add_3",
        [("# Get residual\n        residual = hidden_states", "residual = layernorm_output")],
    ),
    Bug(
        "beit-lambda",
        "beit",
        "layer scale left out",
        r"multiplied by .*lambda_1.*, and on the right it is not",
        [("hidden_states = self.lambda_1 * hidden_states", "hidden_states = hidden_states")],
    ),
]
