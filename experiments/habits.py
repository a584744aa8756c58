"""How players play: openings, horizontal threes, strength by stones, the centre, threats, and stacking.

    python -m experiments.habits cnn transformer pillar
    python -m experiments.habits models/cnn-1000 random uct:1000 --out models/habits

In: players by name, as `distill/players/names.py` reads them, and the shipped graded boards. Out: one table for each
habit, the table of what the article about the UT Project says of its two networks, and in the folder `--out` the same
figures as `habits.json` and four pictures. A rate stands beside its chance level: how often a legal column drawn at
random would do the same on the same boards. Intervals are 95 %.

The habits of games are those of games against `punisher` from the empty board, half of them from either side.

Dimensions: B boards, A = 7 columns.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common import UserError
from distill.common.pictures import new_figure, save_figure
from distill.common.tables import table
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.datasets.grades import grade_moves, is_critical, keeps_outcome
from distill.evaluation.report import GRID, percent
from distill.game import tactics
from distill.game.encoding import bitboards_of
from distill.game.rules import (
    BITS_PER_COLUMN,
    CELLS,
    CENTRE,
    COLUMNS,
    Bitboards,
    after_moves,
    from_moves,
    landing,
    legal_mask,
    mirror_bits,
)
from distill.players.intervals import Estimate, difference, share
from distill.players.match import Pairing, play_games
from distill.players.names import make
from distill.players.player import Player, checked_choices, seeds_for

Array: TypeAlias = NDArray[Any]

OPPONENT = "punisher"
"""Wins if it can, blocks if it must, and otherwise plays at random, so that no two games are alike."""
PLACES = ("left", "centre", "right")
"""Of a horizontal line of four: columns 1 to 4; 2 to 5 or 3 to 6; 4 to 7."""
DIRECTIONS = ("vertical", "falling", "rising")
BANDS = ((8, 12), (13, 18), (19, 24), (25, 30), (31, 41))
"""First and last number of stones."""
DRAWS = 400
"""Moves drawn on a board for the policy of a player that states none."""
SEED = 0


@dataclass(frozen=True, kw_only=True)
class Rate:
    """How often a player does something, and how often a legal column drawn at random would."""

    rate: Estimate
    chance: float


@dataclass(frozen=True, kw_only=True)
class Habits:
    """What is measured of a player.

    Attributes:
      openings: the policy (A,) by the moves before it, such as "4" for a first stone in column 4.
      threes: by "win" or "block" and place, horizontal threes completed or blocked; by "win" or "block" and another
        direction, the same of the other lines.
      left_less_right: completed and blocked threes, each on the left less its mirror image on the right.
      traps: boards on which the player sets, or avoids, a double threat.
      stones: by band of stones, moves that keep the outcome where legal moves differ in it.
      games: rates of its moves in games.
    """

    openings: dict[str, list[float]]
    threes: dict[str, Rate]
    left_less_right: Estimate
    traps: dict[str, Rate]
    stones: dict[str, Rate]
    games: dict[str, Rate] = field(default_factory=dict)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("players", nargs="+", metavar="PLAYER", help="a network's name, folder or file, or a player")
    parser.add_argument("--games", type=int, default=400, help="games of each player, an even number [%(default)s]")
    parser.add_argument("--out", type=Path, default=Path("models/habits"), help="[%(default)s]")
    arguments = parser.parse_args()
    try:
        players = [make(name) for name in arguments.players]
        habits = {player.name: habits_of(player, arguments.games) for player in players}
    except (UserError, ValueError) as error:
        parser.error(str(error))
    arguments.out.mkdir(parents=True, exist_ok=True)
    stored = {name: dataclasses.asdict(one) for name, one in habits.items()}
    (arguments.out / "habits.json").write_text(json.dumps(stored, indent=1) + "\n")
    draw(arguments.out, habits)
    print(tables(habits))
    print(f"{arguments.out}: habits.json and four pictures")


# Measuring ------------------------------------------------------------------------------------------------------------


def habits_of(player: Player, games: int) -> Habits:
    """Measure a player. Raises DataError where the graded boards are missing."""
    boards = benchmark.read()
    by_set = {name: boards[boards.set == name] for name in boards.sets}
    threes, left_less_right = threes_of(player, by_set)
    return Habits(
        openings=openings_of(player),
        threes=threes,
        left_less_right=left_less_right,
        traps={name: outcome_rate(player, by_set[name]) for name in ("trap-set", "trap-avoid")},
        stones=stones_of(player, by_set["heldout-all"]),
        games=games_of(player, games),
    )


def moves_on(player: Player, current: Bitboards, mask: Bitboards, draw: int = 0) -> NDArray[np.int64]:
    """int64 (B,), the player's moves."""
    return checked_choices(player, current, mask, seeds_for(SEED, np.arange(len(mask)), draw)).moves


def policy_on(player: Player, line: str) -> list[float]:
    """The player's policy after these moves, or how often it plays each column where it states no policy."""
    current, mask = bitboards_of([from_moves(line)])
    policy = checked_choices(player, current, mask, seeds_for(SEED, np.zeros(1, np.int64))).policy
    if policy is None:
        moves = moves_on(player, np.repeat(current, DRAWS), np.repeat(mask, DRAWS))
        policy = np.bincount(moves, minlength=COLUMNS)[None] / DRAWS
    return [float(share) for share in policy[0]]


def openings_of(player: Player) -> dict[str, list[float]]:
    """Its policy on the empty board, after each first stone, and after its first move and each reply."""
    openings = {line: policy_on(player, line) for line in ("", *"1234567")}
    first = str(int(np.argmax(openings[""])) + 1)
    return openings | {line: policy_on(player, line) for line in (first + reply for reply in "1234567")}


def both_sides_of(boards: GradedBoards) -> tuple[Bitboards, Bitboards]:
    """The stones to move and all stones, of B boards and then of their mirror images."""
    current, mask = boards.current, boards.mask
    return np.concatenate([current, mirror_bits(current)]), np.concatenate([mask, mirror_bits(mask)])


def chance_of(columns: Array, mask: Bitboards) -> Array:
    """float (B,): the chance that a legal column drawn at random is one of these, bool (B, A)."""
    legal = legal_mask(mask)
    chances: Array = (columns & legal).sum(1) / legal.sum(1)
    return chances


def threes_of(player: Player, boards: Mapping[str, GradedBoards]) -> tuple[dict[str, Rate], Estimate]:
    """Lines of four completed and blocked: horizontal ones by place, the others by direction; and left less right."""
    rates: dict[str, Rate] = {}
    lefts, rights = [], []
    for task in ("win", "block"):
        current, mask = both_sides_of(boards[f"{task}-horizontal"])
        stones = current if task == "win" else current ^ mask
        finishing = tactics.wins(stones, mask)
        done = finishing[np.arange(len(mask)), moves_on(player, current, mask)].astype(float)
        starts = line_starts(stones, mask)
        is_one = starts.sum(1) == 1
        places = {"left": starts[:, 0], "centre": starts[:, 1] | starts[:, 2], "right": starts[:, 3]}
        for place in PLACES:
            chosen = is_one & places[place]
            rates[f"{task} {place}"] = Rate(
                rate=share(done[chosen], trials=1), chance=float(chance_of(finishing, mask)[chosen].mean())
            )
        # The second half holds the mirror images of the first, in the same order.
        half = len(mask) // 2
        for left, right in ((slice(half), slice(half, None)), (slice(half, None), slice(half))):
            paired = is_one[left] & places["left"][left]
            lefts.append(done[left][paired])
            rights.append(done[right][paired])
        for direction in DIRECTIONS:
            current, mask = both_sides_of(boards[f"{task}-{direction}"])
            finishing = tactics.wins(current if task == "win" else current ^ mask, mask)
            done = finishing[np.arange(len(mask)), moves_on(player, current, mask)].astype(float)
            rates[f"{task} {direction}"] = Rate(
                rate=share((done[: len(done) // 2] + done[len(done) // 2 :]) / 2),
                chance=float(chance_of(finishing, mask).mean()),
            )
    return rates, difference(np.concatenate(lefts), np.concatenate(rights))


def line_starts(stones: Bitboards, mask: Bitboards) -> NDArray[np.bool_]:
    """bool (B, 4): whether a stone can complete a horizontal line that begins in column 0, 1, 2 or 3."""
    cells = landing(mask)
    starts = np.zeros((len(mask), 4), np.bool_)
    for start in range(4):
        for row in range(BITS_PER_COLUMN - 1):
            line = np.uint64(sum(1 << (BITS_PER_COLUMN * column + row) for column in range(start, start + 4)))
            complete = ((stones[:, None] | cells) & line) == line
            starts[:, start] |= (complete & ((cells & line) != 0)).any(1)
    return starts


def outcome_rate(player: Player, boards: GradedBoards) -> Rate:
    """How often its move keeps the outcome of perfect play, on boards and their mirror images."""
    current, mask = both_sides_of(boards)
    moves = moves_on(player, current, mask).reshape(2, -1)
    moves[1] = COLUMNS - 1 - moves[1]
    chance = keeps_outcome(boards.scores).sum(1) / legal_mask(boards.mask).sum(1)
    return Rate(rate=share(grade_moves(boards.scores, moves)[1].mean(0)), chance=float(chance.mean()))


def stones_of(player: Player, boards: GradedBoards) -> dict[str, Rate]:
    """By stones on the board, `outcome_rate` on boards where legal moves differ in the outcome."""
    chosen = is_critical(boards.scores)
    return {
        f"{low}–{high}": outcome_rate(player, boards[chosen & (boards.ply >= low) & (boards.ply <= high)])
        for low, high in BANDS
    }


def games_of(player: Player, games: int) -> dict[str, Rate]:
    """Rates of its moves in games against OPPONENT, as means over games.

    A board is quiet where neither side can win with its next stone.
    """
    pairings = [Pairing(first=number % 2, second=1 - number % 2) for number in range(games)]
    lines = play_games([player, make(OPPONENT)], pairings, SEED).lines
    rows = [
        (number, line[:ply], move)
        for number, line in enumerate(lines)
        for ply, move in enumerate(line)
        if ply % 2 == number % 2
    ]
    current, mask = bitboards_of([from_moves(before) for _, before, _ in rows])
    game, move = np.array([number for number, _, _ in rows]), np.array([move for _, _, move in rows])
    last = np.array([before[-1] if before else -1 for _, before, _ in rows])
    previous = np.array([before[-2] if len(before) > 1 else -1 for _, before, _ in rows])
    every = np.arange(COLUMNS)

    own, other = tactics.wins(current, mask), tactics.wins(current ^ mask, mask)
    quiet = ~own.any(1) & ~other.any(1)
    threatening = threats(current, mask)
    asked: dict[str, tuple[Any, Any]] = {  # the columns that count, and the boards on which they are counted
        "wins where it can": (own, own.any(1)),
        "answers a threat": (other, ~own.any(1) & (other.sum(1) == 1)),
        "makes a threat": (threatening, quiet & threatening.any(1)),
        "plays the centre": (np.broadcast_to(every == CENTRE, own.shape), quiet),
        "the column just played": (every == last[:, None], quiet & (last >= 0)),
        "its last column": (every == previous[:, None], quiet & (previous >= 0)),
    }
    legal, rates = legal_mask(mask), {}
    for name, (columns, counted) in asked.items():
        counted = counted & (columns & legal).any(1)
        done = columns[np.arange(len(mask)), move][counted].astype(float)
        numbers = game[counted]
        means = [float(done[numbers == number].mean()) for number in np.unique(numbers)]
        chances = chance_of(columns, mask)[counted]
        rates[name] = Rate(rate=share(means, trials=CELLS), chance=float(chances.sum()) / max(len(chances), 1))
    return rates


def threats(current: Bitboards, mask: Bitboards) -> NDArray[np.bool_]:
    """bool (B, A), True where a stone of the side to move leaves it with a winning column for its next turn."""
    threatening = np.zeros((len(mask), COLUMNS), np.bool_)
    legal = legal_mask(mask)
    for column in range(COLUMNS):
        open_boards = np.flatnonzero(legal[:, column])
        moves = np.full(len(open_boards), column)
        after_current, after_mask, _ = after_moves(current[open_boards], mask[open_boards], moves)
        threatening[open_boards, column] = tactics.wins(after_current ^ after_mask, after_mask).any(1)
    return threatening


# The article's statements ---------------------------------------------------------------------------------------------


def above(estimate: Estimate, bound: float) -> str:
    """Whether an estimate is above a bound: "holds", "does not hold", or "not measurable" where the interval has it."""
    if estimate.low > bound:
        return "holds"
    return "does not hold" if estimate.high < bound else "not measurable"


def below(estimate: Estimate, bound: float) -> str:
    verdict = above(estimate, bound)
    return {"holds": "does not hold", "does not hold": "holds"}.get(verdict, verdict)


def misses_threes(habits: Habits) -> tuple[str, str]:
    done = worst([habits.threes[f"{task} {place}"] for task in ("win", "block") for place in PLACES])
    return below(done.rate, 0.9), percent(done.rate)


def misses_traps(habits: Habits) -> tuple[str, str]:
    done = worst([*habits.traps.values()])
    return below(done.rate, 0.9), percent(done.rate)


def worst(rates: Sequence[Rate]) -> Rate:
    """The lowest rate."""
    return min(rates, key=lambda one: one.rate.mean)


def prefers_the_left(habits: Habits) -> tuple[str, str]:
    return above(habits.left_less_right, 0.01), signed(habits.left_less_right)


def opens_in_column_two(habits: Habits) -> tuple[str, str]:
    moves = [int(np.argmax(habits.openings[first])) + 1 for first in "1234567"]
    return "holds" if moves.count(2) >= 5 else "does not hold", f"{moves.count(2)} of 7: {moves}"


def is_weaker_early(habits: Habits) -> tuple[str, str]:
    (_, early), *_, (_, late) = habits.stones.items()
    shown = f"{percent(early.rate)}, {percent(late.rate)}"
    if early.rate.high < late.rate.low:
        return "holds", shown
    return "does not hold" if early.rate.low > late.rate.high else "not measurable", shown


def opens_evenly(habits: Habits) -> tuple[str, str]:
    policy = np.array(habits.openings[""])
    entropy = -float((policy * np.log(np.maximum(policy, 1e-12))).sum())
    return "holds" if entropy > 0.9 * math.log(COLUMNS) else "does not hold", f"{entropy:.2f} nats"


def against_chance(name: str, compare: Callable[[Estimate, float], str]) -> Callable[[Habits], tuple[str, str]]:
    def judged(habits: Habits) -> tuple[str, str]:
        one = habits.games[name]
        return compare(one.rate, one.chance), f"{percent(one.rate)}, {100 * one.chance:.1f}"

    return judged


Judged: TypeAlias = Callable[[Habits], tuple[str, str]]
STATEMENTS: Mapping[tuple[str, str], tuple[str, Judged]] = {
    ("both", "miss open horizontal threes"): ("under 90 % completed or blocked, where it is worst", misses_threes),
    ("both", "miss traps of two moves"): ("outcome under 90 % on `trap-set` or `trap-avoid`", misses_traps),
    ("CNN", "more alert on the left than on the right"): (
        "the left is above the right by more than 1 point",
        prefers_the_left,
    ),
    ("CNN", "column 2 in 5 of 7 tests"): ("its answer to each first stone", opens_in_column_two),
    ("CNN", "weaker early than late"): (f"{BANDS[0][0]} to {BANDS[0][1]} stones below the last band", is_weaker_early),
    ("Transformer", "opens almost evenly"): ("entropy above 90 % of ln 7, 1.75 nats", opens_evenly),
    ("Transformer", "does not control the centre"): (
        "centre played less often than by chance",
        against_chance("plays the centre", below),
    ),
    ("Transformer", "stacks where stones are"): (
        "the column just played, more often than by chance",
        against_chance("the column just played", above),
    ),
    ("Transformer", "reacts"): (
        "threats answered more often than by chance",
        against_chance("answers a threat", above),
    ),
    ("Transformer", "makes no threats"): (
        "threats made less often than by chance",
        against_chance("makes a threat", below),
    ),
}
"""By whom the article says it of and what it says: when it holds here, and how that is decided."""


# Tables and pictures --------------------------------------------------------------------------------------------------


def signed(estimate: Estimate) -> str:
    return f"{100 * estimate.mean:+.1f} ({100 * estimate.low:+.1f} to {100 * estimate.high:+.1f})".replace("-", "−")


def tables(habits: Mapping[str, Habits]) -> str:
    """All tables, with one column a player."""
    players = list(habits)

    def rates(title: str, of: Callable[[Habits], Mapping[str, Rate]]) -> str:
        measured = {name: of(one) for name, one in habits.items()}
        rows = [
            [
                name,
                *(percent(measured[player][name].rate) for player in players),
                f"{100 * np.mean([measured[player][name].chance for player in players]):.1f}",
            ]
            for name in measured[players[0]]
        ]
        return table([f"{title}, %", *players, "chance"], rows)

    def policy(shares: Sequence[float]) -> str:
        return " ".join(f"{100 * one:.0f}" for one in shares)

    openings = [
        [name, *(policy(one.openings[line]) for one in habits.values())]
        for name, line in {"empty board": "", **{f"after a stone in {line}": line for line in "1234567"}}.items()
    ]
    statements = [
        [f"{who}: {what}", *(": ".join(judged(one)) for one in habits.values()), rule]
        for (who, what), (rule, judged) in STATEMENTS.items()
    ]
    return "\n\n".join(
        [
            table(["policy on columns 1 to 7, %", *players], openings),
            rates("lines completed and blocked", lambda one: one.threes),
            table(["", *players], [["left less right", *(signed(one.left_less_right) for one in habits.values())]]),
            rates("outcome kept", lambda one: one.traps),
            rates("outcome kept, by stones", lambda one: one.stones),
            rates("moves in games", lambda one: one.games),
            table(["the article's statements", *players, "holds here if"], statements),
        ]
    )


def draw(folder: Path, habits: Mapping[str, Habits]) -> None:
    """The four pictures."""
    openings(folder / "habits-openings.png", habits)
    places = [f"{task} {place}" for task in ("win", "block") for place in PLACES]
    threes = {name: {place: one.threes[place] for place in places} for name, one in habits.items()}
    dots(folder / "habits-threes.png", "horizontal threes completed (win) and blocked, %", threes)
    dots(
        folder / "habits-stones.png",
        "outcome kept where moves differ in it, by stones, %",
        {name: one.stones for name, one in habits.items()},
    )
    dots(folder / "habits-games.png", "moves in games, %", {name: one.games for name, one in habits.items()})


def openings(path: Path, habits: Mapping[str, Habits]) -> None:
    """The policies as shades: a row for the empty board, each first stone, and each reply to the first move."""
    figure, axes = new_figure(1, len(habits), 1.2 + 1.5 * len(habits), 3.6)
    for axis, (name, one) in zip(axes, habits.items(), strict=True):
        shares = np.array(list(one.openings.values()))
        axis.imshow(shares, cmap="Blues", vmin=0, vmax=1, aspect="auto")
        for row, column in zip(range(len(shares)), shares.argmax(1), strict=True):
            axis.plot(column, row, ".", color="white", markersize=3)
        axis.set_xticks(range(COLUMNS), range(1, COLUMNS + 1), fontsize=7)
        axis.set_yticks(range(len(shares)), [line or "–" for line in one.openings], fontsize=7)
        axis.set_title(name, fontsize=8)
    figure.suptitle("policy after these moves (dot: most probable column)", fontsize=9)
    save_figure(figure, path)


def dots(path: Path, title: str, rates: Mapping[str, Mapping[str, Rate]]) -> None:
    """Rates with their intervals, one row a habit and one colour a player; a cross is the chance level."""
    names = list(next(iter(rates.values())))
    figure, [axis] = new_figure(1, 1, 6.4, 0.9 + 0.42 * len(names))
    for number, (player, measured) in enumerate(rates.items()):
        places = [row + 0.7 * (number + 0.5) / len(rates) - 0.35 for row in range(len(names))]
        means = 100 * np.array([measured[name].rate.mean for name in names])
        ends = [(measured[name].rate.low, measured[name].rate.high) for name in names]
        errors = np.abs(100 * np.array(ends).T - means)
        axis.errorbar(means, places, xerr=errors, fmt="o", markersize=3, linewidth=1, label=player)
        axis.plot([100 * measured[name].chance for name in names], places, "x", color="#999999", markersize=3)
    axis.set_yticks(range(len(names)), names, fontsize=8)
    axis.invert_yaxis()
    axis.set_xlim(0, 101)
    axis.grid(color=GRID)
    axis.legend(fontsize=7)
    axis.set_title(f"{title} (cross: by chance)", fontsize=9)
    save_figure(figure, path)


if __name__ == "__main__":
    main()
