"""E-graphs, rewrite rules, explanations and extraction from Python: a thin layer over libegraph.so.

    from isomer.egraph import EGraph, rewrite
    g = EGraph()
    term = g.add("(+ 0 (* 1 foo))")
    g.run([rewrite("(+ ?x ?y)", "(+ ?y ?x)"), rewrite("(+ ?x 0)", "?x"), rewrite("(* ?x 1)", "?x"),
           rewrite("(* ?x ?y)", "(* ?y ?x)")])
    print(g.extract(term).text)                     # foo

Needs cffi, and no compiler: the library is read through its own header. It lies in this package
where a wheel brought it along, else in the source tree's build/, or where $ISOMER_EGRAPH says. The
manual is docs/egraph-python.md; what a pattern is, and what calls cost, egraph/egraph.h.

Terms are given as texts, `(f a (g b))`, as tuples, ("f", "a", ("g", "b")), or as the class ids that
`add` gave. A graph belongs to one thread at a time.
"""

from .library import ANY, Error, ffi, lib, libc, owned, said
from .rules import (
    Analysis,
    Backoff,
    Dag,
    Extracted,
    Iteration,
    Node,
    Report,
    Rule,
    Step,
    count,
    encoded,
    flat,
    rewrite,
    text_of,
)

__all__ = ["Analysis", "Backoff", "EGraph", "Error", "Node", "Rule", "rewrite"]

GIVEN, RULE = 1, 1 << 20  # kinds of reasons: of merge(), of rules from here on
CHANGED, DIFFERS = 1, 2  # what a join says
SIMPLE, OWN = 0, 2  # schedulers


class EGraph:
    """Terms up to equality. `explain`: keep what `explain` needs. `analysis`: an Analysis."""

    def __init__(self, *, explain=False, analysis=None):
        self._err = ffi.new("iso_error *")
        self._raised = None  # by a callback: raised again when the library returns
        self._kept = []  # callbacks and texts, which live as long as the graph
        self._analysis, self._facts, self._next_fact = analysis, {}, 1
        self._rules, self._numbers, self._names, self._reasons = [], {}, [], []
        self._clean = True  # rebuilt, and nothing changed since
        self._depth = 0  # callbacks under way in which nothing may be rebuilt
        options = ffi.new("eg_sat_options *")
        options.log = explain
        if analysis is not None:
            if not isinstance(analysis, Analysis):
                raise Error("analysis is an Analysis, not %r" % (analysis,))
            self._set_analysis(options.analysis)
        out = ffi.new("eg_sat **")
        self._call(lib.eg_sat_new, options, out)
        self._s = ffi.gc(out[0], lib.eg_sat_free)
        out = ffi.new("eg_rules **")
        self._call(lib.eg_rules_new, self._s, out)
        self._r = ffi.gc(out[0], lib.eg_rules_free)
        self._explains = explain

    def _call(self, f, *args):
        """A function that may fail. What a callback raised in it is raised here."""
        self._err.code = lib.ISO_OK
        code = f(*args, self._err)
        self._raise()
        if code:
            raise Error(said(self._err))

    def _raise(self):
        raised, self._raised = self._raised, None
        if raised is not None:
            raise raised

    def _guarded(self, otherwise, f, *args):
        """A callback of the user's: an exception ends the call of the library that it is in."""
        self._depth += 1
        try:
            return f(*args) if self._raised is None else otherwise
        except BaseException as e:
            self._raised = e
            return otherwise
        finally:
            self._depth -= 1

    def _keep(self, kind, f):
        made = ffi.callback(kind, f)
        self._kept.append(made)
        return made

    # ---- terms ----

    def add(self, term):
        """Add a term; the class that it is in."""
        if isinstance(term, int):
            return self.find(term)
        text, out = encoded(text_of(term)), ffi.new("eg_class *")
        self._clean = False
        self._call(lib.eg_sat_add_term, self._s, text, len(text), out)
        return out.i

    def node(self, op, *children):
        """Add an e-node over classes that are there; its class."""
        name, at, out = encoded(op), ffi.new("eg_op *"), ffi.new("eg_class *")
        self._call(lib.eg_sat_op, self._s, name, len(name), len(children), at)
        kids = ffi.new("eg_class[]", [{"i": self._id(c)} for c in children])
        self._clean = False
        self._call(lib.eg_sat_add, self._s, at[0], kids, out)
        return out.i

    def _id(self, c):
        if not isinstance(c, int) or not 0 <= c < lib.eg_sat_count_ids(self._s):
            raise Error("there is no class %s" % (c,))
        return c

    def find(self, c):
        """The id that all members of a class share now."""
        return lib.eg_sat_find(self._s, {"i": self._id(c)}).i

    def lookup(self, term):
        """The class of a term that is there; None if it is not."""
        if isinstance(term, int):
            return self.find(term)
        self.rebuild()
        text, found, out = encoded(text_of(term)), ffi.new("bool *"), ffi.new("eg_class *")
        self._call(lib.eg_sat_lookup_term, self._s, text, len(text), found, out)
        return self.find(out.i) if found[0] else None

    def equal(self, a, b):
        """Are two terms that are there known to be equal?"""
        a, b = self.lookup(a), self.lookup(b)
        return a is not None and a == b

    def merge(self, a, b, why="given"):
        """State that two terms are equal. An explanation names them by the terms for which their
        class ids were made."""
        a, b = (self._id(t) if isinstance(t, int) else self.add(t) for t in (a, b))
        if not self._reasons or self._reasons[-1] != why:
            self._reasons.append(why)
        self._clean = False
        reason = {"kind": GIVEN, "data": len(self._reasons) - 1}
        self._call(lib.eg_sat_merge, self._s, {"i": a}, {"i": b}, reason)

    def rebuild(self):
        """Find what follows by congruence; queries do it by themselves."""
        if not self._clean and not self._depth:
            self._call(lib.eg_sat_rebuild, self._s)
            self._clean = True

    def nodes(self, c):
        """The e-nodes of a class."""
        self.rebuild()
        row, out = lib.eg_sat_first(self._s, {"i": self.find(c)}), []
        while row.i:
            out.append(self._node(row))
            row = lib.eg_sat_next(self._s, row)
        return out

    def _node(self, row):
        op = lib.eg_sat_row_op(self._s, row)
        n = lib.eg_sat_op_arity(self._s, op)
        kids = tuple(lib.eg_sat_row_child(self._s, row, k).i for k in range(n))
        return Node(ffi.string(lib.eg_sat_op_name(self._s, op)).decode(), kids)

    def classes(self):
        """All class ids, one for each class."""
        self.rebuild()
        return [c for c in range(lib.eg_sat_count_ids(self._s)) if self.find(c) == c]

    @property
    def n_nodes(self):
        self.rebuild()
        return lib.eg_sat_count_nodes(self._s)

    @property
    def n_classes(self):
        self.rebuild()
        return lib.eg_sat_count_classes(self._s)

    # ---- patterns ----

    def _pattern(self, text):
        text, out = encoded(text_of(text)), ffi.new("eg_pattern **")
        self._call(lib.eg_pattern_parse, self._s, text, len(text), out)
        return ffi.gc(out[0], lib.eg_pattern_free)

    def _variables(self, pattern):
        n = lib.eg_pattern_count_vars(pattern)
        return [ffi.string(lib.eg_pattern_var(pattern, k)).decode()[1:] for k in range(n)]

    def match(self, pattern):
        """All matches of a pattern: pairs of a class and of what the variables are bound to."""
        self.rebuild()
        p, out, n = self._pattern(pattern), [], ffi.new("size_t *")
        names = self._variables(p)

        @ffi.callback("bool(void *, eg_class, const eg_class *)")
        def each(_ctx, root, var):
            out.append((root.i, {name: var[k].i for k, name in enumerate(names)}))
            return True

        self._call(lib.eg_sat_match, self._s, p, each, ffi.NULL, n)
        return out

    def check(self, pattern):
        """Does a pattern match anywhere?"""
        return bool(self.match(pattern))

    # ---- rules and runs ----

    def _number(self, rule):
        """A rule's number, which it is given when it is first run."""
        if rule not in self._numbers:
            u, text = ffi.new("eg_rule *"), []
            for key, value in (("name", rule.label()), ("lhs", rule.lhs), ("rhs", rule.rhs)):
                if value is not None:
                    text.append(ffi.new("char[]", encoded(value)))
                    setattr(u, key, text[-1])
            self._set_callbacks(u, rule)
            self._call(lib.eg_rules_add, self._r, u)
            self._numbers[rule] = len(self._names)
            self._names.append(rule.label())
            self._rules.append(rule)
        return self._numbers[rule]

    def _set_callbacks(self, u, rule):
        if not (rule.when or rule.check or rule.apply):
            return
        names = self._variables(self._pattern(rule.lhs))

        def bound(var):
            return {name: self.find(var[k].i) for k, name in enumerate(names)}

        def when(_ctx, _s, var):
            return bool(self._guarded(False, lambda: rule.when(self, bound(var))))

        def check(_ctx, _s, var, holds, err):
            holds[0] = bool(self._guarded(False, lambda: rule.check(self, bound(var))))
            return self._code(err)

        def apply(_ctx, _s, root, var, err):
            self._guarded(None, lambda: rule.apply(self, self.find(root.i), bound(var)))
            return self._code(err)

        if rule.when:
            u.guard = self._keep("bool(void *, const eg_sat *, const eg_class *)", when)
        sides = "iso_code(void *, eg_sat *, %s const eg_class *, %s iso_error *)"
        if rule.check:
            u.condition = self._keep(sides % ("", "bool *,"), check)
        if rule.apply:
            u.apply = self._keep(sides % ("eg_class,", ""), apply)

    def _code(self, err):
        if self._raised is None:
            return lib.ISO_OK
        if err != ffi.NULL:
            err.code = lib.ISO_USAGE
        return lib.ISO_USAGE

    def run(
        self,
        rules,
        iterations=30,
        *,
        scheduler=None,
        nodes=1_000_000,
        memory=1 << 30,
        each=None,
        jobs=1,
    ):
        """Apply rules until nothing changes or a limit is reached. `scheduler`: None, or a Backoff
        or something like it. `each(g, i)` is called after each iteration i; it returns False to
        stop. Limits of 0 are none. `jobs`: threads that search; the same comes out."""
        numbers = [self._number(r) for r in flat(rules)]
        o = ffi.new("eg_run_options *", lib.eg_run_options_default())
        o.iteration_limit, o.node_limit = count("iterations", iterations), count("nodes", nodes)
        o.mem_limit_bytes, o.jobs = count("memory", memory), count("jobs", jobs)
        done, kept = [], []
        o.scheduler = SIMPLE
        if scheduler is not None or set(numbers) != set(range(len(self._names))):
            o.scheduler = OWN
            kept += self._own(o.own, set(numbers), scheduler)

        @ffi.callback("bool(void *, eg_sat *, size_t, const eg_iteration *)")
        def after(_ctx, _s, i, it):
            matches = {}
            if it.rule_matches != ffi.NULL:
                matches = {self._names[k]: it.rule_matches[k] for k in numbers}
            done.append(Iteration(it.nodes, it.classes, matches))
            if scheduler is not None and i:
                self._guarded(None, lambda: scheduler.next())
            return self._tell(each, i)

        o.each = after
        report = ffi.new("eg_run_report *")
        self._clean = False
        self._call(lib.eg_sat_run, self._s, self._r, o, report)
        self._clean = True
        culprit = None if report.culprit == ANY else self._names[report.culprit]
        return Report(ffi.string(lib.eg_stop_name(report.stop)).decode(), done, culprit)

    def _tell(self, each, i):
        """Between two iterations, where the graph may be changed and asked. Returns: go on?"""
        self._clean = True
        try:
            return self._raised is None and (each is None or each(self, i) is not False)
        except BaseException as e:
            self._raised = e
            return False

    def _own(self, own, numbers, scheduler):
        """Rules that are not asked for are not searched; a scheduler decides about the others."""

        @ffi.callback("size_t(void *, const eg_sat *, size_t, size_t)")
        def limit(_ctx, _s, _i, k):
            if k not in numbers:
                return 0
            if scheduler is None:
                return ANY
            rule = self._rules[k]
            return self._guarded(
                0, lambda: count("what a scheduler allows", scheduler.allowed(rule))
            )

        @ffi.callback("void(void *, size_t, size_t, size_t)")
        def found(_ctx, _i, k, n):
            if k in numbers:
                self._guarded(None, lambda: scheduler.found(self._rules[k], n))

        @ffi.callback("bool(void *, size_t)")
        def may_stop(_ctx, _i):
            return self._guarded(True, lambda: bool(scheduler.may_stop()))

        own.limit = limit
        if scheduler is not None:
            own.found, own.may_stop = found, may_stop
        return [limit, found, may_stop]

    # ---- analyses ----

    def fact(self, term):
        """What the analysis knows of the class of a term that is there."""
        if self._analysis is None:
            raise Error("this e-graph has no analysis")
        c = self._there(term)
        self.rebuild()
        return self._fact_at(lib.eg_sat_data(self._s, {"i": c}))

    def _fact_at(self, data):
        return self._facts.get(ffi.cast("uint64_t *", data)[0])

    def _put_fact(self, data, fact):
        at = ffi.cast("uint64_t *", data)
        if fact is None:
            self._facts.pop(at[0], None)
            at[0] = 0
            return
        if at[0] == 0:
            at[0] = self._next_fact
            self._next_fact += 1
        self._facts[at[0]] = fact

    def _set_analysis(self, to):
        a = self._analysis

        def make(_ctx, s, op, child, n, data):
            facts = [self._fact_at(lib.eg_sat_data(s, child[k])) for k in range(n)]
            name = ffi.string(lib.eg_sat_op_name(s, op)).decode()
            node = Node(name, tuple(child[k].i for k in range(n)))
            self._put_fact(data, self._guarded(None, a.make, self, node, facts))

        def join(_ctx, _s, into, gone):
            old, other = self._fact_at(into), self._fact_at(gone)
            new = other if old is None else old
            if old is not None and other is not None:
                new = self._guarded(old, a.join, old, other)
            self._put_fact(gone, None)
            self._put_fact(into, new)
            return CHANGED * (new != old) + DIFFERS * (new != other)

        def repair(_ctx, s, c, err):
            fact = self._fact_at(lib.eg_sat_data(s, c))
            self._guarded(None, a.repair, self, self.find(c.i), fact)
            return self._code(err)

        to.size = ffi.sizeof("uint64_t")
        classes = "const eg_class *, size_t"
        to.make = self._keep("void(void *, const eg_sat *, eg_op, %s, void *)" % classes, make)
        to.join = self._keep("unsigned(void *, const eg_sat *, void *, void *)", join)
        if type(a).repair is not Analysis.repair:
            to.repair = self._keep("iso_code(void *, eg_sat *, eg_class, iso_error *)", repair)

    # ---- extraction ----

    def _extraction(self, cost):
        """`cost`: None, a weight by operator (others weigh 1), or f(node, costs of children)."""
        self.rebuild()
        if not (cost is None or callable(cost) or hasattr(cost, "get")):
            raise Error("a cost is a dictionary by operator or a function, not %r" % (cost,))
        c, out = ffi.new("eg_cost *"), ffi.new("eg_extract **")
        of = cost if callable(cost) else lambda n, kids: (cost or {}).get(n.op, 1) + sum(kids)

        @ffi.callback("double(void *, const eg_sat *, eg_row, const double *, size_t)")
        def tree(_ctx, _s, row, child, n):
            kids = [child[k] for k in range(n)]
            return self._guarded(float("inf"), lambda: float(of(self._node(row), kids)))

        @ffi.callback("double(void *, const eg_sat *, eg_row)")
        def node(_ctx, _s, row):
            n = self._node(row)
            return self._guarded(1.0, lambda: float(of(n, [0.0] * len(n.children))))

        if cost is not None:
            c.tree, c.node = tree, node
        self._call(lib.eg_extract_new, self._s, c, out)
        return ffi.gc(out[0], lib.eg_extract_free), (tree, node)

    def _text(self, x, c):
        out = ffi.new("char **")
        self._call(lib.eg_extract_text, x, {"i": c}, out)
        return owned(out)

    def extract(self, term, cost=None):
        """The cheapest term that is equal to one that is there."""
        c = self._there(term)
        x, _kept = self._extraction(cost)
        return Extracted(self._text(x, c), lib.eg_extract_cost(x, {"i": c}))

    def extract_dag(self, terms, cost=None, work=50_000_000):
        """Terms that are cheapest together, what they share counted once, within so many steps; a
        cost function is asked for e-nodes whose children cost nothing."""
        if not isinstance(terms, (list, tuple)):
            raise Error("extract_dag takes a list of terms, not %r" % (terms,))
        roots = [self._there(t) for t in terms]
        x, _kept = self._extraction(cost)
        out, at = ffi.new("eg_dag *"), ffi.new("eg_class[]", [{"i": c} for c in roots])
        self._call(lib.eg_extract_dag_all, x, at, len(roots), count("work", work), out)
        return Dag([self._text(x, c) for c in roots], out.cost, out.bound, out.optimal)

    def _there(self, term):
        c = self.lookup(term)
        if c is None:
            raise Error("%s is not in the e-graph" % text_of(term))
        return c

    # ---- explanations ----

    def explain(self, a, b):
        """Why two terms are equal: steps that were checked by code of its own, the last ones
        leading from `a` to `b`, each congruence behind what it needs."""
        if not self._explains:
            raise Error("EGraph(explain=True) keeps what an explanation needs")
        if not self.equal(a, b):
            raise Error("%s and %s are not known to be equal" % (text_of(a), text_of(b)))
        out, at = ffi.new("eg_graph **"), ffi.new("eg_node **")
        self._call(lib.eg_sat_replay, self._s, self._r, out, at)
        g, node = ffi.gc(out[0], lib.eg_free), ffi.gc(at[0], libc.free)
        ends = [self._spelled(g, node, t) for t in (a, b)]
        self._call(lib.eg_rebuild, g)
        step, n = ffi.new("eg_step **"), ffi.new("size_t *")
        self._call(lib.eg_explain, g, *ends, step, n)
        steps = ffi.gc(step[0], libc.free)
        self._check_proof(g, steps, n[0], ends)
        return [self._step(g, steps[i]) for i in range(n[0])]

    def _spelled(self, g, node, term):
        if isinstance(term, int):
            return node[term]
        text, out = text_of(term).encode(), ffi.new("eg_node *")
        self._call(lib.eg_add_term, g, text, len(text), out)
        return out[0]

    def _check_proof(self, g, steps, n, ends):
        """Steps of merges are the user's word, and so are those of rules that name classes."""

        @ffi.callback("bool(void *, const eg_step *)")
        def other(_ctx, _step):
            return True

        check = ffi.new("eg_rule_check *", {"g": g, "rules": self._r, "other": other})
        ok, why = ffi.new("bool *"), ffi.new("const char **")
        accept = ffi.addressof(lib, "eg_rule_check_step")
        accept = ffi.cast("bool (*)(void *, const eg_step *)", accept)
        self._call(lib.eg_proof_check, g, steps, n, *ends, accept, check, ok, why)
        if not ok[0]:
            raise Error("a proof does not hold: %s" % ffi.string(why[0]).decode())

    def _step(self, g, step):
        sides = []
        for node in (step.to, getattr(step, "from")):
            text = ffi.new("char **")
            self._call(lib.eg_node_text, g, node, text)
            sides.append(owned(text))
        why = step.why
        if why.kind == lib.EG_WHY_CONGRUENCE:
            reason = "congruence"
        elif why.kind >= RULE and why.kind - RULE < len(self._names):
            reason = self._names[why.kind - RULE]
        else:
            reason = self._reasons[why.data] if why.kind == GIVEN else "given"
        return Step(sides[1], sides[0], reason)
