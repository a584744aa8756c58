/**
 * What the network sees: ghost stones above the columns, sized by its policy, and one bar in words. On request a search
 * checks it: stones and bar move while more positions are searched, and the exact answer comes last.
 */

import { exactScores } from "./exact.js";
import { Ghosts } from "./ghosts.js";
import { capital, outlook } from "./opinions.js";
import { usualSearch } from "./players.js";
import { bestColumn } from "./review.js";
import { replay } from "./rules.js";

const STEPS = [1, 50, 200, 800]; // simulations
const PACE = 900; // ms that a step stays
const DEBOUNCE = 80; // ms on a position before the network is queried
const EVEN = 0.5; // of ten games

const MARKUP = `
  <p id="sight-words" class="sight-words" role="status"></p>
  <div id="sight-bar" class="sight-bar" aria-hidden="true"><i></i></div>
  <ol id="sight-steps" class="sight-steps" aria-label="Positions searched"></ol>
  <p id="sight-line"></p>
  <div class="buttons">
    <button id="sight-check" type="button" class="primary">Let a search check it</button>
    <button id="sight-close" type="button">Close</button>
  </div>`;
const IDEA = "The network answers at a glance; the search taught it.";

const $ = (id) => document.getElementById(id);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** "Red wins about 7 in 10"; `value` is for this colour, from −1 to 1. */
export function oddsInWords(value, colour) {
  const other = colour === "red" ? "yellow" : "red";
  const inTen = 5 + 5 * Math.abs(value);
  const leader = capital(value >= 0 ? colour : other);
  if (inTen - 5 < EVEN) return "About even";
  return inTen > 9.5 ? `${leader} wins almost surely` : `${leader} wins about ${Math.round(inTen)} in 10`;
}

export class Sight {
  isOn = false;
  #board;
  #opinions;
  #ghosts;
  #network = ""; // the player that answers at a glance
  #search = null; // the number of simulations → the player that checks it
  #steps = [];
  #hasSolver = false;
  #place = null; // {moves, position, colours} on the board
  #stages = []; // what is known of it: [{name, policy, value, scores, move}]
  #isChecking = false;

  /**
   * @param {HTMLElement} root of the panel
   * @param {HTMLElement} board
   * @param {Opinions} opinions
   */
  constructor(root, board, opinions) {
    this.root = root;
    this.#board = board;
    this.#opinions = opinions;
    root.innerHTML = MARKUP;
    this.#ghosts = new Ghosts(board);
    $("sight-check").addEventListener("click", () => this.check());
  }

  get ghosts() {
    return this.#ghosts;
  }

  /** Take over the players: the shipped network, or else the first. */
  offer({ players, max_simulations: most }) {
    const networks = players.filter(({ kind }) => kind === "network");
    const guided = usualSearch(players.filter(({ kind }) => kind === "guided"));
    this.#network = (networks.find(({ name }) => guided?.name.startsWith(`${name}@`)) ?? networks[0])?.name ?? "";
    this.#search = guided ? (simulations) => guided.name.replace(/N$/, simulations) : null;
    this.#steps = guided ? STEPS.filter((simulations) => simulations <= most) : [];
    this.#hasSolver = players.some(({ kind }) => kind === "solver");
  }

  /** Whether there is a network to look through. */
  get isPossible() {
    return this.#network !== "";
  }

  toggle(isOn = !this.isOn) {
    this.isOn = isOn && this.isPossible;
    this.#leave();
  }

  #leave() {
    this.#place = null;
    this.#ghosts.hide();
  }

  /**
   * Show a position; the same again changes nothing.
   * @param {string|null} moves null where the network must not be seen
   * @param {string[]} colours of the two sides
   */
  async show(moves, colours) {
    this.root.hidden = !this.isOn || moves === null;
    if (moves === null) return this.#leave();
    if (!this.isOn || (this.#place?.moves === moves && this.#place.colours.join() === colours.join())) return;
    const position = replay(moves);
    const place = { moves, position, colours };
    this.#place = place;
    this.#stages = [];
    this.#isChecking = false;
    this.#render();
    if (position.isOver) return;
    try {
      if (!this.#opinions.known(this.#network, moves)) await pause(DEBOUNCE);
      if (this.#place === place) await this.#add("glance", place, this.#network);
    } catch (error) {
      if (this.#place === place) this.#say("", error.message);
    }
  }

  /** Search the position with more and more simulations, then give the exact answer where one is known. */
  async check() {
    const place = this.#place;
    if (!place || this.#isChecking || !this.#stages.length) return;
    this.#stages.length = 1;
    this.#isChecking = true;
    this.#render();
    try {
      for (const simulations of this.#steps) {
        const shown = pause(PACE);
        await this.#add(String(simulations), place, this.#search(simulations));
        await shown;
        if (this.#place !== place) return;
      }
      const scores = await exactScores(place.moves, this.#opinions, this.#hasSolver);
      if (this.#place !== place) return;
      if (scores) this.#stages.push({ name: "exact", ...exactly(scores) });
    } catch (error) {
      if (this.#place === place) this.#say("", error.message);
      return;
    } finally {
      if (this.#place === place) this.#isChecking = false;
    }
    this.#render();
  }

  async #add(name, place, player) {
    const opinion = await this.#opinions.ask(player, place.moves);
    if (this.#place !== place) return;
    this.#stages.push({ name, ...opinion });
    this.#render();
  }

  /* ---- showing ---- */

  #render() {
    const { position, colours } = this.#place;
    const stage = this.#stages.at(-1);
    const names = this.#stages.map(({ name }) => name);
    const steps = ["glance", ...this.#steps.map(String), ...(this.#isChecking || names.includes("exact") ? ["exact"] : [])];
    $("sight-steps").hidden = this.#stages.length < 2 && !this.#isChecking;
    $("sight-steps").replaceChildren(...steps.map((name) => {
      const item = document.createElement("li");
      item.textContent = name;
      item.classList.toggle("done", names.includes(name));
      if (name === stage?.name) item.setAttribute("aria-current", "step");
      return item;
    }));
    $("sight-check").hidden = !this.#search;
    $("sight-check").disabled = this.#isChecking || !stage;
    $("sight-check").classList.toggle("primary", !names.includes("exact"));
    $("sight-check").textContent = names.length > 1 && !this.#isChecking ? "Check again" : "Let a search check it";
    if (!stage) {
      this.#ghosts.hide();
      this.#setBar(0.5);
      return this.#say(position.isOver ? "The game is over" : "The network is looking…", IDEA);
    }
    const colour = colours[position.side];
    const [glance] = this.#stages;
    this.#ghosts.show(stage.policy, colour, stage === glance ? undefined : glance.policy);
    this.#board.dataset.sight = stage.name;
    const forRed = (value) => (colour === "red" ? value : -value);
    if (typeof stage.value === "number") this.#setBar(0.5 + forRed(stage.value) / 2);
    const words = stage.scores ? capital(outlook(stage.scores, colour, position.ply)) :
      typeof stage.value === "number" ? oddsInWords(stage.value, colour) : `Column ${stage.move + 1}`;
    this.#say(words, this.#sentence(stage, glance));
  }

  /** What is happening, in one sentence. */
  #sentence(stage, glance) {
    if (stage === glance) return `At a glance: column ${glance.move + 1}. ${IDEA}`;
    const change = stage.move === glance.move ? `still column ${stage.move + 1}` : `column ${stage.move + 1} instead of ${glance.move + 1}`;
    if (!stage.scores) return `The search has tried ${stage.name === "1" ? "one position" : `${stage.name} positions`}: ${change}.`;
    const isRight = (move) => Math.sign(stage.scores[move] ?? -99) === Math.sign(stage.value);
    const search = this.#stages.at(-2);
    if (isRight(glance.move)) return `Exact: column ${stage.move + 1}. The glance at column ${glance.move + 1} was right.`;
    const end = isRight(search.move) ? "the search saw it" : "and so was the search";
    return `Exact: column ${stage.move + 1}. The glance at column ${glance.move + 1} was wrong; ${end}.`;
  }

  /** @param {number} share of Red */
  #setBar(share) {
    $("sight-bar").style.setProperty("--share", `${(100 * share).toFixed(1)}%`);
  }

  #say(words, line) {
    if ($("sight-words").textContent !== words) $("sight-words").textContent = words;
    $("sight-line").textContent = line;
  }
}

/** Exact scores as an opinion: all best columns alike. */
function exactly(scores) {
  const best = Math.max(...scores.filter((score) => score !== null));
  const isBest = scores.map((score) => Number(score === best));
  const total = isBest.reduce((sum, each) => sum + each, 0);
  return { scores, value: Math.sign(best), policy: isBest.map((each) => each / total), move: bestColumn({ scores }) };
}
