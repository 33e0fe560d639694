"""Convolutions, patches, pooling and resampling by shifts, products and views."""

from refactoring import *

C, M, L, K = 4, 6, 6, 3

# ---- along one dimension ----


def line(g):
    return g.x(1, C, L), g.param("w", C, 1, K), g.param("b", C)


def shifts(x, w, b, before=K - 1):
    y = None
    p = pad(x, (before, K - 1 - before))
    for k in range(K):
        one = p.slice(2, k, k + L) * w.select(2, k)
        y = one if y is None else y + one
    return y + b.unsqueeze(1)


depthwise = of(line)
depthwise(
    "causal convolution by shifts",
    "Mamba's conv1d: padded on both sides and cut",
    lambda x, w, b: conv1d(x, w, b, padding=K - 1, groups=C).slice(2, 0, L),
    shifts,
    ("shifted the other way", lambda x, w, b: shifts(x, w, b, 0)),
)
depthwise(
    "causal convolution, padded in front",
    "constant_pad_nd",
    lambda x, w, b: conv1d(x, w, b, padding=K - 1, groups=C).slice(2, 0, L),
    lambda x, w, b: conv1d(pad(x, (K - 1, 0)), w, b, groups=C),
    ("padded behind", lambda x, w, b: conv1d(pad(x, (0, K - 1)), w, b, groups=C)),
)
depthwise(
    "causal convolution by windows",
    "unfold and a sum",
    lambda x, w, b: conv1d(pad(x, (K - 1, 0)), w, b, groups=C),
    lambda x, w, b: (unfold(pad(x, (K - 1, 0)), 2, K, 1) * w.view(C, 1, K)).sum(3) + b.view(C, 1),
)
depthwise(
    "causal convolution step by step",
    "a state of the last tokens",
    lambda x, w, b: conv1d(pad(x, (K - 1, 0)), w, b, groups=C).silu(),
    lambda x, w, b: (
        lambda p: x.g.stack(
            [((p.slice(2, t, t + K) * w.view(1, C, K)).sum(2) + b).silu() for t in range(L)], 2
        )
    )(pad(x, (K - 1, 0))),
    (
        "a state of one token more",
        lambda x, w, b: (
            lambda p: x.g.stack(
                [((p.slice(2, t, t + K) * w.view(1, C, K)).sum(2) + b).silu() for t in range(L)], 2
            )
        )(pad(x, (K, 0))),
    ),
)
depthwise(
    "convolution of what was convolved before and is new",
    "a cache joined in front",
    lambda x, w, b: conv1d(pad(x, (K - 1, 0)), w, b, groups=C).slice(2, 4),
    lambda x, w, b: conv1d(x.slice(2, 2), w, b, groups=C),
)
depthwise(
    "short convolution of tokens first",
    "transposed before and behind",
    lambda x, w, b: conv1d(pad(x, (K - 1, 0)), w, b, groups=C).transpose(1, 2),
    lambda x, w, b: (
        lambda p: (
            sum(
                (p.slice(1, k, k + L) * w.select(2, k).view(C) for k in (1, 2)),
                p.slice(1, 0, L) * w.select(2, 0).view(C),
            )
            + b
        )
    )(pad(x.transpose(1, 2), (0, 0, K - 1, 0))),
)
full = of(lambda g: (g.x(1, C, L), g.param("w", M, C, K), g.param("b", M)))
full(
    "convolution by its taps",
    "a product for each",
    lambda x, w, b: conv1d(x, w, b, padding=1),
    lambda x, w, b: (
        lambda p: (
            sum(
                (w.select(2, k).matmul(p.slice(2, k, k + L)) for k in (1, 2)),
                w.select(2, 0).matmul(p.slice(2, 0, L)),
            )
            + b.view(M, 1)
        )
    )(pad(x, (1, 1))),
    (
        "taps reversed",
        lambda x, w, b: (
            lambda p: (
                sum(
                    (w.select(2, 2 - k).matmul(p.slice(2, k, k + L)) for k in (1, 2)),
                    w.select(2, 2).matmul(p.slice(2, 0, L)),
                )
                + b.view(M, 1)
            )
        )(pad(x, (1, 1))),
    ),
)
full(
    "convolution by windows and one product",
    "im2col",
    lambda x, w, b: conv1d(x, w, b),
    lambda x, w, b: (
        unfold(x, 2, K, 1)
        .permute(0, 2, 1, 3)
        .reshape(1, L - 2, C * K)
        .linear(w.view(M, C * K), b)
        .transpose(1, 2)
    ),
)
full(
    "convolution of stride 2 by windows",
    "Whisper's",
    lambda x, w, b: conv1d(x, w, b, stride=2, padding=1),
    lambda x, w, b: (
        x.g.einsum("bctk,mck->bmt", unfold(pad(x, (1, 1)), 2, K, 2), w) + b.unsqueeze(-1)
    ),
    (
        "of stride 2 from the next",
        lambda x, w, b: (
            x.g.einsum("bctk,mck->bmt", unfold(pad(x, (0, 2)), 2, K, 2), w) + b.unsqueeze(-1)
        ),
    ),
)
full(
    "dilated convolution by shifts",
    "every second place",
    lambda x, w, b: conv1d(x, w, b, padding=2, dilation=2),
    lambda x, w, b: (
        lambda p: (
            x.g.stack([p.slice(2, 2 * k, 2 * k + L) for k in range(K)], 3)
            .permute(0, 2, 1, 3)
            .reshape(1, L, C * K)
            .linear(w.flatten(1), b)
            .transpose(1, 2)
        )
    )(pad(x, (2, 2))),
)
full(
    "convolution as one of height 1",
    "conv2d",
    lambda x, w, b: conv1d(x, w, b, padding=1),
    lambda x, w, b: conv2d(x.unsqueeze(2), w.unsqueeze(2), b, padding=(0, 1)).squeeze(2),
)
full(
    "convolution of the reversed",
    "reversed taps",
    lambda x, w, b: conv1d(x, w, b),
    lambda x, w, b: conv1d(x.flip(2), w.flip(2), b).flip(2),
    ("taps as they were", lambda x, w, b: conv1d(x.flip(2), w, b).flip(2)),
)
full(
    "convolution in two groups of outputs",
    "rows of the weight",
    lambda x, w, b: conv1d(x, w, b),
    lambda x, w, b: x.g.cat(
        [conv1d(x, w.slice(0, 0, 2), b.slice(0, 0, 2)), conv1d(x, w.slice(0, 2), b.slice(0, 2))], 1
    ),
)
full(
    "convolution in two groups of inputs",
    "a sum",
    lambda x, w, b: conv1d(x, w, b),
    lambda x, w, b: (
        conv1d(x.slice(1, 0, 2), w.slice(1, 0, 2)) + conv1d(x.slice(1, 2), w.slice(1, 2), b)
    ),
)
of(lambda g: (g.x(1, C, L), g.param("w", M, C // 2, K)))(
    "grouped convolution",
    "halves of the channels",
    lambda x, w: conv1d(x, w, groups=2),
    lambda x, w: x.g.cat(
        [conv1d(x.slice(1, 0, 2), w.slice(0, 0, 3)), conv1d(x.slice(1, 2), w.slice(0, 3))], 1
    ),
    (
        "halves of the weight exchanged",
        lambda x, w: x.g.cat(
            [conv1d(x.slice(1, 0, 2), w.slice(0, 3)), conv1d(x.slice(1, 2), w.slice(0, 0, 3))], 1
        ),
    ),
)
of(lambda g: (g.x(1, C, L), g.param("d", C, 1, K), g.param("p", M, C, 1)))(
    "separable convolution",
    "depthwise then pointwise, in one weight",
    lambda x, d, p: conv1d(conv1d(x, d, groups=C), p),
    lambda x, d, p: conv1d(x, p * d.transpose(0, 1)),
)

# ---- images ----

N = 4


def image(g):
    return g.x(1, 3, N, N), g.param("w", M, 3, 2, 2), g.param("b", M)


patch = of(image)
patch(
    "patches by a view",
    "ViT: a convolution with its stride",
    lambda x, w, b: conv2d(x, w, b, stride=2).flatten(2).transpose(1, 2),
    lambda x, w, b: (
        x.view(1, 3, 2, 2, 2, 2)
        .permute(0, 2, 4, 1, 3, 5)
        .reshape(1, 4, 12)
        .linear(w.view(M, 12), b)
    ),
    (
        "channels last",
        lambda x, w, b: (
            x.view(1, 3, 2, 2, 2, 2)
            .permute(0, 2, 4, 3, 5, 1)
            .reshape(1, 4, 12)
            .linear(w.view(M, 12), b)
        ),
    ),
)
patch(
    "patches by im2col",
    "unfold and matmul",
    lambda x, w, b: conv2d(x, w, b, stride=2),
    lambda x, w, b: (w.flatten(1).matmul(im2col(x, 2, stride=2)) + b.unsqueeze(1)).view(1, M, 2, 2),
)
patch(
    "patches by unfold twice",
    "Tensor.unfold",
    lambda x, w, b: conv2d(x, w, b, stride=2),
    lambda x, w, b: (
        x.g.einsum("bchwij,mcij->bmhw", unfold(unfold(x, 2, 2, 2), 3, 2, 2), w) + b.view(M, 1, 1)
    ),
)
patch(
    "patches of pixels unshuffled",
    "pixel_unshuffle and a 1 x 1 convolution",
    lambda x, w, b: conv2d(x, w, b, stride=2),
    lambda x, w, b: conv2d(pixel_unshuffle(x, 2), w.view(M, 12, 1, 1), b),
)
patch(
    "patches of two frames",
    "Qwen2-VL: conv3d of one image twice",
    lambda x, w, b: conv3d(
        x.g.stack([x, x], 2), w.unsqueeze(2).repeat(1, 1, 2, 1, 1) * 0.5, b, (2, 2, 2)
    ).squeeze(2),
    lambda x, w, b: conv2d(x, w, b, stride=2),
)
patch(
    "convolution by im2col",
    "with padding",
    lambda x, w, b: conv2d(x, w, b, padding=1),
    lambda x, w, b: w.view(M, 12).matmul(im2col(x, 2, 1)).view(1, M, 5, 5) + b.view(1, M, 1, 1),
)
patch(
    "convolution by shifts",
    "a product for each place",
    lambda x, w, b: conv2d(x, w, b),
    lambda x, w, b: (
        sum(
            (
                x.g.einsum(
                    "bchw,mc->bmhw",
                    x.slice(2, i, i + 3).slice(3, j, j + 3),
                    w.select(3, j).select(2, i),
                )
                for i, j in ((0, 1), (1, 0), (1, 1))
            ),
            x.g.einsum(
                "bchw,mc->bmhw", x.slice(2, 0, 3).slice(3, 0, 3), w.select(3, 0).select(2, 0)
            ),
        )
        + b.view(M, 1, 1)
    ),
    (
        "rows and columns exchanged",
        lambda x, w, b: (
            sum(
                (
                    x.g.einsum(
                        "bchw,mc->bmhw",
                        x.slice(2, j, j + 3).slice(3, i, i + 3),
                        w.select(3, j).select(2, i),
                    )
                    for i, j in ((0, 1), (1, 0), (1, 1))
                ),
                x.g.einsum(
                    "bchw,mc->bmhw", x.slice(2, 0, 3).slice(3, 0, 3), w.select(3, 0).select(2, 0)
                ),
            )
            + b.view(M, 1, 1)
        ),
    ),
)
patch(
    "convolution padded before",
    "constant_pad_nd",
    lambda x, w, b: conv2d(x, w, b, padding=1),
    lambda x, w, b: conv2d(pad(x, (1, 1, 1, 1)), w, b),
    ("padded twice below", lambda x, w, b: conv2d(pad(x, (1, 1, 0, 2)), w, b)),
)
of(lambda g: (g.x(1, 3, N, N), g.param("w", M, 3, 1, 1), g.param("b", M)))(
    "1 x 1 convolution as a linear layer",
    "channels last",
    lambda x, w, b: conv2d(x, w, b),
    lambda x, w, b: x.permute(0, 2, 3, 1).linear(w.view(M, 3), b).permute(0, 3, 1, 2),
)
of(lambda g: (g.x(1, 3, N, N), g.param("w", M, 3, 1, 1), g.param("b", M)))(
    "1 x 1 convolution as a product",
    "pixels as columns",
    lambda x, w, b: conv2d(x, w, b, stride=2),
    lambda x, w, b: (
        w.view(M, 3).matmul(x.slice(2, 0, INF, 2).slice(3, 0, INF, 2).flatten(2)) + b.unsqueeze(1)
    ).view(1, M, 2, 2),
)
img = of(lambda g: (g.x(1, C, N, N),))
img(
    "average pooling by a view",
    "means of blocks",
    lambda x: pool2d(x, "avg_pool2d", 2),
    lambda x: x.view(1, C, 2, 2, 2, 2).mean([3, 5]),
    ("sums of blocks", lambda x: x.view(1, C, 2, 2, 2, 2).sum([3, 5])),
)
img(
    "average pooling by a convolution",
    "equal weights",
    lambda x: pool2d(x, "avg_pool2d", 2),
    lambda x: conv2d(x, x.g.full((C, 1, 2, 2), 0.25), stride=2, groups=C),
)
img(
    "maximum pooling by a view",
    "largest of blocks",
    lambda x: pool2d(x, "max_pool2d", 2),
    lambda x: x.view(1, C, 2, 2, 2, 2).amax([3, 5]),
)
img(
    "maximum pooling by shifts",
    "the larger of four",
    lambda x: pool2d(x, "max_pool2d", 2, 1),
    lambda x: (lambda r: r.slice(3, 0, 3).maximum(r.slice(3, 1, 4)))(
        x.slice(2, 0, 3).maximum(x.slice(2, 1, 4))
    ),
    ("the larger of two", lambda x: x.slice(2, 0, 3).maximum(x.slice(2, 1, 4)).slice(3, 0, 3)),
)
img(
    "pooled over all pixels",
    "adaptive pooling to 1",
    lambda x: x.op("adaptive_avg_pool2d", [x, [1, 1]], (1, C, 1, 1)),
    lambda x: x.mean([2, 3], True),
)
img(
    "squeeze and excitation",
    "a linear layer or a 1 x 1 convolution",
    lambda x: (
        x
        * conv2d(
            x.mean([2, 3], True), x.g.param("s", values("s", C, C).reshape(C, C, 1, 1))
        ).sigmoid()
    ),
    lambda x: (
        x
        * x.flatten(2).mean(2).linear(x.g.param("s", values("s", C, C))).sigmoid().view(1, C, 1, 1)
    ),
    (
        "the largest, not the mean",
        lambda x: (
            x
            * x.flatten(2)
            .amax(2)
            .linear(x.g.param("s", values("s", C, C)))
            .sigmoid()
            .view(1, C, 1, 1)
        ),
    ),
)
img(
    "pixels shuffled by a view",
    "depth to space",
    lambda x: pixel_shuffle(x, 2),
    lambda x: x.view(1, 1, 2, 2, N, N).permute(0, 1, 4, 2, 5, 3).reshape(1, 1, 2 * N, 2 * N),
    (
        "rows and columns exchanged",
        lambda x: x.view(1, 1, 2, 2, N, N).permute(0, 1, 4, 3, 5, 2).reshape(1, 1, 2 * N, 2 * N),
    ),
)
img(
    "pixels unshuffled by slices",
    "Swin's patch merging",
    lambda x: x.g.cat(
        [x.slice(2, i, INF, 2).slice(3, j, INF, 2) for j in (0, 1) for i in (0, 1)], 1
    ),
    lambda x: (
        pixel_unshuffle(x, 2)
        .view(1, C, 2, 2, 2, 2)
        .permute(0, 3, 2, 1, 4, 5)
        .reshape(1, 4 * C, 2, 2)
    ),
)
img(
    "nearest neighbours",
    "repeated pixels",
    lambda x: upsample_nearest(x, 2),
    lambda x: x.repeat_interleave(2, 2).repeat_interleave(2, 3),
    ("tiled", lambda x: x.repeat(1, 1, 2, 2)),
)
img(
    "nearest neighbours by expand",
    "a view between",
    lambda x: upsample_nearest(x, 2),
    lambda x: x.view(1, C, N, 1, N, 1).expand(1, C, N, 2, N, 2).reshape(1, C, 2 * N, 2 * N),
)
img(
    "channels shuffled",
    "ShuffleNet's",
    lambda x: x.op("channel_shuffle", [x, 2]),
    lambda x: x.view(1, 2, 2, N, N).transpose(1, 2).reshape(1, C, N, N),
)
img(
    "reflected border",
    "flipped slices joined",
    lambda x: x.op("reflection_pad2d", [x, [1, 1, 0, 0]], (1, C, N, N + 2)),
    lambda x: x.g.cat([x.slice(3, 1, 2), x, x.slice(3, N - 2, N - 1)], 3),
    ("repeated border", lambda x: x.g.cat([x.slice(3, 0, 1), x, x.slice(3, N - 1)], 3)),
)
