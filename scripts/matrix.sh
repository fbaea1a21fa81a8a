#!/usr/bin/env bash
# What depends on the version of Spark, by the versions between the oldest and the newest, which `make test` has.
#   matrix.sh "4.1 4.2" [PATH ...]     environments .venv-spark41, .venv-spark42; paths of tests, or those below
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions="${1:?versions of PySpark, as in \"4.1 4.2\"}"
shift
paths=("$@")
[ ${#paths[@]} -gt 0 ] || paths=(tests/api/sql tests/api/delta tests/spark/sessions)

failed=0
for version in $versions; do
  dir=".venv-spark${version//./}"
  requirements="$dir.txt"
  # In the requirements' own folder, so that what they name is found.
  sed "s/^pyspark==.*/pyspark==$version.*/" requirements/spark40.txt >"requirements/$requirements"
  PYTHON="${PYTHON:-python3}" scripts/install.sh venv "$dir" "requirements/$requirements" || failed=1
  rm -f "requirements/$requirements"
  printf 'PySpark %s\n' "$version"
  "$dir/bin/python" -m pytest -q "${paths[@]}" || failed=1
done
exit "$failed"
