"""Progress: a killed worker leaves no semaphore, of which Python would warn."""

import subprocess
import sys


def test_a_killed_worker_leaves_no_semaphore():
    code = """
from distill.common import executors
with executors.started(1) as workers:
    workers.submit(exec, "from distill.common import Progress; Progress(2, 'games')").result()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stderr == ""
