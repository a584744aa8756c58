"""A labeller that searches on an accelerator: a network guides thousands of searches at once (`mcts/device.py`).

Yours is a module of one object, here `my_labels.py`:

    from distill.mcts.settings import PuctSettings
    from distill.networks.device_labeller import DeviceLabeller

    SETTINGS = PuctSettings(simulations=200, exploration=1, discount=0.98, noise_fraction=0)
    label = DeviceLabeller("pillar", SETTINGS)

    KERAS_BACKEND=jax python -m distill.generate --labeller my_labels:label --workers 1 --shard-games 4096 --games 20000

The run's identity has the hashes of your module, of the network's file and of the code of its own layers, and of the
source of the game, the searches and the networks. On a GPU the last digits of an evaluation may differ from run to run,
and so may labels.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError, sources
from distill.game import encoding
from distill.game.rules import COLUMNS
from distill.mcts.labeller import Labels
from distill.mcts.settings import PuctSettings
from distill.networks import copies, finding, heads, saved

if TYPE_CHECKING:
    from distill.mcts.device import Evaluate


def evaluates(played: keras.Model) -> Evaluate:
    """How JAX evaluates positions with a network as it is played (`heads.played`), for `DeviceSearch`.

    The weights that it takes are two lists: of the network's trainable and of its other variables.
    """

    def evaluate(weights: Any, current: Any, mask: Any) -> tuple[Any, Any]:
        outputs, _ = played.stateless_call(*weights, encoding.boards_of_bits(current, mask), training=False)
        return outputs["logits"], outputs["value"]

    return evaluate


@dataclass(eq=False)
class DeviceLabeller:
    """Labels positions by one search each; it loads the network when it is first called.

    Attributes:
      network: name or path, as commands take it.
      settings: of the search, which is PUCT with MCTS-Solver; its noise comes from the seeds.
      lanes: positions searched at once; more are faster, and take memory.
      precision: of the network's arithmetic.
    """

    network: str | Path
    settings: PuctSettings
    _: KW_ONLY
    lanes: int = 4096
    precision: networks.Precision = "bfloat16"

    @property
    def source_files(self) -> list[Path]:
        """The files on which labels depend, whose hashes are part of a run's identity (`common/plugins.py`)."""
        file = finding.network_file(self.network)
        layers = saved.load_core(file)._flatten_layers() if finding.has_own_layers(file) else []
        code = {path for path in map(sources.file_of, layers) if not sources.is_library(str(path))}
        return [*sources.of_packages("game", "mcts", "networks"), file, *sorted(code)]

    def __call__(self, boards: NDArray[np.int8], seeds: NDArray[np.uint64]) -> Labels:
        """Label B positions, as `Labeller`."""
        import jax

        search, weights = self._search
        current, mask = encoding.bitboards(boards)
        noise = np.ones((len(boards), COLUMNS))
        if self.settings.noise_fraction:
            draws = (np.random.default_rng(seed) for seed in seeds)
            noise = np.stack([draw.standard_gamma(self.settings.dirichlet_alpha, COLUMNS) for draw in draws])
        parts = []
        for start in range(0, len(boards), self.lanes):
            # Copies of the last board fill the lanes; their results are dropped.
            rows = np.minimum(np.arange(start, start + self.lanes), len(boards) - 1)
            with jax.enable_x64(True):
                labels = search(current[rows], mask[rows], weights, None, noise[rows], self.settings.noise_fraction)
            arrays = map(np.asarray, (labels.visits, labels.value, labels.label))
            parts.append([array[: len(boards) - start, 0] for array in arrays])
        visits, value, label = map(np.concatenate, zip(*parts, strict=True))
        return Labels(visits=visits, value=value, label=label)

    @cached_property
    def _search(self) -> tuple[Any, Any]:
        """The compiled search and the weights on the device."""
        networks.start_backend()
        if keras.backend.backend() != "jax":
            raise UserError("a search on a device needs Keras on JAX: set KERAS_BACKEND=jax in the environment")
        import jax

        from distill.mcts.device import DeviceSearch

        core = saved.load_core(finding.network_file(self.network))
        heads.require_value(core, str(self.network))
        played = heads.played(copies.copy(core, self.precision))
        variables = played.trainable_variables, played.non_trainable_variables
        weights = tuple([variable.value for variable in part] for part in variables)
        search = DeviceSearch(evaluate=evaluates(played), settings=self.settings, lanes=self.lanes)
        return jax.jit(search), weights
