"""Properties of the names of players.

* A name is parsed, whether or not there is such a player.
* A wrong one is refused with the known ones; a custom one is not imported by the check.
"""

import pytest

from distill.networks import finding
from distill.players.names import Name, check, parse


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("punisher", Name(player="punisher")),
        ("teacher:30", Name(player="teacher", simulations=30)),
        ("uct:many", Name(player="uct")),
        ("models/cnn", Name(network="models/cnn", mode="policy")),
        ("cnn@", Name(network="cnn", mode="policy")),
        ("cnn@sample", Name(network="cnn", mode="sample")),
        ("cnn@gumbel:8", Name(network="cnn", mode="gumbel", simulations=8)),
        ("cnn@sample:8", Name(network="cnn", mode="sample:8")),
        ("random:5", Name(network="random:5", mode="policy")),
        ("/home/me@work/models/cnn", Name(network="/home/me@work/models/cnn", mode="policy")),
        ("mine:player", Name(custom="mine:player")),
        ("/home/me@work/cnn@puct:5", Name(network="/home/me@work/cnn", mode="puct", simulations=5)),
    ],
)
def test_a_name_is_parsed(name, parts):
    assert parse(name) == parts


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("uct", "uct:N needs"),
        ("uct:0", "uct:N needs"),
        ("teacher:many", "teacher:N needs"),
        *(
            (f"{name}:{wrong}", f"{name}:N needs a whole number of simulations from 1 to 10,000,000")
            for name in ("uct", "teacher")
            for wrong in ("10000001", "9" * 5000, "\u0661\u0662", "\u00b2", "1e3", "-1", " 1")
        ),
        ("mcts-solver:250001", "mcts-solver:N needs a whole number of simulations from 1 to 250,000"),
        ("pillar@puct:" + "9" * 5000, "puct:N needs a whole number of simulations from 1 to 16,384"),
        ("nobody", "unknown and no such path; networks by name are .*reference/cnn"),
        ("randm", "unknown and no such path"),
        ("x" * 5000, "unknown and no such path"),
        (".@puct", "puct:N needs a whole number of simulations from 1 to 16,384"),
        (".@puct:0", "puct:N needs a whole number"),
        (".@gumbel:20000", "gumbel:N needs a whole number"),
        (".@mcts:100", "unknown mode 'mcts:100'; modes are policy, sample, puct:N, gumbel:N"),
    ],
)
def test_a_wrong_name_is_refused_with_the_known_ones(name, problem):
    with pytest.raises(ValueError, match=problem) as caught:
        check(name)
    assert repr(name)[1:80].removesuffix("'") in str(caught.value)
    assert len(str(caught.value)) < 400 + len(finding.names())  # which grows with the folders in models/
