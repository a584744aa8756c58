"""Plans of unattended runs (`alphazero/plan.py`). Properties:

- a plan fills the minutes it is for, at the speeds measured: learning takes what is planned, playing no longer;
- its searches grow by the stages, its first games are the teacher's, its last iteration only learns;
- planned again before each iteration, a run takes its minutes within 10 %, also where this machine is half or one and a
  half times as fast as measured and every iteration costs seconds beside; a settled plan stays as it is;
- a stored plan is read back the same, and a file that is none is named;
- presets calculate in bfloat16 on processors that have it, and on no others.
"""

import json
from typing import Any

import pytest

from distill.alphazero import plan, schedule
from distill.alphazero.presets import PRESETS, REINFORCE_PRESETS
from distill.alphazero.settings import ReinforceConfig, SelfPlayConfig
from distill.common import UserError, cli
from distill.common.settings import build
from distill.networks import precision as precision_module

HOUR: dict[str, Any] = {**PRESETS["hour"].values, "precision": "float32"}


ROWS = plan.rows_per_game(build(SelfPlayConfig, HOUR))


def made(minutes: float, **changes: Any) -> plan.Plan:
    """A plan at speeds such as two cores of 2026 have."""
    return plan.planned(build(SelfPlayConfig, HOUR | changes | {"minutes": minutes}), 1, 200.0, 12_000.0, 10.0)


@pytest.mark.parametrize("minutes", [6, 20, 60, 480])
def test_a_plan_fills_its_minutes(minutes):
    found = made(minutes)
    learning = found.steps / 10
    assert 0.8 * 60 * minutes < learning < 60 * minutes
    rows = plan.rows_per_game(build(SelfPlayConfig, HOUR))
    for step in found.iterations[1:-1]:
        playing = step.games * rows * step.simulations / (12_000 * plan.speed_of(step.root, step.simulations))
        assert playing == pytest.approx(step.steps / 10, rel=0.35)  # games come in whole shards
        assert step.games % HOUR["shard_games"] == 0
    assert found.teacher_games / (2 * 200) < 0.06 * 60 * minutes


def test_its_searches_grow_and_its_last_iteration_only_learns():
    gumbel, puct = ({"root": "gumbel", "simulations": 16}, {"root": "puct", "simulations": 100})
    stages = [{"start": 0, "noise_fraction": 0.25, **gumbel}, {"start": 0.5, "noise_fraction": 0.0, **puct}]
    found = made(60, stages=stages)
    searches = [(step.root, step.simulations, step.noise_fraction) for step in found.iterations]
    assert searches == [("gumbel", 16, 0.25)] * 10 + [("puct", 100, 0.0)] * 10
    last = schedule.Schedule(config=build(SelfPlayConfig, HOUR), plan=found).iteration(20).settings.search
    assert (last.root, last.simulations, last.noise_fraction) == ("puct", 100, 0.0)
    assert [step.games > 0 for step in found.iterations] == [True] * 19 + [False]
    assert made(480).steps > 7 * found.steps


@pytest.mark.parametrize("minutes", [3, 6, 20, 60])
@pytest.mark.parametrize(("learning", "playing"), [(1, 1), (0.5, 0.5), (1, 0.5), (0.5, 1), (1.5, 1.5)])
def test_a_run_takes_its_minutes_on_a_machine_of_another_speed(minutes, learning, playing):
    """`learning` and `playing` are real speeds, as shares of those measured. The last iteration learns alone."""
    found, overhead, ends = made(minutes), 8.0, []
    done = 5 + found.teacher_games / 400 / playing  # seconds
    for number in range(1, len(found.iterations) + 1):
        each = found.iterations[number - 1]
        alone = 1.0 if each.games else plan.LAST_SPEED
        learned = overhead + each.steps / (10 * learning * alone)
        rate = 12_000 * plan.speed_of(each.root, each.simulations) / each.simulations / ROWS
        played = each.games / (playing * (200 * plan.SPEED["teacher"] if number == 1 else rate))
        took, waited = max(learned, played), max(0.0, played - learned)
        done += took
        ends.append(done)
        if number < len(found.iterations):
            found = plan.replanned(found, number + 1, done / 60, took, waited, learned - overhead)
    assert done == pytest.approx(60 * minutes, rel=0.1)
    for end in ends[1:-1]:  # the time left, as the run prints it
        assert 60 * minutes - end == pytest.approx(done - end, rel=0.2)
    assert found.settled == len(found.iterations)
    assert plan.replanned(found, 3, 0.0, 1.0, 0.0, 1.0) == found


def test_planning_again_changes_no_learning_rate_of_earlier_iterations():
    before = made(20)
    after = plan.replanned(before, 5, 15.0, 60.0, 0.0, 55.0)
    assert after.iterations[:4] == before.iterations[:4]
    assert after.iterations[4].steps < before.iterations[4].steps
    config = build(SelfPlayConfig, HOUR)
    early = [schedule.Schedule(config=config, plan=each).iteration(3).learning_rate(7) for each in (before, after)]
    assert early[0] == early[1]
    last = schedule.Schedule(config=config, plan=after).iteration(len(after.iterations))
    assert 0 < last.learning_rate(last.steps - 1) < 1e-4 * config.learning.lr


def test_a_plan_is_read_as_it_was_stored(tmp_path):
    found = made(6)
    plan.write(tmp_path / "plan.json", found)
    assert plan.read(tmp_path / "plan.json") == found
    assert f"{found.steps:,} steps" in plan.line(found)
    with pytest.raises(UserError, match=r"other\.json: no such file"):
        plan.read(tmp_path / "other.json")
    whole = json.loads((tmp_path / "plan.json").read_text())
    step = whole["iterations"][0]
    for changed, problem in [
        ({"iterations": []}, "iterations  must have at least 1 item"),
        ({"iterations": None}, "iterations None must be a valid list"),
        ({"minutes": None}, "minutes None must be a valid number"),
        ({"workers": 0}, "workers 0 must be greater than or equal to 1"),
        ({"iterations": [step | {"root": "foo"}]}, "iterations foo must be 'puct' or 'gumbel'"),
        ({"iterations": [step | {"games": 6.5}]}, "iterations 6.5 must be a valid integer"),
        ({"iterations": [step | {"simulations": 0}]}, "iterations 0 must be"),
        ({"iterations": [step | {"colour": 1}]}, "Extra inputs are not permitted"),
    ]:
        (tmp_path / "plan.json").write_text(json.dumps(whole | changed))
        with pytest.raises(UserError, match=rf"plan\.json: not a plan of a run \(.*{problem}"):
            plan.read(tmp_path / "plan.json")
    (tmp_path / "notes.json").write_text('{"minutes": 6}')
    with pytest.raises(UserError, match=r"notes\.json: not a plan"):
        plan.read(tmp_path / "notes.json")


@pytest.mark.parametrize(
    ("flags", "precision"), [("fpu avx2 avx512f", "float32"), ("fpu avx512_bf16", "bfloat16"), (None, "float32")]
)
def test_a_preset_calculates_as_the_processor_does_it_quickly(tmp_path, monkeypatch, flags, precision):
    """On processors without bfloat16 a step in it takes fourteen times as long."""
    if flags:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(precision_module, "PROCESSOR", tmp_path / "cpuinfo")
    for preset in ("hour", "night"):
        assert cli.parse(SelfPlayConfig, ["--preset", preset], PRESETS).machine.precision == precision
    assert cli.parse(ReinforceConfig, ["--preset", "steady"], REINFORCE_PRESETS).precision == precision
    assert (
        cli.parse(SelfPlayConfig, ["--preset", "hour", "--set", "precision=bfloat16"], PRESETS).machine.precision
        == "bfloat16"
    )
