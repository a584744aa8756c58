"""Work in other processes. Properties:

- results come as they are ready, or in the order of tasks; a task's own error is raised as it is;
- a worker that dies costs no task; tasks that kill their workers at every try are named, and all others are done;
- workers that cannot be started are one line, and busy ones let their process end.
"""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from distill.common import UserError, executors

SCRIPT = """
print("the script runs")
from distill.common import executors
with executors.started(1) as workers:
    print(executors.results(workers, pow, [(2, 10)]))
"""


def test_a_script_without_a_main_guard_is_not_run_again_by_its_worker(tmp_path):
    script = tmp_path / "app.py"
    script.write_text(SCRIPT, encoding="utf-8")
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120)
    assert done.stdout.splitlines() == ["the script runs", "[1024]"], done.stderr
    assert done.stderr == ""


def test_results_come_as_they_are_ready_or_in_the_order_of_tasks():
    tasks = [(2, number) for number in range(20)]
    powers = [2**number for number in range(20)]
    for workers in (executors.shared(1), executors.shared(2)):
        assert executors.results(workers, pow, iter(tasks)) == powers
        assert dict(executors.completed(workers, pow, tasks)) == dict(enumerate(powers))
        with pytest.raises(FileNotFoundError, match="/nowhere"):  # the function's own error, not one of /dev/shm
            executors.results(workers, os.stat, [("/nowhere",)] * 5)
        assert executors.results(workers, pow, tasks) == powers, "of use again after an error"


def dies(number: int, killers: dict[int, int], folder: Path) -> int:
    """The number; some of them kill their worker at the first so many tries."""
    tries = len(list(folder.glob(f"{number}-*")))
    (folder / f"{number}-{tries}").touch()
    if tries < killers.get(number, 0):
        os.kill(os.getpid(), signal.SIGKILL)
    return number


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_worker_that_dies_costs_no_task(tmp_path, deaths):
    with executors.started(2) as workers:
        tasks = [(number, {3: deaths}, tmp_path) for number in range(8)]
        assert executors.results(workers, dies, tasks) == [*range(8)]
        assert executors.results(workers, pow, [(2, 3)]) == [8]


def test_tasks_that_kill_their_workers_are_named_and_all_others_are_done(tmp_path):
    done, tasks = [], [(number, {3: 9, 6: 9}, tmp_path) for number in range(8)]
    with (
        executors.started(2) as workers,
        pytest.raises(executors.KilledError, match=r"died at every try of 2 tasks \(out of memory\?\)") as error,
    ):
        done.extend(number for number, _ in executors.completed(workers, dies, tasks))
    assert error.value.tasks == [tasks[3], tasks[6]]
    assert sorted(done) == [0, 1, 2, 4, 5, 7]
    for number in (3, 6):  # a try ends before it has begun where another task has killed the worker
        assert 0 < len(list(tmp_path.glob(f"{number}-*"))) <= executors.Workers.tries


def test_work_in_a_thread_ends_with_its_workers():
    with executors.started(1) as workers:
        playing = workers.begin(executors.results, workers, time.sleep, [(600,)] * 5)
    assert playing.done()
    assert playing.exception()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC])
def test_shared_memory_without_room_is_named(number, own_processes, monkeypatch):
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("joblib.externals.loky.backend.synchronize._SemLock", refuse)
    with pytest.raises(UserError, match=rf"cannot be started .*{os.strerror(number)}.*--shm-size"):
        executors.started(1)


ENDS = """
from distill.common import executors
progress = "from distill.common import Progress; Progress(2, 'games')"
executors.results(executors.shared(2), exec, [(progress,)])
for result in executors.completed(executors.shared(2), exec, [("import time; time.sleep(600)",)] + [("1/0",)]):
    pass
"""


def test_a_process_ends_whose_workers_are_busy():
    done = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=60)
    assert done.returncode == 1, done.stderr
    assert not [word for word in ("LokyProcess", "leaked") if word in done.stderr]
