/**
 * The page: ties game, board, engine and tabs together. The engine is the module that <html data-engine> names.
 */

import { Analysis } from "./analysis.js";
import { Board } from "./board.js";
import { stored, tryEffect } from "./effects.js";
import { addWayOut, isEmbedded } from "./embed.js";
import { Friend } from "./friend.js";
import { Game, PERSON, REMOTE } from "./game.js";
import { Linked } from "./linked.js";
import { readAddress } from "./links.js";
import { Openings } from "./openings.js";
import { Opinions, capital } from "./opinions.js";
import { movesOfQuery } from "./paste.js";
import { PasteBox } from "./paste_box.js";
import { PlayPanel, resultInWords } from "./play_panel.js";
import { hasShipped, Players } from "./players.js";
import { Puzzles } from "./puzzles.js";
import { ROWS, replay } from "./rules.js";
import { Sight } from "./sight.js";
import * as scores from "./scores.js";
import { copy, send } from "./sending.js";
import { ShareBox, headline, nameInHeadline } from "./share_box.js";
import * as sound from "./sound.js";
import { storyOf } from "./story.js";
import { Tabs } from "./tabs.js";
import { Tour } from "./tour.js";

const PACE = { answer: 350, watch: 700, replay: 600 }; // ms between moves
const LONGEST_REPLAY = 6000; // ms, of a game that a link opens
const STEPS = ["ArrowLeft", "ArrowRight", ",", "."]; // keys that act again while they are held

const $ = (id) => document.getElementById(id);
const hasKeyboard = matchMedia("(hover: hover), (pointer: fine)").matches;
const isStill = matchMedia("(prefers-reduced-motion: reduce)");
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const game = new Game();
const board = new Board($("board"), (column) => "ready" in document.documentElement.dataset && drop(column));
board.show(game.position, { colour: (side) => game.colour(side) }); // before the engine, which may take its time
const engine = await import(document.documentElement.dataset.engine).catch(({ message }) => ({
  players: () => Promise.reject(new Error(message)), // two people can play without
}));
const opinions = new Opinions(engine);
const tabs = new Tabs(["play", "analysis", "puzzles", "openings", "idea"], changeMode);
const sight = new Sight($("sight"), $("board"), opinions);
const analysis = new Analysis({
  game, board, opinions, ghosts: sight.ghosts, refresh: (why) => ((problem = ""), show(why), writeLink()), play: playFrom,
});
const linked = new Linked($("linked"), () => toggleReplay(), () => (replay(movesShown()).isOver ? tabs.choose("play") : playFrom(movesShown())));
const shareBox = new ShareBox($("sharing"));
const pasteBox = new PasteBox($("share"), { load: replaceGame, openPuzzle, follow: (address) => (location.hash = address) });
const modes = { play: {}, analysis, puzzles: {}, openings: {}, idea: {} }; // see changeMode
const friend = new Friend(game, $("by-link"), Boolean(engine.isServed), {
  own: () => ({ moves: (mine ?? game).moves, players: game.players }),
  makePlace, enter: enterFriendsGame, update: updateOwn, refresh: () => (show(), writeLink()), send: (url, text) => send({ url, text }, "The link"),
});
let mine = null; // the person's own game as it stood, while another tab shows another
let thinking = null; // AbortController of the requested move
let problem = ""; // what went wrong last, until the next change
let replaying = 0; // the timer of a running replay
let loaded = 1; // share of the network's weights that the browser has
let players = new Players({ players: [], max_simulations: 0 });
let panel = null; // of the tab "Play"
let gameId = newId(); // of the person's own game; another game gets another one
let wasStarted = false; // whether that game had begun at the last change
let undo = null; // the own game that another one replaced: {into: moves, own, players, isFlipped, id}
let isReading = false; // an address is being read: the browser's history has it already, and no engine moves yet
const kept = {}; // tab → its game when it was left: {by: moves of the own game then, game, view}
let hint = { moves: null, column: null };
let story = null; // of the game that has just ended: {moves, text, ply}

/* ---- what to do ---- */

/**
 * Another tab is chosen. A mode may have enter(view), leave() → a view to enter with again, drop(column) → whether that
 * was its own affair, change(why) after anything changed, status(position) → its own line, preview() → moves to show in
 * place of the game's, address() and keys of its own. Engines answer in "play" alone, and the person's own game waits
 * there. Analysis and openings begin with a copy, and go on where they were left unless the own game has changed since.
 */
function changeMode(mode, before) {
  problem = "";
  openEntry();
  const view = modes[before].leave?.();
  if (mine) {
    const own = mine;
    kept[before] = { by: own.moves, game: game.snapshot(), view };
    mine = null;
    game.restore(own);
  }
  mine = mode === "play" ? null : game.snapshot();
  const last = ["analysis", "openings"].includes(mode) && kept[mode]?.by === game.moves ? kept[mode] : null;
  if (last) game.restore(last.game);
  modes[mode].enter?.(last?.view);
  letEngineMove();
  writeLink();
  show();
}

/** Put another game in place of the one on the board. The browser's Back, or a button for the own game, brings it back. */
function replaceGame(moves) {
  openEntry();
  if (!mine) {
    keepOwn(moves);
    friend.leave();
  }
  game.load(moves);
}

/** Another game takes the place of the own one, which can be brought back; `into`: the other one's moves. */
function keepOwn(into) {
  if (game.moves && !into.startsWith(game.moves)) undo = { into, ...ownGame() };
  gameId = newId();
  wasStarted = true; // one new entry in the history is enough
}

/** A game with a friend is about to begin, or to go on after its link was opened. */
function makePlace(moves) {
  if (isReading) return;
  tabs.choose("play");
  openEntry();
  keepOwn(moves);
}

function enterFriendsGame(moves, seats) {
  const own = { moves, cursor: moves.length, isStarted: true, isPaused: false, resigned: null, counted: REMOTE };
  game.players = seats;
  if (!mine) return game.restore(own);
  mine = own;
  writeLink();
}

/** The friend has moved; another tab may be open. */
function updateOwn(moves) {
  if (mine) {
    mine = { ...mine, moves, cursor: moves.length };
    return writeLink();
  }
  game.goTo(game.moves.length);
  const isTheirs = game.players[game.moves.length % 2] === REMOTE; // else another page of this person has played
  if (isTheirs && moves.slice(0, -1) === game.moves) game.play(Number(moves.at(-1)) - 1);
  else game.restore({ ...game.snapshot(), moves, cursor: moves.length });
}

/** Bring back the game that was replaced last. */
function undoReplaced() {
  const last = undo;
  undo = null;
  isReading = true;
  restoreOwn(last);
  isReading = false;
  letEngineMove();
  show();
}

/** Whether the own game was replaced just now: the new one has not begun, or has one more move at most. */
function hasUndo() {
  if (!undo || mine) return false;
  return undo.into ? game.moves.startsWith(undo.into) && game.moves.length <= undo.into.length + 1 : !game.isStarted;
}

/** Continue from a position in the tab "Play". */
function playFrom(moves) {
  openEntry();
  isReading = true; // the game that waits there does not go on
  tabs.choose("play");
  isReading = false;
  keepOwn(moves);
  friend.leave();
  game.load(moves);
}

/** Open a game in the analysis, at the position after so many moves. */
function analyse(moves, cursor) {
  tabs.choose("analysis");
  game.load(moves);
  game.goTo(cursor);
}

/* ---- who plays ---- */

function usePlayers(catalogue) {
  players = new Players(catalogue);
  panel = new PlayPanel(game, players, () => (show(), remember()));
  analysis.offer(catalogue);
  sight.offer(catalogue);
  $("notices").textContent = catalogue.notices.join(" ");
  $("api-link").hidden = !engine.isServed;
  $("sight-button").disabled = !sight.isPossible;
  const hasTour = hasShipped(catalogue.players); // it says what the shipped network sees
  for (const element of [$("tab-idea"), document.querySelector('#intro [href="#idea"]')]) element.hidden = !hasTour;
  game.players = [PERSON, players.usual];
}

/* ---- playing ---- */

/** Whether a person may drop a stone: in turn, for a paused engine, and to try another move in an earlier position. */
function mayDrop(position) {
  if (tabs.chosen !== "play") return true;
  if (game.result || panel?.isDrawing) return false;
  if (friend.isOn) return friend.mayDrop(position);
  return game.players[position.side] === PERSON || (game.isStarted && (game.isPaused || !game.isAtEnd));
}

/** A person presses a column. */
function drop(column) {
  if (modes[tabs.chosen].drop?.(column)) return;
  const position = game.position;
  if (game.result) return say(`The game is over.${hasKeyboard && $("keys-on").checked ? " N starts a new one." : ""}`);
  if (!mayDrop(position) && friend.isOn) return say(game.isAtEnd ? friend.status(position) : "Go to the end of the game to play on.");
  if (!mayDrop(position)) return say(game.isStarted ? `Wait for ${nameOf(position.side)}’s move.` : setupLine(position));
  if (position.heights[column] === ROWS) {
    board.refuse(column);
    return say(`Column ${column + 1} is full. Please choose another one.`);
  }
  game.play(column);
}

async function giveHint() {
  const moves = game.shown;
  if (game.result || game.players[game.position.side] !== PERSON || !players.adviser || friend.isOn) return;
  try {
    const { move } = await opinions.ask(players.adviser, moves);
    if (game.shown !== moves || tabs.chosen !== "play" || game.result) return;
    hint = { moves, column: move };
    say(`Hint: column ${move + 1}.`);
  } catch (error) {
    say(error.message);
  }
}

/** Give up the game for a new one. */
function newGame() {
  if (mine ? game.moves : game.isStarted) replaceGame("");
  else game.load("");
}

/** The same players with the other colours. */
function rematch() {
  if (friend.isOn) return friend.rematch();
  newGame();
  game.players.reverse();
  wasStarted = true; // as replaceGame says
  begin();
}

/** The same colours against another level. */
function playLevel(name) {
  newGame();
  game.players[1 - game.side] = name;
  wasStarted = true;
  begin();
}

/** Let the chosen game begin, with the board in view. */
function begin() {
  panel.start();
  $("status").scrollIntoView({ block: "nearest" });
  $("board").scrollIntoView({ block: "nearest" });
}

/** The line under the result, once the game's moves are graded. */
async function tellStory() {
  const { moves, side, resigned } = game;
  const winner = game.result.winner;
  if (side === undefined || resigned !== null || !analysis.canGrade) return;
  const opponent = players.title(game.players[1 - side]);
  const answers = await analysis.grade(moves).catch(() => null);
  if (!answers || game.moves !== moves) return;
  story = { moves, ...storyOf(moves, answers, side, winner, opponent) };
  show();
}

/** Undo, from a position to the person's turn before it. */
function takeBack() {
  if (!game.cursor && !game.isStarted && hasUndo()) return undoReplaced();
  if (friend.isOn && !friend.mayTakeBack) return;
  if (game.resigned !== null && game.isAtEnd && game.counted === "resigned") scores.count(game.players[1 - game.side], "lost", -1);
  game.takeBack();
}

function togglePause() {
  if (!game.isStarted) return panel && begin();
  const isEnginesTurn = game.players[game.position.side] !== PERSON;
  if (!game.result && (game.isWatched || isEnginesTurn)) game.pause(!game.isPaused);
}

/** "won", "drawn" or "lost" for the person; "won" where there is not one person. */
function resultKind({ winner }) {
  if (winner === null) return "drawn";
  return (game.side ?? winner) === winner ? "won" : "lost";
}

/** Add a game that has just ended to the score against this opponent, once. */
function countResult() {
  if (game.side === undefined || game.counted) return;
  const kind = resultKind(game.result);
  game.counted = game.resigned === null ? kind : "resigned";
  scores.count(game.players[1 - game.side], kind);
}

/** Ask the engine for a move where it is its turn; whatever changes meanwhile makes the answer void. The caller shows it. */
async function letEngineMove() {
  stopThinking();
  const position = game.position;
  const player = game.players[position.side];
  if (isReading || tabs.chosen !== "play" || !game.isStarted || game.result) return;
  if ([PERSON, REMOTE].includes(player) || !game.isAtEnd || game.isPaused || replaying) return;
  const request = new AbortController();
  thinking = request;
  try {
    const pace = pause(game.isWatched ? PACE.watch : PACE.answer);
    const column = await engine.choose(player, game.shown, request.signal);
    await pace;
    if (request.signal.aborted) return;
    thinking = null;
    game.play(column);
  } catch (error) {
    if (request.signal.aborted) return;
    thinking = null;
    game.pause(true);
    say(error.message);
  }
}

function stopThinking() {
  thinking?.abort();
  thinking = null;
}

function toggleReplay(pace = PACE.replay) {
  if (replaying) return stopReplay();
  if (game.isAtEnd) game.goTo(0);
  const step = () => {
    if (game.isAtEnd) return stopReplay();
    game.goTo(game.cursor + 1);
    replaying = setTimeout(step, pace);
  };
  replaying = setTimeout(step, pace / 2);
  show();
}

function stopReplay() {
  clearTimeout(replaying);
  replaying = 0;
  letEngineMove();
  show();
}

/* ---- showing ---- */

const nameOf = (side) => `${players.title(game.players[side])}${game.isWatched ? ` (${capital(game.colour(side))})` : ""}`;

/** The moves on the board. */
const movesShown = () => modes[tabs.chosen].preview?.() ?? game.shown;

function statusLine(position) {
  if (problem) return problem;
  const own = modes[tabs.chosen].status?.(position) ?? (tabs.chosen === "play" && friend.isOn && friend.status(position));
  if (own) return own;
  const colour = (side) => capital(game.colour(side));
  if (tabs.chosen !== "play") {
    if (position.winner !== null) return `${colour(position.winner)} wins with four in a row.`;
    if (position.isOver) return "A draw: the board is full.";
  } else if (game.result) {
    const { title, reason } = resultInWords(game, players, game.result);
    return `${title}. ${reason}`;
  }
  if (!game.isAtEnd) return `Move ${game.cursor} of ${game.moves.length}`;
  if (tabs.chosen !== "play") return `${lastMove(position)}${colour(position.side)} to move`;
  if (!game.isStarted) return setupLine(position);
  if (game.players[position.side] === PERSON) return `${lastMove(position)}${game.side === undefined ? `${colour(position.side)}’s turn` : `Your turn (${colour(position.side)})`}`;
  if (game.isPaused) return `${lastMove(position)}Paused: ${nameOf(position.side)} is to move`;
  if (loaded < 1) return `Loading the network: ${Math.floor(100 * loaded)} %`;
  return `${lastMove(position)}${nameOf(position.side)} is thinking…`;
}

/** Who played what last; nothing after the person's own move. */
function lastMove({ ply, side }) {
  if (!ply || (tabs.chosen === "play" && game.side === 1 - side)) return "";
  const isPerson = tabs.chosen !== "play" || game.players[1 - side] === PERSON;
  return `${isPerson ? capital(game.colour(1 - side)) : nameOf(1 - side)} played column ${game.shown.at(-1)}. `;
}

/** What to do before the game. */
function setupLine({ side }) {
  if (panel?.isDrawing) return "Start the game to draw the colours";
  if (game.isWatched) return `${nameOf(0)} against ${nameOf(1)}`;
  if (game.players[side] !== PERSON) return `Start the game: ${nameOf(side)} moves first`;
  const colour = capital(game.colour(side));
  return game.side === undefined ? `${colour} moves first: drop a stone` : `You are ${colour} against ${nameOf(1 - side)}: drop a stone`;
}

/** A line for the person, until something changes. */
function say(line) {
  problem = line;
  show();
}

function toggleSight() {
  if ($("sight-button").hidden) return;
  const hadFocus = $("sight").contains(document.activeElement);
  sight.toggle();
  show();
  if (hadFocus) $("sight-button").focus({ preventScroll: true });
}

function show(why) {
  const position = replay(movesShown());
  const colours = [0, 1].map((side) => game.colour(side));
  board.show(position, {
    colour: (side) => game.colour(side),
    isOpen: mayDrop(position),
    isOver: tabs.chosen === "play" ? Boolean(game.result) : position.isOver,
    isThinking: thinking !== null,
    isAnimated: why === "move" || why === "step",
    hint: hint.moves === movesShown() && tabs.chosen === "play" && !game.result ? hint.column : null,
  });
  const isPuzzle = tabs.chosen === "puzzles"; // which the network would give away
  $("sight-button").hidden = isPuzzle || tabs.chosen === "idea";
  $("sight-button").setAttribute("aria-pressed", String(sight.isOn));
  sight.show(isPuzzle ? null : movesShown(), colours);
  const status = statusLine(position);
  if ($("status").textContent !== status) $("status").textContent = status;
  $("status").dataset.colour = game.colour(position.winner ?? position.side);
  $("status").classList.toggle("is-won", position.winner !== null);
  panel?.show({ hasUndo: hasUndo() });
  friend.show();
  linked.show(tabs.chosen === "analysis" ? game : null, movesShown());
  $("end-story").hidden = story?.moves !== game.moves;
  $("end-story").firstElementChild.textContent = story?.text ?? "";
  $("see-story").hidden = (story?.ply ?? null) === null;
  document.querySelector(".steps").classList.toggle("is-empty", !game.moves);
  const [isFirst, isLast] = modes[tabs.chosen].ends ?? [game.cursor === 0, game.isAtEnd];
  for (const id of ["back", "first"]) $(id).setAttribute("aria-disabled", String(isFirst)); // and keep the focus
  for (const id of ["forward", "last"]) $(id).setAttribute("aria-disabled", String(isLast));
  $("replay").disabled = !game.moves;
  $("replay").setAttribute("aria-pressed", String(Boolean(replaying)));
  showMoves();
  pasteBox.show(game.moves);
}

function showMoves() {
  const chips = [...game.moves].map((column, index) => {
    const item = document.createElement("li");
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = column;
    const colour = game.colour(index % 2);
    const grade = analysis.gradeOf(index);
    button.className = `chip ${colour}`;
    button.dataset.grade = grade;
    button.setAttribute("aria-label", `Move ${index + 1}: ${colour}, column ${column}${grade && `, ${grade}`}`);
    if (index + 1 === game.cursor) button.setAttribute("aria-current", "step");
    if (index >= game.cursor) button.classList.add("later");
    button.addEventListener("click", () => (tabs.chosen === "analysis" ? analysis.open(index) : game.goTo(index + 1)));
    item.append(button);
    return item;
  });
  const hadFocus = [...$("moves").querySelectorAll("button")].indexOf(document.activeElement);
  $("moves").replaceChildren(...chips);
  chips[hadFocus]?.firstChild.focus();
}

/* ---- sharing ---- */

/** Without the position of a link to this page in the style of other sites, which the part after the "#" replaces. */
const addressOf = (name) => location.pathname + location.search.replace(/[?&]pos=[^&]*/, "") + (name && `#${name}`);

/** What the address says after its "#": what the tab shows; in "play" the own game. */
function addressName() {
  const { moves } = mine ?? game;
  return modes[tabs.chosen].address?.() ?? (friend.isOn ? friend.address(moves) : moves);
}

function ownGame() {
  const own = mine ?? game.snapshot();
  return { own, players: [...game.players], isFlipped: game.isFlipped, id: gameId, link: friend.isOn ? friend.address(own.moves) : null };
}

function newId() {
  return Math.random().toString(36).slice(2);
}

/** A new entry in the browser's history, which writeLink then fills: what Back leads to stays as it was. */
function openEntry() {
  if (!isReading && !isEmbedded) tryEffect(() => history.pushState({}, "")); // Back is that of the site around
}

/**
 * The entry in the history has the own game and what the tab shows, for Back and reloading. Safari allows 100 changes in
 * 30 seconds.
 */
function writeLink() {
  const tab = tabs.chosen;
  const state = { tab, ...ownGame(), undo, game: mine && game.snapshot(), view: modes[tab].view?.() ?? null, linked: linked.moves };
  const name = addressName();
  if (JSON.stringify(state) === JSON.stringify(history.state) && location.hash.slice(1) === name) return;
  tryEffect(() => history.replaceState(state, "", addressOf(name)));
}

/** Open the review at a move of the game. */
function seeMove(ply) {
  tabs.choose("analysis");
  analysis.start();
  game.goTo(ply);
}

function openPuzzle(id) {
  modes.puzzles.openLink(id);
  tabs.choose("puzzles");
}

function restoreOwn({ own, players: seated, isFlipped, id, link }) {
  friend.leave();
  if (players.canPlay(seated)) game.players = [...seated];
  game.isFlipped = isFlipped;
  gameId = id;
  wasStarted = own.isStarted;
  if (link) friend.open({ ...readAddress(link).friend, moves: own.moves }, seated);
  else game.restore(own);
}

/** The browser was reloaded, or went back or forward: the own game is the newest one, unless it is another game. */
function restoreEntry(state) {
  if (state.id !== gameId) {
    const left = game.moves && !state.own.isStarted ? { into: "", ...ownGame() } : null;
    restoreOwn(state);
    undo = left ?? state.undo;
  }
  linked.open(state.linked);
  if (state.game) kept[state.tab] = { by: game.moves, game: state.game, view: state.view };
}

/** A link opens in the analysis, where no engine replies; the page's own address opens where it was written. */
function readLink() {
  const { state } = history;
  let link;
  try {
    link = readAddress(location.hash.slice(1) || movesOfQuery(location.search));
  } catch (error) {
    return say(`The link contains no game. ${error.message}`);
  }
  isReading = true;
  tabs.choose("play");
  if (state?.own) restoreEntry(state);
  const tab = state?.tab ?? link.tab;
  if (tab === "puzzles") openPuzzle(link.puzzle ?? "");
  else tabs.choose(tab);
  if (!state?.own && link.friend) openFriendsLink(link.friend);
  else if (!state?.own && !["puzzles", "play", "idea"].includes(tab)) openLinked(link);
  isReading = false;
  writeLink();
  letEngineMove();
  show();
  if (!state?.own && tab === "analysis" && !link.variation && !isEmbedded && !isStill.matches) {
    toggleReplay(Math.min(PACE.replay, LONGEST_REPLAY / game.moves.length));
  }
}

/** A game with a friend: the one that is going on, if the link has its next moves. */
function openFriendsLink(link) {
  const isNext = friend.isOn && link.moves?.startsWith(game.moves);
  const { players: seated } = game;
  if (!isNext) keepOwn(link.moves ?? "");
  if (!isNext) friend.leave();
  friend.open(link, isNext ? seated : undefined);
}

/** The game of somebody's link, in the tab of it. */
function openLinked({ moves, variation }) {
  game.load(moves);
  linked.open(moves);
  if (variation) analysis.openVariation(variation);
}

async function copyLink() {
  const link = new URL(addressOf(addressName()), location.href).href;
  $("share-note").textContent = await copy(link, `The link to this ${analysis.isInVariation ? "variation" : "game"}`);
}

function share() {
  const moves = movesShown();
  const opponent = game.players.find((name) => name !== PERSON);
  const text = headline(game, moves, nameInHeadline(players.title(opponent), opponent));
  shareBox.open({ moves, colour: (side) => game.colour(side), text, link: new URL(addressOf(addressName()), location.href).href });
}

/* ---- remembering what was chosen ---- */

function remember() {
  if (isEmbedded) return;
  const store = Object.fromEntries([
    ["players", friend.before ?? game.players],
    ["isRandom", panel.isRandom],
    ["more", $("more-players").checked],
    ["sound", $("sound-on").checked],
    ["keys", $("keys-on").checked],
    ["flipped", game.isFlipped],
    ["theme", document.documentElement.dataset.theme ?? ""],
  ]);
  tryEffect(() => localStorage.setItem("distill", JSON.stringify(store)));
}

function recall() {
  const store = stored("distill");
  $("more-players").checked = Boolean(store.more);
  $("keys-on").checked = store.keys ?? true;
  $("sound-on").checked = Boolean(store.sound);
  panel.isRandom = Boolean(store.isRandom);
  if (players.canPlay(store.players) && !isEmbedded) game.players = store.players;
  game.isFlipped = Boolean(store.flipped);
  panel.offer();
  if (store.theme) document.documentElement.dataset.theme = store.theme;
}

/* ---- controls ---- */

const COMMANDS = {
  u: takeBack,
  n: newGame,
  h: giveHint,
  s: () => game.switchSides(),
  f: () => game.flipColours(),
  p: togglePause,
  Home: () => game.goTo(0),
  End: () => game.goTo(game.moves.length),
  ",": () => game.goTo(game.cursor - 1),
  ".": () => game.goTo(game.cursor + 1),
  w: toggleSight,
  "?": () => $("keys").showModal(),
};

function connectControls() {
  const clicks = {
    switch: "s", flip: "f", pause: "p", first: "Home", back: ",", forward: ".", last: "End", "take-back": "u", new: "n", hint: "h",
    "keys-button": "?", "sight-button": "w", "sight-close": "w",
  };
  for (const [id, key] of Object.entries(clicks)) $(id).addEventListener("click", () => act(key));
  addEventListener("progress", ({ detail }) => {
    loaded = detail;
    show();
  });
  addEventListener("busy", () => say("The server is busy; retrying…"));
  $("replay").addEventListener("click", () => toggleReplay());
  $("start-game").addEventListener("click", togglePause);
  $("rematch").addEventListener("click", rematch);
  $("next-level").addEventListener("click", ({ currentTarget }) => playLevel(currentTarget.value));
  $("see-story").addEventListener("click", () => seeMove(story.ply));
  $("about-button").addEventListener("click", () => $("about").showModal());
  $("to-review").addEventListener("click", () => (tabs.choose("analysis"), analysis.start()));
  $("resign").addEventListener("click", () => game.resign(game.side ?? game.position.side));
  $("undo-new").addEventListener("click", undoReplaced);
  $("sound-on").addEventListener("change", remember);
  for (const id of ["share-result", "share-game"]) $(id).addEventListener("click", share);
  $("copy").addEventListener("click", copyLink);
  $("theme-button").addEventListener("click", switchTheme);
  $("keys-on").addEventListener("change", remember);
  addEventListener("popstate", ({ state }) => state?.own && readLink());
  addEventListener("hashchange", () => history.state?.own || readLink()); // a link
  addEventListener("keydown", (event) => {
    const { key, target } = event;
    if (!key || !target.closest) return; // Chromium's autofill sends events without a key, scripts send some to the document
    if (event.altKey || event.ctrlKey || event.metaKey || target.closest("input:not([type=checkbox], [type=radio]), textarea, dialog")) return;
    if (event.repeat && !STEPS.includes(key)) { // one press is one stone
      if (key === "Enter") event.preventDefault(); // which would click again
      return;
    }
    const isChoosing = target.closest("select, [type=radio]"); // arrows and letters belong to it, digits do not
    if (key.length === 1 && !$("keys-on").checked) return; // speech input types letters, which would play (WCAG 2.1.4)
    if ("1234567".includes(key)) drop(Number(key) - 1);
    else if (isChoosing) return;
    else if (key in (modes[tabs.chosen].keys ?? {})) act(key);
    else if (key === "ArrowLeft" || key === "ArrowRight") board.focus(key === "ArrowLeft" ? 2 : 4);
    else if (key.toLowerCase() in COMMANDS) act(key.toLowerCase());
    else return;
    event.preventDefault();
  });
}

function act(key) {
  if ((mine || friend.isOn) && "sph".includes(key)) return; // who plays is a matter of the person's own game
  if (replaying) stopReplay();
  (modes[tabs.chosen].keys?.[key] ?? COMMANDS[key])();
}

function switchTheme() {
  const { dataset } = document.documentElement;
  const isDark = (dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  dataset.theme = isDark ? "light" : "dark";
  remember();
}

game.addEventListener("change", ({ detail: { why } }) => {
  problem = "";
  stopThinking();
  if (replaying && why !== "step") stopReplay();
  if (!wasStarted && game.isStarted && !mine) {
    gameId = newId();
    openEntry();
  }
  if (!mine) wasStarted = game.isStarted;
  const hasEnded = ["move", "resign"].includes(why) && tabs.chosen === "play" && Boolean(game.result);
  if (hasEnded) countResult();
  if (why === "move" && !mine && friend.isOn && game.players[1 - game.position.side] === PERSON) friend.moved();
  if (hasEnded) tellStory();
  letEngineMove();
  show(why);
  modes[tabs.chosen].change?.(why);
  writeLink();
  if ($("sound-on").checked && why === "move") tryEffect(() => sound.knock(board.wait));
  if ($("sound-on").checked && hasEnded) tryEffect(() => sound.finish(resultKind(game.result), board.wait));
  remember();
});

/** Without the list of players two people can still play. */
async function loadPlayers() {
  let failure = "";
  const catalogue = await engine.players().catch(({ message }) => {
    failure = `The players cannot be loaded: ${message.replace(/\.?$/, ".")} Reload the page to try again.`;
    return { players: [], max_simulations: 0, notices: [] };
  });
  usePlayers(catalogue);
  recall();
  readLink();
  if (failure) problem = failure;
}

modes.puzzles = new Puzzles(game, $("panel-puzzles"), { show, replay: () => toggleReplay(), analyse });
modes.openings = new Openings(game, $("panel-openings"), show, playFrom);
modes.idea = new Tour(game, sight, show, () => tabs.choose("play"));
connectControls();
if (isEmbedded) addWayOut();
await loadPlayers();
letEngineMove();
show();
document.documentElement.dataset.ready = "";
