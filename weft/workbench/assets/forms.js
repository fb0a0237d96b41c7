// Forms for a scenario's keys, made from the schema. What is typed goes to `change` as changes of single keys.

import { at, flow, keyOf } from "./schema.js";

const LONG = 60; // characters of a value that gets several lines

export function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) made.addEventListener(name.slice(2), value);
    else if (value === true) made.setAttribute(name, "");
    else if (value !== false && value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children);
  return made;
}

// Text with what stands between backticks as code.
const coded = (text) => text.split("`").map((part, index) => (index % 2 ? element("code", {}, part) : part));

export class Form {
  constructor(root, schema, change) {
    this.root = root;
    this.schema = schema;
    this.change = change;
    this.open = new Set(["fabric", "traffic"]);
    this.scenario = null;
  }

  // Show a scenario; what is open, focused and half typed stays so.
  show(scenario) {
    const isSame = this.scenario?.file === scenario.file;
    const before = isSame ? this.focused() : null;
    const top = isSame ? this.root.scrollTop : 0;
    this.scenario = scenario;
    if (scenario.tree === null) {
      this.root.replaceChildren(element("p", {}, "The text is not YAML that a form could show: see YAML."));
      return;
    }
    const { properties } = this.schema.root;
    const values = [];
    const sections = [];
    for (const [key, node] of Object.entries(properties)) {
      const made = this.build([key], node);
      (made.classList.contains("field") ? values : sections).push(made);
    }
    const general = this.details("", "general", this.countOf(values), () => values);
    const order = ["fabric", "traffic", "transport", "observe"];
    sections.sort((a, b) => rank(order, a.dataset.key) - rank(order, b.dataset.key));
    this.root.replaceChildren(general, ...sections);
    this.mark(scenario.problems);
    if (before !== null) this.restore(before);
    this.root.scrollTop = top;
  }

  focused() {
    const active = document.activeElement;
    if (!active?.id || !this.root.contains(active)) return null;
    const isTyped = active.value !== undefined && active.tagName !== "SELECT" && active.value !== active.defaultValue;
    return { id: active.id, typed: isTyped ? active.value : null, place: active.selectionStart };
  }

  restore({ id, typed, place }) {
    const found = document.getElementById(id);
    if (!found) return;
    found.focus({ preventScroll: true });
    if (typed !== null) {
      found.value = typed;
      found.setSelectionRange?.(place, place);
    }
  }

  // Show each problem at its key, or at the nearest section that is shown.
  mark(problems) {
    for (const problem of problems) {
      const place = this.placeOf(problem.key ?? "");
      if (!place) continue;
      place.classList.add("bad");
      const id = `wrong-${place.dataset.key}`;
      const own = place.querySelector(":scope > .content") ?? place;
      own.append(element("p", { class: "wrong", id }, problem.text));
      place.querySelector(":scope > input, :scope > select, :scope > textarea")?.setAttribute("aria-describedby", id);
      place.querySelector(":scope > input, :scope > select, :scope > textarea")?.setAttribute("aria-invalid", "true");
    }
  }

  placeOf(key) {
    for (let here = key; here; here = here.replace(/(\.[^.[\]]+|\[[0-9]+\]|^[^.[\]]+)$/, "")) {
      const found = this.root.querySelector(`[data-key="${CSS.escape(here)}"]`);
      if (found) return found;
    }
    return null;
  }

  // Open what holds a key, and go there.
  reveal(path) {
    for (let length = 1; length <= path.length; length += 1) this.open.add(keyOf(path.slice(0, length)));
    if (path.length === 1) this.open.add("");
    this.show(this.scenario);
    const place = this.placeOf(keyOf(path));
    if (!place) return false;
    place.scrollIntoView({ block: "center" });
    (place.querySelector("input, select, textarea, summary") ?? place).focus({ preventScroll: true });
    return place.dataset.key === keyOf(path);
  }

  build(path, node, isRequired = false) {
    const shape = this.schema.shape(node);
    const value = at(this.scenario.tree, path);
    if (shape.form === "value") return this.field(path, shape, value, isRequired);
    if (shape.form === "list") return this.list(path, shape, value);
    if (shape.form === "map") return this.map(path, shape, value);
    return this.section(path, shape, value);
  }

  details(key, title, note, content, about = "") {
    const made = element("details", { class: "keys", "data-key": key });
    const below = element("div", { class: "content" });
    made.append(element("summary", {}, title, element("small", {}, note)), below);
    let isFilled = false;
    const fill = () => {
      if (isFilled) return;
      isFilled = true;
      // What is wrong with the section stands there already, and comes last.
      below.prepend(...(about ? [element("p", { class: "help" }, ...coded(about))] : []), ...content());
    };
    if (this.open.has(key)) {
      made.open = true;
      fill();
    }
    made.addEventListener("toggle", () => {
      if (made.open) {
        this.open.add(key);
        fill();
      } else {
        this.open.delete(key);
      }
    });
    return made;
  }

  countOf(fields) {
    const count = fields.filter((each) => each.classList.contains("set")).length;
    return count ? `${count} set` : "";
  }

  noteOf(value) {
    if (value === undefined || value === null) return "";
    if (Array.isArray(value)) return `${value.length} item${value.length === 1 ? "" : "s"}`;
    return typeof value === "object" ? `${Object.keys(value).length} set` : flow(value);
  }

  section(path, shape, value, title = path.at(-1)) {
    const key = keyOf(path);
    const isMapping = value === undefined || value === null || (typeof value === "object" && !Array.isArray(value));
    const isItem = typeof path.at(-1) === "number";
    const kind = this.scenario.kinds[key];
    const section = this.schema.section(shape, kind);
    const name = isItem ? `${path.at(-1)}: ${kind ?? "?"}` : title;
    const about = section?.about ?? shape.about;
    return this.details(key, name, isItem && isMapping ? this.briefly(value, kind) : this.noteOf(value), () => {
      if (!isMapping || (section === null && value)) {
        const plain = { choices: shape.names ?? [], valid: "the whole section, as YAML", about: "", isText: false };
        return [this.field(path, plain, value, false, "value")];
      }
      const made = [];
      if (shape.form === "kinds" && !isItem) made.push(this.kindOfTopology(path, shape, kind));
      if (shape.names?.length || shape.takesText) {
        const named = { choices: shape.names ?? [], valid: "a name in place of the keys below", about: "", isText: true };
        if (!value) made.push(this.field(path, named, undefined, false, "named"));
      }
      for (const [name, below] of Object.entries(section?.properties ?? {})) {
        if (shape.form === "kinds" && !isItem && name === "kind") continue;
        made.push(this.build([...path, name], below, section.required.includes(name)));
      }
      return made;
    }, about);
  }

  // The value that says most of an item of the traffic.
  briefly(value, kind) {
    const own = kind && value ? value[kind] : undefined;
    return own === undefined || own === null || typeof own === "object" ? "" : flow(own);
  }

  kindOfTopology(path, shape, kind) {
    const id = `key-${keyOf([...path, "kind"])}`;
    const select = element("select", {
      id,
      onchange: () => this.changeKind(path, shape, select.value),
    }, ...[...shape.kinds.keys()].map((name) => element("option", { value: name, selected: name === kind }, name)));
    const isSet = at(this.scenario.tree, [...path, "kind"]) !== undefined;
    const about = shape.kinds.get(kind)?.properties.kind?.description ?? "";
    return element("div", { class: `field${isSet ? " set" : ""}`, "data-key": keyOf([...path, "kind"]) },
      element("label", { for: id }, "kind"), select, this.unset([...path, "kind"], isSet), element("p", { class: "help" }, ...coded(about)));
  }

  // Keys that the new kind does not have go: they would be errors.
  changeKind(path, shape, kind) {
    const { properties } = shape.kinds.get(kind);
    const own = at(this.scenario.tree, path) ?? {};
    const changes = [{ path: [...path, "kind"], text: kind }];
    for (const key of Object.keys(own)) {
      if (!(key in properties)) changes.push({ path: [...path, key] });
    }
    this.change(changes);
  }

  list(path, shape, value) {
    const items = Array.isArray(value) ? value : [];
    return this.details(keyOf(path), path.at(-1), this.noteOf(value), () => {
      if (value !== undefined && value !== null && !Array.isArray(value)) {
        return [this.field(path, { choices: [], valid: "a list", about: "", isText: false }, value, false, "value")];
      }
      const made = items.map((_, index) => {
        const own = this.build([...path, index], shape.item);
        const content = own.querySelector(":scope > summary");
        content.append(" ", element("button", {
          type: "button", class: "unset", "aria-label": `Remove item ${index} of ${keyOf(path)}`,
          onclick: (event) => {
            event.preventDefault();
            this.change([{ path: [...path, index] }]);
          },
        }, "×"));
        return own;
      });
      made.push(this.adding(path, shape, items.length));
      return made;
    }, shape.about);
  }

  adding(path, shape, length) {
    const item = this.schema.shape(shape.item);
    const add = (value) => {
      this.open.add(keyOf([...path, length]));
      this.change([{ path: [...path, length], value }]);
    };
    if (item.form !== "kinds") {
      return element("div", { class: "add" },
        element("button", { type: "button", onclick: () => add(`{${this.required(item.properties, item.required)}}`) }, "Add an item"));
    }
    const id = `add-${keyOf(path)}`;
    const select = element("select", { id }, ...[...item.kinds.keys()].map((kind) => element("option", {}, kind)));
    const button = element("button", {
      type: "button",
      onclick: () => {
        const kind = item.kinds.get(select.value);
        add(`{${this.required(kind.properties, kind.required ?? [])}}`);
      },
    }, "Add");
    return element("div", { class: "add" }, element("label", { for: id }, "Another item"), select, button);
  }

  // Required keys with the schema's examples, which the author then changes.
  required(properties, required) {
    return required.map((key) => `${key}: ${this.example(properties[key])}`).join(", ");
  }

  example(node) {
    const [first] = this.schema.alternatives(node);
    if (!first) return "null";
    if ("const" in first) return flow(first.const);
    if (first.examples) return flow(first.examples[0]);
    if (first.enum) return flow(first.enum[0]);
    if (first.type === "integer" || first.type === "number") return String(first.minimum ?? 1);
    if (first.type === "boolean") return "true";
    if (first.type === "array") return first.items ? `[${this.example(first.items)}]` : "[]";
    if (first.properties) return `{${this.required(first.properties, first.required ?? [])}}`;
    return first.type === "object" ? "{}" : flow("name");
  }

  map(path, shape, value) {
    const names = value !== null && typeof value === "object" ? Object.keys(value) : [];
    return this.details(keyOf(path), path.at(-1), this.noteOf(value), () => {
      const made = names.map((name) => this.build([...path, name], shape.item));
      const id = `add-${keyOf(path)}`;
      const input = element("input", { id, size: 12 });
      const item = this.schema.shape(shape.item);
      made.push(element("div", { class: "add" }, element("label", { for: id }, "Another name"), input,
        element("button", {
          type: "button",
          onclick: () => {
            if (!input.value.trim()) return;
            this.open.add(keyOf([...path, input.value.trim()]));
            this.change([{ path: [...path, input.value.trim()], value: `{${this.required(item.properties ?? {}, item.required ?? [])}}` }]);
          },
        }, "Add")));
      return made;
    }, shape.about);
  }

  field(path, about, value, isRequired, label = path.at(-1)) {
    const key = keyOf(path);
    const id = `key-${key}${label === path.at(-1) ? "" : `-${label}`}`;
    const isSet = value !== undefined && value !== null;
    const shown = !isSet ? "" : typeof value === "string" && about.isText ? value : flow(value);
    const input = this.input(id, path, about, shown, isRequired);
    const help = [about.about, about.valid && `(${about.valid})`].filter(Boolean).join(" ");
    const made = element("div", { class: `field${isSet ? " set" : ""}`, "data-key": key },
      element("label", { for: id }, label), input, this.unset(path, isSet));
    if (help) made.append(element("p", { class: "help" }, ...coded(help)));
    return made;
  }

  unset(path, isSet) {
    const own = element("button", {
      type: "button", class: "unset", title: "Remove the key; its default counts then", "aria-label": `Remove ${keyOf(path)}`,
      onclick: () => this.change([{ path }]),
    }, "×");
    if (!isSet) own.style.visibility = "hidden";
    return own;
  }

  input(id, path, about, shown, isRequired) {
    const fallback = about.default === undefined || about.default === null ? "" : flow(about.default);
    const send = (text) => {
      if (text === shown) return;
      if (text.trim() === "") this.change([{ path }]);
      else this.change([about.isText ? { path, text } : { path, value: text }]);
    };
    if (about.isBoolean || about.isClosed) {
      const choices = about.isBoolean ? ["true", "false"] : about.choices.map((each) => (about.isText ? String(each) : flow(each)));
      const unknown = shown !== "" && !choices.includes(shown) ? [shown] : [];
      const made = element("select", { id, onchange: () => send(made.value) },
        element("option", { value: "" }, isRequired ? "choose" : `default${fallback ? `: ${fallback}` : ""}`),
        ...[...choices, ...unknown].map((each) => element("option", { value: each, selected: each === shown }, each)));
      return made;
    }
    if (shown.length > LONG) {
      const made = element("textarea", { id, rows: Math.min(8, Math.ceil(shown.length / 50)), spellcheck: "false", onchange: () => send(made.value) });
      made.textContent = shown;
      return made;
    }
    const made = element("input", {
      id, value: shown, placeholder: fallback || (isRequired ? "required" : ""), autocomplete: "off", spellcheck: "false",
      list: about.choices?.length ? `${id}-choices` : undefined, onchange: () => send(made.value),
    });
    if (!about.choices?.length) return made;
    const list = element("datalist", { id: `${id}-choices` }, ...about.choices.map((each) => element("option", { value: each })));
    this.lists ??= document.body.appendChild(element("div", { hidden: true }));
    document.getElementById(list.id)?.remove();
    this.lists.append(list);
    return made;
  }
}

const rank = (order, key) => (order.includes(key) ? order.indexOf(key) : order.length);
