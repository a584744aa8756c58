/**
 * The tab "Play": before a game the opponent and the person's colour, during it who plays and what one can do, after it
 * the result, the score against this opponent, and a rematch.
 */

import { face } from "./faces.js";
import { PERSON } from "./game.js";
import { capital, count } from "./opinions.js";
import { inWords, scoreAgainst } from "./scores.js";

const FRIEND = { name: PERSON, title: "A friend", note: "Two people share this device" };
const SIDES = [0, 1];

const $ = (id) => document.getElementById(id);

/** How a game ended, for the person who plays; in colours for two people, by name for two engines. */
export function resultInWords(game, players, { winner }) {
  const isByResignation = game.resigned !== null;
  const person = game.counted === "shown" ? undefined : game.side;
  if (winner === null) return { title: "Draw", reason: "The board is full." };
  const colour = capital(game.colour(winner));
  const reason = isByResignation ? `${game.side === 1 - winner ? "You" : capital(game.colour(1 - winner))} resigned.` : "Four in a row.";
  if (person === winner) return { title: `You won in ${count(game.moves.length, "move")}`, reason };
  if (person !== undefined) return { title: "You lost", reason: isByResignation ? reason : `${players.title(game.players[winner])} has four in a row.` };
  return { title: game.isWatched ? `${players.title(game.players[winner])} (${colour}) wins` : `${colour} wins`, reason };
}

export class PlayPanel {
  isRandom = false; // whether the start draws the colours
  #game;
  #players;

  /**
   * @param {Game} game
   * @param {Players} players
   * @param {() => void} onChange something was chosen that is kept for the next visit
   */
  constructor(game, players, onChange) {
    this.#game = game;
    this.#players = players;
    this.onChange = onChange;
    $("more-label").hidden = !players.levels.length;
    $("opponents").addEventListener("change", ({ target }) => this.#oppose(target.value));
    $("sides").addEventListener("change", ({ target }) => this.#take(target.value));
    for (const side of SIDES) $(`player-${side}`).addEventListener("change", ({ target }) => game.seat(side, target.value));
    $("more-players").addEventListener("change", () => {
      if (!this.#isAdvanced && game.isWatched) game.seat(0, PERSON); // the list has one engine only
      this.offer();
      onChange();
    });
  }

  /** Two selects with all players, or the list of levels. */
  get #isAdvanced() {
    return !this.#players.levels.length || $("more-players").checked;
  }

  /** The other player's name; two people are each other's. */
  get #opponent() {
    return this.#game.players.find((name) => name !== PERSON) ?? PERSON;
  }

  /** Fill list and selects again. */
  offer() {
    this.#offerList();
    const groups = Object.entries(this.#players.groups).filter(([, cards]) => cards.length);
    for (const side of SIDES) {
      const rest = groups.map(([label, cards]) => {
        const group = Object.assign(document.createElement("optgroup"), { label });
        group.append(...cards.map(option));
        return group;
      });
      $(`player-${side}`).replaceChildren(new Option("You", PERSON), ...this.#players.levels.map(option), ...rest);
      $(`player-${side}`).value = this.#game.players[side];
    }
  }

  #offerList() {
    const { levels } = this.#players;
    const seated = this.#opponent;
    const isListed = [...levels, FRIEND].some(({ name }) => name === seated);
    const extra = isListed ? [] : [{ name: seated, title: this.#players.title(seated), note: this.#players.note(seated) }];
    const hadFocus = $("opponents").contains(document.activeElement);
    $("opponent-list").replaceChildren(...[...levels, ...extra, FRIEND].map((card) => this.#row(card)));
    if (hadFocus) $("opponent-list").querySelector("input:checked")?.focus();
  }

  #row({ name, title, note }) {
    const label = document.createElement("label");
    label.className = "opponent";
    label.innerHTML = `<input type="radio" name="opponent">${face(name)}<b></b>`;
    const [input, , text] = label.children;
    input.value = name;
    input.checked = name === this.#opponent;
    input.setAttribute("aria-describedby", "opponent-note");
    text.textContent = title;
    label.title = [this.#players.elo(name), note].filter(Boolean).join(": ");
    label.dataset.note = note;
    return label;
  }

  #oppose(name) {
    const engineSide = this.#game.side === 1 ? 0 : 1;
    this.#game.players = [PERSON, PERSON];
    this.#game.seat(engineSide, name);
  }

  #take(choice) {
    const { players, side } = this.#game;
    this.isRandom = choice === "random";
    if (!this.isRandom && side !== undefined && side !== Number(choice)) players.reverse();
    this.#game.seat(0, players[0]); // tells of the change
  }

  /** Let the chosen game begin. */
  start() {
    const { players } = this.#game;
    if (this.isDrawing && Math.random() < 0.5) players.reverse();
    this.#game.start();
  }

  /** The level to go on with: one down after a loss, else one up; undefined where there is none. */
  #nextLevel(kind) {
    const { levels } = this.#players;
    const place = levels.findIndex(({ name }) => name === this.#opponent);
    return place < 0 || kind === "over" ? undefined : levels[place + (kind === "loss" ? -1 : 1)];
  }

  /** Whether the colours are drawn once this game starts. */
  get isDrawing() {
    const { isStarted, side } = this.#game;
    return this.isRandom && !this.#isAdvanced && !isStarted && side !== undefined;
  }

  /** Render; `hasUndo`: the game that this one replaced can be brought back. */
  show({ hasUndo }) {
    const game = this.#game;
    const { isStarted, position, result } = game;
    const isSimple = !this.#isAdvanced;
    $("start").hidden = isStarted || !isSimple;
    $("intro").hidden = isStarted;
    $("seats").hidden = isSimple && !isStarted;
    $("sides").hidden = game.side === undefined;
    for (const side of SIDES) this.#showSeat(side, position);
    for (const input of $("sides").querySelectorAll("input")) {
      input.checked = this.isRandom ? input.value === "random" : input.value === String(game.side);
    }
    for (const input of $("opponents").querySelectorAll("input")) {
      input.checked = input.value === this.#opponent;
      if (input.checked) $("opponent-note").textContent = `${input.parentElement.dataset.note}.`;
    }
    this.#showNote(isSimple, isStarted);
    this.#showButtons({ isSimple, hasUndo, position, result });
    this.#showEnd(result);
  }

  #showSeat(side, position) {
    const game = this.#game;
    const name = game.players[side];
    const colour = game.colour(side);
    $(`chip-${side}`).className = `chip ${colour}`;
    $(`seat-name-${side}`).textContent = capital(colour);
    $(`side-name-${side}`).textContent = `${capital(colour)}, ${side ? "second" : "first"}`;
    $(`player-${side}`).value = name;
    $(`player-${side}`).hidden = !this.#isAdvanced;
    $(`seated-${side}`).hidden = this.#isAdvanced;
    $(`seated-${side}`).textContent = game.side === undefined && name === PERSON && side ? "A friend" : [this.#players.title(name), this.#players.elo(name)].filter(Boolean).join(" · ");
    $(`player-${side}`).closest(".seat").classList.toggle("to-move", !game.result && position.side === side);
  }

  #showNote(isSimple, isStarted) {
    const engines = [...new Set(this.#game.players)].filter((name) => name !== PERSON);
    const notes = engines.map((name) => `${engines.length > 1 ? `${this.#players.title(name)}: ` : ""}${this.#players.note(name)}.`);
    const score = this.#game.side === undefined ? "" : inWords(scoreAgainst(this.#opponent));
    const lines = isSimple && !isStarted ? [] : notes;
    if (score && !this.#game.result) lines.push(`Your score: ${score}.`);
    $("players-note").textContent = lines.join(" ");
    $("players-note").hidden = !lines.length;
  }

  #showButtons({ isSimple, hasUndo, position, result }) {
    const game = this.#game;
    const { isStarted, isWatched, isPaused } = game;
    const isEnginesTurn = game.players[position.side] !== PERSON && !result;
    $("start-game").hidden = isStarted;
    $("start-game").textContent = isWatched ? "Watch" : "Start game";
    $("pause").hidden = !isStarted || Boolean(result) || !(isWatched || (isPaused && isEnginesTurn));
    $("pause").textContent = isPaused ? "Resume" : "Pause";
    for (const id of ["hint", "take-back", "resign"]) $(id).hidden = !isStarted; // none moves another by appearing
    $("hint").hidden ||= isWatched || !this.#players.adviser;
    $("hint").disabled = isEnginesTurn || Boolean(result);
    $("resign").hidden ||= isWatched;
    $("resign").disabled = Boolean(result) || !game.isAtEnd || !game.moves;
    $("take-back").setAttribute("aria-disabled", String(game.cursor === 0 && game.resigned === null)); // and keep the focus
    $("new").hidden = !isStarted;
    $("undo-new").hidden = !hasUndo;
    for (const id of ["switch", "flip"]) $(id).hidden = isSimple;
  }

  #showEnd(result) {
    const game = this.#game;
    const hadFocus = $("end").contains(document.activeElement);
    $("end").hidden = !result;
    if (!result) {
      if (hadFocus) $("hint").focus();
      return;
    }
    const kind = result.winner === null ? "draw" : game.side === undefined ? "over" : result.winner === game.side ? "win" : "loss";
    $("end").dataset.kind = game.counted === "shown" ? "over" : kind;
    const { title, reason } = resultInWords(game, this.#players, result);
    $("end-title").textContent = title;
    $("end-reason").textContent = reason;
    const opponent = this.#players.title(this.#opponent);
    const score = game.side === undefined ? "" : inWords(scoreAgainst(this.#opponent));
    $("end-score").textContent = score && `Your score against ${opponent}: ${score}.`;
    $("end-score").hidden = !score;
    $("rematch").hidden = game.isWatched;
    const next = this.#nextLevel(kind);
    $("next-level").hidden = !next;
    if (next) $("next-level").textContent = `Play ${next.title}`;
    $("next-level").value = next?.name ?? "";
  }
}

const option = ({ name, title, note }) => Object.assign(new Option(title, name), { title: note ?? "" });
