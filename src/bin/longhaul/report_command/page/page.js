// Tables can be sorted by their columns. The page is complete without this.
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = [...table.tHead.rows[0].cells];
  const key = (row, at) => {
    const cell = row.cells[at];
    const number = cell.querySelector("data");
    return number ? Number(number.value) : cell.textContent.trim();
  };
  const compare = (a, b) => {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return String(a).localeCompare(String(b), "en", { numeric: true });
  };
  heads.forEach((head, at) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const first = head.classList.contains("number") ? "descending" : "ascending";
      const second = first === "descending" ? "ascending" : "descending";
      const order = head.getAttribute("aria-sort") === first ? second : first;
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order);
      const sign = order === "ascending" ? 1 : -1;
      const body = table.tBodies[0];
      const rows = [...body.rows];
      rows.sort((a, b) => sign * compare(key(a, at), key(b, at)));
      body.append(...rows);
    });
  });
}
