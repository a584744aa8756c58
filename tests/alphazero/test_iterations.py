"""The iterations of a run (`alphazero/iterations.py`). Properties:

- iterations by a clock fill the minutes, whatever the speed of the machine; an interrupted one has the time left to it;
- searches grow by the stages, the learning rate rises and falls, the first games are the teacher's, the last iteration
  only learns; with counts, nothing of this depends on the number of iterations;
- the record of a finished run is read as counts; a file that is none, and a run with other settings, is refused;
- only a run on a device depends on the version of what is computed there.
"""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from distill.alphazero import iterations, run_files, workers
from distill.alphazero.iterations import End
from distill.alphazero.presets import PRESETS
from distill.alphazero.settings import SelfPlayConfig
from distill.common import UserError, cli, run_folder
from distill.common.settings import build
from distill.mcts import puct
from distill.training import identity

HOUR: dict[str, Any] = {**PRESETS["hour"].values, "precision": "float32"}
CHAMPION = Path("champion")


def hour(**changes: Any) -> SelfPlayConfig:
    return build(SelfPlayConfig, HOUR | changes)


@pytest.fixture(autouse=True)
def network(monkeypatch):
    """A player whose network is no file, so that only its settings show."""
    monkeypatch.setattr(workers, "network_player", lambda settings, _: SimpleNamespace(settings=settings))


def one_of(config: SelfPlayConfig, number: int, count: int, end: End) -> SimpleNamespace:
    """What an iteration is: who plays, its search, and how fast it learns."""
    share = iterations.share_gone(config, number, count)
    return SimpleNamespace(
        player=workers.player_of(config, number, share, CHAMPION) if end.plays else None,
        search=config.search_at(share),
        learning_rate=iterations.learning_rate(config, number, share),
    )


@pytest.mark.parametrize("minutes", [3, 6, 20, 60, 480])
@pytest.mark.parametrize(("step", "shard", "saving"), [(0.1, 1, 2), (0.5, 8, 6), (1, 0.2, 9)])
def test_iterations_by_the_clock_fill_the_minutes(minutes, step, shard, saving):
    """Seconds of a step, of a shard of games, and of saving and grading; half of the time twice as long."""
    time, earlier, config = [100.0], dict[str, float](), hour(minutes=minutes)
    of = iterations.count_of(config)
    for number in range(1, of + 1):
        began, slower = time[0], 1 + number % 2
        end = iterations.end_of(config, number, of, earlier, began, lambda: time[0])
        while number == 1 and end.seconds_left():
            time[0] += shard * slower
        while number > 1 and not end.is_over():
            time[0] += step * slower
        time[0] += saving * slower
        gone = earlier.get("minutes", 0.0) + (time[0] - began) / 60
        earlier = {"minutes": gone, "saving_seconds": saving * slower}
    assert earlier["minutes"] == pytest.approx(minutes, rel=0.05)


def iterations_of(config: SelfPlayConfig) -> list[Any]:
    """The iterations of a run by the clock."""
    of = iterations.count_of(config)
    ends = [iterations.end_of(config, number, of, {}, 0, lambda: 0) for number in range(1, of + 1)]
    return [one_of(config, number, of, end) for number, end in enumerate(ends, 1)]


def test_searches_and_learning_rates_follow_the_share_of_the_time():
    config, of = hour(), 21
    run = iterations_of(config)
    assert len(run) == of
    assert [isinstance(one.player, workers.ShardPlayer) for one in run] == [True] * 2 + [False] * 19
    assert run[-1].player is None
    searches = [(one.player.settings.search.root, one.player.settings.search.simulations) for one in run[2:-1]]
    assert searches == [("gumbel", 16)] * 5 + [("puct", 64)] * 13
    rates = [one.learning_rate / config.learning.lr for one in run]
    assert rates[0] == 0
    assert rates[1] == pytest.approx(0.5, abs=0.01)
    assert rates[2:] == sorted(rates[2:], reverse=True)
    assert 0 < rates[-1] < 0.002
    assert len({one.player.settings.seed for one in run[:-1]}) == of - 1


def test_on_a_device_every_iteration_learns():
    run = iterations_of(hour(device_lanes=16))
    assert len(run) == 41
    assert all(one.learning_rate > 0 for one in run)
    assert [one.search.simulations for one in run] == [16] * 12 + [64] * 29


def test_iterations_by_numbers_do_not_depend_on_how_many_there_are():
    config = build(SelfPlayConfig, PRESETS["connect-4-ai-2"].values)
    for number, noise, rate in ((1, 0.5, 0.2), (100, 0.5, 0.02), (101, 0.25, 0.02), (150, 0.25, 0.002)):
        for of in (200, 2000):
            one = one_of(config, number, of, End(games=16))
            assert (one.player.settings.search.noise_fraction, one.learning_rate) == (noise, rate)


def test_the_record_of_a_run_with_the_same_settings_is_read_as_counts(tmp_path):
    file, counts = tmp_path / "_run.json", [{"games": 64, "steps": 0}, {"games": 0, "steps": 7}]
    file.write_text(json.dumps({"identity": {"seed": 1, "schedule.minutes": 60.0}, "result": {"counts": counts}}))
    same = {"seed": 1, "schedule.minutes": None, "repeat": "its hash"}
    assert iterations.recorded(file, same) == [End(games=64, steps=0), End(games=0, steps=7, plays=False)]
    with pytest.raises(UserError, match=r"_run\.json: of a run with other settings \(seed 1 there, 2 here\)"):
        iterations.recorded(file, same | {"seed": 2})
    for content in ("{", "[]", '{"result": null}', '{"result": {"iterations": 3}}', None):
        file.unlink() if content is None else file.write_text(content)
        with pytest.raises(UserError, match=r"_run\.json: not the record of a finished run with --minutes"):
            iterations.recorded(file, same)


@pytest.mark.parametrize("lanes", [0, 16])
def test_only_a_run_on_a_device_depends_on_the_version_of_its_games(tmp_path, lanes):
    with run_files.opened(tmp_path, hour(device_lanes=lanes)) as folder:
        assert folder.ours.identity.get("device_version") == (run_files.DEVICE_VERSION if lanes else None)


@pytest.mark.parametrize("preset", ["hour", "night"])
def test_the_records_that_ship_can_be_repeated(preset):
    """By the preset that made them, in the precision of their processors."""
    record = run_folder.finished(Path("models/long") / preset, run_files.KIND)
    precision = record.settings["machine"]["precision"]
    config = cli.parse(SelfPlayConfig, ["--preset", preset, "--set", f"precision={precision}"], PRESETS)
    expected = identity.identity(config, run_files.FREE, puct_version=puct.PUCT_VERSION)
    ends = iterations.recorded(Path("models/long") / preset / run_folder.RECORD, expected)
    assert len(ends) == iterations.count_of(config)
    assert not ends[-1].plays
