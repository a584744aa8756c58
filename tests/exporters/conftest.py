"""The page without a server, as `docs/website.md` makes it, and few boards to grade."""

from pathlib import Path

import numpy as np
import pytest
from helpers import made_once

from distill.exporters import quantized
from tests import pages


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Below the root of a host."""
    host = made_once(tmp_path_factory, "host", lambda folder: pages.write_site(folder / "below" / "site"))
    return host / "below" / "site"


@pytest.fixture
def few_graded_boards(monkeypatch):
    """Files in 8 bits are graded on few boards."""
    boards = quantized.graded_boards()
    few = boards[np.arange(0, len(boards), 50)]
    monkeypatch.setattr(quantized, "graded_boards", lambda: few)
