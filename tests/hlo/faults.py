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


def reducer(whole, ranks):
    """Sums that are maxima."""
    regions = {
        m[1]: m[2]
        for m in re.finditer(r"\n(%[\w.\-]+) \([^\n]*\{\n(?:[^}]*?)ROOT [^\n]* (\w+)\(", ranks)
    }
    largest = next((n for n, op in regions.items() if op == "maximum"), None)

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
    )
}


def broken(whole, ranks):
    """(fault, place, whole, ranks) for every fault at every place."""
    for name, fault in FAULTS.items():
        for k, (w, r) in enumerate(fault(whole, ranks)):
            yield name, k, w, r
