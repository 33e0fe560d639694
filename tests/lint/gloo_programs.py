"""Random programs of messages, sums and waits, as events; and running one rank of them."""


def drawn(rng, world=None, shuffled=True):
    """Messages in a sound order, then a few events moved about; a wait stays behind its post."""
    world = world or rng.choice((2, 3))
    ranks = [[] for _ in range(world)]
    for k in range(rng.randrange(2, 6)):
        if rng.random() < 0.2:
            for r in range(world):
                ranks[r].append({"op": "all_reduce", "numel": 4, "reduce": "sum"})
            continue
        a, b = rng.sample(range(world), 2)
        for r, op, peer in ((a, "send", b), (b, "recv", a)):
            e = {"op": op, "peer": peer, "tag": k, "numel": 4}
            ranks[r].append(e)
            if rng.random() < 0.4:
                e["handle"] = "%s%d" % (op, k)
                ranks[r].append({"op": "wait", "handle": e["handle"]})
    for events in ranks if shuffled else []:
        for _ in range(rng.randrange(3)):
            if len(events) < 2:
                continue
            i = rng.randrange(len(events) - 1)
            a, b = events[i], events[i + 1]
            waits = b["op"] == "wait" and a.get("handle") == b["handle"]
            both = a["op"] == b["op"] == "all_reduce"
            if not waits and not both:
                events[i], events[i + 1] = b, a
    return {"format": "isomer-events", "version": 1, "backend": "gloo", "ranks": ranks}


def perform(events):
    """The events of one rank, in a process group that is there."""
    import torch
    import torch.distributed as dist

    works, kept = {}, []
    for e in events:
        t = torch.ones(4)
        kept.append(t)
        if e["op"] == "wait":
            works[e["handle"]].wait()
        elif e["op"] == "all_reduce":
            dist.all_reduce(t)
        else:
            post = dist.isend if e["op"] == "send" else dist.irecv
            work = post(t, e["peer"], tag=e["tag"])
            if "handle" in e:
                works[e["handle"]] = work
            else:
                work.wait()
