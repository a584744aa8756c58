"""Monte Carlo tree search: UCT with rollouts, and PUCT or Gumbel search with an evaluator such as a network.

uct.py, puct.py                     the public functions and their settings
evaluator.py                        the protocol of what PUCT evaluates positions with
labeller.py                         the protocol of what labels positions
reference.py, reference_puct.py     the textbook: both searches in plain Python, written to be read
textbook.py                         a labeller by the textbook's UCT
device.py, device_tree.py           PUCT on an accelerator, thousands of trees in lock step; needs JAX
engine/                             the compiled searches, which build the same trees
"""
