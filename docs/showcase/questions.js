"use strict";
// The questions: an index that is searched here, and answers loaded shard by shard when asked for.
// Everything in a shard is untrusted and only ever becomes text nodes.
(() => {
  const $ = (id) => document.getElementById(id);
  const meta = JSON.parse($("meta").textContent);
  const PER_PAGE = 50, OPEN = 12;
  const waiting = new Map();
  const shards = new Map();
  const rows = [];
  let found = [], page = 0, chosen = null;

  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, v] of Object.entries(attributes || {})) if (v !== null && v !== undefined) node.setAttribute(name, v);
    node.append(...children.filter((c) => c !== null && c !== undefined).map((c) => (c instanceof Node ? c : document.createTextNode(String(c)))));
    return node;
  };

  const unpacked = async (packed) => {
    const bytes = Uint8Array.from(atob(packed), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return JSON.parse(await new Response(stream).text());
  };
  // A shard calls this; a page from disk may load scripts but not fetch.
  globalThis.routeyard = async (kind, number, packed) => {
    waiting.get(`${kind}-${number}`)?.(await unpacked(packed));
  };
  const load = (kind, number) => {
    const name = `${kind}-${number}`;
    if (!shards.has(name)) {
      if (shards.size > 40) shards.delete(shards.keys().next().value);
      const inside = document.getElementById(`shard-${name}`);
      shards.set(name, inside ? unpacked(inside.textContent) : new Promise((resolve, reject) => {
        waiting.set(name, resolve);
        const script = make("script", { src: `shards/${name}.js` });
        script.onerror = () => { shards.delete(name); reject(new Error(`shards/${name}.js cannot be loaded`)); };
        script.onload = () => script.remove();
        document.head.append(script);
      }));
    }
    return shards.get(name);
  };

  const share = (row) => (row.judged ? row.total / row.judged : null);
  const percent = (v) => (v === null || v === undefined ? "–" : `${Math.round(100 * v)} %`);
  const usd = (v) => (v === null || v === undefined ? "not known" : `$${Number(v.toPrecision(3))}`);
  const plain = (v, unit = "") => (v === null || v === undefined ? "not known" : `${v}${unit}`);

  // Two models: on which questions one is right and the other is not.
  const sign = (row, id) => ($(id).value === "" || !row.outcomes ? "" : row.outcomes[Number($(id).value)]);
  const shown = (row) => {
    const rule = $("show").value, a = sign(row, "a"), b = sign(row, "b");
    if (!rule || a === "") return true;
    if (rule === "a-wrong") return a === "0";
    if (rule === "a-right") return a === "1";
    if (b === "") return true;
    if (rule === "a-not-b") return a === "1" && b === "0";
    if (rule === "b-not-a") return a === "0" && b === "1";
    return a === "0" && b === "0";
  };
  const difference = () => {
    const place = $("difference");
    if ($("a").value === "" || $("b").value === "" || $("a").value === $("b").value) { place.textContent = ""; return; }
    const keep = $("show").value;
    $("show").value = "";
    const own = rows.filter(passes());
    $("show").value = keep;
    const n = { 10: 0, "01": 0, 11: 0, "00": 0 };
    for (const row of own) { const both = sign(row, "a") + sign(row, "b"); if (both in n) n[both] += 1; }
    const told = n[10] + n["01"] + n[11] + n["00"];
    if (!told) { place.textContent = "No question has labels of both."; return; }
    // Paired difference with its 95 % interval (Wald on discordant pairs).
    const d = (n[10] - n["01"]) / told, sd = Math.sqrt((n[10] + n["01"]) / told - d * d) / Math.sqrt(told);
    const points = (v) => `${v > 0 ? "+" : ""}${(100 * v).toFixed(1)}`;
    place.textContent = `Only the first is right on ${n[10].toLocaleString("en")}, only the second on ${n["01"].toLocaleString("en")}, both on ${n[11].toLocaleString("en")}, neither on ${n["00"].toLocaleString("en")}: difference ${points(d)} points (${points(d - 1.96 * sd)} to ${points(d + 1.96 * sd)}).`;
  };

  const passes = () => {
    const words = $("words").value.trim().toLowerCase().split(/\s+/).filter(Boolean);
    const task = $("task").value, level = $("difficulty").value;
    return (row) => {
      if (task !== "" && row.task !== Number(task)) return false;
      if ($("contested").checked && !row.contested) return false;
      if ($("duplicates").checked && row.group === null) return false;
      if ($("missing").checked && !row.missing) return false;
      if (level) {
        const right = share(row);
        if (right === null) return false;
        if (level === "none" && right > 0) return false;
        if (level === "all" && right < 1) return false;
        if (level === "hard" && right >= 0.5) return false;
        if (level === "easy" && right < 0.5) return false;
      }
      if (!shown(row)) return false;
      return words.every((w) => row.search.includes(w));
    };
  };
  const disagreement = (row) => { const s = share(row); return s === null ? -1 : Math.min(s, 1 - s); };
  const orders = {
    id: (a, b) => a.number - b.number,
    hard: (a, b) => (share(a) ?? 2) - (share(b) ?? 2) || a.number - b.number,
    easy: (a, b) => (share(b) ?? -1) - (share(a) ?? -1) || a.number - b.number,
    split: (a, b) => disagreement(b) - disagreement(a) || a.number - b.number,
  };

  const search = () => {
    found = rows.filter(passes());
    if ($("order").value !== "id") found.sort(orders[$("order").value]);
    page = 0;
    difference();
    list();
  };
  // The address holds what is searched and which question is open: it can be sent to somebody.
  const FIELDS = ["words", "task", "order", "difficulty", "contested", "duplicates", "missing", "a", "b", "show"];
  const NAMED = { task: "tasks", a: "models", b: "models" };
  const remember = () => {
    const state = new URLSearchParams();
    for (const id of FIELDS) {
      const field = $(id), v = field.type === "checkbox" ? (field.checked ? "1" : "") : field.value;
      if (v !== "" && !(id === "order" && v === "id")) state.set(id, id in NAMED ? meta[NAMED[id]][Number(v)] : v);
    }
    if (chosen) state.set("q", chosen.id);
    history.replaceState(null, "", `#${state}`);
  };
  const list = () => {
    const pages = Math.max(1, Math.ceil(found.length / PER_PAGE));
    const loaded = rows.length < meta.questions ? ` (${rows.length.toLocaleString("en")} of ${meta.questions.toLocaleString("en")} loaded)` : "";
    $("hits").textContent = `${found.length.toLocaleString("en")} questions found${loaded}`;
    $("page").textContent = `page ${page + 1} of ${pages}`;
    $("back").disabled = page === 0;
    $("on").disabled = page + 1 >= pages;
    $("found").replaceChildren(...found.slice(page * PER_PAGE, (page + 1) * PER_PAGE).map((row) => {
      const marks = [meta.tasks[row.task], `${percent(share(row))} right`];
      if (row.contested) marks.push(`${row.contested} contested`);
      if (row.missing) marks.push(`${row.missing} without a label`);
      if (row.group !== null) marks.push(`duplicate group ${row.group + 1}`);
      const button = make("button", { type: "button", "aria-current": chosen === row ? "true" : null }, row.text || row.id, make("small", {}, marks.join(" · ")));
      button.addEventListener("click", () => show(row, true));
      return make("li", {}, button);
    }));
  };

  const outcome = (cell) =>
    cell.score === null ? make("span", {}, "no label") : make("span", { class: cell.correct ? "right" : "wrong" }, cell.score === 1 ? "right" : cell.score === 0 ? "wrong" : `score ${Number(cell.score.toFixed(3))}`);
  const answerText = (sample) => {
    if (sample.text === null) return make("p", { class: "soft" }, "There is no text of this answer in the release.");
    const [before, span, after] = sample.text;
    const [left, right] = sample.cut || [0, 0];
    return make("pre", { tabindex: "0", "aria-label": "Answer" },
      left ? `[… ${left.toLocaleString("en")} characters left out] ` : null, before,
      span === undefined ? null : make("mark", {}, span), after ?? null,
      right ? ` [${right.toLocaleString("en")} characters left out …]` : null);
  };
  // `given` is a score that came with the answers: nothing was read.
  const given = (name) => name === "given";
  const named = (name) => (given(name) ? "the source's score" : name);
  const verdict = (v) => make("dd", {}, make("b", {}, named(v.scorer)), `${v.version === null || given(v.scorer) ? "" : ` (version ${v.version})`}: ${v.outcome}`,
    v.score === null ? null : `, score ${Number(v.score.toFixed(3))}`, v.read === null || given(v.scorer) ? null : `, read “${v.read}”`,
    v.reason && !given(v.scorer) ? `. ${v.reason}` : null, v.cost ? ` (asked for ${usd(v.cost)})` : null);
  const cell = (c, open, compared) => {
    const box = make("details", { class: compared ? "answer compared" : "answer" }, make("summary", {}, make("b", {}, meta.models[c.model]), outcome(c),
      make("span", { class: "soft" }, c.by === "unreadable" ? "no scorer could read it" : c.by ? `decided by ${named(c.by)}` : "nobody decided"),
      c.contested ? make("span", { class: "warn" }, "contested") : null,
      make("span", { class: "soft" }, c.cost === null ? "cost not known" : usd(c.cost)), make("span", { class: "soft" }, c.out === null ? null : `${c.out.toLocaleString("en")} tokens out`)));
    const fill = () => {
      if (box.childElementCount > 1) return;
      const parts = [];
      c.samples.forEach((sample, k) => {
        if (c.samples.length > 1) parts.push(make("p", {}, make("b", {}, `Sample ${k + 1}`)));
        if (sample.status !== "ok") parts.push(make("p", { class: "warn" }, `Status of the answer: ${sample.status}.`));
        parts.push(answerText(sample));
        parts.push(make("dl", {}, make("dt", {}, "verdicts"), ...(sample.verdicts.length ? sample.verdicts.map(verdict) : [make("dd", {}, "none")])));
      });
      if (!c.samples.length) parts.push(make("p", { class: "soft" }, "This model has no answer to the question."));
      if (c.contested) parts.push(make("p", {}, make("b", {}, "Why contested: "), why(c)));
      parts.push(make("dl", {}, make("dt", {}, "cost"), make("dd", {}, usd(c.cost)), make("dt", {}, "tokens"), make("dd", {}, `${plain(c.in)} in, ${plain(c.out)} out`), make("dt", {}, "latency"), make("dd", {}, plain(c.latency, " s"))));
      box.append(...parts);
    };
    box.addEventListener("toggle", () => { if (box.open) { fill(); toSpan(box); } });
    if (open) { fill(); box.open = true; }
    return box;
  };
  // What was read is in sight, also at the end of a long answer.
  const toSpan = (box) => {
    for (const mark of box.querySelectorAll("pre mark")) {
      const pre = mark.closest("pre");
      pre.scrollTop += mark.getBoundingClientRect().top - pre.getBoundingClientRect().top - pre.clientHeight / 2;
    }
  };
  const why = (c) => {
    const said = c.samples.flatMap((s) => s.verdicts).filter((v) => v.outcome === "correct" || v.outcome === "incorrect");
    return new Set(said.map((v) => v.outcome)).size > 1
      ? `${said.map((v) => `${v.scorer} says ${v.outcome}`).join(", ")}; ${c.by || "nobody"} decided.`
      : `the text commits to several different answers; ${c.by || "nobody"} decided by what is marked.`;
  };

  const chosenBy = (q) => make("dl", {}, ...q.routers.flatMap(([router, k]) => {
    const c = q.cells.find((other) => other.model === k);
    return [make("dt", {}, router), make("dd", {}, `${meta.models[k]}: `, c ? outcome(c) : "no label")];
  }));

  const show = async (row, move, quietly) => {
    chosen = row;
    list();
    if (!quietly) remember();
    const place = $("question");
    place.replaceChildren(make("p", {}, "Loading…"));
    let shard;
    try { shard = await load("answers", Math.floor(row.number / meta.answered)); }
    catch (error) { place.replaceChildren(make("p", { class: "warn" }, error.message)); return; }
    if (chosen !== row) return;
    const q = shard[row.number % meta.answered];
    const facts = [["id", q.query_id], ["task", q.domain ? `${q.task} (${q.domain})` : q.task], ["source", q.source ?? "not known"], ["scorer", named(q.scorer) ?? "not known"],
      ["reference", q.references.length ? q.references.join(" | ") : given(q.scorer) ? "not needed" : "none: the scorer needs none"], ["models right", `${percent(share(row))} of ${row.judged}`]];
    const group = row.group === null ? [] : rows.filter((r) => r.group === row.group && r !== row);
    const links = group.map((r) => { const b = make("button", { type: "button" }, r.id); b.addEventListener("click", () => show(r, true)); return b; });
    // The two that are compared, then contested ones, then wrong before right, since a list is read from its top.
    const two = ["a", "b"].map((id) => $(id).value).filter((v) => v !== "").map(Number);
    const rank = (c) => (two.includes(c.model) ? -9 + two.indexOf(c.model) : (c.contested ? 0 : 2) + (c.correct ? 1 : 0));
    const ordered = [...q.cells].sort((one, other) => rank(one) - rank(other));
    const parts = [make("h2", {}, "Question"), make("pre", { tabindex: "0", "aria-label": "Prompt" }, q.prompt, q.length > q.prompt.length ? " […]" : null),
      make("dl", {}, ...facts.flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)])),
      row.group === null ? null : make("p", {}, `Near-duplicate group ${row.group + 1}; in this release also: `, ...(links.length ? links : ["no other question of it"])),
      q.routers?.length ? make("details", {}, make("summary", {}, "What the routers chose"), chosenBy(q)) : null,
      make("h2", {}, `Answers of ${q.cells.length} models`),
      ordered.some((c) => c.contested) ? make("p", { class: "soft" }, "Contested ones first.") : null,
      make("div", { class: "answers" }, ...ordered.map((c, k) => cell(c, two.length === 2 ? two.includes(c.model) : k < OPEN && (c.contested || c.samples.some((s) => s.text !== null)), two.includes(c.model))))];
    place.replaceChildren(...parts.filter((part) => part !== null));
    for (const box of place.querySelectorAll("details.answer[open]")) toSpan(box);
    if (move) place.focus({ preventScroll: innerWidth > 760 });
    if (move && innerWidth <= 760) place.scrollIntoView();
  };

  const fromAddress = () => {
    const hash = location.hash.slice(1);
    const old = { contested: "contested=1", duplicates: "duplicates=1", missing: "missing=1", hard: "order=hard" };
    const state = new URLSearchParams(old[hash] || hash);
    for (const id of FIELDS) {
      const field = $(id), v = state.get(id);
      if (field.type === "checkbox") field.checked = v === "1";
      else if (id in NAMED) { const k = meta[NAMED[id]].indexOf(v); field.value = k >= 0 ? String(k) : ""; }
      else if (v !== null && (field.type === "search" || [...field.options].some((o) => o.value === v))) field.value = v;
      else field.value = id === "order" ? "id" : "";
    }
    return state.get("q");
  };
  const open = (id) => {
    const row = id === null ? null : rows.find((r) => r.id === id);
    if (row && row !== chosen) show(row, false);
  };
  const step = (by) => {
    const at = chosen ? found.indexOf(chosen) : -1;
    const next = found[Math.max(0, Math.min(found.length - 1, at + by))];
    if (!next) return;
    page = Math.floor(found.indexOf(next) / PER_PAGE);
    show(next, false);
    const button = $("found").querySelector("[aria-current]");
    button?.scrollIntoView({ block: "nearest" });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, select, textarea")) return;
    if (event.key === "j") step(1);
    else if (event.key === "k") step(-1);
    else if (event.key === "/") { event.preventDefault(); $("words").focus(); }
  });

  (async () => {
    const wanted = fromAddress();
    for (const id of FIELDS) $(id).addEventListener("input", () => {
      search();
      remember();
      if (chosen && ["a", "b"].includes(id)) show(chosen, false);
    });
    for (const id of ["filters", "comparing"]) $(id).addEventListener("submit", (event) => event.preventDefault());
    addEventListener("hashchange", () => { const asked = fromAddress(); search(); open(asked); });
    $("back").addEventListener("click", () => { page -= 1; list(); });
    $("on").addEventListener("click", () => { page += 1; list(); });
    for (let k = 0; k * meta.indexed < meta.questions; k += 1) {
      let part;
      try { part = await load("index", k); } catch (error) { $("hits").textContent = error.message; return; }
      shards.delete(`index-${k}`);
      part.id.forEach((id, j) => {
        rows.push({ number: rows.length, id, task: part.task[j], text: part.text[j], judged: part.judged[j], total: part.total[j],
          contested: part.contested[j], missing: part.missing[j], group: part.group[j], outcomes: part.outcomes?.[j] ?? null, search: `${id} ${part.text[j]} ${meta.tasks[part.task[j]]}`.toLowerCase() });
      });
      search();
    }
    if (!meta.questions) $("hits").textContent = "The release holds no question.";
    $("comparing").hidden = !rows.some((row) => row.outcomes);
    if (wanted !== null) open(wanted);
    else if (innerWidth > 760 && found.length) show(found[0], false, true);
  })();
})();
