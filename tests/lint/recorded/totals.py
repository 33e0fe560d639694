"""What ranks make of their parts and of what they learn of the others': scans, orders, statistics,
tables, neighbours; each with mistakes (rank.py).

totals.py NAME FAULT FOLDER: FOLDER gets what each rank computed."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from rank import each_gradient, end, main, program


@program({"cp": 2}, "own_only total_of_all", undecided="none total_of_all")
def running_sums(r):
    """Sums over all tokens before, by the totals of the ranks before."""
    x, w = r.input("x", 8, 6, cp=0), r.param("w", 6, 6)
    with r.recorded():
        y = F.linear(x, w).cumsum(0)
        if r.world > 1 and not r.wrong("own_only"):
            totals = r.gathered(y[-1:], "cp")
            before = totals.sum(0) if r.wrong("total_of_all") else totals[: r.at["cp"]].sum(0)
            y = y + before
        r.gives("y", r.gathered(torch.tanh(y), "cp"))


@program({"cp": 2}, "own_only", undecided="none own_only")
def carried_means(r):
    """An exponential mean over tokens that are cut, rank by rank, with the last value passed on."""
    x, own = r.input("x", 8, 4, cp=0), 8 // r.size["cp"]
    with r.recorded():
        y, h = [], torch.zeros(4)
        for t in range(own):
            h = 0.7 * h + 0.3 * x[t]
            y.append(h)
        y = torch.stack(y)
        ends = r.gathered(y[-1:], "cp")
        if r.at["cp"] > 0 and not r.wrong("own_only"):
            by = 0.7 ** (torch.arange(own).float() + 1)
            y = y + by[:, None] * ends[r.at["cp"] - 1]
        r.gives("y", r.gathered(y, "cp"))


@program({"tp": 2}, "of_own summed_values")
def best_of_all(r):
    """The three largest of scores that are cut: the ranks' three largest are gathered."""
    x, w = r.input("x", 5, 8), r.param("w", 12, 8, tp=0)
    with r.recorded():
        best = F.linear(x, w).topk(3, -1)[0]
        if r.wrong("summed_values"):
            best = r.reduced(best, "tp")
        elif not r.wrong("of_own"):
            best = r.gathered(best, "tp", 1).topk(3, -1)[0]
        r.gives("y", best)


@program({"tp": 2}, "scale_of_own scale_summed")
def rounded_rows(r):
    """Rows are scaled by their largest number over all ranks, and rounded."""
    x, w = r.input("x", 6, 8), r.param("w", 12, 8, tp=0)
    o = r.param("o", 5, 12, tp=1)
    with r.recorded():
        h = F.linear(x, w)
        most = h.abs().amax(-1, keepdim=True)
        if not r.wrong("scale_of_own"):
            most = r.reduced(most, "tp") if r.wrong("scale_summed") else r.largest(most, "tp")
        q = (h / most * 127).round().clamp(-128, 127)
        r.gives("y", r.reduced(F.linear(q, o), "tp") * most / 127)


@program({"dp": 2}, "mean_of_variances weights_of_own")
def merged_statistics(r):
    """Means and variances of ranks' rows are gathered and put together."""
    x, g = r.input("x", 8, 6, dp=0), r.param("g", 6, shift=1)
    with r.recorded():
        mean, var = x.mean(0), x.var(0, unbiased=False)
        means, vars_ = r.gathered(mean[None], "dp"), r.gathered(var[None], "dp")
        m = means.mean(0)
        v = vars_.mean(0)
        if not r.wrong("mean_of_variances"):
            v = v + (means - m).pow(2).mean(0)
        m = mean if r.wrong("weights_of_own") else m
        r.gives("y", r.gathered((x - m) / (v + 1e-5).sqrt() * g, "dp"))


@program({"tp": 2}, "added_twice unmasked other_rows")
def table_gradient(r):
    """The gradient of a table that is cut by rows, added up row by row."""
    rows, ids = 12 // r.size["tp"], r.tokens("ids", 8, below=12)
    x, table = r.input("x", 8, 5), r.param("table", 12, 5, tp=0)
    first = rows * r.at["tp"]
    with r.recorded():
        out = (ids < first) | (ids >= first + rows)
        at = (ids - first).masked_fill(out, 0)
        h = F.embedding(at, table)
        h = h if r.wrong("unmasked") else h.masked_fill(out.unsqueeze(-1), 0.0)
        y = r.reduced(h, "tp")
        y = r.reduced(y, "tp") if r.wrong("added_twice") else y
        y = r.passed(y, "tp") + h if r.wrong("other_rows") else y
        r.gives("y", F.gelu(y * x))


@program({"dp": 4}, "of_first summed second_of_own")
def broadcast_statistics(r):
    """The first rank makes a scale of all rows, and the others get it."""
    x, w = r.input("x", 8, 6, dp=0), r.param("w", 5, 6)
    with r.recorded():
        all_rows = x if r.wrong("of_first") else r.gathered(x, "dp")
        scale = all_rows.pow(2).mean().sqrt()
        dist.broadcast(scale, 0)
        scale = r.reduced(scale, "dp") if r.wrong("summed") else scale
        y = F.linear(x / scale, w)
        y = y / y.pow(2).mean().sqrt() if r.wrong("second_of_own") else y
        r.gives("y", r.gathered(y, "dp"))


@program({"dp": 2, "tp": 2}, "over_tp over_all second_unreduced mean_of_all")
def norm_on_a_grid(r):
    """A norm of features that are cut over tp, of rows that are cut over dp, and a loss."""
    x, w = r.input("x", 8, 6, dp=0), r.param("w", 12, 6, tp=0)
    o = r.param("o", 4, 12, tp=1)
    with r.recorded():
        h = F.linear(x, w)
        square = h.pow(2).sum(-1, keepdim=True)
        if not r.wrong("second_unreduced"):
            square = r.reduced(square, "dp" if r.wrong("over_tp") else "tp")
        y = F.linear(h * (square / 12 + 1e-5).rsqrt(), o)
        y = r.reduced(y, "all" if r.wrong("over_all") else "tp")
        loss = y.pow(2).mean()
        if r.wrong("mean_of_all"):
            r.gives("loss", r.reduced(loss, "all") / 2)
        else:
            r.gives("loss", r.averaged(loss, "dp"))


@program({"dp": 2}, "summed own_shard reduced_first")
def scattered_each_time(r):
    """Gradients of both micro-batches are scattered, and a rank adds up its part."""
    xs = [r.input("x%d" % k, 8, 6, dp=0) for k in range(2)]
    w = r.param("w", 8, 6, dp=0)
    n, k = r.size["dp"], r.at["dp"]
    with r.recorded():
        whole = r.gathered(w, "dp").requires_grad_()
        total, g = 0, 0
        for i, x in enumerate(xs):
            whole.grad = None
            loss = torch.tanh(F.linear(x, whole)).pow(2).mean() / 2
            loss.backward()
            total = total + loss.detach()
            if r.wrong("own_shard") or (r.wrong("reduced_first") and i):
                g = g + whole.grad.chunk(n)[k]
            else:
                part = r.scattered(whole.grad, "dp")
                g = g + (part if r.wrong("summed") else part / dist.get_world_size())
        r.gives("loss", r.averaged(total, "dp"))
        w.grad = g


@program({"sp": 2}, "edges_of_own other_side", undecided="none edges_of_own other_side")
def neighbours_rows(r):
    """A filter over rows that are cut, with the neighbours' rows from messages."""
    n, x, w = r.size["sp"], r.input("x", 8, 4, sp=0), r.param("w", 3, 4)
    with r.recorded():
        before, after = torch.zeros(1, 4), torch.zeros(1, 4)
        if n > 1 and not r.wrong("edges_of_own"):
            down, up = r.passed(x[-1:], "sp"), r.passed(x[:1], "sp", -1)
            if r.wrong("other_side"):
                down, up = up, down
            before = down if r.at["sp"] > 0 else before
            after = up if r.at["sp"] < n - 1 else after
        z = torch.cat([before, x, after])
        y = w[0] * z[:-2] + w[1] * z[1:-1] + w[2] * z[2:]
        r.gives("y", r.gathered(y, "sp"))


@program({"dp": 2}, "of_own divided_by_ranks")
def penalty(r):
    """A loss over rows that are cut, and a penalty of the parameters, which all ranks have."""
    x, w = r.input("x", 8, 6, dp=0), r.param("w", 4, 6)
    with r.recorded():
        loss = F.linear(x, w).pow(2).mean()
        loss = loss + 0.1 * w.pow(2).sum()
        end(r, loss, "dp")
        if not r.wrong("of_own"):
            each_gradient(r, lambda g: r.averaged(g, "dp"))
        if r.wrong("divided_by_ranks"):
            each_gradient(r, lambda g: g / dist.get_world_size())


@program({"dp": 2}, "distances_of_own centres_summed counts_of_own")
def clusters(r):
    """A step of k-means: sums and counts of rows by their nearest centre are reduced."""
    x, c = r.input("x", 12, 4, dp=0), r.input("c", 3, 4)
    with r.recorded():
        near = F.one_hot(torch.cdist(x, c).argmin(-1), 3).to(x.dtype)
        sums, counts = near.t() @ x, near.sum(0)
        sums = sums if r.wrong("distances_of_own") else r.reduced(sums, "dp")
        counts = (
            counts if r.fault in ("distances_of_own", "counts_of_own") else r.reduced(counts, "dp")
        )
        new = sums / (counts[:, None] + 1e-3)
        r.gives("centres", r.reduced(new, "dp") if r.wrong("centres_summed") else new)


if __name__ == "__main__":
    main()
