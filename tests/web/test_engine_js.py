"""The engine of the page in JavaScript, in headless Chromium. The kernel for `pillar` and `pillar-plain` has Keras'
outputs on 64 boards, full columns and a full board among them, whatever came before. The guided search, fed the answers
that Python's search got of the shipped network, makes the same visits, moves and values on graded boards.
"""

import shutil

import keras
import numpy as np
import pytest
from helpers import REFERENCE
from network_helpers import with_random_weights

from distill import networks
from distill.datasets import benchmark
from distill.exporters import conversion, static_page
from distill.game import encoding
from distill.mcts import puct
from distill.networks import predict, saved
from tests import pages

OUTPUTS = """async (boards) => {
  const { Pillar } = await import("/pillar.js");
  const network = await Pillar.load(await (await fetch("/weights.f32")).arrayBuffer());
  const evaluate = (board) => network.evaluate(Int8Array.from(board));
  return [boards.map(evaluate), boards.toReversed().map(evaluate).toReversed()];
}"""


@pytest.mark.parametrize("arch", static_page.PILLARS)
def test_its_outputs_are_those_of_keras(browser, tmp_path, arch):
    keras.utils.set_random_seed(3)
    core = with_random_weights(networks.build(arch, value_head=True))
    for name in ("kernel", "pillar", "rules"):
        shutil.copy(static_page.PAGE / f"{name}.js", tmp_path)
    (tmp_path / "weights.f32").write_bytes(static_page.weights(core))
    boards = conversion.check_boards(64)
    with pages.hosted(tmp_path) as address:
        page = browser.new_page()
        page.goto(f"{address}rules.js")
        answers, again = page.evaluate(OUTPUTS, boards.reshape(len(boards), -1).tolist())
    expected = saved.predict_with(core)(boards)
    outputs = {output: np.array([answer[output] for answer in answers]) for output in expected}
    assert conversion.largest_difference(expected, outputs) <= conversion.TOLERANCE
    assert (boards[:, 0] != 0).any()
    assert again == answers


SEARCH = """async ([boards, simulations, answers]) => {
  const { search } = await import("/puct.js");
  const evaluate = async (board) => {
    const [value, ...logits] = answers[board.join("")];
    return { logits, value };
  };
  const results = [];
  for (const cells of boards) {
    const owners = cells.map((cell) => (cell === 0 ? -1 : cell === 1 ? 0 : 1)); // side 0 is to move
    const heights = [0, 1, 2, 3, 4, 5, 6].map((column) => cells.filter((cell, at) => cell && at % 7 === column).length);
    const ply = heights.reduce((sum, height) => sum + height);
    results.push(await search({ cells: owners, heights, ply, side: 0 }, simulations, evaluate));
  }
  return results;
}"""


@pytest.fixture(scope="module")
def page(browser):
    with pages.hosted(static_page.PAGE) as address:
        page = browser.new_page()
        page.goto(f"{address}style.css")
        yield page


class Recorded:
    """The shipped network, asked once a position: what it said stays, by the board as the page's searches name it."""

    def __init__(self):
        self.predict = predict.load(REFERENCE / "pillar")
        self.answers = {}

    def __call__(self, current, mask):
        boards = encoding.boards(current, mask)
        keys = ["".join(map(str, board)) for board in boards.reshape(len(boards), -1).tolist()]
        new = [index for index, key in enumerate(keys) if key not in self.answers]
        if new:
            results = self.predict(boards[new])
            rows = np.column_stack([results["value"], results["logits"]]).tolist()
            self.answers.update(zip((keys[index] for index in new), rows, strict=True))
        rows = np.array([self.answers[key] for key in keys], np.float32)
        return rows[:, 1:], rows[:, 0]


@pytest.mark.parametrize(("number", "simulations"), [(150, 50), (20, 200)])
def test_it_makes_the_visits_that_python_makes(page, number, simulations):
    graded = benchmark.read()
    chosen = np.random.default_rng(simulations).choice(len(graded), number, replace=False)
    current, mask = graded.current[chosen], graded.mask[chosen]
    network = Recorded()
    settings = puct.quiet(puct.PuctSettings(simulations=simulations))
    expected = puct.play(current, mask, network, settings, seeds=[0] * number, steps=1)
    boards = encoding.boards(current, mask).reshape(number, -1).tolist()
    results = page.evaluate(SEARCH, [boards, simulations, network.answers])
    assert [search["visits"] for search in results] == expected.visits[:, 0].tolist()
    assert [search["move"] for search in results] == expected.label[:, 0].tolist()
    assert [search["value"] for search in results] == pytest.approx(expected.value[:, 0].tolist(), abs=1e-12)
    if number == 150:
        assert {-1.0, 1.0} <= set(expected.value[:, 0].tolist())
        assert graded.ply[chosen].max() > 30


ABORTED = """async () => {
  const { search } = await import("/puct.js");
  const { replay } = await import("/rules.js");
  const signal = { aborted: false };
  let asked = 0;
  const evaluate = async () => {
    asked += 1;
    signal.aborted = asked === 5;
    return { logits: [0, 0, 0, 0, 0, 0, 0], value: 0 };
  };
  const message = await search(replay(""), 1000, evaluate, signal).catch((error) => error.message);
  return [message, asked];
}"""


def test_an_aborted_search_ends_at_once(page):
    message, asked = page.evaluate(ABORTED)
    assert "called off" in message
    assert asked == 5
