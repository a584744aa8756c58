# Creates .venv with Python 3.11, 3.12 or 3.13 and installs distill into it, once.
#
# Sourced with the repository as working directory:
#   source pipelines/setup.sh
#   set_up dev,solver        # the extras of pyproject.toml; sets $python
#
# PYTHON=/path/to/python chooses the interpreter; remove .venv to change it later. Versions are pinned by
# requirements.lock. A change of that file or of pyproject.toml installs again.

python=.venv/bin/python # the interpreter that the recipes use
fits='import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'
unset PYTHONDONTWRITEBYTECODE # set in many container images; each process would compile TensorFlow's sources for 10 s

say() { printf '== %s\n' "$*"; }

fail() {
  printf 'distill: %s\n' "$*" >&2
  exit 1
}

set_up() {
  local base installed
  if "$python" -c "$fits" 2>/dev/null; then
    "$python" -c 'import pip' 2>/dev/null || "$python" -m ensurepip >/dev/null || fail 'pip could not be added to .venv (see above)'
  elif "$python" -c '' 2>/dev/null; then
    fail '.venv has another Python than 3.11, 3.12 or 3.13; remove it, or move it away'
  else # missing or broken
    for base in "${PYTHON:-python3}" python3.13 python3.12 python3.11 ''; do
      "$base" -c "import ensurepip, venv; $fits" 2>/dev/null && break
      [ -z "${PYTHON:-}" ] || fail "$PYTHON is not Python 3.11, 3.12 or 3.13 with venv"
    done
    [ -n "$base" ] || fail 'no Python 3.11, 3.12 or 3.13 with venv found (on Debian or Ubuntu: apt install python3-venv)'
    say "creating .venv with $base"
    "$base" -m venv --clear .venv
  fi
  for installed in .venv/.installed-*"$1"*; do # a marker of these extras, alone or with others
    [ ! "$installed" -nt pyproject.toml ] || [ ! "$installed" -nt requirements.lock ] || return 0
  done
  say "installing distill[$1]: takes minutes the first time"
  # --no-compile saves a minute: Python compiles modules when they are imported.
  "$python" -m pip install --disable-pip-version-check --quiet --no-compile --constraint requirements.lock \
    --editable ".[$1]" ||
    fail 'the installation failed (see above)'
  : >".venv/.installed-$1"
}

# Installs Debian's Chromium for the tests of the web page if there is no browser and root is available. Without it
# only these tests fail.
set_up_browser() {
  local name as_root=''
  for name in "${CHROMIUM:-chromium}" chromium chromium-browser google-chrome; do
    ! command -v "$name" >/dev/null || return 0
  done
  [ "$EUID" = 0 ] || as_root='sudo -n'
  say 'installing chromium for the tests of the web page'
  { $as_root apt-get update && $as_root apt-get install --yes --no-install-recommends chromium; } \
    >.venv/chromium.log 2>&1 || say "chromium could not be installed (see .venv/chromium.log): the tests of the web page will fail"
}
