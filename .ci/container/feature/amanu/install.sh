#!/bin/sh
# Run as root while a dev container is built. The daemon beside this file (`make feature`) is its wheel and the list of
# the packages it was tested with; the option `wheel` names another one.
set -eu
cd "$(dirname "$0")"
ENVIRONMENT=${AMANU_PREFIX:-/opt/amanu}
BIN=${AMANU_BIN:-/usr/local/bin}

missing=""
for program in git bwrap; do
  command -v "$program" >/dev/null || missing="$missing $program"
done
python=""
for each in python3 python3.14 python3.13 python3.12 python3.11; do
  if command -v "$each" >/dev/null && "$each" -c 'import ensurepip, sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then
    python=$each
    break
  fi
done
if [ -n "$missing" ] || [ -z "$python" ]; then
  if command -v apt-get >/dev/null; then
    packages=$(echo "$missing" | sed 's/bwrap/bubblewrap/')
    [ -n "$python" ] || packages="$packages python3 python3-venv"
    apt-get update
    # shellcheck disable=SC2086  # several words
    DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ca-certificates $packages
    rm -rf /var/lib/apt/lists/*
  elif command -v apk >/dev/null; then
    apk add --no-cache bubblewrap ca-certificates git python3
  elif command -v dnf >/dev/null; then
    dnf install -y bubblewrap git python3
  else
    echo "amanu: install git, bubblewrap and Python 3.11 or newer in the image first." >&2
    exit 1
  fi
fi
[ -n "$python" ] || python=python3
"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' || {
  echo "amanu: needs Python 3.11 or newer. Add ghcr.io/devcontainers/features/python to the features." >&2
  exit 1
}

"$python" -m venv "$ENVIRONMENT"
pip="$ENVIRONMENT/bin/pip install --no-cache-dir --disable-pip-version-check"
if [ -n "${WHEEL:-}" ]; then
  $pip "$WHEEL"
elif [ -f daemon/requirements.txt ]; then
  $pip --require-hashes --no-deps --only-binary=:all: --requirement daemon/requirements.txt
  $pip --no-deps --no-index daemon/*.whl
else # published: the package's name goes here
  echo "amanu: name a wheel in the option \"wheel\", or make this folder with \"make feature\" in Amanu's source tree." >&2
  exit 1
fi
ln -sf "$ENVIRONMENT/bin/amanu" "$BIN/amanu"
amanu=$("$BIN/amanu" --version)
echo "$amanu is installed."
