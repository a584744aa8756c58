/**
 * The players there are, by kind, with what a person reads of each.
 */

import { PERSON } from "./game.js";

const STRENGTHS = { search: [100, 1000, 10_000, 100_000], guided: [16, 50, 200, 800] }; // simulations

const SHIPPED = ["reference/pillar@puct:N", "pillar@puct:N"]; // as in the terminal; by its name on a static page

/** Whether the shipped network is among these cards. */
export const hasShipped = (cards) => cards.some(({ name }) => SHIPPED.includes(name));

/** Of searches with a network the shipped one's, or the first: other networks may have to be downloaded. */
export const usualSearch = (cards) => SHIPPED.map((shipped) => cards.find(({ name }) => name === shipped)).find(Boolean) ?? cards[0];

/** Cards whose names end in "N", each once for every number of simulations up to a limit. */
export const withStrengths = (cards, numbers, most) => cards.flatMap(({ name, title, note }) =>
  numbers.filter((number) => number <= most).map((number) => ({
    name: name.replace(/N$/, number), title: `${title}, ${number.toLocaleString("en")} simulations`, note,
  })),
);

export class Players {
  #cards = new Map([[PERSON, { name: PERSON, title: "You", note: "" }]]);
  #usualSearches;

  /** @param {{players: object[], max_simulations: number}} catalogue of an engine */
  constructor({ players, max_simulations: most }) {
    const of = (kind) => players.filter((player) => player.kind === kind);
    this.levels = of("level");
    this.networks = of("network");
    this.guided = withStrengths(of("guided"), STRENGTHS.guided, most);
    this.searches = withStrengths(of("search"), STRENGTHS.search, most);
    this.#usualSearches = withStrengths([usualSearch(of("guided"))].filter(Boolean), STRENGTHS.guided, most);
    this.solver = of("solver");
    this.groups = {
      "Your own": of("custom"), Networks: this.networks, "Networks with search": this.guided, Searches: this.searches,
      Others: [...this.solver, ...of("simple")],
    };
    for (const card of [...this.levels, ...Object.values(this.groups).flat()]) this.#cards.set(card.name, card);
  }

  /** Whether these are the names of two players that there are; what was stored may be anything. */
  canPlay(names) {
    return Array.isArray(names) && names.length === 2 && names.every((name) => this.#cards.has(name));
  }

  title(name) {
    return this.#cards.get(name)?.title ?? name;
  }

  /** "Club: sees traps …": empty for people and for players without a note. */
  note(name) {
    return this.#cards.get(name)?.note ?? "";
  }

  /** "Elo 1175"; empty if it was not measured. */
  elo(name) {
    const { elo } = this.#cards.get(name) ?? {};
    return typeof elo === "number" ? `Elo ${elo}` : "";
  }

  /** The opponent of a first visit. */
  get usual() {
    const named = (cards, end) => cards.find(({ name }) => name.endsWith(end));
    const found = named(this.levels, "casual") ?? named(this.networks, "pillar") ?? this.networks[0] ?? this.searches[1] ?? this.searches[0];
    return found?.name ?? PERSON;
  }

  /** Who gives hints: the solver, or else the usual search. */
  get adviser() {
    return (this.solver[0] ?? this.#usualSearches.at(-1) ?? this.networks[0] ?? this.searches.at(-2) ?? this.searches[0])?.name;
  }
}
