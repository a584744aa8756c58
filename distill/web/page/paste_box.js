/** The field that shows the moves of the game and takes pasted ones (`paste.js`). Nothing changes before Enter or "Load". */

import { read } from "./paste.js";

export class PasteBox {
  #form;
  #field;
  #note;
  #moves = ""; // of the game
  #kept = ""; // what the field held when it was last filled in

  /**
   * @param {HTMLFormElement} form with a field, a button "Load" and, in the next element, a note
   * @param {{load: (moves: string) => void, openPuzzle: (id: string) => void, follow: (address: string) => void}} actions
   */
  constructor(form, actions) {
    this.#form = form;
    this.#field = form.querySelector("textarea");
    this.#note = form.nextElementSibling;
    form.addEventListener("submit", (event) => (event.preventDefault(), this.#submit(actions)));
    this.#field.addEventListener("input", () => this.#say(""));
    this.#field.addEventListener("blur", () => this.#field.value === this.#kept && this.#fill());
    this.#field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing) return;
      event.preventDefault();
      form.requestSubmit();
    });
  }

  /** The game has these moves now. What somebody is typing stays. */
  show(moves) {
    if (moves === this.#moves) return;
    this.#moves = moves;
    if (document.activeElement !== this.#field) this.#fill();
  }

  /** A line about the text, or a question with its button. */
  #say(line, button = null) {
    this.#note.replaceChildren(line, ...(button ? [" ", button] : []));
    this.#field.removeAttribute("aria-invalid");
    this.#form.querySelector("[type=submit]").hidden = this.#field.value === this.#kept;
  }

  #fill() {
    this.#field.value = this.#kept = this.#moves;
    this.#say("");
  }

  #submit({ load, openPuzzle, follow }) {
    try {
      const { moves, zeroBased, puzzle, link } = read(this.#field.value);
      if (zeroBased !== undefined) return this.#askAboutZero(() => this.#load(load, zeroBased));
      if (puzzle !== undefined) return this.#fill(), openPuzzle(puzzle);
      if (link !== undefined) return this.#fill(), follow(link);
      this.#load(load, moves);
    } catch (error) {
      this.#say(error.message);
      this.#field.setAttribute("aria-invalid", "true");
    }
  }

  #askAboutZero(confirm) {
    const button = Object.assign(document.createElement("button"), { type: "button", textContent: "Yes, load it" });
    button.addEventListener("click", () => (this.#field.focus(), confirm()));
    this.#say("There is a 0 in this text. Are its columns counted from 0 to 6?", button);
  }

  #load(load, moves) {
    load(moves);
    this.#moves = moves;
    this.#fill();
  }
}
