"use strict";
// Drawings of topologies zoom and move.

function zoomable(box) {
  const svg = box.querySelector("svg");
  const whole = svg.getAttribute("viewBox").split(" ").map(Number);
  let view = [...whole];
  const show = () => {
    svg.setAttribute("viewBox", view.join(" "));
    box.classList.toggle("zoomed", view[2] < whole[2] * 0.99);
  };
  const zoom = (factor, x, y) => {
    view = [x + (view[0] - x) * factor, y + (view[1] - y) * factor, view[2] * factor, view[3] * factor];
    show();
  };
  svg.addEventListener("wheel", (event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    zoom(Math.exp(event.deltaY * 0.0015), at.x, at.y);
  }, { passive: false });
  svg.addEventListener("pointermove", (event) => {
    if (!event.buttons || !box.classList.contains("zoomed")) return;
    const scale = 1 / svg.getScreenCTM().a;
    view[0] -= event.movementX * scale;
    view[1] -= event.movementY * scale;
    show();
  });
  for (const button of box.closest("section").querySelectorAll("[data-zoom]")) {
    button.addEventListener("click", () => {
      const factor = Number(button.dataset.zoom);
      if (factor) return zoom(factor, view[0] + view[2] / 2, view[1] + view[3] / 2);
      view = [...whole];
      show();
    });
  }
}

for (const drawing of document.querySelectorAll(".drawing")) zoomable(drawing);
