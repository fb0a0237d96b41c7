"use strict";
// Draws the figures from the page's data, in the reader's theme; sorts tables; zooms the topology.

const { figures, phases } = JSON.parse(document.getElementById("data").textContent);
// Okabe and Ito's colours, and dashes beside them from the ninth curve on.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6bb1", "#7f8c2d"];
const DASHES = ["solid", "dot"];
const KINDS = {
  delay: ["compute", "#8c6bb1"], write: ["write", "#0072b2"], aggregate: ["aggregate in the network", "#d55e00"],
  wait: ["wait for a message", "#9aa8b5"],
};
const LANE_HEIGHT = 0.22;

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";

function layout(xTitle, yTitle, more = {}) {
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"), linecolor: style("--line") };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif", size: 12, color: style("--text") },
    margin: { l: 70, r: 20, t: 40, b: 48 }, hovermode: "closest", hoverlabel: { namelength: -1 },
    legend: { orientation: "h", y: -0.25, yanchor: "top" },
    modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--quiet"), activecolor: style("--text") },
    xaxis: { title: { text: xTitle }, ...axis, ...xaxis }, yaxis: { title: { text: yTitle }, ...axis, ...yaxis },
    ...rest,
  };
}

// Bands behind a figure over time, one for each phase of the traffic.
function phaseBands() {
  const shapes = phases.map((phase, number) => ({
    type: "rect", layer: "below", xref: "x", yref: "paper", x0: phase.start, x1: phase.end, y0: 0, y1: 1,
    line: { width: 0 }, fillcolor: isDark() ? "#ffffff" : "#33475b", opacity: number % 2 ? 0.04 : 0.09,
  }));
  const annotations = phases.length > 12 ? [] : phases.map((phase) => ({
    x: phase.start, y: 1, xref: "x", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false,
    text: phase.name.length > 34 ? `${phase.name.slice(0, 33)}…` : phase.name,
    font: { size: 10, color: style("--quiet") },
    textangle: 0,
  }));
  return { shapes, annotations: spread(annotations) };
}

// Labels of phases that begin close to each other would cover each other: every second one, then, is left out.
function spread(annotations) {
  const span = Math.max(1e-9, phases[phases.length - 1]?.end - phases[0]?.start);
  let last = -Infinity;
  return annotations.filter((label) => {
    const fits = label.x - last > span * 0.14;
    if (fits) last = label.x;
    return fits;
  });
}

const lines = (figure, unit, shape) => figure.curves.map((curve, number) => ({
  type: "scatter", mode: "lines", name: curve.name, x: curve.x, y: curve.y,
  line: { color: COLOURS[number % COLOURS.length], dash: DASHES[Math.floor(number / COLOURS.length) % 2], width: 1.6, shape },
  hovertemplate: `%{fullData.name}<br>%{x:.3f} µs: %{y:.4~g} ${unit}<extra></extra>`,
}));

const shares = (figure, what) => figure.curves.map((curve, number) => ({
  type: "scatter", mode: "lines", name: curve.name, x: curve.x, y: curve.y,
  line: { color: COLOURS[number % COLOURS.length], dash: DASHES[Math.floor(number / COLOURS.length) % 2], width: 2, shape: "hv" },
  hovertemplate: `%{fullData.name}<br>%{y:.1%} at most %{x:.4~g} ${what}<extra></extra>`,
}));

function timeline(figure) {
  const names = Object.keys(KINDS);
  const traces = figure.bars.map((bar) => ({
    type: "bar", orientation: "h", name: KINDS[bar.kind][0], y: bar.rows, base: bar.base, x: bar.length,
    width: LANE_HEIGHT, offset: -0.44 + names.indexOf(bar.kind) * LANE_HEIGHT,
    marker: { color: KINDS[bar.kind][1], line: { width: 0 } },
    customdata: bar.base.map((base, row) => base + bar.length[row]),
    hovertemplate: "%{y}: %{fullData.name}<br>%{base:.3f} to %{customdata:.3f} µs<extra></extra>",
  }));
  document.getElementById("figure-timeline").style.height = `${Math.max(260, 130 + 30 * figure.hosts.length)}px`;
  return [traces, layout("time (µs)", "", {
    barmode: "overlay", yaxis: { categoryorder: "array", categoryarray: [...figure.hosts].reverse() }, ...phaseBands(),
    annotations: [], margin: { l: 70, r: 20, t: 40, b: 80 }, legend: { orientation: "h", yref: "container", y: 0, yanchor: "bottom" },
  })];
}

function heat(figure) {
  document.getElementById("figure-heat").style.height = `${Math.max(240, 110 + 16 * figure.rows.length)}px`;
  return [[{
    type: "heatmap", x: figure.x, y: figure.rows, z: figure.z, colorscale: "Cividis",
    colorbar: { title: { text: "kB" }, thickness: 12, outlinewidth: 0 },
    hovertemplate: "%{y}<br>%{x:.3f} µs: %{z:.4~g} kB<extra></extra>",
  }], layout("time (µs)", "", { margin: { l: 120, r: 20, t: 36, b: 48 }, yaxis: { autorange: "reversed", type: "category" } })];
}

const DRAWN = {
  queues: (figure) => [lines(figure, "kB", "hv"), layout("time (µs)", "waiting (kB)", phaseBands())],
  rates: (figure) => [lines(figure, "Gb/s", "vh"), layout("time (µs)", "rate (Gb/s)", phaseBands())],
  int: (figure) => [lines(figure, "kB", "hv"), layout("time (µs)", "waiting (kB)", phaseBands())],
  heat, timeline,
  fct: (figure) => [shares(figure, "µs"), layout("completion time (µs)", "share of messages", {
    xaxis: { type: "log" }, yaxis: { tickformat: ".0%", range: [0, 1.02] } })],
  slowdown: (figure) => [shares(figure, "times the ideal"), layout("slowdown", "share of messages", {
    xaxis: { type: "log" }, yaxis: { tickformat: ".0%", range: [0, 1.02] } })],
};

function draw() {
  for (const [name, figure] of Object.entries(figures)) {
    const [traces, form] = DRAWN[name](figure);
    Plotly.react(`figure-${name}`, traces, form, { responsive: true, displaylogo: false, modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"] });
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  draw();
}

const darkness = matchMedia("(prefers-color-scheme: dark)");
darkness.addEventListener("change", () => setTheme(darkness.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));

// --- tables

const value = (row, column) => {
  const text = row.cells[column].textContent;
  const number = Number.parseFloat(text.replace(/\u202f/g, ""));
  return row.cells[column].className === "number" || /^[\d.]+ ?%$/.test(text) ? number : text;
};

for (const head of document.querySelectorAll("thead th")) {
  head.tabIndex = 0;
  const sort = () => {
    const body = head.closest("table").tBodies[0];
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of head.parentNode.children) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const rows = [...body.rows].sort((a, b) => {
      const [x, y] = [value(a, head.cellIndex), value(b, head.cellIndex)];
      return (x < y ? -1 : x > y ? 1 : 0) * (down ? -1 : 1);
    });
    body.append(...rows);
  };
  head.addEventListener("click", sort);
  head.addEventListener("keydown", (event) => { if (event.key === "Enter") sort(); });
}

// --- topology

const svg = document.querySelector(".drawing svg");
const whole = svg.getAttribute("viewBox").split(" ").map(Number);
let view = [...whole];
const show = () => svg.setAttribute("viewBox", view.join(" "));
svg.addEventListener("wheel", (event) => {
  if (!event.ctrlKey) return;
  event.preventDefault();
  const factor = Math.exp(event.deltaY * 0.0015);
  const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
  view = [at.x + (view[0] - at.x) * factor, at.y + (view[1] - at.y) * factor, view[2] * factor, view[3] * factor];
  show();
}, { passive: false });
svg.addEventListener("pointermove", (event) => {
  if (!event.buttons) return;
  const scale = 1 / svg.getScreenCTM().a;
  view[0] -= event.movementX * scale;
  view[1] -= event.movementY * scale;
  show();
});
svg.addEventListener("dblclick", () => { view = [...whole]; show(); });

setTheme(darkness.matches ? "dark" : "light");
