"""What the steps of drawn programs are made of (dags.py).

    @term(NUMBER, NUMBER, WHOLE)
    def gathers(r, rows, cols, x, k): ...

is a step that makes a tensor of numbers of one of numbers and one of whole numbers, all of `rows`
by `cols`. It returns how the step is written, in PyTorch, other ways to write the same function,
and some that are almost the same: `(text, [text, ...], [text, ...])`. `self.w`, `self.b` and
`self.table` are parameters. `r` draws."""

NUMBER, WHOLE, TRUTH = "number", "whole", "truth"
TERMS = {}
EDGES = {}  # steps that are drawn where they are asked for: seeds keep their programs


def term(made, *read, of=TERMS):
    def define(f):
        of[f.__name__] = (made, read, f)
        return f

    return define


def edge(made, *read):
    return term(made, *read, of=EDGES)


NAMES = [0]


def fresh():
    """A name for a value within a text."""
    NAMES[0] += 1
    return "t%d" % NAMES[0]
