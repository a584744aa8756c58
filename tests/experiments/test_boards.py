"""Properties of the makers of the graded boards, and of the shipped boards by the makers' definitions.

* Every shipped set has the size its definition asks for, half of it dev and half test, the halves alike in stones.
* Every shipped board belongs to its set, and sets mean what drawn boards say.
* Boards chosen from mixed play are taken once, in the numbers asked for; too few of a kind is one line.
* In the games of held-out boards no player of this project takes part, and a game depends on its number alone.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from distill.common import UserError, provenance
from distill.datasets import benchmark
from distill.datasets.benchmark import GradedBoards
from distill.evaluation.grading import HEADLINES, best_scores
from distill.game.rules import Position, canonicalise, parse_board, problem_with
from distill.games import schema
from experiments.boards import heldout, mixed
from experiments.boards.strata import Stratum, all_strata, heldout_strata, outcome

STRATA = [*all_strata(), *heldout_strata()]


@pytest.fixture(scope="module")
def shipped() -> GradedBoards:
    return benchmark.read()


def sizes() -> dict[str, int]:
    wanted: dict[str, int] = {}
    for stratum in STRATA:
        wanted[stratum.name] = wanted.get(stratum.name, 0) + stratum.size
    return wanted


def test_every_set_has_its_size_and_two_like_halves(shipped: GradedBoards) -> None:
    wanted = sizes()
    assert wanted["midgame"] == 10_000
    assert [size for name, size in wanted.items() if name != "midgame"] == [1000] * 6 + [500] * 13 + [5000] * 2
    for name, size in wanted.items():
        halves = [shipped.ply[(shipped.set == name) & (shipped.half == half)] for half in get_args(benchmark.Half)]
        assert [len(half) for half in halves] == [size // 2] * 2
        dev, test = halves
        assert (dev <= test).all(), "halves alternate along the plies"
        assert (test[:-1] <= dev[1:]).all()
    assert len(shipped) == sum(wanted.values())


@pytest.mark.parametrize("name", HEADLINES)
def test_a_headline_set_has_as_many_boards_of_each_ply(shipped: GradedBoards, name: str) -> None:
    plies, counts = np.unique(shipped.ply[shipped.set == name], return_counts=True)
    assert plies.tolist() == list(range(10, 17))
    assert counts.max() - counts.min() <= 1


def test_every_board_belongs_to_its_set(shipped: GradedBoards) -> None:
    for name in shipped.sets:
        boards = shipped[shipped.set == name]
        belongs = np.zeros(len(boards), np.bool_)
        for stratum in (one for one in STRATA if one.name == name):
            seen = stratum.seen(boards.current, boards.mask)
            belongs |= seen & stratum.graded(boards.current, boards.mask, boards.scores)
        assert belongs.all(), name


EXAMPLES = {
    "horizontal-three": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . O . . .
        . O X X X . .
    """,
    "open-two": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        O . . . . . .
        X O . . X X .
    """,
    "block-horizontal": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . O . . . . .
        . O X . X X .
    """,
    "trap-set": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . O . .
        . O . X X . .
    """,
    "trap-avoid": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . O . .
        . . . X X . .
    """,
    "win-horizontal": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        . . . . . . .
        O . O O . . .
        X . X X X . .
    """,
    "win-vertical": """
        . . . . . . .
        . . . . . . .
        . . . . . . .
        X O . . . . .
        X O . . . . .
        X O . . . . .
    """,
}
"""In `win-horizontal` two columns win, so it is no board of that set; the others are."""


@pytest.mark.parametrize("name", EXAMPLES)
def test_a_set_means_what_a_drawn_board_says(name: str) -> None:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    from distill.players.solver import score_boards

    position = parse_board(EXAMPLES[name])
    current, mask = (np.array([bits], np.uint64) for bits in (position.current, position.mask))
    scores = score_boards(current, mask)
    stratum = next(one for one in STRATA if one.name == name)
    assert [bool(stratum.seen(current, mask)[0] and stratum.graded(current, mask, scores)[0])] == [
        name != "win-horizontal"
    ]


def test_in_zugzwang_a_pass_would_be_better(shipped: GradedBoards) -> None:
    boards = shipped[shipped.set == "zugzwang"][:40]
    for row in range(len(boards)):
        passed = Position(int(boards.current[row] ^ boards.mask[row]), int(boards.mask[row]))
        best = int(np.sign(best_scores(boards.scores)[row]))
        assert -outcome(passed, {}) > best
        assert outcome(Position(int(boards.current[row]), int(boards.mask[row])), {}) == best


def late(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return np.asarray(np.bitwise_count(mask) >= 20)


def test_boards_are_taken_once_and_in_the_wanted_numbers() -> None:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    pool = mixed.mixed_play(games=60, seed=4)
    assert not canonicalise(*pool)[2].any()

    def lost(_current: Any, _mask: Any, scores: NDArray[np.int8]) -> NDArray[np.bool_]:
        return best_scores(scores) < 0

    def not_lost(*board: Any) -> NDArray[np.bool_]:
        return ~lost(*board)

    strata = [
        Stratum(name="lost", size=20, seen=late, graded=lost),
        Stratum(name="held", size=31, seen=late, graded=not_lost),
        Stratum(name="lost", size=4, seen=late, graded=lost),
    ]
    done: list[int] = []
    boards = mixed.choose(*pool, strata, advance=done.append)
    assert sum(done) == len(boards) == 55
    assert {name: int((boards.set == name).sum()) for name in boards.sets} == {"lost": 24, "held": 31}
    assert (boards.half == "dev").sum() == 28
    assert len({*zip(boards.current.tolist(), boards.mask.tolist(), strict=True)}) == 55
    assert ((best_scores(boards.scores) < 0) == (boards.set == "lost")).all()
    with pytest.raises(UserError, match=r"set lost: \d+ boards short"):
        mixed.choose(*pool, [Stratum(name="lost", size=100_000, seen=late, graded=lost)])


def test_no_player_of_this_project_chose_a_heldout_board(tmp_path: Path) -> None:
    _, metadata = schema.read_table(provenance.ROOT / "data/benchmark" / benchmark.FILES[1], benchmark.GRADED_BOARD)
    config = heldout.Config(out=tmp_path)
    made = {"styles": [list(style) for style in heldout.STYLES], "exploration": heldout.EXPLORATION, "share": 1.0}
    assert metadata["settings"] == made | {"games": config.games, "seed": config.seed}
    assert {word.partition(":")[0] for word, _ in heldout.STYLES} == {"random", "punisher", "openspiel"}


def test_a_heldout_game_depends_on_its_number_alone() -> None:
    pytest.importorskip("pyspiel", reason="OpenSpiel is an optional extra")
    together, apart = heldout.play_games(range(2), 7), [heldout.play_games([game], 7) for game in range(2)]
    assert (together == np.concatenate(apart)).all()
    assert all(problem_with(Position(*bits)) is None for bits in together.tolist())
    assert apart[0].tolist() != heldout.play_games([0], 8).tolist()
