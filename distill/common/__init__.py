"""What every command needs: settings as flags, one-line errors, progress, atomic files, locks, versions."""

from distill.common.errors import DataError, Interrupted, OutputError, UserError, first_line, listed
from distill.common.executors import cores
from distill.common.files import canonical_json, file_hash, json_hash, read_object, write_atomically, write_json
from distill.common.progress import Progress, say, say_once

__all__ = [
    "DataError", "Interrupted", "OutputError", "Progress", "UserError", "canonical_json", "cores",
    "file_hash", "first_line", "json_hash", "listed", "read_object", "say", "say_once", "write_atomically",
    "write_json",
]  # fmt: skip
