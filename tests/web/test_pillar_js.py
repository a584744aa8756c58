"""The kernel of the browser-only page for `pillar` and `pillar-plain`, in headless Chromium: with random weights it has
Keras' outputs on 64 boards, full columns and a full board among them, whatever came before.
"""

import shutil

import keras
import numpy as np
import pytest
from network_helpers import with_random_weights

from distill import networks
from distill.exporters import conversion, static_page
from distill.networks import saved
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
