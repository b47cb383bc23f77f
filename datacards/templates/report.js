"use strict";
// Text from questions and models is untrusted: it only ever becomes text nodes.
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function make(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
  return node;
}

function draw(tag, attributes, text) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const number = (value, digits = 4) =>
  value === null || value === undefined ? "–" : Math.abs(value) >= 1e5 || (value !== 0 && Math.abs(value) < 1e-4)
    ? value.toExponential(2) : Number(value).toFixed(digits).replace(/\.?0+$/, "") || "0";

function rows(columns) {
  const names = Object.keys(columns);
  return columns[names[0]].map((_, k) => Object.fromEntries(names.map((n) => [n, columns[n][k]])));
}

function table(heads, lines, marked) {
  const head = make("tr", {}, ...heads.map(([name, kind]) => make("th", { class: kind }, name)));
  const body = lines.map((line, k) =>
    make("tr", { class: marked && marked[k] ? "sig" : null },
      ...line.map((cell, c) => make("td", { class: heads[c][1] }, cell))));
  return make("table", {}, make("thead", {}, head), make("tbody", {}, ...body));
}

function options(select, values) {
  select.replaceChildren(...values.map((v) => make("option", { value: v }, v)));
}

async function unpack() {
  const packed = atob($("data").textContent.trim());
  const bytes = Uint8Array.from(packed, (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

function showFacts(facts) {
  const words = [
    `${facts.n_test} test questions, ${facts.n_train} train, ${facts.n_validation} validation`,
    `${facts.n_models} models`, `scheme ${facts.scheme}`,
    `${facts.resamples} paired resamples (seed ${facts.seed}${facts.clustered_by ? ", clustered by " + facts.clustered_by : ""})`,
    `label coverage ${number(100 * facts.coverage, 2)} %`, `best single model on train: ${facts.best_single}`,
  ];
  $("facts").textContent = words.join(" · ");
}

function showCertificate(certificate) {
  const place = $("certificate").querySelector("div");
  if (!certificate) return place.replaceChildren(make("p", {}, "No certificate was asked for."));
  const figures = Object.entries(certificate.figures).map(([name, f]) => [
    name.replaceAll("_", " "), number(f.value), f.low === null ? "" : `${number(f.low)} to ${number(f.high)}`, f.reason || ""]);
  const routers = certificate.routers.map((r) => [
    r.router, number(r.accuracy), `${number(r.gain)} (${number(r.gain_low)} to ${number(r.gain_high)})`,
    number(r.p_adjusted), `${r.top_model} ${number(100 * r.top_share, 1)} %`, number(r.entropy)]);
  place.replaceChildren(
    make("p", { class: "verdict" }, `Verdict: ${certificate.verdict}`), make("p", {}, certificate.words),
    make("details", {}, make("summary", {}, "The rule"), make("p", {}, certificate.rule)),
    table([["figure"], ["value", "n"], ["95 % interval", "n"], ["why null"]], figures),
    make("h3", {}, "Do reference routers collapse?"),
    routers.length
      ? table([["router"], ["accuracy", "n"], ["gain over best single", "n"], ["p (Holm)", "n"], ["asked most", "n"], ["entropy", "n"]], routers)
      : make("p", {}, certificate.routers_reason));
}

function showRanking(ranking) {
  $("ranking").querySelector("div").replaceChildren(
    table([["router"], ["accuracy", "n"], ["place", "n"]], ranking.map((r) => [
      r.router, number(r.value), r.best_place === r.worst_place ? r.best_place : `${r.best_place} to ${r.worst_place}`])));
}

let REFERENCE = [];
const hidden = new Set();
let colourOf = {};

function curveNames(lines) {
  return [...new Set(lines.map((l) => (l.measure ? `${l.curve} [${l.measure}]` : l.curve)))];
}

function showCurves(data) {
  const names = curveNames(data.curves);
  if (!names.length) {
    $("curves").querySelector(".bar").remove();
    return $("plot").replaceChildren(make("p", { class: "soft" }, "No cost measure is known for every model, so there is nothing to plot accuracy against."));
  }
  options($("which"), names);
  REFERENCE = Object.keys(data.references);
  const routers = [...new Set(data.curves.map((l) => l.router))].filter((r) => !REFERENCE.includes(r));
  routers.forEach((r, k) => { colourOf[r] = data.colours[k % data.colours.length]; });
  Object.assign(colourOf, data.references);
  const redraw = () => {
    const lines = data.curves.filter((l) => (l.measure ? `${l.curve} [${l.measure}]` : l.curve) === $("which").value);
    legend(lines, redraw);
    plot(lines, data);
  };
  for (const id of ["which", "bands", "logx"]) $(id).addEventListener("change", redraw);
  redraw();
}

function legend(lines, redraw) {
  $("legend").replaceChildren(...lines.map((line) => make("label", {},
    make("input", { type: "checkbox", "data-router": line.router, checked: hidden.has(line.router) ? false : "",
      onchange: (event) => { event.target.checked ? hidden.delete(line.router) : hidden.add(line.router); redraw(); } }),
    swatch(colourOf[line.router]), line.router)));
}

function swatch(colour) {
  const node = make("i", {});
  node.style.background = colour;
  return node;
}

// Round numbers within a range, about six of them.
function ticks(low, high) {
  const rough = (high - low) / 6, power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 2.5, 5, 10].map((m) => m * power).find((s) => s >= rough);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + step * 1e-9; k++) found.push(k * step);
  return found;
}

function decades(low, high) {
  const found = [];
  for (let e = Math.floor(Math.log10(low)); e <= Math.ceil(Math.log10(high)); e++) {
    for (const m of [1, 2, 5]) if (m * 10 ** e >= low && m * 10 ** e <= high) found.push(m * 10 ** e);
  }
  return found;
}

function plot(lines, data) {
  const W = 760, H = 440, L = 62, R = 26, T = 14, B = 46;
  const shown = lines.filter((l) => !hidden.has(l.router));
  const svg = draw("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": "accuracy against cost" });
  if (!shown.length) return $("plot").replaceChildren(make("p", { class: "soft" }, "Every curve is switched off."));
  const bands = $("bands").checked;
  const xs = shown.flatMap((l) => l.x);
  const ys = shown.flatMap((l) => bands && !REFERENCE.includes(l.router) ? l.y.concat(l.low, l.high) : l.y).filter((v) => v !== null);
  const log = $("logx").checked && Math.min(...xs) > 0;
  const f = log ? Math.log10 : (v) => v;
  let [x0, x1] = [Math.min(...xs), Math.max(...xs)], [y0, y1] = [Math.min(...ys), Math.max(...ys)];
  if (x0 === x1) { x0 = log ? x0 / 2 : x0 - Math.max(Math.abs(x0), 1e-9) / 2; x1 = x1 + Math.max(Math.abs(x1), 1e-9) / 2; }
  const pad = (y1 - y0 || 0.02) * 0.05; y0 -= pad; y1 += pad;
  const X = (v) => L + ((f(v) - f(x0)) / (f(x1) - f(x0))) * (W - L - R);
  const Y = (v) => H - B - ((v - y0) / (y1 - y0)) * (H - T - B);
  if (lines[0].curve === "tradeoff") shade(svg, data, X, Y, H, T, B);
  for (const y of ticks(y0, y1)) {
    svg.append(draw("line", { x1: L, x2: W - R, y1: Y(y), y2: Y(y), stroke: "#e8ebef" }),
      draw("text", { x: L - 8, y: Y(y) + 4, "text-anchor": "end", "font-size": 11, fill: "#5b6675" }, Number(y.toPrecision(6))));
  }
  const across = log ? decades(x0, x1) : [];
  for (const x of across.length > 2 ? across : ticks(x0, x1)) {
    svg.append(draw("line", { x1: X(x), x2: X(x), y1: H - B, y2: H - B + 4, stroke: "#b9c1cb" }),
      draw("text", { x: X(x), y: H - B + 18, "text-anchor": "middle", "font-size": 11, fill: "#5b6675" }, Number(x.toPrecision(6))));
  }
  const label = lines[0].curve === "tradeoff" ? "call rate of the large model"
    : (lines[0].curve === "budget" ? "budget per question" : "realised mean cost per question") + ` [${lines[0].measure}]`;
  svg.append(draw("text", { x: (L + W - R) / 2, y: H - 8, "text-anchor": "middle", "font-size": 12, fill: "#1d2430" }, label),
    draw("text", { x: 14, y: (T + H - B) / 2, "font-size": 12, "text-anchor": "middle", fill: "#1d2430", transform: `rotate(-90 14 ${(T + H - B) / 2})` }, "accuracy"));
  for (const line of shown) {
    const reference = REFERENCE.includes(line.router);
    const points = line.x.map((x, k) => [X(x), Y(line.y[k])]);
    if (bands && !reference && line.low[0] !== null) {
      const up = line.x.map((x, k) => `${X(x).toFixed(1)},${Y(line.high[k]).toFixed(1)}`);
      const down = line.x.map((x, k) => `${X(x).toFixed(1)},${Y(line.low[k]).toFixed(1)}`).reverse();
      svg.append(draw("polygon", { points: up.concat(down).join(" "), fill: colourOf[line.router], opacity: 0.12, class: "band", "data-router": line.router }));
    }
    svg.append(draw("polyline", { points: points.map((p) => p.map((v) => v.toFixed(1)).join(",")).join(" "), fill: "none",
      stroke: colourOf[line.router], "stroke-width": 1.8, "stroke-dasharray": reference ? "5 4" : "none", class: "curve", "data-router": line.router }));
    const dots = new Set([0, points.length - 1]);
    points.forEach((p, k) => {
      const dot = draw("circle", { cx: p[0].toFixed(1), cy: p[1].toFixed(1), r: dots.has(k) ? 3 : 6, fill: colourOf[line.router], opacity: dots.has(k) ? 1 : 0 });
      dot.append(draw("title", {}, `${line.router}: ${number(line.y[k])} at ${number(line.x[k], 6)}` +
        (line.low[k] === null ? "" : ` (${number(line.low[k])} to ${number(line.high[k])})`)));
      svg.append(dot);
    });
  }
  $("plot").replaceChildren(svg);
}

function shade(svg, data, X, Y, H, T, B) {
  const levels = {};
  for (const row of rows(data.metrics)) {
    const role = row.router.split(":")[0];
    if ((role === "small" || role === "large") && row.metric === "accuracy") levels[role] = row.value;
  }
  const strip = (a, b, colour, name) => {
    svg.append(draw("rect", { x: X(a), width: X(b) - X(a), y: T, height: H - T - B, fill: colour, opacity: 0.07 }),
      draw("text", { x: X(a) + 4, y: T + 12, "font-size": 10, fill: "#5b6675" }, name));
  };
  strip(0, 0.25, "#0072B2", "LPM");
  strip(0.3, 0.85, "#009E73", "MPM (to d₂)");
  if (levels.large > levels.small) {
    const gap = levels.large - levels.small, top = levels.small + 0.95 * gap, low = levels.small + 0.85 * gap;
    svg.append(draw("rect", { x: X(0), width: X(1) - X(0), y: Y(top), height: Y(low) - Y(top), fill: "#E69F00", opacity: 0.2 }),
      draw("text", { x: X(1) - 4, y: Y((top + low) / 2) + 3, "font-size": 10, "text-anchor": "end", fill: "#5b6675" }, "HCR"),
      draw("line", { x1: X(0), x2: X(1), y1: Y(levels.small), y2: Y(levels.large), stroke: "#999", "stroke-dasharray": "2 3" }));
  }
}

function showMetrics(data) {
  const all = rows(data.metrics);
  options($("metric"), [...new Set(all.map((r) => r.metric))]);
  const redraw = () => {
    const mine = all.filter((r) => r.metric === $("metric").value).sort((a, b) => (b.value ?? -1e99) - (a.value ?? -1e99));
    $("metrics").querySelector(".wide").replaceChildren(
      table([["router"], ["split"], ["value", "n"], ["95 % interval", "n"], ["why null"]],
        mine.map((r) => [r.router, r.split, number(r.value), r.low === null ? "" : `${number(r.low)} to ${number(r.high)}`, r.reason || ""])));
  };
  $("metric").addEventListener("change", redraw);
  redraw();
}

function showComparisons(data) {
  options($("compared"), [...new Set(data.comparisons.map((r) => r.metric))]);
  const redraw = () => {
    const mine = data.comparisons.filter((r) => r.metric === $("compared").value && (!$("onlysig").checked || r.significant));
    $("comparisons").querySelector(".wide").replaceChildren(
      table([["first"], ["second"], ["difference", "n"], ["95 % interval", "n"], ["p", "n"], ["p (Holm)", "n"], ["significant"]],
        mine.map((r) => [r.first, r.second, number(r.difference), r.low === null ? "" : `${number(r.low)} to ${number(r.high)}`,
          number(r.p), number(r.p_adjusted), r.significant ? "yes" : "no"]), mine.map((r) => r.significant)));
  };
  for (const id of ["compared", "onlysig"]) $(id).addEventListener("change", redraw);
  redraw();
}

function showProfiles(data) {
  const all = rows(data.profiles).filter((r) => r.share >= 0.005).sort((a, b) => b.share - a.share);
  const lines = [...new Set(rows(data.profiles).map((r) => r.router))].map((router) => {
    const cell = make("span", {});
    for (const r of all.filter((x) => x.router === router).slice(0, 8)) {
      const bar = make("span", { class: "share" });
      bar.style.width = `${Math.max(2, 90 * r.share)}px`;
      cell.append(bar, ` ${r.model_id} ${number(100 * r.share, 1)} %   `);
    }
    return [router, cell];
  });
  $("profiles").querySelector(".wide").replaceChildren(table([["router"], ["models asked, most first"]], lines));
}

function showOod(data) {
  const place = $("ood").querySelector(".wide");
  if (!data.ood.length) return place.replaceChildren(make("p", { class: "soft" }, "Not asked for; run with --ood."));
  place.replaceChildren(table(
    [["router"], ["held-out group"], ["questions", "n"], ["seen", "n"], ["not seen", "n"], ["change", "n"], ["95 % interval", "n"], ["as heuristic", "n"]],
    data.ood.map((r) => [r.router, r.group, r.n, number(r.id_accuracy), number(r.ood_accuracy), number(r.change),
      `${number(r.low)} to ${number(r.high)}`, number(r.agreement)]), data.ood.map((r) => r.low > 0 || r.high < 0)));
}

const MOST = 60;

function showLookup(lookup) {
  const texts = lookup.queries.map((q) => `${q.id}\n${q.task}\n${q.text}`.toLowerCase());
  const redraw = () => {
    const words = $("search").value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = lookup.queries.filter((_, k) => words.every((w) => texts[k].includes(w)));
    $("hits").textContent = `${found.length} of ${lookup.queries.length} questions` + (found.length > MOST ? `, first ${MOST} shown` : "");
    $("found").replaceChildren(...found.slice(0, MOST).map((q) => make("li", {}, make("button", { type: "button", "data-id": q.id,
      onclick: (event) => {
        for (const b of document.querySelectorAll("#found button")) b.removeAttribute("aria-current");
        event.currentTarget.setAttribute("aria-current", "true");
        showQuestion(q, lookup);
      } }, q.text.slice(0, 110), make("small", {}, `${q.task} · ${q.id}`)))));
  };
  $("search").addEventListener("input", redraw);
  redraw();
}

function mark(cell) {
  const score = cell ? cell.score : null;
  if (score === null || score === undefined) return make("span", { class: "none" }, "no label");
  return make("span", { class: cell.correct ? "right" : "wrong" }, score === 1 ? "right" : score === 0 ? "wrong" : number(score, 3));
}

function answer(cell, excerpt) {
  if (cell.text === null || cell.text === undefined) return make("span", { class: "none" }, cell.status === "error" ? "error" : "no text");
  const summary = cell.text.trim().replace(/\s+/g, " ").slice(-80);
  return make("details", {}, make("summary", {}, summary || "(empty)"),
    make("pre", {}, (cell.cut ? `[last ${excerpt} characters]\n` : "") + cell.text));
}

function showQuestion(q, lookup) {
  const lines = lookup.models.map((model, k) => {
    const cell = q.cells[k];
    if (!cell) return [model, make("span", { class: "none" }, "not asked"), "", "", ""];
    const verdicts = make("span", {});
    for (const [scorer, outcome, extracted] of cell.verdicts || []) {
      verdicts.append(make("div", {}, `${scorer}: ${outcome}${extracted === null ? "" : ` (“${extracted}”)`}`));
    }
    return [model, mark(cell), verdicts, cell.cost === null || cell.cost === undefined ? "unknown" : `$${number(cell.cost, 6)}`, answer(cell, lookup.excerpt)];
  });
  const chosen = Object.entries(q.routers).map(([router, k]) => [router, lookup.models[k], mark(q.cells[k])]);
  $("question").replaceChildren(
    make("p", { class: "soft" }, `${q.task} · ${q.id} · reference: ${q.references.join(" | ") || "none"}`),
    make("pre", {}, q.text + (q.cut ? " […]" : "")),
    table([["model"], ["label"], ["verdicts"], ["cost", "n"], ["answer"]], lines),
    ...(chosen.length ? [make("h3", {}, "What the routers chose"), table([["router"], ["model"], ["label"]], chosen)] : []));
}

unpack().then((data) => {
  showFacts(data.facts);
  showCertificate(data.certificate);
  showRanking(data.ranking);
  showCurves(data);
  showMetrics(data);
  showComparisons(data);
  showProfiles(data);
  showOod(data);
  showLookup(data.lookup);
  document.body.dataset.ready = "true";
});
