#!/usr/bin/env bash
# The checks that need no run: lint.sh BIN, where BIN holds ruff, mypy and lint-imports. All of them run, side by side;
# what they say is shown in order, and if one fails, this does.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin="${1:-.venv/bin}"
said=$(mktemp -d)
trap 'rm -rf "$said"' EXIT
checks=("ruff check" "ruff format --check" "mypy" "lint-imports")
running=()

for check in "${checks[@]}"; do
  # shellcheck disable=SC2086 # a command and its arguments
  "$bin/"$check > "$said/$check" 2>&1 &
  running+=($!)
done

failed=0
for n in "${!checks[@]}"; do
  if wait "${running[$n]}"; then
    printf 'ok      %s\n' "${checks[$n]}"
  else
    printf 'FAILED  %s\n%s\n' "${checks[$n]}" "$(cat "$said/${checks[$n]}")"
    failed=1
  fi
done
exit "$failed"
