"""Kinds of mutation of pipeline tables, as mutate_events.py has them of events. Places are (rank,
column)."""

import functools
import re

MUTATIONS = {}
PART = re.compile(r"(\d+)([A-Z_]+?)(\d*)$")


def mutation(f):
    MUTATIONS[f.__name__] = f
    return f


def read(path):
    with open(path) as f:
        return [line.strip().split(",") for line in f]


def write(path, rows):
    with open(path, "w") as f:
        f.write("".join(",".join(row) + "\r\n" for row in rows))


def split(cell):
    """(stage, word, microbatch or None), or None of an empty cell and of an overlap."""
    m = PART.match(cell)
    return (int(m.group(1)), m.group(2), int(m.group(3)) if m.group(3) else None) if m else None


def find(rows, *words):
    return [
        (r, i)
        for r, row in enumerate(rows)
        for i, c in enumerate(row)
        if split(c) and split(c)[1] in words
    ]


def pick(rows, rng, *words):
    found = find(rows, *words)
    return rng.choice(found) if found else None


def at_cell(*words):
    """Makes a mutation of what changes a table at one of its cells with such a word."""

    def keep(change):
        @functools.wraps(change)
        def mutate(rows, rng):
            at = pick(rows, rng, *words)
            return change(rows, at) if at else None

        return mutate

    return keep


def where(rows, *cells):
    """Cells by what stands in them, overlaps included."""
    return [
        (r, i)
        for r, row in enumerate(rows)
        for i, c in enumerate(row)
        if c in cells or (c.startswith("(") and set(c[1 : c.index(")")].split(";")) & set(cells))
    ]


def has_messages(rows):
    return bool(find(rows, "SEND_F"))


def stages(rows):
    return 1 + max(int(s) for row in rows for c in row for s in re.findall(r"(\d+)[FIWB](?:\d)", c))


def of_cell(rows, s, m):
    """The cells of a stage and microbatch, on whatever rank."""
    return where(
        rows,
        *[
            "%d%s%d" % (s, w, m)
            for w in ("F", "I", "W", "B", "SEND_F", "RECV_F", "SEND_B", "RECV_B")
        ],
    )


def doubled(kind, *words):
    @at_cell(*words)
    def twice(rows, at):
        rows[at[0]].insert(at[1] + 1, rows[at[0]][at[1]])
        return [kind], [at, (at[0], at[1] + 1)]

    return twice


def compute_dropped(*words):
    def f(rows, rng):
        at = pick(rows, rng, *words)
        if not at:
            return None
        s, word, m = split(rows[at[0]][at[1]])
        rows[at[0]].pop(at[1])
        return ["missing-weight-grad" if word == "W" else "missing-microbatch"], of_cell(rows, s, m)

    return f


MUTATIONS["forward_dropped"] = compute_dropped("F")
MUTATIONS["backward_dropped"] = compute_dropped("B")
MUTATIONS["input_gradient_dropped"] = compute_dropped("I")
MUTATIONS["weight_gradient_dropped"] = compute_dropped("W")


MUTATIONS["computed_twice"] = doubled("duplicate-compute", "F", "B", "I", "W")


@mutation
@at_cell("B", "I")
def backward_before_forward(rows, at):
    s, _, m = split(rows[at[0]][at[1]])
    f = [
        i for r, i in where(rows, "%dF%d" % (s, m)) if r == at[0] and not rows[r][i].startswith("(")
    ]
    if not f or f[0] > at[1]:
        return None
    rows[at[0]].insert(f[0], rows[at[0]].pop(at[1]))
    return ["backward-before-forward"], [(at[0], f[0])]


@mutation
@at_cell("W")
def weight_before_input(rows, at):
    s, _, m = split(rows[at[0]][at[1]])
    i = [i for r, i in where(rows, "%dI%d" % (s, m)) if r == at[0]]
    if not i or i[0] > at[1] or rows[at[0]][i[0]].startswith("("):
        return None
    rows[at[0]].insert(i[0], rows[at[0]].pop(at[1]))
    return ["weight-before-input"], [(at[0], i[0])]


@mutation
def on_another_rank(rows, rng):
    at = pick(rows, rng, "F", "B", "I")
    other = rng.choice([r for r in range(len(rows)) if r != at[0]])
    cell = rows[at[0]].pop(at[1])
    i = rng.randrange(1, len(rows[other]))
    rows[other].insert(i, cell)
    return ["stage-on-two-ranks"], [(other, i)]


def renamed(change, kinds, *words):
    def f(rows, rng):
        at = pick(rows, rng, *words)
        if not at:
            return None
        s, word, m = split(rows[at[0]][at[1]])
        s, m = change(rows, s, m)
        rows[at[0]][at[1]] = "%d%s%s" % (s, word, "" if m is None else m)
        return kinds, [at]

    return f


WORK = ("F", "B", "I", "W")
MUTATIONS["stage_outside"] = renamed(
    lambda rows, s, m: (stages(rows) + 5, m), ["out-of-range"], *WORK
)
MUTATIONS["next_stage_outside"] = renamed(
    lambda rows, s, m: (stages(rows), m), ["out-of-range"], *WORK
)
MUTATIONS["microbatch_far"] = renamed(lambda rows, s, m: (s, m + 573320), ["out-of-range"], *WORK)
MUTATIONS["stage_far"] = renamed(lambda rows, s, m: (s + 573320, m), ["out-of-range"], *WORK)
MUTATIONS["microbatch_outside"] = renamed(lambda rows, s, m: (s, 64), ["out-of-range"], *WORK)
MUTATIONS["microbatch_renamed"] = renamed(
    lambda rows, s, m: (s, 1 - min(m, 1)), ["duplicate-compute"], "F"
)


def message_dropped(*words):
    def f(rows, rng):
        at = pick(rows, rng, *words)
        if not at:
            return None
        s, word, m = split(rows[at[0]][at[1]])
        rows[at[0]].pop(at[1])
        up = (word[:4] == "SEND") == (word[-1] == "F")
        other = "%d%s%d" % (
            s + 1 if up else s - 1,
            ("RECV" if word[:4] == "SEND" else "SEND") + word[4:],
            m,
        )
        return ["missing-comm"], of_cell(rows, s, m) + where(rows, other)

    return f


for _word in ("SEND_F", "RECV_F", "SEND_B", "RECV_B"):
    MUTATIONS[_word.lower() + "_dropped"] = message_dropped(_word)


@mutation
@at_cell("SEND_F", "SEND_B")
def both_sides_dropped(rows, at):
    s, word, m = split(rows[at[0]][at[1]])
    to = s + 1 if word == "SEND_F" else s - 1
    rows[at[0]].pop(at[1])
    r, i = where(rows, "%d%s%d" % (to, word.replace("SEND", "RECV"), m))[0]
    rows[r].pop(i)
    return ["missing-comm"], of_cell(rows, s, m) + of_cell(rows, to, m)


MUTATIONS["sent_twice"] = doubled("duplicate-comm", "SEND_F", "SEND_B")


MUTATIONS["received_twice"] = doubled("duplicate-comm", "RECV_F", "RECV_B")


@mutation
@at_cell("RECV_F")
def received_late(rows, at):
    s, _, m = split(rows[at[0]][at[1]])
    use = [i for r, i in where(rows, "%dF%d" % (s, m)) if r == at[0]]
    between = rows[at[0]][at[1] + 1 : use[0] + 1]
    if any("RECV" in c for c in between):
        return None
    rows[at[0]].insert(use[0], rows[at[0]].pop(at[1]))
    return ["wait-before-post"], [(at[0], use[0])]


@mutation
def sent_early(rows, rng):
    at = pick(rows, rng, "SEND_F", "SEND_B")
    if (
        not at
        or at[1] == 0
        or "(" in rows[at[0]][at[1] - 1]
        or split(rows[at[0]][at[1] - 1])[1] not in WORK
    ):
        return None
    rows[at[0]].insert(at[1] - 1, rows[at[0]].pop(at[1]))
    return ["value-mismatch"], [(at[0], at[1] - 1)]


@mutation
def sends_exchanged(rows, rng):
    return exchanged(rows, rng, "SEND_F", "SEND_B")


@mutation
def receives_exchanged(rows, rng):
    return exchanged(rows, rng, "RECV_F", "RECV_B")


def exchanged(rows, rng, *words):
    """Two messages of one stage in the other order; a receive stays before what needs it."""
    at = pick(rows, rng, *words)
    if not at:
        return None
    s, word, m = split(rows[at[0]][at[1]])
    row = rows[at[0]]
    later = [
        i for i in range(at[1] + 1, len(row)) if split(row[i]) and split(row[i])[:2] == (s, word)
    ]
    if not later:
        return None
    row[at[1]], row[later[0]] = row[later[0]], row[at[1]]
    return ["value-mismatch", "wait-before-post"], [at, (at[0], later[0])]


@mutation
def needless_message(rows, rng):
    """To the neighbour that is on the same rank."""
    for r, row in enumerate(rows):
        own = {int(s) for c in row for s in re.findall(r"(\d+)F\d", c)}
        near = [s for s in own if s + 1 in own]
        if near and has_messages(rows):
            i = where([row], "%dF0" % near[0])[0][1]
            row.insert(i + 1, "%dSEND_F0" % near[0])
            return ["duplicate-comm"], [(r, i + 1)]
    return None


@mutation
def beyond_the_last_stage(rows, rng):
    if not has_messages(rows):
        return None
    last = stages(rows) - 1
    r, i = where(rows, "%dF1" % last)[0]
    rows[r].insert(i + 1, "%dSEND_F1" % last)
    return ["out-of-range"], [(r, i + 1)]


@mutation
@at_cell("UNSHARD")
def unshard_dropped(rows, at):
    s = split(rows[at[0]][at[1]])[0]
    rows[at[0]].pop(at[1])
    return ["resharded"], [
        (at[0], i)
        for i, c in enumerate(rows[at[0]])
        if c.startswith("%d" % s) or "(%d" % s in c or ";%d" % s in c
    ]


MUTATIONS["unsharded_twice"] = doubled("double-unshard", "UNSHARD")


@mutation
@at_cell("RESHARD")
def reshard_dropped(rows, at):
    s = split(rows[at[0]][at[1]])[0]
    rows[at[0]].pop(at[1])
    return ["double-unshard"], where(rows, "%dUNSHARD" % s)


@mutation
@at_cell("RESHARD")
def resharded_early(rows, at):
    s = split(rows[at[0]][at[1]])[0]
    row = rows[at[0]]
    use = [i for i in range(at[1]) if re.search(r"(^|[(;])%d[FIWB]\d" % s, row[i])]
    row.insert(use[-1], row.pop(at[1]))
    return ["resharded"], [(at[0], use[-1]), (at[0], use[-1] + 1)]


@mutation
@at_cell("REDUCE_GRAD")
def reduced_early(rows, at):
    s = split(rows[at[0]][at[1]])[0]
    row = rows[at[0]]
    use = [i for i in range(at[1]) if re.search(r"(^|[(;])%d[WB]\d" % s, row[i])]
    row.insert(use[-1], row.pop(at[1]))
    return ["reduce-grad-early"], [(at[0], use[-1])]


@mutation
def reduction_dropped(rows, rng):
    at = pick(rows, rng, "REDUCE_GRAD")
    if not at or len(find(rows, "REDUCE_GRAD")) < 2:
        return None
    s = split(rows[at[0]][at[1]])[0]
    rows[at[0]].pop(at[1])
    return ["missing-reduce-grad"], [
        (at[0], i) for i, c in enumerate(rows[at[0]]) if re.search(r"(^|[(;])%d[WB]\d" % s, c)
    ]


MUTATIONS["reduced_twice"] = doubled("duplicate-reduce-grad", "REDUCE_GRAD")


@mutation
def hangs_in_circle(rows, rng):
    """The first send of a rank that also receives from that peer goes behind that receive."""
    if not has_messages(rows):
        return None
    n = stages(rows)
    owner = {
        int(s): r for r, row in enumerate(rows) for c in row for s in re.findall(r"(\d+)F\d", c)
    }
    found = []
    for r, i in find(rows, "SEND_F"):
        s, _, m = split(rows[r][i])
        back = "%dRECV_B%d" % (s, m)
        if back in rows[r] and rows[r].index(back) > i and s + 1 < n and owner[s + 1] != r:
            between = rows[r][i + 1 : rows[r].index(back)]
            if not any(
                x
                and "SEND" in x
                and owner.get(split(x)[0] + (1 if x[-2] == "F" or "SEND_F" in x else -1))
                == owner[s + 1]
                for x in between
            ):
                found.append((r, i, rows[r].index(back)))
    if not found:
        return None
    r, i, k = rng.choice(found)
    rows[r].insert(k, rows[r].pop(i))
    return ["deadlock"], [(r, k), (r, k - 1)]
