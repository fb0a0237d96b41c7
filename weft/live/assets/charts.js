// Charts of the chosen ports over the last minutes, as SVG.

// Okabe and Ito's colours; dashes distinguish those from the fifth on.
const CURVES = ["#0072b2", "#e69f00", "#009e73", "#cc79a7", "#d55e00", "#56b4e9", "#8c6bb1", "#7f8c2d"];
const WIDTH = 400, HEIGHT = 170, LEFT = 46, RIGHT = 6, TOP = 8, BOTTOM = 20;
const SVG = "http://www.w3.org/2000/svg";

const dashOf = (number) => (number % CURVES.length < 4 ? "" : "5 3");

function shape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// A number with the prefix of its size: 12.5 k.
function si(value, unit) {
  for (const [factor, prefix] of [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (Math.abs(value) >= factor) return `${+(value / factor).toPrecision(3)} ${prefix}${unit}`;
  }
  return `${+value.toPrecision(3)} ${unit}`.trimEnd();
}

// The least of 1, 2 and 5 times a power of ten that is no less.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 5, 10].find((step) => step * power >= value) * power;
}

const ago = (seconds) => (seconds >= 60 ? `${+(seconds / 60).toFixed(1)} min ago` : `${Math.round(seconds)} s ago`);

// One chart: `curves` are lists of values, one for each of `ages`; what is null is not known.
function chart(title, unit, ages, curves) {
  const box = document.createElement("div");
  box.className = "chart";
  const head = document.createElement("h3");
  head.textContent = title;
  const svg = shape("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": title });
  const longest = Math.max(10, ages[0] ?? 0);
  const highest = roundUp(Math.max(1e-9, ...curves.flat().filter((value) => value !== null)) || 1);
  const top = highest <= 1e-8 ? 1 : highest;
  const x = (age) => WIDTH - RIGHT - (age / longest) * (WIDTH - LEFT - RIGHT);
  const y = (value) => HEIGHT - BOTTOM - (value / top) * (HEIGHT - TOP - BOTTOM);
  for (const part of [0, 0.5, 1]) {
    svg.append(shape("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: y(part * top), y2: y(part * top) }));
    svg.append(shape("text", { x: LEFT - 4, y: y(part * top) + 3, "text-anchor": "end" }, si(part * top, unit)));
  }
  for (const [part, anchor] of [[1, "start"], [0.5, "middle"]]) {
    svg.append(shape("text", { x: x(part * longest), y: HEIGHT - 5, "text-anchor": anchor }, ago(part * longest)));
  }
  svg.append(shape("text", { x: WIDTH - RIGHT, y: HEIGHT - 5, "text-anchor": "end" }, "now"));
  curves.forEach((values, number) => {
    const points = values.map((value, place) => (value === null ? "" : `${x(ages[place]).toFixed(1)},${y(value).toFixed(1)}`));
    svg.append(shape("polyline", {
      points: points.filter(Boolean).join(" "), stroke: CURVES[number % CURVES.length], "stroke-dasharray": dashOf(number),
    }));
  });
  box.append(head, svg);
  return box;
}
