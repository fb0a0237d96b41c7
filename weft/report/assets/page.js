"use strict";
// Draws the figures from the page's data, in the reader's theme; sorts tables.

const { figures, phases = [], events = [] } = JSON.parse(document.getElementById("data").textContent);
// Okabe and Ito's colours, and dashes beside them from the ninth curve on.
const COLOURS = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6bb1", "#7f8c2d"];
const DASHES = ["solid", "dot"];
const KINDS = {
  delay: ["compute", "#8c6bb1"], write: ["write", "#0072b2"], aggregate: ["aggregate in the network", "#d55e00"],
  wait: ["wait for a message", "#9aa8b5"], pause: ["paused", "#d55e00"],
};
const LANES = ["delay", "write", "aggregate", "wait"];
const LANE_HEIGHT = 0.22;
const LETTER = 5.6; // pixels, of a label
const NARROW = 640; // as in page.css

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const isDark = () => document.documentElement.dataset.theme === "dark";
const isNarrow = () => document.documentElement.clientWidth <= NARROW;
const place = (name) => document.getElementById(`figure-${name}`);
const colour = (number) => COLOURS[number % COLOURS.length];
const dash = (number) => DASHES[Math.floor(number / COLOURS.length) % 2];

const si = (value) => (value >= 1e6 ? `${value / 1e6}M` : value >= 1e4 ? `${value / 1e3}k` : `${+value.toPrecision(3)}`);

// A logarithmic axis for these values, with whole numbers at as many marks as have room.
function logAxis(values, isAcross) {
  const known = values.filter((value) => value > 0);
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = isNarrow() && isAcross ? 4 : 9;
  const decades = Math.log10(high / low) || 1;
  const steps = [[1, 1.2, 1.5, 2, 3, 4, 5, 7], [1, 2, 5], [1]].find((each) => each.length * decades <= room) ?? [1];
  const ticks = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.ceil(Math.log10(high)); power += 1) {
    for (const step of steps) ticks.push(+(step * 10 ** power).toPrecision(4));
  }
  return { type: "log", tickmode: "array", tickvals: ticks, ticktext: ticks.map(si) };
}

const all = (figure, side) => figure.curves.flatMap((curve) => curve[side]);

function layout(xTitle, yTitle, more = {}) {
  const axis = { gridcolor: style("--line"), zerolinecolor: style("--line"), linecolor: style("--line"), automargin: true };
  const { xaxis = {}, yaxis = {}, ...rest } = more;
  return {
    paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: { family: "system-ui, 'Segoe UI', 'DejaVu Sans', sans-serif", size: isNarrow() ? 11 : 12, color: style("--text") },
    margin: isNarrow() ? { l: 48, r: 8, t: 26, b: 40 } : { l: 70, r: 20, t: 46, b: 48 },
    hovermode: "closest", hoverlabel: { namelength: -1 }, showlegend: false,
    // A finger that moves over a figure scrolls the page.
    dragmode: matchMedia("(pointer: coarse)").matches ? false : "zoom",
    modebar: { bgcolor: "rgba(0,0,0,0)", color: style("--quiet"), activecolor: style("--text") },
    xaxis: { title: { text: xTitle }, nticks: isNarrow() ? 5 : 0, ...axis, ...xaxis },
    yaxis: { title: { text: yTitle }, ...axis, ...yaxis },
    ...rest,
  };
}

// What is behind, or over, a figure over time: a numbered band for each phase, a line for each failure and repair.
function marks(figure, name, layer = "below") {
  const [begin, end] = extent(figure);
  const beside = figure.rows ? 9 * Math.max(...figure.rows.map((row) => row.length)) + 70 : 100;
  const pixels = Math.max(1, place(name).clientWidth - beside) / Math.max(1e-9, end - begin);
  const bands = phases.map((phase, number) => ({
    type: "rect", layer, xref: "x", yref: "paper", x0: phase.start, x1: phase.end, y0: 0, y1: 1,
    line: { width: layer === "above" ? 1 : 0, color: style("--quiet") },
    fillcolor: layer === "above" ? "rgba(0,0,0,0)" : isDark() ? "#ffffff" : "#33475b", opacity: number % 2 ? 0.05 : 0.1,
  }));
  if (layer === "above") for (const band of bands) band.opacity = 0.6;
  const failures = events.map((event) => ({
    type: "line", layer: "above", xref: "x", yref: "paper", x0: event.x, x1: event.x, y0: 0, y1: 1,
    line: { color: event.state === "down" ? "#d1007a" : "#1a7f4b", width: 1.5, dash: "dash" },
  }));
  return { shapes: [...bands, ...failures], annotations: [...phaseLabels(end, pixels), ...eventLabels(pixels)] };
}

// From when to when the figure's data go, in the axis' unit.
function extent(figure) {
  const ends = [phases[0]?.start, phases.at(-1)?.end];
  for (const curve of figure.curves ?? []) ends.push(curve.x[0], curve.x.at(-1));
  if (figure.z) ends.push(figure.x[0], figure.x.at(-1));
  const known = ends.filter((each) => each !== undefined);
  return [Math.min(...known), Math.max(...known)];
}

// A phase has its name where it fits, else the end of it, else its number; nothing where that would cover the one before.
function phaseLabels(last, pixels) {
  let free = -Infinity;
  const labels = [];
  phases.forEach((phase, number) => {
    const left = phase.start * pixels, room = (Math.min(phase.end, last) - phase.start) * pixels;
    const full = `${number + 1} ${phase.name}`, end = `${number + 1} ${phase.name.split(", ").at(-1)}`;
    const text = [full, end].find((each) => each.length * LETTER <= room) ?? `${number + 1}`;
    const needed = text.length * LETTER + 3;
    if (left < free) return;
    free = left + needed;
    labels.push({
      x: phase.start, y: 1, xref: "x", yref: "paper", xanchor: "left", yanchor: "bottom", showarrow: false, text,
      hovertext: full, font: { size: 10, color: style("--quiet") },
    });
  });
  return labels;
}

function eventLabels(pixels) {
  let free = -Infinity;
  return events.filter((event) => {
    const fits = event.x * pixels >= free;
    if (fits) free = event.x * pixels + 14;
    return fits;
  }).map((event) => ({
    x: event.x, y: 1, xref: "x", yref: "paper", xanchor: "left", yanchor: "top", textangle: -90, showarrow: false,
    text: event.text, font: { size: 10, color: event.state === "down" ? "#d1007a" : "#1a7f4b" },
  }));
}

const lines = (figure, unit, shape) => figure.curves.map((curve, number) => ({
  type: "scatter", mode: "lines", name: curve.name, x: curve.x, y: curve.y,
  line: { color: colour(number), dash: dash(number), width: 1.6, shape },
  hovertemplate: `%{fullData.name}<br>%{x:.3f} µs: %{y:.4~g} ${unit}<extra></extra>`,
}));

// From when to when all curves over one time axis go.
function wholeTime() {
  const ends = Object.values(figures).filter((each) => each.drawing === "times")
    .flatMap((each) => each.curves.flatMap(({ x }) => [x[0], x.at(-1)])).filter((each) => each !== undefined);
  return [Math.min(...ends), Math.max(...ends)];
}

// Curves of several runs: a colour for each run, dashes for each port.
const times = (figure) => figure.curves.map((curve) => ({
  type: "scatter", mode: "lines", name: curve.name, x: curve.x, y: curve.y,
  line: { color: colour(curve.colour), dash: ["solid", "dot", "dash", "dashdot"][curve.style % 4], width: 1.6, shape: figure.holds === "after" ? "vh" : "hv" },
  hovertemplate: `%{fullData.name}<br>%{x:.3f} µs: %{y:.4~g} ${figure.y.unit}<extra></extra>`,
}));

const shares = (figure, what) => figure.curves.map((curve, number) => ({
  type: "scatter", mode: "lines", name: curve.name, x: curve.x, y: curve.y,
  line: { color: colour(number), dash: dash(number), width: 2, shape: "hv" },
  hovertemplate: `%{fullData.name}<br>%{y:.1%} at most %{x:.4~g} ${what}<extra></extra>`,
}));

// Rows of bars over time, in which each kind of `lanes` has a lane of its own.
function gantt(name, figure, lanes, rowHeight) {
  const height = lanes.length > 1 ? LANE_HEIGHT : 0.7;
  const traces = figure.bars.map((bar) => ({
    type: "bar", orientation: "h", name: KINDS[bar.kind][0], y: bar.rows, base: bar.base, x: bar.length,
    width: height, offset: lanes.length > 1 ? -0.44 + lanes.indexOf(bar.kind) * height : -height / 2,
    marker: { color: KINDS[bar.kind][1], line: { width: 0 } },
    customdata: bar.base.map((base, row) => base + bar.length[row]),
    hovertemplate: "%{y}: %{fullData.name}<br>%{base:.3f} to %{customdata:.3f} µs<extra></extra>",
  }));
  place(name).style.height = `${Math.max(200, 90 + rowHeight * figure.rows.length)}px`;
  return [traces, layout("time (µs)", "", {
    barmode: "overlay", yaxis: { categoryorder: "array", categoryarray: [...figure.rows].reverse() }, ...marks(figure, name),
  })];
}

// Rows over time, spans of several kinds in each.
function spans(figure, name) {
  const traces = figure.bars.map((bar, number) => ({
    type: "bar", orientation: "h", name: bar.kind, y: bar.rows, base: bar.base, x: bar.length, width: 0.7,
    marker: { color: colour(number), line: { width: 0 } }, customdata: bar.base.map((base, row) => base + bar.length[row]),
    hovertemplate: "%{y}: %{fullData.name}<br>%{base:.3f} to %{customdata:.3f} µs<extra></extra>",
  }));
  place(name).style.height = `${Math.max(200, 90 + 18 * figure.rows.length)}px`;
  return [traces, layout("time since the job's start (µs)", "", {
    barmode: "overlay", yaxis: { categoryorder: "array", categoryarray: [...figure.rows].reverse() },
  })];
}

function heat(figure) {
  place("heat").style.height = `${Math.max(220, 90 + 16 * figure.rows.length)}px`;
  return [[{
    type: "heatmap", x: figure.x, y: figure.rows, z: figure.z, colorscale: "Cividis",
    colorbar: { title: { text: "kB" }, thickness: isNarrow() ? 8 : 12, outlinewidth: 0 },
    hovertemplate: "%{y}<br>%{x:.3f} µs: %{z:.4~g} kB<extra></extra>",
  }], layout("time (µs)", "", { yaxis: { autorange: "reversed", type: "category" }, ...marks(figure, "heat", "above") })];
}

// Rows of bars, each stacked from the same parts.
function bars(figure, name) {
  place(name).style.height = `${Math.max(200, 90 + 30 * figure.rows.length)}px`;
  const colours = [...new Set(["#8c6bb1", "#e69f00", ...COLOURS])];
  const traces = Object.entries(figure.parts).map(([part, values], number) => ({
    type: "bar", orientation: "h", name: part, y: figure.rows, x: values, marker: { color: colours[number % colours.length] },
    hovertemplate: `%{y}<br>%{fullData.name}: %{x:.3~f} ${figure.axis.unit}<extra></extra>`,
  }));
  const axes = { xaxis: axis(figure.axis, traces.flatMap((trace) => trace.x), true), yaxis: { autorange: "reversed", type: "category" } };
  return [traces, layout(figure.axis.title, "", { barmode: "stack", ...axes })];
}

// An axis of these values, as its scale says.
function axis({ scale }, values, isAcross) {
  if (scale === "log") return logAxis(values, isAcross);
  return scale === "category" || isAcross ? { type: scale } : { rangemode: "tozero" };
}

// Curves over numbers, bars over categories; points lie behind them.
function curves(figure) {
  // A bar on a logarithmic scale would begin anywhere.
  const isScale = figure.x.scale !== "category", isBar = !isScale && figure.y.scale !== "log";
  const label = `${isScale ? `%{x:.7~g} ${figure.x.unit}` : "%{x}"}: %{y:.5~g} ${figure.y.unit}<extra></extra>`;
  const traces = figure.curves.map((curve, number) => ({
    ...(isBar ? { type: "bar" } : { type: "scatter", mode: isScale ? "lines+markers" : "markers" }),
    marker: { color: colour(number), size: isScale ? 6 : 11 },
    name: curve.name, x: curve.x, y: curve.y, line: { color: colour(number), dash: dash(number), width: 1.8 },
    ...(curve.error ? { error_y: { type: "data", array: curve.error, thickness: 1.2, width: 4, color: colour(number) } } : {}),
    customdata: curve.error ?? [],
    hovertemplate: `%{fullData.name}<br>${label.replace("<extra>", curve.error ? " ± %{customdata:.3~g}<extra>" : "<extra>")}`,
  }));
  if (figure.points) traces.unshift({
    type: "scatter", mode: "markers", name: figure.points.name, x: figure.points.x, y: figure.points.y,
    marker: { color: style("--quiet"), size: 4, opacity: 0.45 }, hovertemplate: label,
  });
  const [x, y] = ["x", "y"].map((side) => traces.flatMap((trace) => trace[side]));
  return [traces, layout(figure.x.title, figure.y.title, {
    barmode: "group", xaxis: axis(figure.x, x, true), yaxis: axis(figure.y, y, false),
  })];
}

const share = { tickformat: ".0%", range: [0, 1.02] };
const DRAWN = {
  queues: (figure, name) => [lines(figure, "kB", "hv"), layout("time (µs)", "waiting (kB)", marks(figure, name))],
  rates: (figure, name) => [lines(figure, "Gb/s", "vh"), layout("time (µs)", "rate (Gb/s)", marks(figure, name))],
  int: (figure, name) => [lines(figure, "kB", "hv"), layout("time (µs)", "waiting (kB)", marks(figure, name))],
  heat,
  timeline: (figure, name) => gantt(name, figure, LANES, 30),
  pauses: (figure, name) => gantt(name, figure, ["pause"], 18),
  memory: (figure, name) => [lines(figure, "kB", "hv"), layout("time (µs)", "held (kB)", marks(figure, name))],
  steps: (figure, name) => [lines(figure, figure.unit, "hv"), layout("time (µs)", figure.unit, { yaxis: { rangemode: "tozero" }, ...marks(figure, name) })],
  curves, bars, spans,
  times: (figure) => [times(figure), layout("time (µs)", figure.y.title, { xaxis: { range: wholeTime() }, yaxis: { rangemode: "tozero" } })],
  fct: (figure) => [shares(figure, "µs"), layout("completion time (µs)", "share of messages", { xaxis: logAxis(all(figure, "x"), true), yaxis: share })],
  slowdown: (figure) => [shares(figure, "times the ideal"), layout("slowdown", "share of messages", { xaxis: logAxis(all(figure, "x"), true), yaxis: share })],
};

// The traces of each figure that the reader does not want to see, by their numbers.
const hidden = {};
const MANY = 4; // traces from which on there are buttons for all and none of them

// Buttons that choose all traces of a figure, or none.
function choices(name, traces) {
  return [["all", true], ["none", false]].map(([text, isShown]) => {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "choice";
    button.textContent = text;
    button.addEventListener("click", () => {
      hidden[name] = new Set(isShown ? [] : traces.keys());
      Plotly.restyle(place(name), { visible: isShown });
      chips(name, traces);
    });
    return button;
  });
}

// The legend: a button for each trace, which takes as many lines as it needs, at any width.
function chips(name, traces) {
  const box = document.getElementById(`chips-${name}`);
  const buttons = (traces.length < 2 && !traces[0]?.name ? [] : traces).map((trace, number) => {
    const button = document.createElement("button");
    const paint = trace.line?.color ?? trace.marker?.color ?? "currentColor";
    const pattern = trace.type === "bar" ? "none" : { dot: "2 3", dash: "5 3", dashdot: "5 3 2 3" }[trace.line?.dash] ?? "none";
    button.type = "button";
    button.setAttribute("aria-pressed", String(!hidden[name].has(number)));
    button.innerHTML = `<svg width="18" height="8" aria-hidden="true"><line x1="0" y1="4" x2="18" y2="4" stroke="${paint}" stroke-width="${trace.type === "bar" ? 8 : 3}" stroke-dasharray="${pattern}"/></svg>`;
    button.append(trace.name ?? "");
    button.addEventListener("click", () => {
      const shown = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(shown));
      if (shown) hidden[name].delete(number); else hidden[name].add(number);
      Plotly.restyle(place(name), { visible: shown }, [number]);
    });
    return button;
  });
  box.replaceChildren(...buttons, ...(traces.length < MANY ? [] : choices(name, traces)));
}

function draw() {
  for (const [name, figure] of Object.entries(figures)) {
    const [traces, form] = DRAWN[figure.drawing ?? name](figure, name);
    hidden[name] ??= new Set([...traces.keys()].slice(figure.drawn ?? traces.length));
    for (const number of hidden[name]) traces[number].visible = false;
    Plotly.react(place(name), traces, form, {
      responsive: true, displaylogo: false, displayModeBar: isNarrow() ? false : "hover",
      modeBarButtonsToRemove: ["select2d", "lasso2d", "autoScale2d"],
    });
    if (traces[0]?.type !== "heatmap") chips(name, traces);
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  draw();
}

const darkness = matchMedia("(prefers-color-scheme: dark)");
darkness.addEventListener("change", () => setTheme(darkness.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => setTheme(isDark() ? "light" : "dark"));
// Labels fit a width: a page that has become narrow, or wide, is drawn anew.
let drawnAt = document.documentElement.clientWidth;
addEventListener("resize", () => {
  if (Math.abs(document.documentElement.clientWidth - drawnAt) < 80) return;
  drawnAt = document.documentElement.clientWidth;
  draw();
});

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

setTheme(darkness.matches ? "dark" : "light");
