"""Search guided by a network, many games in lock step: PUCT, and Gumbel search.

The network comes in as a function `predict(current, mask) → (logits, value)` on batches of positions; this room does
not know what is behind it. `play` plays whole games from given openings, `search` looks at single positions. Every game
holds one leaf at a time, all leaves are valued together, and everything in between runs compiled (`walk.py`).

    predict = lambda current, mask: (np.zeros((len(current), 7), np.float32), np.zeros(len(current), np.float32))
    record = play(current, mask, PuctSettings(simulations=100), predict, seed=1)

Dimensions: B batch, G games, S positions a game, A = 7 columns. Values are in [−1, 1] for the side to move.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from distill.common.cli import Settings, check, setting
from distill.game import outputs
from distill.game.rules import CELLS, COLUMNS
from distill.mcts import walk
from distill.mcts.guided_trees import MOST_VISITS, UNIT, GuidedRecord, GuidedTrees, Rules, new_trees
from distill.mcts.gumbel import halving_schedule
from distill.mcts.teacher import blank_record, generator

PUCT_VERSION = 3
"""Raised whenever the same settings, seed and answers give other searches."""

LANES = 256
"""Games in flight, and so the largest batch the network sees."""

CACHE = 18
"""2^18 answers are kept for positions met again: 10 MB."""

ROOM_FOR_REUSE = 4
"""A tree holds this many searches' visits before a reused one is given up."""

Bitboards: TypeAlias = NDArray[np.uint64]
Evaluate: TypeAlias = Callable[[Bitboards, Bitboards], tuple[NDArray[np.float32], NDArray[np.float32]]]


@dataclass(frozen=True, kw_only=True)
class PuctSettings(Settings, group="search", shown=("simulations", "root", "exploration")):
    """What a search guided by a network does; all that its result depends on, beside position, seed and answers."""

    simulations: int = setting(100, "simulations of each search")
    root: Literal["puct", "gumbel"] = setting(
        "puct", "how the root spends them: by score and noise, or Gumbel draws with sequential halving"
    )
    rule: Literal["constant", "growing", "printed"] = setting(
        "constant",
        "exploration: c · P · sqrt(N) / (1 + n), the same with c(N) = c + ln((N + 19653) / 19652), or the printed term "
        "c(N) · sqrt(ln N / n), which has no prior",
    )
    exploration: float = setting(1.5, "constant c of the rule")
    fpu_reduction: float | None = setting(
        0.25, "unvisited columns count as the node's own value less this · sqrt(visited prior); none: as 0"
    )
    noise_fraction: float = setting(
        0.25, "share of the root's priors that is Dirichlet noise; 0 also silences a Gumbel root's draws"
    )
    dirichlet_alpha: float = setting(0.3, "concentration of that noise")
    sampling_plies: int = setting(10, "positions with fewer stones play by chance, later ones the best column")
    temperature: float = setting(1.0, "of that chance: visits^(1 / temperature); Gumbel roots draw by themselves")
    reuse: bool = setting(False, "keep the subtree of the move played (root puct)")
    mcts_solver: bool = setting(True, "back up proven wins and losses, and see them one move ahead")
    discount: float = setting(1.0, "worth of a value one ply ahead: below 1, quick wins and slow losses are preferred")
    considered: int = setting(7, "columns that a Gumbel root considers at first")
    c_visit: float = setting(50.0, "Gumbel: values weigh (c_visit + most visits) · c_scale against logits")
    c_scale: float = setting(0.3, "Gumbel: see c_visit; values are taken on [0, 1]")

    def __post_init__(self) -> None:
        super().__post_init__()
        most, first = MOST_VISITS // 2, self.fpu_reduction
        check(1 <= self.simulations <= most, "simulations", self.simulations, f"from 1 to {most:,}")
        check(first is None or 0 <= first <= 10, "fpu_reduction", first, "from 0 to 10, or none")
        check(0 <= self.exploration <= 100, "exploration", self.exploration, "from 0 to 100")
        check(0 <= self.noise_fraction <= 1, "noise_fraction", self.noise_fraction, "from 0 to 1")
        check(0 < self.dirichlet_alpha <= 1e6, "dirichlet_alpha", self.dirichlet_alpha, "above 0, at most 1e6")
        check(0 <= self.sampling_plies <= CELLS, "sampling_plies", self.sampling_plies, f"from 0 to {CELLS}")
        check(0.01 <= self.temperature <= 100, "temperature", self.temperature, "from 0.01 to 100")
        check(0.5 <= self.discount <= 1, "discount", self.discount, "from 0.5 to 1")
        check(2 <= self.considered <= COLUMNS, "considered", self.considered, f"from 2 to {COLUMNS}")
        check(0 <= self.c_visit <= 1e6, "c_visit", self.c_visit, "from 0 to 1e6")
        check(0 < self.c_scale <= 1e6, "c_scale", self.c_scale, "above 0, at most 1e6")
        possible = not (self.reuse and self.root == "gumbel")
        check(possible, "reuse", self.reuse, "off with --root gumbel, which halves anew")


def quiet(settings: PuctSettings) -> PuctSettings:
    """The same search without chance: no noise, no sampled moves. For play in earnest."""
    return replace(settings, noise_fraction=0.0, sampling_plies=0)


def exploration_factors(settings: PuctSettings, most: int) -> NDArray[np.float64]:
    """(most,): what multiplies P / (1 + n), or 1 / sqrt(n) for the printed term, in a node entered N times."""
    entered = np.maximum(np.arange(most, dtype=np.float64), 1.0)
    c = np.full(most, settings.exploration)
    if settings.rule != "constant":
        c += np.log((entered + 19652 + 1) / 19652)
    return c * np.sqrt(np.log(entered) if settings.rule == "printed" else entered)


def _rules(settings: PuctSettings) -> Rules:
    schedule = np.zeros((COLUMNS + 1, settings.simulations), np.int32)
    for number in range(1, COLUMNS + 1):
        schedule[number] = halving_schedule(settings.simulations, number)
    as_is = {name: getattr(settings, name) for name in ("simulations", "sampling_plies", "reuse", "considered")}
    numbers: dict[str, Any] = {
        n: float(getattr(settings, n)) for n in ("temperature", "discount", "c_visit", "c_scale")
    }
    return Rules(
        printed=settings.rule == "printed",
        from_parent=settings.fpu_reduction is not None,
        reduction=float(settings.fpu_reduction or 0.0),
        noise=float(settings.noise_fraction),
        solver=settings.mcts_solver,
        gumbel=settings.root == "gumbel",
        worth=np.rint(UNIT * settings.discount ** np.arange(CELLS + 2)).astype(np.int64),
        schedule=schedule,
        **as_is,
        **numbers,
    )


def begin_at(settings: PuctSettings, lanes: int, steps: int, cache: int = CACHE) -> GuidedTrees:
    """Room for `lanes` games of at most `steps` searched positions each."""
    room = min(MOST_VISITS, settings.simulations * (ROOM_FOR_REUSE if settings.reuse else 1) + 3)
    return new_trees(lanes, steps, _rules(settings), exploration_factors(settings, room), cache)


def play(
    current: Bitboards,
    mask: Bitboards,
    settings: PuctSettings,
    predict: Evaluate,
    *,
    seed: int = 0,
    games: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    lanes: int = LANES,
    steps: int = CELLS,
    ended: Callable[[GuidedRecord, NDArray[np.int64]], None] | None = None,
) -> GuidedRecord:
    """Play G games on from the positions (current, mask), uint64 (G,), none of them over.

    All chance in game i is drawn from (seed, games[i]), by default games 0, 1, ..., or from (seeds[i], 0) where seeds
    are given; `lanes` has no influence as long as the answers for a position do not depend on the others in its batch.
    A game ends by the rules or after `steps` positions. `ended(record, indices)` is told which games
    have just ended. Games begin in their order. Raises OutputError for logits or values that no search can use.
    """
    number = len(current)
    record = GuidedRecord(**blank_record(current, mask, steps))
    trees = begin_at(settings, max(1, min(lanes, number)), steps)
    streams = [(each, 0) for each in seeds] if seeds is not None else [(seed, each) for each in games or range(number)]
    live = np.arange(len(trees.game))
    leaves = np.zeros(len(live), np.int64)
    begun = 0
    while len(live):
        for lane in live[trees.game[live] < 0][: number - begun]:
            _seat(trees, record, int(lane), begun, streams[begun], settings)
            begun += 1
        live = live[trees.game[live] >= 0]
        playing = trees.game[live]
        waiting = walk.gather(trees, record, live, leaves)
        over = playing[trees.game[live] < 0]
        if ended is not None and len(over):
            ended(record, over)
        if waiting:
            lanes_waiting = leaves[:waiting]
            mask_waiting = trees.leaf_mask[lanes_waiting]
            found = predict(trees.leaf_current[lanes_waiting], mask_waiting)
            walk.absorb(trees, lanes_waiting, *outputs.evaluation(found, mask_waiting))
    return record


def _seat(
    trees: GuidedTrees, record: GuidedRecord, lane: int, game: int, stream: tuple[int, int], settings: PuctSettings
) -> None:
    """Begin a game on an idle lane, with its draws."""
    steps = record.label.shape[1]
    trees.game[lane], trees.step[lane], trees.planted[lane] = game, 0, False
    trees.current[lane], trees.mask[lane] = record.current[game, 0], record.mask[game, 0]
    trees.simulations[lane], trees.carried[lane] = 0, 0
    random = generator(*stream, 1)
    if settings.root == "gumbel":
        trees.gumbel[lane] = random.gumbel(size=(steps, COLUMNS)) if settings.noise_fraction else 0.0
    elif settings.noise_fraction:
        trees.gamma[lane] = random.standard_gamma(settings.dirichlet_alpha, (steps, COLUMNS))
    trees.uniform[lane] = random.random((steps, 2))


def search(
    current: Bitboards,
    mask: Bitboards,
    settings: PuctSettings,
    predict: Evaluate,
    seeds: Sequence[int],
    lanes: int = LANES,
) -> GuidedRecord:
    """Search B positions that are not over, side by side: a record of one position a game, all at `[:, 0]`.

    Each position's chance comes from its own seed, so it does not depend on the others asked for.
    """
    return play(current, mask, settings, predict, seeds=seeds, lanes=lanes, steps=1)
