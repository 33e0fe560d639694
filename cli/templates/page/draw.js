/* Elements, marks and small drawings. Text goes in as text nodes alone, so that no name can become markup. */

const SVG = "http://www.w3.org/2000/svg";

function fillIn(e, props, children) {
  for (const [k, v] of Object.entries(props || {})) {
    if (v === null || v === undefined || v === false) continue;
    if (k.startsWith("on")) e.addEventListener(k.slice(2), v);
    else e.setAttribute(k, v === true ? "" : v);
  }
  for (const c of children.flat(Infinity)) if (c !== null && c !== undefined && c !== false) e.append(c instanceof Node ? c : String(c));
  return e;
}
const el = (tag, props, ...children) => fillIn(document.createElement(tag), props, children);
const svg = (tag, props, ...children) => fillIn(document.createElementNS(SVG, tag), props, children);

/* A state's mark: told apart by its shape as by its colour. */
function markShapes(state) {
  const c = "currentColor";
  switch (state) {
  case "same": return [svg("circle", {cx: 8, cy: 8, r: 6, fill: c})];
  case "rule": return [svg("path", {d: "M8 1L15 8L8 15L1 8Z", fill: c})];
  case "within": return [svg("path", {d: "M8 2.2L13.8 8L8 13.8L2.2 8Z", fill: "none", stroke: c, "stroke-width": 2})];
  case "assumed": return [svg("rect", {x: 2, y: 2, width: 12, height: 12, fill: c})];
  case "alone": return [svg("path", {d: "M3 3L13 13M13 3L3 13", stroke: c, "stroke-width": 3})];
  case "after": return [svg("path", {d: "M8 2V13M3.5 8.5L8 13.5L12.5 8.5", fill: "none", stroke: c, "stroke-width": 2.2})];
  case "diverges": return [svg("path", {d: "M8 1L15.5 15H.5Z", fill: c}), svg("path", {d: "M8 5.5V10M8 11.6V13.4", stroke: "var(--bg)", "stroke-width": 1.9})];
  default: return [svg("path", {d: "M3 8H13", stroke: c, "stroke-width": 2.5})];
  }
}
const mark = state => svg("svg", {class: "i " + state, viewBox: "0 0 16 16", role: "img", "aria-label": STATES[state][0]}, svg("title", {}, STATES[state].join(": ")), markShapes(state));

const cut = (text, n) => text.length <= n ? text : text.slice(0, n - 1) + "…";
const cutFront = (text, n) => text.length <= n ? text : "…" + text.slice(text.length - n + 1);

/* A small graph from top to bottom.
 * items: {key, label, lines, state, given, hot, title, pick}; edges: [from, to] by key. */
function diagram(items, edges, what) {
  if (!items.length) return el("p", {class: "dim"}, "nothing to draw");
  const CHAR = 7.3, LINE = 14, GAP_X = 14, GAP_Y = 26, MAX = 34;
  const box = new Map(items.map((it, nth) => [it.key, {it, nth, in: [], out: [], layer: 0}]));
  for (const [a, b] of edges) if (box.has(a) && box.has(b) && a !== b) { box.get(a).out.push(b); box.get(b).in.push(a); }
  /* Items come in an order in which everything follows what it reads; but two folded modules may read one another. */
  for (const it of items) { const b = box.get(it.key); b.layer = Math.max(0, ...b.in.filter(k => box.get(k).nth < b.nth).map(k => box.get(k).layer + 1)); }
  for (const it of [...items].reverse()) { /* what is only read stands right above its reader */
    const b = box.get(it.key);
    if (!b.in.length && b.out.length) b.layer = Math.max(0, Math.min(...b.out.map(k => box.get(k).layer)) - 1);
  }
  const layers = [];
  for (const b of box.values()) {
    const lines = b.it.lines || [];
    b.w = 22 + CHAR * Math.max(cut(b.it.label, MAX).length + 2, ...lines.map(l => cut(l, MAX + 4).length * .9));
    b.h = 10 + LINE * (1 + lines.length);
    (layers[b.layer] = layers[b.layer] || []).push(b);
  }
  for (let sweep = 0; sweep < 6; sweep++) { /* by the mean place of the neighbours */
    const down = sweep % 2 === 0;
    layers.forEach(l => l.forEach((b, k) => { b.k = k; }));
    for (const l of down ? layers : [...layers].reverse()) {
      for (const b of l) { const near = (down ? b.in : b.out).map(k => box.get(k).k); b.want = near.length ? near.reduce((x, y) => x + y, 0) / near.length : b.k; }
      l.sort((a, b) => a.want - b.want);
      l.forEach((b, k) => { b.k = k; });
    }
  }
  const widths = layers.map(l => l.reduce((x, b) => x + b.w + GAP_X, -GAP_X)), width = Math.max(...widths);
  let y = 6;
  layers.forEach((l, k) => {
    let x = 6 + (width - widths[k]) / 2;
    for (const b of l) { b.x = x; b.y = y; x += b.w + GAP_X; }
    y += Math.max(...l.map(b => b.h)) + GAP_Y;
  });
  const lines = [];
  for (const b of box.values())
    b.out.forEach(k => {
      const t = box.get(k), x1 = b.x + b.w / 2, y1 = b.y + b.h, x2 = t.x + t.w * (t.in.indexOf(b.it.key) + 1) / (t.in.length + 1), y2 = t.y, m = Math.max(14, (y2 - y1) / 2);
      lines.push(svg("path", {class: "edge", d: `M${x1} ${y1}C${x1} ${y1 + m} ${x2} ${y2 - m} ${x2} ${y2 - 5}`}), svg("path", {fill: "var(--dim)", d: `M${x2 - 3.5} ${y2 - 6}H${x2 + 3.5}L${x2} ${y2}Z`}));
    });
  const boxes = [...box.values()].map(({it, x, y: top, w, h}) => svg("g", {
    tabindex: it.pick ? 0 : null, role: it.pick ? "button" : null, onclick: it.pick,
    onkeydown: it.pick && (e => { if (e.key === "Enter") it.pick(); })
  },
  svg("title", {}, it.title || it.label),
  svg("rect", {class: "box" + (it.given ? " given" : "") + (it.hot ? " hot" : ""), x, y: top, width: w, height: h, rx: it.given ? 10 : 3}),
  it.state && svg("svg", {x: x + 5, y: top + 5, width: 12, height: 12, viewBox: "0 0 16 16", class: it.state}, markShapes(it.state)),
  svg("text", {x: x + (it.state ? 21 : 8), y: top + 15, "font-weight": it.hot ? 700 : null}, cut(it.label, MAX)),
  (it.lines || []).map((l, k) => svg("text", {class: "sub", x: x + 8, y: top + 15 + LINE * (k + 1)}, cut(l, MAX + 4)))));
  return el("div", {class: "figure"}, svg("svg", {width: width + 12, height: y - GAP_Y + 8, role: "img", "aria-label": what}, svg("title", {}, what), lines, boxes));
}

/* A number for people. */
const number = x => typeof x !== "number" ? String(x) : Number.isInteger(x) ? String(x) : String(Number(x.toPrecision(4)));

/* Two numbers with as many digits as it takes to see that they differ. */
function twoNumbers(a, b) {
  if (typeof a !== "number" || typeof b !== "number" || a === b) return [number(a), number(b)];
  for (let digits = 4; digits < 17; digits++)
    if (a.toPrecision(digits) !== b.toPrecision(digits)) return [a, b].map(x => String(Number(x.toPrecision(Math.min(16, digits + 1)))));
  return [String(a), String(b)];
}

function dimsOf(shape) {
  const m = /\[([^\]]*)\]/.exec(shape);
  return m && m[1].trim() ? m[1].split(",").map(Number) : [];
}
function placeIn(dims, index) {
  const at = [];
  for (let d = dims.length - 1; d >= 0; d--) { at.unshift(index % dims[d]); index = Math.floor(index / dims[d]); }
  return "[" + at.join(", ") + "]";
}

/* Where two tensors differ: the darker, the more, from the largest down to the least, at most six powers of ten. */
function heatMap(p, dims) {
  const size = Math.max(7, Math.min(22, Math.floor(Math.min(560 / p.columns, 340 / p.rows)))), finite = p.cell.filter(x => x > 0), most = Math.max(...finite, 0), least = Math.min(...finite, most);
  const DECADES = Math.min(6, Math.max(.5, Math.log10(most / least))) || 1, pad = 34;
  const strength = x => x < 0 ? 1 : x === 0 ? 0 : Math.max(.08, 1 - .92 * Math.min(DECADES, Math.log10(most / x)) / DECADES);
  const where = (k, step, n) => step === 1 ? String(k) : `${k * step}–${Math.min(n, (k + 1) * step) - 1}`;
  const cells = [];
  p.cell.forEach((x, i) => {
    const r = Math.floor(i / p.columns), c = i % p.columns;
    if (x !== 0) cells.push(svg("rect", {x: pad + c * size, y: r * size, width: size - 1, height: size - 1, "fill-opacity": strength(x).toFixed(3)},
      svg("title", {}, `row ${where(r, p.row_step, p.n_rows)}, column ${where(c, p.column_step, p.n_columns)}: ` + (x < 0 ? "a number on one side only" : number(x)))));
  });
  const row = Math.floor(Math.floor(p.index / p.n_columns) / p.row_step), column = Math.floor(p.index % p.n_columns / p.column_step);
  const w = p.columns * size, h = p.rows * size;
  const picture = svg("svg", {class: "heat", width: w + pad + 4, height: h + 20, viewBox: `0 0 ${w + pad + 4} ${h + 20}`, role: "img", "aria-label": "where the two tensors differ"},
    svg("rect", {class: "frame", x: pad - 1, y: 0, width: w + 1, height: h}), cells,
    svg("rect", {class: "most", x: pad + column * size - 1, y: row * size - 1, width: size + 1, height: size + 1}),
    svg("text", {class: "sub", x: 0, y: 11}, "0"), p.rows > 2 && svg("text", {class: "sub", x: 0, y: h - 2}, String(p.n_rows - 1)),
    svg("text", {class: "sub", x: pad, y: h + 14}, "0"), w > 60 && svg("text", {class: "sub", x: pad + w, y: h + 14, "text-anchor": "end"}, String(p.n_columns - 1)));
  const scale = [0, 1, 2, 3].map(k => 10 ** (-DECADES * k / 3)).map((f, k) => [svg("svg", {width: 14, height: 14, class: "heat", style: "vertical-align:-.15em"},
    svg("rect", {width: 14, height: 14, "fill-opacity": strength(most * f).toFixed(3)})), k === 3 && least < most * f * .99 ? ` ≤ ${number(most * f)}  ` : ` ${number(most * f)}  `]);
  const n = p.n_rows * p.n_columns;
  return el("div", {},
    el("p", {}, `${p.n_differ === n ? "All" : p.n_differ + " of"} ${n} elements differ. Largest at ${placeIn(dims, p.index)}, framed: `,
      el("b", {}, `left ${twoNumbers(p.left, p.right)[0]}, right ${twoNumbers(p.left, p.right)[1]}`), "."),
    picture,
    el("p", {class: "dim"}, "|left − right|: ", most > 0 ? scale : "a number on one side only", "; blank: equal. Rows are all dimensions but the last, columns the last",
      p.row_step * p.column_step > 1 ? `; a cell shows the largest of ${p.row_step} × ${p.column_step} elements.` : "."));
}
