"use strict";
// Tables that sort, filter and unfold, marks that say their value and lead to their questions, and
// a choice of scale. What is folded is built when it is opened. Text stays text.
(() => {
  const FEW = 25;
  const known = new Map();
  const inside = (root, selector) => [...(root.matches?.(selector) ? [root] : []), ...root.querySelectorAll(selector)];
  const make = (tag, attributes, ...children) => {
    const node = document.createElement(tag);
    for (const [name, v] of Object.entries(attributes || {})) if (v !== null && v !== undefined) node.setAttribute(name, v);
    node.append(...children);
    return node;
  };

  const value = (row, column) => {
    const cell = row.cells[column];
    const told = cell.dataset.v;
    if (told === undefined) return cell.textContent.trim().toLowerCase();
    return told === "" ? null : Number(told);
  };
  const compare = (a, b) =>
    a === null ? (b === null ? 0 : 1) : b === null ? -1 : typeof a === "string" ? a.localeCompare(b) : a - b;

  // Rows of a table by body, also those that wait in a template or as JSON.
  const rowsOf = (table) => {
    const bodies = [...table.tBodies].map((body) => ({ body, few: Number(body.dataset.few) || FEW, heads: [...body.rows].filter((r) => r.classList.contains("group")), rows: [...body.rows].filter((r) => !r.classList.contains("group")) }));
    const rest = table.closest(".wide")?.querySelector(`template[data-rest="${table.id}"]`);
    if (rest) {
      bodies.at(-1).rows.push(...rest.content.querySelectorAll("tr"));
      rest.remove();
    }
    if (table.dataset.rows) {
      const heads = [...table.tHead.rows[0].cells];
      for (const told of JSON.parse(document.getElementById(table.dataset.rows).textContent))
        bodies[0].rows.push(make("tr", {}, ...told.map((one, k) => {
          const [text, v] = Array.isArray(one) ? one : [one, null];
          return make(k ? "td" : "th", { scope: k ? null : "row", class: heads[k].className || null, "data-v": Array.isArray(one) ? v ?? "" : null }, text);
        })));
    }
    return bodies;
  };
  const stateOf = (table) => {
    if (!known.has(table)) {
      const bodies = rowsOf(table);
      known.set(table, { bodies, all: bodies.every(({ rows, few }) => rows.length <= few + 5), keep: () => true });
    }
    return known.get(table);
  };
  // On paper nothing can be unfolded: more rows are printed, and the page says how many are left.
  const PRINTED = 200;
  let printing = false;
  const render = (table) => {
    const state = stateOf(table);
    let passed = 0, total = 0, left = 0;
    for (const { body, few, heads, rows } of state.bodies) {
      const kept = rows.filter(state.keep);
      const shown = state.all ? kept : kept.slice(0, printing ? Math.max(few, PRINTED) : few);
      [passed, total, left] = [passed + kept.length, total + rows.length, left + kept.length - shown.length];
      body.replaceChildren(...heads, ...shown);
    }
    const count = document.querySelector(`[data-count="${table.id}"]`);
    if (count && passed < total) count.textContent = `${passed.toLocaleString("en")} of ${total.toLocaleString("en")} pass`;
    else if (count) count.textContent = "";
    state.more?.remove();
    if (left) {
      state.more = printing
        ? make("p", { class: "soft" }, `${left.toLocaleString("en")} more rows are on the page that this was printed from.`)
        : make("button", { type: "button", class: "more" }, `show ${left.toLocaleString("en")} more`);
      if (!printing) state.more.addEventListener("click", () => { state.all = true; render(table); });
      table.closest(".wide").after(state.more);
    }
  };

  // On a phone a row becomes a card whose cells carry their headings; roles keep it a table.
  const stacked = (table) => {
    const heads = [...(table.tHead?.rows[0]?.cells || [])].map((head) => head.textContent.trim());
    table.classList.add("stack");
    table.setAttribute("role", "table");
    for (const part of [table.tHead, ...table.tBodies]) part?.setAttribute("role", "rowgroup");
    const rows = stateOf(table).bodies.flatMap((one) => [...one.heads, ...one.rows]);
    for (const row of [...(table.tHead?.rows || []), ...rows]) {
      row.setAttribute("role", "row");
      const above = row.parentElement === table.tHead;
      [...row.cells].forEach((cell, k) => {
        cell.setAttribute("role", cell.tagName === "TH" ? (above ? "columnheader" : "rowheader") : "cell");
        if (k && !above) {
          cell.dataset.label = heads[k] || "";
          cell.classList.toggle("none", cell.textContent.trim() === "–");
        }
      });
    }
  };

  const sortable = (table) => {
    const heads = [...table.tHead.rows[0].cells];
    const choice = make("select", {}, new Option("the order given", ""), ...heads.map((head, k) => new Option(head.textContent.trim(), k)));
    table.closest(".wide").before(make("label", { class: "phone" }, "Sort by ", choice));
    choice.addEventListener("change", () => { if (choice.value !== "") heads[Number(choice.value)].querySelector("button").click(); });
    heads.forEach((head, column) => {
      const button = make("button", { type: "button" }, ...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending" || (head.classList.contains("n") && !head.hasAttribute("aria-sort"));
        for (const other of heads) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        for (const part of stateOf(table).bodies) {
          const rows = part.rows.map((row) => [value(row, column), row]);
          // What is not known stays last either way.
          rows.sort(([a], [b]) => (a === null || b === null || !down ? compare(a, b) : compare(b, a)));
          part.rows = rows.map(([, row]) => row);
        }
        render(table);
      });
    });
  };

  const filter = (id) => {
    const table = document.getElementById(id);
    const words = (document.querySelector(`[data-filter="${id}"]`)?.value || "").toLowerCase().split(/\s+/).filter(Boolean);
    const least = document.querySelector(`[data-least="${id}"]`);
    stateOf(table).keep = (row) => {
      const said = row.textContent.toLowerCase();
      if (!words.every((word) => said.includes(word))) return false;
      if (!least || least.value === "") return true;
      const found = value(row, Number(least.dataset.column));
      return found !== null && found * Number(least.dataset.scale || 1) >= Number(least.value);
    };
    render(table);
  };

  // Curves are switched on and off one by one; of many only the best ten are shown at first.
  const MOST = 10;
  const switched = (group) => {
    const items = [...group.querySelectorAll(".legend li")];
    const shown = items.map((item) => items.length <= MOST + 4 || Number(item.dataset.rank) < MOST);
    const redraw = () => {
      for (const one of group.querySelectorAll("[data-series]")) one.classList.toggle("off", !shown[Number(one.dataset.series)]);
    };
    items.forEach((item, k) => {
      const box = make("input", { type: "checkbox" });
      box.checked = shown[k];
      box.addEventListener("change", () => { shown[k] = box.checked; redraw(); });
      item.append(make("label", {}, box, " ", ...item.childNodes));
    });
    const both = [true, false].map((all) => {
      const button = make("button", { type: "button" }, all ? "show all curves" : "hide all curves");
      button.addEventListener("click", () => {
        shown.fill(all);
        for (const box of group.querySelectorAll(".legend input")) box.checked = all;
        redraw();
      });
      return button;
    });
    group.querySelector(".legend").after(...both);
    group.addEventListener("unfolded", redraw);
    redraw();
  };

  // The least cost at which each router and each single model reaches the accuracy asked for.
  const ways = (input) => {
    const table = document.getElementById(input.dataset.wanted), least = Number(input.value) / 100;
    const part = stateOf(table).bodies[0];
    const rows = part.rows.map((row) => [JSON.parse(row.dataset.steps).find(([, y]) => y >= least - 1e-9) || null, row]);
    rows.sort(([a], [b]) => compare(a && a[0], b && b[0]));
    for (const [step, row] of rows) {
      row.cells[1].textContent = step ? step[0].toLocaleString("en", { maximumSignificantDigits: 4 }) : "not reached";
      row.cells[2].textContent = step ? `${(100 * step[1]).toFixed(1)} %` : "–";
      row.cells[2].classList.toggle("none", !step);
    }
    part.rows = rows.map(([, row]) => row);
    render(table);
    const lowest = table.dataset.unit.includes("USD") ? "Cheapest" : "Least by a";
    const told = (kind, none) => {
      const own = rows.filter(([step, row]) => step && row.dataset.kind === kind), best = own[0];
      // Those that are equally cheap are all named.
      const names = own.filter(([step]) => step[0] === best[0][0]).map(([, row]) => row.cells[0].textContent).join(" and ");
      const most = Math.max(...rows.filter(([, row]) => row.dataset.kind === kind).map(([, row]) => JSON.parse(row.dataset.steps).at(-1)[1]));
      if (!best && most > 0) none += ` (${(100 * most).toFixed(1)} % at most)`;
      const unit = table.dataset.unit.replace(/^10/, "× 10");
      return best ? `${names} (${best[1].cells[1].textContent} ${unit})` : none;
    };
    document.querySelector(`[data-cheapest="${table.id}"]`).textContent =
      `${lowest} router: ${told("router", "none reaches it")}. ${lowest} single model: ${told("model", "none reaches it")}.`;
  };

  const unfold = (holder) => {
    const waiting = holder.querySelector(":scope > template:not([data-rest])");
    if (!waiting) return;
    const content = document.importNode(waiting.content, true);
    const parts = [...content.children];
    waiting.replaceWith(content);
    for (const part of parts) prepare(part);
    holder.dispatchEvent(new Event("unfolded", { bubbles: true }));
  };
  const prepare = (root) => {
    const narrow = matchMedia("(max-width: 640px)").matches;
    for (const place of inside(root, ".chart")) {
      // A phone has its own drawing where one was made; any other slides, and says so.
      const small = place.querySelector(":scope > template");
      if (narrow && small) { place.classList.add("small"); place.replaceChildren(document.importNode(small.content, true)); }
      else if (narrow && place.scrollWidth > place.clientWidth + 1) place.classList.add("slides");
    }
    for (const table of inside(root, ".wide table")) stacked(table);
    for (const table of inside(root, "table.sortable")) sortable(table);
    for (const table of inside(root, ".wide table")) if (table.id && !table.closest("template")) render(table);
    for (const input of inside(root, "[data-filter], [data-least]"))
      input.addEventListener("input", () => filter(input.dataset.filter || input.dataset.least));
    for (const box of inside(root, "[data-linear]"))
      box.addEventListener("change", () => {
        for (const part of box.closest(".either").querySelectorAll("[data-scale-is]")) {
          part.hidden = (part.dataset.scaleIs === "linear") !== box.checked;
          if (!part.hidden) unfold(part);
        }
      });
    for (const group of inside(root, ".series")) switched(group);
    for (const input of inside(root, "[data-wanted]")) {
      input.addEventListener("input", () => ways(input));
      ways(input);
    }
    for (const part of inside(root, "details.later")) part.addEventListener("toggle", () => { if (part.open) unfold(part); });
  };
  prepare(document.documentElement);
  for (const [when, now] of [["beforeprint", true], ["afterprint", false]])
    addEventListener(when, () => { printing = now; for (const table of known.keys()) if (table.id) render(table); });

  let tip = null;
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element ? event.target.closest("[data-says]") : null;
    if (!mark) { tip?.remove(); tip = null; return; }
    if (!tip) { tip = make("div", { id: "tip", "aria-hidden": "true" }); document.body.append(tip); }
    tip.textContent = mark.dataset.says + (mark.dataset.link ? " (click: its questions)" : "");
    const box = tip.getBoundingClientRect();
    // The policy forbids style attributes in markup; the object model may set them.
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + box.height + 24 > innerHeight ? event.clientY - box.height - 8 : event.clientY + 16}px`;
  });
  // A mark leads to the questions behind it: on this page, or on the release's own.
  document.addEventListener("click", (event) => {
    const mark = event.target instanceof Element ? event.target.closest("[data-link]") : null;
    if (!mark) return;
    const here = document.getElementById("found");
    if (here) { location.hash = mark.dataset.link; here.scrollIntoView(); }
    else if (document.querySelector('nav a[href="questions.html"]')) location.href = `questions.html#${mark.dataset.link}`;
  });
})();
