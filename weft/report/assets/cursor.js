"use strict";
// One cursor over all figures over time: a line in each, and each curve's value there in its button. They zoom together.

const timed = Object.keys(figures).filter((name) => figures[name].drawing === "times");

// A curve's value at a time: its last sample until then, or, where samples are of the time before them, the next one.
function valueAt({ x, y }, holds, time) {
  let low = 0, high = x.length; // the first sample after the time
  while (low < high) {
    const middle = (low + high) >> 1;
    if (x[middle] <= time) low = middle + 1; else high = middle;
  }
  const found = holds === "after" && x[low - 1] !== time ? low : low - 1;
  return y[found];
}

function show(time) {
  for (const name of timed) {
    const plot = place(name), axis = plot._fullLayout.xaxis, size = plot._fullLayout._size;
    let line = plot.querySelector(":scope > .cursor");
    if (!line) {
      line = document.createElement("div");
      line.className = "cursor";
      plot.append(line);
    }
    const at = time === null ? -1 : axis.d2p(time);
    line.hidden = at < 0 || at > axis._length;
    Object.assign(line.style, { left: `${axis._offset + at}px`, top: `${size.t}px`, height: `${size.h}px` });
    document.querySelectorAll(`#chips-${name} button:not(.choice)`).forEach((button, number) => {
      const value = time === null ? undefined : valueAt(figures[name].curves[number], figures[name].holds, time);
      let output = button.querySelector("output");
      if (!output) button.append(output = document.createElement("output"));
      output.textContent = value === undefined ? "" : `${+value.toPrecision(4)} ${figures[name].y.unit}`;
    });
  }
}

for (const name of timed) {
  const plot = place(name);
  plot.addEventListener("pointermove", (event) => {
    const axis = plot._fullLayout.xaxis, at = event.clientX - plot.getBoundingClientRect().left - axis._offset;
    show(at >= 0 && at <= axis._length ? axis.p2d(at) : null);
  });
  plot.addEventListener("pointerleave", () => show(null));
  plot.on("plotly_relayout", (changed) => {
    const keys = Object.keys(changed).filter((key) => key.startsWith("xaxis."));
    if (!keys.length) return;
    const wanted = plot._fullLayout.xaxis.range;
    for (const other of timed.filter((each) => each !== name)) {
      const range = place(other)._fullLayout.xaxis.range;
      // The other figure's own event comes back here, and finds the ranges equal.
      if (range[0] !== wanted[0] || range[1] !== wanted[1]) Plotly.relayout(place(other), { "xaxis.range": [...wanted] });
    }
  });
}
