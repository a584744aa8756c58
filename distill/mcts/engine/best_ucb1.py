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

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

SLOTS = 8
"""Child slots of a node: seven columns, and one that is never legal, so that a node fills a vector."""


def _best_ucb1(
    _context: Any, rows: Any, base: Any, weights: Any, weight_base: Any, order: Any, order_base: Any, bonus: Any
) -> Any:
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


best_ucb1: Any = intrinsic(_best_ucb1)
"""The slot of one node with the highest UCB1 score, the lowest of equals.

Args:
  rows, base: int32; the counts n begin at `base`, the totals SLOTS further.
  weights, weight_base: float32, factors of the exploration term.
  order, order_base: float32, scores of unvisited slots.
  bonus: float32.
"""
