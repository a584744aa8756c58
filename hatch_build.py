"""Build hook: a wheel holds the licence where `provenance.shipped` looks for it, and its commit, which it cannot ask
git for."""

import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Commit(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the file COMMIT to the package, for `provenance.commit`; an editable install asks git itself.

        Where git cannot tell the commit, the package is built without the file.
        """
        if version != "editable" and self.target_name == "wheel":
            build_data["force_include"][str(Path(self.root) / "LICENSE")] = "distill/shipped/LICENSE"
        if version == "editable" or not (Path(self.root) / ".git").exists():
            return
        command = ["git", "-C", self.root, "describe", "--always", "--exclude=*", "--abbrev=40", "--dirty=+"]
        try:
            commit = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        except (OSError, subprocess.SubprocessError):  # no git here, or it refuses somebody else's checkout
            return
        file = Path(self.directory) / "COMMIT"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(commit)
        build_data["force_include"][str(file)] = "distill/COMMIT"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        """Remove the file that was included."""
        (Path(self.directory) / "COMMIT").unlink(missing_ok=True)
