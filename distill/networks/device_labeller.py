"""A labeller that searches on an accelerator: a network guides thousands of searches at once (`mcts/device.py`).

Yours is a module of one object, here `my_labels.py`:

    from distill.mcts.settings import PuctSettings
    from distill.networks.device_labeller import DeviceLabeller

    SETTINGS = PuctSettings(simulations=200, exploration=1, discount=0.98, noise_fraction=0)
    label = DeviceLabeller("pillar", SETTINGS, weights="…")

    KERAS_BACKEND=jax python -m distill.generate --labeller my_labels:label --workers 1 --shard-games 4096 --games 20000

The run's identity has the hash of your module. `weights` puts the network into it: where it does not fit, the error
names the right one. On a GPU the last digits of an evaluation may differ from run to run, and so may labels.
"""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import keras
import numpy as np
from numpy.typing import NDArray

from distill import networks
from distill.common import UserError
from distill.game import encoding
from distill.game.rules import COLUMNS
from distill.mcts.labeller import Labels
from distill.mcts.settings import PuctSettings
from distill.networks import copies, finding, heads, saved
from distill.networks.evaluator import weights_hash

if TYPE_CHECKING:
    from distill.mcts.device import Evaluate


def evaluates(played: keras.Model) -> Evaluate:
    """How JAX evaluates positions with a network as it is played (`heads.played`), for `DeviceSearch`.

    The weights that it takes are two lists: of the network's trainable and of its other variables.
    """
    from distill.mcts import device

    def evaluate(weights: Any, current: Any, mask: Any) -> tuple[Any, Any]:
        outputs, _ = played.stateless_call(*weights, device.boards_of(current, mask), training=False)
        return outputs["logits"], outputs["value"]

    return evaluate


class DeviceLabeller:
    """Labels positions by one search each; it loads the network when it is first called.

    Args:
      network: name or path, as commands take it.
      settings: of the search, which is PUCT with MCTS-Solver; its noise comes from the seeds.
      weights: the first 12 digits of the hash of the network's weights.
      lanes: positions searched at once; more are faster, and take memory.
      precision: of the network's arithmetic.
    """

    def __init__(
        self,
        network: str | Path,
        settings: PuctSettings,
        weights: str,
        *,
        lanes: int = 4096,
        precision: networks.Precision = "bfloat16",
    ) -> None:
        self.network, self.settings, self.weights = network, settings, weights
        self.lanes, self.precision = lanes, precision

    def __call__(self, boards: NDArray[np.int8], seeds: NDArray[np.uint64]) -> Labels:
        """Label B positions, as `Labeller`."""
        import jax

        search, weights = self._search
        current, mask = encoding.bitboards(boards)
        noise = np.ones((len(boards), COLUMNS))
        if self.settings.noise_fraction:
            draws = (np.random.default_rng(seed) for seed in seeds)
            noise = np.stack([draw.standard_gamma(self.settings.dirichlet_alpha, COLUMNS) for draw in draws])
        results: dict[str, list[NDArray[Any]]] = {"visits": [], "label": [], "value": []}
        for start in range(0, len(boards), self.lanes):
            part = slice(start, start + self.lanes)
            # Empty boards fill the lanes; their results are dropped.
            empty = self.lanes - len(mask[part])
            with jax.enable_x64(True):
                labels = search(
                    np.pad(current[part], (0, empty)), np.pad(mask[part], (0, empty)), weights, None,
                    np.pad(noise[part], ((0, empty), (0, 0)), constant_values=1), self.settings.noise_fraction,
                )  # fmt: skip
            for name, parts in results.items():
                parts.append(np.asarray(getattr(labels, name))[: self.lanes - empty, 0])
        return Labels(**{name: np.concatenate(parts) for name, parts in results.items()})

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
        loaded = weights_hash(core)[:12]
        if self.weights != loaded:
            raise UserError(
                f'{self.network}: its weights are "{loaded}", not "{self.weights}"; name them in your module'
            )
        played = heads.played(copies.copy(core, self.precision))
        variables = played.trainable_variables, played.non_trainable_variables
        weights = tuple([variable.value for variable in part] for part in variables)
        search = DeviceSearch(evaluate=evaluates(played), settings=self.settings, lanes=self.lanes)
        return jax.jit(search), weights
