#!/usr/bin/env bash
# The wheel as a user gets it: built, installed into a clean environment without pyspark, imported, a table opened.
#   wheel_check.sh PYTHON   (PYTHON: of an environment that has hatchling)
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${1:-.venv/bin/python}"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

"$python" -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation --wheel-dir "$work/dist" . </dev/null
wheel=$(ls "$work"/dist/alluvium-*.whl)
"$python" -m venv "$work/venv"
"$work/venv/bin/python" -m pip install --quiet --disable-pip-version-check --constraint requirements/core.txt "$wheel" </dev/null
"$work/venv/bin/python" -m pip check --disable-pip-version-check

# From an empty folder, so that only what the wheel brought can be imported.
cd "$work"
"$work/venv/bin/python" "$OLDPWD/scripts/wheel_check.py" "$work"
"$work/venv/bin/alluvium" --help >/dev/null
echo "$(basename "$wheel"): builds, installs without pyspark, opens a table"
