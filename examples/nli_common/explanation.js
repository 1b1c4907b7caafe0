"use strict";

// Without this script the page is a set of tables; with it each becomes a grid that answers to pointer and keys.

const data = JSON.parse(document.getElementById("explanation").textContent);
const readout = document.getElementById("readout");
const controls = document.getElementById("controls");

class Grid {
  constructor(table) {
    this.table = table;
    this.kind = table.dataset.kind;
    this.view = table.closest(".view");
    this.rows = [...table.tBodies[0].rows];
    this.columnHeads = [...table.tHead.rows[table.tHead.rows.length - 1].cells];
    this.place = [0, 0];
    this.marked = [];
    table.setAttribute("role", "grid");
    table.setAttribute("aria-readonly", "true");
    for (const row of table.rows) row.setAttribute("role", "row");
    for (const row of this.rows) for (const cell of row.cells) if (cell.tagName === "TD") cell.setAttribute("role", "gridcell");
    table.parentElement.removeAttribute("tabindex"); // the grid itself takes the keys now
    this.cell(0, 0).tabIndex = 0;
    table.addEventListener("pointerover", (event) => this.at(event.target, (i, j) => show(this, i, j)));
    table.addEventListener("pointerleave", () => rest());
    table.addEventListener("click", (event) => this.at(event.target, (i, j) => this.go(i, j)));
    table.addEventListener("focusin", (event) => this.at(event.target, (i, j) => show(this, i, j)));
    table.addEventListener("focusout", () => rest());
    table.addEventListener("keydown", (event) => this.press(event));
  }

  cell(i, j) {
    return this.rows[i].cells[j + 1];
  }

  at(target, act) {
    const cell = target.closest("tbody td");
    if (cell) act(cell.parentElement.sectionRowIndex, cell.cellIndex - 1);
  }

  press(event) {
    const [i, j] = this.place;
    const bottom = this.rows.length - 1;
    const right = this.rows[0].cells.length - 2;
    const places = {
      ArrowUp: [i - 1, j],
      ArrowDown: [i + 1, j],
      ArrowLeft: [i, j - 1],
      ArrowRight: [i, j + 1],
      Home: [event.ctrlKey ? 0 : i, 0],
      End: [event.ctrlKey ? bottom : i, right],
    };
    if (!(event.key in places) || event.altKey || event.metaKey) return;
    event.preventDefault();
    const [row, column] = places[event.key];
    this.go(Math.min(Math.max(row, 0), bottom), Math.min(Math.max(column, 0), right));
  }

  // Only one cell of a grid is in the order of Tab.
  settle(i, j) {
    this.cell(...this.place).tabIndex = -1;
    this.place = [i, j];
    this.cell(i, j).tabIndex = 0;
  }

  go(i, j) {
    this.settle(i, j);
    this.cell(i, j).focus();
  }

  mark(i, j) {
    const row = [...this.rows[i].cells];
    const column = this.rows.map((each) => each.cells[j + 1]);
    for (const cell of [...row, ...column, this.columnHeads[j + 1]]) cell.classList.add("line");
    this.cell(i, j).classList.add("hot");
    this.marked = [...row, ...column, this.columnHeads[j + 1]];
  }

  unmark() {
    for (const cell of this.marked) cell.classList.remove("line", "hot");
    this.marked = [];
  }

  told(i, j) {
    if (this.view) {
      const { beta, alpha } = data.alignments[this.table.dataset.view];
      return [
        ["premise", data.premise[i]],
        ["hypothesis", data.hypothesis[j]],
        ["β", number(beta[i][j])],
        ["α", number(alpha[j][i])],
      ];
    }
    const name = data.features.names[j].replaceAll("_", " ");
    return [
      [this.kind, data[this.kind][i + data.leading]],
      [name, number(data.features[this.kind][i][j])],
    ];
  }
}

function number(value) {
  return value.toFixed(4).replace("-", "−");
}

function show(grid, i, j) {
  for (const each of grids) each.unmark();
  for (const each of grids) if (each === grid || (grid.view && each.view === grid.view)) each.mark(i, j);
  const parts = grid.told(i, j).map(([name, value]) => {
    const part = document.createElement("span");
    const told = document.createElement("bdi");
    told.textContent = value;
    part.append(`${name} `, told);
    return part;
  });
  readout.replaceChildren(...parts.flatMap((part, k) => (k ? [", ", part] : [part])));
}

// Where nothing is pointed at, the focused cell is shown.
function rest() {
  const cell = document.activeElement.closest("[role=gridcell]");
  if (cell) {
    const grid = grids.find((each) => each.table.contains(cell));
    show(grid, ...grid.place);
  } else {
    for (const each of grids) each.unmark();
  }
}

function choose() {
  const before = grids.find((grid) => grid.view && !grid.view.hidden);
  for (const view of document.querySelectorAll(".view")) {
    view.hidden = ["block", "head"].some((name) => controls[name] && controls[name].value !== view.dataset[name]);
  }
  for (const table of document.querySelectorAll(".view:not([hidden]) table:not([role])")) grids.push(new Grid(table));
  for (const grid of grids) if (before && grid.view && !grid.view.hidden) grid.settle(...before.place);
}

function write() {
  document.body.classList.toggle("bare", !controls.numbers.checked);
}

const grids = [...document.querySelectorAll(".features table")].map((table) => new Grid(table));
document.documentElement.classList.add("live");
readout.hidden = false;
if (controls) {
  controls.hidden = false;
  controls.addEventListener("submit", (event) => event.preventDefault());
  for (const name of ["block", "head"]) controls[name]?.addEventListener("change", choose);
  controls.numbers.addEventListener("change", write);
  choose();
  const scroller = document.querySelector(".view:not([hidden]) .scroll");
  controls.numbers.checked = scroller.scrollWidth <= scroller.clientWidth;
  write();
}
