/**
 * The evaluation of the position on the board: a gauge beside it and a line below, and what a network, a search and the
 * solver think of each column.
 */

import { stored, tryEffect } from "./effects.js";
import { Strip, capital, expectation, outlook } from "./opinions.js";
import { withStrengths } from "./players.js";
import { standing } from "./review.js";

const STRENGTHS = { search: [100, 1000, 10_000], guided: [50, 200, 800] }; // simulations
const DEBOUNCE = 100; // ms on a position before the players evaluate it
const KINDS = ["network", "search", "solver"];
const STORAGE_KEY = "distill-analysis"; // in localStorage: the chosen players

const TITLES = { network: "Preferred moves, %", search: "Searched moves, %", solver: "Solver" };

const $ = (id) => document.getElementById(id);

/** The gauge beside the board and the line below it. */
export class Evaluation {
  #gauge;
  #line;

  constructor(gauge, line) {
    this.#gauge = gauge;
    this.#line = line;
  }

  wait() {
    this.#line.textContent = "Analysing…";
  }

  fail(reason) {
    this.#say(reason, 0);
  }

  /**
   * @param {object} position of rules.js
   * @param {object|null} opinion of the position, null where the game is over or no player evaluates
   * @param {string[]} colours of the two sides
   */
  show(position, opinion, colours) {
    const { side, ply, winner, isOver } = position;
    this.#gauge.dataset.below = colours[0]; // the side that began
    const forFirst = (value) => (side ? -value : value);
    if (winner !== null) this.#say(`${capital(colours[winner])} wins`, winner ? -1 : 1);
    else if (isOver) this.#say("A draw", 0);
    else if (!opinion) this.#say("", 0);
    else if (opinion.scores) this.#say(outlook(opinion.scores, colours[side], ply), forFirst(standing(opinion)));
    else this.#say(capital(expectation(opinion.value, colours[side])), forFirst(opinion.value));
  }

  #say(text, value) {
    this.#line.textContent = text;
    this.#gauge.setAttribute("aria-label", `Evaluation: ${text || "none"}`);
    this.#gauge.style.setProperty("--share", `${50 + 50 * value}%`);
  }
}

/** Switches for three kinds of player, and below the board a strip for each that is on. */
export class WhatTheyThink {
  #opinions;
  #changed;
  #strips;

  /**
   * @param {HTMLElement} root of the switches
   * @param {Opinions} opinions
   * @param {() => void} changed a switch or a choice was changed
   */
  constructor(root, opinions, changed) {
    this.#opinions = opinions;
    this.#changed = changed;
    root.innerHTML = `<h2>Evaluate each column</h2>${KINDS.map(row).join("")}`;
    this.#strips = Object.fromEntries(KINDS.map((kind) => [kind, new Strip($(`${kind}-strip`), kind)]));
    root.addEventListener("change", () => {
      this.#remember();
      changed();
    });
  }

  /** Take over the players; `isNetworkOn` says whether a network or else the solver evaluates at first. */
  offer({ players, max_simulations: most }, isNetworkOn) {
    const of = (kind) => players.filter((player) => player.kind === kind);
    const options = { network: of("network"), search: ["guided", "search"].flatMap((kind) => withStrengths(of(kind), STRENGTHS[kind], most)) };
    for (const kind of ["network", "search"]) {
      $(`${kind}-who`).append(...options[kind].map(({ name, title }) => new Option(title, name)));
    }
    const first = options.network.find(({ name }) => name.endsWith("pillar"));
    if (first) $("network-who").value = first.name;
    const kept = stored(STORAGE_KEY);
    for (const kind of KINDS) {
      const all = kind === "solver" ? of("solver") : options[kind];
      $(`${kind}-on`).disabled = !all.length;
      $(`${kind}-on`).checked = Boolean(all.length) && (kept[kind] ?? (kind === "solver" || (kind === "network" && isNetworkOn)));
      if (all.some(({ name }) => name === kept[`${kind}-who`])) $(`${kind}-who`).value = kept[`${kind}-who`];
    }
    if (!of("solver").length) $("solver-note").textContent = "not installed";
  }

  /** All on, or all off if one is on. */
  toggle() {
    const switches = KINDS.map((kind) => $(`${kind}-on`)).filter((input) => !input.disabled);
    const isOn = !switches.some((input) => input.checked);
    for (const input of switches) input.checked = isOn;
    this.#remember();
    this.#changed();
  }

  /**
   * @param {string} moves
   * @param {object} position after them
   * @param {string} colour of the side to move
   * @param {() => boolean} isWanted whether this position is still on the board
   */
  async show(moves, position, colour, isWanted) {
    await Promise.all(KINDS.map(async (kind) => {
      const player = kind === "solver" ? kind : $(`${kind}-who`).value;
      const strip = this.#strips[kind];
      const isOn = () => $(`${kind}-on`).checked;
      strip.root.hidden = !isOn();
      if (!isOn()) return;
      const title = kind === "solver" ? TITLES.solver : `${TITLES[kind]} · ${$(`${kind}-who`).selectedOptions[0].text}`;
      if (position.isOver) return strip.clear(title, "the game is over");
      const isStillWanted = () => isWanted() && isOn() && (kind === "solver" || $(`${kind}-who`).value === player);
      try {
        if (!this.#opinions.known(player, moves)) {
          strip.wait(title);
          await new Promise((resolve) => setTimeout(resolve, DEBOUNCE));
          if (!isStillWanted()) return;
        }
        const opinion = await this.#opinions.ask(player, moves);
        if (isStillWanted()) strip.show(title, opinion, colour, position.ply);
      } catch (error) {
        if (isStillWanted()) strip.clear(title, error.message);
      }
    }));
  }

  #remember() {
    const kept = Object.fromEntries(KINDS.flatMap((kind) => [
      [kind, $(`${kind}-on`).checked], [`${kind}-who`, $(`${kind}-who`)?.value],
    ]));
    tryEffect(() => localStorage.setItem(STORAGE_KEY, JSON.stringify(kept)));
  }
}

const row = (kind) => `
  <div class="opinion">
    <label class="switch"><input id="${kind}-on" type="checkbox"><span>${capital(kind)}</span></label>
    ${kind === "solver" ? '<span id="solver-note" class="note">exact scores</span>' : `<select id="${kind}-who" aria-label="Which ${kind}"></select>`}
  </div>`;
