#!/usr/bin/env python3
"""The page of `isomer compare --html`: its text is looked at, and it is opened in a headless
Chromium where there is one ($CHROMIUM, or one of the usual names; otherwise that part says that it
was left out). Plain Python 3.

    tests/cli/page.py [--isomer build/isomer] [--pictures DIR]

--pictures keeps what the browser showed. The last line is `N passed, N failed`."""

import argparse
import html.parser
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

import browser

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LLAMA = os.path.join(ROOT, "models", "llama-2l")
LEFT, RIGHT, EPS = (os.path.join(LLAMA, x) for x in ("hf-sdpa", "vllm", "vllm-bug-eps"))
EVIL = "</script><script>fail()</script><!-- \"'&amp; \u00e9 \u65e5\u672c \u2028 \U0001f600 \x07"
TALLY = [0, 0]


def check(ok, what):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + what, flush=True)


def isomer(*args, **kw):
    p = subprocess.run(
        [O.isomer, "compare", "--no-stats"] + list(args),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=600,
        **kw,
    )
    return p.returncode, p.stdout.decode(errors="replace"), p.stderr.decode(errors="replace")


# ---- the text ----


class Page(html.parser.HTMLParser):
    """Tags that close, what each script holds, and whatever could fetch something."""

    VOID = {"meta", "link", "br", "img", "input", "hr"}

    def __init__(self, path):
        super().__init__(convert_charrefs=True)
        self.open, self.wrong, self.scripts, self.text, self.asks = [], [], {}, "", []
        with open(path, encoding="utf-8", errors="surrogateescape") as f:
            self.source = f.read()
        self.feed(self.source)
        self.close()

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in self.VOID:
            self.open.append((tag, attrs.get("id")))
        for k in ("src", "href", "action", "data", "srcset"):
            if attrs.get(k, "").split(",")[0] not in ("", "data:"):
                self.asks.append(attrs[k])

    def handle_endtag(self, tag):
        if not self.open or self.open.pop()[0] != tag:
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1][0] == "script":
            self.scripts[self.open[-1][1]] = self.scripts.get(self.open[-1][1], "") + data
        elif self.open:
            self.text += data


def page(path, what):
    p = Page(path)
    check(not p.wrong and not p.open, "%s: tags that do not close: %s %s" % (what, p.wrong, p.open))
    check(
        set(p.scripts) == {"report", "graphs", None},
        "%s: scripts: %s" % (what, sorted(map(str, p.scripts))),
    )
    check(
        not p.asks and "@import" not in p.source and "url(" not in p.source,
        "%s: asks for %s" % (what, p.asks),
    )
    code = p.scripts.get(None, "")
    check(
        "http" not in code.replace("http://www.w3.org/2000/svg", "")
        and "innerHTML" not in code
        and "eval(" not in code,
        "%s: the script" % what,
    )
    check("default-src 'none'" in p.source, "%s: no policy" % what)
    check(
        p.source.startswith("<!DOCTYPE html>")
        and p.source.endswith("</html>\n\n")
        or p.source.endswith("</html>\n"),
        "%s: ends" % what,
    )
    p.report, p.graphs = json.loads(p.scripts["report"]), json.loads(p.scripts["graphs"])
    p.pair = p.graphs["pairs"][p.graphs["decides"]]
    return p


UNREAD, ALONE, SAME, BY_RULE, WITHIN, ASSUMED = range(6)


def consistent(p, graphs, what):
    """The page's words about nodes agree with the captures and with one another."""
    members = {}
    for k, side in enumerate(p.pair["sides"]):
        nodes = side["nodes"]
        check([n[0] for n in nodes] == [n["id"] for n in graphs[k]["nodes"]], "%s: ids" % what)
        for i, n in enumerate(nodes):
            members.setdefault(n[4], [set(), set()])[k].add(i)
            check(
                (n[5] == UNREAD) == (n[4] == -1),
                "%s: %s has class %d and standing %d" % (what, n[0], n[4], n[5]),
            ) if n[5] == UNREAD or n[4] == -1 else None
        scope = ""
        for n, c in zip(nodes, graphs[k]["nodes"]):
            scope = n[7] if n[7] != 0 else scope
            if scope != c.get("scope", ""):
                check(False, "%s: the module of %s" % (what, n[0]))
                break
        reads = lambda v: (
            [v]
            if isinstance(v, int)
            else [x for y in v for x in reads(y)]
            if isinstance(v, list)
            else []
        )
        users = [[] for _ in nodes]
        for i, n in enumerate(nodes):
            for v in n[6][1::2]:
                for x in reads(v):
                    check(
                        0 <= x < i, "%s: %s reads %d" % (what, n[0], x)
                    ) if not 0 <= x < i else None
                    users[x].append(i)
        for i, n in enumerate(nodes):
            if n[5] == WITHIN:
                check(
                    all(nodes[u][5] != ALONE for u in users[i]) and i not in side["outputs"],
                    "%s: %s lies within, and what reads it is alone" % (what, n[0]),
                ) if any(nodes[u][5] == ALONE for u in users[i]) or i in side["outputs"] else None
            if n[5] in (SAME, BY_RULE) and not members.get(n[4]):
                check(False, "%s: %s" % (what, n[0]))
    for k, side in enumerate(p.pair["sides"]):
        for n in side["nodes"]:
            if n[5] in (SAME, BY_RULE) and not members[n[4]][1 - k]:
                check(
                    False,
                    "%s: %s is said to be matched, and nothing is in its class" % (what, n[0]),
                )
    ruled = {c for r in p.pair["rules"] for c in r["classes"]}
    check(
        all(n[4] in ruled for s in p.pair["sides"] for n in s["nodes"] if n[5] == BY_RULE),
        "%s: by rule, and no rule says so" % what,
    )
    kinds = {a["kind"] for a in p.report["assumptions"]}
    check(
        kinds and all(p.graphs["assumes"].get(kind) for kind in kinds),
        "%s: a kind of assumption without a meaning: %s" % (what, sorted(kinds)),
    )
    check(
        len(p.pair["rules"]) == len(p.report["rules"])
        and len(p.pair["divergences"]) == len(p.report["divergences"]),
        "%s: two lists of one thing" % what,
    )


def graph(folder):
    with open(os.path.join(folder, "graph.json")) as f:
        return json.load(f)


def standings(p):
    return [[n[5] for n in s["nodes"]] for s in p.pair["sides"]]


def texts(where):
    out = os.path.join(where, "equivalent.html")
    status, _, err = isomer(LEFT, RIGHT, "-q", "--html", out)
    check(status == 0, "equivalent: %d %s" % (status, err))
    first = open(out, "rb").read()
    p = page(out, "equivalent")
    consistent(p, [graph(LEFT), graph(RIGHT)], "equivalent")
    check(ALONE not in standings(p)[0] + standings(p)[1], "equivalent: something is unmatched")
    check(
        p.report["verdict"] == "equivalent" and "EQUIVALENT [" in p.source.split("</title>")[0],
        "equivalent: the title",
    )
    check(len(first) < 400e3, "equivalent: %d bytes" % len(first))
    isomer(LEFT, RIGHT, "-q", "--html", out)
    check(open(out, "rb").read() == first, "the same comparison gives other bytes")

    same = os.path.join(where, "same.html")
    isomer(LEFT, LEFT, "-q", "--html", same)
    s = standings(page(same, "itself"))
    check(
        set(s[0]) <= {SAME, ASSUMED, UNREAD} and s[0] == s[1] and s[0].count(SAME) > 50,
        "itself: every operator is the same",
    )

    faulty = os.path.join(where, "faulty.html")
    status, _, _ = isomer(LEFT, EPS, "-q", "--html", faulty)
    p = page(faulty, "faulty")
    consistent(p, [graph(LEFT), graph(EPS)], "faulty")
    d = p.pair["divergences"][0]
    q = d["picture"]
    check(status == 1 and len(p.pair["divergences"]) == 5, "faulty: %d" % status)
    check(
        q
        and q["n_rows"] * q["n_columns"] == 7
        and q["n_differ"] == 7
        and len(q["cell"]) == q["rows"] * q["columns"],
        "faulty: the picture: %s" % q,
    )
    check(
        abs(abs(q["left"] - q["right"]) - max(q["cell"])) < 1e-3 * max(q["cell"])
        and abs(max(q["cell"]) - 9e-6) < 1e-7,
        "faulty: the largest difference",
    )
    check(
        ALONE in standings(p)[0] and p.pair["sides"][1]["nodes"][d["right"]][5] == ALONE,
        "faulty: the divergence is unmatched",
    )
    check("other is 1e-05 on the left" in p.text, "faulty: the text without a script")

    status, _, _ = isomer(
        LEFT,
        os.path.join(LLAMA, "vllm-bug-scale"),
        "-q",
        "--html",
        os.path.join(where, "scale.html"),
    )
    check(status == 1, "scale: %d" % status)

    rounded = os.path.join(where, "rounded.html")
    status, _, _ = isomer(LEFT, EPS, "-q", "--rounding", "--html", rounded)
    r = page(rounded, "rounded").report
    check(
        status == 1
        and len(r["rounding"]) == 1
        and not r["rounding"][0]["explained"]
        and len(r["rounding_curve"]) > 3
        and r["rounding_conclusion"].startswith("rounding does not explain the difference: in fl"),
        "rounded: %d %s" % (status, r["rounding"]),
    )
    check(
        p.report["rounding"] == [] and p.report["rounding_conclusion"] is None,
        "rounding that nobody asked for",
    )

    # Several pairs; none that agrees; a comparison that was stopped; one that ran out of memory.
    several = os.path.join(where, "several.html")
    status, _, err = isomer(LEFT, RIGHT, "--also", LEFT, EPS, "-q", "--html", several)
    p = page(several, "several")
    check(
        status == 1
        and len(p.graphs["pairs"]) == 2
        and p.graphs["decides"] == 1
        and len(p.report["pairs"]) == 2,
        "several: %d %s" % (status, err),
    )
    stopped = os.path.join(where, "stopped.html")
    status, _, err = isomer(LEFT, RIGHT, "-q", "--timeout", "0.001", "--html", stopped)
    p = page(stopped, "stopped")
    check(
        status == 3 and "limit" in p.pair["reason"],
        "stopped: %d %s %s" % (status, err, p.pair["reason"]),
    )

    # File names are anything, JSON is not.
    odd = os.path.join(os.fsencode(where), b"odd \xff\xed\xa0\x80")
    shutil.copytree(os.fsencode(RIGHT), odd)
    status, _, err = isomer(LEFT, odd, "-q", "--html", os.path.join(where, "odd.html"))
    check(
        status == 0
        and "odd \ufffd" in page(os.path.join(where, "odd.html"), "odd").pair["sides"][1]["path"],
        "a name that is no UTF-8: %d %s" % (status, err),
    )

    # A page that cannot be written leaves no file.
    for bad in (os.path.join(where, "no", "folder.html"), where):
        status, _, err = isomer(LEFT, RIGHT, "-q", "--html", bad)
        check(
            status == 2 and err.startswith("isomer: ") and err.count("\n") == 1,
            "--html %s: %d %s" % (bad, status, err),
        )
    check(not [n for n in os.listdir(where) if ".tmp." in n], "something half-written is left")


def hostile(where):
    """Captures whose every text tries to leave its place."""
    sides = []
    for side, source in (("left", LEFT), ("right", EPS)):
        folder = os.path.join(where, "hostile", side + " </title><b>'\"")
        shutil.copytree(source, folder)
        g = graph(folder)
        g["model"] = g["framework"] = EVIL
        for n in g["nodes"]:
            n["scope"] = n.get("scope", "") + EVIL.replace(".", "")
            n["source"] = EVIL + ".py:1"
        rename = {n["id"]: n["id"] + EVIL for n in g["nodes"]}
        text = json.dumps(g)
        for a in sorted(rename, key=len, reverse=True):
            text = text.replace(
                '{"ref": %s}' % json.dumps(a), '{"ref": %s}' % json.dumps(rename[a])
            ).replace('"id": %s,' % json.dumps(a), '"id": %s,' % json.dumps(rename[a]))
        g = json.loads(text)
        for o in g["outputs"]:
            for k in ("ref", "node"):
                if o.get(k) in rename:
                    o[k] = rename[o[k]]
        with open(os.path.join(folder, "graph.json"), "w") as f:
            json.dump(g, f)
        trace = os.path.join(folder, "trace.safetensors")
        if os.path.exists(trace):
            os.unlink(trace)
        sides.append(folder)
    out = os.path.join(where, "hostile.html")
    status, _, err = isomer(sides[0], sides[1], "-q", "--html", out)
    check(status == 1, "hostile: %d %s" % (status, err))
    if status != 1:
        return out
    p = page(out, "hostile")
    check(
        p.pair["sides"][0]["model"] == EVIL
        and all(n[0].endswith(EVIL) for n in p.pair["sides"][0]["nodes"]),
        "hostile: the names are not what they were",
    )
    check(
        "<b>" not in p.source.replace("<body>", "")
        and "<script>fail" not in p.source
        and "<!--" not in p.source,
        "hostile: a name is markup",
    )
    check(
        EVIL.replace("\x07", "") in p.text.replace("\x07", ""), "hostile: the text without a script"
    )
    return out


def two_bugs(where):
    """A norm's eps in layer 0 and the attention's scale in layer 1."""
    folder = os.path.join(where, "two-bugs")
    shutil.copytree(RIGHT, folder)
    g = graph(folder)
    for n in g["nodes"]:
        if (
            n["op"] == "aten::add.Tensor"
            and n.get("scope") == "model.layers.0.post_attention_layernorm"
            and n["args"][1] == 1e-5
        ):
            n["args"][1] = 1e-3
        if n["id"] == "unified_attention_1":
            n["attributes"]["scale"] *= 1.5
    with open(os.path.join(folder, "graph.json"), "w") as f:
        json.dump(g, f)
    out = os.path.join(where, "two.html")
    status, _, _ = isomer(LEFT, folder, "-q", "--html", out)
    check(
        status == 1 and len(page(out, "two bugs").pair["divergences"]) == 2, "two bugs: %d" % status
    )
    return out


def deep(where, layers):
    """A page of many nodes, made of the page of two layers: what the browser has to bear. Its right
    layer 1 is in doubt."""
    p = page(os.path.join(where, "faulty.html"), "deep")
    for side in p.pair["sides"]:
        base = []
        for n in side["nodes"]:
            n = list(n)
            n[7] = n[7] if n[7] != 0 else base[-1][7]
            n[8] = n[8] if n[8] != 0 else base[-1][8]
            base.append(n)
        block = [i for i, n in enumerate(base) if n[7].startswith("model.layers.1")]
        nodes = list(base)
        for layer in range(2, layers):
            for i in block:
                n = list(base[i])
                n[0] += "_%d" % layer
                n[7] = n[7].replace("layers.1", "layers.%d" % layer)
                n[4] = n[4] + 100000 * layer if n[4] >= 0 else -1
                nodes.append(n)
        side["nodes"] = nodes
    out = os.path.join(where, "deep.html")
    graphs = json.dumps(p.graphs).replace("<", "\\u003c")
    with open(out, "w", encoding="utf-8") as f:
        f.write(
            re.sub(
                r'(id="graphs">).*?(</script>)',
                lambda m: m.group(1) + graphs + m.group(2),
                p.source,
                flags=re.S,
            )
        )
    return out, sum(len(s["nodes"]) for s in p.pair["sides"])


# ---- in a browser ----

STATE = (
    "JSON.stringify({chosen: VIEW.chosen && (VIEW.chosen.id || VIEW.chosen.key), side: "
    "VIEW.chosen && VIEW.chosen.side, rows: VIEW.panes.map(p => p.rows.length),"
    " shown: VIEW.panes.map(p => p.box.querySelectorAll('.row').length), focus: "
    "document.activeElement.id, count: document.getElementById('count').textContent})"
)


def state(b):
    return json.loads(b.js(STATE))


def quiet(b, what):
    bad = b.complaints()
    check(not bad, "%s: the browser complains: %s" % (what, bad[:3]))


def keep(b, name):
    if O.pictures:
        os.makedirs(O.pictures, exist_ok=True)
        b.picture(os.path.join(O.pictures, name + ".png"))


def walk(b, what):
    """Search, fold, move and select by keys alone."""
    b.js("document.body.focus(); document.activeElement.blur()")
    b.key("/")
    check(state(b)["focus"] == "search", "%s: / searches" % what)
    b.type("mul layers.1")
    s = state(b)
    left, right = map(int, re.match(r"(\d+) left, (\d+) right", s["count"]).groups())
    expected = json.loads(
        b.js(
            (
                "JSON.stringify(VIEW.model.sides.map(s => s.nodes.filter(n => "
                "n.text.includes('mul') "
                "&& n.text.includes('layers.1')).length))"
            )
        )
    )
    check([left, right] == expected and left > 3, "%s: search finds %s" % (what, s["count"]))
    b.key("Enter")
    s = state(b)
    check(
        s["focus"] == "pane0" and "mul" in s["chosen"],
        "%s: Enter selects the first: %s" % (what, s),
    )
    b.js("VIEW.search.focus()")
    b.key("Escape")
    check(state(b)["count"] == "", "%s: Escape ends the search" % what)
    b.js("VIEW.panes[0].box.focus()")
    b.key("Home")
    before = state(b)
    b.key("ArrowLeft")  # the first module is open
    folded = state(b)
    check(folded["rows"][0] < before["rows"][0], "%s: left folds: %s %s" % (what, before, folded))
    b.key("ArrowRight")
    check(state(b)["rows"][0] == before["rows"][0], "%s: right unfolds" % what)
    b.key("ArrowDown")
    check(
        state(b)["chosen"] != before["chosen"]
        and b.js("Boolean(document.querySelector('#pane0 [aria-selected=true]'))"),
        "%s: down moves" % what,
    )
    b.key("End")
    check(
        b.js("VIEW.panes[0].at === VIEW.panes[0].rows[VIEW.panes[0].rows.length - 1].x"),
        "%s: End" % what,
    )
    b.js("document.querySelector('.tools button').click()")
    b.settle()
    s = state(b)
    total = b.js("VIEW.model.sides[0].nodes.length")
    check(
        s["rows"][0] > total and s["shown"][0] < 80,
        "%s: all unfolded, few in the document: %s" % (what, s),
    )


def selection(b, what):
    """A node with a counterpart: both sides' members are there, and x crosses over."""
    i = b.js(
        (
            "VIEW.model.sides[0].nodes.findIndex(n => n.kind === 'o' && n.state === 'rule' && "
            "counterparts(VIEW.model, n).length)"
        )
    )
    b.js("VIEW.go(0, %d)" % i)
    b.settle()
    listed = json.loads(
        b.js(
            (
                "JSON.stringify([...document.querySelectorAll('#members > div')].map(d => "
                "[...d.querySelectorAll('button.link')].map(x => x.textContent)))"
            )
        )
    )
    members = json.loads(
        b.js(
            (
                "JSON.stringify(VIEW.model.members.get(VIEW.chosen.cls).map((l, k) => l.slice(0, "
                "12).map(i => VIEW.model.sides[k].nodes[i].id)))"
            )
        )
    )
    check(listed == members and all(listed), "%s: members %s, listed %s" % (what, members, listed))
    check(
        b.js("[0, 1].every(k => document.querySelectorAll('#pane' + k + ' .row.mate').length > 0)"),
        "%s: both sides are marked" % what,
    )
    b.key("x")
    s = state(b)
    check(s["side"] == 1 and s["chosen"] in members[1], "%s: x crosses over: %s" % (what, s))


def everything(b, what):
    """Open all that can be opened, press what can be pressed; nothing may complain."""
    b.js("for (const d of document.querySelectorAll('details')) d.open = true; 1")
    b.settle()
    b.js(
        (
            "for (const x of [...document.querySelectorAll('#legend button, #theme, #strip "
            "button')].slice(0, 40)) x.click(); VIEW.clear(); 1"
        )
    )
    b.settle()
    b.key("?")
    check(b.js("document.getElementById('help').open"), "%s: ? helps" % what)
    b.js("document.getElementById('help').close()")
    check(
        not b.js("/undefined|\\[object|NaN/.test(document.body.innerText)"),
        "%s: says %s"
        % (
            what,
            b.js(
                "(/.{30}(undefined|\\[object|NaN).{30}/s.exec(document.body.innerText) || [''])[0]"
            ),
        ),
    )
    wide = b.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(wide <= 1, "%s: wider than the window by %s" % (what, wide))
    b.size(390, 844)
    wide = b.js("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    check(wide <= 1, "%s: wider than a phone by %s" % (what, wide))
    b.size(1400, 1000)
    quiet(b, what)


def contrast(b, what):
    """Every mark's colour stands off the ground, and no two marks have one shape."""
    code = """(() => {
      const rgb = c => {
        const e = document.createElement('i');
        e.style.color = c;
        document.body.append(e);
        const m = getComputedStyle(e).color.match(/[\\d.]+/g).map(Number);
        e.remove();
        return m;
      };
      const linear = v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4;
      const lum = c => c.slice(0, 3).map(v => linear(v / 255))
        .reduce((s, v, i) => s + v * [.2126, .7152, .0722][i], 0);
      const ratio = (a, b) => {
        const [x, y] = [lum(a), lum(b)].sort((p, q) => q - p);
        return (x + .05) / (y + .05);
      };
      const on = (n, g) => ratio(rgb(`var(--${n})`), rgb(`var(--${g})`));
      const names = ['same', 'rule', 'assumed', 'alone', 'after', 'diverges', 'unread', 'text',
        'dim', 'link'];
      return JSON.stringify(names.map(n => [n, Math.min(...['bg', 'panel'].map(g => on(n, g)))]));
    })()"""
    for theme in ("light", "dark"):
        b.js("document.documentElement.dataset.theme = '%s'" % theme)
        low = [x for x in json.loads(b.js(code)) if x[1] < 4.5]
        check(not low, "%s: too faint when %s: %s" % (what, theme, low))
    b.js("delete document.documentElement.dataset.theme")
    check(
        b.js(
            (
                "new Set(STATE_NAMES.map(n => markShapes(n).map(e => e.outerHTML).join(''))).size "
                "=== STATE_NAMES.length"
            )
        ),
        "%s: two marks of one shape" % what,
    )


def shown(where, hostile_page, two_page):
    b = browser.Browser(browser.find())
    try:
        b.open(os.path.join(where, "equivalent.html"))
        check(
            "EQUIVALENT" in b.js("document.getElementById('verdict').textContent"),
            "equivalent: the verdict is shown",
        )
        keep(b, "equivalent")
        walk(b, "equivalent")
        selection(b, "equivalent")
        keep(b, "equivalent-selected")
        contrast(b, "equivalent")
        everything(b, "equivalent")

        b.open(os.path.join(where, "faulty.html"))
        lead = b.js("document.getElementById('lead').textContent")
        check(
            "They part at 5 places" in lead
            and "model.layers.0.input_layernorm" in lead
            and "1e-06 on the right" in lead,
            "faulty: says %s" % lead,
        )
        check(
            b.js(
                (
                    "document.querySelectorAll('[data-divergence]').length === 5 && "
                    "document.querySelectorAll('[data-divergence] svg.box, [data-divergence] "
                    ".box.hot').length >= 2"
                )
            ),
            "faulty: the regions",
        )
        check(
            b.js(
                (
                    "document.querySelector('[data-divergence] "
                    "svg.heat').querySelectorAll('rect').length"
                )
            )
            == 9,
            "faulty: seven cells and two frames",
        )
        b.js("document.body.focus()")
        b.key("n")
        first = state(b)["chosen"]
        b.key("n")
        check(first and state(b)["chosen"] != first, "faulty: n goes on")
        b.key("p")
        check(state(b)["chosen"] == first, "faulty: p goes back")
        keep(b, "faulty")
        shapes = b.js(
            "[...document.querySelectorAll('#marks span[title]')].map(x => x.lastChild.textContent)"
        )
        check(
            "differs here" in shapes and "by rule" in shapes and "matched" not in shapes,
            "faulty: what the shapes mean: %s" % shapes,
        )
        everything(b, "faulty")

        b.open(os.path.join(where, "scale.html"))
        rows = b.js(
            "[...document.querySelector('[data-divergence]').querySelectorAll('tr.differs')]"
            ".map(x => x.textContent)"
        )
        check(
            len(rows) == 1 and rows[0].startswith("scale0.28867513459481287"),
            "scale: what differs between the operators: %s" % rows,
        )
        check(
            "on the right scale is 0.08333333333333333, and would have to be 0.28867513459481287"
            in b.js("document.getElementById('lead').textContent"),
            "scale: what is wrong",
        )
        keep(b, "scale")
        quiet(b, "scale")

        for name, path in (
            ("two-bugs", two_page),
            ("several", os.path.join(where, "several.html")),
            ("stopped", os.path.join(where, "stopped.html")),
            ("same", os.path.join(where, "same.html")),
        ):
            b.open(path)
            keep(b, name)
            if name == "stopped":
                check(
                    "differs here" not in b.js("document.body.innerText"),
                    "stopped: nothing differs",
                )
            if name == "several":
                check(
                    "pair 1 is equivalent, pair 2 is different"
                    in b.js("document.getElementById('pairs').textContent"),
                    "several: the pairs",
                )
                b.js(
                    (
                        "(s => { s.value = 0; s.dispatchEvent(new Event('change')); "
                        "})(document.getElementById('pair'))"
                    )
                )
                check(
                    "EQUIVALENT" in b.js("document.getElementById('verdict').textContent"),
                    "several: the other pair",
                )
            everything(b, name)

        b.open(os.path.join(where, "rounded.html"))
        check(
            "in float64 the two are" in b.js("document.getElementById('rounding').textContent")
            and b.js("document.querySelectorAll('#rounding-curve path').length") == 4,
            "rounded: the conclusion and the curve",
        )
        keep(b, "rounded")
        everything(b, "rounded")

        b.open(hostile_page)
        check(
            b.js("typeof fail") == "undefined"
            and b.js("document.querySelectorAll('script').length") == 4 - 1,
            "hostile: a name ran",
        )
        check(
            "</script>" in b.js("document.body.innerText"), "hostile: names are shown as they are"
        )
        keep(b, "hostile")
        everything(b, "hostile")

        path, n = deep(where, 60)
        b.open(path)
        check(n > 4500, "deep: %d nodes" % n)
        walk(b, "deep")
        slow = b.js(
            (
                "(() => { const t = performance.now(); for (let i = 0; i < 10; i++) { "
                "VIEW.search.value = i % 2 ? 'mul' : 'add layers.1'; VIEW.search.dispatchEvent(new "
                "Event('input')); } return (performance.now() - t) / 10; })()"
            )
        )
        check(slow < 500, "deep: a search takes %.0f ms" % slow)
        b.js("VIEW.clear()")
        keep(b, "deep")
        everything(b, "deep")
    finally:
        b.close()


def main():
    global O
    a = argparse.ArgumentParser(description="the page of --html")
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--pictures")
    O = a.parse_args()
    with tempfile.TemporaryDirectory(prefix="isomer-html-") as where:
        texts(where)
        hostile_page, two_page = hostile(where), two_bugs(where)
        if browser.find():
            shown(where, hostile_page, two_page)
        else:
            print(
                (
                    "note: no Chromium here (CHROMIUM=PATH, or apt-get install chromium: 300 MB); "
                    "the pages were not opened"
                )
            )
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


if __name__ == "__main__":
    sys.exit(main())
