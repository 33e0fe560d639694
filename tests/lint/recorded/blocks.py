"""Blocks of models, losses and steps of several ranks as their papers and manuals describe them,
each with mistakes (rank.py).

blocks.py NAME FAULT FOLDER: FOLDER gets what each rank computed."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from rank import copied, each_gradient, end, joined, main, pair, program, spread, summed

exchanged = pair(
    lambda r, t, axis, split, cat: r.exchanged(t, axis, split, cat),
    lambda r, t, axis, split, cat: r.exchanged(t, axis, cat, split),
)


# ---- tensor parallel ----


@program({"tp": 2}, "bias_on_each residual_on_each unreduced input_unreduced scale_of_all")
def fused_attention(r):
    """Queries, keys and values from one product, whose rows are laid out by heads."""
    n, d, x = r.size["tp"], 4, r.input("x", 5, 8)
    w, b = r.param("w", 4 * 3 * d, 8, tp=0), r.param("b", 4 * 3 * d, tp=0)
    o, ob, g = r.param("o", 8, 4 * d, tp=1), r.param("ob", 8), r.param("g", 8, shift=1)
    with r.recorded():
        h = F.rms_norm(x, (8,), g)
        h = h if r.wrong("input_unreduced") else copied(h, r, "tp")
        q, k, v = F.linear(h, w, b).view(5, 4 // n, 3, d).permute(2, 1, 0, 3).unbind(0)
        s = q @ k.transpose(1, 2) * d**-0.5
        s = torch.softmax(s, 0 if r.wrong("scale_of_all") else -1)
        y = F.linear(
            (s @ v).transpose(0, 1).reshape(5, -1), o, ob if r.wrong("bias_on_each") else None
        )
        y = y + x if r.wrong("residual_on_each") else y
        y = y if r.wrong("unreduced") else summed(y, r, "tp")
        y = y if r.wrong("bias_on_each") else y + ob
        y = y if r.wrong("residual_on_each") else y + x
        end(r, y.pow(2).mean())


@program({"tp": 2}, "second_unreduced summed_twice input_unreduced")
def parallel_branches(r):
    """A gated branch and a plain one of one input, whose sum is reduced once."""
    x, g, b = r.input("x", 6, 8), r.param("g", 8, shift=1), r.param("b", 8)
    gate, up = r.param("gate", 12, 8, tp=0), r.param("up", 12, 8, tp=0)
    down = r.param("down", 8, 12, tp=1)
    one, two = r.param("one", 10, 8, tp=0), r.param("two", 8, 10, tp=1)
    with r.recorded():
        h = F.layer_norm(x, (8,), g, b)
        h = h if r.wrong("input_unreduced") else copied(h, r, "tp")
        a = F.linear(F.silu(F.linear(h, gate)) * F.linear(h, up), down)
        c = F.linear(torch.tanh(F.linear(h, one)), two)
        if r.wrong("second_unreduced"):
            y = summed(a, r, "tp") + c
        elif r.wrong("summed_twice"):
            y = summed(summed(a, r, "tp") + c, r, "tp")
        else:
            y = summed(a + c, r, "tp")
        end(r, torch.tanh(x + y).pow(2).mean())


@program({"tp": 2}, "adapter_of_own first_unreduced")
def adapters(r):
    """A product cut by rows, with a low-rank addition whose first factor is cut alike."""
    x, w = r.input("x", 6, 8, tp=1), r.param("w", 10, 8, tp=1)
    a, b = r.param("a", 3, 8, tp=1), r.param("b", 10, 3)
    with r.recorded():
        y, low = F.linear(x, w), F.linear(x, a)
        low = low if r.wrong("first_unreduced", "adapter_of_own") else r.reduced(low, "tp")
        y = r.reduced(y, "tp")
        low = F.linear(F.relu(low) if r.wrong("first_unreduced") else low, b)
        if r.wrong("first_unreduced"):
            low = r.reduced(low, "tp")
        r.gives("y", F.gelu(y + 2.0 * low))


@program({"tp": 2}, "positions_of_own norm_averaged norm_unreduced not_scattered")
def rotary_sequence_parallel(r):
    """Tokens are cut for norms, heads for the attention, with rotary positions of all tokens."""
    n, d, x = r.size["tp"], 4, r.input("x", 8, 8, tp=0)
    g = r.param("g", 8, shift=1)
    w, o = r.param("w", 4 * 3 * d, 8, tp=0), r.param("o", 8, 4 * d, tp=1)
    first = 8 // n * r.at["tp"] if r.wrong("positions_of_own") else 0
    with r.recorded():
        h = joined(F.rms_norm(x, (8,), g), r, "tp")
        q, k, v = F.linear(h, w).view(8, 4 // n, 3, d).permute(2, 1, 0, 3).unbind(0)
        angle = (torch.arange(8) + first)[:, None] * torch.tensor([1.0, 0.1])
        cos, sin = angle.cos().repeat(1, 2), angle.sin().repeat(1, 2)
        q = q * cos + torch.cat([-q[..., 2:], q[..., :2]], -1) * sin
        if not r.wrong("positions_of_own"):
            k = k * cos + torch.cat([-k[..., 2:], k[..., :2]], -1) * sin
        mask = torch.ones(8, 8, dtype=torch.bool).tril()
        s = (q @ k.transpose(1, 2) * d**-0.5).masked_fill(~mask, float("-inf"))
        y = F.linear((torch.softmax(s, -1) @ v).transpose(0, 1).reshape(8, -1), o)
        y = y.chunk(n)[r.at["tp"]] if r.wrong("not_scattered") else spread(y, r, "tp")
        loss = (x + y).pow(2).sum() / 64
        loss.backward()
        r.gives("loss", r.reduced(loss, "tp"))
        if not r.wrong("norm_unreduced"):
            g.grad = (r.averaged if r.wrong("norm_averaged") else r.reduced)(g.grad, "tp")


@program({"tp": 2}, "statistics_of_own second_unreduced")
def norm_of_cut_features(r):
    """A norm over all channels that are cut, with the squares' sum reduced, before rows."""
    x, w = r.input("x", 6, 8), r.param("w", 12, 8, tp=0)
    g, o = r.param("g", 12, tp=0, shift=1), r.param("o", 8, 12, tp=1)
    with r.recorded():
        h = F.linear(x, w)
        mean = h.sum(-1, keepdim=True)
        mean = (mean if r.wrong("statistics_of_own") else r.reduced(mean, "tp")) / 12
        var = (h - mean).pow(2).sum(-1, keepdim=True)
        own = r.wrong("statistics_of_own", "second_unreduced")
        var = (var if own else r.reduced(var, "tp")) / 12
        y = F.linear((h - mean) * (var + 1e-5).rsqrt() * g, o)
        r.gives("y", r.reduced(y, "tp"))


# ---- vocabulary ----


def own_rows(r, to, rows):
    first = r.at["tp"] * rows
    out = (to < first) | (to >= first + rows)
    return (to - first).masked_fill(out, 0), out


@program({"tp": 2}, "mean_of_own smooth_unreduced total_unreduced target_unmasked")
def smoothed_loss(r):
    """Cross entropy with smoothed labels over logits that are cut by the vocabulary."""
    rows, x = 12 // r.size["tp"], r.input("x", 6, 8)
    to, head = r.tokens("to", 6, below=12), r.param("head", 12, 8, tp=0)
    with r.recorded():
        z = F.linear(x, head)
        z = z - r.largest(z.max(-1)[0], "tp").unsqueeze(-1)
        total = z.exp().sum(-1)
        total = total if r.wrong("total_unreduced") else r.reduced(total, "tp")
        at, out = own_rows(r, to, rows)
        of = z.gather(1, at.unsqueeze(1)).squeeze(1)
        of = of if r.wrong("target_unmasked") else of.masked_fill(out, 0.0)
        of = r.reduced(of, "tp")
        if r.wrong("mean_of_own"):
            smooth = r.reduced(z.mean(-1), "tp")
        else:
            smooth = z.sum(-1) if r.wrong("smooth_unreduced") else r.reduced(z.sum(-1), "tp")
            smooth = smooth / 12
        r.gives("loss", (total.log() - 0.9 * of - 0.1 * smooth).mean())


@program({"tp": 2}, "numbers_from_0 largest_of_own")
def best_token(r):
    """The best token of logits that are cut by the vocabulary: the ranks' best are gathered."""
    rows, x, head = 12 // r.size["tp"], r.input("x", 6, 8), r.param("head", 12, 8, tp=0)
    table = r.param("table", 12, 5)
    with r.recorded():
        most, at = F.linear(x, head).max(-1)
        at = at if r.wrong("numbers_from_0") else at + rows * r.at["tp"]
        if not r.wrong("largest_of_own"):
            all_most, all_at = (r.gathered(t.unsqueeze(0), "tp") for t in (most, at))
            at = all_at.gather(0, all_most.argmax(0, keepdim=True)).squeeze(0)
        r.gives("y", F.embedding(at, table))


@program({"tp": 2}, "sums_averaged roots_of_own unreduced")
def squared_normaliser(r):
    """The square of the logits' log-sum-exp, which is added to a loss, by ranks' own ones."""
    x, head = r.input("x", 6, 8), r.param("head", 12, 8, tp=0)
    with r.recorded():
        own = F.linear(x, head).logsumexp(-1)
        if r.wrong("roots_of_own"):
            z = r.averaged(own, "tp")
        else:
            most = r.largest(own, "tp")
            e = (own - most).exp()
            if not r.wrong("unreduced"):
                e = (r.averaged if r.wrong("sums_averaged") else r.reduced)(e, "tp")
            z = e.log() + most
        r.gives("loss", 0.01 * z.pow(2).mean())


# ---- shards of parameters ----


@program({"dp": 2}, "unaveraged own_rows parts_reversed averaged_twice", undecided="parts_reversed")
def flat_shards(r):
    """All parameters are one vector that is cut; it is gathered for the step, and the gradient of
    the whole vector scattered."""
    x, y = r.input("x", 8, 6, dp=0), r.input("y", 8, 4, dp=0)
    flat = r.param("flat", 8 * 6 + 4 * 8, dp=0)
    with r.recorded():
        w = r.gathered(flat, "dp")
        if r.wrong("parts_reversed"):
            w = torch.cat(list(w.chunk(2))[::-1])
        w.requires_grad_()
        w1, w2 = w[:48].view(8, 6), w[48:].view(4, 8)
        loss = F.mse_loss(F.linear(F.silu(F.linear(x, w1)), w2), y)
        loss.backward()
        r.gives("loss", r.averaged(loss, "dp"))
        if r.wrong("own_rows"):
            g = w.grad.chunk(2)[r.at["dp"]]
        else:
            g = r.scattered(w.grad, "dp")
        g = g if r.wrong("unaveraged") else g / dist.get_world_size()
        if r.wrong("averaged_twice"):
            g = r.averaged(g, "dp")
        flat.grad = g


@program(
    {"rep": 2, "dp": 2}, "rep_unreduced scattered_over_rep averaged_over_dp_only gathered_over_rep"
)
def shards_with_replicas(r):
    """Parameters are cut over dp and replicas over rep; data are cut over both."""
    x, y = r.input("x", 8, 6, rep=0, dp=0), r.input("y", 8, 4, rep=0, dp=0)
    w1, w2 = r.param("w1", 8, 6, dp=0), r.param("w2", 4, 8, dp=0)
    with r.recorded():
        axis = "rep" if r.wrong("gathered_over_rep") else "dp"
        whole = [r.gathered(p, axis).requires_grad_() for p in (w1, w2)]
        loss = F.mse_loss(F.linear(torch.tanh(F.linear(x, whole[0])), whole[1]), y)
        loss.backward()
        r.gives("loss", r.averaged(loss, "all"))
        for p, w in zip((w1, w2), whole):
            g = r.scattered(w.grad, "rep" if r.wrong("scattered_over_rep") else "dp")
            g = g / dist.get_world_size(r.group["dp"])
            if r.wrong("averaged_over_dp_only"):
                g = r.reduced(g, "rep")
            elif not r.wrong("rep_unreduced"):
                g = r.averaged(g, "rep")
            p.grad = g


@program({"dp": 2}, "not_shared own_gradient of_first")
def owners_of_matrices(r):
    """Each rank turns the gradient of its own matrices into a step, and the others get it."""
    x, y = r.input("x", 8, 6, dp=0), r.input("y", 8, 6, dp=0)
    w = {"w1": r.param("w1", 6, 6), "w2": r.param("w2", 6, 6)}
    with r.recorded():
        end(r, F.mse_loss(F.linear(torch.tanh(F.linear(x, w["w1"])), w["w2"]), y), "dp")
        with torch.no_grad():
            for k, (name, p) in enumerate(w.items()):
                g = p.grad if r.wrong("own_gradient") else r.averaged(p.grad, "dp")
                m = g / (g.norm() + 1e-7)
                for _ in range(2):
                    m = 1.5 * m - 0.5 * m @ m.t() @ m
                new = p - 0.1 * m
                if r.wrong("of_first", "not_shared"):
                    owner = 0 if r.wrong("of_first") else k % r.world
                    new = new if r.rank == owner else p.detach().clone()
                else:
                    new = new.detach().clone()
                    dist.broadcast(new, k % r.world)
                r.update(name, new)
                p.grad = None if r.wrong("own_gradient") else g


@program({"dp": 2, "tp": 2}, "synced_over_tp second_left_out summed averaged_again norm_left_out")
def accumulation_on_a_grid(r):
    """Micro-batches without reduction but the last, on a grid of data and tensor parallel."""
    xs = [r.input("x%d" % k, 8, 6, dp=0) for k in range(2)]
    ys = [r.input("y%d" % k, 8, 6, dp=0) for k in range(2)]
    g, up = r.param("g", 6, shift=1), r.param("up", 8, 6, tp=0)
    down = r.param("down", 6, 8, tp=1)
    with r.recorded():
        total = 0
        for x, y in zip(xs, ys):
            h = copied(F.rms_norm(x, (6,), g), r, "tp")
            loss = F.mse_loss(x + summed(F.linear(F.gelu(F.linear(h, up)), down), r, "tp"), y) / 2
            loss.backward()
            total = total + loss.detach()
        r.gives("loss", r.averaged(total, "dp"))
        reduce = r.reduced if r.wrong("summed") else r.averaged
        axis = "tp" if r.wrong("synced_over_tp") else "dp"
        left = ["down"] if r.wrong("second_left_out") else ["g"] if r.wrong("norm_left_out") else []
        each_gradient(r, lambda t: reduce(t, axis), left)
        if r.wrong("averaged_again"):
            each_gradient(r, lambda t: t / dist.get_world_size(r.group["dp"]))


# ---- context parallel ----


@program({"sp": 2}, "not_back unreduced averaged values_of_own")
def exchanged_in_training(r):
    """Tokens are cut, heads for the attention; the gradients of all products are sums."""
    x, d = r.input("x", 8, 12, sp=0), 3
    w, o = r.param("w", 36, 12), r.param("o", 12, 12)
    with r.recorded():
        q, k, v = (t.view(-1, 4, d) for t in F.linear(x, w).chunk(3, -1))
        q, k = exchanged(q, r, "sp", 1, 0), exchanged(k, r, "sp", 1, 0)
        if r.wrong("values_of_own"):
            v = v[:, : 4 // r.size["sp"]].repeat(r.size["sp"], 1, 1)
        else:
            v = exchanged(v, r, "sp", 1, 0)
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        y = (torch.softmax(q @ k.transpose(1, 2) * d**-0.5, -1) @ v).transpose(0, 1)
        if r.wrong("not_back"):
            y = y.reshape(-1, 12)
        else:
            y = exchanged(y.contiguous(), r, "sp", 0, 1).reshape(-1, 12)
        loss = F.linear(y, o).pow(2).sum() / 96
        loss.backward()
        r.gives("loss", r.reduced(loss, "sp"))
        if not r.wrong("unreduced"):
            each_gradient(r, lambda g: (r.averaged if r.wrong("averaged") else r.reduced)(g, "sp"))


@program({"sp": 2}, "keys_of_other rotated_from_0", undecided="keys_of_other rotated_from_0")
def exchanged_groups(r):
    """Four heads of queries read two of keys; rotary positions go before the exchange."""
    n, d, x = r.size["sp"], 4, r.input("x", 8, 8, sp=0)
    q, k, v = r.param("q", 16, 8), r.param("k", 8, 8), r.param("v", 8, 8)
    o, own = r.param("o", 8, 16), 8 // n
    first = 0 if r.wrong("rotated_from_0") else own * r.at["sp"]
    with r.recorded():
        angle = (torch.arange(own) + first)[:, None] * torch.tensor([1.0, 0.1])
        cos, sin = (t.repeat(1, 2).unsqueeze(1) for t in (angle.cos(), angle.sin()))

        def turned(t):
            return t * cos + torch.cat([-t[..., 2:], t[..., :2]], -1) * sin

        a, b = turned(F.linear(x, q).view(-1, 4, d)), turned(F.linear(x, k).view(-1, 2, d))
        c = F.linear(x, v).view(-1, 2, d)
        a = r.exchanged(a, "sp", 1, 0)
        if r.wrong("keys_of_other"):
            k = 1 - r.at["sp"]
            b, c = (r.gathered(t, "sp")[:, k : k + 1] for t in (b, c))
        else:
            b, c = (r.exchanged(t, "sp", 1, 0) for t in (b, c))
        b, c = (t.repeat_interleave(2, 1).transpose(0, 1) for t in (b, c))
        s = torch.softmax(a.transpose(0, 1) @ b.transpose(1, 2) * d**-0.5, -1)
        y = r.exchanged((s @ c).transpose(0, 1), "sp", 0, 1).reshape(own, -1)
        r.gives("y", r.gathered(F.linear(y, o), "sp"))


@program({"cp": 2}, "shifted_within_own", undecided="none shifted_within_own")
def next_tokens(r):
    """Each token predicts the next one, which for a rank's last token the next rank has."""
    n, x = r.size["cp"], r.input("x", 8, 6, cp=0)
    ids, w = r.tokens("ids", 8, below=5, cp=0), r.param("w", 5, 6)
    last = r.at["cp"] == n - 1
    with r.recorded():
        come = ids[:1]
        if n > 1 and not r.wrong("shifted_within_own"):
            come = r.passed(ids[:1].contiguous(), "cp", -1)
        to = torch.cat([ids[1:], come])
        each = F.cross_entropy(F.linear(x, w), to, reduction="none")
        counts = torch.ones(8 // n)
        if last:
            counts = torch.cat([counts[1:], torch.zeros(1)])
        r.gives("loss", r.reduced((each * counts).sum(), "cp") / 7)


@program({"cp": 2}, "state_not_passed decay_of_own", undecided="none decay_of_own")
def scanned_states(r):
    """A linear recurrence over tokens that are cut: a rank begins with the state of the one
    before."""
    n, x, w = r.size["cp"], r.input("x", 8, 4, cp=0), r.param("w", 4, 4)
    with r.recorded():
        h, own = F.linear(x, w), 8 // n
        at = torch.arange(own)
        decay = torch.where(at[:, None] >= at[None], 0.5 ** (at[:, None] - at[None]).float(), 0.0)
        y = decay @ h
        ends = r.gathered(y[-1:], "cp")
        if r.at["cp"] > 0 and not r.wrong("state_not_passed"):
            by = 0.5 if r.wrong("decay_of_own") else 0.5 ** (at + 1).float()[:, None]
            y = y + by * ends[r.at["cp"] - 1]
        r.gives("y", r.gathered(y, "cp"))


# ---- rings ----


@program({"tp": 4}, "one_step_less own_not_added")
def ring_of_sums(r):
    """A sum's rows by messages: each part goes round, and each rank adds its own."""
    n, k, x = r.size["tp"], r.at["tp"], r.input("x", 8, 8, tp=1)
    w = r.param("w", 6, 8, tp=1)
    with r.recorded():
        rows = list(F.linear(x, w).chunk(n))
        now = rows[(k - 1) % n]
        for step in range(1, n if not r.wrong("one_step_less") else n - 1):
            now = r.passed(now, "tp")
            if not (r.wrong("own_not_added") and step == 1):
                now = now + rows[(k - 1 - step) % n]
        r.gives("y", r.gathered(F.relu(now), "tp"))


@program({"tp": 4}, "ordered_by_step", undecided="ordered_by_step")
def ring_of_columns(r):
    """Weights go round; each rank multiplies its rows with all columns."""
    n, k, x = r.size["tp"], r.at["tp"], r.input("x", 8, 6, tp=0)
    w, o = r.param("w", 8, 6, tp=0), r.param("o", 5, 8)
    with r.recorded():
        parts, now = [None] * n, w.detach()
        for step in range(n):
            parts[step if r.wrong("ordered_by_step") else (k - step) % n] = F.linear(x, now)
            now = r.passed(now, "tp") if step + 1 < n else now
        h = torch.cat(parts, 1)
        r.gives("y", r.gathered(F.linear(F.gelu(h), o), "tp"))


# ---- experts ----


@program({"ep": 2, "tp": 2}, "tp_unreduced over_ep over_all bias_on_each")
def cut_experts(r):
    """Experts lie over ep, and each is cut over tp; all tokens are everywhere."""
    n, x, gate = r.size["ep"], r.input("x", 6, 8), r.param("gate", 4, 8)
    up = r.param("up", 4, 8, 12, ep=0, tp=2)
    down, b = r.param("down", 4, 12, 8, ep=0, tp=1), r.param("b", 4, 1, 8, ep=0)
    first = r.at["ep"] * (4 // n)
    with r.recorded():
        weight = F.softmax(F.linear(x, gate), -1)[:, first : first + 4 // n]
        h = torch.bmm(F.silu(torch.bmm(x.expand(4 // n, 6, 8), up)), down)
        h = h + b if r.wrong("bias_on_each") else h
        if not r.wrong("tp_unreduced"):
            h = r.reduced(h, "ep" if r.wrong("over_ep") else "all" if r.wrong("over_all") else "tp")
        h = h if r.wrong("bias_on_each") else h + b
        y = (h * weight.t().unsqueeze(2)).sum(0)
        r.gives("y", r.reduced(y, "ep"))


@program({"ep": 4}, "not_back weighed_by_own", undecided="none not_back weighed_by_own")
def experts_of_four_ranks(r):
    """Each rank has an expert; every expert gets an equal share of each rank's tokens."""
    n, d, x = r.size["ep"], 6, r.input("x", 32, 6, ep=0)
    up, down = r.param("up", 4, d, 10, ep=0), r.param("down", 4, 10, d, ep=0)
    gate = r.param("gate", 4, d)
    with r.recorded():
        share = F.softmax(F.linear(x, gate), -1).t()  # an expert, a token
        sent = (share.unsqueeze(2) * x).reshape(n, 4 // n, -1, d)
        got = r.swapped(sent, "ep").transpose(0, 1).reshape(4 // n, -1, d)
        h = torch.bmm(F.gelu(torch.bmm(got, up)), down)
        if r.wrong("weighed_by_own"):
            h = h * share.mean()
        h = h.view(4 // n, n, -1, d).transpose(0, 1)
        h = h if r.wrong("not_back") else r.swapped(h.contiguous(), "ep")
        y = h.reshape(4, -1, d).sum(0)
        r.gives("y", r.gathered(y + x, "ep"))


# ---- data parallel ----


@program({"dp": 2}, "variance_of_own running_of_own count_of_own", undecided="count_of_own")
def synchronised_norm(r):
    """Sums, squares and the count of rows are reduced; the buffers get the whole batch's."""
    x, g, b = r.input("x", 8, 6, dp=0), r.param("g", 6, shift=1), r.param("b", 6)
    mean0 = r.input("mean0", 6)
    with r.recorded():
        sums = torch.cat([x.sum(0), x.pow(2).sum(0)])
        sums = r.reduced(sums, "dp")
        count = x.new_ones(x.shape[0]).sum()
        count = count if r.wrong("count_of_own") else r.reduced(count, "dp")
        mean = sums[:6] / count
        var = sums[6:] / count - mean.pow(2)
        var = (x - mean).pow(2).mean(0) if r.wrong("variance_of_own") else var
        y = (x - mean) * (var + 1e-5).rsqrt() * g + b
        own = x.mean(0) if r.wrong("running_of_own") else mean
        r.gives("running", 0.9 * mean0 + 0.1 * own)
        r.gives("y", r.gathered(y, "dp"))


@program({"dp": 2}, "means_of_own rewards_of_own divided_twice")
def advantages(r):
    """Rewards of all ranks are normalised, and a policy's loss is the mean over all samples."""
    x, a = r.input("x", 8, 6, dp=0), r.tokens("a", 8, below=4, dp=0)
    reward, w = r.input("reward", 8, dp=0), r.param("w", 4, 6)
    with r.recorded():
        all_rewards = reward if r.wrong("rewards_of_own") else r.gathered(reward, "dp")
        adv = (reward - all_rewards.mean()) / (all_rewards.std() + 1e-4)
        adv = adv - reward.mean() if r.wrong("means_of_own") else adv
        logp = F.log_softmax(F.linear(x, w), -1).gather(1, a.unsqueeze(1)).squeeze(1)
        loss = -(logp * adv).mean()
        loss.backward()
        r.gives("loss", r.averaged(loss, "dp"))
        each_gradient(r, lambda g: r.averaged(g, "dp"))
        if r.wrong("divided_twice"):
            each_gradient(r, lambda g: g / dist.get_world_size())


if __name__ == "__main__":
    main()
