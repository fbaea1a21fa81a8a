#!/usr/bin/env bash
# The checks that need no run: lint.sh BIN, where BIN holds ruff, mypy and lint-imports. All of them run, then it fails.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin="${1:-.venv/bin}"
failed=0

check() {
  local output
  if output=$("$bin/$@" 2>&1); then
    printf 'ok      %s\n' "$*"
  else
    printf 'FAILED  %s\n%s\n' "$*" "$output"
    failed=1
  fi
}

check ruff check
check ruff format --check
check mypy
check lint-imports
exit "$failed"
