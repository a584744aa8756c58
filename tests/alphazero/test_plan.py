"""Plans of unattended runs (`alphazero/plan.py`). Properties:

- a plan fills the minutes it is for, at the speeds measured: learning takes what is planned, playing no longer;
- its searches grow by the stages, its first games are the teacher's, its last iteration only learns;
- a stored plan is read back the same, and a file that is none is named;
- presets calculate in bfloat16 on processors that have it, and on no others.
"""

from typing import Any

import pytest

from distill.alphazero import plan, schedule
from distill.alphazero.presets import PRESETS, REINFORCE_PRESETS
from distill.alphazero.settings import ReinforceConfig, SelfPlayConfig
from distill.common import UserError, cli
from distill.networks import precision as precision_module

HOUR: dict[str, Any] = {**PRESETS["hour"].values, "precision": "float32"}


def made(minutes: float, **changes: Any) -> plan.Plan:
    """A plan at speeds such as two cores of 2026 have."""
    return plan.planned(SelfPlayConfig(**HOUR | changes | {"minutes": minutes}), 1, 200.0, 12_000.0, 10.0)


@pytest.mark.parametrize("minutes", [6, 20, 60, 480])
def test_a_plan_fills_its_minutes(minutes):
    found = made(minutes)
    learning = found.steps / 10
    assert 0.8 * 60 * minutes < learning < 60 * minutes
    rows = plan.rows_per_game(SelfPlayConfig(**HOUR))
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
    last = schedule.Schedule(config=SelfPlayConfig(**HOUR), plan=found).iteration(20).settings
    assert (last.root, last.simulations, last.noise_fraction) == ("puct", 100, 0.0)
    assert [step.games > 0 for step in found.iterations] == [True] * 19 + [False]
    assert made(480).steps > 7 * found.steps


def test_a_plan_is_read_as_it_was_stored(tmp_path):
    found = made(6)
    plan.write(tmp_path / "plan.json", found)
    assert plan.read(tmp_path / "plan.json") == found
    assert f"{found.steps:,} steps" in plan.line(found)
    with pytest.raises(UserError, match=r"other\.json: no such file"):
        plan.read(tmp_path / "other.json")
    (tmp_path / "config.json").write_text('{"minutes": 6}')
    with pytest.raises(UserError, match=r"config\.json: not a plan"):
        plan.read(tmp_path / "config.json")


@pytest.mark.parametrize(
    ("flags", "precision"), [("fpu avx2 avx512f", "float32"), ("fpu avx512_bf16", "bfloat16"), (None, "float32")]
)
def test_a_preset_calculates_as_the_processor_does_it_quickly(tmp_path, monkeypatch, flags, precision):
    """On processors without bfloat16 a step in it takes fourteen times as long."""
    if flags:
        (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    monkeypatch.setattr(precision_module, "PROCESSOR", tmp_path / "cpuinfo")
    for preset in ("hour", "night"):
        assert cli.parse(SelfPlayConfig, ["--preset", preset], PRESETS).precision == precision
    assert cli.parse(ReinforceConfig, ["--preset", "steady"], REINFORCE_PRESETS).precision == precision
    assert cli.parse(SelfPlayConfig, ["--preset", "hour", "--precision", "bfloat16"], PRESETS).precision == "bfloat16"
