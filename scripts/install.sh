#!/usr/bin/env bash
# Installs what a target needs; says nothing and takes no time when everything is there.
#   install.sh system                       Java 17 and Python's venv module, by apt where they are missing
#   install.sh venv DIR REQUIREMENTS.txt    a virtual environment with pinned packages and this project, editable
#   install.sh reference                    the engines that judge us, by ../shared/reference/setup, outside the project
#   install.sh readers                      other readers of Delta tables, outside the project
#   install.sh stores                       servers of S3, Azure and HDFS for tests, outside the project
# A stamp inside DIR, named by the hash of its inputs, tells that the environment is up to date.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
python="${PYTHON:-python3}"

say() { printf '\033[2m[install] %s\033[0m\n' "$*" >&2; }
fail() { printf '[install] %s\n' "$*" >&2; exit 1; }

# Java may be anywhere: JAVA_HOME, the PATH, or where Debian puts it.
java_works() {
  local java
  for java in "${JAVA_HOME:+$JAVA_HOME/bin/java}" java; do
    [ -n "$java" ] && "$java" -version >/dev/null 2>&1 && java_major "$java" && return 0
  done
  return 1
}

# PySpark 4 needs Java 17 or newer.
java_major() {
  local major
  major=$("$1" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1)
  [ "${major:-0}" -ge 17 ]
}

apt_install() {
  command -v apt-get >/dev/null || fail "please install $* yourself: there is no apt-get here"
  local root=()
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || fail "please install $* as root: there is no sudo here"
    root=(sudo)
  fi
  say "apt-get install $*"
  "${root[@]}" apt-get update -qq </dev/null >/dev/null
  "${root[@]}" env DEBIAN_FRONTEND=noninteractive \
    apt-get install -y -qq --no-install-recommends "$@" </dev/null >/dev/null
}

# Debian 12 has Java 17; later releases only newer ones.
java_package() {
  apt-cache policy openjdk-17-jre-headless 2>/dev/null | grep -q 'Candidate: [0-9]' &&
    echo openjdk-17-jre-headless || echo default-jre-headless
}

install_system() {
  command -v "$python" >/dev/null || apt_install python3 python3-venv
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' ||
    fail "$python is older than 3.10: name a newer one with PYTHON=..."
  "$python" -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv
  if ! java_works; then
    [ -d /var/lib/apt/lists ] && [ -n "$(ls /var/lib/apt/lists 2>/dev/null)" ] || apt_install ca-certificates
    apt_install "$(java_package)"
    java_works || fail "Java 17 or newer is needed, and apt did not bring it"
  fi
}

install_venv() {
  local dir="$1" requirements="$2" stamp
  stamp="$dir/.installed-$(cat "$requirements" requirements/core.txt requirements/test.txt pyproject.toml | sha256sum | cut -c1-16)"
  [ -f "$stamp" ] && return 0
  say "$dir: packages of $requirements"
  [ -x "$dir/bin/python" ] || "$python" -m venv "$dir"
  # What is imported is compiled when it is: most of these packages' files never are.
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-compile --requirement "$requirements" </dev/null
  # The requirements hold hatchling, so building needs no second download of it.
  "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps --editable . </dev/null
  rm -f "$dir"/.installed-*
  touch "$stamp"
}

# Where the tests look for them: REFERENCE_DIR, by default below the home directory.
install_reference() {
  local setup="${ALLUVIUM_REFERENCE:-../shared/reference}/setup"
  local dir="${REFERENCE_DIR:-$HOME/.cache/alluvium-reference}"
  if [ ! -x "$setup" ]; then
    say "no reference engines: there is no $setup, so tests that need them skip"
    return 0
  fi
  [ -x "$dir/venv/bin/python" ] && [ -f "$dir/jars/.done" ] && return 0
  say "$dir: delta-spark and other engines by $setup"
  "$setup" "$dir" </dev/null >/dev/null
}

# Where the tests look for them: READERS_DIR, by default below the home directory. Who has no network goes without.
install_readers() {
  local dir="${READERS_DIR:-$HOME/.cache/alluvium-readers}" requirements=requirements/readers.txt stamp
  stamp="$dir/.installed-$(sha256sum <"$requirements" | cut -c1-16)"
  [ -f "$stamp" ] && return 0
  say "$dir: packages of $requirements"
  rm -f "$dir"/.installed-*
  if { [ -x "$dir/bin/python" ] || "$python" -m venv "$dir"; } &&
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements" </dev/null; then
    touch "$stamp"
  else
    say "no other readers: they could not be installed, so tests that need them skip"
  fi
}

# Where the tests look for them: STORES_DIR, by default below the home directory. Azurite needs npm; HDFS runs on the
# Hadoop classes of PySpark, whose version its own has.
install_stores() {
  local dir="${STORES_DIR:-$HOME/.cache/alluvium-stores}" requirements=requirements/stores.txt stamp
  stamp="$dir/.installed-$(cat "$requirements" "${BASH_SOURCE[0]}" | sha256sum | cut -c1-16)"
  [ -f "$stamp" ] && return 0
  say "$dir: servers of S3, Azure and HDFS"
  rm -f "$dir"/.installed-*
  if { [ -x "$dir/bin/python" ] || "$python" -m venv "$dir"; } &&
    "$dir/bin/python" -m pip install --quiet --disable-pip-version-check --requirement "$requirements" </dev/null; then
    install_azurite "$dir" || say "no Azurite: there is no npm that can install it, so tests that need it skip"
    install_hdfs "$dir/hdfs" || say "no HDFS: its classes could not be fetched, so tests that need it skip"
    touch "$stamp"
  else
    say "no servers of object stores: they could not be installed, so tests that need them skip"
  fi
}

install_azurite() {
  command -v npm >/dev/null || return 1
  npm install --prefix "$1/azurite" --no-audit --no-fund --no-package-lock --silent azurite@3.35.0 </dev/null >/dev/null
}

# The mini cluster of Hadoop's own tests, and the part of JUnit that it loads.
install_hdfs() {
  local dir="$1" maven="${MAVEN_REPOSITORY:-https://repo1.maven.org/maven2}" jar
  mkdir -p "$dir"
  for jar in \
    org/apache/hadoop/hadoop-client-minicluster/3.5.0/hadoop-client-minicluster-3.5.0.jar \
    org/junit/jupiter/junit-jupiter-api/5.11.4/junit-jupiter-api-5.11.4.jar \
    org/junit/platform/junit-platform-commons/1.11.4/junit-platform-commons-1.11.4.jar \
    org/opentest4j/opentest4j/1.3.0/opentest4j-1.3.0.jar \
    org/apiguardian/apiguardian-api/1.1.2/apiguardian-api-1.1.2.jar; do
    "$python" -c 'import sys, urllib.request as r; r.urlretrieve(*sys.argv[1:])' "$maven/$jar" "$dir/${jar##*/}" || return 1
  done
  touch "$dir/.done"
}

case "${1:-}" in
  system) install_system ;;
  venv) install_venv "${2:?directory}" "${3:?requirements}" ;;
  reference) install_reference ;;
  readers) install_readers ;;
  stores) install_stores ;;
  *) fail "usage: install.sh system | venv DIR REQUIREMENTS | reference | readers | stores" ;;
esac
