/* Definitions for the symbolic prover that are other operators in a term: "aten::mse_loss" is a
 * mean of squares. Nothing is told twice: shapes, domains and elements are those of the operators
 * in the term. They are of floating tensors, indices aside.
 *
 * In a text, `$name` is the operator's argument of that name; calls are in the rule language, their
 * arguments in the schema's order (keyword-only ones too) and omitted ones at their defaults. */
#include <stdlib.h>
#include <string.h>

#include "validate/ops/ops.h"

typedef struct written {
  const char *op;
  const char *when, *is; /* only where these arguments are these literals ("none" too), one space
                            between; NULL: always */
  const char *text[2];   /* its results, as many as are told */
  enum {
    ALONE,
    ALONE_OF_NUMBERS,
    ALONE_OF_RANK,
    ALONE_OF_IMAGES,
    ALONE_OF_MATRIX,
    FIRST,
    FIRST_OF_MATRIX
  } form; /* its only result; the same, of integers too; and its tensors are of one rank; of more
           * than two dimensions; and its first tensor is a matrix; its first ones; the same, and
           * its first tensor is a matrix */
} written;

/* Each token through its own experts' weights, weighted and added; biases and other ranks' experts
 * have no definition. */
#define BY_TOKEN(w, x) \
  "(aten::squeeze.dim (aten::matmul (aten::index.Tensor $" w \
  " (list $topk_ids)) (aten::unsqueeze " x " -1)) -1)"
#define GATED_UP BY_TOKEN("w1", "(aten::unsqueeze $hidden_states 1)")
#define EXPERTS(name, activation, act) \
  { \
    name, "activation apply_router_weight_on_input expert_map w1_bias w2_bias", \
        activation " false none none none", \
        {"(aten::sum.dim_IntList (aten::mul.Tensor " BY_TOKEN( \
            "w2", "(aten::mul.Tensor (" act " (getitem (aten::chunk " GATED_UP \
                  " 2 -1) 0)) (getitem (aten::chunk " GATED_UP \
                  " 2 -1) 1))") " (aten::unsqueeze $topk_weights -1)) (list 1))"}, \
        ALONE \
  }
#define BATCH_NORM \
  "(aten::batch_norm $input $weight $bias $running_mean $running_var false $momentum $eps false)"
/* x at the shape of x and y, at length 1. */
#define AT_BOTH(x, y) "(aten::add.Tensor $" x " $" y " 0)"
#define UNIT(x, y) \
  "(aten::div.Tensor " AT_BOTH(x, y) " (aten::clamp_min (aten::linalg_vector_norm " AT_BOTH( \
      x, y) " 2 (list $dim) true) $eps))"
#define PREPENDED "(aten::cat (list $prepend $self) $dim)"
#define POOL(n) "(aten::max_pool" n " $self $kernel_size $stride $padding $dilation $ceil_mode)"
/* What was there before is gone.
 *
 * call: "(var x f ($A $B))" "(aten::zero x)"
 * call: "(var n i ($A $B))" "(aten::zero n)"
 * call: "(var x f ($A $B))" "(aten::fill.Scalar x 1.5)" */
#define NOTHING_BUT(value) "(aten::full_like $self " value ")"
#define SQUARE "(aten::square (aten::sub.Tensor $self $target))"
#define DISTANCE "(aten::abs (aten::sub.Tensor $self $target))"
#define BILINEAR "(aten::einsum \"bi,oij,bj->bo\" (list $input1 $weight $input2))"
/* Of labels that are 1 and -1; the loss has the shape of self.
 *
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::soft_margin_loss x y 0)"
 * call: "(var x f ($P $B)) (var y f ($P 1))" "(aten::soft_margin_loss x y 1)"
 * call: "(var x f ($A)) (var y f ($A))" "(aten::soft_margin_loss x y 2)" */
#define SOFT_MARGIN \
  "(aten::log1p (aten::exp (aten::neg (aten::mul.Tensor $self (aten::expand_as $target $self)))))"
/* Half a square up to delta, from there on straight; the other one is divided by its beta. */
#define HUBER \
  "(aten::where.self (aten::lt.Scalar " DISTANCE " $delta) (aten::mul.Scalar " SQUARE " 0.5)" \
  " (aten::mul.Scalar (aten::sub.Tensor " DISTANCE " (aten::mul.Scalar (aten::full_like " DISTANCE \
  " $delta) 0.5)) $delta))"
#define SMOOTH_L1 \
  "(aten::where.self (aten::lt.Scalar " DISTANCE \
  " $beta) (aten::div.Scalar (aten::mul.Scalar " SQUARE " 0.5) $beta)" \
  " (aten::sub.Tensor " DISTANCE " (aten::mul.Scalar (aten::full_like " DISTANCE " $beta) 0.5)))"
#define ONE_LESS(x) "(aten::rsub.Scalar $" x " 1)"
#define LOGITS "(aten::expand_as $self $target)"
#define CROSS_ENTROPY_LOGITS \
  "(aten::sub.Tensor (aten::mul.Tensor " ONE_LESS("target") " " LOGITS \
                                                            ") (aten::log_sigmoid " LOGITS "))"
#define DIVERGENCE \
  "(aten::sub.Tensor (aten::xlogy.Tensor $target $target) (aten::mul.Tensor $target $self))"
#define LOG_DIVERGENCE "(aten::mul.Tensor (aten::exp $target) (aten::sub.Tensor $target $self))"
/* A loss by its reduction: 0 none, 1 mean, 2 sum. */
#define LOSS(op, names, values, x, form) \
  {op, "reduction" names, "0" values, {x}, form}, \
      {op, "reduction" names, "1" values, {"(aten::mean " x ")"}, form}, { \
    op, "reduction" names, "2" values, {"(aten::sum " x ")"}, form \
  }
/* Of three components along dim. */
#define PART(x, k) "(getitem (aten::split_with_sizes $" x " (list 1 1 1) $dim) " k ")"
#define MINOR(i, j) \
  "(aten::sub.Tensor (aten::mul.Tensor " PART("self", i) " " PART( \
      "other", j) ") (aten::mul.Tensor " PART("self", j) " " PART("other", i) "))"
#define CROSS "(aten::cat (list " MINOR("1", "2") " " MINOR("2", "0") " " MINOR("0", "1") ") $dim)"
/* Transposed within, so that vectors are refused. */
#define TURNED(x) "(aten::transpose.int " x " -1 -2)"
#define SELF TURNED("$self")
#define POWER(op) \
  {op, "n", "2", {TURNED("(aten::matmul " SELF " " SELF ")")}, ALONE}, { \
    op, "n", "3", {TURNED("(aten::matmul (aten::matmul " SELF " " SELF ") " SELF ")")}, ALONE \
  }
#define ADDMM "(aten::addmm $self $mat1 $mat2 $beta $alpha)"

/* Gradients of element-wise functions, of the result or of the operand.
 *
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::sigmoid_backward x y)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::tanh_backward x y)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::silu_backward x y)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::mish_backward x y)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::leaky_relu_backward x y 0.1 false)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::threshold_backward x y 0)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::threshold_backward x y 0.25)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::hardsigmoid_backward x y)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::hardswish_backward x y)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::hardtanh_backward x y -1 3)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::hardshrink_backward x y 0.5)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::softshrink_backward x y 0.5)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::softplus_backward x y 2 1)"
 * call: "(var x f ($A $B)) (var y f ($A $B))" "(aten::elu_backward x 1.5 0.5 2 false y)" */
#define SIGMOID_BACKWARD \
  "(aten::mul.Tensor $grad_output (aten::mul.Tensor $output " ONE_LESS("output") "))"
#define TANH_BACKWARD "(aten::mul.Tensor $grad_output (aten::rsub.Scalar (aten::square $output) 1))"
#define SILU_BACKWARD \
  "(aten::mul.Tensor $grad_output (aten::mul.Tensor (aten::sigmoid $self) (aten::add.Scalar " \
  "(aten::mul.Tensor $self (aten::rsub.Scalar (aten::sigmoid $self) 1)) 1)))"
#define SOFTPLUS_TANH "(aten::tanh (aten::softplus $self))"
#define MISH_BACKWARD \
  "(aten::mul.Tensor $grad_output (aten::add.Tensor " SOFTPLUS_TANH " (aten::mul.Tensor " \
  "(aten::mul.Tensor $self (aten::sigmoid $self)) (aten::rsub.Scalar (aten::square " SOFTPLUS_TANH \
  ") 1))))"
#define LEAKY_RELU_BACKWARD \
  "(aten::where.self (aten::gt.Scalar $self 0) $grad_output (aten::mul.Scalar $grad_output " \
  "$negative_slope))"
#define THRESHOLD_BACKWARD \
  "(aten::where.ScalarOther (aten::gt.Scalar $self $threshold) $grad_output 0.0)"
#define HARDSIGMOID_BACKWARD \
  "(aten::where.ScalarOther (aten::lt.Scalar (aten::abs $self) 3) (aten::div.Scalar $grad_output " \
  "6) 0.0)"
#define HARDSWISH_BACKWARD \
  "(aten::where.ScalarSelf (aten::le.Scalar $self -3) 0.0 (aten::where.self (aten::lt.Scalar " \
  "$self 3) " \
  "(aten::mul.Tensor $grad_output (aten::add.Scalar (aten::div.Scalar $self 3) 0.5)) " \
  "$grad_output))"
#define HARDTANH_BACKWARD \
  "(aten::where.ScalarSelf (aten::logical_or (aten::le.Scalar $self $min_val) (aten::ge.Scalar " \
  "$self $max_val)) 0.0 $grad_output)"
#define SHRINK_BACKWARD(grad) \
  "(aten::where.ScalarSelf (aten::le.Scalar (aten::abs $self) $lambd) 0.0 $" grad ")"
#define SOFTPLUS_BACKWARD \
  "(aten::where.self (aten::gt.Scalar (aten::mul.Scalar $self $beta) $threshold) $grad_output " \
  "(aten::mul.Tensor $grad_output (aten::sigmoid (aten::mul.Scalar $self $beta))))"
#define ELU_BACKWARD \
  "(aten::mul.Tensor $grad_output (aten::where.self (aten::le.Scalar $self_or_result 0) " \
  "(aten::mul.Scalar (aten::mul.Scalar (aten::mul.Scalar (aten::exp (aten::mul.Scalar " \
  "$self_or_result $input_scale)) $alpha) $scale) $input_scale) " \
  "(aten::mul.Scalar (aten::ones_like $self_or_result) $scale)))"

/* Gradients of losses by their reduction: the mean's is divided by how many elements there are.
 *
 * call: "(var x f ($A $B)) (var y f ($A $B)) (var z f ($A $B))" "(aten::mse_loss_backward x y z 0)"
 * call: "(var x f ()) (var y f ($P $Q)) (var z f ($P $Q))" "(aten::mse_loss_backward x y z 1)"
 * call: "(var x f ()) (var y f ($P $Q)) (var z f ($P $Q))" "(aten::mse_loss_backward x y z 2)"
 * call: "(var x f ()) (var y f ($P)) (var z f ($P))" "(aten::huber_loss_backward x y z 1 0.5)"
 * call: "(var x f ()) (var y f ($P)) (var z f ($P))" "(aten::huber_loss_backward x y z 2 0.5)"
 * call: "(var x f ()) (var y f ($P)) (var z f ($P))" "(aten::smooth_l1_loss_backward x y z 1 0.5)"
 * call: "(var x f ()) (var y f ($P)) (var z f ($P))" "(aten::smooth_l1_loss_backward x y z 2 0.5)"
 */
#define APART "(aten::sub.Tensor $self $target)"
#define MSE_SLOPE "(aten::mul.Scalar " APART " 2.0)"
#define HUBER_SLOPE \
  "(aten::neg (aten::clamp_max (aten::neg (aten::clamp_max " APART " $delta)) $delta))"
#define SMOOTH_SLOPE "(aten::clamp (aten::div.Scalar " APART " $beta) -1 1)"
#define GRADIENT(op, slope) \
  {op, "reduction", "0", {"(aten::mul.Tensor $grad_output " slope ")"}, ALONE}, \
      {op, \
       "reduction", \
       "1", \
       {"(aten::div.Tensor (aten::mul.Tensor $grad_output " slope \
        ") (aten::sum (aten::ones_like $self)))"}, \
       ALONE}, \
  { \
    op, "reduction", "2", {"(aten::mul.Tensor $grad_output " slope ")"}, ALONE \
  }

/* Cells of recurrent layers: the state is a matrix, which what turns it refuses to be else. */
#define OF_STATE "(aten::linear (aten::t (aten::transpose.int $hx 0 1)) $w_hh $b_hh)"
/* Of as many rows: they are not repeated. */
#define OF_INPUT "(aten::reshape_as (aten::linear $input $w_ih $b_ih) " OF_STATE ")"
#define GATE(of, k) "(getitem (aten::chunk " of " 3 1) " k ")"
#define GATES(k) "(aten::sigmoid (aten::add.Tensor " GATE(OF_INPUT, k) " " GATE(OF_STATE, k) "))"
#define FRESH \
  "(aten::tanh (aten::add.Tensor " GATE(OF_INPUT, "2") " (aten::mul.Tensor " GATES("0") " " GATE( \
      OF_STATE, "2") ")))"
#define GRU_CELL \
  "(aten::add.Tensor (aten::mul.Tensor (aten::sub.Tensor $hx " FRESH ") " GATES("1") ") " FRESH ")"

/* Whether each element is one of the others. Elements that the caller says are all different, and
 * are not, may be missed.
 *
 * call: "(var n i ($A $B)) (var m i ($C))" "(aten::isin.Tensor_Tensor n m)"
 * call: "(var n i ($A)) (var m i ($C $D))" "(aten::isin.Tensor_Tensor n m :invert true)"
 * call: "(var x f ($A $B)) (var y f ())" "(aten::isin.Tensor_Tensor x y)"
 * call: "(var n i ($A $B))" "(aten::isin.Tensor_Scalar n 1)"
 * call: "(var n i ($A $B))" "(aten::isin.Tensor_Scalar n 1 :invert true)"
 * call: "(var x f ($A $B))" "(aten::isin.Tensor_Scalar x 1)"
 * call: "(var n i ($A $B))" "(aten::isin.Scalar_Tensor 2 n)"
 * call: "(var n i ($A $B))" "(aten::isin.Scalar_Tensor 2 n :invert true)" */
#define IS_IN \
  "(aten::any.dim (aten::eq.Tensor (aten::unsqueeze $elements -1) (aten::flatten.using_ints " \
  "$test_elements 0 -1)) -1)"
#define IN_TENSOR "(aten::any (aten::eq.Scalar $test_elements $element))"
#define NOT(x) "(aten::logical_not " x ")"
#define ONE_OF(op, found, different) \
  {op, "assume_unique invert", "false false", {found}, ALONE_OF_NUMBERS}, { \
    op, "assume_unique invert", "false true", {different}, ALONE_OF_NUMBERS \
  }

static const written table[] = {
    ONE_OF("aten::isin.Tensor_Tensor", IS_IN, NOT(IS_IN)),
    ONE_OF("aten::isin.Tensor_Scalar", "(aten::eq.Scalar $elements $test_element)",
           "(aten::ne.Scalar $elements $test_element)"),
    ONE_OF("aten::isin.Scalar_Tensor", IN_TENSOR, NOT(IN_TENSOR)),
    {"aten::hardsigmoid_backward", NULL, NULL, {HARDSIGMOID_BACKWARD}, ALONE},
    {"aten::hardswish_backward", NULL, NULL, {HARDSWISH_BACKWARD}, ALONE},
    {"aten::hardtanh_backward", NULL, NULL, {HARDTANH_BACKWARD}, ALONE},
    {"aten::hardshrink_backward", NULL, NULL, {SHRINK_BACKWARD("grad_out")}, ALONE},
    {"aten::softshrink_backward", NULL, NULL, {SHRINK_BACKWARD("grad_output")}, ALONE},
    {"aten::softplus_backward", NULL, NULL, {SOFTPLUS_BACKWARD}, ALONE},
    {"aten::elu_backward", "is_result", "false", {ELU_BACKWARD}, ALONE},
    {"aten::rnn_tanh_cell",
     NULL,
     NULL,
     {"(aten::tanh (aten::add.Tensor " OF_INPUT " " OF_STATE "))"},
     ALONE_OF_MATRIX},
    {"aten::rnn_relu_cell",
     NULL,
     NULL,
     {"(aten::relu (aten::add.Tensor " OF_INPUT " " OF_STATE "))"},
     ALONE_OF_MATRIX},
    {"aten::gru_cell", NULL, NULL, {GRU_CELL}, ALONE_OF_MATRIX},
    GRADIENT("aten::mse_loss_backward", MSE_SLOPE),
    GRADIENT("aten::huber_loss_backward", HUBER_SLOPE),
    GRADIENT("aten::smooth_l1_loss_backward", SMOOTH_SLOPE),
    {"aten::sigmoid_backward", NULL, NULL, {SIGMOID_BACKWARD}, ALONE},
    {"aten::tanh_backward", NULL, NULL, {TANH_BACKWARD}, ALONE},
    {"aten::silu_backward", NULL, NULL, {SILU_BACKWARD}, ALONE},
    {"aten::mish_backward", NULL, NULL, {MISH_BACKWARD}, ALONE},
    {"aten::leaky_relu_backward", "self_is_result", "false", {LEAKY_RELU_BACKWARD}, ALONE},
    {"aten::threshold_backward", NULL, NULL, {THRESHOLD_BACKWARD}, ALONE},
    LOSS("aten::mse_loss", "", "", SQUARE, ALONE),
    LOSS("aten::l1_loss", "", "", DISTANCE, ALONE),
    LOSS("aten::huber_loss", "", "", HUBER, ALONE),
    LOSS("aten::smooth_l1_loss", "", "", SMOOTH_L1, ALONE),
    LOSS("aten::soft_margin_loss", "", "", SOFT_MARGIN, ALONE),
    LOSS("aten::binary_cross_entropy_with_logits", " weight pos_weight", " none none",
         CROSS_ENTROPY_LOGITS, ALONE),
    LOSS("aten::kl_div", " log_target", " false", DIVERGENCE, ALONE),
    LOSS("aten::kl_div", " log_target", " true", LOG_DIVERGENCE, ALONE),
    {"aten::bilinear", "bias", "none", {BILINEAR}, ALONE},
    {"aten::bilinear",
     NULL,
     NULL,
     {"(aten::add.Tensor " BILINEAR
      " (aten::reshape_as $bias (aten::select.int (aten::select.int $weight 1 0) 1 0)))"},
     ALONE},
    {"aten::linalg_cross", NULL, NULL, {CROSS}, ALONE_OF_RANK},
    {"aten::zero", NULL, NULL, {NOTHING_BUT("0")}, ALONE_OF_NUMBERS},
    {"aten::fill.Scalar", NULL, NULL, {NOTHING_BUT("$value")}, ALONE},
    {"aten::fliplr", NULL, NULL, {"(aten::flip $self (list 1))"}, ALONE},
    {"aten::flipud", NULL, NULL, {"(aten::flip $self (list 0))"}, ALONE},
    {"aten::diff",
     "n prepend append",
     "1 none none",
     {"(aten::sub.Tensor (aten::slice.Tensor $self $dim 1) (aten::slice.Tensor $self $dim 0 -1))"},
     ALONE_OF_NUMBERS},
    {"aten::diff",
     "n append",
     "1 none",
     {"(aten::sub.Tensor (aten::slice.Tensor " PREPENDED " $dim 1) (aten::slice.Tensor " PREPENDED
      " $dim 0 -1))"},
     ALONE_OF_NUMBERS},
    {"aten::logcumsumexp",
     NULL,
     NULL,
     {"(aten::log (aten::cumsum (aten::exp $self) $dim))"},
     ALONE},
    {"aten::deg2rad", NULL, NULL, {"(aten::mul.Scalar $self 0.017453292519943295)"}, ALONE},
    {"aten::rad2deg", NULL, NULL, {"(aten::mul.Scalar $self 57.295779513082323)"}, ALONE},
    {"aten::_int_mm",
     NULL,
     NULL,
     {"(aten::mm (aten::to.dtype $self int32) (aten::to.dtype $mat2 int32))"},
     ALONE},
    {"aten::linalg_matmul", NULL, NULL, {"(aten::matmul $self $other)"}, ALONE},
    {"aten::linalg_diagonal", NULL, NULL, {"(aten::diagonal $A $offset $dim1 $dim2)"}, ALONE},
    {"aten::linalg_norm",
     "ord dim dtype",
     "none none none",
     {"(aten::linalg_vector_norm $self 2 none $keepdim)"},
     ALONE},
    {"aten::linalg_matrix_norm.str_ord",
     "ord dtype",
     "\"fro\" none",
     {"(aten::linalg_vector_norm $self 2 $dim $keepdim)"},
     ALONE},
    {"aten::frobenius_norm.dim",
     NULL,
     NULL,
     {"(aten::linalg_vector_norm $self 2 $dim $keepdim)"},
     ALONE},
    /* No real number is NaN or infinite, and elements that are masked are minus infinity. */
    {"aten::isnan", NULL, NULL, {"(aten::ne.Tensor $self $self)"}, ALONE},
    {"aten::isposinf", NULL, NULL, {"(aten::eq.Scalar $self inf)"}, ALONE},
    {"aten::isneginf", NULL, NULL, {"(aten::eq.Scalar $self -inf)"}, ALONE},
    {"aten::isinf", NULL, NULL, {"(aten::eq.Scalar $self -inf)"}, ALONE},
    {"aten::isfinite", NULL, NULL, {"(aten::ne.Scalar $self -inf)"}, ALONE},
    {"aten::nanmean", "dtype", "none", {"(aten::mean.dim $self $dim $keepdim)"}, ALONE},
    {"aten::aminmax",
     "dim",
     "none",
     {"(aten::amin $self (list) $keepdim)", "(aten::amax $self (list) $keepdim)"},
     FIRST},
    {"aten::aminmax",
     NULL,
     NULL,
     {"(aten::amin $self (list $dim) $keepdim)", "(aten::amax $self (list $dim) $keepdim)"},
     FIRST},
    POWER("aten::matrix_power"),
    POWER("aten::linalg_matrix_power"),
    {"aten::linalg_vecdot",
     NULL,
     NULL,
     {"(aten::sum.dim_IntList (aten::mul.Tensor $x $y) (list $dim))"},
     ALONE},
    {"aten::cosine_similarity",
     NULL,
     NULL,
     {"(aten::sum.dim_IntList (aten::mul.Tensor " UNIT("x1", "x2") " " UNIT("x2",
                                                                            "x1") ") (list $dim))"},
     ALONE},
    {"aten::pairwise_distance",
     NULL,
     NULL,
     {"(aten::linalg_vector_norm (aten::add.Scalar (aten::sub.Tensor $x1 $x2) $eps) $p (list -1) "
      "$keepdim)"},
     ALONE},
    {"aten::dist",
     NULL,
     NULL,
     {"(aten::linalg_vector_norm (aten::sub.Tensor $self $other) $p)"},
     ALONE},
    {"aten::logaddexp2",
     NULL,
     NULL,
     {"(aten::log2 (aten::add.Tensor (aten::exp2 $self) (aten::exp2 $other)))"},
     ALONE},
    {"aten::float_power.Tensor_Scalar",
     NULL,
     NULL,
     {"(aten::pow.Tensor_Scalar (aten::to.dtype $self float64) $exponent)"},
     ALONE},
    {"aten::ldexp.Tensor", NULL, NULL, {"(aten::mul.Tensor $self (aten::exp2 $other))"}, ALONE},
    {"aten::take",
     NULL,
     NULL,
     {"(aten::index.Tensor (aten::reshape $self (list -1)) (list $index))"},
     ALONE},
    {"aten::channel_shuffle",
     NULL,
     NULL,
     {"(aten::flatten.using_ints (aten::transpose.int (aten::unflatten.int $self 1 (list $groups "
      "-1)) 1 2) 1 2)"},
     ALONE_OF_IMAGES},
    {"aten::nansum",
     NULL,
     NULL,
     {"(aten::sum.dim_IntList $self $dim $keepdim)"},
     ALONE}, /* no real number is NaN */
    {"aten::_addmm_activation", "use_gelu", "false", {"(aten::relu " ADDMM ")"}, ALONE},
    {"aten::_addmm_activation", "use_gelu", "true", {"(aten::gelu " ADDMM ")"}, ALONE},
    {"aten::scatter.reduce",
     "reduce",
     "\"add\"",
     {"(aten::scatter_add $self $dim $index $src)"},
     ALONE},
    {"aten::max_pool1d_with_indices", NULL, NULL, {POOL("1d")}, FIRST},
    {"aten::max_pool2d_with_indices", NULL, NULL, {POOL("2d")}, FIRST},
    {"aten::max_pool3d_with_indices", NULL, NULL, {POOL("3d")}, FIRST},
    {"aten::native_batch_norm", "training", "false", {BATCH_NORM}, FIRST},
    {"aten::native_batch_norm",
     "training running_mean running_var",
     "true none none",
     {"(aten::batch_norm $input $weight $bias none none true $momentum $eps false)"},
     FIRST},
    {"aten::_native_batch_norm_legit_no_training", NULL, NULL, {BATCH_NORM}, FIRST},
    {"aten::_fused_rms_norm",
     NULL,
     NULL,
     {"(aten::rms_norm $input $normalized_shape $weight $eps)"},
     FIRST},
    {"aten::_scaled_dot_product_attention_math",
     "dropout_mask",
     "none",
     {"(aten::scaled_dot_product_attention $query $key $value $attn_mask $dropout_p $is_causal "
      "$scale $enable_gqa)"},
     FIRST},
    {"_C::gelu_fast.isomer", NULL, NULL, {"(aten::gelu $input \"tanh\")"}, ALONE},
    EXPERTS("vllm::outplace_fused_experts.isomer", "\"silu\"", "aten::silu"),
    EXPERTS("vllm::outplace_fused_experts.isomer", "\"gelu\"", "aten::gelu"),
    EXPERTS("vllm::inplace_fused_experts.isomer", "\"silu\"", "aten::silu"),
    EXPERTS("vllm::inplace_fused_experts.isomer", "\"gelu\"", "aten::gelu"),
    {"_moe_C::topk_softmax.isomer",
     NULL,
     NULL,
     {"(getitem (aten::topk (aten::softmax.int $gating_output -1) $topk) 0)",
      "(getitem (aten::topk (aten::softmax.int $gating_output -1) $topk) 1)"},
     FIRST_OF_MATRIX},
};

typedef struct reader {
  pt_args *a;
  const char *at;
} reader;

enum { MOST_PARTS = 16 };

/* The argument of that name; none where it is left out. */
static const rule_term *argument(pt_args *a, const char *name, size_t n) {
  for (size_t i = 0; i < a->schema->n_args; i++)
    if (strlen(a->schema->arg[i].name) == n && !strncmp(a->schema->arg[i].name, name, n))
      return a->t->child[i];
  sc_fail(a->c, "%s has no argument %.*s", a->t->u.s, (int)n, name);
  return NULL;
}

static const rule_term *literal(reader *r, const char *word, size_t n) {
  iso_arena *arena = &r->a->c->arena;
  rule_dtype d;
  char text[64];
  if (n >= sizeof text) return NULL;
  memcpy(text, word, n);
  text[n] = 0;
  if (!strcmp(text, "none")) return rule_none(arena);
  if (!strcmp(text, "true") || !strcmp(text, "false")) return rule_bool(arena, *text == 't');
  if (*text == '"' && n > 1) return text[n - 1] = 0, rule_string(arena, text + 1);
  if (strchr(text, '.') || strstr(text, "inf")) return rule_float(arena, strtod(text, NULL));
  if (rule_dtype_find(text, &d)) return rule_dtype_term(arena, d);
  char *end;
  const long long whole = strtoll(text, &end, 10);
  if (*end) sc_fail(r->a->c, "\"%s\" in a written definition is no literal", text);
  return rule_int(arena, whole);
}

static const rule_term *read_term(reader *r);

static const rule_term *read_parts(reader *r) {
  sc *c = r->a->c;
  const rule_term *part[MOST_PARTS], *out = NULL;
  const char *op = ++r->at;
  const size_t n_op = strcspn(op, " )");
  size_t n = 0;
  iso_error err = {ISO_OK, ""};
  char name[80];
  r->at += n_op;
  while (*r->at == ' ' && n < MOST_PARTS) {
    r->at++;
    if (!(part[n++] = read_term(r))) return NULL;
  }
  if (*r->at != ')' || n_op >= sizeof name) return NULL;
  r->at++;
  memcpy(name, op, n_op);
  name[n_op] = 0;
  if (!strcmp(name, "list")) return rule_list(&c->arena, part, n);
  if (!strcmp(name, "getitem")) return rule_op(&c->arena, name, part, n);
  if (rule_call(&c->arena, c->schemas, name, part, n, &out, &err) != ISO_OK)
    sc_fail(c, "%s: %.120s", r->a->t->u.s, err.msg);
  return out;
}

static const rule_term *read_term(reader *r) {
  if (*r->at == '(') return read_parts(r);
  const char *word = r->at;
  const size_t n = strcspn(word, " )");
  r->at += n;
  return *word == '$' ? argument(r->a, word + 1, n - 1) : literal(r, word, n);
}

/* Whether each argument of `w->when` is the literal of w->is. */
static bool holds(pt_args *a, const written *w) {
  reader r = {a, w->is};
  for (const char *name = w->when; name && *name; r.at += *r.at == ' ') {
    const size_t n = strcspn(name, " ");
    const rule_term *have = argument(a, name, n), *want = read_term(&r);
    if (!have || !want || !rule_term_eq(have, want)) return false;
    name += n + (name[n] == ' ');
  }
  return true;
}

/* Whether all tensors are floating, except arguments called an index. */
static bool fits(pt_args *a, const written *w) {
  const pt_tensor *first = NULL;
  for (size_t i = 0; i < a->schema->n_args; i++) {
    if (a->schema->arg[i].type != RULE_ARG_TENSOR || a->t->child[i]->kind == RULE_NONE) continue;
    const pt_tensor *x = pt_eval_tensor(a->c, a->t->child[i]);
    const bool places =
        !strcmp(a->schema->arg[i].name, "index") || !strcmp(a->schema->arg[i].name, "topk_ids");
    const bool whole = x && x->kind == 'i' && w->form == ALONE_OF_NUMBERS;
    if (!x || (x->kind != (places ? 'i' : 'f') && !whole)) return false;
    const bool matrix = w->form == FIRST_OF_MATRIX || w->form == ALONE_OF_MATRIX;
    if (!first && matrix && (x->lead || x->rank != 2)) return false;
    if (!first && w->form == ALONE_OF_IMAGES && !x->lead && x->rank < 3) return false;
    if (first && w->form == ALONE_OF_RANK && (x->lead != first->lead || x->rank != first->rank))
      return false;
    first = first ? first : x;
  }
  return true;
}

static const pt_value *define_written(pt_args *a, int which) {
  const pt_tensor *t[2];
  size_t n = 0;
  const written *w = &table[which];
  for (; !holds(a, w); w++)
    if (a->c->fault.failed || w + 1 == table + sizeof table / sizeof *table ||
        strcmp(w[1].op, w->op) != 0)
      return NULL;
  if (!fits(a, w)) return NULL;
  for (; n < 2 && w->text[n]; n++) {
    reader r = {a, w->text[n]};
    const rule_term *term = read_term(&r);
    if (!term || !(t[n] = pt_eval_tensor(a->c, term))) return NULL;
  }
  return w->form <= ALONE_OF_MATRIX ? pt_one(a->c, t[0]) : pt_list(a->c, t, n);
}

bool pt_define_written(const char *name, pt_definition *out) {
  for (size_t i = 0; i < sizeof table / sizeof *table; i++)
    if (!strcmp(name, table[i].op))
      return *out = (pt_definition){table[i].op, define_written, (int)i}, true;
  return false;
}
