"use strict";
// A click on a column's name sorts by it: upwards, then downwards.
function order(row, column) {
  const cell = row.cells[column];
  return "order" in cell.dataset ? Number(cell.dataset.order) : cell.textContent;
}
function compare(a, b, sign) {
  // a place without a number comes last in both directions
  if (typeof a !== typeof b) return typeof a === "number" ? -1 : 1;
  return sign * (typeof a === "number" ? a - b : a.localeCompare(b, undefined, { numeric: true }));
}
function sort(header) {
  const upwards = header.getAttribute("aria-sort") !== "ascending";
  const body = header.closest("table").tBodies[0];
  const sign = upwards ? 1 : -1;
  for (const other of header.parentNode.cells) other.setAttribute("aria-sort", "none");
  header.setAttribute("aria-sort", upwards ? "ascending" : "descending");
  const rows = [...body.rows].map((row) => [order(row, header.cellIndex), row]);
  rows.sort(([a], [b]) => compare(a, b, sign));
  body.append(...rows.map(([, row]) => row));
}
for (const header of document.querySelectorAll("thead th")) {
  const button = document.createElement("button");
  button.type = "button";
  button.append(...header.childNodes);
  header.append(button);
  header.setAttribute("aria-sort", "none");
  const first = header.closest("table").tBodies[0].rows[0];
  if (first && first.cells[header.cellIndex].classList.contains("number")) header.classList.add("number");
  button.addEventListener("click", () => sort(header));
}
// Everything is printed.
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details")) part.open = true;
});
