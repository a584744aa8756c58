"""The page without a server, as `docs/website.md` makes it."""

from pathlib import Path

import pytest

from tests import pages


@pytest.fixture(scope="session")
def site(tmp_path_factory) -> Path:
    """Below the root of a host."""
    folder = tmp_path_factory.mktemp("host") / "below" / "site"
    pages.write_site(folder)
    return folder
