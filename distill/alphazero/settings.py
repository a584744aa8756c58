"""The settings of self-play: what the games depend on, and how the network learns from them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar, Literal, Self

from pydantic import Field, model_validator

from distill import networks
from distill.common.settings import CommandLine, NameOrPath, Settings, Values, build
from distill.games.settings import SelfPlaySettings
from distill.mcts.settings import MOST_PUCT_SIMULATIONS, MOST_SIMULATIONS, PuctSettings
from distill.players import match
from distill.training.identity import AUTO
from distill.training.recipe import Optimization, Recipe


class Stage(Settings):
    """The searches from a share of the minutes on."""

    start: float = Field(ge=0, le=1)
    root: Literal["puct", "gumbel"]
    simulations: int = Field(ge=1, le=MOST_PUCT_SIMULATIONS)
    noise_fraction: float = Field(ge=0, le=1)


class LearningRate(Settings):
    """The learning rate from an iteration on."""

    start: int = Field(ge=1)
    lr: float = Field(gt=0)


class LearningSettings(Optimization):
    """How the network learns from the games; the average of its weights also plays."""

    lr: float = Field(1e-3, gt=0)
    """learning rate; with --minutes the highest one"""
    lr_schedule: tuple[LearningRate, ...] = ()
    """learning rates from an iteration on, which replace lr"""
    epochs: int = Field(1, ge=1)
    """epochs over the boards drawn; without --minutes"""
    value_target: Literal["value", "outcome", "blend"] = "blend"
    """target of the value head, as for train"""
    value_weight: float = Field(1.0, ge=0)
    """weight of the value's squared error; the policy's cross-entropy has 1"""
    count_weights: Literal["equal", "root", "count"] = "root"
    """loss weight of a board that occurs n times: 1, the square root of n, or n"""


class ReplaySettings(Settings):
    """Which games the network learns from."""

    rows: int | None = Field(200_000, ge=1)
    """latest rows to learn from; `none`: no limit"""
    share: float | None = Field(None, gt=0, le=1)
    """at least this share of the rows that networks have played so far"""
    games: int | None = Field(None, ge=1)
    """latest games to learn from; default: no limit"""
    boards: int | None = Field(40_960, ge=1)
    """boards drawn from these per iteration; `none`: all"""


class ArenaSettings(Settings):
    """When a candidate becomes champion, and how the networks are graded."""

    gate: float | None = Field(0.55, gt=0, lt=1)
    """arena score at which the candidate becomes champion; `none`: it always does"""
    games: int = Field(100, ge=2, multiple_of=2)
    """arena games; each opening is played from both sides"""
    plies: int = Field(4, ge=0, le=20)
    """random moves of an arena opening"""
    eval_boards: int = Field(1000, ge=1)
    """benchmark boards of each set graded per iteration, dev half"""


class ScheduleSettings(Settings):
    """How long the run is, by numbers or by the clock, and how its searches change."""

    games: int = Field(400, ge=1)
    """games per iteration; with --games-only, in all"""
    iterations: int = Field(10_000, ge=1)
    """iterations of self-play, training and arena"""
    minutes: float | None = Field(None, gt=0)
    """length of the run, in place of --games and --iterations; workers play meanwhile"""
    repeat: Path | None = Field(None, title="FILE")
    """_run.json of a run with --minutes, whose games and steps are repeated"""
    teacher_share: float = Field(0.0, ge=0, lt=1)
    """share of the minutes for the first of two iterations in which the teacher plays; 0: it plays none"""
    teacher_simulations: int = Field(1000, ge=1, le=MOST_SIMULATIONS)
    """simulations of the teacher's searches, one search per position"""
    stages: tuple[Stage, ...] = ()
    """searches from a share of the minutes on; default: search.root"""
    double_noise_iterations: int = Field(0, ge=0)
    """first iterations with twice the root noise"""


class MachineSettings(Settings):
    """How the machine is used."""

    workers: int | None = Field(None, ge=1)
    """worker processes; default: one per core with --games-only, one fewer with --minutes, else 0"""
    cluster: str | None = Field(None, title="URL")
    """Dask scheduler whose workers play: tcp://head:8786"""
    precision: networks.Precision = "float32"
    """arithmetic of the network, in self-play and training"""
    lanes: int = Field(512, ge=1)
    """games that a worker plays side by side, in whole shards; no influence on the games"""
    device_lanes: int | None = Field(None, ge=0)
    """games in lock step where an accelerator plays, too (JAX, with --minutes); 0: workers play; default: 32,768"""
    log: Literal["none", "tensorboard"] = "none"
    """also write the history for TensorBoard, into the folder tensorboard of the run"""


ON_DEVICE: Values = {
    "search.temperature": 1.0,
    "learning.value_target": "blend",
    "learning.count_weights": "count",
    "replay.boards": None,
    "replay.games": None,
    "schedule.teacher_share": 0.0,
    "schedule.double_noise_iterations": 0,
}
"""What holds on a device, where nothing else can be set (`alphazero/device_games.py`)."""


SEARCH = PuctSettings(simulations=32, root="gumbel")


class SelfPlayConfig(SelfPlaySettings):
    """Let a network play against itself and learn from it."""

    command_line: ClassVar[CommandLine] = CommandLine(
        flags=(
            *("arch", "init", "out", "restart", "seed", "games_only"),
            *("schedule.games", "schedule.iterations", "schedule.minutes", "schedule.repeat"),
            *("search.simulations", "learning.lr", "machine.workers", "machine.cluster", "machine.log"),
        ),
        examples=("--preset hour", "--init pillar --set search.exploration=2"),
        page="docs/selfplay.md",
    )
    search: PuctSettings = SEARCH
    arch: networks.Architecture = Field(
        networks.Architecture(name=AUTO),
        title="NETWORK",
        description=f"{networks.ARCH_HELP}; auto: pillar-plain, or --init's",
    )
    init: NameOrPath | None = Field(None, title="NETWORK")
    """network to start from: a run's folder, a .keras file or a name; default: --arch"""
    out: Path | None = None
    """folder of the run; default: models/selfplay, or data/selfplay with --games-only"""
    restart: bool = False
    """delete the run in the folder and start from scratch"""
    games_only: bool = False
    """only play games with the network of --init"""
    learning: LearningSettings = LearningSettings()
    replay: ReplaySettings = ReplaySettings()
    arena: ArenaSettings = ArenaSettings()
    schedule: ScheduleSettings = ScheduleSettings()
    machine: MachineSettings = MachineSettings()

    @model_validator(mode="after")
    def _fit_together(self) -> Self:
        if not (self.init or self.arch.name == AUTO or networks.is_arch(self.arch.name)):
            raise ValueError(f"--arch {self.arch.name} must be {networks.ARCH_RULE}")
        if self.arena.gate is not None and not self.games_only:
            match.openings(self.arena.games // 2, self.arena.plies, 0)
        if self.games_only and self.init is None:
            raise ValueError("--games-only needs --init, the network that plays")
        if self.games_only and self.is_timed:
            raise ValueError("--games-only plays --games games; it takes no --minutes, --repeat or preset with minutes")
        if not self.is_timed and (self.schedule.stages or self.schedule.teacher_share):
            raise ValueError("stages and teacher_share need --minutes")
        if not self.games_only and self.leaves == "playout" and self.arena.gate is not None:
            raise ValueError("leaves by playout need gate none: the arena evaluates them by the value head")
        if self.machine.device_lanes and not self.fits_device:
            raise ValueError("device_lanes needs --minutes, mcts_solver, a rule with priors, and leaves by value")
        return self

    @property
    def fits_device(self) -> bool:
        """Whether an accelerator can play these games (`alphazero/on_device.py`)."""
        search = self.search.mcts_solver and self.search.rule != "printed" and self.leaves == "value"
        return search and self.schedule.minutes is not None and self.schedule.repeat is None

    @property
    def is_timed(self) -> bool:
        """Whether this run, or the run that it repeats, is limited by a clock: then the network learns meanwhile."""
        return self.schedule.minutes is not None or self.schedule.repeat is not None

    @property
    def unread(self) -> list[str]:
        """Changed settings of the search that nothing reads, because a stage sets them from the start."""
        other = {"start"} if self.arena.gate is None else {"start", "root", "simulations"}  # the arena reads these two
        staged = [] if self.search_at(0) is self.search else [name for name in Stage.model_fields if name not in other]
        return [name for name in staged if getattr(self.search, name) != getattr(SEARCH, name)]

    def recipe(self) -> Recipe:
        """How the learner trains."""
        shared = {name: value for name, value in self.learning if name != "lr_schedule"}
        return build(Recipe, shared, {"precision": self.machine.precision, "seed": self.seed})

    def search_at(self, share: float) -> PuctSettings:
        """How positions are searched after this share of the minutes."""
        begun = [stage for stage in self.schedule.stages if stage.start <= share]
        if not begun:
            return self.search
        latest = max(begun, key=lambda stage: stage.start)
        return self.search.replace(**{name: value for name, value in latest if name != "start"})
