/* The page of `isomer lint`: verdict, findings with the circles of hangs, timelines, placements. */

const REPORT = JSON.parse(document.getElementById("report").textContent);
const DATA = JSON.parse(document.getElementById("graphs").textContent);
const MANY = 200;
let CHART = null;

const section = (id, title, ...rest) => el("section", {id: id + "-section"}, el("h2", {}, title), rest);
const where = ([rank, position]) => `rank ${rank} event ${position}`;

function turnTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, root = document.documentElement, now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
  if (CHART) CHART.draw();
}

function header() {
  const counts = REPORT.findings.filter(f => f.severity === "error" && !f.known).length;
  const words = {clean: "CLEAN", findings: `FINDINGS ${counts || REPORT.findings.length}`, undecided: "UNDECIDED"};
  const facts = [`${DATA.ranks} ranks, ${DATA.events} ${REPORT.placements ? "nodes" : "events"}`];
  if (REPORT.makespan) facts.push(`makespan ${REPORT.makespan}, bubble ${(100 * REPORT.bubble).toFixed(1)} %`);
  const models = REPORT.placements ? null : el("table", {}, el("tr", {}, Object.keys(REPORT.progress).map(m => el("th", {}, m + (m === REPORT.decides ? " (decides)" : "")))),
    el("tr", {}, Object.values(REPORT.progress).map(p => el("td", {class: p === "deadlock" ? "diverges" : p === "ok" ? "same" : "dim"}, p))));
  const peak = REPORT.peak_in_flight || [];
  return [el("h1", {}, el("span", {class: "verdict " + REPORT.verdict}, words[REPORT.verdict])), REPORT.undecided && el("p", {class: "lead"}, REPORT.undecided),
    el("p", {class: "dim"}, facts.join("; ")), models, peak.some(Boolean) && el("p", {class: "dim"}, "activations held, by rank: " + peak.slice(0, 64).join(" ") + (peak.length > 64 ? " …" : ""))];
}

/* What waits for what, in a circle: each arrow is a wait. */
function circle(f, n) {
  const events = f.events.slice(0, n), w = Math.max(420, 110 + 60 * n), r = Math.max(60, 20 * n), high = 2 * r + 90;
  const at = k => { const a = 2 * Math.PI * k / n - Math.PI / 2; return [w / 2 + (w / 2 - 95) * Math.cos(a), high / 2 + r * Math.sin(a)]; };
  const name = ([rank, position]) => { const l = CHART && CHART.byRank.get(rank), i = l ? CHART.find(l, position) : -1; return i < 0 ? "" : CHART.words[l.name[i]]; };
  const arrow = (k, m) => {
    const [x, y] = at(k), [u, v] = at(m), d = Math.hypot(u - x, v - y) || 1, bend = n === 2 ? 26 : 0, cx = (x + u) / 2 - bend * (v - y) / d, cy = (y + v) / 2 + bend * (u - x) / d;
    const e = Math.hypot(u - cx, v - cy) || 1, s = Math.min(1, 1 - 70 / e) > 0 ? 1 - Math.min(70 * Math.abs(u - cx) + 24 * Math.abs(v - cy), .9 * e * e) / (e * e) : .5;
    return svg("path", {class: "edge", d: `M${x} ${y}Q${cx} ${cy} ${cx + (u - cx) * s} ${cy + (v - cy) * s}`, "marker-end": "url(#tip)"});
  };
  return svg("svg", {width: w, height: high, role: "img", "aria-label": "what waits for what"},
    svg("defs", {}, svg("marker", {id: "tip", markerWidth: 9, markerHeight: 9, refX: 8, refY: 4.5, orient: "auto"}, svg("path", {d: "M0 0L9 4.5L0 9Z", fill: "var(--dim)"}))),
    events.map((_, k) => arrow(k, (k + 1) % n)),
    events.map((e, k) => { const [x, y] = at(k); return svg("g", {}, svg("rect", {class: "box hot", x: x - 88, y: y - 20, width: 176, height: 40, rx: 5}), svg("text", {x, y: y - 3, "text-anchor": "middle"}, where(e)), svg("text", {class: "sub", x, y: y + 13, "text-anchor": "middle"}, name(e).slice(0, 26))); }));
}

function finding(f, k) {
  const cycle = DATA.cycles[k], at = f.events.length ? where(f.events[0]) : f.nodes.length ? `rank ${f.nodes[0][0]} node ${f.nodes[0][1]}` : f.ranks.length ? `rank ${f.ranks[0]}` : "";
  return el("div", {class: "card " + (f.known ? "known" : f.severity === "error" ? "bad" : "warning"), id: "finding" + k},
    el("h3", {}, f.kind, " ", el("span", {class: "dim"}, at, f.name && ` (${f.name})`)), el("p", {}, f.text), f.source && el("p", {}, "source: ", el("code", {}, f.source)), f.mend && el("p", {}, "mend: ", f.mend),
    f.known && el("p", {class: "dim"}, "accepted: ", f.known), cycle > 1 && (cycle <= 12 ? el("div", {class: "figure"}, circle(f, cycle)) : el("p", {class: "dim"}, `${cycle} events wait in a circle: `, f.events.slice(0, cycle).map(where).join(" → "))),
    CHART && f.events.length > 0 && el("p", {}, el("button", {class: "link", onclick: () => CHART.show(f.events, k)}, "show in the timelines")));
}

function findings() {
  if (!REPORT.findings.length) return null;
  const list = el("div", {}, REPORT.findings.slice(0, MANY).map(finding));
  return section("findings", "Findings", list, REPORT.findings.length > MANY && el("p", {class: "dim"}, `and ${REPORT.findings.length - MANY} more, which the JSON report lists`));
}

function timelines() {
  if (!CHART) return null;
  return section("timelines", "Timelines", el("p", {class: "dim"}, `Each rank in order, each event as soon as possible, under the progress model ${DATA.model}. What costs no time has a short bar, so that it can be seen.`), CHART.element());
}

function placements() {
  const all = REPORT.placements;
  if (!all) return null;
  const faulty = new Set(REPORT.findings.flatMap(f => f.nodes.map(([r, id]) => r + " " + id))), body = el("tbody", {});
  const row = p => el("tr", {class: faulty.has(p.node[0] + " " + p.node[1]) && "differs"}, el("td", {}, el("code", {}, p.node[1])), el("td", {}, p.op), el("td", {}, el("span", {class: "tag " + (p.why ? "alone" : "same")}, p.placement)), el("td", {}, p.evidence || ""), el("td", {}, p.why || ""));
  const fill = text => body.replaceChildren(...all.filter(p => (p.node[1] + " " + p.op + " " + p.placement).includes(text)).slice(0, 5000).map(row));
  fill("");
  return section("placements", "Placements", el("p", {class: "tools"}, el("input", {placeholder: "node, operator or placement", "aria-label": "which", oninput: e => fill(e.target.value)})),
    el("div", {class: "placed"}, el("table", {}, el("thead", {}, el("tr", {}, ["node", "operator", "placement", "evidence", "why it varies"].map(t => el("th", {}, t)))), body)));
}

CHART = DATA.lanes.length ? new Chart(DATA, REPORT.findings) : null;
document.getElementById("top").replaceChildren(...header().filter(Boolean));
document.getElementById("main").replaceChildren(...[findings(), timelines(), placements()].filter(Boolean));
document.getElementById("nav").replaceChildren(el("div", {}, [["top", "Verdict"], ["findings", "Findings"], ["timelines", "Timelines"], ["placements", "Placements"]].filter(([id]) => document.getElementById(id + "-section") || id === "top")
  .map(([id, t]) => el("a", {href: id === "top" ? "#top" : `#${id}-section`}, t)), el("span", {class: "end"}, el("button", {onclick: turnTheme, id: "theme"}, "light / dark"))));
addEventListener("resize", () => CHART && CHART.draw());
if (CHART) CHART.draw();
