#!/usr/bin/env bash
# Runs all checks of CI: lint, format, types, tests. Creates .venv and installs Chromium if they are missing. Arguments
# are passed to pytest.
#
# Every check runs even if an earlier one failed. The exit code is 0 only if all passed.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

set_up dev,solver
set_up_browser

say 'compiling the searches in the background, once for all test processes'
"$python" -m distill.mcts.compiling uct & "$python" -m distill.mcts.compiling puct &

failed=0
say 'ruff check'
"$python" -m ruff check || failed=1
say 'ruff format --check'
"$python" -m ruff format --check || failed=1
say 'mypy'
"$python" -m mypy || failed=1
[ "$failed" = 0 ] || say 'a check failed (see above); running the tests anyway'
wait
say 'pytest'
"$python" -m pytest -n 2 --dist loadfile "$@" || failed=$? # a third process would import TensorFlow and JAX again
exit "$failed"
