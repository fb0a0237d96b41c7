// Steps through packets: the source's current line, and what the packet's fields hold.
{
  const { packets, files } = JSON.parse(document.getElementById("data").textContent);
  const at = (name) => document.getElementById(name);
  let [packet, position, shown] = [0, 0, null];

  packets.forEach((each, index) => at("packet").add(new Option(each.name, index)));

  // Steps of lanes that are shown as one, by packet and first step, which says how many; a click unfolds them.
  const unfolded = new Set();
  const foldAt = (index) => packets[packet].steps[index]?.fold;
  const isUnfolded = (first) => unfolded.has(`${packet} ${first}`);
  // The first step of the fold that a step is in; -1 if it is in none, or in one that is unfolded.
  function foldOf(index) {
    for (let first = index; first >= 0; first -= 1) {
      const fold = foldAt(first);
      if (fold) return first + fold.steps > index && !isUnfolded(first) ? first : -1;
    }
    return -1;
  }

  // What the fields hold after a step: all changes up to it.
  function fieldsAt(steps, last) {
    const fields = new Map();
    for (const step of steps.slice(0, last + 1)) {
      step.gone.forEach((name) => fields.delete(name));
      Object.entries(step.set).forEach(([name, value]) => fields.set(name, value));
    }
    return fields;
  }

  function showSource(file, line) {
    if (file !== shown) {
      shown = file;
      at("file").textContent = file ? file.split("/").pop() : "The switch itself";
      at("source").replaceChildren(...(files[file] ?? []).map((text, index) => {
        const span = document.createElement("span");
        span.textContent = `${String(index + 1).padStart(5)}  ${text}`;
        return span;
      }));
    }
    at("source").querySelector(".current")?.classList.remove("current");
    const current = at("source").children[line - 1];
    if (!current) return;
    current.classList.add("current");
    at("source").scrollTop = current.offsetTop - at("source").offsetTop - at("source").clientHeight / 2;
  }

  function show() {
    const { steps } = packets[packet];
    position = Math.min(Math.max(position, 0), steps.length - 1);
    const folded = foldOf(position);
    if (folded >= 0) position = folded;
    const [step, fold] = [steps[position], foldAt(position)];
    const end = folded >= 0 ? position + fold.steps : position + 1;
    at("step").textContent = folded >= 0 ? fold.text : step.text;
    const which = end - position > 1 ? `steps ${position + 1} to ${end}` : `step ${position + 1}`;
    at("count").textContent = `${which} of ${steps.length}`;
    at("fold").hidden = !fold;
    if (fold) at("fold").textContent = folded >= 0 ? `unfold ${fold.steps} steps` : `fold ${fold.steps} steps`;
    [at("position").max, at("position").value] = [steps.length - 1, position];
    showSource(step.file, step.line);
    const changed = new Set(steps.slice(position, end).flatMap((each) => Object.keys(each.set)));
    at("values").replaceChildren(...[...fieldsAt(steps, end - 1)].map(([name, value]) => {
      const row = document.createElement("tr");
      row.className = changed.has(name) ? "changed" : "";
      for (const text of [name, value]) row.insertCell().textContent = text;
      return row;
    }));
    at("values").querySelector(".changed")?.scrollIntoView({ block: "nearest" });
  }

  const go = (to) => { position = to; show(); };
  // The first step in the program: before it there is no source to show.
  const begin = () => Math.max(0, packets[packet].steps.findIndex((step) => step.file));
  const next = () => position + (foldOf(position) >= 0 ? foldAt(position).steps : 1);
  const ends = { first: () => 0, back: () => position - 1, forward: next, last: () => Infinity };
  const keys = { Home: "first", ArrowLeft: "back", ArrowRight: "forward", End: "last" };
  Object.entries(ends).forEach(([name, to]) => at(name).addEventListener("click", () => go(to())));
  at("fold").addEventListener("click", () => {
    const key = `${packet} ${position}`;
    if (!unfolded.delete(key)) unfolded.add(key);
    show();
  });
  at("position").addEventListener("input", (event) => go(Number(event.target.value)));
  at("packet").addEventListener("change", (event) => { packet = Number(event.target.value); go(begin()); });
  document.addEventListener("keydown", (event) => {
    if (!(event.key in keys) || ["SELECT", "INPUT"].includes(event.target.tagName)) return;
    event.preventDefault();
    go(ends[keys[event.key]]());
  });
  const wanted = Number(location.hash.slice(1));
  if (packets.length) go(Number.isInteger(wanted) && wanted > 0 ? wanted - 1 : begin());
}
