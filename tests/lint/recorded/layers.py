"""Layers of several ranks and training steps by hand, each with mistakes (rank.py).

layers.py NAME FAULT FOLDER: FOLDER gets what each rank computed."""

import torch
import torch.distributed as dist
import torch.nn.functional as F
from rank import copied, each_gradient, end, joined, main, program, spread, summed


# ---- tensor parallel ----


@program({"tp": 2}, "bias_on_each unreduced input_unreduced sum_of_shards")
def feed_forward(r):
    """Columns, then rows, both with a bias, behind a norm."""
    x = r.input("x", 6, 8)
    g, b = r.param("g", 8, shift=1), r.param("b", 8)
    up, ub = r.param("up", 16, 8, tp=0), r.param("ub", 16, tp=0)
    down, db = r.param("down", 8, 16, tp=1), r.param("db", 8)
    with r.recorded():
        h = F.layer_norm(x, (8,), g, b)
        h = h if r.wrong("input_unreduced") else copied(h, r, "tp")
        h = F.linear(h, up, ub)
        if r.fault == "sum_of_shards":
            h = h + ub.sum()
        h = F.gelu(h)
        y = F.linear(h, down, db if r.wrong("bias_on_each") else None)
        y = y if r.wrong("unreduced") else summed(y, r, "tp")
        y = y if r.wrong("bias_on_each") else y + db
        r.gives("y", y)
        end(r, (y + x).pow(2).mean())


@program({"tp": 4}, "unmasked table_unreduced local_largest denominator_unreduced target_unreduced")
def vocabulary(r):
    """A table of embeddings that is cut by rows, and a loss over logits that are cut by columns."""
    n = r.size["tp"]
    ids, to = r.tokens("ids", 6, below=16), r.tokens("to", 6, below=16)
    table, head = r.param("table", 16, 8, tp=0), r.param("head", 16, 8, tp=0)
    first, rows = r.at["tp"] * (16 // n), 16 // n
    with r.recorded():
        out = (ids < first) | (ids >= first + rows)
        h = F.embedding((ids - first).masked_fill(out, 0), table)
        h = h if r.wrong("unmasked") else h.masked_fill(out.unsqueeze(-1), 0.0)
        h = h if r.wrong("table_unreduced") else summed(h, r, "tp")
        z = F.linear(copied(torch.tanh(h), r, "tp"), head)
        most = z.detach().max(-1)[0]
        most = most if r.wrong("local_largest") else r.largest(most, "tp")
        z = z - most.unsqueeze(-1)
        total = z.exp().sum(-1)
        total = total if r.wrong("denominator_unreduced") else summed(total, r, "tp")
        out = (to < first) | (to >= first + rows)
        of = z.gather(1, (to - first).masked_fill(out, 0).unsqueeze(1)).squeeze(1)
        of = of.masked_fill(out, 0.0)
        of = of if r.wrong("target_unreduced") else summed(of, r, "tp")
        end(r, (total.log() - of).mean())


@program({"tp": 2}, "norm_unreduced norm_averaged not_scattered residual_on_each")
def sequence_parallel(r):
    """Tokens are cut for the norm and gathered for the products."""
    x = r.input("x", 8, 6, tp=0)
    g, b = r.param("g", 6, shift=1), r.param("b", 6)
    up, down = r.param("up", 12, 6, tp=0), r.param("down", 6, 12, tp=1)
    with r.recorded():
        h = joined(F.layer_norm(x, (6,), g, b), r, "tp")
        y = F.linear(F.silu(F.linear(h, up)), down)
        if r.wrong("residual_on_each"):
            y = y + h
        y = y.chunk(r.size["tp"])[r.at["tp"]] if r.wrong("not_scattered") else spread(y, r, "tp")
        r.gives("y", r.gathered(y + x, "tp"))
        loss = (y + x).pow(2).sum() / 48
        loss.backward()
        r.gives("loss", r.reduced(loss, "tp"))
        if not r.wrong("norm_unreduced"):
            for p in (g, b):
                p.grad = (r.averaged if r.wrong("norm_averaged") else r.reduced)(p.grad, "tp")


@program({"x": 2, "y": 2}, "sum_over_x gathered_over_y no_sum bias_on_each")
def blocks_of_weights(r):
    """A weight in blocks: its columns are summed over y, its rows gathered over x."""
    x, w = r.input("v", 6, 8, y=1), r.param("w", 12, 8, x=0, y=1)
    b, o = r.param("b", 12, x=0), r.param("o", 4, 12)
    with r.recorded():
        h = F.linear(x, w, b if r.wrong("bias_on_each") else None)
        if not r.wrong("no_sum"):
            h = r.reduced(h, "x" if r.wrong("sum_over_x") else "y")
        h = h if r.wrong("bias_on_each") else h + b
        h = r.gathered(h, "y" if r.wrong("gathered_over_y") else "x", 1)
        r.gives("y", F.linear(F.gelu(h), o))


@program({"tp": 2}, "norm_of_each second_bias unreduced")
def convolutions(r):
    """Channels are cut, with a norm over all of them between."""
    x = r.input("x", 2, 4, 6, 6)
    one, ob = r.param("one", 8, 4, 3, 3, tp=0), r.param("ob", 8, tp=0)
    two, tb = r.param("two", 4, 8, 3, 3, tp=1), r.param("tb", 4)
    with r.recorded():
        h = F.relu(F.conv2d(x, one, ob, padding=1))
        square = h.pow(2).mean((1, 2, 3), keepdim=True)
        square = square if r.wrong("norm_of_each") else r.averaged(square, "tp")
        h = h / (square + 1e-5).sqrt()
        y = F.conv2d(h, two, tb if r.wrong("second_bias") else None, padding=1)
        y = y if r.wrong("unreduced") else r.reduced(y, "tp")
        y = y if r.wrong("second_bias") else y + tb.view(4, 1, 1)
        r.gives("y", F.relu(y))


@program({"tp": 2}, "keys_unreduced output_unreduced scores_over_all")
def one_head_of_keys(r):
    """Heads of queries are cut, and all read one head of keys and values."""
    n, d = r.size["tp"], 4
    x = r.input("x", 6, 8)
    q, o = r.param("q", 16, 8, tp=0), r.param("o", 8, 16, tp=1)
    k, v = r.param("k", d, 8), r.param("v", d, 8)
    with r.recorded():
        a = F.linear(x, q).view(6, 4 // n, d).transpose(0, 1)
        keys, values = F.linear(x, k), F.linear(x, v)
        if not r.wrong("keys_unreduced"):
            keys, values = copied(keys, r, "tp"), copied(values, r, "tp")
        s = torch.softmax(a @ keys.t() / d**0.5, 0 if r.wrong("scores_over_all") else -1)
        y = F.linear((s @ values).transpose(0, 1).reshape(6, -1), o)
        y = y if r.wrong("output_unreduced") else summed(y, r, "tp")
        end(r, y.pow(2).mean())


@program({"tp": 2}, "one_use unreduced")
def tied_table(r):
    """One table looks tokens up and makes logits; it is cut by columns."""
    ids = r.tokens("ids", 6, below=10)
    table, g = r.param("table", 10, 8, tp=1), r.param("g", 8, shift=1)
    with r.recorded():
        h = r.gathered(F.embedding(ids, table), "tp", 1)
        h = F.rms_norm(h, (8,), g)
        own = h.chunk(r.size["tp"], 1)[r.at["tp"]]
        z = F.linear(own, table)
        z = z if r.wrong("unreduced") else r.reduced(z, "tp")
        if r.wrong("one_use"):
            z = z + F.linear(own, table)
        r.gives("p", F.softmax(z, -1))


@program({"tp": 2}, "nothing_sent other_rows_sent")
def sum_by_messages(r):
    """Each rank sends the rows of its part of a sum that the other one is to have."""
    x, w, k = r.input("v", 6, 8, tp=1), r.param("w", 4, 8, tp=1), r.at["tp"]
    with r.recorded():
        rows = F.linear(x, w).chunk(r.size["tp"])
        own = rows[k]
        if r.world > 1 and not r.wrong("nothing_sent"):
            own = own + r.passed(rows[k if r.wrong("other_rows_sent") else 1 - k], "tp")
        r.gives("y", r.gathered(F.relu(own), "tp"))


# ---- experts ----


def places(x, router, experts, capacity):
    """For each token and expert and place there, whether the token has that place."""
    gates = F.softmax(F.linear(x, router), -1)
    chosen = F.one_hot(gates.argmax(-1), experts).to(x.dtype)
    place = (chosen.cumsum(0) - 1) * chosen
    fits = chosen * (place < capacity).to(x.dtype)
    at = F.one_hot(place.sum(-1).long(), capacity).to(x.dtype)
    mask = fits.unsqueeze(2) * at.unsqueeze(1)
    return mask, mask * gates.max(-1, True)[0].unsqueeze(2)


@program({"ep": 2}, "unreduced gate_of_own shared_on_each")
def experts_of_all_tokens(r):
    """Each rank has some experts, and works on all tokens; the sums are added up."""
    n, x = r.size["ep"], r.input("x", 6, 8)
    gate, shared = r.param("gate", 4, 8), r.param("shared", 8, 8)
    up, down = r.param("up", 4, 8, 12, ep=0), r.param("down", 4, 12, 8, ep=0)
    first = r.at["ep"] * (4 // n)
    with r.recorded():
        logits = F.linear(x, gate)
        own = logits[:, first : first + 4 // n]
        weight = F.softmax(logits, -1)[:, first : first + 4 // n]
        weight = F.softmax(own, -1) if r.wrong("gate_of_own") else weight
        h = torch.bmm(F.gelu(torch.bmm(x.expand(4 // n, 6, 8), up)), down)
        y = (h * weight.t().unsqueeze(2)).sum(0)
        if r.wrong("shared_on_each"):
            y = y + F.linear(x, shared)
        y = y if r.wrong("unreduced") else r.reduced(y, "ep")
        r.gives("y", y if r.wrong("shared_on_each") else y + F.linear(x, shared))


@program({"ep": 2}, "not_back not_there other_layout", undecided="none not_there")
def experts_by_exchange(r):
    """Tokens are sent to the ranks of their experts, and come back; all fit."""
    experts, d, n = 4, 6, r.size["ep"]
    own = experts // n
    x, router = r.input("x", 8, d, ep=0), r.param("router", experts, d)
    up, down = r.param("up", experts, d, 10, ep=0), r.param("down", experts, 10, d, ep=0)
    with r.recorded():
        mask, weight = places(x, router, experts, x.shape[0])
        sent = torch.einsum("tec,td->ecd", mask, x).reshape(n, own, -1, d)
        sent = sent if r.wrong("not_there") else r.swapped(sent, "ep")
        h = F.gelu(torch.bmm(sent.transpose(0, 1).reshape(own, -1, d), up))
        h = torch.bmm(h, down).reshape(own, n, -1, d).transpose(0, 1)
        h = h if r.wrong("not_back") else r.swapped(h, "ep")
        h = (h.transpose(0, 1) if r.wrong("other_layout") else h).reshape(experts, -1, d)
        r.gives("y", r.gathered(torch.einsum("tec,ecd->td", weight, h), "ep"))


@program({"ep": 2}, "of_each_rank unreduced")
def balance_of_experts(r):
    """The loss that keeps experts busy: shares of tokens times means of gates, over all ranks."""
    x, router = r.input("x", 8, 6, ep=0), r.param("router", 4, 6)
    with r.recorded():
        gates = F.softmax(F.linear(x, router), -1)
        load = F.one_hot(gates.argmax(-1), 4).to(x.dtype).mean(0)
        load = load if r.fault in ("of_each_rank", "unreduced") else r.averaged(load, "ep")
        share = gates.mean(0)
        share = share if r.wrong("of_each_rank") else r.averaged(share, "ep")
        loss = 4 * (load * share).sum()
        r.gives("loss", r.averaged(loss, "ep") if r.wrong("of_each_rank") else loss)


# ---- context parallel ----


@program({"cp": 2}, "mask_from_0 keys_of_own gathered_features positions_from_0")
def gathered_keys(r):
    """Tokens are cut, keys and values gathered; causal, with positions added."""
    n, x = r.size["cp"], r.input("x", 8, 6, cp=0)
    p = r.param("p", 8, 6)
    w = [r.param(k, 6, 6) for k in ("q", "k", "v")]
    first, own = r.at["cp"] * (8 // n), 8 // n
    with r.recorded():
        h = x + (p[:own] if r.wrong("positions_from_0") else p[first : first + own])
        q, k, v = (F.linear(h, m) for m in w)
        if r.wrong("gathered_features"):
            k = r.gathered(k.t().contiguous(), "cp").view(6, 8).t()
            v = r.gathered(v, "cp")
        elif not r.wrong("keys_of_own"):
            k, v = r.gathered(k, "cp"), r.gathered(v, "cp")
        rows = torch.arange(own) + (0 if r.wrong("mask_from_0") else first)
        s = q @ k.t() / 6**0.5
        if not r.wrong("keys_of_own"):
            s = s.masked_fill(torch.arange(8)[None] > rows[:, None], float("-inf"))
        else:
            s = s.masked_fill(torch.arange(own)[None] > torch.arange(own)[:, None], float("-inf"))
        r.gives("y", r.gathered(torch.softmax(s, -1) @ v, "cp"))


@program({"sp": 4}, "not_back heads_twice values_of_first")
def heads_by_exchange(r):
    """Tokens are cut for products, and heads for the attention."""
    x, heads, d = r.input("x", 8, 12, sp=0), 4, 3
    w, o = [r.param(k, 12, 12) for k in ("q", "k", "v")], r.param("o", 12, 12)
    with r.recorded():
        q, k, v = (F.linear(x, m).view(-1, heads, d) for m in w)
        q, k = (r.exchanged(t, "sp", 1, 0) for t in (q, k))
        if r.wrong("values_of_first"):
            v = r.gathered(v, "sp")[:, : heads // r.size["sp"]]
        else:
            v = r.exchanged(v, "sp", 1, 0)
        q, k, v = (t.transpose(0, 1) for t in (q, k, v))
        y = (torch.softmax(q @ k.transpose(1, 2) / d**0.5, -1) @ v).transpose(0, 1)
        if r.wrong("not_back"):
            y = r.gathered(y.reshape(8, -1), "sp").reshape(8, 12)[: 8 // r.size["sp"]]
        elif r.wrong("heads_twice"):
            y = r.gathered(y.contiguous(), "sp", 1).reshape(8, 12)[: 8 // r.size["sp"]]
        else:
            y = r.exchanged(y, "sp", 0, 1).reshape(-1, 12)
        y = F.linear(y, o)
        r.gives("y", r.gathered(y, "sp"))


@program({"cp": 2}, "unscaled largest_of_own denominator_of_own")
def attention_of_parts(r):
    """Keys are cut, queries whole: the parts' softmax is put together by largest and sum."""
    q, x = r.input("q", 4, 6), r.input("x", 8, 6, cp=0)
    k, v = r.param("k", 6, 6), r.param("v", 6, 6)
    with r.recorded():
        s = q @ F.linear(x, k).t()
        own = s.max(-1, keepdim=True)[0]
        most = own if r.wrong("largest_of_own") else r.largest(own, "cp")
        e = (s - (own if r.wrong("unscaled") else most)).exp()
        total = e.sum(-1, keepdim=True)
        total = total if r.wrong("denominator_of_own") else r.reduced(total, "cp")
        y = r.reduced(e @ F.linear(x, v), "cp")
        r.gives("y", y / total)


# ---- data parallel: statistics, losses, metrics ----


@program({"dp": 2}, "local_mean local_variance summed_twice")
def batch_norm(r):
    """Statistics over the batch of all ranks."""
    x, g, b = r.input("x", 8, 6, dp=0), r.param("g", 6, shift=1), r.param("b", 6)
    w = r.param("w", 4, 6)
    with r.recorded():
        mean = x.mean(0) if r.wrong("local_mean") else r.averaged(x.mean(0), "dp")
        c = (x - mean).pow(2).mean(0)
        var = c if r.wrong("local_variance") else r.averaged(c, "dp")
        var = r.reduced(var, "dp") if r.wrong("summed_twice") else var
        y = F.linear((x - mean) / (var + 1e-5).sqrt() * g + b, w)
        r.gives("y", r.gathered(y, "dp"))


@program({"dp": 2}, "local_counts loss_of_means unreduced_count gradient_summed")
def weighted_loss(r):
    """A mean over tokens that count, which are not as many on each rank."""
    x = r.input("x", 8, 6, dp=0)
    m = r.input("m", values=torch.tensor([1.0, 1, 0, 1, 0, 0, 1, 0]), dp=0)
    w = r.param("w", 4, 6)
    with r.recorded():
        each = F.linear(x, w).pow(2).sum(-1) * m
        count = m.sum()
        count = count if r.wrong("local_counts", "unreduced_count") else r.reduced(count, "dp")
        loss = each.sum() / count
        loss.backward()
        r.gives("loss", (r.averaged if r.wrong("loss_of_means") else r.reduced)(loss, "dp"))
        if r.wrong("local_counts"):
            r.gives("loss", r.averaged(loss, "dp"))
        each_gradient(
            r,
            lambda g: (r.averaged if r.wrong("loss_of_means", "local_counts") else r.reduced)(
                g, "dp"
            ),
        )
        if r.wrong("gradient_summed"):
            each_gradient(r, lambda g: r.reduced(g, "dp"))


@program({"dp": 4}, "labels_from_0 negatives_of_own gathered_one unscaled_loss")
def contrastive(r):
    """Images against texts of all ranks."""
    n = r.size["dp"]
    x, t = r.input("x", 12, 6, dp=0), r.input("t", 12, 5, dp=0)
    a, b = r.param("a", 4, 6), r.param("bt", 4, 5)
    first, own = r.at["dp"] * (12 // n), 12 // n
    with r.recorded():
        i, t = F.normalize(F.linear(x, a), dim=-1), F.normalize(F.linear(t, b), dim=-1)
        if not r.wrong("negatives_of_own"):
            t_all = r.gathered(t, "dp")
            i_all = i if r.wrong("gathered_one") else r.gathered(i, "dp")
        else:
            t_all, i_all = t, i
        labels = torch.arange(own)
        if not r.wrong("labels_from_0", "negatives_of_own"):
            labels = labels + first
        loss = F.cross_entropy(5 * i @ t_all.t(), labels)
        back = torch.arange(own) if r.wrong("gathered_one") else labels
        loss = (loss + F.cross_entropy(5 * t @ i_all.t(), back)) / 2
        r.gives("loss", (r.reduced if r.wrong("unscaled_loss") else r.averaged)(loss, "dp"))


@program({"dp": 2}, "mean_of_ratios count_of_own largest_summed")
def metrics(r):
    """How often the best is right, over all tokens that count."""
    x, w = r.input("x", 8, 6, dp=0), r.param("w", 4, 6)
    to = r.tokens("to", 8, below=4, dp=0)
    m = r.input("m", values=torch.tensor([1.0, 1, 1, 1, 0, 0, 1, 0]), dp=0)
    with r.recorded():
        z = F.linear(x, w)
        right = ((z.argmax(-1) == to).to(x.dtype) * m).sum()
        if r.wrong("mean_of_ratios"):
            r.gives("accuracy", r.averaged(right / m.sum(), "dp"))
        else:
            count = m.sum() if r.wrong("count_of_own") else r.reduced(m.sum(), "dp")
            r.gives("accuracy", r.reduced(right, "dp") / count)
        most = z.abs().max()
        r.gives("most", (r.reduced if r.wrong("largest_summed") else r.largest)(most, "dp"))


# ---- steps by hand ----


def mlp(r, **cut):
    return r.param("w1", 8, 6), r.param("b1", 8), r.param("w2", 4, 8)


def forward(x, w1, b1, w2):
    return F.linear(torch.tanh(F.linear(x, w1, b1)), w2)


@program({"dp": 2}, "first_only reduced_each_time unreduced averaged_twice")
def accumulated(r):
    """Two micro-batches, and one sum of gradients."""
    x, y, w = r.input("x", 8, 6, dp=0), r.input("y", 8, 4, dp=0), mlp(r)
    with r.recorded():
        total = 0
        for k, (a, b) in enumerate(zip(x.chunk(2), y.chunk(2))):
            loss = F.mse_loss(forward(a, *w), b) / 2
            loss.backward()
            total = total + loss.detach()
            if r.wrong("reduced_each_time"):
                each_gradient(r, lambda g: r.reduced(g, "dp"))
            if k == 0 and r.wrong("first_only"):
                each_gradient(r, lambda g: r.averaged(g, "dp"))
        r.gives("loss", r.averaged(total, "dp"))
        if not r.wrong("first_only", "reduced_each_time", "unreduced"):
            each_gradient(r, lambda g: r.averaged(g, "dp"))
        if r.wrong("averaged_twice", "reduced_each_time"):
            each_gradient(r, lambda g: g / dist.get_world_size())


@program({"dp": 2, "tp": 2}, "over_tp unreduced over_all one_left_out summed input_unreduced")
def grid(r):
    """Data parallel over dp, columns and rows over tp."""
    x, y = r.input("x", 8, 6, dp=0), r.input("y", 8, 6, dp=0)
    g = r.param("g", 6, shift=1)
    up, down = r.param("up", 8, 6, tp=0), r.param("down", 6, 8, tp=1)
    with r.recorded():
        h = F.rms_norm(x, (6,), g)
        h = h if r.wrong("input_unreduced") else copied(h, r, "tp")
        z = summed(F.linear(F.silu(F.linear(h, up)), down), r, "tp")
        end(r, F.mse_loss(x + z, y), "dp")
        axis = "tp" if r.wrong("over_tp") else "all" if r.wrong("over_all") else "dp"
        if not r.wrong("unreduced"):
            left = ["up"] if r.wrong("one_left_out") else []
            reduce = r.reduced if r.wrong("summed") else r.averaged
            each_gradient(r, lambda t: reduce(t, axis), left)


def flat(ts):
    return torch.cat([t.reshape(-1) for t in ts])


@program({"dp": 2}, "unaveraged unreduced other_part not_gathered own_gradient")
def optimizer_in_parts(r):
    """Gradients are averaged; each rank makes its part of the step of momentum, and all gather."""
    x, y, w = r.input("x", 8, 6, dp=0), r.input("y", 8, 4, dp=0), mlp(r)
    n, k = r.size["dp"], r.at["dp"]
    with r.recorded():
        end(r, F.mse_loss(forward(x, *w), y), "dp")
        with torch.no_grad():
            for p, name in zip(w, ("w1", "b1", "w2")):
                g = p.grad
                if r.wrong("unaveraged"):
                    g = r.reduced(g, "dp")
                elif not r.wrong("unreduced", "own_gradient"):
                    g = r.averaged(g, "dp")
                at = 1 - k if r.wrong("other_part") else k
                part = p.chunk(n)[at] - 0.1 * g.chunk(n)[at]
                new = r.gathered(part, "dp")
                if r.wrong("not_gathered"):
                    new = p - 0.1 * g if k == 0 else p.clone()
                r.update(name, new)
                p.grad = None


@program({"dp": 2}, "summed other_part unscattered")
def gradients_in_parts(r):
    """Each rank gets its part of the summed gradients, makes that part of the step, and all
    gather."""
    x, y, w = r.input("x", 8, 6, dp=0), r.input("y", 8, 4, dp=0), mlp(r)
    n, k = r.size["dp"], r.at["dp"]
    with r.recorded():
        end(r, F.mse_loss(forward(x, *w), y), "dp")
        with torch.no_grad():
            for p, name in zip(w, ("w1", "b1", "w2")):
                g = p.grad.chunk(n)[k] if r.wrong("unscattered") else r.scattered(p.grad, "dp")
                g = g if r.wrong("summed") else g / dist.get_world_size()
                at = 1 - k if r.wrong("other_part") else k
                r.update(name, r.gathered(p.chunk(n)[at] - 0.1 * g, "dp"))
                p.grad = None


@program({"dp": 2}, "summed other_rows")
def parameters_in_parts(r):
    """Parameters are cut by rows; gathered before they are used, their gradients scattered."""
    x, y = r.input("x", 8, 6, dp=0), r.input("y", 8, 4, dp=0)
    w1, b1, w2 = r.param("w1", 8, 6, dp=0), r.param("b1", 8, dp=0), r.param("w2", 4, 8, dp=0)
    with r.recorded():
        whole = [joined(p, r, "dp") for p in (w1, b1, w2)]
        if r.wrong("other_rows"):
            whole[1] = r.gathered(r.passed(b1.detach(), "dp"), "dp") + 0 * whole[1]
        loss = F.mse_loss(forward(x, *whole), y)
        end(r, loss, "dp")
        if not r.wrong("summed"):
            each_gradient(r, lambda g: g / dist.get_world_size())


@program({"tp": 2}, "replicas_twice shards_of_own roots_summed norm_of_own")
def clipped_norm(r):
    """The norm of all gradients, of which some are cut and some are replicas."""
    x = r.input("x", 6, 8)
    g, up, down = r.param("g", 8, shift=1), r.param("up", 12, 8, tp=0), r.param("down", 8, 12, tp=1)
    with r.recorded():
        h = copied(F.rms_norm(x, (8,), g), r, "tp")
        end(r, summed(F.linear(F.gelu(F.linear(h, up)), down), r, "tp").pow(2).mean())
        cut, whole = up.grad.pow(2).sum() + down.grad.pow(2).sum(), g.grad.pow(2).sum()
        if r.wrong("roots_summed"):
            total = (r.reduced(cut.sqrt(), "tp").pow(2) + whole).sqrt()
        elif r.wrong("replicas_twice"):
            total = r.reduced(cut + whole, "tp").sqrt()
        elif r.wrong("shards_of_own", "norm_of_own"):
            total = (cut + whole).sqrt()
        else:
            total = (r.reduced(cut, "tp") + whole).sqrt()
        r.gives("norm", total)
        scale = (1.0 / (total + 1e-6)).clamp(max=1.0)
        if not r.wrong("norm_of_own"):
            each_gradient(r, lambda t: t * scale)


if __name__ == "__main__":
    main()
