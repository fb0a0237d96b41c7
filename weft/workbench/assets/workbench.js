// The workbench: a folder's scenarios, the form of one, its topology and its runs.

import { ask, Refused } from "./api.js";
import { openDialog } from "./dialogs.js";
import { element, Form } from "./forms.js";
import { messageOf, Runs } from "./runs.js";
import { at as valueAt, flow, keyOf, pathOf, Schema } from "./schema.js";

const at = (id) => document.getElementById(id);
const SAVE_MS = 700;
const MOST_KEYS = 2000;

const state = { scenario: null, schema: null, templates: {}, drawn: null, view: "form", names: [] };
let form = null;
let queue = Promise.resolve();

function dark(isDark) {
  document.documentElement.dataset.theme = isDark ? "dark" : "light";
}
dark(matchMedia("(prefers-color-scheme: dark)").matches);
at("theme").addEventListener("click", () => dark(document.documentElement.dataset.theme !== "dark"));

function showProblem(text) {
  at("problem").hidden = !text;
  at("problem").querySelector("span").textContent = text;
}
at("problem").querySelector("button").addEventListener("click", () => showProblem(""));

// Run a step of the user's; an error is shown at the top of the page.
async function guard(step) {
  try {
    showProblem("");
    return await step();
  } catch (error) {
    showProblem(error.message);
    if (!(error instanceof Refused)) console.error(error);
    return undefined;
  }
}

// Changes reach the server one after the other, each with the version that the one before has made.
function inTurn(step) {
  const next = queue.then(step, step);
  queue = next.catch(() => {});
  return next;
}

const runs = new Runs({ guard, failed, recordTimelines });

function failed(file, message) {
  if (file === state.scenario?.file) showProblem(`${file}: ${message}`.replace(`${file}: ${file}`, file));
}

async function list() {
  ({ scenarios: state.names } = await ask("scenarios"));
  at("scenarios").replaceChildren(...state.names.map((file) =>
    element("li", {}, element("button", {
      type: "button", "aria-current": String(file === state.scenario?.file), onclick: () => guard(() => open(file)),
    }, file))));
  at("nothing").hidden = state.scenario !== null;
}

async function open(file) {
  await flushText();
  const scenario = await inTurn(() => ask("read", { file }));
  const isOther = state.scenario?.file !== file;
  state.scenario = scenario;
  if (isOther) {
    state.drawn = null;
    at("drawing").replaceChildren();
  }
  history.replaceState(null, "", `#${new URLSearchParams({ file })}`);
  document.querySelector("main").hidden = false;
  at("file").textContent = file;
  document.title = `${file} · Weft workbench`;
  show();
  await list();
  await runs.load(file);
  if (isOther) await runs.open("report");
}

function close() {
  state.scenario = null;
  document.querySelector("main").hidden = true;
  history.replaceState(null, "", "#");
}

function show() {
  const { scenario } = state;
  form.show(scenario);
  if (document.activeElement !== at("text") || at("text").dataset.saved === at("text").value) at("text").value = scenario.text;
  at("text").dataset.saved = scenario.text;
  at("problems").replaceChildren(...(scenario.problems.length ? [element("ul", {}, ...scenario.problems.map(problemItem))] : []));
  const paths = scenario.tree === null ? [] : allPaths();
  at("keys").replaceChildren(...paths.slice(0, MOST_KEYS).map((path) => element("option", { value: keyOf(path) })));
  draw();
}

function allPaths() {
  const { tree, kinds } = state.scenario;
  return Object.entries(state.schema.root.properties).flatMap(([key, node]) => [...state.schema.paths(node, [key], tree, kinds)]);
}

function problemItem(problem) {
  const text = problem.line === null ? problem.text : `line ${problem.line}: ${problem.text}`;
  return element("li", {}, element("button", { type: "button", onclick: () => go(problem) }, text));
}

function go(problem) {
  if (state.view === "form" && problem.key && state.scenario.tree !== null) {
    form.reveal(pathOf(problem.key));
    return;
  }
  view("text");
  if (problem.line === null) return;
  const lines = at("text").value.split("\n");
  const begin = lines.slice(0, problem.line - 1).join("\n").length + (problem.line > 1 ? 1 : 0);
  at("text").focus();
  at("text").setSelectionRange(begin, begin + lines[problem.line - 1].length);
}

function view(name) {
  state.view = name;
  at("form").hidden = name !== "form";
  at("text-view").hidden = name !== "text";
  at("tab-form").setAttribute("aria-selected", String(name === "form"));
  at("tab-text").setAttribute("aria-selected", String(name === "text"));
}
at("tab-form").addEventListener("click", () => guard(async () => {
  await flushText();
  view("form");
}));
at("tab-text").addEventListener("click", () => view("text"));

at("find").addEventListener("change", () => {
  const key = at("find").value.trim();
  if (!key || state.scenario?.tree === null) return;
  view("form");
  const isThere = form.reveal(pathOf(key));
  if (isThere) at("find").value = "";
  else showProblem(`There is no key ${key} in this scenario's form.`);
});

// The text is saved a moment after the last key stroke, and before anything else happens.
let saving = null;
at("text").addEventListener("input", () => {
  at("saved").textContent = "not saved yet";
  clearTimeout(saving);
  saving = setTimeout(() => guard(flushText), SAVE_MS);
});
at("text").addEventListener("blur", () => guard(flushText));

async function flushText() {
  clearTimeout(saving);
  const text = at("text").value;
  if (state.scenario === null || text === at("text").dataset.saved) return;
  at("text").dataset.saved = text;
  const { file } = state.scenario;
  try {
    await inTurn(async () => took(await ask("write", { file, text, version: state.scenario.version })));
    at("saved").textContent = "saved";
  } catch (error) {
    at("saved").textContent = "not saved";
    at("text").dataset.saved = state.scenario.text;
    if (error.status !== 409) throw error;
    askWhichText(file, text);
  }
}

// Another program has written the file since the page read it.
function askWhichText(file, text) {
  openDialog({
    title: `${file} has changed on disk`,
    fields: [{ name: "text", label: "Keep", choices: { mine: "my text", theirs: "the file's text" } }],
    ok: "Keep",
    done: async ({ text: which }) => {
      let scenario = await ask("read", { file });
      if (which === "mine") scenario = await ask("write", { file, text, version: scenario.version });
      at("text").value = at("text").dataset.saved = scenario.text;
      took(scenario);
    },
  });
}

// Other programs write scenarios, too: look when the reader comes back to the page.
addEventListener("focus", async () => {
  const { scenario } = state;
  if (scenario === null || at("text").value !== at("text").dataset.saved || at("dialog").open) return;
  try {
    const found = await inTurn(() => ask("read", { file: scenario.file }));
    if (found.version !== state.scenario?.version) took(found);
    await list();
  } catch {
    // The next step of the user's says what is wrong.
  }
});

function took(scenario) {
  if (scenario.file !== state.scenario?.file) return;
  state.scenario = scenario;
  show();
}

function change(changes) {
  const { file } = state.scenario;
  return guard(async () => {
    try {
      await inTurn(async () => took(await ask("change", { file, version: state.scenario.version, changes })));
    } catch (error) {
      // The form shows what the file has, not what was refused.
      if (error.status === 409) await open(file);
      else form.show(state.scenario);
      throw error;
    }
  });
}

// Draw the topology if its section has changed; only the latest one is shown.
async function draw() {
  const { scenario } = state;
  if (scenario.problems.length) {
    at("drawing").classList.add("old");
    at("drawing-state").textContent = "drawn when the scenario has no problem";
    state.drawn = null;
    return;
  }
  const wanted = JSON.stringify([scenario.file, scenario.tree.fabric ?? null]);
  if (wanted === state.drawn) return;
  state.drawn = wanted;
  at("drawing").classList.add("old");
  at("drawing-state").textContent = "drawing…";
  let content;
  let isRefused = false;
  try {
    const { job } = await ask("draw", { file: scenario.file });
    const ended = await runs.jobs.finished(job);
    if (ended.code !== 0) throw new Error(messageOf(ended));
    const { svg } = await ask("drawing", { job: job.number });
    content = drawing(svg);
  } catch (error) {
    content = element("p", { class: "wrong" }, error.message);
    // Too many commands at once: the next change tries again.
    isRefused = error.status === 409 && state.drawn === wanted;
    if (isRefused) state.drawn = null;
  }
  if (state.drawn !== wanted && !isRefused) return;
  at("drawing").classList.remove("old");
  at("drawing-state").textContent = "";
  at("drawing").replaceChildren(content);
}

function drawing(svg) {
  // The page's policy forbids styles in the drawing; page.css has them.
  const plain = svg.replace(/<style>.*?<\/style>/s, "");
  const parsed = new DOMParser().parseFromString(plain, "image/svg+xml").documentElement;
  const made = document.importNode(parsed, true);
  made.querySelector("rect[width='100%']")?.setAttribute("fill", "none");
  const names = [...made.querySelectorAll("title")].map((title) => /^(\S+) device [0-9]+ /.exec(title.textContent)?.[1]);
  at("switches").replaceChildren(...names.filter(Boolean).map((name) => element("option", { value: name })));
  const own = at("trace").elements.switch;
  if (!own.value) own.value = names.find(Boolean) ?? "";
  return made;
}

at("run").addEventListener("click", () => guard(async () => {
  await flushText();
  await queue;
  await runs.runAndShow();
}));

async function recordTimelines() {
  const { file, version } = state.scenario;
  await inTurn(async () => took(await ask("change", { file, version, changes: [{ path: ["observe", "timelines"], value: "true" }] })));
  await runs.runAndShow();
}

const asFile = (name) => (/\.ya?ml$/.test(name) ? name : `${name}.yaml`);
const withSuffix = (file, suffix) => file.replace(/(\.ya?ml)$/, `${suffix}$1`);

function freeName(wanted) {
  let name = wanted;
  for (let number = 2; state.names.includes(name); number += 1) name = withSuffix(wanted, `-${number}`);
  return name;
}

at("new").addEventListener("click", () => openDialog({
  title: "New scenario",
  fields: [
    { name: "file", label: "File", value: freeName("scenario.yaml") },
    { name: "template", label: "Begin with", choices: state.templates },
  ],
  ok: "Create",
  done: async ({ file, template }) => {
    await ask("new", { file: asFile(file), template });
    await open(asFile(file));
  },
}));

at("copy").addEventListener("click", () => openDialog({
  title: `Copy ${state.scenario.file}`,
  fields: [{ name: "to", label: "File", value: freeName(withSuffix(state.scenario.file, "-copy")) }],
  ok: "Copy",
  done: async ({ to }) => {
    await flushText();
    await inTurn(() => ask("copy", { file: state.scenario.file, to: asFile(to) }));
    await open(asFile(to));
  },
}));

at("rename").addEventListener("click", () => openDialog({
  title: `Rename ${state.scenario.file}`,
  text: "The directories of its runs are renamed, too.",
  fields: [{ name: "to", label: "File", value: state.scenario.file }],
  ok: "Rename",
  done: async ({ to }) => {
    await flushText();
    await inTurn(() => ask("rename", { file: state.scenario.file, to: asFile(to) }));
    await open(asFile(to));
  },
}));

at("delete").addEventListener("click", () => openDialog({
  title: `Delete ${state.scenario.file}?`,
  text: "The file is removed from the folder. Its runs stay in the folder runs.",
  ok: "Delete",
  done: async () => {
    await flushText();
    const { file, version } = state.scenario;
    await inTurn(() => ask("delete", { file, version }));
    close();
    await list();
  },
}));

at("vary").addEventListener("click", () => openDialog({
  title: "Change one thing",
  text: "A copy of the scenario gets one other value and runs. The page then compares it with the last run of this one, which runs first if it has none.",
  fields: [
    { name: "key", label: "Key", value: "fabric.host_rate", list: "keys", onchange: proposeName },
    { name: "value", label: "New value", value: flow(valueAt(state.scenario.tree, ["fabric", "host_rate"]) ?? ""), onchange: proposeName },
    { name: "to", label: "File of the copy", value: proposed("fabric.host_rate", flow(valueAt(state.scenario.tree, ["fabric", "host_rate"]) ?? "")) },
  ],
  ok: "Change, run and compare",
  done: vary,
}));

function proposeName(event) {
  const fields = event.target.form.elements;
  if (event.target === fields.key) fields.value.value = flow(valueAt(state.scenario.tree, pathOf(fields.key.value)) ?? "");
  fields.to.value = proposed(fields.key.value, fields.value.value);
}

const difference = (key, value) =>
  `${key.split(/[.\]]/).at(-1)}-${value}`.replaceAll(/[^A-Za-z0-9]+/g, "-").slice(0, 30).replace(/-$/, "");

// A file name that says what differs from the scenario.
const proposed = (key, value) => freeName(withSuffix(state.scenario.file, `-${difference(key, value)}`));

async function vary({ key, value, to: name }) {
  const to = asFile(name);
  await flushText();
  const { file } = state.scenario;
  if (value === flow(valueAt(state.scenario.tree, pathOf(key)) ?? null)) throw new Error(`${key} is ${value} already`);
  const copy = await inTurn(() => ask("copy", { file, to }));
  let changed;
  try {
    const changes = [{ path: pathOf(key), value }];
    // Runs outside the workbench are named after their scenario: up to 41 lower-case letters, digits and hyphens.
    const own = copy.tree?.name;
    if (typeof own === "string" && key !== "name") {
      const words = difference(key, value).toLowerCase();
      changes.push({ path: ["name"], text: `${own.slice(0, 40 - words.length)}-${words}` });
    }
    changed = await ask("change", { file: to, version: copy.version, changes });
    if (changed.problems.length && !state.scenario.problems.length) throw new Error(changed.problems[0].text);
  } catch (error) {
    const { version } = await ask("read", { file: to });
    await ask("delete", { file: to, version });
    throw error;
  }
  const before = runs.runs.find((run) => !run.problem)?.run;
  guard(async () => {
    const first = before ?? (await runs.run(file));
    if (!first) return;
    await open(to);
    const second = await runs.run(to);
    if (second && state.scenario.file === to) await runs.compare([first, second]);
  });
}

guard(async () => {
  const [{ folder, templates }, schema] = await Promise.all([ask("start"), ask("schema")]);
  at("folder").textContent = folder;
  state.templates = templates;
  state.schema = new Schema(schema);
  form = new Form(at("form"), state.schema, change);
  await list();
  const wanted = new URLSearchParams(location.hash.slice(1)).get("file");
  const first = state.names.includes(wanted) ? wanted : state.names[0];
  if (first !== undefined) await open(first);
  await runs.jobs.look();
  document.documentElement.dataset.ready = "true";
});

// For scripts of tests and consoles.
Object.assign(window, { workbench: { state, runs, form: () => form, change, allPaths } });
