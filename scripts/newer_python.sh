#!/usr/bin/env bash
# The tests without a JVM by a Python that this machine's Debian does not have, in a chroot with Debian unstable's:
#   newer_python.sh 3.14 [PATH ...]
# As root; some 2 GB below ~/.cache/alluvium-unstable, kept for the next call. It tests the commit that is checked out.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
version="${1:?a version, as in 3.14}"
shift
root="${NEWER_PYTHON_DIR:-$HOME/.cache/alluvium-unstable}"
# g++ and Python's headers build what has no wheel for a new Python yet.
packages="python$version,python$version-venv,python$version-dev,python3-venv,g++,cmake,make,git,ca-certificates,default-jre-headless"

[ "$(id -u)" -eq 0 ] || { echo "a chroot needs root" >&2; exit 1; }
command -v debootstrap >/dev/null || { apt-get update -qq && apt-get install -y -qq debootstrap >/dev/null; }
[ -f "$root/.made-$version" ] || {
  debootstrap --variant=minbase --include="$packages" sid "$root" >/dev/null
  touch "$root/.made-$version"
}

# Whatever happens, nothing stays mounted: who removes the folder must not remove the machine's devices.
unmount() { for place in dev/pts dev proc; do mountpoint -q "$root/$place" && umount "$root/$place"; done; return 0; }
trap unmount EXIT
unmount
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /dev/pts "$root/dev/pts"
# How packages are found and trusted is this machine's.
cp /etc/resolv.conf "$root/etc/resolv.conf"
cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/ca-certificates.crt"
for settings in /etc/pip.conf "$HOME/.config/pip/pip.conf"; do
  [ ! -f "$settings" ] || install -D "$settings" "$root/etc/pip.conf"
done

mkdir -p "$root/work"
[ -d "$root/work/alluvium" ] || git clone -q . "$root/work/alluvium"
git -C "$root/work/alluvium" fetch -q "$PWD" HEAD && git -C "$root/work/alluvium" checkout -q --detach FETCH_HEAD
chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 \
  bash -c 'cd /work/alluvium && exec scripts/pythons.sh "$@"' pythons "$version" "$@"
