/* The two graphs side by side, each folded by module. Only the rows in sight are in the document. */

const ROW = 24;

class Pane {
  constructor(view, side) {
    this.view = view;
    this.s = view.model.sides[side];
    this.side = side;
    this.open = new Set([""]);
    this.at = null; /* the row the keyboard is on: a group or a node */
    this.rows = [];
    this.inner = el("div", {style: "position:relative"});
    this.box = el("div", {class: "pane", role: "tree", tabindex: 0, id: "pane" + side, "aria-label": `${SIDES[side]} graph: ${this.s.data.model || this.s.data.path}`,
      onscroll: () => view.draw(), onkeydown: e => this.key(e)}, this.inner);
  }

  /* The rows as they stand, top to bottom. With a filter: what passes it, unfolded as long as that is not too much. */
  flatten() {
    const rows = [], hits = this.view.hits && this.view.hits[this.side];
    const walk = (g, depth) => {
      for (const x of g.items) {
        if (x.items) {
          if (hits && !hits.groups.has(x.key)) continue;
          rows.push({x, depth});
          if (this.isOpen(x)) walk(x, depth + 1);
        } else if (!hits || hits.nodes.has(x.i)) rows.push({x, depth});
      }
    };
    walk(this.s.top, 0);
    this.rows = rows;
    this.inner.style.height = rows.length * ROW + "px";
  }
  isOpen(g) {
    const hits = this.view.hits && this.view.hits[this.side];
    return hits && hits.nodes.size <= 400 ? !this.view.folded.has(this.side + g.key) : this.open.has(g.key);
  }
  toggle(g, open = !this.isOpen(g)) {
    if (this.view.hits && this.view.hits[this.side].nodes.size <= 400) { if (open) this.view.folded.delete(this.side + g.key); else this.view.folded.add(this.side + g.key); }
    else if (open) this.open.add(g.key);
    else this.open.delete(g.key);
    this.flatten();
    this.view.draw();
  }
  index(x) { return this.rows.findIndex(r => r.x === x); }

  /* Unfold the way to a node or group and bring it into sight. */
  reveal(x) {
    if (this.view.hits && !(x.items ? this.view.hits[this.side].groups.has(x.key) : this.view.hits[this.side].nodes.has(x.i))) return;
    for (let g = x.items ? x.parent : x.group; g; g = g.parent) { this.open.add(g.key); this.view.folded.delete(this.side + g.key); }
    this.flatten();
    this.show(x);
  }
  show(x) {
    const top = this.index(x) * ROW, h = this.box.clientHeight;
    if (top < 0) return;
    if (top < this.box.scrollTop || top + ROW > this.box.scrollTop + h) this.box.scrollTop = Math.max(0, top - h / 2 + ROW);
  }

  visible() {
    const first = Math.max(0, Math.floor(this.box.scrollTop / ROW) - 4), last = Math.min(this.rows.length, first + Math.ceil(this.box.clientHeight / ROW) + 8);
    return this.rows.slice(first, last).map((r, k) => ({...r, k: first + k}));
  }
  draw() {
    const cls = this.view.chosen && !this.view.chosen.items ? this.view.chosen.cls : -2;
    this.inner.replaceChildren(...this.visible().map(({x, depth, k}) => {
      const at = this.at === x, props = {id: `r${this.side}_${k}`, role: "treeitem", "aria-level": depth + 1, "aria-selected": at ? "true" : "false",
        style: `top:${k * ROW}px;padding-left:${8 + depth * 16}px`, onclick: () => { this.box.focus({preventScroll: true}); this.view.choose(x, true); }};
      return x.items ? this.groupRow(x, props, at) : this.nodeRow(x, props, at, x.cls === cls);
    }));
    const k = this.index(this.at);
    if (k >= 0) this.box.setAttribute("aria-activedescendant", `r${this.side}_${k}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
  groupRow(g, props, at) {
    const open = this.isOpen(g), mate = this.view.chosen && this.view.chosen.items && this.view.chosen.key === g.key;
    return el("div", {...props, class: "row group" + (at ? " at" : "") + (mate ? " mate" : "") + (g.counts.diverges ? " diverges-row" : ""), "aria-expanded": String(open), ondblclick: () => this.toggle(g)},
      el("span", {class: "toggle", onclick: e => { e.stopPropagation(); this.toggle(g); }}, open ? "▾" : "▸"),
      el("span", {class: "name mono", title: g.path.join(".")}, g.label),
      el("span", {class: "counts"}, STATE_NAMES.filter(n => g.counts[n]).map(n => el("span", {class: n}, mark(n), " ", g.counts[n]))));
  }
  nodeRow(n, props, at, mate) {
    return el("div", {...props, class: "row" + (at ? " at" : "") + (mate ? " mate" : "") + (n.state === "diverges" ? " diverges-row" : "")},
      mark(n.state), el("span", {class: "name mono", title: `${n.id}\n${n.op}\n${n.source}`},
        el("b", {}, n.kind === "o" ? shortOp(n.op) : KINDS[n.kind]), " ", el("span", {class: "dim"}, n.kind === "o" ? n.id : n.op)),
      el("span", {class: "shape mono"}, n.shape));
  }

  key(e) {
    if (e.ctrlKey || e.altKey || e.metaKey) return;
    const k = this.index(this.at), page = Math.max(1, Math.floor(this.box.clientHeight / ROW) - 1), x = k >= 0 ? this.rows[k].x : null;
    const go = i => { const r = this.rows[Math.max(0, Math.min(this.rows.length - 1, i))]; if (r) { this.view.choose(r.x, false); this.show(r.x); } };
    switch (e.key) {
    case "ArrowDown": go(k + 1); break;
    case "ArrowUp": go(k < 0 ? 0 : k - 1); break;
    case "PageDown": go(k + page); break;
    case "PageUp": go(k - page); break;
    case "Home": go(0); break;
    case "End": go(this.rows.length - 1); break;
    case "ArrowRight": if (x && x.items) { if (this.isOpen(x)) go(k + 1); else this.toggle(x, true); } break;
    case "ArrowLeft":
      if (x && x.items && this.isOpen(x)) this.toggle(x, false);
      else if (x) { const up = x.items ? x.parent : x.group; if (up && up.parent) go(this.index(up)); }
      break;
    case "Enter": case " ": if (x && x.items) this.toggle(x); if (x) this.view.choose(x, true); break;
    case "x": this.view.cross(this.side); break;
    default: return;
    }
    e.preventDefault();
    e.stopPropagation();
  }
}

class GraphView {
  constructor(model) {
    this.model = model;
    this.chosen = null;
    this.hits = null;         /* per side: nodes that pass the filter, and the groups they are in */
    this.folded = new Set();  /* folded while there is a filter */
    this.words = [];
    this.states = new Set();
    this.panes = [0, 1].map(k => new Pane(this, k));
    this.gutter = svg("svg", {id: "gutter", "aria-hidden": "true"});
    this.panel = el("div", {class: "card", id: "chosen", "aria-live": "polite"}, el("p", {class: "dim"}, "Select a node to see what it is equal to, or a module to see it drawn."));
    this.count = el("span", {class: "dim", role: "status", id: "count"});
    this.search = el("input", {type: "search", id: "search", placeholder: "search: operator, id, module, source line  ( / )", "aria-label": "search both graphs",
      oninput: () => { this.words = this.search.value.toLowerCase().split(/\s+/).filter(Boolean); this.filter(); }, onkeydown: e => this.searchKey(e)});
    this.legend = el("div", {class: "legend", id: "legend"}, "Show only: ", STATE_NAMES.map(n => {
      const total = model.sides.reduce((t, s) => t + (s.top.counts[n] || 0), 0);
      return total ? el("button", {class: n, title: STATES[n][1], "aria-pressed": "false", "data-state": n, onclick: e => this.onlyState(n, e.currentTarget)}, mark(n), ` ${STATES[n][0]} ${total}`) : null;
    }));
    this.start();
  }
  /* Unfold down to the layers, and to the first place where the sides part. */
  start() {
    for (const p of this.panes) {
      for (let g = p.s.top; g; g = g.groups.size === 1 ? [...g.groups.values()][0] : null) p.open.add(g.key);
      for (const g of p.s.top.groups.values()) if (g.groups.size && p.s.top.groups.size <= 4) p.open.add(g.key);
      p.flatten();
    }
  }
  element() {
    return [
      el("div", {class: "tools"}, this.search, this.count,
        el("button", {onclick: () => this.foldAll(true)}, "unfold all"), el("button", {onclick: () => this.foldAll(false)}, "fold all")),
      this.legend,
      el("div", {class: "panes"}, ...["Left: ", "", "Right: "].map((t, k) => el("div", {class: "panehead"}, k === 1 ? "" : t + (this.panes[k / 2].s.data.model || "") + " (" + this.panes[k / 2].s.data.framework + ")"))),
      el("div", {class: "panes"}, this.panes[0].box, this.gutter, this.panes[1].box), this.panel];
  }

  filter() {
    const active = this.words.length || this.states.size;
    this.folded.clear();
    this.hits = !active ? null : this.panes.map(p => {
      const nodes = new Set(), groups = new Set();
      for (const n of p.s.nodes)
        if ((!this.states.size || this.states.has(n.state)) && this.words.every(w => n.text.includes(w))) {
          nodes.add(n.i);
          for (let g = n.group; g; g = g.parent) groups.add(g.key);
        }
      return {nodes, groups};
    });
    this.count.textContent = this.hits ? `${this.hits[0].nodes.size} left, ${this.hits[1].nodes.size} right` : "";
    for (const p of this.panes) { p.flatten(); p.box.scrollTop = 0; }
    if (!this.hits && this.chosen) this.revealChosen();
    this.draw();
  }
  onlyState(n, button) {
    if (!this.states.delete(n)) this.states.add(n);
    button.setAttribute("aria-pressed", String(this.states.has(n)));
    this.filter();
  }
  searchKey(e) {
    if (e.key === "Escape") { this.search.value = ""; this.words = []; this.filter(); }
    if (e.key !== "Enter") return;
    const p = this.panes.find(q => q.rows.some(r => !r.x.items));
    if (p) { this.choose(p.rows.find(r => !r.x.items).x, true); p.box.focus(); }
  }
  foldAll(open) {
    this.folded.clear();
    for (const p of this.panes) {
      p.open = new Set(open ? p.s.groups.keys() : [""]);
      if (this.hits && !open) for (const k of p.s.groups.keys()) this.folded.add(p.side + k);
      p.flatten();
    }
    this.draw();
  }

  /* `reveal`: bring it and its counterpart into sight, whatever is folded. */
  choose(x, reveal) {
    this.chosen = x;
    this.panes[x.side].at = x;
    const other = this.panes[1 - x.side], mate = mateOf(this.model, x);
    if (mate) other.at = mate;
    if (reveal) this.revealChosen();
    else if (mate && other.index(mate) >= 0) other.show(mate);
    this.panel.replaceChildren(...(x.items ? aboutGroup(this, x) : aboutNode(this, x)));
    this.draw();
  }
  revealChosen() {
    const x = this.chosen, other = this.panes[1 - x.side], mate = mateOf(this.model, x);
    this.panes[x.side].reveal(x);
    if (mate) other.reveal(mate);
  }
  /* From anywhere on the page. */
  go(side, i) {
    if (this.hits && !this.hits[side].nodes.has(i)) this.clear();
    this.choose(this.model.sides[side].nodes[i], true);
    document.getElementById("graphs-section").scrollIntoView();
    this.panes[side].box.focus({preventScroll: true});
  }
  clear() {
    this.search.value = "";
    this.words = [];
    this.states.clear();
    for (const b of this.legend.querySelectorAll("button")) b.setAttribute("aria-pressed", "false");
    this.filter();
  }
  cross(side) {
    const other = this.panes[1 - side];
    other.box.focus({preventScroll: true});
    if (other.at) this.choose(other.at, true);
  }
  /* To the next or previous place where the sides part; where there is none, an unmatched node. */
  step(by) {
    const of = state => this.model.sides[1].nodes.filter(n => n.state === state).concat(this.model.sides[0].nodes.filter(n => n.state === state));
    const list = of("diverges").length ? of("diverges") : of("alone");
    if (!list.length) return;
    const k = list.indexOf(this.chosen), n = list[k < 0 ? (by > 0 ? 0 : list.length - 1) : (k + by + list.length) % list.length];
    this.go(n.side, n.i);
  }

  draw() {
    if (this.due) return;
    this.due = requestAnimationFrame(() => {
      this.due = 0;
      this.panes.forEach(p => p.draw());
      this.drawGutter();
    });
  }
  /* Lines between rows of one class, and between modules of one name; where the sides part, a broken one. */
  drawGutter() {
    const h = this.panes[0].box.clientHeight, y = (p, k) => Math.max(-6, Math.min(h + 6, k * ROW + ROW / 2 - p.box.scrollTop)), lines = [];
    const place = [new Map(), new Map()];
    this.panes.forEach((p, side) => p.visible().forEach(({x, k}) => { const key = x.items ? "g" + x.key : x.state === "diverges" ? "d" + this.model.divergences.findIndex(d => d[SIDES[side]] === x.i) : x.cls; if (key !== -1 && !place[side].has(key)) place[side].set(key, {k, x}); }));
    const line = (a, b, state, strong, thin) => svg("path", {class: state, fill: "none", stroke: "currentColor", "stroke-width": strong ? 3 : thin ? 1 : 1.3, "stroke-opacity": strong ? 1 : .5,
      "stroke-dasharray": thin ? "2 4" : state === "diverges" ? "7 4" : null, d: `M0 ${a}C35 ${a} 35 ${b} 70 ${b}`});
    for (const [key, a] of place[0]) {
      const b = place[1].get(key), chosen = this.chosen && (a.x === this.chosen || (b && b.x === this.chosen) || (a.x.cls !== undefined && a.x.cls === this.chosen.cls) || (a.x.items && a.x.key === this.chosen.key));
      if (b) lines.push(line(y(this.panes[0], a.k), y(this.panes[1], b.k), a.x.items ? "unread" : a.x.state, chosen, Boolean(a.x.items)));
    }
    this.gutter.replaceChildren(...lines);
  }
}
