"""Partitioned modules broken at one place: each fault is a change of the text that still reads,
and makes another function of it. Plain Python 3."""

import re

COLLECTIVE = re.compile(
    r"= (\S+) (all-reduce|all-gather|reduce-scatter)\((%[\w.\-]+)\)(.*?)replica_groups="
    r"(mesh\[[^\]]*\] \{[^}]*\}|\{\{[^\n]*?\}\}|\[[^\s]*)(.*)"
)


def each(pattern, text, change):
    """The texts with one match changed; `change` gives None where it cannot."""
    for m in re.finditer(pattern, text):
        new = change(m)
        if new is not None and new != m[0]:
            yield text[: m.start()] + new + text[m.end() :]


def no_all_reduce(whole, ranks):
    """A rank goes on with its own part of a sum."""
    for t in each(COLLECTIVE, ranks, lambda m: drop(m)):
        yield whole, t


def drop(m):
    return "= %s copy(%s)" % (m[1], m[3]) if m[2] == "all-reduce" else None


def all_reduce_twice(whole, ranks):
    """The sum is added up once more: a rank counts for two."""

    def twice(m):
        return "= %s add(%s, %s)" % (m[1], m[3], m[3]) if m[2] == "all-reduce" else None

    for t in each(COLLECTIVE, ranks, twice):
        yield whole, t


def gather_order(whole, ranks):
    """The ranks' parts in the reverse order."""
    n = int(re.search(r"num_partitions=(\d+)", ranks)[1])
    order = "{{%s}}" % ",".join(str(n - 1 - k) for k in range(n))

    def turned(m):
        whole_group = "'=%d" % n in m[5] or m[5].startswith(("[1,%d]" % n, "{{0,"))
        if m[2] != "all-gather" or not whole_group:
            return None
        return m[0].replace("replica_groups=" + m[5], "replica_groups=" + order)

    for t in each(COLLECTIVE, ranks, turned):
        yield whole, t


def parameter_order(whole, ranks):
    """A parameter's parts are given out in the reverse order."""

    def turned(m):
        tiles = [int(k) for k in m[1].split(",")]
        n, last = 1, tiles[-1] if m[3].strip() else 1
        for k in tiles:
            n *= k
        if n == last:
            return None
        devices = [n - 1 - k for k in range(n)]
        return "sharding={devices=[%s]%s%s}" % (m[1], ",".join(map(str, devices)), m[3])

    pattern = r"(?<=\), )sharding=\{devices=\[([\d,]+)\](<=\[[\d,]+\])((?: \w+)?)\}"
    for t in each(pattern, ranks, turned):
        yield whole, t


def place_table(whole, ranks):
    """The table of the ranks' offsets in the reverse order."""

    def turned(m):
        numbers = m[1].split(",")
        return "constant({%s})" % ", ".join(n.strip() for n in reversed(numbers))

    for t in each(r"constant\(\{(0(?:, ?\d+)+)\}\)", ranks, turned):
        yield whole, t


def scale(whole, ranks):
    """A number that is a little too large."""

    def more(m):
        return "f32[] constant(%r)" % (float(m[1]) * 1.01)

    for t in each(r"f32\[\] constant\((0\.\d+)\)", ranks, more):
        yield whole, t


REGION = re.compile(r"\n(%[\w.\-]+) \([^\n]*\{\n(?:(?!\n\}).)*?ROOT [^\n]*? (\w+)\(%", re.S)


def maxima(ranks):
    """(what each called computation does, one that is a maximum)"""
    regions = dict(REGION.findall(ranks))
    return regions, next((n for n, op in regions.items() if op == "maximum"), None)


def reducer(whole, ranks):
    """Sums that are maxima."""
    regions, largest = maxima(ranks)

    def other(m):
        at = re.search(r"to_apply=(%[\w.\-]+)", m[6])
        if largest is None or at is None or regions.get(at[1]) != "add":
            return None
        return m[0].replace("to_apply=" + at[1], "to_apply=" + largest)

    for t in each(COLLECTIVE, ranks, other):
        yield whole, t


def operand(whole, ranks):
    """A residual is added to itself."""

    def same(m):
        return "= %s add(%s, %s)" % (m[1], m[3], m[3])

    body = ranks.index("\nENTRY")
    for t in each(r"= (f32\[\d+,\d+,\d+\]\S*) add\((%[\w.\-]+), (%[\w.\-]+)\)", ranks[body:], same):
        yield whole, ranks[:body] + t


def doubled(whole, ranks):
    """The sum of sums: the collective stands twice."""

    def twice(m):
        if m[2] != "all-reduce":
            return None
        return "= %s all-reduce(%%again)%sreplica_groups=%s%s" % (m[1], m[4], m[5], m[6])

    for m in re.finditer(r"\n( *(?:ROOT )?%[\w.\-]+) " + COLLECTIVE.pattern, ranks):
        new = twice(COLLECTIVE.search(m[0]))
        if new:
            first = "\n  %again " + COLLECTIVE.search(m[0])[0]
            yield whole, ranks[: m.start()] + first + "\n" + m[1] + " " + new + ranks[m.end() :]


def alone(whole, ranks):
    """Groups of one rank each: a collective that joins nothing."""
    n = int(re.search(r"num_partitions=(\d+)", ranks)[1])
    groups = "{%s}" % ",".join("{%d}" % k for k in range(n))

    def each_one(m):
        if m[2] != "all-reduce":
            return None
        return m[0].replace("replica_groups=" + m[5], "replica_groups=" + groups)

    for t in each(COLLECTIVE, ranks, each_one):
        yield whole, t


def other_group(whole, ranks):
    """A collective over the other axis of the mesh, or over all ranks."""

    def other(m):
        axes = dict(re.findall(r"'(axis_\d+)'=(\d+)", m[5]))
        used = re.search(r"\{'(axis_\d+)'\}$", m[5])
        more = [a for a, k in axes.items() if used and k == axes[used[1]] != "1" and a != used[1]]
        if m[2] != "all-reduce" or not more:
            return None
        return m[0].replace("{'%s'}" % used[1], "{'%s'}" % more[0])

    for t in each(COLLECTIVE, ranks, other):
        yield whole, t


def own_part(whole, ranks):
    """A rank gathers its own part, as often as there are ranks."""

    def own(m):
        d = re.search(r"dimensions=(\{\d+\})", m[6] + m[4])
        axes = dict(re.findall(r"'(axis_\d+)'=(\d+)", m[5]))
        used = re.search(r"\{'(axis_\d+)'\}$", m[5])
        if m[2] != "all-gather" or not d or not used:
            return None
        copies = ", ".join([m[3]] * int(axes[used[1]]))
        return "= %s concatenate(%s), dimensions=%s" % (m[1], copies, d[1])

    for t in each(COLLECTIVE, ranks, own):
        yield whole, t


def offset(whole, ranks):
    """The last rank's part begins one too early."""

    def early(m):
        numbers = [int(n) for n in m[1].split(",")]
        numbers[-1] -= 1
        return "constant({%s})" % ", ".join(map(str, numbers))

    for t in each(r"constant\(\{(0(?:, ?\d+)+)\}\)", ranks, early):
        yield whole, t


def first_rank(whole, ranks):
    """All ranks take the first one's part."""
    for t in each(r"partition-id\(\)", ranks, lambda m: "constant(0)"):
        yield whole, t


def exchanged(whole, ranks):
    """Two parameters of one shape and one cut, each given for the other."""
    pattern = r" = (\S+?)(?:\{[\d,]*\})? (parameter\(\d+\), )(sharding=\{.*?\}), metadata"
    found = list(re.finditer(pattern, ranks[ranks.index("\nENTRY") :]))
    at = ranks.index("\nENTRY")
    for k, m in enumerate(found):
        for o in found[k + 1 :]:
            if m[1] == o[1] and m[3] == o[3]:
                new = ranks[at:].replace(m[2], "\0").replace(o[2], m[2]).replace("\0", o[2])
                yield whole, ranks[:at] + new


def result_order(whole, ranks):
    """A result's parts are put together in the reverse order."""

    def turned(m):
        tiles = [int(k) for k in m[2].split(",")]
        n = 1
        for k in tiles:
            n *= k
        last = tiles[-1] if m[4].strip() else 1
        if n == last:
            return None
        devices = ",".join(str(n - 1 - k) for k in range(n))
        return "%ssharding={devices=[%s]%s%s}" % (m[1], m[2], devices, m[4])

    pattern = r"(ROOT [^\n]*?)sharding=\{devices=\[([\d,]+)\](<=\[[\d,]+\])((?: \w+)?)\}"
    at = whole.index("\nENTRY")
    for t in each(pattern, whole[at:], turned):
        yield whole[:at] + t, ranks


def body(ranks, pattern, change):
    at = ranks.index("\nENTRY")
    for t in each(pattern, ranks[at:], change):
        yield ranks[:at] + t


def direction(whole, ranks):
    """A comparison the other way round."""
    turn = {"GE": "LE", "LE": "GE", "GT": "LT", "LT": "GT"}
    for t in body(ranks, r"direction=(\w\w)", lambda m: "direction=" + turn.get(m[1], m[1])):
        yield whole, t


def factor(whole, ranks):
    """A product is a square."""

    def same(m):
        return "= %s multiply(%s, %s)" % (m[1], m[3], m[3])

    pattern = r"= (f32\[\d+,\d+,\d+\]\S*) multiply\((%[\w.\-]+), (%[\w.\-]+)\)"
    for t in body(ranks, pattern, same):
        yield whole, t


def dropped(whole, ranks):
    """A summand is left out."""

    def one(m):
        return "= %s copy(%s)" % (m[1], m[2])

    for t in body(ranks, r"= (f32\[[\d,]+\]\S*) add\((%[\w.\-]+), (%[\w.\-]+)\)", one):
        yield whole, t


def count(whole, ranks):
    """A mean over twice as many."""

    def more(m):
        return "f32[] constant(%d)" % (2 * int(m[1]))

    for t in body(ranks, r"f32\[\] constant\((\d\d+)\)", more):
        yield whole, t


def local_reducer(whole, ranks):
    """A sum on one rank that is a maximum."""
    regions, largest = maxima(ranks)

    def other(m):
        if largest is None or regions.get(m[2]) != "add":
            return None
        return m[1] + largest

    for t in body(ranks, r"( reduce\(%[^\n]*?to_apply=)(%[\w.\-]+)", other):
        yield whole, t


FAULTS = {
    f.__name__: f
    for f in (
        no_all_reduce,
        all_reduce_twice,
        gather_order,
        parameter_order,
        place_table,
        scale,
        reducer,
        operand,
        doubled,
        alone,
        other_group,
        own_part,
        offset,
        first_rank,
        exchanged,
        result_order,
        direction,
        factor,
        dropped,
        count,
        local_reducer,
    )
}


def broken(whole, ranks):
    """(fault, place, whole, ranks) for every fault at every place."""
    for name, fault in FAULTS.items():
        for k, (w, r) in enumerate(fault(whole, ranks)):
            yield name, k, w, r
