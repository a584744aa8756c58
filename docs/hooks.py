"""Hooks of the documentation site (mkdocs.yml): reference pages from the code, and links out of docs/.

- `commands.md`: `--help`, the settings without a flag and the presets of every command.
- `api.md`: the public names of `distill` and the extension points; mkdocstrings fills in their docstrings.
- `tutorial.md`: the notebook with its outputs.
- Pictures outside docs/ are copied into the site; other files there are linked to the repository, where it is known.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File, Files

import distill
from distill.__main__ import COMMANDS
from distill.common import cli
from distill.common.settings import default_of, fields_of

ROOT = Path(__file__).parents[1]
OUTSIDE = re.compile(r"(!?)\[([^\]]*)\]\(\.\./([^)#\s]+)(#[^)\s]*)?\)")
"""A link of a page to a file above docs/: picture or not, text, path, heading."""
ON_THE_SITE = {
    "(tutorial.ipynb)": "(tutorial.md)",
    "Settings and the Python API as pages: `mkdocs serve`.": "[Commands and settings](commands.md) · "
    "[the Python API](api.md).",
}
"""What pages say of generated ones, which are not beside them in the repository."""
EXTENSION_POINTS = (
    "distill.mcts.uct.search",
    "distill.mcts.settings.UctSettings",
    "distill.mcts.puct.search",
    "distill.mcts.settings.PuctSettings",
    "distill.mcts.evaluator.Evaluator",
    "distill.exporters.formats.Format",
    "distill.exporters.formats.register",
)


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, and the pictures outside docs/ that pages show."""
    os.environ["COLUMNS"] = "100"  # the width of `--help`
    files.append(File.generated(config, "commands.md", content=commands()))
    files.append(File.generated(config, "api.md", content=api()))
    files.append(File.generated(config, "tutorial.md", content=tutorial()))
    for page in ROOT.glob("docs/*.md"):
        for is_picture, _, path, _ in OUTSIDE.findall(page.read_text(encoding="utf-8")):
            if is_picture and files.get_file_from_path(path) is None:
                files.append(File.generated(config, path, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown: str, config: Any, **_: Any) -> str:
    """Lead links out of docs/ to the copied picture or to the repository."""

    def led(link: re.Match[str]) -> str:
        is_picture, text, path, heading = link.groups("")
        if is_picture:
            return f"![{text}]({path})"
        return f"[{text}]({config.repo_url}/blob/HEAD/{path}{heading})" if config.repo_url else text

    for here, on_the_site in ON_THE_SITE.items():
        markdown = markdown.replace(here, on_the_site)
    return OUTSIDE.sub(led, markdown)


def commands() -> str:
    """The page of all commands."""
    lines = ["# Commands and settings", "", "`python -m distill.COMMAND`, or `distill COMMAND`. "]
    lines[-1] += "Flags override `--set`, which overrides `--config FILE`, then `--preset NAME`, then the defaults."
    for name in COMMANDS:
        command = importlib.import_module(f"distill.{name}").main
        lines += ["", f"## {name}", "", "```text", help_of(command), "```", *others(command)]
        for preset, values in presets(command.presets or {}):
            lines += ["", f"Preset `{preset}`:", "", "```json", values, "```"]
    return "\n".join(lines) + "\n"


def help_of(command: cli.Command[Any]) -> str:
    """What `--help` prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        assert command(["--help"]) == 0
    return printed.getvalue().strip()


def others(command: cli.Command[Any]) -> Iterator[str]:
    """A table of the settings that `--set` alone sets."""
    line = command.config_class.command_line
    fields = fields_of(command.config_class)
    plain = {path: field for path, field in fields.items() if path not in (*line.flags, line.words)}
    if rows := [(path, field) for path, field in plain.items() if field.description]:
        yield from (
            "",
            "Settings without a flag, for `--set` and `--config`:",
            "",
            "| setting | default | |",
            "| - | - | - |",
        )
        for path, field in rows:
            meaning = " ".join((field.description or "").split()).replace("|", "/")
            yield f"| `{path}` | {default_of(command.config_class, path)} | {meaning} |"


def presets(known: cli.Presets) -> Iterator[tuple[str, str]]:
    """Names and values of presets; those that depend on other settings are described, not computed."""
    for name, preset in known.items():
        plain = {key: "depends on other settings" if callable(value) else value for key, value in preset.values.items()}
        yield name, json.dumps(plain, default=str)


def api() -> str:
    """The page of the library; the directives are mkdocstrings'."""
    public = [f"{module}.{name}" for name, module in distill.PUBLIC.items()]
    lines = ["# Python API", "", "`import distill` gives these names; nothing heavy is loaded before one is used.", ""]
    lines += [f"::: {place}" for place in public]
    lines += ["", "## Searches and formats", ""]
    lines += [f"::: {place}" for place in EXTENSION_POINTS]
    return "\n\n".join(lines) + "\n"


def tutorial() -> str:
    """The notebook as Markdown: text, code and what each cell printed or drew."""
    parts = []
    for cell in json.loads((ROOT / "docs/tutorial.ipynb").read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", []):
            data = output.get("data", {})
            if "image/png" in data:
                parts.append(f"![output](data:image/png;base64,{''.join(data['image/png']).strip()})")
            elif text := "".join(output.get("text", data.get("text/plain", ""))).rstrip():
                parts.append(f"```text\n{text}\n```")
    return "\n\n".join(parts) + "\n"
