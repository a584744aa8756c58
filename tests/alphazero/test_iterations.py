"""The iterations of a run (`alphazero/iterations.py`). Properties:

- iterations by a clock fill the minutes, whatever the speed of the machine and however long saving takes;
- an interrupted iteration has the time that is left to it;
- searches grow by the stages, the learning rate rises and falls, the first games are the teacher's, the last iteration
  only learns; with counts, nothing of this depends on the number of iterations;
- the record of a finished run is read as counts; a file that is none, and a run with other settings, is refused;
- presets calculate in bfloat16 on processors that have it, and on no others.
"""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from distill import reinforce
from distill.alphazero import games, iterations
from distill.alphazero.iterations import End
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, cli
from distill.common.settings import build
from distill.networks import backend

HOUR: dict[str, Any] = {**PRESETS["hour"].values, "precision": "float32"}


def hour(**changes: Any) -> SelfPlayConfig:
    return build(SelfPlayConfig, HOUR | changes)


class Player:
    """A player whose network is no file."""

    def __init__(self, settings: SelfPlayConfig, _: Path) -> None:
        self.settings = settings


@pytest.fixture
def iteration(monkeypatch):
    """The iteration of a run that ends by the clock, without a network."""
    monkeypatch.setattr(games, "network_player", Player)

    def made(config: SelfPlayConfig, number: int) -> iterations.Iteration:
        of = iterations.number_of(config)
        end = iterations.by_clock(config, number, of, 0, 0, lambda: 0, 0)
        return iterations.iteration(config, number, of, end, Path("champion"))

    return made


@pytest.mark.parametrize("minutes", [3, 6, 20, 60, 480])
@pytest.mark.parametrize(("step", "shard", "saving"), [(0.1, 1, 2), (0.5, 8, 6), (1, 0.2, 9)])
def test_iterations_by_the_clock_fill_the_minutes(minutes, step, shard, saving):
    """Seconds of a step, of a shard of games, and of saving and grading; half of the time twice as long."""
    time, gone, saved, config = [100.0], 0.0, 0.0, hour(minutes=minutes)
    of = iterations.number_of(config)
    for number in range(1, of + 1):
        began, slower = time[0], 1 + number % 2
        end = iterations.by_clock(config, number, of, gone, saved, lambda: time[0], began)
        while number == 1 and end.seconds_left():
            time[0] += shard * slower
        while number > 1 and not end.is_over():
            time[0] += step * slower
        time[0] += saving * slower
        gone, saved = gone + (time[0] - began) / 60, saving * slower
    assert gone == pytest.approx(minutes, rel=0.05)


def test_an_iteration_ends_when_its_share_of_the_time_is_over():
    config, looks = hour(minutes=60), itertools.count(1000.0, 100)
    first, later = (
        iterations.by_clock(config, number, 21, gone, 3, lambda: next(looks), 1000)
        for number, gone in ((1, 0), (2, 40))
    )
    assert (first.at, later.at) == (1000 + 0.04 * 3600 - 3, 1000 + 60 - 3)
    assert [later.seconds_left(), later.is_over()] == [57, True]
    assert later.seconds_since() == 1200 - 1057
    assert [(end.games, end.plays) for end in (first, later)] == [(64, True), (0, True)]
    assert not iterations.by_clock(config, 21, 21, 57, 0, lambda: 0, 0).plays


def test_searches_and_learning_rates_follow_the_share_of_the_time(iteration):
    config, of = hour(), 21
    assert iterations.number_of(config) == of
    run = [iteration(config, number) for number in range(1, of + 1)]
    assert [type(each.player) for each in run] == [games.Teacher] * 2 + [Player] * 18 + [type(None)]
    searches = [(each.player.settings.search.root, each.player.settings.search.simulations) for each in run[2:-1]]
    assert searches == [("gumbel", 16)] * 5 + [("puct", 64)] * 13
    rates = [each.learning_rate / config.learning.lr for each in run]
    assert rates[0] == 0
    assert rates[1] == pytest.approx(0.5, abs=0.01)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert 0 < rates[-1] < 0.002
    assert [len(each.learns_from) for each in run] == [*range(of)]
    seeds = {each.player.settings.seed for each in run if each.player}
    assert len(seeds) == of - 1


def test_iterations_by_numbers_do_not_depend_on_how_many_there_are(monkeypatch):
    monkeypatch.setattr(games, "network_player", Player)
    config = build(SelfPlayConfig, PRESETS["connect-4-ai-2"].values)
    for number, noise, rate in ((1, 0.5, 0.2), (100, 0.5, 0.02), (101, 0.25, 0.02), (150, 0.25, 0.002)):
        for of in (200, 2000):
            found = iterations.iteration(config, number, of, End(games=16), Path("champion"))
            assert (found.player.settings.search.noise_fraction, found.learning_rate) == (noise, rate)
            assert found.learns_from == range(1, number + 1)


def test_the_record_of_a_run_with_the_same_settings_is_read_as_counts(tmp_path):
    file, counts = tmp_path / "_run.json", [{"games": 64, "steps": 0}, {"games": 0, "steps": 7}]
    stored = {"identity": {"seed": 1, "schedule.minutes": 60.0, "old": 3}, "result": {"replay": counts}}
    file.write_text(json.dumps(stored))
    same = {"seed": 1, "schedule.minutes": None, "new": 4}
    assert iterations.recorded(file, same) == [End(games=64, steps=0), End(games=0, steps=7, plays=False)]
    with pytest.raises(UserError, match=r"_run\.json: of a run with other settings \(seed 1 there, 2 here\)"):
        iterations.recorded(file, same | {"seed": 2})
    with pytest.raises(UserError, match=r"other\.json: no such file; name the _run\.json of a finished run"):
        iterations.recorded(tmp_path / "other.json", same)
    for content in ("{", "[]", '{"result": null}', '{"result": {"iterations": 3}}', '{"result": {"replay": [{}]}}'):
        file.write_text(content)
        with pytest.raises(UserError, match=r"_run\.json: not the record of a finished run with --minutes"):
            iterations.recorded(file, same)


@pytest.mark.parametrize(
    ("flags", "precision"), [("fpu avx2 avx512f", "float32"), ("fpu avx512_bf16", "bfloat16"), (None, "float32")]
)
def test_a_preset_calculates_as_the_processor_does_it_quickly(tmp_path, monkeypatch, flags, precision):
    """On processors without bfloat16 a step in it takes fourteen times as long."""
    if flags:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(backend, "PROCESSOR", tmp_path / "cpuinfo")
    for preset in ("hour", "night"):
        assert cli.parse(SelfPlayConfig, ["--preset", preset], PRESETS).machine.precision == precision
    assert cli.parse(reinforce.ReinforceConfig, ["--preset", "steady"], reinforce.PRESETS).precision == precision
    words = ["--preset", "hour", "--set", "precision=bfloat16"]
    assert cli.parse(SelfPlayConfig, words, PRESETS).machine.precision == "bfloat16"
