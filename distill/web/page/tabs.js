/**
 * Tabs as the ARIA practices describe them: one is chosen and can be focused, arrows go to the others, and of the panels
 * only the chosen one's is shown.
 */

export class Tabs {
  #tabs;

  /**
   * @param {string[]} names of elements `tab-NAME` and `panel-NAME`; the first is chosen
   * @param {(name: string, before: string) => void} onChange after another one was chosen
   */
  constructor(names, onChange) {
    this.#tabs = new Map(names.map((name) => [name, document.getElementById(`tab-${name}`)]));
    this.onChange = onChange;
    for (const [name, tab] of this.#tabs) {
      tab.addEventListener("click", () => this.choose(name));
      tab.addEventListener("keydown", (event) => this.#steer(event, names.indexOf(name), names));
    }
    this.#show(names[0]);
  }

  choose(name) {
    const before = this.chosen;
    if (name === before) return;
    this.#show(name);
    this.onChange(name, before);
  }

  #show(name) {
    this.chosen = name;
    for (const [each, tab] of this.#tabs) {
      tab.setAttribute("aria-selected", String(each === name));
      tab.tabIndex = each === name ? 0 : -1;
      document.getElementById(tab.getAttribute("aria-controls")).hidden = each !== name;
    }
  }

  #steer(event, index, names) {
    const last = names.length - 1;
    const next = { ArrowLeft: index ? index - 1 : last, ArrowRight: index < last ? index + 1 : 0, Home: 0, End: last }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    this.choose(names[next]);
    this.#tabs.get(names[next]).focus();
  }
}
