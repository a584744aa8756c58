"""The compiled searches: the trees of `reference.py` and `reference_puct.py`, hundreds of times as fast.

**A tree** is a block of rows in one int32 array, one row a node, the root first. A row is two cache lines of 64 bytes:

     0-6   n        visits of the move in each column
     8-14  total    summed values of these visits, for the side to move at the node
    16-22  child    row of the position after the move: 0 no row yet; below 0 the game ends there or the move is proven
    24-30  prior    PUCT: the network's policy, as float32 bits
    31     value    PUCT: the network's value of this node, as float32 bits

Slots 7, 15 and 23 belong to a column that does not exist, so that eight slots fill one vector register. This column,
and every full one, has one visit and the lowest possible total, so choosing a move needs no test for legality. The
statistics of a move stand in its parent's row; UCT gives a position a row of its own only at its second visit (10,000
simulations fill about 2,800 rows), PUCT at its first, to have a place for the priors.

**A lane** is one tree and everything about its search; arrays have one entry a lane. Trees share nothing, so how many
lanes run side by side never changes a result.

**Lock step.** A simulation waits for memory while it selects and is pure arithmetic while it rolls out. So UCT runs 32
lanes together: all trees select level by level (their cache misses overlap), then all leaves are rolled out, eight to a
vector instruction (`rollout.py`), then all paths are backed up. PUCT waits for its network: each lane runs alone until
it reaches a leaf, then one batch evaluates the leaves of all lanes.

**Modules**, in the order of the algorithm:

    jit.py, best_ucb1.py, bits.py, rollout.py    compiling; the vector choice; bitboards; rollouts
    tree.py, noise.py                            rows and proofs; Dirichlet noise
    uct_simulation.py                            select, expand, evaluate, backup (`uct.py` counts votes)
    puct_tree.py, puct_simulation.py             arrays of PUCT; select, evaluate, expand, backup
    puct_moves.py                                the root: noise, Gumbel, label and move, the next position

Whatever runs once a simulation is compiled into its caller (`inline`): passing a tuple of arrays to a compiled function
counts references to each of them, which costs as much as the function itself.
"""
