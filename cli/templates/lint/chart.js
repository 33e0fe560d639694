/* Timelines: a row for each rank, what it computes above, what it sends and receives below. All is drawn on one canvas; of what falls on one column of pixels only the first is drawn, so that a row of 10,000 events costs no more than its width. */

const ROW = 26, BAR = 10, HEAD = 22, LEFT = 74;
const CLASSES = {
  forward: ["--work", "forward, other work", new Set(["F", "compute"])],
  backward: ["--back", "backward", new Set(["B", "I", "W"])],
  message: ["--comm", "send, receive", new Set(["send", "recv"])],
  group: ["--coll", "collective", new Set(["all_reduce", "all_gather", "reduce_scatter", "all_to_all", "broadcast", "reduce", "gather", "scatter", "barrier"])],
  other: ["--dim", "wait, memory", new Set()],
};
const CLASS_NAMES = Object.keys(CLASSES);
const classOf = op => { const k = CLASS_NAMES.findIndex(n => CLASSES[n][2].has(op)); return k < 0 ? CLASS_NAMES.length - 1 : k; };

/* A lane's lists as they are meant: positions and beginnings are sums of what the page holds. */
function readLane(lane, row, kinds) {
  const n = lane.op.length, start = new Float64Array(n), end = new Float64Array(n), at = new Int32Array(n), kind = new Uint8Array(n);
  for (let i = 0, s = 0, p = 0; i < n; i++) {
    start[i] = s += lane.start[i];
    at[i] = p += lane.at[i];
    end[i] = lane.took[i] < 0 ? -1 : s + lane.took[i];
    kind[i] = kinds[lane.op[i]];
  }
  return {row, rank: lane.rank, ranks: lane.ranks, never: lane.never, n, start, end, at, kind, name: lane.name, meet: lane.meet};
}

class Chart {
  constructor(data, findings) {
    this.words = data.words;
    const kinds = data.ops.map(classOf);
    this.lanes = data.lanes.map((l, row) => readLane(l, row, kinds));
    this.last = 1;
    for (const l of this.lanes) for (let i = 0; i < l.n; i++) this.last = Math.max(this.last, l.end[i], l.start[i]);
    this.last *= 1.02;
    this.from = 0; this.to = this.last;
    this.order = this.lanes.map(l => Uint32Array.from(l.start.keys()).sort((a, b) => l.start[a] - l.start[b]));
    this.reach = this.lanes.map((l, k) => this.reaches(l, this.order[k]));
    this.byRank = new Map(this.lanes.map(l => [l.rank, l]));
    this.marks = new Map();
    findings.forEach((f, k) => f.events.forEach(([r, p]) => this.mark(r, p, k)));
    this.chosen = null;
    this.hot = -1;
  }

  /* The latest end of all that begins no later: where a search from the left may stop. */
  reaches(l, order) {
    let most = -1;
    return Float64Array.from(order, i => most = Math.max(most, l.end[i] < 0 ? Infinity : l.end[i]));
  }

  mark(rank, position, finding) {
    const l = this.byRank.get(rank), i = l ? this.find(l, position) : -1;
    if (i >= 0) this.marks.set(l.row * 2 ** 32 + i, finding);
  }

  find(l, position) {
    for (let a = 0, b = l.n - 1; a <= b;) {
      const m = (a + b) >> 1;
      if (l.at[m] === position) return m;
      if (l.at[m] < position) a = m + 1; else b = m - 1;
    }
    return -1;
  }

  element() {
    this.canvas = el("canvas", {});
    this.about = el("p", {class: "about dim", "aria-live": "polite"}, "Point at a bar. Wheel or + and −: closer, farther; drag or ← →: along; 0: all.");
    const c = this.canvas;
    this.box = el("div", {class: "chart", tabindex: 0, "aria-label": "timelines of the ranks", onkeydown: e => this.key(e)}, c);
    c.addEventListener("wheel", e => { if (!e.ctrlKey && !e.shiftKey && Math.abs(e.deltaY) < Math.abs(e.deltaX)) return; e.preventDefault(); this.zoom(e.deltaY < 0 ? .8 : 1.25, this.timeAt(e.offsetX)); }, {passive: false});
    c.addEventListener("pointerdown", e => { this.drag = {x: e.offsetX, from: this.from, moved: false}; c.setPointerCapture(e.pointerId); });
    c.addEventListener("pointermove", e => this.drag ? this.pull(e.offsetX) : this.point(e));
    c.addEventListener("pointerup", e => { const d = this.drag; this.drag = null; if (d && !d.moved) { this.chosen = this.hit(e.offsetX, e.offsetY); this.tell(this.chosen); this.draw(); } });
    const legend = el("p", {class: "legend"}, CLASS_NAMES.map(n => el("span", {}, el("span", {class: "swatch", style: `background: var(${CLASSES[n][0]})`}), CLASSES[n][1])),
      el("span", {}, el("span", {class: "swatch", style: "border: 2px solid var(--diverges)"}), "finding"), el("span", {}, "an open end: never ends"));
    return [legend, this.box, this.about];
  }

  x(t) { return LEFT + (t - this.from) / (this.to - this.from) * this.wide; }
  timeAt(x) { return this.from + (x - LEFT) / this.wide * (this.to - this.from); }

  zoom(by, around) {
    const span = Math.min(this.last, Math.max((this.to - this.from) * by, this.last * 1e-7));
    const share = (around - this.from) / (this.to - this.from);
    this.set(around - share * span, span);
  }

  set(from, span) {
    this.from = Math.max(0, Math.min(from, this.last - span));
    this.to = this.from + span;
    this.draw();
  }

  pull(x) {
    this.drag.moved ||= Math.abs(x - this.drag.x) > 3;
    this.set(this.drag.from - (x - this.drag.x) / this.wide * (this.to - this.from), this.to - this.from);
  }

  key(e) {
    const span = this.to - this.from, middle = this.from + span / 2;
    if (e.key === "+" || e.key === "=") this.zoom(.6, middle);
    else if (e.key === "-") this.zoom(1.6, middle);
    else if (e.key === "0") this.set(0, this.last);
    else if (e.key === "ArrowLeft") this.set(this.from - span / 5, span);
    else if (e.key === "ArrowRight") this.set(this.from + span / 5, span);
    else return;
    e.preventDefault();
  }

  /* The first bar, in order of their beginnings, that may be seen. */
  first(l) {
    const reach = this.reach[l.row];
    let a = 0, b = l.n;
    while (a < b) { const m = (a + b) >> 1; if (reach[m] < this.from) a = m + 1; else b = m; }
    return a;
  }

  top(l, i) { return HEAD + l.row * ROW + (l.kind[i] < 2 || l.kind[i] === 4 ? 1 : 2 + BAR); }

  draw() {
    const c = this.canvas, w = c.clientWidth || 800, h = HEAD + this.lanes.length * ROW + 4, dense = devicePixelRatio || 1;
    this.wide = w - LEFT;
    c.style.height = h + "px";
    c.width = w * dense; c.height = h * dense;
    const g = c.getContext("2d"), css = getComputedStyle(c), colour = n => css.getPropertyValue(n).trim();
    g.scale(dense, dense);
    g.font = "11px ui-monospace, monospace";
    g.textBaseline = "middle";
    const colours = CLASS_NAMES.map(n => colour(CLASSES[n][0])), text = colour("--text"), bg = colour("--bg");
    this.scale(g, w, h, colour("--dim"), colour("--line"));
    for (const l of this.lanes) {
      g.fillStyle = text;
      g.fillText(l.ranks > 1 ? `rank ${l.rank} ×${l.ranks}` : `rank ${l.rank}`, 4, HEAD + l.row * ROW + ROW / 2);
      this.lane(g, l, w, colours, bg);
    }
    this.outlines(g, w, colour("--diverges"), colour("--link"));
  }

  scale(g, w, h, dim, line) {
    const span = this.to - this.from, step = [1, 2, 5, 10].map(k => k * 10 ** Math.floor(Math.log10(span / 6))).find(s => span / s <= 12) || span;
    g.fillStyle = dim; g.strokeStyle = line; g.lineWidth = 1;
    for (let t = Math.ceil(this.from / step) * step; t <= this.to; t += step) {
      const x = Math.round(this.x(t)) + .5;
      g.beginPath(); g.moveTo(x, HEAD - 6); g.lineTo(x, h); g.stroke();
      g.fillText(String(Number(t.toPrecision(6))), x + 3, 9);
    }
  }

  lane(g, l, w, colours, bg) {
    const order = this.order[l.row], {start, end, kind} = l, from = this.from, to = this.to, scale = this.wide / (to - from), y0 = HEAD + l.row * ROW + 1;
    let above = -1, below = -1;
    for (let k = this.first(l); k < l.n; k++) {
      const i = order[k], s = start[i];
      if (s > to) break;
      const e = end[i], open = e < 0, upper = kind[i] < 2 || kind[i] === 4, b = open ? w : Math.min(w, LEFT + (e - from) * scale);
      if (b < LEFT || b < (upper ? above : below)) continue;
      if (upper) above = Math.floor(b) + 1; else below = Math.floor(b) + 1;
      const a = Math.max(LEFT, LEFT + (s - from) * scale), y = upper ? y0 : y0 + BAR + 1;
      g.fillStyle = colours[kind[i]];
      g.globalAlpha = open ? .35 : 1;
      g.fillRect(a, y, Math.max(b - a - (b - a > 3 ? 1 : 0), 1), kind[i] === 4 ? BAR / 2 : BAR);
      g.globalAlpha = 1;
      if (b - a < 20) continue;
      const name = this.words[l.name[i]];
      if (b - a > 7 * name.length + 4) { g.fillStyle = open ? colours[kind[i]] : bg; g.fillText(name, a + 3, y + BAR / 2 + .5); }
    }
  }

  outlines(g, w, bad, link) {
    g.lineWidth = 2;
    for (const [key, finding] of this.marks) {
      g.strokeStyle = bad;
      this.outline(g, w, this.lanes[Math.floor(key / 2 ** 32)], key % 2 ** 32, finding === this.hot ? 3 : 0);
    }
    if (!this.chosen) return;
    const {lane, i} = this.chosen, others = this.met(lane, i);
    g.strokeStyle = link;
    this.outline(g, w, lane, i, 1);
    for (const o of others) {
      g.beginPath(); g.moveTo(this.x(lane.start[i]), this.top(lane, i) + BAR / 2); g.lineTo(this.x(o.lane.start[o.i]), this.top(o.lane, o.i) + BAR / 2); g.stroke();
      this.outline(g, w, o.lane, o.i, 1);
    }
  }

  outline(g, w, l, i, more) {
    const a = this.x(l.start[i]), b = l.end[i] < 0 ? w : this.x(l.end[i]);
    if (b < LEFT || a > w) return;
    const left = Math.max(a, LEFT);
    g.strokeRect(left - 1 - more, this.top(l, i) - 1 - more, Math.max(Math.min(b, w) - left, 3) + 2 + 2 * more, BAR + 2 + 2 * more);
  }

  /* The other members of an event's meeting. Made when first asked for. */
  met(lane, i) {
    if (lane.meet[i] < 0) return [];
    if (!this.meets) {
      this.meets = new Map();
      for (const l of this.lanes) for (let k = 0; k < l.n; k++) if (l.meet[k] >= 0) { const m = this.meets.get(l.meet[k]); if (m) m.push({lane: l, i: k}); else this.meets.set(l.meet[k], [{lane: l, i: k}]); }
    }
    return this.meets.get(lane.meet[i]).filter(o => o.lane !== lane || o.i !== i);
  }

  hit(x, y) {
    const l = this.lanes[Math.floor((y - HEAD) / ROW)];
    if (!l || x < LEFT) return null;
    let best = null, gap = 5;
    const order = this.order[l.row];
    for (let k = this.first(l); k < l.n && l.start[order[k]] <= this.to; k++) {
      const i = order[k], top = this.top(l, i);
      if (y < top - 2 || y > top + BAR + 2) continue;
      const a = this.x(l.start[i]), b = l.end[i] < 0 ? Infinity : this.x(l.end[i]), d = x < a ? a - x : x > b ? x - b : 0;
      if (d <= gap) { gap = d; best = {lane: l, i}; }
    }
    return best;
  }

  point(e) { const h = this.hit(e.offsetX, e.offsetY); this.tell(h || this.chosen); }

  tell(h) {
    if (!h) return;
    const {lane: l, i} = h, others = this.met(l, i), number = t => Number(t.toPrecision(6));
    this.about.textContent = `rank ${l.rank} event ${l.at[i]}: ${this.words[l.name[i]]}, from ${number(l.start[i])} ` + (l.end[i] < 0 ? "and never ends" : `to ${number(l.end[i])}`) +
      (others.length ? "; with " + others.slice(0, 8).map(o => `rank ${o.lane.rank} event ${o.lane.at[o.i]}`).join(", ") + (others.length > 8 ? ` and ${others.length - 8} more` : "") : "");
  }

  /* A finding's events come into view. */
  show(events, finding) {
    const found = events.map(([r, p]) => { const l = this.byRank.get(r), i = l ? this.find(l, p) : -1; return i < 0 ? null : {lane: l, i}; }).filter(Boolean);
    this.box.scrollIntoView({block: "nearest"});
    if (!found.length) { this.about.textContent = "No rank comes to these events."; return; }
    this.hot = finding;
    this.chosen = found[0];
    const low = Math.min(...found.map(f => f.lane.start[f.i])), high = Math.max(...found.map(f => Math.max(f.lane.end[f.i], f.lane.start[f.i])));
    const span = Math.min(this.last, Math.max((high - low) * 1.5, this.last / 40));
    this.set((low + high) / 2 - span / 2, span);
    this.box.scrollTop = Math.max(0, HEAD + found[0].lane.row * ROW - this.box.clientHeight / 2);
    this.tell(found[0]);
  }
}
