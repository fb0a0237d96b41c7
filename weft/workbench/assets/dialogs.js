// Asks for one or more texts in a dialog; the answer is checked by `done`, and its error shown there.

import { element } from "./forms.js";

const dialog = document.getElementById("dialog");
const part = (name) => document.getElementById(`dialog-${name}`);
let onSubmit = null;

dialog.querySelector("form").addEventListener("submit", async (event) => {
  event.preventDefault();
  const given = Object.fromEntries(new FormData(event.target));
  part("ok").disabled = true;
  try {
    await onSubmit(given);
    dialog.close();
  } catch (error) {
    part("problem").textContent = error.message;
  } finally {
    part("ok").disabled = false;
  }
});
part("cancel").addEventListener("click", () => dialog.close());

// `fields`: name, label, value, and choices (of a select) or list (the id of a datalist).
export function openDialog({ title, text = "", fields = [], ok, done }) {
  part("title").textContent = title;
  part("text").textContent = text;
  part("problem").textContent = "";
  part("ok").textContent = ok;
  part("fields").replaceChildren(...fields.map(({ name, label, value = "", choices, list, onchange }) => {
    const input = choices
      ? element("select", { name, onchange }, ...Object.entries(choices).map(([key, shown]) => element("option", { value: key }, shown)))
      : element("input", { name, value, list, onchange, autocomplete: "off", spellcheck: "false", required: true });
    return element("label", {}, label, input);
  }));
  onSubmit = done;
  dialog.showModal();
  const first = part("fields").querySelector("input");
  first?.select();
}
