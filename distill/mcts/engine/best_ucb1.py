"""The best move of a UCT node in a few vector instructions, written in LLVM's language.

`best_ucb1` replaces this loop over the columns, which the compiler leaves scalar; UCT then runs at less than half the
speed (`benchmarks/kernel.py`, "scalar choice", which also shows how to switch to it):

    best, best_score = 0, np.float32(-np.inf)
    for slot in range(SLOTS):
        n = rows[base + slot]
        score = order[order_base + slot]                    # unvisited
        if n > 0:
            r = np.float32(1) / np.sqrt(np.float32(n))
            score = (np.float32(rows[base + SLOTS + slot]) * r + bonus * weights[weight_base + slot]) * r
        if score > best_score:
            best, best_score = slot, score

That is total / n + weight * bonus / sqrt(n) with bonus = c * sqrt(ln N), rounded to float32 in this order on every
processor.
"""

from __future__ import annotations

from collections.abc import Callable

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.cpu import CPUContext
from numba.core.types import Type
from numba.core.typing import Signature
from numba.extending import intrinsic

from distill.mcts.engine.jit import Float32s, Int32s

SLOTS = 8
"""Child slots of a node: seven columns, and one that is never legal, so that a node fills a vector."""


def _best_ucb1(
    _context: object, rows: Type, _: Type, weights: Type, _base: Type, order: Type, _order_base: Type, _bonus: Type
) -> tuple[Type, Callable[..., ir.Value]]:
    # Numba passes the types of the arguments, and takes the signature and a function that writes the instructions.
    vector, counts = ir.VectorType(ir.FloatType(), SLOTS), ir.VectorType(ir.IntType(32), SLOTS)

    def generate(
        target: CPUContext, builder: ir.IRBuilder, signature: Signature, arguments: list[ir.Value]
    ) -> ir.Value:
        def load(array: int, index: ir.Value, kind: ir.Type) -> ir.Value:
            # Eight neighbours of an array as one vector; a row of the tree may begin at any multiple of 4 bytes.
            data = target.make_array(signature.args[array])(target, builder, arguments[array]).data
            loaded = builder.load(builder.bitcast(builder.gep(data, [index]), kind.as_pointer()))
            loaded.align = 4
            return loaded

        def shuffled(values: ir.Value, pattern: list[int]) -> ir.Value:
            return builder.shuffle_vector(values, ir.Constant(vector, ir.Undefined), ir.Constant(counts, pattern))

        _, first, _, weight_first, _, order_first, scalar_bonus = arguments
        n = load(0, first, counts)
        total = load(0, builder.add(first, ir.Constant(first.type, SLOTS)), counts)
        declare = cgutils.get_or_insert_function
        square_root = declare(builder.module, ir.FunctionType(vector, [vector]), f"llvm.sqrt.v{SLOTS}f32")
        one = ir.Constant(vector, [1.0] * SLOTS)
        # One division for both terms, r = 1 / sqrt(n): total / n is total · r · r.
        r = builder.fdiv(one, builder.call(square_root, [builder.sitofp(n, vector)]))
        spread = builder.insert_element(ir.Constant(vector, ir.Undefined), scalar_bonus, ir.Constant(ir.IntType(32), 0))
        exploration = builder.fmul(shuffled(spread, [0] * SLOTS), load(2, weight_first, vector))
        score = builder.fmul(builder.fadd(builder.fmul(builder.sitofp(total, vector), r), exploration), r)
        unvisited = builder.icmp_signed("==", n, ir.Constant(counts, [0] * SLOTS))
        score = builder.select(unvisited, load(4, order_first, vector), score)
        # The highest score in all eight places, by three exchanges; then the first place that has it.
        highest = score
        for distance in (4, 2, 1):
            other = shuffled(highest, [slot ^ distance for slot in range(SLOTS)])
            highest = builder.select(builder.fcmp_ordered(">", highest, other), highest, other)
        equal = builder.bitcast(builder.fcmp_ordered("==", score, highest), ir.IntType(SLOTS))
        slot = builder.cttz(equal, ir.Constant(ir.IntType(1), 1))
        return builder.zext(slot, ir.IntType(64))

    int64, float32 = types.int64, types.float32
    return int64(rows, int64, weights, int64, order, int64, float32), generate


best_ucb1: Callable[[Int32s, int, Float32s, int, Float32s, int, float], int] = intrinsic(_best_ucb1)
"""The slot of one node with the highest UCB1 score, the lowest of equals.

Args:
  rows, base: int32; the counts n begin at `base`, the totals SLOTS further.
  weights, weight_base: float32, factors of the exploration term.
  order, order_base: float32, scores of unvisited slots.
  bonus: float32.
"""
