"""Which devices hold what: replica groups, shardings, and the relations that follow from them."""

import itertools
import math
import re

from .build import Unsupported
from .text import closing

MAX_DEVICES = 1 << 12
IOTA = re.compile(r"\[([\d,]+)\]<=\[([\d,]+)\](?:T\(([\d,]+)\))?")
AXIS = re.compile(r"'((?:[^'\\]|\\.)*)'=(\d+)")
PART = re.compile(r"'((?:[^'\\]|\\.)*)'(?::\((\d+)\)(\d+))?")


def integers(text):
    return [int(n) for n in text.split(",") if n.strip()]


def transposed(sizes, order):
    """0, 1, ... in an array of these sizes, its dimensions put into another order, flat."""
    order = order or list(range(len(sizes)))
    if sorted(order) != list(range(len(sizes))) or math.prod(sizes) > MAX_DEVICES:
        raise ValueError("%r of %r is no order of devices" % (order, sizes))
    strides = [math.prod(sizes[d + 1 :]) for d in range(len(sizes))]
    return [
        sum(i * strides[d] for i, d in zip(at, order))
        for at in itertools.product(*(range(sizes[d]) for d in order))
    ]


def iota_list(text):
    """[2,4]<=[8]T(1,0), or [8] for 0, 1, ..., as (shape, numbers)."""
    m = IOTA.match(text)
    if m is None:
        short = re.match(r"\[([\d,]+)\](?:T\(([\d,]+)\))?", text)
        if short is None:
            raise ValueError("%r is no list of devices" % text[:40])
        shape = integers(short[1])
        return shape, transposed(shape, integers(short[2] or ""))
    shape, source = integers(m[1]), integers(m[2])
    numbers = transposed(source, integers(m[3] or ""))
    if math.prod(shape) != len(numbers):
        raise ValueError("%r has other sizes on its two sides" % text[:40])
    return shape, numbers


def rows(numbers, width):
    return [numbers[k : k + width] for k in range(0, len(numbers), width)]


def mesh_groups(text, device_ids):
    """mesh['a'=2,'b'=4] {'a'}: the devices that differ in the axes between the braces only."""
    m = re.match(r"mesh\[([^\]]*)\](.*)$", text, re.S)
    if m is None:
        raise ValueError("%r is no mesh" % text[:40])
    axes = [(name, int(n)) for name, n in AXIS.findall(m[1])]
    names, sizes, rest = [a for a, _ in axes], [n for _, n in axes], m[2].strip()
    devices = list(range(math.prod(sizes)))
    if device_ids is not None:
        end = closing(device_ids, 0) if device_ids.startswith("(") else -1
        if end < 0:
            raise ValueError("device_ids %r" % device_ids[:40])
        devices, rest = mesh_devices(device_ids[1 : end - 1], sizes), device_ids[end:].strip()
    if len(axes) != m[1].count("=") or not re.fullmatch(r"\{[^{}]*\}", rest):
        raise ValueError("the axes of %r" % text[:60])
    parts, inside = mesh_parts(names, sizes, rest)
    outside = [d for d in range(len(parts)) if d not in inside]
    order = transposed(parts, outside + inside)
    width = math.prod(parts[d] for d in inside)
    return [[devices[k] for k in row] for row in rows(order, width)]


def mesh_parts(names, sizes, text):
    """{'a', 'b':(2)4}: the mesh's dimensions, and which of them are named. Of an axis of which only
    a part is named, as (what lies before it) its size, each piece is a dimension of its own."""
    pieces = {name: [n] for name, n in zip(names, sizes)}
    wanted = []
    for word in filter(None, (w.strip() for w in text[1:-1].split(","))):
        m = PART.fullmatch(word)
        if m is None or m[1] not in pieces or (m[2] and len(pieces[m[1]]) > 1):
            raise ValueError("the axes %s of a mesh" % text[:40])
        piece = 0
        if m[2]:
            before, size, n = int(m[2]), int(m[3]), pieces[m[1]][0]
            if before < 1 or size < 1 or n % (before * size):
                raise ValueError("the axes %s of a mesh" % text[:40])
            pieces[m[1]], piece = [before, size, n // (before * size)], 1
        wanted.append((m[1], piece))
    place = {}
    for name in names:
        for k in range(len(pieces[name])):
            place[name, k] = len(place)
    if len(set(wanted)) != len(wanted):
        raise ValueError("the axes %s of a mesh" % text[:40])
    return [n for name in names for n in pieces[name]], [place[w] for w in wanted]


def mesh_devices(text, sizes):
    if text.startswith("["):
        _, numbers = iota_list(text)
    else:
        numbers = integers(text)
    if sorted(numbers) != list(range(math.prod(sizes))):
        raise ValueError("device_ids %r" % text[:40])
    return numbers


def replica_groups(attributes, n):
    """The groups of a collective, as lists of ranks. None given: all ranks are one."""
    text = attributes.get("replica_groups", "{}").strip()
    if text.startswith("mesh"):
        groups = mesh_groups(text, attributes.get("device_ids"))
    elif text.startswith("["):
        shape, numbers = iota_list(text)
        if len(shape) != 2:
            raise ValueError("replica_groups %r" % text[:40])
        groups = rows(numbers, shape[1])
    else:
        groups = [integers(g) for g in re.findall(r"\{([\d,\s]+)\}", text)]
    groups = groups or [list(range(n))]
    flat = [r for g in groups for r in g]
    if sorted(flat) != list(range(n)) or len({len(g) for g in groups}) != 1:
        raise ValueError("replica_groups are no groups of one size of %d ranks" % n)
    return groups


def pairs(text):
    """source_target_pairs={{0,1},{1,2}}"""
    out = [integers(p) for p in re.findall(r"\{([\d,\s]+)\}", text or "")]
    if any(len(p) != 2 for p in out) or len({t for _, t in out}) != len(out):
        raise ValueError("source_target_pairs %r" % (text or "")[:40])
    return out


# ---- shardings of tensors ----


class Sharding:
    """How many parts each dimension is cut into, and which part (an index for each dimension) a
    device holds."""

    def __init__(self, tiles, part_of):
        self.tiles, self.part_of = tiles, part_of

    def replicated(self):
        return all(n == 1 for n in self.tiles)


def parse_sharding(text, rank, n):
    """A Sharding of a tensor of that rank over n devices. Raises Unsupported."""
    text = (text or "").strip()
    inner = text[1:-1].strip() if text.startswith("{") and text.endswith("}") else text
    if inner in ("", "replicated"):
        return Sharding([1] * rank, {r: (0,) * rank for r in range(n)})
    m = re.match(r"devices=\[([\d,]+)\](<=\S+|[\d,]+)(.*)$", inner)
    if m is None:
        raise Unsupported("sharding %s" % text[:60])
    tiles, rest = integers(m[1]), m[3].strip()
    if m[2].startswith("<="):
        _, devices = iota_list("[%s]%s" % (m[1], m[2]))
    else:
        devices = integers(m[2])
    extra = len(tiles) - rank
    last = re.fullmatch(r"last_tile_dims=\{([\w, ]+)\}", rest)
    whole = rest == "last_tile_dim_replicate" and extra == 1
    if last is not None:
        whole = set(last[1].replace(" ", "").split(",")) == {"replicated"} and extra >= 1
    if not whole and (rest or extra):
        raise Unsupported("sharding %s" % text[:60])
    if sorted(devices) != list(range(n)) or math.prod(tiles) != n:
        raise Unsupported("sharding %s of %d devices" % (text[:60], n))
    places = itertools.product(*(range(t) for t in tiles))
    return Sharding(tiles[:rank], {d: p[:rank] for d, p in zip(devices, places)})


def tuple_shardings(text, n):
    """The shardings of a tuple of n: {{...}, {...}}, or one for all of them."""
    text = (text or "").strip()
    if not text.startswith("{{") and not text.startswith("{ {"):
        return [text] * n
    parts, depth, begin = [], 0, 0
    for i, c in enumerate(text[1:-1], 1):
        if c == "{":
            begin = i if depth == 0 else begin
            depth += 1
        elif c == "}":
            depth -= 1
            if depth == 0:
                parts.append(text[begin : i + 1])
    if len(parts) != n:
        raise Unsupported("a sharding of %d parts for %d results" % (len(parts), n))
    return parts


def part_bounds(size, tiles, index):
    """[begin, end) of a part: all have the size of the first, the last ones what is left."""
    step = -(-size // tiles)
    return min(size, index * step), min(size, (index + 1) * step)


# ---- relations ----


def quoted(name):
    return name if re.fullmatch(r"[A-Za-z0-9._/:$-]+", name) else '"%s"' % name


def assembled(names, sizes, sharding):
    """The whole of the parts `names` (by rank) in the language of relations, once for each set of
    replicas. None: a part is padded, so that its whole is no concatenation."""
    if any(n % t for n, t in zip(sizes, sharding.tiles)):
        return None
    holders = {}
    for rank in sorted(sharding.part_of):
        holders.setdefault(sharding.part_of[rank], []).append(names[rank])
    least = min(len(h) for h in holders.values())
    sets = [{part: h[k] for part, h in holders.items()} for k in range(least)]
    return list(dict.fromkeys(joined(one, (), sharding.tiles) for one in sets))


def joined(holder, prefix, tiles):
    d = len(prefix)
    if d == len(tiles):
        return quoted(holder[prefix])
    parts = [joined(holder, prefix + (k,), tiles) for k in range(tiles[d])]
    return parts[0] if len(parts) == 1 else "cat([%s], %d)" % (", ".join(parts), d)
