/**
 * The players there are, by kind, with what a person reads of each.
 */

import { PERSON } from "./game.js";

const STRENGTHS = { search: [100, 1000, 10_000, 100_000], guided: [16, 50, 200, 800] }; // simulations

export class Players {
  #cards = new Map([[PERSON, { name: PERSON, title: "You", note: "" }]]);

  /** @param {{players: object[], max_simulations: number}} catalogue of an engine */
  constructor({ players, max_simulations: most }) {
    const of = (kind) => players.filter((player) => player.kind === kind);
    const withStrengths = (kind) => of(kind).flatMap(({ name, title, note }) =>
      STRENGTHS[kind].filter((number) => number <= most).map((number) => ({
        name: name.replace(/N$/, number),
        title: `${title}, ${number.toLocaleString("en")} simulations`,
        note,
      })),
    );
    this.levels = of("level");
    this.networks = of("network");
    this.guided = withStrengths("guided");
    this.searches = withStrengths("search");
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
    const found = named(this.levels, "club") ?? named(this.networks, "pillar") ?? this.networks[0] ?? this.searches[1] ?? this.searches[0];
    return found?.name ?? PERSON;
  }

  /** Who gives hints: the strongest player. */
  get adviser() {
    return (this.solver[0] ?? this.guided.at(-1) ?? this.networks[0] ?? this.searches.at(-2) ?? this.searches[0])?.name;
  }
}
