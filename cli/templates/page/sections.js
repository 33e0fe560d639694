/* The parts of the page, each made of the report. */

const plural = (n, one, many = one + "s") => `${n} ${n === 1 ? one : many}`;
const nodeLink = (view, n) => el("button", {class: "link mono", title: `${n.op}\n${n.scope}`, onclick: () => view.go(n.side, n.i)}, n.id);
const byId = (view, side, id) => (view.ids = view.ids || view.model.sides.map(s => new Map(s.nodes.map(n => [n.id, n]))))[side].get(id);

/* Long lists: the first ones, the rest when asked for. */
function shortList(items, make, shown = 60) {
  const box = el("ul", {}, items.slice(0, shown).map(x => el("li", {}, make(x))));
  if (items.length > shown) {
    const more = el("button", {onclick: () => { box.append(...items.slice(shown).map(x => el("li", {}, make(x)))); more.remove(); }}, `show all ${items.length}`);
    return el("div", {}, box, more);
  }
  return box;
}
/* A part that is made when it is opened first. */
function lazy(props, summary, make) {
  const d = el("details", {...props, ontoggle: () => { if (d.open && d.children.length === 1) d.append(el("div", {}, make())); }}, el("summary", {}, summary));
  return d;
}

/* ---- the verdict ---- */

const GLYPHS = {equivalent: "✓", different: "✕", undecided: "?"};

function leadOf(model) {
  const r = model.report, first = r.divergences[0];
  if (r.verdict === "equivalent")
    return [`The two graphs compute the same function: every output was shown equal, by a chain of steps of which the weakest is ${r.evidence}. `,
      `This holds for the captured shapes and rests on ${plural(r.assumptions.length, "assumption")}, listed below.`];
  const where = first && (first.right || first.left), text = [];
  if (r.verdict === "different") {
    text.push("The two graphs do not compute the same function. ");
    if (first) text.push(el("b", {}, r.divergences.length === 1 ? "They part at one place" : `They part at ${r.divergences.length} places${first.hint && r.divergences.every(d => d.hint === first.hint) ? ", all in the same way" : ""}; the first is`), " in ",
      el("code", {}, where.scope || where.id), " ", el("code", {}, `(${where.op})`), first.hint ? [": ", el("b", {}, first.hint)] : "", ". ");
    const c = r.counterexample;
    if (c) text.push(`Output ${c.output} `, c.max_abs === null ? "is a number on one side only" : `differs by up to ${number(c.max_abs)} (relative ${number(c.max_rel)})`,
      c.inputs ? ` on the inputs in ${c.inputs}.` : c.redrawn ? ` on ${c.redrawn_parameters ? c.changed_elements ? "inputs and parameters" : "parameters" : "inputs"} that were drawn anew (seed ${c.seed}).` : " on the captured inputs and parameters.");
    return text;
  }
  text.push("No difference was seen, but the chain of steps that would show the two equal has a gap", model.reason ? `: ${model.reason}` : "", ". ");
  if (first && where) text.push("The first gap is in ", el("code", {}, where.scope || where.id), first.hint ? `: ${first.hint}.` : ".");
  return text;
}

/* Modules in a row, a layer each: where in the model something is wrong. */
function strip(view) {
  const list = s => {
    const out = [];
    const walk = g => {
      for (const x of g.items)
        if (x.items) { if (/\.\d+$/.test(x.label) || !x.groups.size || ![...x.groups.values()].some(deep)) out.push(x); else walk(x); }
    };
    const deep = g => /\.\d+$/.test(g.label) || [...g.groups.values()].some(deep);
    walk(s.top);
    return out;
  };
  /* Of its operators; leaves are always assumed. */
  const states = (g, into = new Set()) => { g.nodes.forEach(n => { if (n.kind === "o" || n.state === "alone" || n.state === "diverges") into.add(n.state); }); g.groups.forEach(x => states(x, into)); return into; };
  const worst = g => { const has = states(g); return STATE_NAMES.find(n => has.has(n) && n !== "unread") || STATE_NAMES.find(n => g.counts[n]) || "unread"; };
  const button = g => { const w = worst(g); return el("button", {class: w, title: `${g.path.join(".")}: ${STATE_NAMES.filter(n => g.counts[n]).map(n => `${g.counts[n]} ${STATES[n][0]}`).join(", ")}`,
    onclick: () => { view.choose(g, true); document.getElementById("graphs-section").scrollIntoView(); }}, mark(w), " ", /\.(\d+)$/.test(g.label) ? g.label.replace(/^.*\./, "") : g.label); };
  return el("div", {class: "strip", id: "strip"}, view.model.sides.map((s, k) => [el("b", {}, ["Left", "Right"][k]), el("div", {}, list(s).map(button))]));
}

/* What the shapes of the strip mean: those that are in it. */
function marks(view) {
  const there = STATE_NAMES.filter(n => view.model.sides.some(s => s.nodes.some(x => x.state === n)));
  return el("p", {class: "marks dim", id: "marks"}, there.map(n => [el("span", {class: n, title: STATES[n][1]}, mark(n), " ", STATES[n][0]), " "]));
}

function header(view) {
  const m = view.model, r = m.report, side = k => {
    const d = m.sides[k].data;
    return el("tr", {}, el("th", {}, ["Left", "Right"][k]), el("td", {}, el("b", {}, d.model || "?"), ` in ${d.framework || "?"} ${d.framework_version}, `, plural(m.sides[k].nodes.length, "node"), el("div", {class: "mono dim"}, [d.path, ...d.then].join(", then "))));
  };
  const kinds = new Map();
  for (const a of r.assumptions) kinds.set(a.kind, (kinds.get(a.kind) || 0) + 1);
  const weakest = r.evidence ? `${r.evidence}` + (r.evidence === "certified" ? " (z3 answered an obligation of every rule on the chain)" : r.evidence === "proved" ? " (every rule on the chain is proved)" : " (at least one rule on the chain is tested, not proved)")
    : r.counterexample ? "a difference was computed: see the outputs" : "none";
  return [
    el("h1", {}, el("span", {class: "verdict " + r.verdict, id: "verdict"}, GLYPHS[r.verdict], " ", r.verdict.toUpperCase()),
      r.evidence && el("span", {class: "tag"}, r.evidence), r.divergences.length > 0 && r.divergences.every(d => d.known) && el("span", {class: "tag"}, "known")),
    el("p", {class: "lead", id: "lead"}, leadOf(m)),
    GRAPHS.pairs.length > 1 && el("p", {class: "dim", id: "pairs"}, `Pair ${m.pair + 1} of ${GRAPHS.pairs.length} is shown: `, REPORT.pairs.map((p, i) => `${i ? ", " : ""}pair ${i + 1} is ${p.verdict}`), ". The bar below chooses another one."),
    el("div", {class: "facts"},
      el("div", {class: "card"}, el("h3", {}, "Compared"), el("table", {}, side(0), side(1)),
        r.outputs.length > 0 && el("table", {}, el("tr", {}, ["output", "on the right", ""].map(t => el("th", {}, t))), r.outputs.map(o => el("tr", {}, el("td", {class: "mono"}, o.left), el("td", {class: "mono"}, o.relation === "equal" ? o.right : o.relation),
          el("td", {class: o.equivalent ? "same" : "alone"}, mark(o.equivalent ? "same" : "alone"), o.equivalent ? " equal" : " not shown equal"))))),
      el("div", {class: "card"}, el("h3", {}, "What it rests on"), el("table", {},
        el("tr", {}, el("th", {}, "Evidence"), el("td", {}, weakest)),
        el("tr", {}, el("th", {}, "Rules"), el("td", {}, el("a", {href: "#rules-section"}, plural(r.rules.length, "rule")), r.rules.length ? `: ${r.rules.filter(x => x.status === "proved").length} proved, ${r.rules.filter(x => x.status === "tested").length} tested` : "")),
        (r.refinement || []).length > 0 && el("tr", {}, el("th", {}, "Relations"), el("td", {}, r.refinement.map(x => el("div", {}, el("span", {class: "mono"}, x.relation ? `${x.output} = ${x.relation}` : `${x.output}: no clean relation`),
          x.relation && !x.clean && [" ", el("span", {class: "tag"}, "not clean")], x.surprising && [" ", el("span", {class: "tag"}, "surprising"), ` ${x.surprising}`])))),
        el("tr", {}, el("th", {}, "Assumptions"), el("td", {}, el("a", {href: "#assumptions-section"}, r.assumptions.length), " ", [...kinds].map(([k, n]) => [el("span", {class: "tag"}, `${k} ${n}`), " "]))),
        el("tr", {}, el("th", {}, "Draws"), el("td", {}, `${r.coverage.draws.captured} captured, ${r.coverage.draws.redrawn} with fresh inputs and parameters, ${r.coverage.draws.searched} in search of a difference`)),
        r.unexplained_leaves.length > 0 && el("tr", {}, el("th", {}, "Unexplained"), el("td", {class: "alone"}, mark("alone"), " ", el("a", {href: "#coverage-section"}, plural(r.unexplained_leaves.length, "leaf", "leaves")))),
        r.relative_to.length > 0 && el("tr", {}, el("th", {}, "Relative to"), el("td", {class: "mono"}, r.relative_to.join(", ")))))),
    el("h3", {}, "Where: modules and layers, each with the worst that was found in it"), strip(view), marks(view)];
}

/* ---- divergences ---- */

/* The region, what it reads, and a little of what follows. */
function regionDiagram(view, d, side) {
  const s = view.model.sides[side], root = d[SIDES[side]], LIMIT = 40;
  let inside = [...new Set([...d.regions[side], ...(root >= 0 ? [root] : []), ...(d.at[side] >= 0 ? [d.at[side]] : [])])].sort((a, b) => a - b);
  const total = inside.length;
  if (!total) return el("p", {class: "dim"}, "no counterpart on this side");
  if (inside.length > LIMIT) { const k = Math.max(0, inside.indexOf(root) - 4); inside = inside.slice(k, k + LIMIT); }
  if (inside.length < 8) { /* a little of what reads it */
    const seen = new Set(inside);
    for (const i of [...inside]) for (const u of s.nodes[i].users.slice(0, 2)) if (inside.length < 10 && !seen.has(u) && s.nodes[u].state !== "unread") { seen.add(u); inside.push(u); }
  }
  return el("div", {}, nodesDiagram(view, side, inside, [root], `${SIDES[side]} region`), total > LIMIT ? el("p", {class: "dim"}, `${total - LIMIT} more operators are not drawn`) : null);
}

/* Nodes and, dashed, what they read from elsewhere. */
function nodesDiagram(view, side, inside, hot, what) {
  const s = view.model.sides[side], set = new Set(inside), given = new Set();
  for (const i of inside) for (const k of s.nodes[i].inputs) if (!set.has(k)) given.add(k);
  const keys = [...given, ...inside].sort((a, b) => a - b), edges = [];
  for (const i of inside) for (const k of new Set(s.nodes[i].inputs)) edges.push([k, i]);
  return diagram(keys.map(i => {
    const n = s.nodes[i], args = literals(n).filter(([k, v]) => v !== "none").map(([k, v]) => k ? `${k}=${v}` : v).join(" ");
    return {key: i, label: n.kind === "o" ? shortOp(n.op) : cutFront(n.op, 34), state: n.state, given: given.has(i), hot: hot.includes(i), pick: () => view.go(side, i),
      lines: [n.shape, ...(args && !given.has(i) ? [args] : [])], title: `${n.id}\n${n.op}\n${args}\n${n.scope}\n${n.source}\n${STATES[n.state].join(": ")}`};
  }), edges, what);
}

/* Two nodes against each other, line by line. Between two operators of different names only what both say is held against each other. */
function compareTable(view, left, right) {
  const both = [left, right], rows = [], s = k => view.model.sides[k], alike = left && right && (left.kind === "o") === (right.kind === "o");
  const names = [], maps = both.map(n => new Map()), same = left && right && left.op === right.op;
  both.forEach((n, k) => { for (let i = 0; n && i < n.args.length; i += 2) { const name = n.args[i] || `argument ${i / 2 + 1}`; if (!names.includes(name)) names.push(name); maps[k].set(name, [valueText(s(k), n.args[i + 1]), typeof n.args[i + 1] === "string"]); } });
  const literal = (m, name) => m.has(name) && m.get(name)[1];
  const held = name => same ? maps.some(m => literal(m, name)) : maps.every(m => literal(m, name));
  const told = !same && names.some(name => held(name) && maps[0].get(name)[0] !== maps[1].get(name)[0]); /* then the operators' names are no news */
  const row = (name, values, quiet) => { if (values.some(v => v)) rows.push(el("tr", {class: !quiet && alike && values[0] !== values[1] ? "differs" : null}, el("th", {}, name),
    values.map(v => el("td", {class: "mono"}, v || el("span", {class: "dim"}, "–"))), el("td", {}, !quiet && alike && values[0] !== values[1] ? "≠" : ""))); };
  row("node", both.map(n => n && n.id), true);
  row("operator", both.map(n => n && (n.kind === "o" ? n.op : KINDS[n.kind] + " " + n.op)), told || (alike && left.kind !== "o"));
  row("module", both.map(n => n && n.scope), true);
  row("source", both.map(n => n && n.source), true);
  const plain = t => t && t.replace(/\[.*?\]/g, m => "[" + dimsOf(m).filter(x => x !== 1) + "]"); /* sizes of 1 make no difference */
  row("gives", both.map(n => n && n.shape), told || (left && right && plain(left.shape) === plain(right.shape)));
  for (const name of names) row(name, maps.map((m, k) => m.has(name) ? m.get(name)[0] : both[k] && same ? "(default)" : ""), !held(name));
  return el("table", {}, el("tr", {}, ["", "left", "right", ""].map(t => el("th", {}, t))), rows);
}

function divergenceCard(view, d, k) {
  const m = view.model, r = m.report.divergences[k], nodes = [0, 1].map(s => d[SIDES[s]] >= 0 ? m.sides[s].nodes[d[SIDES[s]]] : null), word = m.report.verdict === "different" ? "Divergence" : "Gap";
  const where = nodes[1] || nodes[0];
  const body = () => [
    el("p", {}, where && ["In ", el("code", {}, where.scope || where.id), where.source && [", ", el("code", {}, where.source)], ". "],
      nodes.some(n => n && m.report.coverage[SIDES[n.side]].not_run.includes(n.id)) ? "This operator could not be run on this side."
        : nodes.some(n => n && n.kind !== "o") ? "One side reads a leaf whose values the other side does not have in its place."
          : ["What goes into the regions has the same values on both sides", m.report.verdict === "different" ? "; what comes out has not." : "; no rule was found that joins what comes out."]),
    el("h3", {}, "The two operators"), compareTable(view, nodes[0], nodes[1]),
    el("p", {}, nodes.map((n, s) => n && el("button", {onclick: () => view.go(s, n.i)}, `show ${n.id} in the ${SIDES[s]} graph`)).flatMap(b => [b, " "])),
    el("h3", {}, "The two regions"),
    el("p", {class: "dim"}, "Dashed: what the region reads. Framed in bold: where the sides part. Click a box to find it in the graph."),
    el("div", {class: "two"}, [0, 1].map(s => el("div", {}, el("b", {}, ["Left", "Right"][s]), regionDiagram(view, d, s)))),
    d.picture && [el("h3", {}, "Where the tensors differ"), el("p", {class: "dim"}, "Held against each other: ", nodeLink(view, m.sides[0].nodes[d.at[0]]), " on the left, ", nodeLink(view, m.sides[1].nodes[d.at[1]]), " on the right (",
      m.sides[0].nodes[d.at[0]].shape, "), ", k > 0 ? "with the divergences before this one put right" : "on the input that shows the outputs different", "."), heatMap(d.picture, dimsOf(m.sides[0].nodes[d.at[0]].shape))],
    !d.picture && r.max_abs === null && el("p", {}, "One side gives no number here.")];
  const title = [mark("diverges"), ` ${word} ${k + 1}: `, el("b", {}, r.hint || (where ? `${shortOp(where.op)} in ${where.scope || where.id}` : "the outputs")),
    r.hint && where && el("span", {class: "dim"}, ` · ${where.scope || where.id}`), r.known && el("span", {class: "tag"}, `known: ${r.known}`)];
  const card = lazy({class: "card bad", "data-divergence": k}, title, body);
  if (k === 0 || m.divergences.length === 2) card.open = true;
  return card;
}

function divergences(view) {
  const m = view.model, word = m.report.verdict === "different" ? "divergence" : "gap";
  if (!m.divergences.length) return null;
  return section("divergences", `Where they part (${plural(m.divergences.length, word)})`,
    m.divergences.length > 1 && m.report.verdict === "different" && el("p", {}, "Each is independent of the others: the ones before it were put right first."),
    m.divergences.map((d, k) => divergenceCard(view, d, k)));
}

/* ---- what is selected ---- */

function aboutNode(view, n) {
  const m = view.model, members = n.cls >= 0 ? m.members.get(n.cls) : null, mate = mateOf(m, n), rules = m.rulesOf.get(n.cls) || [];
  const column = s => {
    const list = members ? members[s] : s === n.side ? [n.i] : [];
    return el("div", {}, el("b", {}, `${["Left", "Right"][s]}: `), list.length ? `${plural(list.length, "member")} of its class` : "no member of its class", shortList(list.map(i => m.sides[s].nodes[i]), x =>
      [mark(x.state), " ", nodeLink(view, x), " ", el("span", {class: "dim mono"}, `${x.kind === "o" ? shortOp(x.op) : KINDS[x.kind] + " " + x.op} ${x.shape}`)], 12));
  };
  const near = x => { const s = m.sides[x.side]; return nodesDiagram(view, x.side, [x.i, ...x.users.filter(u => s.nodes[u].state !== "unread").slice(0, 4)].sort((a, b) => a - b), [], `around ${x.id}`); };
  const uses = k => m.report.rules[k];
  return [
    el("h3", {}, mark(n.state), " ", el("code", {}, n.id), ` on the ${SIDES[n.side]}: `, STATES[n.state][0], el("span", {class: "dim"}, ` – ${STATES[n.state][1]}`)),
    rules.length > 0 && el("p", {}, "Rules in its class: ", rules.map(k => [el("button", {class: "link", onclick: () => openRule(k)}, uses(k).name), ` (${uses(k).status}) `])),
    n.state === "within" && el("p", {}, "It lies within ", explainers(m, n).map((x, k) => [k ? ", " : "", nodeLink(view, x), " = ", nodeLink(view, counterparts(m, x)[0]),
      (m.rulesOf.get(x.cls) || []).map(q => [" (", el("button", {class: "link", onclick: () => openRule(q)}, uses(q).name), `, ${uses(q).status})`])])),
    el("div", {class: "two", id: "members"}, column(0), column(1)),
    n.state === "diverges" && mate && el("p", {}, `In its place on the ${SIDES[1 - n.side]}: `, nodeLink(view, mate)),
    compareTable(view, ...[0, 1].map(k => n.side === k ? n : n.state === "within" ? null : mate)),
    el("div", {class: "two"}, [0, 1].map(s => el("div", {}, s === n.side ? near(n) : mate ? near(mate) : el("p", {class: "dim"}, "Nothing on this side was found equal to it."))))].filter(Boolean);
}

/* A module drawn: what is directly in it, its parts folded. */
function groupDiagram(view, g) {
  const s = view.model.sides[g.side], LIMIT = 60, items = g.items.filter(x => x.items || x.kind === "o").slice(0, LIMIT), key = x => x.items ? "g" + x.key : x.i, set = new Set(items), edges = [];
  const owner = i => { const n = s.nodes[i]; if (set.has(n)) return key(n); for (let q = n.group; q; q = q.parent) if (set.has(q)) return key(q); return null; };
  const seen = new Set();
  for (const n of s.nodes) {
    const to = owner(n.i);
    if (to === null) continue;
    for (const i of n.inputs) { const from = owner(i), id = from + ">" + to; if (from !== null && from !== to && !seen.has(id)) { seen.add(id); edges.push([from, to]); } }
  }
  return diagram(items.map(x => x.items ? {key: key(x), label: "▸ " + x.label, state: STATE_NAMES.find(k => x.counts[k] && k !== "unread") || "unread", lines: [plural(Object.values(x.counts).reduce((a, b) => a + b, 0), "node")],
    hot: Boolean(x.counts.diverges), pick: () => view.choose(x, true), title: x.path.join(".")} : {key: key(x), label: shortOp(x.op), state: x.state, hot: x.state === "diverges", lines: [x.shape, literals(x).filter(([, v]) => v !== "none").map(([k, v]) => k ? `${k}=${v}` : v).join(" ")].filter(Boolean),
    pick: () => view.choose(x, true), title: `${x.id}\n${x.op}\n${x.source}`}), edges, g.path.join("."));
}

function aboutGroup(view, g) {
  const both = view.model.sides.map(s => s.groups.get(g.key));
  return [el("h3", {}, "Module ", el("code", {}, g.path.join(".") || "(everything)")),
    el("div", {class: "two"}, both.map((x, s) => el("div", {}, el("b", {}, ["Left", "Right"][s]), " ", x && STATE_NAMES.filter(n => x.counts[n]).map(n => [mark(n), ` ${x.counts[n]} ${STATES[n][0]}  `]),
      x ? groupDiagram(view, x) : el("p", {class: "dim"}, "This side has no module of that name."))))];
}

/* ---- rules ---- */

/* One side of a rule, as a drawing. */
function termDiagram(term, vars, what) {
  const items = [], edges = [], known = new Map();
  const add = t => {
    const id = JSON.stringify(t);
    if (known.has(id)) return known.get(id);
    if (typeof t === "number") { known.set(id, id); items.push({key: id, label: vars[t] || `x${t}`, given: true}); return id; }
    const kids = [], words = [];
    for (const c of t.slice(1)) {
      if (typeof c === "string") words.push(c);
      else if (Array.isArray(c) && c[0] === "") c.slice(1).forEach(x => { if (typeof x === "string") words.push(x); else kids.push(add(x)); });
      else kids.push(add(c));
    }
    items.push({key: id, label: shortOp(t[0]) || "list", lines: words.length ? [words.join(" ")] : []});
    kids.forEach(k => edges.push([k, id]));
    known.set(id, id);
    return id;
  };
  if (typeof term === "string") items.push({key: "t", label: term}); else add(term);
  return diagram(items, edges, what);
}

function ruleCard(view, k) {
  const r = view.model.report.rules[k], d = view.model.rules[k];
  const places = () => {
    const list = d.classes.map(c => view.model.members.get(c)).filter(Boolean);
    return shortList(list, ([l, right]) => [l.length ? nodeLink(view, view.model.sides[0].nodes[l[0]]) : "an inner step", " = ", right.length ? nodeLink(view, view.model.sides[1].nodes[right[0]]) : "an inner step",
      el("span", {class: "dim mono"}, " " + ((l.length ? view.model.sides[0].nodes[l[0]] : right.length ? view.model.sides[1].nodes[right[0]] : {scope: ""}).scope))], 20);
  };
  return lazy({class: "rulecard", id: "rule-" + k}, [mark("rule"), " ", el("b", {class: "mono"}, r.name), " ", el("span", {class: "tag"}, (r.status === "proved" ? "✓ " : "~ ") + r.status), " ", el("span", {class: "tag"}, r.scope), ` used ${plural(r.uses, "time")}`,
    d.needed ? ", on the chain" : "", r.origin === "loaded" ? ", loaded" : "", el("span", {class: "mono dim"}, `  ${cut(r.lhs, 48)} ⇔ ${cut(r.rhs, 48)}`)], () => [
    el("div", {class: "two"}, el("div", {}, el("b", {}, "This"), el("pre", {}, r.lhs), termDiagram(d.lhs, d.vars, r.name + " left")), el("div", {}, el("b", {}, "equals this"), el("pre", {}, r.rhs), termDiagram(d.rhs, d.vars, r.name + " right"))),
    el("table", {},
      el("tr", {}, el("th", {}, "Conditions"), el("td", {class: "mono"}, r.conditions.length ? r.conditions.map(c => el("div", {}, c)) : "none")),
      el("tr", {}, el("th", {}, "Evidence"), el("td", {}, `${r.status} by ${r.method}, for ${r.scope}; ${r.samples} samples agreed`, r.samples ? ` (seed ${d.seed}, largest relative difference ${number(d.max_rel)})` : "")),
      r.relative_to.length > 0 && el("tr", {}, el("th", {}, "Relative to"), el("td", {class: "mono"}, r.relative_to.join(", "))),
      el("tr", {}, el("th", {}, "Uses"), el("td", {}, `${plural(r.uses, "application")} in ${plural(d.classes.length, "class", "classes")}`, places())))]);
}
function openRule(k) {
  const card = document.getElementById("rule-" + k);
  card.open = true;
  card.scrollIntoView();
  card.firstChild.focus();
}

function rules(view) {
  const list = view.model.report.rules, order = list.map((_, k) => k).sort((a, b) => list[b].uses - list[a].uses || a - b);
  return section("rules", `Rules (${list.length})`, el("p", {class: "dim"}, "Found in this comparison or loaded, and each one validated: proved, or tested on random tensors. Most used first."), order.map(k => ruleCard(view, k)));
}

/* ---- assumptions, coverage ---- */

function assumptions(view) {
  const kinds = new Map();
  for (const a of view.model.report.assumptions) kinds.set(a.kind, [...(kinds.get(a.kind) || []), a]);
  const link = (side, ids) => ids.map(id => byId(view, side, id)).filter(Boolean).map(n => [" ", nodeLink(view, n)]);
  return section("assumptions", `Assumptions (${view.model.report.assumptions.length})`, [...kinds].map(([kind, list]) =>
    lazy({class: "rulecard"}, [mark("assumed"), " ", el("b", {}, kind), ` (${list.length})`, el("span", {class: "dim"}, `: ${GRAPHS.assumes[kind]}`)],
      () => shortList(list, a => [a.text, link(0, a.left), link(1, a.right)]))));
}

function coverage(view) {
  const c = view.model.report.coverage, r = view.model.report, side = k => c[SIDES[k]];
  const ids = (k, list) => list.length ? shortList(list, id => nodeLink(view, byId(view, k, id)), 20) : "";
  const cells = (name, f) => el("tr", {}, el("th", {}, name), [0, 1].map(k => el("td", {}, f(side(k), k))));
  return section("coverage", "Coverage: what was looked at",
    el("table", {}, el("tr", {}, ["", "left", "right"].map(t => el("th", {}, t))),
      cells("nodes that the outputs read", (x, k) => `${x.reached} of ${view.model.sides[k].nodes.length}`),
      cells("not read", (x, k) => [String(x.unreached.length), ids(k, x.unreached)]),
      cells("could not be run", (x, k) => x.not_run.length ? ids(k, x.not_run) : "none"),
      cells("input shapes", x => Object.entries(x.input_shapes).map(([n, s]) => el("div", {class: "mono"}, `${n} [${s.join(", ")}]`))),
      cells("unexplained leaves", (x, k) => { const l = r.unexplained_leaves.filter(u => u.side === SIDES[k]); return l.length ? shortList(l, u => [mark("alone"), " ", nodeLink(view, byId(view, k, u.id)), " ", el("span", {class: "mono dim"}, u.name)], 20) : "none"; })),
    el("p", {}, `Draws: ${c.draws.captured} captured, ${c.draws.redrawn} with fresh inputs and parameters, ${c.draws.searched} in search of a difference. `,
      `Tensors that were made one differ by up to ${c.largest_merged_difference === null ? "an unknown amount" : number(c.largest_merged_difference)} (relative).`),
    el("p", {}, `Operators that branch on values: ${c.branch_points}.`, c.branches.length ? " Branches that no draw took:" : ""),
    c.branches.length > 0 && shortList(c.branches, b => [nodeLink(view, byId(view, SIDES.indexOf(b.side), b.id)), ` on the ${b.side} (${b.op}): ${b.missing}`], 20),
    r.stats && el("p", {class: "dim"}, `${number(r.stats.seconds.total)} s, ${r.stats.candidates} candidates, ${r.stats.merges} merges, ${r.stats.rules_synthesised} rules synthesised, ${r.stats.rules_refuted} refuted, ${Math.round(r.stats.peak_rss_bytes / 1048576)} MiB.`));
}

const section = (name, title, ...body) => el("section", {id: name + "-section", "aria-label": title}, el("h2", {}, title), body);
