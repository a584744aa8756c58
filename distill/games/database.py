"""DuckDB, which groups more rows than fit in memory, for `prepare` and `describe`: limits, spill files, errors.

In: queries. Out: their rows, or Arrow batches. Beyond the memory limit rows go to a hidden folder, removed at the end.
Whatever DuckDB raises, while it works or while its result is read, is one DataError that says what to do.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from distill.common import DataError, Interrupted, first_line


@dataclass(frozen=True, kw_only=True)
class Database:
    """An open connection, and what its errors say beside the reason: what could not be done, and what helps."""

    connection: duckdb.DuckDBPyConnection
    task: str
    advice: str

    def execute(self, query: str, parameters: Mapping[str, Any] | None = None) -> list[Any]:
        """The rows of a query, as tuples."""
        with self._one_line():
            return self.connection.execute(query, dict(parameters or {})).fetchall()

    def create(self, table: str, columns: Mapping[str, str]) -> None:
        """An empty table; `columns` are types by name."""
        self.execute(f"CREATE TABLE {table} ({', '.join(map(' '.join, columns.items()))})")

    def insert(self, table: str, rows: pa.Table) -> None:
        """Add rows to a table that has their columns."""
        with self._one_line():
            self.connection.register("new_rows", rows)
            self.connection.execute(f"INSERT INTO {table} SELECT * FROM new_rows")
            self.connection.unregister("new_rows")

    def batches(self, query: str, parameters: Mapping[str, Any], size: int) -> Iterator[pa.RecordBatch]:
        """The rows of a query in their order, `size` in a batch."""
        with self._one_line():
            yield from self.connection.sql(query, params=dict(parameters)).to_arrow_reader(size)

    @contextmanager
    def _one_line(self) -> Iterator[None]:
        try:
            yield
        except (duckdb.Error, OSError) as error:  # OSError: what goes wrong while Arrow reads the result
            raise DataError(f"{self.task} ({first_line(error)}); {self.advice}") from None
        except RuntimeError as error:
            if str(error) == "Query interrupted" and Interrupted.latest:
                raise Interrupted.latest from None  # which our signal handler had raised inside the query
            raise


@contextmanager
def opened(task: str, room: Path, *, memory_gib: float, threads: int) -> Iterator[Database]:
    """A database that holds nothing yet.

    Args:
      task: the start of an error, such as "data/games: the rows could not be counted".
      room: the folder in which rows lie that do not fit in memory, in `.spill-*.partial`.
      memory_gib: what DuckDB may use before it spills.
    """
    advice = (
        f"free space in {room}, where rows lie that do not fit into {memory_gib:g} GiB of memory, or allow more of it: "
        "--memory-gib of prepare and describe"
    )
    spill_folder = tempfile.TemporaryDirectory(dir=room, prefix=".spill-", suffix=".partial")
    with spill_folder as spill, duckdb.connect() as connection:
        database = Database(connection=connection, task=task, advice=advice)
        database.execute(f"SET memory_limit = '{memory_gib * 1024:.0f}MiB'")
        database.execute(f"SET threads = {threads}")
        database.execute("SET temp_directory = $spill", {"spill": spill})
        yield database
