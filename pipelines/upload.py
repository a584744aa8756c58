"""Upload the networks and the data that ship to the Hugging Face Hub, a repository for each.

    python pipelines/upload.py --dry-run                       # list repositories and files; no account, no network
    python pipelines/upload.py --organisation my-organisation  # needs `hf auth login`

A model's repository is its `saved_model` folder with `best.keras` added. A data set's is its folder with the card of
`data/cards/`, which declares the splits for `datasets.load_dataset`. Needs `pip install huggingface_hub`.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from huggingface_hub import CommitOperationAdd, HfApi, RepoCard

from distill.exporters.card import HUB

ROOT = Path(__file__).resolve().parents[1]
DATA = [ROOT / "data" / name for name in ("benchmark", "reference/validation", "reference/labels-200")]


def repositories() -> Iterator[tuple[str, str, dict[str, Path]]]:
    """Yield the name of each repository, its type, and its files by their path in it."""
    for run in sorted((ROOT / "models" / "reference").glob("*/")):
        exported = run / "saved_model"
        paths = [path for path in exported.rglob("*") if path.is_file() and path.name[0] not in "._"]
        files = {path.relative_to(exported).as_posix(): path for path in paths}
        yield run.name, "model", files | {"best.keras": run / "best.keras"}
    for folder in DATA:
        files = {path.name: path for path in folder.iterdir() if not path.name.startswith(".")}
        yield folder.name, "dataset", files | {"README.md": ROOT / "data" / "cards" / f"{folder.name}.md"}


def main(arguments: list[str] | None = None) -> int:
    """Upload, or list what would be uploaded; every card is read before anything is sent."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--organisation", default=HUB, help="account or organisation that owns the repositories")
    parser.add_argument("--dry-run", action="store_true", help="list repositories and files, and stop")
    options = parser.parse_args(arguments)
    planned = [*repositories()]
    for name, kind, files in planned:
        card = RepoCard.load(files["README.md"], repo_type=kind)
        print(f"{options.organisation}/{name} ({kind}, {card.data.license})")
        for path, file in sorted(files.items()):
            print(f"  {path:<40} {file.stat().st_size:>12,}")
    if not options.dry_run:
        api = HfApi()
        for name, kind, files in planned:
            repository = f"{options.organisation}/{name}"
            api.create_repo(repository, repo_type=kind, exist_ok=True)
            added = [CommitOperationAdd(path, file) for path, file in sorted(files.items())]
            print(api.create_commit(repository, added, commit_message=f"Upload {name}", repo_type=kind).commit_url)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
