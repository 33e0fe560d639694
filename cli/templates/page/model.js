"use strict";
/* What the page shows: the JSON report (docs/reports.md) and the graphs beside it. Nothing here touches the document
 * but to read the two. */

const REPORT = JSON.parse(document.getElementById("report").textContent);
const GRAPHS = JSON.parse(document.getElementById("graphs").textContent);
const SIDES = ["left", "right"];

/* What is said of a node: mark, name, meaning. The order is from bad to good. */
const STATES = {
  diverges: ["differs here", "the two sides part at this operator: what it reads agrees, what it gives does not"],
  alone: ["unmatched", "nothing on the other side was found equal to it"],
  after: ["after a difference", "unmatched, but it depends on a place where the sides part, or only serves what does"],
  assumed: ["assumed", "a leaf or a constant, related to the other side by its values"],
  rule: ["by rule", "a rewrite rule shows it equal to the other side"],
  within: ["within a rule", "an inner step without a counterpart of its own; all that reads it is explained"],
  same: ["matched", "the other side has the same operator on equal inputs"],
  unread: ["not read", "no output depends on it"]
};
const STATE_NAMES = Object.keys(STATES);
/* Where nothing was seen to differ, the same mark is where the chain of steps has a gap. */
const PARTING = {differs: STATES.diverges, gap: ["gap here", "no rule was found that joins this operator with the other side's: what it reads agrees, and no difference was seen in what it gives"]};
const AFTER = {differs: STATES.after, gap: ["after a gap", "unmatched, but it depends on a place where the chain has a gap, or only serves what does"]};
function nameStates(verdict) {
  const what = verdict === "undecided" ? "gap" : "differs";
  STATES.diverges = PARTING[what];
  STATES.after = AFTER[what];
}
const STANDINGS = ["unread", "alone", "same", "rule", "within", "assumed"]; /* synth_standing */
const KINDS = {i: "input", p: "parameter", b: "buffer", c: "constant", o: "operator"};

const shortOp = op => op.replace(/^aten::/, "");

function inputsOf(args) {
  const list = [];
  const visit = v => { if (typeof v === "number") list.push(v); else if (Array.isArray(v)) v.forEach(visit); };
  for (let k = 1; k < args.length; k += 2) visit(args[k]);
  return list;
}

/* Where a node belongs: its module; of a leaf, what its name says. "layers", "3" is one part: "layers.3". */
function pathOf(node) {
  let text = node.scope;
  const name = node.op.replace(/^rank\d+\./, ""); /* the ranks of a capture share its modules */
  if (!text && node.kind !== "o") text = name.includes(".") ? name.slice(0, name.lastIndexOf(".")) : node.kind === "i" ? "(inputs)" : "(leaves)";
  const path = [];
  for (const part of text.split(".")) {
    if (!part) continue;
    if (/^\d+$/.test(part) && path.length) path[path.length - 1] += "." + part;
    else path.push(part);
  }
  return path;
}

function readSide(data, side) {
  let scope = "", source = "";
  const nodes = data.nodes.map((r, i) => {
    if (r[7] !== 0) scope = r[7];
    if (r[8] !== 0) source = r[8];
    const node = {side, i, id: r[0], kind: r[1], op: r[2], shape: r[3], cls: r[4], state: STANDINGS[r[5]], args: r[6], scope, source, users: [], inputs: inputsOf(r[6])};
    node.path = pathOf(node);
    node.text = [node.id, node.op, node.scope, node.source, node.shape].join("\n").toLowerCase();
    return node;
  });
  for (const n of nodes) for (const k of n.inputs) if (!nodes[k].users.includes(n.i)) nodes[k].users.push(n.i);
  return {side, nodes, outputs: data.outputs, data};
}

/* A region that reaches to the outputs is no place. */
const SMALL_REGION = 60;

/* Unmatched nodes that depend on a place where the sides part, and those that are read by such alone: what they might equal
 * was never in question. */
function markDivergences(model) {
  model.sides.forEach((s, k) => {
    const reached = new Set(), here = new Set(), region = new Set();
    for (const d of model.divergences) {
      const at = d[SIDES[k]];
      if (at >= 0) here.add(at);
      if (d.regions[k].length <= SMALL_REGION) d.regions[k].forEach(i => region.add(i));
    }
    const todo = [...here];
    while (todo.length) for (const u of s.nodes[todo.pop()].users) if (!reached.has(u)) { reached.add(u); todo.push(u); }
    for (const n of s.nodes) {
      if (here.has(n.i)) n.state = "diverges";
      else if (n.state === "alone" && reached.has(n.i) && !region.has(n.i)) n.state = "after";
    }
    for (const n of [...s.nodes].reverse())
      if (n.state === "alone" && !region.has(n.i) && n.users.some(u => s.nodes[u].state === "after") && n.users.every(u => s.nodes[u].state !== "alone")) n.state = "after";
  });
}

/* The tree of modules of one side. */
function buildTree(s) {
  const top = {side: s.side, key: "", label: "", path: [], groups: new Map(), nodes: [], parent: null};
  s.groups = new Map([["", top]]);
  for (const n of s.nodes) {
    let g = top;
    for (const part of n.path) {
      const key = g.key ? g.key + "/" + part : part;
      if (!g.groups.has(part)) {
        const made = {side: s.side, key, label: part, path: [...g.path, part], groups: new Map(), nodes: [], parent: g};
        g.groups.set(part, made);
        s.groups.set(key, made);
      }
      g = g.groups.get(part);
    }
    g.nodes.push(n);
    n.group = g;
  }
  const finish = g => {
    g.counts = {};
    g.order = Infinity;
    for (const n of g.nodes) {
      g.counts[n.state] = (g.counts[n.state] || 0) + 1;
      g.order = Math.min(g.order, n.kind === "o" ? n.i : n.i + 1e7);
    }
    for (const child of g.groups.values()) {
      finish(child);
      for (const k in child.counts) g.counts[k] = (g.counts[k] || 0) + child.counts[k];
      g.order = Math.min(g.order, child.order);
    }
    /* Operators in the order in which they run, each module where its first one does; a module's own leaves first. */
    g.items = [...g.groups.values(), ...g.nodes].sort((a, b) => rank(a) - rank(b));
  };
  const rank = x => x.items ? x.order : x.kind === "o" ? x.i : x.i - 1e7;
  finish(top);
  s.top = top;
}

/* Pair `k` of the comparison. */
function readPair(k) {
  const data = GRAPHS.pairs[k], report = REPORT.pairs ? REPORT.pairs[k] : REPORT;
  nameStates(report.verdict);
  const model = {report, pair: k, reason: data.reason, rules: data.rules, divergences: data.divergences, sides: data.sides.map(readSide)};
  markDivergences(model);
  model.sides.forEach(buildTree);
  model.members = new Map(); /* class -> its nodes on the left, on the right */
  for (const s of model.sides)
    for (const n of s.nodes)
      if (n.cls >= 0) {
        if (!model.members.has(n.cls)) model.members.set(n.cls, [[], []]);
        model.members.get(n.cls)[n.side].push(n.i);
      }
  model.rulesOf = new Map(); /* class -> rules that joined something in it */
  model.rules.forEach((r, i) => r.classes.forEach(c => model.rulesOf.set(c, [...(model.rulesOf.get(c) || []), i])));
  return model;
}

/* The nodes of the other side in a node's class; where the sides part, what stands in its place there. */
function counterparts(model, n) {
  const parted = model.divergences.find(d => d[SIDES[n.side]] === n.i);
  if (parted && n.state === "diverges") return parted[SIDES[1 - n.side]] < 0 ? [] : [model.sides[1 - n.side].nodes[parted[SIDES[1 - n.side]]]];
  return n.cls < 0 ? [] : (model.members.get(n.cls) || [[], []])[1 - n.side].map(i => model.sides[1 - n.side].nodes[i]);
}

/* Of a node within a rule: the nearest nodes that read it and have a counterpart. */
function explainers(model, n) {
  const s = model.sides[n.side], seen = new Set([n.i]), todo = [n.i], found = [];
  while (todo.length && found.length < 3)
    for (const u of s.nodes[todo.shift()].users) {
      if (seen.has(u)) continue;
      seen.add(u);
      if (s.nodes[u].state === "within") todo.push(u);
      else if (counterparts(model, s.nodes[u]).length) found.push(s.nodes[u]);
    }
  return found;
}
/* What stands for a node, or a module, on the other side: itself or what it lies within. */
function mateOf(model, x) {
  if (x.items) return model.sides[1 - x.side].groups.get(x.key);
  const near = x.state === "within" ? explainers(model, x)[0] : x;
  return near && counterparts(model, near)[0];
}

/* An argument as text; nodes by their ids. */
function valueText(s, v) {
  if (typeof v === "number") return s.nodes[v].id;
  return Array.isArray(v) ? "[" + v.map(x => valueText(s, x)).join(", ") + "]" : v;
}

/* The arguments that are no tensors: what a user calls attributes. */
function literals(n) {
  const list = [];
  for (let k = 0; k < n.args.length; k += 2)
    if (typeof n.args[k + 1] === "string") list.push([n.args[k], n.args[k + 1]]);
  return list;
}
