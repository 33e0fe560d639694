"""Rules, analyses, schedulers, and what is told of a run: plain Python."""

from dataclasses import dataclass

from .library import Error


def text_of(term):
    """A term as text; tuples are operators with children."""
    if isinstance(term, tuple):
        return "(%s)" % " ".join(text_of(t) for t in term)
    return str(term)


def encoded(text):
    try:
        return text.encode()
    except (AttributeError, UnicodeError):
        raise Error("%r is no text of a term" % (text,)) from None


def count(what, n):
    """A number that the library takes as one without a sign."""
    if not isinstance(n, int) or not 0 <= n < 1 << 64:
        raise Error("%s: %r is no number of at least 0" % (what, n))
    return n


@dataclass(frozen=True, eq=False)
class Rule:
    """A rewrite. `when(g, m)` is asked in the search and may not change the graph; `check(g, m)`
    just before an application, and may add; `apply(g, c, m)`, in place of a right side, may add
    and merge. In `m` variables are named without question marks, with the class of each; `c` is the
    class that matched."""

    lhs: str
    rhs: str | None = None
    name: str | None = None
    when: object = None
    check: object = None
    apply: object = None

    def label(self):
        return self.name or "%s => %s" % (self.lhs, self.rhs if self.rhs is not None else "...")


def rewrite(lhs, rhs=None, name=None, *, both=False, when=None, check=None, apply=None):
    """A rule; with `both` a list of two, there and back. Sides are texts or tuples."""
    lhs, rhs = text_of(lhs), None if rhs is None else text_of(rhs)
    for what, called in (("when", when), ("check", check), ("apply", apply)):
        if called is not None and not callable(called):
            raise Error("%s is a function, not %r" % (what, called))
    if (rhs is None) == (apply is None):
        raise Error("a rule has either a right side or apply")
    if not both:
        return Rule(lhs, rhs, name, when, check, apply)
    if rhs is None or when or check:
        raise Error("a rule in both directions has two sides and no callbacks")
    return [Rule(lhs, rhs, name), Rule(rhs, lhs, name and name + "-rev")]


def flat(rules):
    if isinstance(rules, Rule):
        return [rules]
    if isinstance(rules, (str, bytes)) or not hasattr(rules, "__iter__"):
        raise Error("%r is no rule: rewrite(left, right) makes one" % (rules,))
    return [r for part in rules for r in flat(part)]


class Analysis:
    """Facts of classes. Override these; `None` is no fact."""

    def make(self, g, node, facts):
        """The fact of a new e-node, from those of its children. May not change the graph."""
        raise NotImplementedError

    def join(self, a, b):
        """The fact of two classes that are one now: must not go up for ever."""
        raise NotImplementedError

    def repair(self, g, c, fact):
        """After a class was made or its fact changed: may add and merge."""


class Backoff:
    """A scheduler: a rule with more than `limit` matches is banned for `ban` iterations, both twice
    as many each time. Keeps its state from run to run."""

    def __init__(self, limit=1000, ban=5):
        self.limit, self.ban = limit, ban
        self.times, self.until, self.now = {}, {}, 0

    def allowed(self, rule):
        """How many matches a rule may have now; 0: it is left alone."""
        if self.now < self.until.get(rule, 0):
            return 0
        return self.limit << self.times.get(rule, 0)

    def found(self, rule, n):
        times = self.times.get(rule, 0)
        if n > self.limit << times:
            self.until[rule] = self.now + (self.ban << times)
            self.times[rule] = times + 1

    def may_stop(self):
        """Asked after an iteration that changed nothing. Bans go down together."""
        left = [u - self.now for u in self.until.values() if u > self.now]
        for rule, until in self.until.items():
            if until > self.now:
                self.until[rule] = until - min(left)
        return not left

    def next(self):
        self.now += 1


# ---- results ----


@dataclass(frozen=True)
class Node:
    """An e-node: its operator, and the classes of its children."""

    op: str
    children: tuple


@dataclass(frozen=True)
class Iteration:
    nodes: int
    classes: int
    matches: dict  # by rule, as its search found them


@dataclass(frozen=True)
class Report:
    stop: str  # saturated, iteration-limit, node-limit, memory-limit, time-limit, stopped
    iterations: list  # the first is the start
    culprit: str | None  # where a limit was reached, the rule that grew most

    @property
    def saturated(self):
        return self.stop == "saturated"


@dataclass(frozen=True)
class Extracted:
    text: str
    cost: float

    def __str__(self):
        return self.text


@dataclass(frozen=True)
class Dag:
    texts: list
    cost: float  # of all together, what they share counted once
    bound: float  # nothing costs less
    optimal: bool  # that was shown


@dataclass(frozen=True)
class Step:
    """Two terms made equal: by a rule, by `congruence`, or by the reason of a merge."""

    before: str
    after: str
    why: str

    def __str__(self):
        return "%s = %s  by %s" % (self.before, self.after, self.why)
