/* What rounding does: figures of the outputs, and how errors grow along the layers. */

const sig = x => x === null || x === undefined ? "∞" : x === 0 ? "0" : Number(x).toPrecision(2).replace(/e([+-])/, "e$1");

/* Errors by place, on a logarithmic scale: both sides, how far they are apart, and what is predicted. */
function roundingCurve(points) {
  const LINES = [["left_error", "left from exact", "var(--same)"], ["right_error", "right from exact", "var(--rule)"], ["difference", "apart", "var(--diverges)"], ["predicted", "predicted", "var(--dim)"]];
  const seen = points.flatMap(p => LINES.map(([k]) => p[k])).filter(x => x > 0);
  if (points.length < 2 || !seen.length) return null;
  const W = 720, H = 220, LEFT = 52, BOTTOM = 22, high = Math.ceil(Math.log10(Math.max(...seen))), low = Math.max(high - 8, Math.floor(Math.log10(Math.min(...seen)))), span = Math.max(1, high - low);
  const x = i => LEFT + (W - LEFT - 10) * i / (points.length - 1), y = v => 8 + (H - BOTTOM - 8) * Math.min(1, Math.max(0, (high - Math.log10(v)) / span));
  const grid = [...Array(span + 1).keys()].map(k => [svg("line", {x1: LEFT, x2: W - 10, y1: y(10 ** (high - k)), y2: y(10 ** (high - k)), stroke: "var(--line)"}),
    svg("text", {class: "sub", x: LEFT - 6, y: y(10 ** (high - k)) + 4, "text-anchor": "end"}, `1e${high - k}`)]);
  const path = key => points.map((p, i) => [p[key], i]).filter(([v]) => v > 0).map(([v, i], n) => `${n ? "L" : "M"}${x(i).toFixed(1)} ${y(v).toFixed(1)}`).join("");
  const layer = s => { const m = /^(.*\d)(\D.*)?$/.exec(s); return m ? m[1] : s; };
  const marks = points.map((p, i) => [layer(p.scope), i]).filter(([s], i) => i === 0 || s !== layer(points[i - 1].scope)), shown = [];
  for (const m of [...marks].reverse()) if (x(m[1]) < W - 110 && (!shown.length || x(shown[shown.length - 1][1]) - x(m[1]) > 120)) shown.push(m);
  return el("div", {class: "figure", id: "rounding-curve"}, svg("svg", {width: W, height: H, role: "img", "aria-label": "errors along the layers"}, svg("title", {}, "errors along the layers"), grid,
    LINES.map(([key, name, colour]) => svg("path", {d: path(key), fill: "none", stroke: colour, "stroke-width": key === "predicted" ? 1.5 : 2, "stroke-dasharray": key === "predicted" ? "5 4" : key === "difference" ? "2 2" : null}, svg("title", {}, name))),
    shown.map(([s, i]) => svg("text", {class: "sub", x: x(i), y: H - 6}, cutFront(s, 16)))),
  el("p", {class: "dim"}, LINES.map(([, name, colour]) => [el("b", {style: `color:${colour}`}, name), "  "]), "; relative to exact, root mean square, in the left graph's order."));
}

function rounding(view) {
  const r = view.model.report, list = r.rounding || [];
  if (!r.rounding_conclusion) return null;
  const find = (side, id) => byId(view, side === "left" ? 0 : 1, id);
  return section("rounding", "Rounding", el("p", {class: "lead", id: "rounding"}, r.rounding_conclusion, "."),
    list.length > 0 && el("table", {}, el("tr", {}, ["output", "left from exact", "right from exact", "apart", "predicted", ""].map(t => el("th", {}, t))),
      list.map(o => el("tr", {}, el("td", {class: "mono"}, o.output), [o.left_error, o.right_error, o.difference, o.predicted].map(v => el("td", {}, sig(v))), el("td", {class: o.explained ? "same" : "alone"}, mark(o.explained ? "same" : "alone"), o.explained ? " explained" : " not explained")))),
    [...new Map(list.flatMap(o => o.operators).map(x => [x.text, x])).values()].map(x => el("p", {}, x.text, ` (${Math.round(100 * x.share)} % of its error) `, find(x.side, x.id) && nodeLink(view, find(x.side, x.id)))),
    roundingCurve(r.rounding_curve || []));
}
