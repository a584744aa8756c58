"""Moved out of the package: `python -m experiments.study`, in a checkout."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence

from distill.common import provenance


def main(arguments: Sequence[str] | None = None) -> int:
    """Say the new name and hand on; the return value is the exit code."""
    if provenance.checkout() is None:
        print("distill study: not in an installed package; in a checkout: python -m experiments.study", file=sys.stderr)
        return 1
    print("distill study: now python -m experiments.study; this name goes with the next release", file=sys.stderr)
    words = sys.argv[1:] if arguments is None else arguments
    words = [word.replace("pipelines/study", "experiments/study/study") for word in words]  # where its recipes were
    return int(importlib.import_module("experiments.study.__main__").main(words))


if __name__ == "__main__":
    raise SystemExit(main())
