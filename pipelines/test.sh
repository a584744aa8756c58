#!/usr/bin/env bash
# All that CI checks: lint, format, types, tests. Makes .venv and installs Chromium where they are missing. Arguments
# go to pytest.
#
# Every check runs even when one before it has failed; the exit code is 0 only if all passed.
set -euo pipefail
unset CDPATH
cd -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
source pipelines/setup.sh

set_up dev,solver
set_up_browser

say 'compiling the searches, beside the checks: each process of the tests would do it for itself'
"$python" -m distill.mcts.cache teacher & "$python" -m distill.mcts.cache puct &

failed=0
say 'ruff check'
"$python" -m ruff check || failed=1
say 'ruff format --check'
"$python" -m ruff format --check || failed=1
say 'mypy'
"$python" -m mypy || failed=1
[ "$failed" = 0 ] || say 'a check above has failed; the tests run all the same'
wait
say 'pytest'
"$python" -m pytest -n 3 --dist loadfile "$@" || failed=$? # on two cores: some tests wait; a file stays in one process
exit "$failed"
