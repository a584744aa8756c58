"""Worker processes, and what a command finds around it. Properties:

- a script without a main guard that starts a worker runs once, and gets its answer;
- a worker that cannot be started is an error that says so; so is /dev/shm without room.
"""

import errno
import os
import subprocess
import sys

import pytest
from helpers import state

from distill import generate
from distill.common import machine, workers

SCRIPT = """
import asyncio
import functools
print("the script runs")
from distill.web import work
queue = work.process(1)
print(asyncio.run(queue.run([functools.partial(pow, 2, 10)])))
queue.close()
"""


def test_a_script_without_a_main_guard_is_not_run_again_by_its_worker(tmp_path):
    script = tmp_path / "app.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["the script runs", "[1024]"], done.stderr
    assert done.stderr == ""


def test_tasks_are_spread_over_processes_in_their_order():
    alone = list(workers.spread(pow, ((2, number) for number in range(5)), 1))
    assert list(workers.spread(pow, ((2, number) for number in range(5)), 2)) == alone == [1, 2, 4, 8, 16]
    with pytest.raises(FileNotFoundError, match="/nowhere"):  # the function's own error, not one of /dev/shm
        list(workers.spread(os.stat, [("/nowhere",)] * 2, 2))
    with pytest.raises(workers.WorkerError, match="a worker process has died"):
        list(workers.spread(os._exit, [(1,)] * 2, 2))


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_shared_memory_without_room_is_named(number, own_processes, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("joblib.externals.loky.backend.synchronize._SemLock", refuse)
    with pytest.raises(workers.WorkerError, match=rf"^/dev/shm: .*{os.strerror(number)}.*--shm-size"):
        workers.check()


def test_a_restart_deletes_nothing_where_no_worker_can_be_started(tmp_path, monkeypatch, capsys):
    flags = ["--games", "1", "--simulations", "30", "--workers", "1", "--out", str(tmp_path)]
    assert generate.main(flags) == 0
    before = state(tmp_path)
    capsys.readouterr()

    def refuse() -> None:
        raise workers.WorkerError("/dev/shm: full")

    monkeypatch.setattr(workers, "pool", refuse)
    assert generate.main([*flags, "--restart"]) == 1
    assert capsys.readouterr().err == "distill generate: /dev/shm: full\n"
    assert state(tmp_path) == before


def test_the_processors_are_those_that_this_process_may_use(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")  # as a quota of a container, which loky reads, too
    assert machine.cores() == 1
