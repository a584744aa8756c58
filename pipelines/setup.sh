# Makes .venv with a Python from 3.11 to 3.13 and installs distill there, once.
#
# Sourced with the repository as working directory:
#   source pipelines/setup.sh
#   set_up dev,solver        # the extras of pyproject.toml; sets $python
#
# PYTHON=/path/to/python chooses the interpreter that .venv is made with; remove .venv to change it. Everything is
# pinned by requirements.lock, and installed again where that or pyproject.toml has changed.

python=.venv/bin/python # what the recipes run
fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
unset PYTHONDONTWRITEBYTECODE # images set it; then each process compiles TensorFlow's sources, for ten seconds

say() { printf '== %s\n' "$*"; }

fail() {
  printf 'distill: %s\n' "$*" >&2
  exit 1
}

set_up() {
  local base installed
  if ! "$python" -c "import pip; $fits" 2>/dev/null; then # none, half-made or of another Python
    for base in "${PYTHON:-python3}" python3.13 python3.12 python3.11 ''; do
      "$base" -c "import ensurepip, venv; $fits" 2>/dev/null && break
      [ -z "${PYTHON:-}" ] || fail "$PYTHON is no Python 3.11, 3.12 or 3.13 that can make virtual environments"
    done
    [ -n "$base" ] || fail 'no Python 3.11, 3.12 or 3.13 with venv found (on Debian or Ubuntu: apt install python3-venv)'
    say "making .venv with $base"
    "$base" -m venv --clear .venv
  fi
  for installed in .venv/.installed-*"$1"*; do # with these extras, alone or beside others
    [ ! "$installed" -nt pyproject.toml ] || [ ! "$installed" -nt requirements.lock ] || return 0
  done
  say "installing distill with $1: minutes the first time, the packages are large"
  # Python compiles what is imported: to compile all of it here takes a minute.
  "$python" -m pip install --disable-pip-version-check --quiet --no-compile --constraint requirements.lock \
    --editable ".[$1]" ||
    fail 'the installation failed, as said above'
  : >".venv/.installed-$1"
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
