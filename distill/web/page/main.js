/**
 * The page: ties game, board, engine and tabs together. The engine is the module that <html data-engine> names.
 */

import { Analysis } from "./analysis.js";
import { Board } from "./board.js";
import { Game, PERSON } from "./game.js";
import { Openings } from "./openings.js";
import { Opinions, capital } from "./opinions.js";
import { PasteBox } from "./paste_box.js";
import { Puzzles } from "./puzzles.js";
import { ROWS, replay } from "./rules.js";
import { Tabs } from "./tabs.js";

const STRENGTHS = { search: [100, 1000, 10_000, 100_000], guided: [16, 50, 200, 800] }; // simulations
const PACE = { answer: 350, watch: 700, replay: 600 }; // ms between moves

const $ = (id) => document.getElementById(id);
const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const engine = await import(document.documentElement.dataset.engine).catch((error) => {
  $("status").textContent = `The players cannot be loaded. ${error.message}`;
  throw error;
});
const game = new Game();
const board = new Board($("board"), drop);
const titles = new Map([[PERSON, "Person"]]);
const tabs = new Tabs(["play", "analysis", "puzzles", "openings"], changeMode);
const analysis = new Analysis({
  game, board, opinions: new Opinions(engine), refresh: (why) => ((problem = ""), show(why)), play: playFrom,
});
const pasteBox = new PasteBox($("share"), { load: (moves) => game.load(moves), openPuzzle: (id) => modes.puzzles.openLink(id) });
const modes = { play: {}, analysis, puzzles: {}, openings: {} }; // see changeMode
let mine = null; // the person's own game as it stood, while another tab shows another
let thinking = null; // AbortController of the requested move
let problem = ""; // what went wrong last, until the next change
let replaying = 0; // the timer of a running replay
let levels = []; // cards of the named levels
let others = {}; // cards of the other players, by heading

/* ---- what to do ---- */

/**
 * Another tab is chosen. A mode may have enter(), leave(), drop(column) → whether that was its own affair, change(why)
 * after anything changed, status(position) → its own line, preview() → moves to be looked at in place of the game's, and
 * keys of its own. Engines answer in "play" alone, and the person's own game waits there; the analysis begins with a copy.
 */
function changeMode(mode, before) {
  problem = "";
  modes[before].leave?.();
  if (mine) {
    game.load(mine.moves);
    game.goTo(mine.cursor);
    game.pause(mine.isPaused);
  }
  mine = mode === "play" ? null : { moves: game.moves, cursor: game.cursor, isPaused: game.isPaused };
  modes[mode].enter?.();
  writeLink();
  letEngineMove();
  show();
}

/** Continue from a position in the tab "Play". */
function playFrom(moves) {
  tabs.choose("play");
  game.load(moves);
}

/* ---- who plays ---- */

function fillSelects(catalogue) {
  const of = (kind) => catalogue.players.filter((player) => player.kind === kind);
  const networks = of("network");
  const withStrengths = (kind) => of(kind).flatMap(({ name, title, note }) =>
    STRENGTHS[kind].filter((number) => number <= catalogue.max_simulations).map((number) => ({
      name: name.replace(/N$/, number),
      title: `${title}, ${number.toLocaleString("en")} simulations`,
      note,
    })),
  );
  const guided = withStrengths("guided");
  const searches = withStrengths("search");
  levels = of("level");
  others = {
    "Your own": of("custom"), Networks: networks, "Networks with search": guided, Searches: searches,
    Others: [...of("solver"), ...of("simple")],
  };
  for (const { name, title } of [...levels, ...Object.values(others).flat()]) titles.set(name, title);
  $("more-label").hidden = !levels.length;
  analysis.offer(catalogue);
  $("notices").textContent = catalogue.notices.join(" ");
  $("api-link").hidden = !engine.isServed;
  const rival = networks.find(({ name }) => name.endsWith("pillar")) ?? networks[0] ?? searches[1] ?? searches[0];
  game.players = [PERSON, levels.find(({ name }) => name === "club")?.name ?? rival?.name ?? PERSON];
}

const option = ({ name, title, note }) => Object.assign(new Option(title, name), { title: note ?? "" });

/** Offer a person, the levels, seated players, and with the switch all others. */
function offerPlayers() {
  const isWanted = ({ name }) => !levels.length || $("more-players").checked || game.players.includes(name);
  for (const side of [0, 1]) {
    const groups = Object.entries(others).map(([label, cards]) => {
      const group = Object.assign(document.createElement("optgroup"), { label });
      group.append(...cards.filter(isWanted).map(option));
      return group;
    });
    const shown = groups.filter((group) => group.children.length);
    $(`player-${side}`).replaceChildren(new Option("Person", PERSON), ...levels.map(option), ...shown);
    $(`player-${side}`).value = game.players[side];
  }
}

/* ---- playing ---- */

/** Whether a person may drop a stone: in turn, for a player that is paused, and to try another way from further back. */
const mayDrop = (position) => tabs.chosen !== "play" || game.players[position.side] === PERSON || game.isPaused || !game.isAtEnd;

/** A person presses a column. */
function drop(column) {
  if (modes[tabs.chosen].drop?.(column)) return;
  const position = game.position;
  if (position.isOver) return say(`The game is over.${$("keys-on").checked ? " N starts a new one." : ""}`);
  if (!mayDrop(position)) return say(`Not yet: ${capital(game.colour(position.side))}, ${nameOf(position.side)}, is thinking.`);
  if (position.heights[column] === ROWS) {
    board.refuse(column);
    return say(`Column ${column + 1} is full. Please choose another one.`);
  }
  game.play(column);
}

/** Ask the engine for a move where it is its turn; whatever changes meanwhile makes the answer void. */
async function letEngineMove() {
  thinking?.abort();
  thinking = null;
  const position = game.position;
  const player = game.players[position.side];
  if (tabs.chosen !== "play") return;
  if (player === PERSON || position.isOver || !game.isAtEnd || game.isPaused || replaying) return;
  const request = new AbortController();
  thinking = request;
  show();
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

function toggleReplay() {
  if (replaying) return stopReplay();
  if (game.isAtEnd) game.goTo(0);
  const step = () => {
    if (game.isAtEnd) return stopReplay();
    game.goTo(game.cursor + 1);
    replaying = setTimeout(step, PACE.replay);
  };
  replaying = setTimeout(step, PACE.replay / 2);
  show();
}

function stopReplay() {
  clearTimeout(replaying);
  replaying = 0;
  show();
  letEngineMove();
}

/* ---- showing ---- */

const nameOf = (side) => titles.get(game.players[side]) ?? game.players[side];

/** The moves looked at. */
const looked = () => modes[tabs.chosen].preview?.() ?? game.shown;

function statusLine(position) {
  if (problem) return problem;
  const own = modes[tabs.chosen].status?.(position);
  if (own) return own;
  const colour = (side) => capital(game.colour(side));
  if (position.winner !== null) return `${colour(position.winner)} wins with four in a row.`;
  if (position.isOver) return "A draw: the board is full.";
  if (!game.isAtEnd) return `Move ${game.cursor} of ${game.moves.length}.`;
  const played = position.ply ? `${colour(1 - position.side)} played column ${game.shown.at(-1)}. ` : "";
  if (game.players[position.side] === PERSON) return `${played}${colour(position.side)}, it is your turn.`;
  if (tabs.chosen !== "play") return `${played}${colour(position.side)} is to move.`;
  if (game.isPaused) return `${played}Paused: ${colour(position.side)} is to move.`;
  return `${played}${colour(position.side)}, ${nameOf(position.side)}, is thinking.`;
}

/** A line for the person, until something changes. */
function say(line) {
  problem = line;
  show();
}

function show(why) {
  const position = replay(looked());
  board.show(position, {
    colour: (side) => game.colour(side),
    isOpen: mayDrop(position),
    isThinking: thinking !== null,
    isAnimated: why === "move" || why === "step",
  });
  const status = statusLine(position);
  if ($("status").textContent !== status) $("status").textContent = status;
  $("status").dataset.colour = game.colour(position.winner ?? position.side);
  $("status").classList.toggle("is-won", position.winner !== null);
  for (const side of [0, 1]) {
    const colour = game.colour(side);
    $(`chip-${side}`).className = `chip ${colour}`;
    $(`seat-name-${side}`).textContent = capital(colour);
    $(`player-${side}`).value = game.players[side];
    $(`player-${side}`).closest(".seat").classList.toggle("to-move", !position.isOver && position.side === side);
  }
  const seated = levels.filter(({ name }) => game.players.includes(name));
  $("players-note").textContent = seated.map(({ title, note }) => `${title}: ${note}.`).join(" ");
  $("players-note").hidden = !seated.length;
  const isEnginesTurn = game.players[position.side] !== PERSON && !position.isOver;
  $("pause").hidden = !game.isWatched && !(game.isPaused && isEnginesTurn);
  $("pause").textContent = game.isPaused ? (game.isWatched && !game.cursor ? "Watch" : "Go on") : "Pause";
  const [isFirst, isLast] = modes[tabs.chosen].ends ?? [game.cursor === 0, game.isAtEnd];
  for (const id of ["back", "first"]) $(id).setAttribute("aria-disabled", String(isFirst)); // and keep the focus
  for (const id of ["forward", "last"]) $(id).setAttribute("aria-disabled", String(isLast));
  $("take-back").setAttribute("aria-disabled", String(game.cursor === 0));
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

const addressOf = (moves) => (moves ? `#${moves}` : location.pathname + location.search);

/** The address keeps the analysed game or else the person's own, and its state tells which, and what the own one is. */
function writeLink() {
  const tab = tabs.chosen === "analysis" ? "analysis" : "play";
  const own = (mine ?? game).moves;
  const moves = tab === "analysis" ? game.moves : own;
  if (location.hash.slice(1) !== moves || history.state?.tab !== tab) history.replaceState({ tab, own }, "", addressOf(moves));
}

/** A link opens in the analysis, where no engine replies; the page's own address opens where it was written. */
function readLink() {
  const moves = location.hash.slice(1);
  const { tab, own } = history.state ?? { tab: moves ? "analysis" : "play" };
  try {
    replay(moves);
  } catch (error) {
    return say(`The link contains no game. ${error.message}`);
  }
  if (tab === "analysis") {
    tabs.choose("play");
    if (own !== undefined && own !== game.moves) game.load(own);
    tabs.choose("analysis");
  } else tabs.choose("play");
  if (moves !== game.moves) game.load(moves);
  else writeLink();
}

async function copyLink() {
  const link = new URL(addressOf(game.moves), location.href).href;
  try {
    await navigator.clipboard.writeText(link);
    $("share-note").textContent = "The link to this game is copied.";
  } catch {
    $("share-note").textContent = `The link: ${link}`;
  }
}

/* ---- remembering what was chosen ---- */

const CHOICES = ["player-0", "player-1"];

function remember() {
  const store = Object.fromEntries([
    ...CHOICES.map((id) => [id, $(id).value]),
    ["more", $("more-players").checked],
    ["keys", $("keys-on").checked],
    ["flipped", game.isFlipped],
    ["theme", document.documentElement.dataset.theme ?? ""],
  ]);
  try {
    localStorage.setItem("distill", JSON.stringify(store));
  } catch { /* private windows may refuse; the page works without */ }
}

function recall() {
  let store = {};
  try {
    store = JSON.parse(localStorage.getItem("distill") ?? "{}") ?? {};
  } catch { /* as above */ }
  $("more-players").checked = Boolean(store.more);
  $("keys-on").checked = store.keys ?? true;
  for (const side of [0, 1]) if (titles.has(store[`player-${side}`])) game.players[side] = store[`player-${side}`];
  offerPlayers();
  game.isPaused = game.isWatched;
  game.isFlipped = Boolean(store.flipped);
  if (store.theme) document.documentElement.dataset.theme = store.theme;
}

/* ---- controls ---- */

const COMMANDS = {
  u: () => game.takeBack(),
  n: () => game.load(""),
  s: () => game.switchSides(),
  f: () => game.flipColours(),
  p: () => game.pause(!game.isPaused),
  Home: () => game.goTo(0),
  End: () => game.goTo(game.moves.length),
  ",": () => game.goTo(game.cursor - 1),
  ".": () => game.goTo(game.cursor + 1),
  "?": () => $("keys").showModal(),
};

function connectControls() {
  const clicks = {
    switch: "s", flip: "f", pause: "p", first: "Home", back: ",", forward: ".", last: "End", "take-back": "u", new: "n", "keys-button": "?",
  };
  for (const [id, key] of Object.entries(clicks)) $(id).addEventListener("click", () => act(key));
  $("replay").addEventListener("click", toggleReplay);
  $("copy").addEventListener("click", copyLink);
  $("theme-button").addEventListener("click", switchTheme);
  for (const side of [0, 1]) $(`player-${side}`).addEventListener("change", ({ target }) => game.seat(side, target.value));
  $("more-players").addEventListener("change", () => (offerPlayers(), remember()));
  $("keys-on").addEventListener("change", remember);
  addEventListener("hashchange", readLink);
  addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey || event.target.closest("input:not([type=checkbox]), textarea, select, dialog")) return;
    if (event.key.length === 1 && !$("keys-on").checked) return; // speech input types letters, which would play (WCAG 2.1.4)
    if ("1234567".includes(event.key)) drop(Number(event.key) - 1);
    else if (event.key in (modes[tabs.chosen].keys ?? {})) act(event.key);
    else if (event.key === "ArrowLeft" || event.key === "ArrowRight") board.focus(event.key === "ArrowLeft" ? 2 : 4);
    else if (event.key.toLowerCase() in COMMANDS) act(event.key.toLowerCase());
    else return;
    event.preventDefault();
  });
}

function act(key) {
  if (mine && "sp".includes(key)) return; // who plays is a matter of the person's own game
  if (replaying) stopReplay();
  (modes[tabs.chosen].keys?.[key] ?? COMMANDS[key])();
}

function switchTheme() {
  const { dataset } = document.documentElement;
  const isDark = (dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  dataset.theme = isDark ? "light" : "dark";
  remember();
}

game.addEventListener("change", ({ detail }) => {
  problem = "";
  if (replaying && detail.why !== "step") stopReplay();
  writeLink();
  show(detail.why);
  modes[tabs.chosen].change?.(detail.why);
  letEngineMove();
  remember();
});

modes.puzzles = new Puzzles(game, $("panel-puzzles"), show, toggleReplay);
modes.openings = new Openings(game, $("panel-openings"), show);
connectControls();
try {
  fillSelects(await engine.players());
  recall();
  readLink();
} catch (error) {
  problem = error.message;
}
show();
letEngineMove();
document.documentElement.dataset.ready = "";
