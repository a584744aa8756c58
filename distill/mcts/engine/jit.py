"""How the engine compiles: `jit` for functions that are called, `inline` for helpers compiled into their callers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from distill.mcts.compiling import FOLDER

Function = TypeVar("Function", bound=Callable[..., object])
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]
Float32s: TypeAlias = NDArray[np.float32]
Float64s: TypeAlias = NDArray[np.float64]
int64 = cast(Callable[[Any], int], np.int64)
"""In compiled code an int is an int64; this widens an int32 before arithmetic."""


def jit(function: Function) -> Function:
    """Compile for this processor, without the interpreter lock and without reordering arithmetic."""
    numba.config.CACHE_DIR = FOLDER
    return cast(Function, numba.njit(cache=True, nogil=True, error_model="numpy")(function))


def inline(function: Function) -> Function:
    """Compile into each caller: for what runs once a simulation, and so that loops over lanes still vectorise."""
    return cast(Function, numba.njit(inline="always", error_model="numpy")(function))
