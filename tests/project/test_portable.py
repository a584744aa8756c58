"""Nothing is used that other systems lack: Windows has no `fcntl`; macOS has an old bash and no GNU tools.

* Generating, training and exporting work with the modules hidden that Windows lacks.
* No module of the package, and no example, imports such a module.
* No recipe expands an array that may be empty, which bash 3.2 takes for an unset variable, or uses what needs bash 4
  or GNU's tools. Faulty lines are shown to be found.

Neither Windows nor bash 3.2 was available for these tests: tests/FAULTS.md says what is untested.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

from helpers import imports_of

import distill

ROOT = Path(__file__).parents[2]
POSIX_ONLY = {"fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios", "tty"}

HIDE = """
import sys
import portalocker  # needs no fcntl on Windows
for name in ("fcntl", "resource", "termios", "grp", "syslog"):
    sys.modules[name] = None
"""

CHAIN = """
import fcntl_is_hidden, sys
from distill import export, generate, train
from network_helpers import check_here
from selfplay_helpers import build_tiny
build_tiny()
check_here()
games = ["--games", "4", "--simulations", "20", "--votes", "1", "--shard-games", "2", "--workers", "1"]
assert generate.main([*games, "--out", "games"]) == 0
learn = ["--preset", "smoke", "--data", "games", "--prepared", "tables", "--exclude", "--no-export"]
assert train.main([*learn, "--out", "net"]) == 0
assert export.main(["net"]) == 0
try:
    import fcntl
except ImportError:
    print("hidden to the end")
"""


def test_generate_train_and_export_without_what_windows_lacks(tmp_path):
    (tmp_path / "hook").mkdir()
    (tmp_path / "hook" / "sitecustomize.py").write_text("import fcntl_is_hidden")  # in worker processes as well
    (tmp_path / "hook" / "fcntl_is_hidden.py").write_text(HIDE)
    environment = os.environ | {"PYTHONPATH": os.pathsep.join(map(str, (tmp_path / "hook", ROOT, ROOT / "tests")))}
    run = subprocess.run([sys.executable, "-c", CHAIN], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[-1] == "hidden to the end"
    assert (tmp_path / "net" / "saved_model" / "1" / "saved_model.pb").is_file()
    assert not list(tmp_path.glob("*/.[!l]*")), "nothing half-written stays"


def test_nothing_imports_what_other_systems_lack():
    for file in [*Path(distill.__file__).parent.rglob("*.py"), *(ROOT / "examples").glob("*.py")]:
        assert not {entry.name.split(".")[0] for entry in imports_of(file, "distill")} & POSIX_ONLY, file


NEWER = {
    "bash 4": r"\b(mapfile|readarray|coproc)\b|\b(declare|local|typeset) -[a-zA-Z]*[An]|\$\{\w+(\[@\])?(\^|,)"
    r"|\|&|&>>|\bwait -n\b|printf [^|]*%\(|\$\{?EPOCH|\$\{\w+@[A-Z]\}|\bshopt -s globstar|\$\{\w+: -\d",
    "GNU": r"\breadlink -\w*[fem]|\brealpath\b|\bsed (-\w*i|-\w*r|--)|\bdate (-d|--|\+\S*%N)|\bgrep -\w*P|\bstat -c"
    r"|\b(nproc|timeout|tac|shuf|numfmt|flock|setsid)\b|\bsort -\w*V|\bxargs -\w*[rd]|\b(cp|ln|rm|mv) --|\bmktemp --"
    r"|\bhead -c|\bdu -\w*b|\bseq\b|\btruncate\b",
}


def faults(script: str) -> list[str]:
    """Uses of newer or other tools than those of macOS, each with its line."""
    lines = [re.sub(r"(^|\s)#.*", "", line) for line in script.splitlines()]
    declared = r"\b(\w+)=\(\s*\)|(?:declare|local|typeset) -a (\w+)(?!=)"
    may_be_empty = {name for line in lines for names in re.findall(declared, line) for name in names}
    found = []
    for number, line in enumerate(lines, 1):
        found += [f"{number}: {what}: {line}" for what, pattern in NEWER.items() if re.search(pattern, line)]
        unguarded = re.sub(r'\$\{(\w+)\[[@*]\]\+"\$\{\1\[[@*]\]\}"\}', "", line)
        names = set(re.findall(r"\$\{(\w+)\[[@*]\]", unguarded)) & may_be_empty
        found += [f"{number}: {name} may be empty: {line}" for name in sorted(names)]
    return found


SCRIPTS = sorted(path for path in ROOT.rglob("*.sh") if ".venv" not in path.parts)


def test_no_script_uses_what_macos_lacks():
    assert {"setup.sh", "quickstart.sh", "reference.sh"} <= {path.name for path in SCRIPTS}
    assert {path.name: found for path in SCRIPTS if (found := faults(path.read_text(encoding="utf-8")))} == {}


FAULTY = ("mapfile -t lines", "declare -A names", "echo ${name^^}", "readlink -f .", "sed -i s/a/b/ file",
          "timeout 5 make", 'small=()\nrun "${small[@]}"', "local small=() name\nrun ${small[*]}")  # fmt: skip
SOUND = ('small=()\nrun ${small[@]+"${small[@]}"}', 'some=(1)\nrun "${some[@]}"', "# a timeout")


def test_lines_that_fail_on_macos_are_found_and_no_others():
    assert all(map(faults, FAULTY))
    assert not any(map(faults, SOUND))
