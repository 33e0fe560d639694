"""Correct event programs of several families, each drawn from a seed: what mutations start from."""


def ev(op, **more):
    return {"op": op, **more}


def doc(ranks, backend=None, **more):
    d = {"format": "isomer-events", "version": 1, "world": len(ranks)}
    d.update({"backend": backend} if backend else {}, **more)
    return {**d, "ranks": ranks}


def pipeline(rng):
    """Replicas of a pipeline, all forward and then all backward, and their gradients summed."""
    stages, microbatches, replicas = rng.choice((2, 3, 4)), rng.choice((2, 3)), rng.choice((1, 2))
    n = 8 * rng.randrange(4, 9)
    ranks = []
    for r in range(stages * replicas):
        s, base = r % stages, r - r % stages
        out, dtype, keep = [], "bfloat16", []
        part = lambda op, m, peer, buffer: dict(
            peer=base + peer,
            numel=n,
            dtype=dtype,
            mb=m,  # noqa: E731
            buffer=buffer,
            handle="%s%s" % (op, buffer),
        )
        for m in range(microbatches):
            if s > 0:
                out += [
                    ev("recv", **part("r", m, s - 1, "act%d" % m)),
                    ev("wait", handle="ract%d" % m),
                ]
            reads = {"act%d" % m: "y%d.%d" % (s - 1, m)} if s else {"batch%d" % m: "x%d" % m}
            out.append(
                ev(
                    "F",
                    stage=s,
                    mb=m,
                    needs=reads if s else {},
                    reads=list(reads),
                    makes={"out%d" % m: "y%d.%d" % (s, m)},
                )
            )
            if s + 1 < stages:
                out.append(ev("send", **part("s", m, s + 1, "out%d" % m)))
                keep.append("sout%d" % m)
        for m in range(microbatches):
            if s + 1 < stages:
                out += [
                    ev("recv", **part("r", m, s + 1, "grad%d" % m)),
                    ev("wait", handle="rgrad%d" % m),
                ]
            needs = {"out%d" % m: "y%d.%d" % (s, m)}
            needs.update({"grad%d" % m: "g%d.%d" % (s + 1, m)} if s + 1 < stages else {})
            out.append(
                ev(
                    "B",
                    stage=s,
                    mb=m,
                    needs=needs,
                    reads=["wgrad"],
                    writes=["wgrad"],
                    makes={"gin%d" % m: "g%d.%d" % (s, m)},
                )
            )
            if s > 0:
                out.append(ev("send", **part("s", m, s - 1, "gin%d" % m)))
                keep.append("sgin%d" % m)
        out += [ev("wait", handle=h) for h in keep]
        if replicas > 1:
            out += [
                ev("stream_wait", on="main", stream="dp"),
                ev(
                    "all_reduce",
                    group="dp%d" % s,
                    buffer="wgrad",
                    numel=4 * n,
                    dtype="float32",
                    reduce="avg",
                    stream="dp",
                    handle="ar",
                ),
                ev("wait", handle="ar"),
            ]
        out.append(ev("compute", name="step", reads=["wgrad"], writes=["w"]))
        ranks.append(out)
    groups = {"dp%d" % s: list(range(s, stages * replicas, stages)) for s in range(stages)}
    return doc(
        ranks,
        rng.choice((None, "nccl")),
        groups=groups if replicas > 1 else {},
        pipeline={"stages": stages, "microbatches": microbatches},
    )


def tensor_parallel(rng):
    """Collectives of two groups that cross, blocking and not."""
    tp, dp = rng.choice((2, 4)), 2
    layers = rng.choice((2, 3))
    groups = {"tp%d" % d: [d * tp + t for t in range(tp)] for d in range(dp)}
    groups.update({"dp%d" % t: [d * tp + t for d in range(dp)] for t in range(tp)})
    plan = [(layer, rng.choice((16, 32, 64))) for layer in range(layers)]
    ranks = []
    for r in range(tp * dp):
        g, d = "tp%d" % (r // tp), "dp%d" % (r % tp)
        out = [ev("broadcast", root=0, numel=128, dtype="int64", buffer="tokens")]
        for layer, n in plan:
            h = "h%d" % layer
            out += [
                ev(
                    "compute",
                    name="up%d" % layer,
                    reads=["tokens" if layer == 0 else "x%d" % layer],
                    writes=[h],
                ),
                ev(
                    "all_gather",
                    group=g,
                    buffer=h,
                    out="full%d" % layer,
                    numel=n,
                    out_numel=n * tp,
                    dtype="bfloat16",
                ),
                ev(
                    "compute",
                    name="down%d" % layer,
                    reads=["full%d" % layer],
                    writes=["part%d" % layer],
                ),
                ev(
                    "all_reduce",
                    group=g,
                    buffer="part%d" % layer,
                    numel=n * tp,
                    dtype="bfloat16",
                    reduce="sum",
                ),
                ev(
                    "compute",
                    name="norm%d" % layer,
                    reads=["part%d" % layer],
                    writes=["x%d" % (layer + 1)],
                ),
            ]
        for layer, n in reversed(plan):
            out += [
                ev(
                    "compute",
                    name="grad%d" % layer,
                    reads=["x%d" % (layer + 1)],
                    writes=["dw%d" % layer],
                ),
                ev(
                    "reduce_scatter",
                    group=d,
                    buffer="dw%d" % layer,
                    out="ds%d" % layer,
                    numel=n * dp,
                    out_numel=n,
                    dtype="float32",
                    reduce="sum",
                    handle="rs%d" % layer,
                ),
            ]
        out += [ev("wait", handle="rs%d" % layer) for layer, _ in plan]
        out += [
            ev("compute", name="step", reads=["ds%d" % layer for layer, _ in plan], writes=["w"]),
            ev("barrier"),
        ]
        ranks.append(out)
    return doc(ranks, rng.choice((None, "nccl")), groups=groups)


def halo(rng):
    """A ring on gloo: tags tell the two directions apart."""
    world, steps, n = rng.choice((3, 4, 5)), rng.choice((1, 2, 3)), rng.choice((5, 7))
    ranks = []
    for r in range(world):
        out = []
        for k in range(steps):
            right, left = (r + 1) % world, (r - 1) % world
            out += [
                ev(
                    "recv",
                    peer=left,
                    tag=1,
                    numel=n,
                    dtype="float32",
                    buffer="from_left",
                    handle="a%d" % k,
                ),
                ev(
                    "recv",
                    peer=right,
                    tag=2,
                    numel=n + 1,
                    dtype="float32",
                    buffer="from_right",
                    handle="b%d" % k,
                ),
                ev(
                    "send",
                    peer=right,
                    tag=1,
                    numel=n,
                    dtype="float32",
                    buffer="to_right",
                    handle="c%d" % k,
                ),
                ev(
                    "send",
                    peer=left,
                    tag=2,
                    numel=n + 1,
                    dtype="float32",
                    buffer="to_left",
                    handle="d%d" % k,
                ),
            ]
            out += [ev("wait", handle="%s%d" % (h, k)) for h in "abcd"]
            out.append(
                ev(
                    "compute",
                    name="smooth%d" % k,
                    reads=["from_left", "from_right"],
                    writes=["to_left", "to_right"],
                )
            )
        ranks.append(out)
    return doc(ranks, "gloo")


def experts(rng):
    """Tokens to experts and back, with uneven splits."""
    world = rng.choice((2, 3, 4))
    split = [[rng.randrange(1, 9) for _ in range(world)] for _ in range(world)]
    ranks = []
    for r in range(world):
        here, there = split[r], [split[k][r] for k in range(world)]
        out = [
            ev("compute", name="route", reads=["x"], writes=["sorted"]),
            ev(
                "all_to_all",
                buffer="sorted",
                out="mine",
                in_splits=here,
                out_splits=there,
                numel=sum(here),
                out_numel=sum(there),
                dtype="bfloat16",
            ),
            ev("compute", name="expert", reads=["mine"], writes=["done"]),
            ev(
                "all_to_all",
                buffer="done",
                out="back",
                in_splits=there,
                out_splits=here,
                numel=sum(there),
                out_numel=sum(here),
                dtype="bfloat16",
                handle="a",
            ),
            ev("compute", name="shared", reads=["x"], writes=["s"]),
            ev("wait", handle="a"),
            ev("compute", name="sum", reads=["back", "s"], writes=["y"]),
            ev(
                "reduce",
                root=world - 1,
                buffer="y",
                out="total",
                numel=4,
                dtype="float32",
                reduce="max",
            ),
            ev("barrier"),
        ]
        ranks.append(out)
    return doc(ranks, rng.choice((None, "nccl", "mpi")))


def sharded(rng):
    """Weights gathered ahead on a stream of their own, and freed."""
    world, layers, n = rng.choice((2, 4)), rng.choice((2, 3)), rng.choice((10, 20))
    ranks = []
    for _ in range(world):
        out = []

        def gather(k):
            return [
                ev("alloc", buffer="full%d" % k),
                ev(
                    "all_gather",
                    buffer="shard%d" % k,
                    out="full%d" % k,
                    numel=n,
                    out_numel=n * world,
                    dtype="bfloat16",
                    stream="fetch",
                    handle="g%d" % k,
                ),
            ]

        out += gather(0)
        for k in range(layers):
            out += gather(k + 1) if k + 1 < layers else []
            out += [
                ev("wait", handle="g%d" % k),
                ev("compute", name="layer%d" % k, reads=["full%d" % k], writes=["act%d" % k]),
                ev("free", buffer="full%d" % k),
            ]
        for k in reversed(range(layers)):
            out += [
                ev("compute", name="back%d" % k, reads=["act%d" % k], writes=["grad%d" % k]),
                ev("stream_wait", on="main", stream="reduce"),
                ev(
                    "reduce_scatter",
                    buffer="grad%d" % k,
                    out="gs%d" % k,
                    numel=n * world,
                    out_numel=n,
                    dtype="float32",
                    reduce="avg",
                    stream="reduce",
                    handle="r%d" % k,
                ),
            ]
        out += [ev("wait", handle="r%d" % k) for k in range(layers)]
        out.append(
            ev("compute", name="step", reads=["gs%d" % k for k in range(layers)], writes=["w"])
        )
        ranks.append(out)
    return doc(ranks, "nccl")


def exchange(rng):
    """Pairs that swap in batches, round after round."""
    world, rounds = rng.choice((2, 4)), rng.choice((1, 2, 3))
    ranks = []
    for r in range(world):
        out = []
        for k in range(rounds):
            peer = r ^ (1 if world == 2 or k % 2 == 0 else 2)
            out += [
                ev(
                    "batch",
                    handle="b%d" % k,
                    ops=[
                        ev("send", peer=peer, numel=3, dtype="float32", buffer="mine%d" % k),
                        ev("recv", peer=peer, numel=3, dtype="float32", buffer="theirs%d" % k),
                    ],
                ),
                ev("wait", handle="b%d" % k),
                ev(
                    "compute", name="use%d" % k, reads=["theirs%d" % k], writes=["mine%d" % (k + 1)]
                ),
            ]
        ranks.append(out)
    return doc(ranks, rng.choice(("nccl", "mpi")))


FAMILIES = [pipeline, tensor_parallel, halo, experts, sharded, exchange]
