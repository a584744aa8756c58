"""Properties of the words that name players.

* A word is read into its parts, whether or not it names anybody.
* A wrong one is refused with what there is.
"""

from __future__ import annotations

import pytest

from distill.players.words import Word, check, read


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("punisher", Word(player="punisher")),
        ("teacher:30", Word(player="teacher", simulations=30)),
        ("uct:many", Word(player="uct")),
        ("models/cnn", Word(network="models/cnn", mode="policy")),
        ("cnn@", Word(network="cnn", mode="policy")),
        ("cnn@sample", Word(network="cnn", mode="sample")),
        ("cnn@gumbel:8", Word(network="cnn", mode="gumbel", simulations=8)),
        ("cnn@value:8", Word(network="cnn", mode="value:8")),
        ("random:5", Word(network="random:5", mode="policy")),
        ("/home/me@work/models/cnn", Word(network="/home/me@work/models/cnn", mode="policy")),
        ("/home/me@work/cnn@puct:5", Word(network="/home/me@work/cnn", mode="puct", simulations=5)),
    ],
)
def test_a_word_is_read_into_its_parts(word: str, parts: Word) -> None:
    assert read(word) == parts


@pytest.mark.parametrize(
    ("word", "problem"),
    [
        ("uct", "uct:N needs"),
        ("uct:0", "uct:N needs"),
        ("teacher:many", "teacher:N needs"),
        *(
            (f"{name}:{wrong}", f"{name}:N needs a whole number of simulations from 1 to 10,000,000")
            for name in ("uct", "mcts-solver", "teacher", "quiet-teacher")
            for wrong in ("10000001", "99999999999", "9" * 5000, "\u0661\u0662", "\u00b2", "1e3", "-1", " 1", "+1")
        ),
        ("pillar@puct:" + "9" * 5000, "puct:N needs a whole number of simulations from 1 to 16,384"),
        ("nobody", "unknown and no such path; networks by name are .*reference/cnn"),
        ("randm", "unknown and no such path"),
        ("x" * 5000, "unknown and no such path"),
        (".@puct", "puct:N needs a whole number of simulations from 1 to 16,384"),
        (".@puct:0", "puct:N needs a whole number"),
        (".@gumbel:20000", "gumbel:N needs a whole number"),
        (".@mcts:100", "unknown mode 'mcts:100'; modes are policy, value, sample, puct:N, gumbel:N"),
    ],
)
def test_a_wrong_word_is_refused_with_what_there_is(word: str, problem: str) -> None:
    with pytest.raises(ValueError, match=problem) as caught:
        check(word)
    assert repr(word)[1:80].removesuffix("'") in str(caught.value)
    assert len(str(caught.value)) < 600
