"""DuckDB as `prepare` and `describe` use it. Properties:

- an error in a query, or later while its result is read, is one DataError with the reason and what helps;
- what is raised by who reads the result is not taken for DuckDB's;
- a signal that arrives inside a query ends the command as anywhere else;
- nothing stays in the folder for rows that do not fit in memory.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pytest

from distill.common import DataError, cli
from distill.games import database
from distill.games.database import Database


def use(room: Path, work: Callable[[Database], object]) -> None:
    with database.opened("games: not counted", room, memory_gib=0.5, threads=1) as opened:
        work(opened)


def test_rows_that_are_inserted_come_back_in_batches(tmp_path: Path) -> None:
    def work(opened: Database) -> None:
        opened.execute("CREATE TABLE number (n TINYINT)")
        for numbers in ([1, 2], [3]):
            opened.insert("number", pa.table({"n": pa.array(numbers, pa.int8())}))
        found = opened.batches("SELECT n FROM number WHERE n > $least ORDER BY n DESC", {"least": 1}, 10)
        assert [batch.to_pydict() for batch in found] == [{"n": [3, 2]}]
        assert opened.execute("SELECT sum(n) FROM number") == [(6,)]

    use(tmp_path, work)
    assert not list(tmp_path.iterdir())


LATE = "SELECT CASE WHEN n = 900000 THEN error('no more') ELSE n END AS n FROM range(1000000) AS range(n)"


def test_an_error_is_one_line_with_the_reason_and_what_helps(tmp_path: Path) -> None:
    rest = f"; free space in {tmp_path}, where rows lie that do not fit into 0.5 GiB of memory, or allow more"
    for query in ("SELECT nothing", LATE):
        with pytest.raises(DataError) as caught:
            use(tmp_path, lambda opened, query=query: opened.execute(query))
        assert str(caught.value).startswith("games: not counted (")
        assert rest in str(caught.value)
        assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_an_error_while_the_result_is_read_is_one_too(tmp_path: Path) -> None:
    read = 0

    def work(opened: Database) -> None:
        nonlocal read
        for batch in opened.batches(LATE, {}, 1000):
            read += len(batch)

    with pytest.raises(DataError, match=r"^games: not counted \(Invalid Input Error: no more\); free space"):
        use(tmp_path, work)
    assert 0 < read < 1_000_000


def test_an_error_of_who_reads_the_result_is_his(tmp_path: Path) -> None:
    def work(opened: Database) -> None:
        for _ in opened.batches("SELECT 1", {}, 10):
            raise OSError(28, "No space left on device", "table.parquet")

    with pytest.raises(OSError, match=r"table\.parquet"):
        use(tmp_path, work)


@dataclass(frozen=True, kw_only=True)
class Nothing:
    """Settings of a command made up for this test."""


def test_a_signal_inside_a_query_ends_the_command_with_its_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    endless = "SELECT count(*) FROM range(1000000000000) AS range(n) WHERE hash(n) = 1"

    def run(_config: Nothing) -> str:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        use(tmp_path, lambda opened: opened.execute(endless))
        return "never"

    assert cli.Command("count", Nothing, run)([]) == 128 + signal.SIGTERM
    assert capsys.readouterr().err == "\nstopped by SIGTERM; to resume: python -m distill.count\n"
    assert not list(tmp_path.iterdir())
