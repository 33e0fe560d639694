"""Layers and steps in the way of Megatron-LM, DeepSpeed and nanotron, written by hand, each with
mistakes (rank.py).

frameworks.py NAME FAULT FOLDER: FOLDER gets what each rank computed."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from rank import copied, each_gradient, end, joined, main, program, spread, summed


@program(
    {"tp": 2},
    "keys_of_first repeated_whole output_unreduced input_unreduced",
    undecided="keys_of_first",
)
def grouped_queries(r):
    """Heads of queries and of keys are cut; each head of keys serves two of queries."""
    n, d, x = r.size["tp"], 3, r.input("x", 5, 12)
    g = r.param("g", 12, shift=1)
    q, o = r.param("q", 8 * d, 12, tp=0), r.param("o", 12, 8 * d, tp=1)
    k, v = r.param("k", 4 * d, 12, tp=0), r.param("v", 4 * d, 12, tp=0)
    with r.recorded():
        h = F.rms_norm(x, (12,), g)
        h = h if r.wrong("input_unreduced") else copied(h, r, "tp")
        a = F.linear(h, q).view(5, 8 // n, d).transpose(0, 1)
        keys, values = (F.linear(h, w).view(5, 4 // n, d).transpose(0, 1) for w in (k, v))
        if r.wrong("keys_of_first"):
            keys = keys[:1].expand(4 // n, 5, d)
        if r.wrong("repeated_whole"):
            keys, values = keys.repeat(2, 1, 1), values.repeat(2, 1, 1)
        else:
            keys, values = (t.repeat_interleave(2, 0) for t in (keys, values))
        mask = torch.ones(5, 5).tril() == 0
        s = ((a @ keys.transpose(1, 2)) * d**-0.5).masked_fill(mask, float("-inf"))
        y = (torch.softmax(s, -1) @ values).transpose(0, 1).reshape(5, -1)
        y = F.linear(y, o)
        y = y if r.wrong("output_unreduced") else summed(y, r, "tp")
        end(r, (x + y).pow(2).mean())


class VocabularyLoss(torch.autograd.Function):
    """As Megatron-LM's vocab_parallel_cross_entropy."""

    @staticmethod
    def forward(ctx, z, to, r, first):
        rows = z.shape[1]
        most = z.max(-1)[0]
        most = most if r.wrong("local_largest") else r.largest(most, "tp")
        z = z - most.unsqueeze(-1)
        out = (to < first) | (to >= first + rows)
        at = to - first
        at = at.masked_fill(out, 0)
        of = z[torch.arange(z.shape[0]), at]
        of = of.masked_fill(out, 0.0)
        of = of if r.wrong("target_unreduced") else r.reduced(of, "tp")
        e = z.exp()
        total = e.sum(-1)
        total = total if r.wrong("denominator_unreduced") else r.reduced(total, "tp")
        p = e / total.unsqueeze(-1)
        ctx.save_for_backward(p, out, at)
        ctx.wrong = r.wrong("unmasked_gradient")
        return total.log() - of

    @staticmethod
    def backward(ctx, g):
        p, out, at = ctx.saved_tensors
        p = p.clone()
        update = torch.ones_like(g) if ctx.wrong else 1.0 - out.to(g.dtype)
        p[torch.arange(p.shape[0]), at] -= update
        return p * g.unsqueeze(-1), None, None, None


@program(
    {"tp": 2},
    "local_largest target_unreduced denominator_unreduced unmasked_gradient",
    undecided="none",
)
def vocabulary_loss(r):
    """A loss over logits cut by the vocabulary, with its derivative by hand."""
    n, x = r.size["tp"], r.input("x", 6, 8)
    to, head = r.tokens("to", 6, below=12), r.param("head", 12, 8, tp=0)
    g = r.param("g", 8, shift=1)
    first = r.at["tp"] * (12 // n)
    with r.recorded():
        h = copied(F.rms_norm(x, (8,), g), r, "tp")
        end(r, VocabularyLoss.apply(F.linear(h, head), to, r, first).mean())


@program({"tp": 2}, "norm_unreduced bias_unreduced norm_averaged not_scattered")
def sequence_block(r):
    """Two norms whose inputs are cut along the tokens, products that are cut by columns and rows,
    and the gradients of the norms and the last bias, which are sums."""
    x, w = r.input("x", 8, 6, tp=0), r.size["tp"]
    g, b = r.param("g", 6, shift=1), r.param("b", 6)
    up, ub = r.param("up", 12, 6, tp=0), r.param("ub", 12, tp=0)
    down, db = r.param("down", 6, 12, tp=1), r.param("db", 6)
    last = r.param("last", 6, shift=1)
    with r.recorded():
        h = joined(F.layer_norm(x, (6,), g, b), r, "tp")
        y = F.linear(F.gelu(F.linear(h, up, ub)), down)
        if r.wrong("not_scattered"):
            y = y.chunk(w)[r.at["tp"]]
        else:
            y = spread(y, r, "tp")
        y = F.rms_norm(x + y + db, (6,), last)
        loss = y.pow(2).sum(-1).cos().sum() / 8
        loss.backward()
        r.gives("loss", r.reduced(loss, "tp"))
        how = r.averaged if r.wrong("norm_averaged") else r.reduced
        if not r.wrong("norm_unreduced"):
            for p in (g, b, last):
                p.grad = how(p.grad, "tp")
        if not r.wrong("bias_unreduced"):
            db.grad = r.reduced(db.grad, "tp")


@program({"ep": 2}, "not_there not_back")
def experts_of_equal_shares(r):
    """Experts choose tokens: each expert takes the first tokens by its gate, and ranks exchange
    them (expert choice, so that all shares are alike)."""
    n, e, d, take = r.size["ep"], 4, 6, 2
    x, gate = r.input("x", 4, 4, d, ep=0), r.param("gate", e, d)
    up, down = r.param("up", e, d, 10, ep=0), r.param("down", e, 10, d, ep=0)
    with r.recorded():
        s = F.softmax(F.linear(x, gate), -1)
        w, at = s.transpose(1, 2).topk(take, -1)  # a sequence, an expert, its tokens
        rows = at.unsqueeze(-1).expand(-1, -1, -1, d)
        h = x.unsqueeze(1).expand(-1, e, -1, -1).gather(2, rows)
        h = h if r.wrong("not_there") else r.exchanged(h, "ep", 1, 0)
        if r.wrong("not_there"):
            h = h.reshape(n, -1, e, take, d)[:, :, : e // n].reshape(-1, e // n, take, d)
            h = torch.cat([h, h]) if h.shape[0] < 4 else h
        h = torch.einsum("seti,eij->setj", h, up)
        h = torch.einsum("setj,ejd->setd", F.gelu(h), down)
        if r.wrong("not_back"):
            h = h.repeat(1, n, 1, 1)[: 4 // n]
        else:
            h = r.exchanged(h, "ep", 0, 1)
        h = h * w.unsqueeze(-1)
        y = torch.zeros_like(x).unsqueeze(1).expand(-1, e, -1, -1).scatter(2, rows, h).sum(1)
        r.gives("y", r.gathered(y + x, "ep"))


def ring(r, q, k, v, axis, f):
    """Attention over keys that go round, put together by largest and sum."""
    n, most, total, y = r.size[axis], None, None, None
    for step in range(n):
        s = f(q @ k.t() / q.shape[1] ** 0.5, step)
        m = s.max(-1, keepdim=True)[0]
        new = m if most is None else torch.maximum(m, most)
        e = (s - new).exp()
        if most is None:
            total, y = e.sum(-1, keepdim=True), e @ v
        else:
            scale = (most - new).exp()
            scale = torch.ones_like(scale) if r.wrong("unscaled") else scale
            total, y = total * scale + e.sum(-1, keepdim=True), y * scale + e @ v
        most = new
        if step + 1 < n and not r.wrong("not_passed"):
            k = r.passed(k, axis)
            v = v if r.wrong("values_stay") else r.passed(v, axis)
    return y / total


@program({"cp": 2}, "unscaled not_passed values_stay", undecided="unscaled values_stay")
def ring_attention(r):
    """Keys and values go round."""
    x = r.input("x", 8, 6, cp=0)
    w = [r.param(k, 6, 6) for k in ("q", "k", "v")]
    with r.recorded():
        y = ring(r, *(F.linear(x, m) for m in w), "cp", lambda s, _: s)
        r.gives("y", r.gathered(y, "cp"))


@program({"cp": 4}, "unscaled not_passed values_stay", undecided="unscaled values_stay")
def ring_attention_of_four(r):
    x = r.input("x", 8, 6, cp=0)
    w = [r.param(k, 6, 6) for k in ("q", "k", "v")]
    with r.recorded():
        y = ring(r, *(F.linear(x, m) for m in w), "cp", lambda s, _: s)
        r.gives("y", r.gathered(y, "cp"))


@program({"cp": 2}, "mask_by_step not_passed", undecided="mask_by_step")
def causal_ring(r):
    """The same, and no token sees a later one."""
    n, x = r.size["cp"], r.input("x", 8, 6, cp=0)
    w, own = [r.param(k, 6, 6) for k in ("q", "k", "v")], 8 // r.size["cp"]
    at = r.at["cp"]
    with r.recorded():

        def masked(s, step):
            of = (at - step) % n
            of = step if r.wrong("mask_by_step") else of
            rows, cols = torch.arange(own) + at * own, torch.arange(own) + of * own
            return s.masked_fill(cols[None] > rows[:, None], -1e9)

        y = ring(r, *(F.linear(x, m) for m in w), "cp", masked)
        r.gives("y", r.gathered(y, "cp"))


@program({"dp": 2}, "own_rows not_gathered state_of_other norm_of_own", undecided="state_of_other")
def shards_of_steps(r):
    """ZeRO-2: gradients are scattered, each rank makes its rows of a step of Adam, and all gather
    them."""
    x, y = r.input("x", 8, 6, dp=0), r.input("y", 8, 4, dp=0)
    w = {"w1": r.param("w1", 8, 6), "w2": r.param("w2", 4, 8)}
    m = {k: r.input("m_" + k, *p.shape, dp=0) for k, p in w.items()}
    with r.recorded():
        out = F.linear(torch.tanh(F.linear(x, w["w1"])), w["w2"])
        end(r, F.mse_loss(out, y), "dp")
        with torch.no_grad():
            n, at, g = r.size["dp"], r.at["dp"], {}
            for k, p in w.items():
                if r.wrong("own_rows"):
                    g[k] = p.grad.chunk(n)[at]
                else:
                    g[k] = r.scattered(p.grad, "dp")
                g[k] = g[k] / dist.get_world_size()
            norm = sum(t.pow(2).sum() for t in g.values())
            norm = norm if r.wrong("norm_of_own") else r.reduced(norm, "dp")
            norm = norm.sqrt()
            for k, p in w.items():
                part = p.chunk(n)[at]
                state = 0.9 * m[k] + 0.1 * g[k] / (norm + 0.1)
                state = r.passed(state, "dp") if r.wrong("state_of_other") else state
                new = part - 0.01 * state
                if r.wrong("not_gathered"):
                    r.update(k, torch.cat([new] * n))
                else:
                    r.update(k, r.gathered(new, "dp"))
                p.grad = None


@program({"dp": 2}, "synced_first_only unsynced unscaled divided_by_ranks_again")
def accumulation_without_sync(r):
    """Two micro-batches; the last one reduces what has come together."""
    a, b = r.input("a", 8, 6, dp=0), r.input("b", 8, 6, dp=0)
    to, other = r.input("to", 8, 4, dp=0), r.input("other", 8, 4, dp=0)
    w1, w2 = r.param("w1", 8, 6), r.param("w2", 4, 8)
    with r.recorded():
        total = 0
        for k, (x, y) in enumerate(((a, to), (b, other))):
            loss = F.mse_loss(F.linear(F.silu(F.linear(x, w1)), w2), y)
            loss = loss if r.wrong("unscaled") else loss / 2
            loss.backward()
            total = total + loss.detach()
            if k == (0 if r.wrong("synced_first_only") else 1) and not r.wrong("unsynced"):
                each_gradient(r, lambda g: r.averaged(g, "dp"))
        if r.wrong("unscaled"):
            total = total / 2
        if r.wrong("divided_by_ranks_again"):
            each_gradient(r, lambda g: g / dist.get_world_size())
        r.gives("loss", r.averaged(total, "dp"))


@program({"dp": 2, "tp": 2}, "over_tp unreduced summed")
def balance_on_a_grid(r):
    """The loss that keeps experts busy is averaged over data, and is the same over tp."""
    x, gate = r.input("x", 8, 6, dp=0), r.param("gate", 4, 6)
    with r.recorded():
        p = F.softmax(F.linear(x, gate), -1)
        load = F.one_hot(p.topk(2, -1)[1], 4).sum(1).to(x.dtype).mean(0)
        if not r.wrong("unreduced"):
            load = r.averaged(load, "tp" if r.wrong("over_tp") else "dp")
        aux = 4 * (p.mean(0) * load).sum()
        aux.backward()
        r.gives("loss", r.averaged(aux, "dp"))
        each_gradient(r, lambda g: (r.reduced if r.wrong("summed") else r.averaged)(g, "dp"))


@program({"tp": 2}, "mean_of_own weight_unsharded_gradient averaged_roots")
def norm_of_cut_width(r):
    """RMSNorm of a hidden size that is cut, and a product behind it."""
    n, x = r.size["tp"], r.input("x", 6, 8, tp=1)
    g, w = r.param("g", 8, tp=0, shift=1), r.param("w", 10, 8, tp=1)
    with r.recorded():
        square = x.pow(2).sum(-1, keepdim=True)
        if r.wrong("averaged_roots"):
            rms = summed((square / (8 // n)).sqrt(), r, "tp") / n
        else:
            square = square if r.wrong("mean_of_own") else summed(square, r, "tp")
            square = copied(square, r, "tp")
            rms = (square / 8 + 1e-5).sqrt()
        h = x / rms * g
        y = summed(F.linear(h, w), r, "tp")
        end(r, torch.tanh(y).pow(2).sum() / 7)
        if r.wrong("weight_unsharded_gradient"):
            g.grad = r.reduced(g.grad, "tp")


@program({"dp": 2}, "local_means of_each_rank")
def tokens_that_count(r):
    """A mean over tokens that are no padding, of which ranks have other numbers, and the gradients
    that Megatron-LM scales at the end."""
    x, w = r.input("x", 8, 6, dp=0), r.param("w", 5, 6)
    to = r.tokens("to", 8, below=5, dp=0)
    m = r.input("m", values=torch.tensor([1.0, 1, 1, 1, 0, 0, 1, 0]), dp=0)
    with r.recorded():
        each = F.cross_entropy(F.linear(x, w), to, reduction="none")
        loss = (each * m).sum()
        count = m.sum()
        if r.wrong("local_means"):
            loss = loss / count
        loss.backward()
        count = count if r.wrong("of_each_rank") else r.reduced(count, "dp")
        if r.wrong("local_means"):
            r.gives("loss", r.averaged(loss, "dp"))
            each_gradient(r, lambda g: r.averaged(g, "dp"))
        else:
            r.gives("loss", r.reduced(loss, "dp") / count)
            each_gradient(r, lambda g: r.reduced(g, "dp") / count)


if __name__ == "__main__":
    main()
