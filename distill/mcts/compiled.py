"""How this room compiles: `jit`, and the few operations that only LLVM can say well. `cache.py` keeps the result."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any, TypeVar, cast

from distill.common import first_line, machine

try:
    import numba
except ValueError as error:  # one of its variables has a value that it refuses
    raise SystemExit(f"distill: Numba does not start: {first_line(error)} ({machine.variables('NUMBA_')})") from None
from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

from distill.mcts.cache import FOLDER

Function = TypeVar("Function", bound=Callable[..., Any])

SLOTS = 8
"""Child slots of a node: seven columns, and one that is never legal, so that a node fills a vector."""


def jit(function: Function) -> Function:
    """Compile for this processor, without the interpreter lock and without reordering arithmetic."""
    with _settings():
        compiled: Any = numba.njit(cache=FOLDER is not None, nogil=True, error_model="numpy")(function)
    if FOLDER is not None:
        _mend(compiled._cache)
    return cast(Function, compiled)


@contextlib.contextmanager
def _settings() -> Iterator[None]:
    """Numba with our cache, and compiling also where NUMBA_DISABLE_JIT is set: the searches exist as compiled code."""
    config: Any = numba.config
    previous = config.CACHE_DIR, config.DISABLE_JIT
    config.CACHE_DIR, config.DISABLE_JIT = FOLDER or config.CACHE_DIR, 0
    try:
        yield
    finally:
        config.CACHE_DIR, config.DISABLE_JIT = previous


def _mend(cache: Any) -> None:
    """Let damaged files of a function's cache mean that it is compiled anew; Numba itself would stop there."""
    load = cache.load_overload

    def load_or_forget(signature: Any, context: Any) -> Any:
        try:
            return load(signature, context)
        except Exception as error:  # whatever unpickling garbage raises
            print(f"distill: compiled code in {cache.cache_path} is damaged ({error!r}); made anew", file=sys.stderr)
            with contextlib.suppress(OSError):
                cache.flush()
            return None

    cache.load_overload = load_or_forget


def inline(function: Function) -> Function:
    """Compile into each caller: for small helpers, so that loops over lanes still vectorise."""
    with _settings():
        compiled: Any = numba.njit(inline="always", error_model="numpy")(function)
    return cast(Function, compiled)


def _popcount(_context: Any, _bits: Any) -> Any:
    """Set bits of a uint64."""

    def generate(_target: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate


popcount: Any = intrinsic(_popcount)


def _best_ucb1(
    _context: Any, rows: Any, base: Any, weights: Any, weight_base: Any, order: Any, order_base: Any, bonus: Any
) -> Any:
    """The slot with the highest UCB1 score of one node, the lowest of equals; one vector operation a step.

    In scalar terms, for slot a of eight, with n = rows[base + a] and total = rows[base + 8 + a]:

        r = 1 / sqrt(n)
        score = order[order_base + a]                                       where n == 0
                (total * r + bonus * weights[weight_base + a]) * r          elsewhere

    which is total / n + weight * bonus / sqrt(n), rounded to float32 in this order on every
    processor. Left to LLVM, the loop stays scalar and the search runs at less than half the speed.

    Args:
      rows: int32 array; counts at `base`, summed returns eight further.
      weights, order: float32 arrays. bonus: float32, c * sqrt(ln N).
    """
    vector, counts = ir.VectorType(ir.FloatType(), SLOTS), ir.VectorType(ir.IntType(32), SLOTS)

    def generate(target: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        def load(array: int, index: Any, kind: Any) -> Any:
            data = target.make_array(signature.args[array])(target, builder, arguments[array]).data
            loaded = builder.load(builder.bitcast(builder.gep(data, [index]), kind.as_pointer()))
            loaded.align = 4
            return loaded

        def shuffled(values: Any, pattern: list[int]) -> Any:
            return builder.shuffle_vector(values, ir.Constant(vector, ir.Undefined), ir.Constant(counts, pattern))

        _, first, _, weight_first, _, order_first, scalar_bonus = arguments
        n = load(0, first, counts)
        total = load(0, builder.add(first, ir.Constant(first.type, SLOTS)), counts)
        declare: Any = cgutils.get_or_insert_function
        square_root = declare(builder.module, ir.FunctionType(vector, [vector]), f"llvm.sqrt.v{SLOTS}f32")
        one = ir.Constant(vector, [1.0] * SLOTS)
        r = builder.fdiv(one, builder.call(square_root, [builder.sitofp(n, vector)]))
        spread = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar_bonus, ir.Constant(ir.IntType(32), 0))
        exploration = builder.fmul(shuffled(spread, [0] * SLOTS), load(2, weight_first, vector))
        score = builder.fmul(builder.fadd(builder.fmul(builder.sitofp(total, vector), r), exploration), r)
        unvisited = builder.icmp_signed("==", n, ir.Constant(counts, [0] * SLOTS))
        score = builder.select(unvisited, load(4, order_first, vector), score)
        highest = score
        for distance in (4, 2, 1):
            other = shuffled(highest, [slot ^ distance for slot in range(SLOTS)])
            highest = builder.select(builder.fcmp_ordered(">", highest, other), highest, other)
        equal = builder.bitcast(builder.fcmp_ordered("==", score, highest), ir.IntType(SLOTS))
        slot = builder.cttz(equal, ir.Constant(ir.IntType(1), 1))
        return builder.zext(slot, ir.IntType(64))

    int64, float32 = types.int64, types.float32
    return int64(rows, int64, weights, int64, order, int64, float32), generate


best_ucb1: Any = intrinsic(_best_ucb1)
