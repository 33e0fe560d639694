/* Puts the parts together; keys that work everywhere. */

let VIEW = null;

const KEYS = [["/", "search"], ["n, p", "next, previous place where the sides part (or unmatched node)"], ["Tab", "from one part to the next"], ["↑ ↓ PgUp PgDn Home End", "in a graph: to another row"],
  ["→ ←", "unfold, fold a module; into it, out of it"], ["Enter", "select, and show its counterparts"], ["x", "to the other graph's counterpart"], ["?", "this"], ["Esc", "clear the search; close this"]];

function showHelp() {
  const d = document.getElementById("help");
  d.replaceChildren(el("h3", {}, "Marks"), el("table", {}, STATE_NAMES.map(n => el("tr", {}, el("td", {class: n}, mark(n)), el("th", {}, STATES[n][0]), el("td", {}, STATES[n][1])))),
    el("h3", {}, "Keys"), el("table", {}, KEYS.map(([k, t]) => el("tr", {}, el("td", {}, el("kbd", {}, k)), el("td", {}, t)))), el("p", {}, el("button", {onclick: () => d.close()}, "close")));
  if (!d.open) d.showModal();
}

function turnTheme() {
  const dark = matchMedia("(prefers-color-scheme: dark)").matches, root = document.documentElement, now = root.dataset.theme || (dark ? "dark" : "light");
  root.dataset.theme = now === "dark" ? "light" : "dark";
}

function show(k) {
  const view = VIEW = new GraphView(readPair(k));
  const parts = [divergences(view), rounding(view), section("graphs", "The two graphs", el("p", {class: "dim"}, "Folded by module and layer; a line joins what was found equal. Select a node to see its class on both sides, a module to see it drawn. ", el("kbd", {}, "?"), " lists the keys."), view.element()),
    rules(view), assumptions(view), coverage(view)].filter(Boolean);
  document.getElementById("top").replaceChildren(...header(view).filter(Boolean));
  document.getElementById("main").replaceChildren(...parts);
  const links = [["top", "Verdict"], ["divergences", "Divergences"], ["rounding", "Rounding"], ["graphs", "Graphs"], ["rules", "Rules"], ["assumptions", "Assumptions"], ["coverage", "Coverage"]];
  document.getElementById("nav").replaceChildren(el("div", {},
    GRAPHS.pairs.length > 1 && el("select", {id: "pair", "aria-label": "pair", onchange: e => show(Number(e.target.value))}, GRAPHS.pairs.map((p, i) => el("option", {value: i, selected: i === k}, `pair ${i + 1} of ${GRAPHS.pairs.length}: ${REPORT.pairs[i].verdict}`))),
    links.filter(([id]) => document.getElementById(id + "-section") || id === "top").map(([id, t]) => el("a", {href: id === "top" ? "#top" : `#${id}-section`}, t)),
    el("span", {class: "end"}, el("button", {onclick: turnTheme, id: "theme"}, "light / dark"), el("button", {onclick: showHelp}, "? help"))));
  const first = view.model.divergences[0];
  if (first) { const s = first.right >= 0 ? 1 : 0; view.choose(view.model.sides[s].nodes[first[SIDES[s]]], true); }
  view.draw();
}

document.addEventListener("keydown", e => {
  if (e.ctrlKey || e.altKey || e.metaKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || document.getElementById("help").open) return;
  if (e.key === "/") { document.getElementById("graphs-section").scrollIntoView(); VIEW.search.focus({preventScroll: true}); }
  else if (e.key === "n") VIEW.step(1);
  else if (e.key === "p") VIEW.step(-1);
  else if (e.key === "?") showHelp();
  else return;
  e.preventDefault();
});
addEventListener("resize", () => VIEW.draw());
show(GRAPHS.decides);
