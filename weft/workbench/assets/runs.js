// Runs of the scenario that is open: commands that are running, results, and the pages that commands make of them.

import { ask } from "./api.js";
import { element } from "./forms.js";

const POLL_MS = 400;
const LONG_S = 3; // after which a drawing is shown among the commands
const at = (id) => document.getElementById(id);
const TABS = ["report", "timeline", "trace", "compare", "output"];

// Follows commands until they end.
class Jobs {
  constructor() {
    this.known = new Map();
    this.waiting = new Map();
    this.onchange = () => {};
    this.onend = () => {}; // of commands that nobody waits for, since the page was loaded anew
    this.timer = null;
  }

  get running() {
    return [...this.known.values()].filter((job) => job.code === null);
  }

  // The command's state when it has ended.
  finished(job) {
    this.known.set(job.number, job);
    this.onchange();
    this.poll();
    return new Promise((done, failed) => this.waiting.set(job.number, { done, failed }));
  }

  poll() {
    this.timer ??= setTimeout(() => this.look(), POLL_MS);
  }

  async look() {
    const before = this.running;
    try {
      const { jobs } = await ask("jobs", { numbers: before.map((job) => job.number) });
      this.known = new Map(jobs.map((job) => [job.number, job]));
    } catch (error) {
      for (const { failed } of this.waiting.values()) failed(error);
      this.waiting.clear();
      this.timer = null;
      return;
    }
    const awaited = new Set(this.waiting.keys());
    for (const [number, { done, failed }] of this.waiting) {
      const job = this.known.get(number);
      if (job === undefined) failed(new Error("the command is no longer known"));
      else if (job.code !== null) done(job);
      else continue;
      this.waiting.delete(number);
    }
    for (const { number } of before) {
      const job = this.known.get(number);
      if (job && job.code !== null && !awaited.has(number)) this.onend(job);
    }
    this.onchange();
    this.timer = null;
    if (this.running.length) this.poll();
  }
}

// The command's own message, without its progress.
export function messageOf(job) {
  if (job.state === "cancelled") return "cancelled";
  const lines = job.output.split("\n");
  const first = lines.findIndex((line) => line.startsWith("weft: "));
  return first < 0 ? `ended with code ${job.code}` : lines.slice(first).join("\n").replace(/^weft: /, "");
}

export class Runs {
  constructor(host) {
    this.host = host;
    this.jobs = new Jobs();
    this.jobs.onchange = () => this.showRunning();
    this.jobs.onend = (job) => {
      if (job.kind === "run" && job.file === this.file) this.host.guard(() => this.load(this.file));
    };
    this.file = null;
    this.runs = [];
    this.chosen = null;
    this.compared = new Set();
    this.tab = "report";
    this.pages = { trace: null, compare: null };
    this.output = null;
    for (const tab of TABS) at(`tab-${tab}`).addEventListener("click", () => this.open(tab));
    at("compare").addEventListener("click", () => this.host.guard(() => this.compare([...this.compared])));
    at("all-runs").addEventListener("change", () => this.host.guard(() => this.load(this.file)));
    at("trace").addEventListener("submit", (event) => {
      event.preventDefault();
      this.host.guard(() => this.trace(Object.fromEntries(new FormData(event.target))));
    });
  }

  async load(file) {
    if (file !== this.file) {
      this.chosen = null;
      this.compared.clear();
      this.pages = { trace: null, compare: null };
      this.output = null;
      this.runs = [];
    }
    this.file = file;
    const { runs } = await ask("runs", { file, all: at("all-runs").checked });
    if (file !== this.file) return;
    this.runs = runs;
    if (!runs.some((run) => run.run === this.chosen)) this.chosen = runs[0]?.run ?? null;
    this.compared = new Set([...this.compared].filter((run) => runs.some((each) => each.run === run)));
    this.show();
  }

  show() {
    at("no-runs").hidden = this.runs.length > 0;
    at("runs").hidden = this.runs.length === 0;
    at("runs").tBodies[0].replaceChildren(...this.runs.flatMap((run) => this.rows(run)));
    this.showCompare();
    this.showRunning();
  }

  rows(run) {
    const box = element("input", {
      type: "checkbox", "aria-label": `Compare ${run.run}`, checked: this.compared.has(run.run),
      onchange: () => {
        if (box.checked) this.compared.add(run.run);
        else this.compared.delete(run.run);
        this.showCompare();
      },
    });
    const choose = element("button", {
      type: "button", class: "choose", title: run.written_s ? new Date(run.written_s * 1000).toLocaleString() : "",
      onclick: () => {
        this.chosen = run.run;
        this.show();
        this.open(["timeline", "output"].includes(this.tab) ? this.tab : "report");
      },
    }, run.run);
    const cells = [element("td", {}, box), element("td", {}, choose)];
    const made = [element("tr", { "aria-selected": String(run.run === this.chosen) })];
    if (run.problem) {
      cells.push(element("td", { colspan: 5, class: "bad" }, run.problem));
    } else {
      const phases = run.phases.map((phase) => `${phase.name} ${phase.time}`);
      if (run.more_phases) phases.push(`and ${run.more_phases} more`);
      if (phases.length) {
        made.push(element("tr", { class: "phases", "aria-selected": String(run.run === this.chosen) },
          element("td", {}), element("td", { colspan: 6 }, phases.join(" · "))));
      }
      const verdict = !run.ok ? ["bad", "failed"] : !run.valid ? ["bad", "late: INVALID"] : run.checked ? ["good", "passed"] : ["", "–"];
      cells.push(element("td", { class: verdict[0] }, verdict[1]));
      for (const value of [run.time, run.drops, run.marks, run.retransmissions]) cells.push(element("td", { class: "number" }, String(value)));
    }
    made[0].append(...cells);
    return made;
  }

  showCompare() {
    const count = this.compared.size;
    at("compare").disabled = count < 2;
    at("compare").textContent = count < 2 ? "Compare" : `Compare ${count} runs`;
  }

  showRunning() {
    const shown = this.jobs.running.filter((job) => job.kind !== "draw" || job.seconds > LONG_S);
    const active = document.activeElement?.id;
    at("running").replaceChildren(...shown.map((job) => {
      const bar = element("progress", { max: 1, "aria-label": `Progress of ${job.kind} ${job.file}` });
      if (job.share !== null) bar.value = job.share;
      const what = `${job.kind} ${job.file}${job.stage ? `: ${job.stage}` : ""}`;
      return element("div", { class: "job" }, element("div", {}, what, bar),
        element("button", {
          type: "button", id: `cancel-${job.number}`, disabled: job.state !== "running",
          onclick: () => this.host.guard(() => this.cancel(job)),
        }, job.state === "running" ? "Cancel" : "Cancelling…"),
        element("span", { class: "quiet" }, job.progress || `${job.seconds} s`));
    }));
    if (active?.startsWith("cancel-")) at(active)?.focus();
  }

  async cancel(job) {
    const { job: found } = await ask("cancel", { job: job.number });
    this.jobs.known.set(found.number, found);
    this.showRunning();
  }

  // Run a scenario's file; returns the name of the run. Throws if it has left no results.
  async run(file) {
    const { job } = await ask("run", { file });
    at("running").scrollIntoView({ block: "nearest" });
    const ended = await this.jobs.finished(job);
    this.output = ended;
    if (file === this.file) await this.load(file);
    const name = ended.made;
    if (ended.code !== 0 && ended.state !== "cancelled") this.host.failed(file, messageOf(ended));
    // A run of which a check has failed has results, too.
    if (ended.code === 0 || this.runs.some((run) => run.run === name)) return name;
    if (file === this.file) this.open("output");
    return null;
  }

  async runAndShow() {
    const run = await this.run(this.file);
    if (run === null) return;
    this.chosen = run;
    this.show();
    await this.open(this.tab === "timeline" ? "timeline" : "report");
  }

  async made(question, given) {
    const answer = await ask(question, given);
    if (answer.page) return answer.page;
    this.say(`${question === "compare" ? "Comparing" : question === "trace" ? "Tracing" : "Making the report"}…`);
    const ended = await this.jobs.finished(answer.job);
    if (ended.page) return ended.page;
    if (question === "trace" || question === "compare") this.output = ended;
    throw new Error(messageOf(ended));
  }

  async compare(runs) {
    this.open("compare", true);
    await this.produce("compare", `${runs.join(", ")}`, () => this.made("compare", { runs }));
  }

  async trace(given) {
    this.open("trace", true);
    await this.produce("trace", given.switch, () => this.made("trace", { file: this.file, ...given }));
  }

  // Make a page for a tab and show it, if the tab is still open.
  async produce(tab, title, make) {
    const { file } = this;
    this.pages[tab] = null;
    let shown;
    try {
      shown = { title, page: await make() };
    } catch (error) {
      shown = { title, problem: error.message };
    }
    if (file !== this.file) return;
    this.pages[tab] = shown;
    if (this.tab === tab) this.showPage(shown);
  }

  showPage({ title, page, problem }, anchor = "") {
    at("shown-title").textContent = title;
    if (problem) this.say(problem, true);
    else this.frame(`${page}${anchor}`);
  }

  say(text, isWrong = false, ...more) {
    at("frame").hidden = true;
    at("output").hidden = true;
    at("message").className = isWrong ? "wrong" : "";
    at("message").replaceChildren(text, ...more);
  }

  frame(address) {
    this.say("");
    const frame = at("frame");
    frame.hidden = false;
    at("results").scrollIntoView({ block: "nearest" });
    if (frame.getAttribute("src") === address) return;
    // A new frame, since a change of the address would be a step in the browser's history.
    const fresh = frame.cloneNode(false);
    fresh.setAttribute("src", address);
    frame.replaceWith(fresh);
  }

  async open(tab, isBusy = false) {
    this.tab = tab;
    for (const each of TABS) at(`tab-${each}`).setAttribute("aria-selected", String(each === tab));
    at("shown").setAttribute("aria-labelledby", `tab-${tab}`);
    at("trace").hidden = tab !== "trace";
    at("shown-title").textContent = "";
    this.say("");
    if (isBusy) return;
    if (tab === "trace" || tab === "compare") {
      const made = this.pages[tab];
      if (made) this.showPage(made);
      else this.say(tab === "trace" ? "Choose a switch: the scenario runs again, and its packets are shown step by step." : "Tick two or more runs, then choose Compare.");
    } else if (tab === "output") {
      this.showOutput();
    } else {
      await this.host.guard(() => this.showReport(tab));
    }
  }

  showOutput() {
    if (this.output === null) {
      this.say("No output yet.");
      return;
    }
    this.say("");
    at("shown-title").textContent = this.output.command;
    at("output").hidden = false;
    at("output").textContent = this.output.output;
  }

  async showReport(tab) {
    const run = this.runs.find((each) => each.run === this.chosen);
    if (!run) {
      this.say("No run yet: choose Run.");
      return;
    }
    if (tab === "timeline" && !run.problem && !run.has_timeline) {
      this.say("This run has recorded no timeline.", false, element("button", {
        type: "button", onclick: () => this.host.guard(() => this.host.recordTimelines()),
      }, "Record timelines, and run"));
      return;
    }
    const isStill = () => this.tab === tab && this.chosen === run.run;
    try {
      run.page ??= await this.made("report", { run: run.run });
      if (isStill()) this.showPage({ title: run.run, page: run.page }, tab === "timeline" ? "#figure-timeline" : "");
    } catch (error) {
      if (isStill()) this.say(error.message, true);
    }
  }
}
