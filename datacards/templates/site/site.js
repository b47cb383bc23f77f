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

  for (const table of document.querySelectorAll("table.sortable")) {
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
