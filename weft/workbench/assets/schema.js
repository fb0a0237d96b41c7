// Reads the JSON Schema of scenarios: which form each key has.

// A value as YAML on one line.
export function flow(value) {
  if (Array.isArray(value)) return `[${value.map(flow).join(", ")}]`;
  if (value !== null && typeof value === "object") {
    return `{${Object.entries(value).map(([key, each]) => `${flow(key)}: ${flow(each)}`).join(", ")}}`;
  }
  if (typeof value !== "string") return String(value);
  const isPlain = /^[A-Za-z0-9_./][\w./:*<>+-]*$/.test(value) && !/:$|^[-+.0-9_eExXoa-fA-F]*$|^(true|false|null|nan|inf)$/i.test(value);
  return isPlain ? value : JSON.stringify(value);
}

// A path as people write it: traffic[0].incast.
export const keyOf = (path) =>
  path.map((part) => (typeof part === "number" ? `[${part}]` : `.${part}`)).join("").replace(/^\./, "");

export function pathOf(key) {
  const parts = [...key.matchAll(/\[([0-9]+)\]|([^.[\]]+)/g)];
  return parts.map((part) => (part[1] === undefined ? part[2] : Number(part[1])));
}

export const at = (tree, path) => path.reduce((here, part) => (here === null || here === undefined ? undefined : here[part]), tree);

export class Schema {
  constructor(root) {
    this.root = root;
  }

  resolve(node) {
    let found = node;
    while (found.$ref) {
      const { $ref, ...own } = found;
      found = { ...$ref.slice(2).split("/").reduce((here, part) => here[part], this.root), ...own };
    }
    return found;
  }

  // All that may stand there, but for null, which means that the key is left out.
  alternatives(node) {
    const found = this.resolve(node);
    if (!found.anyOf) return found.type === "null" ? [] : [found];
    return found.anyOf.flatMap((each) => this.alternatives(each));
  }

  // The form of a key: a section, one of several kinds of sections, a list or a mapping of those, or a value.
  shape(node) {
    const all = this.alternatives(node);
    const about = this.resolve(node).description ?? "";
    const sections = all.filter((each) => each.properties);
    const others = all.filter((each) => !each.properties);
    const names = others.flatMap((each) => each.enum ?? []);
    if (sections.some((each) => Object.keys(each.properties).join() === "preset")) {
      const properties = Object.assign({}, ...sections.map((each) => each.properties));
      return { form: "section", properties, required: [], about, names };
    }
    if (sections.length > 1) {
      const kinds = new Map(sections.map((each) => [kindOf(each), each]));
      return { form: "kinds", kinds, about };
    }
    if (sections.length === 1) {
      const [{ properties, required = [], description }] = sections;
      return { form: "section", properties, required, about: about || description || "", names, takesText: others.length > 0 };
    }
    for (const each of others) {
      if (each.type === "array" && each.items) {
        const item = this.shape(each.items);
        if (item.form !== "value") return { form: "list", item: each.items, about };
      }
      const below = each.additionalProperties ?? Object.values(each.patternProperties ?? {})[0];
      if (each.type === "object" && below && typeof below === "object" && this.shape(below).form !== "value") {
        return { form: "map", item: below, about };
      }
    }
    return { form: "value", ...this.value(node, others), about };
  }

  // What an input needs to know: `choices`, whether there are others, whether it holds text alone.
  value(node, all) {
    const choices = all.flatMap((each) => each.enum ?? ("const" in each ? [each.const] : []));
    const rest = all.filter((each) => !each.enum && !("const" in each));
    return {
      choices,
      isBoolean: all.length > 0 && all.every((each) => each.type === "boolean"),
      isClosed: rest.length === 0 && choices.length > 0,
      isText: all.length > 0 && all.every((each) => each.type === "string" || typeof (each.enum ?? [each.const])[0] === "string"),
      default: this.resolve(node).default,
      valid: this.valid(all),
    };
  }

  valid(all) {
    const texts = all.map((each) => {
      if (each.enum || "const" in each) return "";
      const low = each.minimum ?? each.exclusiveMinimum;
      const high = each.maximum ?? each.exclusiveMaximum;
      if (each.type === "integer" || each.type === "number") {
        if (low === undefined && high === undefined) return each.type === "number" ? "a number" : "a whole number";
        if (high === undefined) return `${each.exclusiveMinimum === undefined ? "at least" : "above"} ${low}`;
        return low === undefined ? `up to ${high}` : `${low} to ${high}`;
      }
      if (each.examples) return `such as ${each.examples.map(flow).join(", ")}`;
      if (each.type === "array") {
        const item = this.valid(this.alternatives(each.items ?? {}));
        const names = this.alternatives(each.items ?? {}).flatMap((one) => one.enum ?? []);
        return `a list, [a, b]${names.length ? ` of ${names.join(", ")}` : item ? `; each ${item}` : ""}`;
      }
      if (each.type === "object") return "a mapping, {key: value}";
      return "";
    });
    return [...new Set(texts)].filter(Boolean).join(", or ");
  }

  // The keys of a section of this shape; of one of several kinds, those of `kind`, first the ones that not all kinds have.
  section(shape, kind) {
    if (shape.form !== "kinds") return shape;
    const found = shape.kinds.get(kind);
    if (!found) return null;
    const kinds = [...shape.kinds.values()];
    const isCommon = ([name]) => kinds.every((each) => name in each.properties);
    const keys = Object.entries(found.properties);
    const ordered = [...keys.filter((key) => !isCommon(key)), ...keys.filter(isCommon)];
    return { properties: Object.fromEntries(ordered), required: found.required ?? [], about: found.description ?? "" };
  }

  // Yields the paths of all values below a node, as far as lists and mappings have items.
  *paths(node, path, tree, kinds) {
    const shape = this.shape(node);
    if (shape.form === "value") {
      yield path;
      return;
    }
    if (shape.form === "list" || shape.form === "map") {
      const items = at(tree, path);
      const keys = shape.form === "list" ? (Array.isArray(items) ? items.keys() : []) : Object.keys(items ?? {});
      for (const key of keys) yield* this.paths(shape.item, [...path, key], tree, kinds);
      return;
    }
    const section = this.section(shape, kinds[keyOf(path)]);
    for (const [key, below] of Object.entries(section?.properties ?? {})) {
      yield* this.paths(below, [...path, key], tree, kinds);
    }
  }
}

// A kind of topology has the key `kind`; an item of the traffic is named by its first required key.
const kindOf = (section) => section.properties.kind?.const ?? section.required[0];
