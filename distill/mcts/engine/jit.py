"""How the engine compiles: `jit` for functions that are called, `inline` for helpers compiled into their callers."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias, TypeVar, cast

import numba
import numpy as np
from numpy.typing import NDArray

from distill.mcts.cache import FOLDER

Function = TypeVar("Function", bound=Callable[..., object])
Bools: TypeAlias = NDArray[np.bool_]
Int8s: TypeAlias = NDArray[np.int8]
Int32s: TypeAlias = NDArray[np.int32]
Int64s: TypeAlias = NDArray[np.int64]
UInt64s: TypeAlias = NDArray[np.uint64]
Float32s: TypeAlias = NDArray[np.float32]
Float64s: TypeAlias = NDArray[np.float64]
int64 = cast(Callable[[Any], int], np.int64)
"""In compiled code an int is an int64; this widens an int32 before arithmetic."""


def jit(function: Function) -> Function:
    """Compile for this processor, without the interpreter lock and without reordering arithmetic."""
    with _settings():
        compiled: Any = numba.njit(cache=FOLDER is not None, nogil=True, error_model="numpy")(function)
    if FOLDER is not None:
        _survive_damage(compiled._cache)
    return cast(Function, compiled)


def inline(function: Function) -> Function:
    """Compile into each caller: for what runs once a simulation, and so that loops over lanes still vectorise."""
    return cast(Function, numba.njit(inline="always", error_model="numpy")(function))


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Numba with our cache folder; a user's own code keeps its folder."""
    config: Any = numba.config
    previous = config.CACHE_DIR
    config.CACHE_DIR = FOLDER or previous
    try:
        yield
    finally:
        config.CACHE_DIR = previous


def _survive_damage(cache: Any) -> None:
    """Recompile a function whose cache files are damaged; Numba itself would stop with an unpickling error."""
    load = cache.load_overload

    def load_or_forget(signature: object, context: object) -> object:
        try:
            return load(signature, context)
        except Exception as error:  # whatever unpickling garbage raises
            print(f"distill: compiled code in {cache.cache_path} is damaged ({error!r}); recompiled", file=sys.stderr)
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    cache.load_overload = load_or_forget
