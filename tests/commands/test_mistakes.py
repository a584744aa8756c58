"""A wrong flag or word of a command: one line that says what is wrong, exit 2, and nothing is written.

`test_settings` checks types and ranges of any setting; this table has what each command checks.
"""

import importlib
import shlex

import pytest

from distill.common import provenance

MISTAKES = """
arena random -> at least two players
arena random nobody -> player 'nobody' is unknown
arena random random -> named twice
arena pillar pillar/ -> named twice
arena random punisher --opening-plies 1 -> openings of 1 plies, 100 are needed
evaluate -> name a player
evaluate random random -> named twice
evaluate uct:x -> uct:N needs a whole number
evaluate random ROOT/data/reference/labels-200 -> name a network besides a folder of games
export -> needs a model
export a b -> several models are for one page
export a --web c --out d -> --out and --formats must be left out with --web
export a --web c --formats litert -> --out and --formats must be left out with --web
export a --formats onyx -> --formats onyx must be of savedmodel, litert, onnx, litert-int8, onnx-int8
generate --set search.mcts_solver=on --simulations 250001 -> simulations 250001 must be at most 250,000 with mcts_solver
generate --labeller distill.mcts.textbook:label --votes 1 --noise-fraction 0.5 -> --labeller does not read votes, noise
generate --out ' ' -> --out   must be a name or a path
prepare --data data '' -> --data data  must be a path
generate --opening-moves 8 1 -> --opening-moves 8 1
generate --opening-moves 0 31 -> --opening-moves 0 31
play random --moves 4444444 -> move 7 falls into column 4, which is full
play random --moves '4 4' -> move 2 is ' ', not a column from 1 to 7
play uct:0 -> whole number of simulations
selfplay --games-only -> --games-only needs --init
selfplay --games-only --init pillar --preset hour -> --games-only plays --games games; it takes no --minutes
selfplay --set arena.plies=1 -> there are only about 4 openings
selfplay --set opening_moves=[3,1] -> --set opening_moves 3 1 must be two numbers
selfplay --set teacher_share=0.1 -> stages and teacher_share need --minutes
selfplay --set leaves=playout -> leaves by playout need gate none
selfplay --minutes 1 --set device_lanes=16 --set rule=printed -> device_lanes needs --minutes, mcts_solver, a rule with
serve --host everywhere -> --host everywhere: value is not a valid IPv4 or IPv6 address
serve --allow-host example.org:80 -> --allow-host example.org:80 must be HOST
serve --players pillar -> --players pillar must be MODULE:OBJECT
serve --allow-frame https://example.org/page -> --allow-frame https://example.org/page must be SCHEME://HOST
train --arch gpt -> --arch gpt must be one of
train --set value_weight=0.5 -> value_weight 0.5 needs --value-target
train --set interpolate=0.5 -> interpolate 0.5 must be 0 without --init
train --arch resnet --value-target none -> --value-target none does not fit resnet, which always has a value head
walk -> needs PLAYER
"""


@pytest.mark.parametrize("line", MISTAKES.strip().splitlines())
def test_a_mistake_is_one_line_and_writes_nothing(line, tmp_path, monkeypatch, complaint):
    monkeypatch.chdir(tmp_path)
    words, problem = line.split(" -> ")
    stage, *flags = shlex.split(words.replace("ROOT", str(provenance.ROOT)))
    assert problem in complaint(importlib.import_module(f"distill.{stage}"), *flags, code=2)
    assert not list(tmp_path.iterdir())
