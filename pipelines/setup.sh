# Finds a Python from 3.11 to 3.13, makes .venv with it and installs distill there, once.
#
# Sourced with the repository as working directory:
#   source pipelines/setup.sh
#   set_up dev,solver        # the extras of pyproject.toml; sets $python
#
# PYTHON=/path/to/python chooses the interpreter; otherwise the first of python3, python3.13, python3.12 and
# python3.11 that will do is taken. Everything is pinned by requirements.lock. A second call installs nothing
# unless pyproject.toml, the lock, the extras, the folder or the Python have changed.

python=.venv/bin/python # what the recipes run

say() { printf '== %s\n' "$*"; }

fail() {
  printf 'distill: %s\n' "$*" >&2
  exit 1
}

# What is wrong with an interpreter, in one line; nothing for one that will do.
problem_with_python() {
  local version
  version=$("$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || {
    echo "$1 does not run; distill needs Python 3.11, 3.12 or 3.13"
    return
  }
  case $version in
    3.11 | 3.12 | 3.13) ;;
    *)
      echo "$1 is Python $version; distill needs Python 3.11, 3.12 or 3.13 (PYTHON=/path/to/python chooses one)"
      return
      ;;
  esac
  "$1" -c 'import venv, ensurepip' >/dev/null 2>&1 ||
    echo "$1 (Python $version) cannot make virtual environments; on Debian or Ubuntu: apt install python$version-venv"
}

# Sets $base to the interpreter that .venv is to be made with, or says in one line why there is none.
find_python() {
  local candidate problem mendable='' complaint=''
  for candidate in ${PYTHON:+"$PYTHON"} python3 python3.13 python3.12 python3.11; do
    [ -n "${PYTHON:-}" ] || command -v "$candidate" >/dev/null || continue
    problem=$(problem_with_python "$candidate")
    case $problem in
      '')
        base=$candidate
        return
        ;;
      *'apt install'*) mendable=${mendable:-$problem} ;;
      *) complaint=${complaint:-$problem} ;;
    esac
    [ -z "${PYTHON:-}" ] || break # who names a Python wants that one and no other
  done
  # The right Python without its venv module is told first: it is the quicker to mend.
  fail "${mendable:-${complaint:-no python3 found; distill needs Python 3.11, 3.12 or 3.13}}"
}

# Whether .venv holds a working Python of a fitting version with pip, and of the version that $PYTHON asks for.
usable() {
  [ -x "$python" ] || return 1
  "$python" -c 'import sys, pip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' >/dev/null 2>&1 || return 1
  [ -n "${PYTHON:-}" ] || return 0
  local version='import sys; print(sys.version_info[:2])'
  [ "$("$python" -c "$version")" = "$("$PYTHON" -c "$version" 2>/dev/null)" ]
}

set_up() {
  local extras=$1 stamp wanted base
  stamp=.venv/.installed-$extras
  if ! usable; then
    find_python
    if [ -e .venv ]; then
      say "making .venv anew with $base (the one there is broken, half-made or of another Python)"
    else
      say "making .venv with $base"
    fi
    "$base" -m venv --clear .venv || fail "$base -m venv could not make .venv"
  fi
  wanted=$("$python" -c '
import hashlib, pathlib, sys
text = [pathlib.Path(name).read_text() for name in ("pyproject.toml", "requirements.lock")]
print(hashlib.sha256("\0".join([*text, *sys.argv[1:], str(pathlib.Path.cwd()), sys.version]).encode()).hexdigest())
' "$extras")
  if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
    say "installing distill with $extras: minutes the first time, the packages are large"
    "$python" -m pip install --disable-pip-version-check --constraint requirements.lock --editable ".[$extras]" \
      >.venv/install.log 2>&1 || {
      tail -n 15 .venv/install.log >&2
      fail 'the installation failed; all of its output is in .venv/install.log'
    }
    printf '%s\n' "$wanted" >"$stamp"
  fi
}

# Chromium for the tests of the page: installs Debian's where there is none and root may be had. Without it those
# tests fail and say so; everything else runs.
set_up_browser() {
  local name as_root=''
  for name in "${CHROMIUM:-chromium}" chromium chromium-browser google-chrome; do
    ! command -v "$name" >/dev/null || return 0
  done
  [ "$EUID" = 0 ] || as_root='sudo -n'
  say 'installing chromium, for the tests of the page'
  { $as_root apt-get update && $as_root apt-get install --yes --no-install-recommends chromium; } \
    >.venv/chromium.log 2>&1 || say "chromium cannot be installed here (.venv/chromium.log): the tests of the page will fail"
}
