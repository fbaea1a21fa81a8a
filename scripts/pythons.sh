#!/usr/bin/env bash
# The tests without a JVM, by versions of Python and of the libraries that nothing of the suite has.
#   pythons.sh "3.10 3.12 3.13 oldest pandas3" [PATH ...]
# A number is a Python of that version, with the libraries that the project pins; `oldest` the oldest of what
# pyproject.toml allows, on the oldest Python; `pandas3` the newest pandas, which PySpark warns about. A Python that this
# machine does not have is told and left out. Environments are .venv-py310, ..., .venv-oldest, .venv-pandas3.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
versions="${1:?versions, as in \"3.10 3.12 oldest\"}"
shift
paths=("$@")
marks="not spark and not connect and not cluster and not interop and not conformance and not slow"

# The Python of a version: on the PATH, or where pyenv keeps it.
find_python() {
  local found
  for found in "python$1" "$HOME/.pyenv/versions/$1".*/bin/python; do
    "$found" -c "import sys; sys.exit('%d.%d' % sys.version_info[:2] != '$1')" 2>/dev/null && echo "$found" && return 0
  done
  return 1
}

# What pyproject.toml asks for at least, as pins: "numpy>=1.26" becomes "numpy==1.26.*".
oldest() {
  sed -n '/^dependencies = \[/,/^\]/s/^ *"\([a-z]*\)>=\([0-9.]*\)",*/\1==\2.*/p' pyproject.toml
  sed -n 's/^\(pandas\|polars\|duckdb\|sketches\|iceberg\) = \["\([a-z]*\)>=\([0-9.]*\)"\]/\2==\3.*/p' pyproject.toml |
    sed 's/^pyiceberg==/pyiceberg[sql-sqlite]==/'
}

failed=0
for version in $versions; do
  python=3.11 requirements="requirements/.matrix-$version.txt" dir=".venv-${version/3./py3}"
  case "$version" in
    oldest)
      python=3.10
      { oldest; grep -vE '^(-r|#|pandas|polars|duckdb|datasketches|pyiceberg)' requirements/test.txt; } >"$requirements"
      echo 'pyspark==4.0.*' >>"$requirements"
      ;;
    pandas3) sed 's/^pandas==.*/pandas>=3/' requirements/test.txt >"$requirements" && echo 'pyspark==4.3.*' >>"$requirements" ;;
    *) python="$version"; cp requirements/dev.txt "$requirements" ;;
  esac
  if ! found=$(find_python "$python"); then
    printf '%s: no Python %s on this machine (scripts/newer_python.sh %s brings it)\n' "$version" "$python" "$python"
    rm -f "$requirements"
    continue
  fi
  PYTHON="$found" scripts/install.sh venv "$dir" "$requirements" || failed=1
  rm -f "$requirements"
  printf '%s: %s\n' "$version" "$("$dir/bin/python" -c 'import sys, numpy, pandas, pyarrow; print("Python", sys.version.split()[0], "pyarrow", pyarrow.__version__, "numpy", numpy.__version__, "pandas", pandas.__version__)')"
  "$dir/bin/python" -m pytest -q -p no:cacheprovider -m "$marks" "${paths[@]}" || failed=1
done
exit "$failed"
