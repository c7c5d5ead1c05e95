/* A click on a column's head sorts by it: all is there without. */
"use strict";
function sortKey(row, column) {
  const text = row.cells[column].textContent.trim().replace("−", "-");
  const found = /^[-+×±]?\s*([-\d.]+(?:e[-+]?\d+)?)\s*(\S*)/.exec(text);
  if (found === null) return { text: text, number: NaN };
  const units = { ns: 1e-9, "µs": 1e-6, ms: 1e-3, KiB: 1024, MiB: 1048576,
                  GiB: 1073741824, k: 1e3, M: 1e6, G: 1e9 };
  return { text: text, number: Number(found[1]) * (units[found[2]] || 1) };
}
for (const table of document.querySelectorAll("table.sortable")) {
  const heads = table.querySelectorAll("thead th");
  heads.forEach(function (head, column) {
    head.style.cursor = "pointer";
    head.title = "sort";
    head.addEventListener("click", function () {
      const down = head.dataset.sorted !== "down";
      for (const other of heads) delete other.dataset.sorted;
      head.dataset.sorted = down ? "down" : "up";
      const body = table.tBodies[0];
      const rows = Array.from(body.rows).map(function (row) {
        return { row: row, key: sortKey(row, column) };
      });
      rows.sort(function (a, b) {
        const x = a.key, y = b.key;
        const order = isNaN(x.number) || isNaN(y.number)
          ? isNaN(x.number) - isNaN(y.number) || x.text.localeCompare(y.text)
          : y.number - x.number;
        return down ? order : -order;
      });
      for (const item of rows) body.appendChild(item.row);
    });
  });
}
