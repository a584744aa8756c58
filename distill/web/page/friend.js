/**
 * A game with a friend who has the link. With a server the link is a room, which updates both sides at once; without one
 * the link has the moves, and goes to and fro: whoever opens it is to move.
 */

import { stored, tryEffect } from "./effects.js";
import { contentOf } from "./files.js";
import { PERSON, REMOTE } from "./game.js";
import { capital } from "./opinions.js";
import { isHandheld } from "./sending.js";

const ROOMS = "api/v1/rooms";
const KEY = "distill-rooms"; // in localStorage: {room: [this person's side in the first game, moves, games before]}, of the last MOST_KEPT
const MOST_KEPT = 20;
const LOST = "The connection is lost; trying again…";
const PAUSE = 2000; // ms before what the server did not take is sent again
const HIDDEN = ["hint", "resign", "pause", "switch", "flip", "start-game", "players-note"];

const PANEL = `
  <button id="friend-start" type="button">A friend by link</button>
  <div id="friend-box" hidden>
    <p id="friend-text"></p>
    <div class="buttons">
      <button id="friend-send" type="button" class="primary"></button>
    </div>
    <p id="friend-note" class="note" role="status"></p>
  </div>`;

const $ = (id) => document.getElementById(id);

export class Friend {
  #game;
  #actions;
  #isServed;
  #room = ""; // its name; empty for a link that has the moves
  #seat = 0; // the person's side in the first game of the room
  #games = 0; // before this one
  #clients = 0; // that have the room open
  #stream = null; // EventSource
  #isSending = false;
  #failure = "";
  before = null; // who played before the friend came

  /**
   * @param {Game} game
   * @param {HTMLElement} panel to fill
   * @param {boolean} isServed whether the server has rooms
   * @param {object} actions
   * @param {() => {moves: string, players: string[]}} actions.own the person's own game, which another tab may hide
   * @param {(moves: string) => void} actions.makePlace the game with these moves will take the place of it
   * @param {(moves: string, players: string[]) => void} actions.enter puts the friend's game there
   * @param {(moves: string) => void} actions.update the friend has moved
   * @param {() => void} actions.refresh redraws the page
   * @param {(link: string, text: string) => Promise<string>} actions.send shares or copies a link; says what was done
   */
  constructor(game, panel, isServed, actions) {
    this.#game = game;
    this.#isServed = isServed;
    this.#actions = actions;
    panel.innerHTML = PANEL;
    $("friend-start").addEventListener("click", () => this.begin());
    $("friend-send").addEventListener("click", () => this.#send());
  }

  get isOn() {
    return this.#game.players.includes(REMOTE);
  }

  get #side() {
    return this.#game.players.indexOf(PERSON);
  }

  /* ---- beginning and ending ---- */

  async begin() {
    $("friend-start").disabled = true;
    const room = this.#isServed ? await openRoom().catch(() => "") : ""; // without a room the link does it
    $("friend-start").disabled = false;
    this.#enter({ room, moves: "", side: 0 });
    $("friend-send").focus();
  }

  /**
   * A link was opened, or the browser came back to one.
   * @param {{room?: string, moves?: string}} link
   * @param {string[]} [players] of the game before the page was reloaded
   */
  open({ room = "", moves = "" }, players) {
    if (!room) {
      const side = players?.includes(REMOTE) ? players.indexOf(PERSON) : moves.length % 2;
      return this.#enter({ room, moves, side });
    }
    const [side, played, games] = keptSeat(room);
    this.#enter({ room, moves: moves || played, side, games });
  }

  #enter({ room, moves, side, games = 0 }) {
    this.#actions.makePlace(moves);
    this.#stream?.close();
    this.#stream = null;
    this.before ??= [...this.#game.players];
    this.#room = room;
    this.#seat = side;
    this.#games = games;
    this.#clients = 0;
    this.#failure = "";
    $("friend-note").textContent = "";
    this.#actions.enter(moves, seated((side + games) % 2));
    if (room) this.#follow(room);
  }

  /** Another game takes the place of this one. */
  leave() {
    this.#stream?.close();
    this.#stream = null;
    if (this.before) this.#game.players = this.before;
    this.before = null;
  }

  rematch() {
    if (this.#room) return this.#post("");
    this.#enter({ room: "", moves: "", side: 0 });
  }

  /* ---- the room ---- */

  #follow(room) {
    this.#keep();
    this.#stream = new EventSource(`${ROOMS}/${room}`);
    this.#stream.onmessage = ({ data }) => this.#receive(JSON.parse(data));
    this.#stream.onerror = () => this.#lose();
  }

  /** The connection is lost; the browser tries again, unless there is no such room any more. */
  #lose() {
    this.#clients = 0;
    this.#failure = LOST;
    if (this.#stream.readyState === EventSource.CLOSED) {
      const { moves } = this.#actions.own();
      this.#failure = moves ? "" : "This game has expired, or its link is incomplete.";
      if (moves) this.#room = ""; // the game goes on by links that have the moves
      $("friend-note").textContent = moves ? "The room has expired: the link has the moves now." : "";
    }
    this.#actions.refresh();
  }

  #receive({ moves, games, clients }) {
    this.#failure = "";
    this.#clients = clients;
    const { moves: own, players } = this.#actions.own();
    const side = (this.#seat + games) % 2;
    if (games !== this.#games || players[side] !== PERSON) {
      this.#games = games;
      this.#actions.enter(moves, seated(side));
    } else if (own.length === moves.length + 1 && own.startsWith(moves)) {
      if (!this.#isSending) this.#post(own); // the connection was lost before
    } else if (own !== moves) {
      this.#actions.update(moves);
    }
    this.#keep();
    this.#actions.refresh();
  }

  #keep() {
    keepSeat(this.#room, [this.#seat, this.#actions.own().moves, this.#games]);
  }

  /** Send the game's moves, or none for a new game, until the server has taken or refused them. */
  async #post(moves) {
    const room = this.#room;
    let reply;
    this.#isSending = true;
    try {
      reply = await fetch(`${ROOMS}/${room}`, {
        method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ moves }),
      });
      if (!reply.ok && reply.status !== 409) await contentOf(reply, "moves"); // 409: the stream has the moves
    } catch (error) {
      this.#failure = !reply || reply.status >= 500 ? LOST : error.message;
      this.#actions.refresh();
      if (this.#failure === LOST) setTimeout(() => this.#postAgain(room, moves), PAUSE);
    }
    this.#isSending = false;
  }

  #postAgain(room, moves) {
    const isOwn = moves === "" || moves === this.#actions.own().moves;
    if (room === this.#room && isOwn && this.#failure && !this.#isSending) this.#post(moves);
  }

  /* ---- as the page calls it ---- */

  mayDrop(position) {
    return position.side === this.#side && this.#game.isAtEnd && !this.#failure;
  }

  /** A move that only the link has can be taken back before the friend replies. */
  get mayTakeBack() {
    return !this.#room && this.#game.isAtEnd && this.#game.position.side !== this.#side;
  }

  /** The person has played. */
  moved() {
    if (!this.#room) return;
    this.#keep(); // a reload must not lose it
    this.#post(this.#game.moves);
  }

  /** The part of the address after the "#". */
  address(moves) {
    return this.#room ? `room/${this.#room}` : `friend/${moves}`;
  }

  /** The line above the board, where the page's own does not do. */
  status(position) {
    if (this.#failure) return this.#failure;
    if (position.isOver || !this.#game.isAtEnd || position.side === this.#side) return undefined;
    if (!this.#room) return "Send the link to your friend, who is to move.";
    return this.#clients > 1 ? "Your friend is to move." : "Your friend is to move, but not here: send the link.";
  }

  show() {
    const { isOn } = this;
    $("friend-start").hidden = this.#game.isStarted;
    $("friend-box").hidden = !isOn;
    if (!isOn) return;
    for (const id of HIDDEN) $(id).hidden = true;
    $("take-back").hidden = !this.mayTakeBack;
    for (const side of [0, 1]) {
      $(`player-${side}`).hidden = true;
      $(`seated-${side}`).hidden = false;
    }
    $("friend-send").textContent = isHandheld() ? "Send link" : "Copy link for your friend";
    $("friend-text").textContent = this.#text();
    const isTheirs = this.#game.position.side !== this.#side;
    $("friend-send").hidden = this.#room ? this.#clients > 1 : !isTheirs;
  }

  #text() {
    const colour = capital(this.#game.colour(this.#side));
    if (this.#room) {
      const presence = this.#clients > 1 ? "Your friend is here." : "Your friend is not here. The link leads to this game, for one day after the last move.";
      return `You are ${colour}. ${presence}`;
    }
    const { moves, position } = this.#game;
    if (position.isOver) return `You are ${colour}.`;
    if (position.side !== this.#side) return `You are ${colour}. Send the link: your friend’s move comes back as a link.`;
    return moves ? `You are ${colour}, and it is your turn. Then send the link back.` : `You are ${colour} and begin. Then send the link.`;
  }

  async #send() {
    const link = new URL(`#${this.address(this.#game.moves)}`, location.href).href;
    const text = this.#game.moves ? "Connect 4: your turn" : "A game of Connect 4?";
    $("friend-note").textContent = await this.#actions.send(link, text);
  }
}

const seated = (side) => (side === 0 ? [PERSON, REMOTE] : [REMOTE, PERSON]);

async function openRoom() {
  const reply = await fetch(ROOMS, { method: "POST" });
  return (await contentOf(reply, "room")).room;
}

/** Whoever opened a room keeps the first seat through reloads; others take the second. */
function keepSeat(room, seat) {
  const { [room]: _, ...others } = stored(KEY);
  const kept = [...Object.entries(others), [room, seat]].slice(-MOST_KEPT);
  tryEffect(() => localStorage.setItem(KEY, JSON.stringify(Object.fromEntries(kept))));
}

/** [side, moves, games]; what is stored may be anything. */
function keptSeat(room) {
  const [side, moves, games] = [stored(KEY)[room]].flat();
  const isGame = /^[1-7]*$/.test(moves ?? "-") && Number.isInteger(games);
  return side === 0 || side === 1 ? [side, ...(isGame ? [moves, games] : ["", 0])] : [1, "", 0];
}
