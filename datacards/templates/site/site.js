"use strict";
// Tables that sort and filter, marks that say their value, and a choice of scale. Text stays text.
(() => {
  const value = (row, column) => {
    const cell = row.cells[column];
    const told = cell.dataset.v;
    if (told === undefined) return cell.textContent.trim().toLowerCase();
    return told === "" ? null : Number(told);
  };
  const compare = (a, b) =>
    a === null ? (b === null ? 0 : 1) : b === null ? -1 : typeof a === "string" ? a.localeCompare(b) : a - b;

  // On a phone a row stands as a card whose cells carry their headings; roles keep it a table.
  for (const table of document.querySelectorAll(".wide table")) {
    const heads = [...(table.tHead?.rows[0]?.cells || [])].map((head) => head.textContent.trim());
    table.classList.add("stack");
    table.setAttribute("role", "table");
    for (const part of [table.tHead, ...table.tBodies]) part?.setAttribute("role", "rowgroup");
    for (const row of table.rows) {
      row.setAttribute("role", "row");
      [...row.cells].forEach((cell, k) => {
        const heading = cell.tagName === "TH" ? (row.parentElement === table.tHead ? "columnheader" : "rowheader") : "cell";
        cell.setAttribute("role", heading);
        if (k && row.parentElement !== table.tHead) {
          cell.dataset.label = heads[k] || "";
          cell.classList.toggle("none", cell.textContent.trim() === "–");
        }
      });
    }
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const choice = document.createElement("select");
    choice.append(new Option("as it stands", ""), ...[...table.tHead.rows[0].cells].map((head, k) => new Option(head.textContent.trim(), k)));
    const label = document.createElement("label");
    label.className = "phone";
    label.append("Sort by ", choice);
    table.closest(".wide").before(label);
    choice.addEventListener("change", () => {
      if (choice.value !== "") table.tHead.rows[0].cells[Number(choice.value)].querySelector("button").click();
    });
    [...table.tHead.rows[0].cells].forEach((head, column) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...head.childNodes);
      head.append(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending" || (head.classList.contains("n") && !head.hasAttribute("aria-sort"));
        for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows].map((row) => [value(row, column), row]);
        // What is not known stays last either way.
        rows.sort(([a], [b]) => (a === null || b === null || !down ? compare(a, b) : compare(b, a)));
        table.tBodies[0].append(...rows.map(([, row]) => row));
      });
    });
  }

  const filter = (id) => {
    const table = document.getElementById(id);
    const words = document.querySelector(`[data-filter="${id}"]`)?.value.trim().toLowerCase() || "";
    const least = document.querySelector(`[data-least="${id}"]`);
    let shown = 0;
    for (const row of table.tBodies[0].rows) {
      let keep = row.textContent.toLowerCase().includes(words);
      if (keep && least && least.value !== "") {
        const found = value(row, Number(least.dataset.column));
        keep = found !== null && found * Number(least.dataset.scale || 1) >= Number(least.value);
      }
      row.hidden = !keep;
      shown += keep ? 1 : 0;
    }
    const count = document.querySelector(`[data-count="${id}"]`);
    if (count) count.textContent = `${shown} of ${table.tBodies[0].rows.length} shown`;
  };
  for (const input of document.querySelectorAll("[data-filter], [data-least]"))
    input.addEventListener("input", () => filter(input.dataset.filter || input.dataset.least));

  for (const box of document.querySelectorAll("[data-linear]"))
    box.addEventListener("change", () => {
      for (const part of box.closest(".either").querySelectorAll("[data-scale-is]"))
        part.hidden = (part.dataset.scaleIs === "linear") !== box.checked;
    });

  // Curves are switched on and off one by one; of many only the best ten are shown at first.
  const MOST = 10;
  for (const group of document.querySelectorAll(".series")) {
    const items = [...group.querySelectorAll(".legend li")];
    const shown = items.map((item) => items.length <= MOST + 4 || Number(item.dataset.rank) < MOST);
    const redraw = () => {
      for (const mark of group.querySelectorAll("[data-series]")) mark.classList.toggle("off", !shown[Number(mark.dataset.series)]);
    };
    items.forEach((item, k) => {
      const box = document.createElement("input");
      box.type = "checkbox";
      box.checked = shown[k];
      box.addEventListener("change", () => { shown[k] = box.checked; redraw(); });
      const label = document.createElement("label");
      label.append(box, " ", ...item.childNodes);
      item.append(label);
    });
    const both = [true, false].map((all) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = all ? "show all curves" : "hide all curves";
      button.addEventListener("click", () => {
        shown.fill(all);
        for (const box of group.querySelectorAll(".legend input")) box.checked = all;
        redraw();
      });
      return button;
    });
    group.querySelector(".legend").after(...both);
    redraw();
  }

  // The least cost at which each router and each single model reaches the accuracy asked for.
  const ways = (input) => {
    const table = document.getElementById(input.dataset.wanted), least = Number(input.value) / 100;
    const rows = [...table.tBodies[0].rows].map((row) => [JSON.parse(row.dataset.steps).find(([, y]) => y >= least - 1e-9) || null, row]);
    rows.sort(([a], [b]) => compare(a && a[0], b && b[0]));
    for (const [step, row] of rows) {
      row.cells[1].textContent = step ? step[0].toLocaleString("en", { maximumSignificantDigits: 4 }) : "not reached";
      row.cells[2].textContent = step ? `${(100 * step[1]).toFixed(1)} %` : "–";
      row.cells[2].classList.toggle("none", !step);
    }
    table.tBodies[0].append(...rows.map(([, row]) => row));
    const told = (kind, none) => {
      const best = rows.find(([step, row]) => step && row.dataset.kind === kind);
      return best ? `${best[1].cells[0].textContent} (${best[1].cells[1].textContent} ${table.dataset.unit})` : none;
    };
    document.querySelector(`[data-cheapest="${table.id}"]`).textContent =
      `Cheapest router: ${told("router", "none reaches it")}. Cheapest single model: ${told("model", "none reaches it")}.`;
  };
  for (const input of document.querySelectorAll("[data-wanted]")) {
    input.addEventListener("input", () => ways(input));
    ways(input);
  }

  let tip = null;
  document.addEventListener("pointermove", (event) => {
    const mark = event.target instanceof Element ? event.target.closest("[data-says]") : null;
    if (!mark) { tip?.remove(); tip = null; return; }
    if (!tip) { tip = document.createElement("div"); tip.id = "tip"; tip.setAttribute("aria-hidden", "true"); document.body.append(tip); }
    tip.textContent = mark.dataset.says;
    const box = tip.getBoundingClientRect();
    // The policy forbids style attributes in markup; the object model may set them.
    tip.style.left = `${Math.max(4, Math.min(event.clientX + 12, innerWidth - box.width - 8))}px`;
    tip.style.top = `${event.clientY + box.height + 24 > innerHeight ? event.clientY - box.height - 8 : event.clientY + 16}px`;
  });
})();
