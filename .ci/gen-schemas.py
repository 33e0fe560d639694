#!/usr/bin/env python3
"""Write rules/schemas.def: the schemas of PyTorch's operators that a captured inference graph can
hold.

Kept are aten operators that write to nothing and return tensors, with arguments that a capture can
express. Needs torch, at build time of the table only: `make schemas` runs this, the table is
committed.
"""

import re
import sys

import torch

# Operators with a leading underscore that core ATen decompositions and exporters leave in graphs.
PRIVATE = """
_adaptive_avg_pool2d _adaptive_avg_pool3d _addmm_activation _aminmax _assert_tensor_metadata
_batch_norm_no_update _cdist_forward _chunk_cat _conj _conj_physical _convolution
_convolution_mode _efficient_attention_forward _embedding_bag _embedding_bag_forward_only
_euclidean_dist _fft_c2c _fft_c2r _fft_r2c _flash_attention_forward _fused_rms_norm _grouped_mm
_int_mm _is_all_true _is_any_true _lazy_clone _linalg_det _linalg_slogdet _log_softmax
_logcumsumexp _masked_softmax _native_batch_norm_legit_no_training
_native_batch_norm_legit_functional _native_multi_head_attention _neg_view _pad_circular
_pad_enum _pdist_forward _prelu_kernel _reshape_alias _reshape_copy _safe_softmax
_scaled_dot_product_attention_math _scaled_dot_product_cudnn_attention
_scaled_dot_product_efficient_attention _scaled_dot_product_flash_attention
_scaled_dot_product_flash_attention_for_cpu _scaled_dot_product_fused_attention_overrideable
_scaled_mm _shape_as_tensor _softmax _stack _to_copy _transform_bias_rescale_qkv _trilinear
_unsafe_index _unsafe_index_put _unsafe_masked_index _unsafe_view _upsample_bicubic2d_aa
_upsample_bilinear2d_aa _upsample_nearest_exact1d _upsample_nearest_exact2d
_upsample_nearest_exact3d _weight_norm _weight_norm_interface _weight_int8pack_mm __and__ __or__
__xor__ __lshift__ __rshift__
""".split()
DROPPED = re.compile(
    r"backward|sparse|quantiz|nested|mkldnn|cudnn|miopen|_test|ctc_loss|jagged|fbgemm|"
    r"choose_qparams|"
    r"q_per_channel|q_scale|coalesce|lstm|gru|rnn|_coo|_csr|_csc|_bsr|_bsc|int_repr|qscheme|"
    r"_copy_from|ccol_indices|crow_indices|row_indices|col_indices|forward_mode|make_dual|"
    r"refine_names|align_|^rename$|infinitely|functorch|to_padded|from_file|grad_sum"
)
# Backward operators of which joint graphs of forward and backward are made.
TRAINING = re.compile(
    r"^(_softmax_backward_data|_log_softmax_backward_data|gelu_backward|native_layer_norm_backward|"
    r"_scaled_dot_product_flash_attention_for_cpu_backward|"
    r"embedding_dense_backward|nll_loss_backward|slice_backward|select_backward|"
    r"mse_loss_backward|huber_loss_backward|smooth_l1_loss_backward)$"
)
# Backward operators of element-wise functions, which compiled training and joint graphs hold.
BACKWARD = re.compile(
    r"^(sigmoid|tanh|silu|gelu|mish|elu|softplus|logit|leaky_relu|threshold|hardtanh|hardsigmoid|"
    r"hardswish|hardshrink|softshrink)_backward$"
)
# What simulates a quantisation on floating tensors, and cells of recurrent layers as modules run
# them step by step.
FLOATING = re.compile(
    r"^(fake_quantize_per_tensor_affine(_cachemask(_backward)?)?|gru_cell|lstm_cell|"
    r"rnn_(tanh|relu)_cell)$"
)
OVERLOADS = re.compile(r"dimname|name[sd]|hacked_twin|complex|_out$|^out$", re.IGNORECASE)
ARGUMENT = re.compile(
    r"^(Tensor|int|SymInt|float|Scalar|bool|str|ScalarType|Layout|Device|MemoryFormat|Generator)"
    r"(\([a-z|*> -]*\))?\??(\[\d*\])?\??$"
)
RETURN = re.compile(r"^Tensor(\([a-z|*> -]*\))?(\[\])?$")


def split(text):
    """The parts of an argument or return list, at its commas outside brackets and quotes."""
    out, depth, quoted, part = [], 0, False, ""
    for c in text:
        quoted ^= c == '"'
        depth += (c in "([") - (c in ")]") if not quoted else 0
        if c == "," and depth == 0 and not quoted:
            out.append(part.strip())
            part = ""
        else:
            part += c
    return out + ([part.strip()] if part.strip() else [])


def kept(schema, text):
    base = schema.name[len("aten::") :]
    if base.endswith("_") and not base.endswith("__"):
        return False
    if (TRAINING.match(base) or FLOATING.match(base)) and not schema.overload_name:
        return True
    if base.startswith("_") and base not in PRIVATE:
        return False
    dropped = DROPPED.search(base) and not BACKWARD.match(base)
    if dropped or OVERLOADS.search(schema.overload_name):
        return False
    m = re.match(r"^[^(]*\((.*)\) -> (.*)$", text)
    args, ret = split(m.group(1)), m.group(2)
    rets = split(ret[1:-1]) if ret.startswith("(") else [ret]
    args = [re.match(r"(.*?) [\w]+(=.*)?$", a) for a in args if a != "*"]
    if not all(
        a and ARGUMENT.match(a.group(1)) and not a.group(1).startswith("str[") for a in args
    ):
        return False
    rets = [r.split(" ")[0] for r in rets]
    # Counts and generator states behind the tensors of the fused attention kernels are outputs too.
    private = (
        base in PRIVATE
        and rets[:1] == ["Tensor"]
        and all(r in ("Tensor", "SymInt", "int") for r in rets)
    )
    if len(rets) != 1 and any(r.endswith("[]") for r in rets):
        return False
    return len(rets) > 0 and (private or all(RETURN.match(r) for r in rets))


def main():
    lines = {}
    for s in torch._C._jit_get_all_schemas():
        if s.name.startswith("aten::"):
            text = str(s)
            if kept(s, text):
                lines[text[: text.index("(")]] = text
    out = [
        (
            "/* Generated by .ci/gen-schemas.py from PyTorch %s: do not edit. Sorted by name "
            "(bytes). */"
        )
        % torch.__version__.split("+")[0]
    ]
    for name in sorted(lines, key=lambda n: n.encode()):
        out.append('S("%s")' % lines[name].replace("\\", "\\\\").replace('"', '\\"'))
    with open(sys.argv[1] if len(sys.argv) > 1 else "rules/schemas.def", "w") as f:
        f.write("\n".join(out) + "\n")


if __name__ == "__main__":
    main()
