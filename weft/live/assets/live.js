// Asks for the lab's state once a second, and shows it. What comes from the lab is only ever shown as text.

const facts = JSON.parse(document.getElementById("facts").textContent);
const token = new URLSearchParams(location.search).get("token") ?? "";
const at = (id) => document.getElementById(id);
const [RATE, QUEUE, MARKED, PAUSES, DROPPED] = facts.series.map((_, number) => number);
const IDLE = facts.series.map(() => 0);
const CHARTS = [
  ["rate_bps", "Sends", "b/s"], ["queue_bytes", "Waits in the queue", "B"], ["marked_packets", "Marked packets, a sample", ""],
  ["pause_frames", "Pauses received, a sample", ""], ["dropped_packets", "Dropped and lost packets, a sample", ""],
];
const EVERY_MS = 1000, ROWS_EVERY_MS = 3000, MOST_EVENTS = 500, MOST_BUSY = 12, AUTOMATIC = 4;
const WIDEST = 9; // pixels, of a line that stands for several links

let state = { links: {}, ports: {}, down: [] };
let nextEvent = 0;
let chosen = null; // by the reader; until then the busiest ports of late
let followed = [];
let lately = new Map();

async function ask(path, query = {}) {
  const answer = await fetch(`${path}?${new URLSearchParams(query)}`, { headers: { Authorization: `Bearer ${token}` } });
  if (!answer.ok) throw new Refused((await answer.text()).trim());
  return answer.json();
}

class Refused extends Error {}

// --- the drawing

const lines = [...document.querySelectorAll("#drawing [data-links]")].map((element) => {
  const drawn = element.tagName === "g" ? element.querySelector("rect") : element;
  // The page's own tooltip has figures that change.
  if (drawn === element) element.querySelector("title")?.remove();
  return { element, drawn, links: element.dataset.links.split(" ").map(Number), width: Number(drawn.getAttribute("stroke-width")) };
});

const shares = (link) => state.links[link] ?? [0, 0];
const shareOf = (link) => Math.max(...shares(link));
const busiestOf = (links) => links.reduce((best, link) => (shareOf(link) > shareOf(best) ? link : best), links[0]);
const step = (share) => Math.round(100 * Math.min(1, Math.max(0, share)));

function paint() {
  const down = new Set(state.down);
  for (const { element, drawn, links, width } of lines) {
    const level = step(shareOf(busiestOf(links)));
    const failed = links.some((link) => down.has(link));
    const colour = failed ? facts.failed : facts.colours[level];
    if (drawn !== element) {
      drawn.setAttribute("fill", colour);
      continue;
    }
    drawn.setAttribute("stroke", colour);
    drawn.setAttribute("stroke-width", Math.max(width, Math.min(WIDEST, width * facts.widths[level])));
    if (failed) drawn.setAttribute("stroke-dasharray", "6 4");
    else drawn.removeAttribute("stroke-dasharray");
  }
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;

function portText(number) {
  if (number < 0) return "";
  const [, queue, marked, pauses, dropped] = state.ports[number] ?? IDLE;
  const counted = [[marked, "marked"], [pauses, "pauses"], [dropped, "dropped"]].filter(([count]) => count);
  return [`${si(queue, "B")} wait`, ...counted.map(([count, what]) => `${count} ${what}`)].join(", ");
}

function tipText(links) {
  const number = busiestOf(links);
  const link = facts.links[number];
  const [up, down] = shares(number);
  const way = (from, to, share, port) => `${from} → ${to}: ${facts.has_rates ? percent(share) : "unknown"}${port < 0 ? "" : ` · ${portText(port)}`}`;
  const failed = links.filter((each) => state.down.includes(each)).map((each) => facts.links[each].name);
  return [
    links.length > 1 ? `${links.length} links; busiest: ${link.name}` : link.name,
    way(link.a, link.b, up, link.up), way(link.b, link.a, down, link.down),
    ...(failed.length ? [`down: ${failed.slice(0, 6).join(", ")}${failed.length > 6 ? " …" : ""}`] : []),
  ].join("\n");
}

let pointed = null;

function showTip(event) {
  const tip = at("tip");
  tip.textContent = tipText(pointed);
  tip.hidden = false;
  if (!event) return;
  tip.style.left = `${Math.min(event.clientX + 14, innerWidth - tip.offsetWidth - 8)}px`;
  tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
}

for (const { element, links } of lines) {
  element.addEventListener("pointermove", (event) => { pointed = links; showTip(event); });
  element.addEventListener("pointerleave", () => { pointed = null; at("tip").hidden = true; });
  element.addEventListener("click", () => {
    const link = facts.links[busiestOf(links)];
    for (const port of [link.down, link.up]) if (port >= 0) choose(facts.ports[port].name, true);
  });
}

// --- ports

const numberOf = new Map(facts.ports.map((port, number) => [port.name, number]));

function choose(name, isOn) {
  const others = (chosen ?? []).filter((each) => each !== name);
  chosen = isOn ? [...others, name].slice(-facts.most_ports) : others;
  if (!chosen.length) chosen = null;
  remember();
  showChosen();
  drawCharts();
}

// The busiest ports of the last minute stay until busier ones come, so that the charts do not jump about.
function follow() {
  for (const [number, value] of lately) lately.set(number, value * 0.97);
  for (const [number, port] of Object.entries(state.ports)) {
    const busy = port[RATE] / facts.ports[number].rate_bps + port[QUEUE] / facts.ports[number].queue_bytes;
    lately.set(Number(number), Math.max(lately.get(Number(number)) ?? 0, busy));
  }
  lately = new Map([...lately].filter(([, value]) => value > 0.01).sort((a, b) => b[1] - a[1]).slice(0, 4 * MOST_BUSY));
  const best = [...lately.keys()].slice(0, AUTOMATIC).sort((a, b) => a - b).map((number) => facts.ports[number].name);
  if (best.length && best.join() !== followed.join()) { followed = best; showChosen(); }
}

const charted = () => chosen ?? followed;

function showChosen() {
  at("chosen-how").textContent = chosen
    ? `The last minutes of ports that you chose, at most ${facts.most_ports}; click one to leave it out. Without any, the busiest are shown.`
    : "The last minutes of the busiest ports. Click a link above, or a row below, to choose others.";
  at("chosen").replaceChildren(...charted().map((name, number) => {
    const button = document.createElement("button");
    button.type = "button";
    const sign = shape("svg", { width: 18, height: 8, "aria-hidden": "true" });
    sign.append(shape("line", { x1: 0, x2: 18, y1: 4, y2: 4, stroke: CURVES[number % CURVES.length], "stroke-width": 3, "stroke-dasharray": dashOf(number) }));
    button.append(sign, `${name} → ${facts.ports[numberOf.get(name)].peer}`);
    button.addEventListener("click", () => choose(name, false));
    return button;
  }));
}

async function drawCharts() {
  const names = charted();
  if (!names.length) { at("charts").replaceChildren(); return; }
  const { ages_s: ages, ports } = await ask("history", { ports: names.join() });
  if (names.join() !== charted().join()) return; // chosen anew meanwhile
  at("charts").replaceChildren(...CHARTS.map(([series, title, unit]) => chart(title, unit, ages, names.map((name) => ports[name][series]))));
}

function showBusiest() {
  const busy = Object.entries(state.ports).sort((a, b) => b[1][RATE] - a[1][RATE] || b[1][QUEUE] - a[1][QUEUE]).slice(0, MOST_BUSY);
  at("busiest").tBodies[0].replaceChildren(...busy.map(([number, port]) => {
    const { name, peer, rate_bps: rate } = facts.ports[number];
    const sends = facts.has_rates ? [si(port[RATE], "b/s"), percent(port[RATE] / rate)] : ["-", "-"];
    const made = row([name, peer, ...sends, si(port[QUEUE], "B"), port[MARKED], port[PAUSES], port[DROPPED]], 2);
    made.addEventListener("click", () => choose(name, true));
    return made;
  }));
}

// --- tables

function row(cells, firstNumber = Infinity, tag = "td") {
  const made = document.createElement("tr");
  made.append(...cells.map((cell, place) => {
    const box = document.createElement(tag);
    box.textContent = cell;
    if (place >= firstNumber) box.className = "number";
    return box;
  }));
  return made;
}

function showEvents(events) {
  const body = at("events").tBodies[0];
  for (const event of events) body.prepend(row(event));
  while (body.rows.length > MOST_EVENTS) body.lastChild.remove();
}

function options(select, groups, value) {
  select.replaceChildren(...Object.entries(groups).filter(([, names]) => names.length).map(([kind, names]) => {
    const group = document.createElement("optgroup");
    group.label = kind;
    group.append(...names.map((name) => new Option(name, `${kind}/${name}`, false, `${kind}/${name}` === value)));
    return group;
  }));
}

async function showContents(value) {
  const groups = await ask("contents", { switch: at("switch").value });
  options(at("contents"), groups, value);
  await showRows();
}

async function showRows() {
  const [name, kind] = [at("contents").value.split("/").slice(1).join("/"), at("contents").value.split("/")[0]];
  if (!name) return;
  const asked = at("switch").value;
  const { columns, rows, more } = await ask("rows", { switch: asked, kind, name });
  if (asked !== at("switch").value || `${kind}/${name}` !== at("contents").value) return;
  at("rows").tHead.replaceChildren(row(columns, Infinity, "th"));
  at("rows").tBodies[0].replaceChildren(...rows.map((cells) => row(cells)));
  const shown = kind === "tables" ? "entries" : "cells that are not 0";
  at("rows-note").textContent = rows.length ? `${rows.length} ${shown}${more ? `, and ${more} more` : ""}` : `no ${shown}`;
}

const saying = (error) => { at("rows-note").textContent = error.message; };
at("switch").addEventListener("change", () => { remember(); showContents(at("contents").value).catch(saying); });
at("contents").addEventListener("change", () => { remember(); showRows().catch(saying); });

// --- what the reader chose stays in the address, behind the #

function remember() {
  const kept = new URLSearchParams({ switch: at("switch").value, show: at("contents").value });
  if (chosen) kept.set("ports", chosen.join());
  history.replaceState(null, "", `#${kept}`);
}

function recall() {
  const kept = new URLSearchParams(location.hash.slice(1));
  const known = (kept.get("ports") ?? "").split(",").filter((name) => numberOf.has(name)).slice(0, facts.most_ports);
  chosen = known.length ? known : null;
  at("switch").replaceChildren(...facts.switches.map((name) => new Option(name, name, false, name === kept.get("switch"))));
  return kept.get("show") ?? "";
}

// --- once a second

function showClock() {
  const clock = state.emulated_s === null || state.emulated_s === undefined ? "" : ` · the lab's clock shows ${state.emulated_s.toFixed(3)} s`;
  at("clock").textContent = `${facts.switches.length} switches, ${facts.links.length} links · an emulated second takes ${facts.dilation} real ones${clock}`
    + (facts.has_rates ? "" : " · these switches count neither bytes nor queues");
}

function showStatus(text, isOn) {
  at("status").textContent = text;
  at("status").className = isOn ? "on" : "off";
}

async function look() {
  const seen = state.number;
  try {
    const { events, next_event: next, ...found } = await ask("state", { after: nextEvent });
    state = { ...state, ...found };
    nextEvent = next;
    showEvents(events);
    showStatus("live", true);
    at("problem").hidden = !state.problem;
    at("problem").textContent = state.problem;
  } catch (error) {
    showStatus(error instanceof Refused ? error.message : "the lab has ended, or cannot be reached", false);
    return;
  }
  if (state.number === seen) return;
  paint();
  if (pointed) showTip();
  follow();
  showBusiest();
  showClock();
  await drawCharts().catch(() => {});
}

// One question at a time: a slow way to the lab makes the page slow, not its questions many. None where nobody looks.
async function keepLooking(looked, everyMs) {
  for (;;) {
    if (!document.hidden) await looked();
    await new Promise((done) => { setTimeout(done, everyMs); });
  }
}

function setTheme(theme) { document.documentElement.dataset.theme = theme; }
const darkness = matchMedia("(prefers-color-scheme: dark)");
at("theme").addEventListener("click", () => setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));
setTheme(darkness.matches ? "dark" : "light");

const wanted = recall();
showChosen();
showClock();
keepLooking(look, EVERY_MS);
showContents(wanted).catch(saying).then(() => keepLooking(() => showRows().catch(saying), ROWS_EVERY_MS));
