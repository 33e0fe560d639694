"""Which layers stay where a model gets fewer of them: one of each kind before a second one.

A configuration says what kind a layer is of in one of these ways: a list with an entry for each
layer, or for the first ones, from which on it begins again; the numbers of the layers of one kind;
how many of them stand in front, or at the end; every how many there is one. Each is read as a list
of entries, and written again for the layers that stay."""

import re

AGAIN = re.compile(r"^_?block_types$")
NUMBERS = re.compile(r"(_layers|_layer_(ids|idxs|indices)|_idxs)$")
LEADING = re.compile(r"^(first_k_dense_replace|num_dense_layers)$")
TRAILING = re.compile(r"^num_kv_shared_layers$")
PERIOD = re.compile(r"^(\w+)_period$")
STEP = re.compile(r"_sparse_step$")


def is_int(v):
    return isinstance(v, int) and not isinstance(v, bool)


class Each:
    """A list with an entry for each layer."""

    own = True  # an entry is a kind, not whether a layer is of it

    def __init__(self, name, entries):
        self.name, self.entries = name, entries

    def put(self, config, kept):
        setattr(config, self.name, [self.entries[i] for i in kept])


class Numbers:
    """The numbers of the layers of one kind."""

    own = False

    def __init__(self, name, numbers, n):
        self.name, self.entries = name, [i in numbers for i in range(n)]

    def put(self, config, kept):
        setattr(config, self.name, [at for at, i in enumerate(kept) if self.entries[i]])


class Leading:
    """How many layers of one kind stand in front."""

    own = False

    def __init__(self, name, count, n):
        self.name, self.entries = name, [i < count for i in range(n)]

    def put(self, config, kept):
        setattr(config, self.name, sum(self.entries[i] for i in kept))


class Trailing(Leading):
    """How many layers stand at the end that go on with what one of the same kind before gave."""

    def __init__(self, name, count, n):
        self.name, self.entries = name, [i >= n - count for i in range(n)]


class Every:
    """Every how many there is a layer of one kind, and at which of them; `offset` is None where it
    is the last."""

    own = False

    def __init__(self, config, name, offset, n):
        self.name, self.offset = name, offset
        at = getattr(config, offset) if offset else getattr(config, name) - 1
        self.entries = [i % getattr(config, name) == at for i in range(n)]

    def put(self, config, kept):
        wanted = [self.entries[i] for i in kept]
        for period in range(1, len(kept) + 2):
            for at in range(period) if self.offset else (period - 1,):
                if [i % period == at for i in range(len(kept))] == wanted:
                    setattr(config, self.name, period)
                    if self.offset:
                        setattr(config, self.offset, at)
                    return


def numbers_of(name, v, n):
    """Whether such a setting is of numbers of layers."""
    return (
        NUMBERS.search(name) is not None
        and isinstance(v, (list, tuple))
        and len(v) > 0
        and all(is_int(i) and 0 <= i < n for i in v)
        and list(v) == sorted(set(v))
    )


def kinds(config, n):
    """The ways in which a configuration of n layers says what kind each is of."""
    out = []
    for name, v in list(vars(config).items()):
        if numbers_of(name, v, n):
            out.append(Numbers(name, set(v), n))
        elif isinstance(v, list) and len(v) == n:
            out.append(Each(name, v))
        elif isinstance(v, list) and v and AGAIN.search(name):
            out.append(Each(name, [v[i % len(v)] for i in range(n)]))
        elif is_int(v) and LEADING.search(name):
            out.append(Leading(name, v, n))
        elif is_int(v) and TRAILING.search(name):
            out.append(Trailing(name, v, n))
        elif is_int(v) and v > 0 and STEP.search(name):
            out.append(Every(config, name, None, n))
        elif is_int(v) and v > 0 and PERIOD.match(name):
            offset = PERIOD.match(name).group(1) + "_offset"
            if is_int(getattr(config, offset, None)):
                out.append(Every(config, name, offset, n))
    return out


def choose(found, n, layers):
    """The layers that stay: always the first of those that bring the most that is new."""
    kept, seen = [], set()

    def brings(i):
        return {(k.name, repr(k.entries[i])) for k in found} - seen

    def stands(i):
        """It needs no other layer, or that one stays."""
        before = [k for k in found if isinstance(k, Trailing) and k.entries[i]]
        same = [j for j in kept if kind_of(found, j) == kind_of(found, i)]
        return not before or any(not k.entries[j] for k in before for j in same)

    while len(kept) < layers:
        free = [i for i in range(n) if i not in kept and stands(i)]
        one = max(free, key=lambda i: (len(brings(i)), -i))
        seen |= brings(one)
        kept.append(one)
    return sorted(kept)


def kind_of(found, i):
    """The kind of a layer in words: those of its entries that are words."""
    said = [k.entries[i] for k in found if isinstance(k.entries[i], str)]
    return ", ".join(dict.fromkeys(said))


def lost(found, kept):
    """Entries that no layer that stays has, in words."""
    out = []
    for k in found:
        there = [repr(k.entries[i]) for i in kept]
        for entry in {repr(e): e for e in k.entries if repr(e) not in there}.values():
            out.append(str(entry) if k.own else "those of %s" % k.name)
    return list(dict.fromkeys(out))


def keep(config, name, layers):
    """Leaves `layers` layers of those that config's `name` counts. Returns: what to say of it, None
    where they are simply the first and of all kinds."""
    n = getattr(config, name)
    found = kinds(config, n) if layers < n else []
    kept = choose(found, n, layers) if layers < n else list(range(layers))
    for k in found:
        k.put(config, kept)
    setattr(config, name, layers)
    without = lost(found, kept)
    if kept == list(range(layers)) and not without:
        return None
    words = ["%d (%s)" % (i, kind_of(found, i)) if kind_of(found, i) else str(i) for i in kept]
    said = "of %d layers %s stay" % (n, ", ".join(words))
    if without:
        enough = next(m for m in range(layers, n + 1) if not lost(found, choose(found, n, m)))
        said += "; %s left out, which --layers %d keeps" % (", ".join(without), enough)
    return said
