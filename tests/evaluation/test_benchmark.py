"""Properties of the shipped benchmark, of reading it, and of making it.

Shipped boards:
* Every set has the size its definition asks for, half of it dev and half test, the halves alike in stones.
* Every board is a position that is not over, canonical, and unlike every other board of any set up to mirror.
* Every board belongs to its set, by the set's own definition, and sets mean what drawn boards say.
* Stored scores cover the legal columns alone, and equal a live solver's on a sample.
* `prepare` keeps every one of them out of training tables, in either orientation, by default.

Reading and making:
* A half or some sets can be asked for; a missing or damaged file, and a set that is not there, are named in one line.
* Boards chosen from mixed play are taken once, in the numbers asked for; too few of a kind is said.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import numpy as np
import pyarrow as pa
import pytest
from helpers import write_games
from numpy.typing import NDArray

from distill.common import DataError, UserError, provenance
from distill.datasets import batching, benchmark, preparation
from distill.datasets.benchmark import FULL_COLUMN, GradedBoards
from distill.evaluation import benchmark as maker
from distill.evaluation import grading, heldout
from distill.evaluation.strata import Stratum, all_strata, best_scores, heldout_strata, outcome
from distill.game.rules import Position, canonicalise, is_over, legal_mask, mirror_bits, parse_board, problem_with
from distill.games import schema
from distill.players.solver import moves_to_end


@pytest.fixture(scope="module")
def shipped() -> GradedBoards:
    return benchmark.read()


def sizes() -> dict[str, int]:
    wanted: dict[str, int] = {}
    for stratum in [*all_strata(), *heldout_strata()]:
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


@pytest.mark.parametrize("name", grading.HEADLINES)
def test_a_headline_set_has_as_many_boards_of_each_ply(shipped: GradedBoards, name: str) -> None:
    plies, counts = np.unique(shipped.ply[shipped.set == name], return_counts=True)
    assert plies.tolist() == list(range(10, 17))
    assert counts.max() - counts.min() <= 1


def test_every_board_is_a_live_position(shipped: GradedBoards) -> None:
    for current, mask, ply in zip(shipped.current.tolist(), shipped.mask.tolist(), shipped.ply.tolist(), strict=True):
        position = Position(current, mask)
        assert problem_with(position) is None
        assert not is_over(position)
        assert position.ply == ply


def test_no_two_boards_are_equal_up_to_mirror(shipped: GradedBoards) -> None:
    current, mask, mirrored = canonicalise(shipped.current, shipped.mask)
    assert not mirrored.any(), "the stored orientation is the canonical one"
    assert len(np.unique(np.stack([current, mask], 1), axis=0)) == len(shipped)


def test_every_board_belongs_to_its_set(shipped: GradedBoards) -> None:
    for name in shipped.sets:
        boards = shipped[shipped.set == name]
        belongs = np.zeros(len(boards), np.bool_)
        for stratum in (one for one in [*all_strata(), *heldout_strata()] if one.name == name):
            seen = stratum.seen(boards.current, boards.mask)
            belongs |= seen & stratum.graded(boards.current, boards.mask, boards.scores)
        assert belongs.all(), name


def test_scores_cover_the_legal_columns_alone(shipped: GradedBoards) -> None:
    legal = legal_mask(shipped.mask)
    assert ((shipped.scores != FULL_COLUMN) == legal).all()
    assert np.abs(shipped.scores[legal].astype(int)).max() <= 18
    assert (moves_to_end(best_scores(shipped.scores), shipped.ply) == shipped.moves_to_end).all()
    assert shipped.moves_to_end.min() >= 1


def test_a_live_solver_gives_the_stored_scores(shipped: GradedBoards) -> None:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")
    from distill.players.solver import score_boards

    cheap = np.flatnonzero((shipped.ply <= 11) | (shipped.ply >= 17))
    rows = np.random.default_rng(0).permutation(cheap)[:600]
    mirrored = [mirror_bits(bits[rows]) for bits in (shipped.current, shipped.mask)]
    assert (score_boards(*mirrored)[:, ::-1] == shipped.scores[rows]).all()


def test_prepare_keeps_every_board_out_of_training(tmp_path: Path, shipped: GradedBoards) -> None:
    """Games that pass through benchmark boards, half of them in the mirror, and through one other board."""
    boards = [
        Position(int(turn(shipped.current[row : row + 1])[0]), int(turn(shipped.mask[row : row + 1])[0]))
        for turn in (np.copy, mirror_bits)
        for row in range(0 if turn is np.copy else 5, len(shipped), 10)
    ]
    rows = [_row(game, position) for game, position in enumerate([parse_board(ONE_STONE), *boards])]
    write_games(tmp_path / "games", pa.Table.from_pylist(rows, schema=schema.ROW), shard_games=len(rows))

    def training_boards(**settings: Any) -> preparation.Prepared:
        return preparation.prepare([tmp_path / "games"], tmp_path / "out", validation_fraction=0.0, **settings)

    everything = training_boards(exclude=())
    assert len(batching.load(everything.folder, schema.TRAINING)) == len(boards) + 1
    default = training_boards()
    assert batching.load(default.folder, schema.TRAINING).mask.tolist() == [parse_board(ONE_STONE).mask]
    excluded = default.manifest["counts"]["excluded"]["benchmark"]
    assert (excluded["boards"], excluded["boards_found"]) == (len(shipped), len(boards))


ONE_STONE = """
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . . . . .
    . . . X . . .
"""


def _row(game: int, position: Position) -> dict[str, object]:
    row = {"game_id": game, "ply": position.ply, "current": position.current, "mask": position.mask}
    label = int(legal_mask(np.array([position.mask], np.uint64))[0].argmax())
    visits = [30 if column == label else 0 for column in range(7)]
    row |= {"votes": [label], "label": label, "visits": visits, "simulations": 30, "move": label}
    return row | {"value": 0.0, "outcome": 0}


# What sets mean -------------------------------------------------------------------------------------------------------

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
    stratum = next(one for one in [*all_strata(), *heldout_strata()] if one.name == name)
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


# Reading --------------------------------------------------------------------------------------------------------------


def test_a_half_or_some_sets_can_be_asked_for(shipped: GradedBoards) -> None:
    some = benchmark.read(half="dev", sets=["zugzwang", "end-easy"])
    assert some.sets == ["end-easy", "zugzwang"]
    assert set(some.half.tolist()) == {"dev"}
    assert len(some) == 750
    assert some.scores.shape == (750, 7)


@pytest.mark.parametrize(("content", "problem"), [(None, "no such file"), (b"PAR1", "not a readable Parquet file")])
def test_an_unusable_file_is_named_in_one_line(tmp_path: Path, content: bytes | None, problem: str) -> None:
    if content is not None:
        (tmp_path / benchmark.FILES[0]).write_bytes(content)
    with pytest.raises(DataError, match=problem) as caught:
        benchmark.read(tmp_path)
    assert str(tmp_path / benchmark.FILES[0]) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_set_that_is_not_there_is_named() -> None:
    with pytest.raises(DataError, match="no set opening; there are midgame"):
        benchmark.read(sets=["opening"])


# Making ---------------------------------------------------------------------------------------------------------------


Pool = tuple[NDArray[np.uint64], NDArray[np.uint64]]


@pytest.fixture(scope="module")
def pool() -> Pool:
    return maker.mixed_play(games=60, seed=4)


def test_mixed_play_gives_unlike_canonical_boards(pool: Pool) -> None:
    current, mask = pool
    assert len(np.unique(np.stack([current, mask], 1), axis=0)) == len(mask) > 500
    assert not canonicalise(current, mask)[2].any()
    assert np.bitwise_count(mask).max() > 25
    again = maker.mixed_play(games=60, seed=4)
    assert (again[0] == current).all()
    assert (again[1] == mask).all()


def late(current: NDArray[np.uint64], mask: NDArray[np.uint64]) -> NDArray[np.bool_]:
    return np.asarray(np.bitwise_count(mask) >= 20)


def test_boards_are_taken_once_and_in_the_numbers_asked_for(pool: Pool) -> None:
    pytest.importorskip("bitbully", reason="the solver is an optional extra")

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
    boards = maker.choose(*pool, strata, advance=done.append)
    assert sum(done) == len(boards) == 55
    assert {name: int((boards.set == name).sum()) for name in boards.sets} == {"lost": 24, "held": 31}
    assert (boards.half == "dev").sum() == 28
    assert len({*zip(boards.current.tolist(), boards.mask.tolist(), strict=True)}) == 55
    assert ((best_scores(boards.scores) < 0) == (boards.set == "lost")).all()
    with pytest.raises(UserError, match=r"set lost: \d+ boards short"):
        maker.choose(*pool, [Stratum(name="lost", size=100_000, seen=late, graded=lost)])


def test_each_set_begins_to_read_at_its_own_place(pool: Pool) -> None:
    """So that a first, large set does not leave the others without the kinds of boards it takes."""
    pytest.importorskip("bitbully", reason="the solver is an optional extra")

    def any_board(current: NDArray[np.uint64], mask: NDArray[np.uint64], scores: NDArray[np.int8]) -> NDArray[np.bool_]:
        return np.ones(len(mask), np.bool_)

    boards = maker.choose(*pool, [Stratum(name=name, size=20, seen=late, graded=any_board) for name in ("one", "two")])
    place = {pair: index for index, pair in enumerate(zip(pool[0].tolist(), pool[1].tolist(), strict=True))}
    candidates = np.flatnonzero(late(*pool))
    half = np.searchsorted(candidates, len(pool[0]) // 2)
    for name, first in (("one", 0), ("two", half)):
        taken = boards[boards.set == name]
        found = sorted(place[pair] for pair in zip(taken.current.tolist(), taken.mask.tolist(), strict=True))
        assert found == candidates[first : first + 20].tolist()


def test_a_network_joins_the_play_where_one_is_named() -> None:
    styles = (("random", 0.0), ("punisher", 0.0))
    one_more = maker.mixed_play(games=20, seed=4, styles=(*styles, ("uct:5", 0.0)))
    assert one_more[0].tolist() != maker.mixed_play(games=20, seed=4, styles=styles)[0].tolist()
    arguments = ["--out", "nowhere", "--network", "no/such/folder", "--games", "10", "--workers", "1"]
    assert maker.main(arguments) == 2


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


def test_the_file_holds_what_was_made(tmp_path: Path, shipped: GradedBoards) -> None:
    some = shipped[np.arange(0, len(shipped), 1000)]
    schema.write_table(
        tmp_path / benchmark.FILES[0], benchmark.to_table(some), {"schema_version": schema.SCHEMA_VERSION}
    )
    read = benchmark.read(tmp_path)
    for name, values in vars(some).items():
        assert (vars(read)[name] == values).all(), name
        assert vars(read)[name].dtype.kind == values.dtype.kind
