#!/bin/bash
# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
#
# Builds the Debian packages in $B/deb from a copy of the tree, and has lintian look at them. Nothing is left in
# the tree itself.
set -eu
cd "$(dirname "$0")/../.."
B=${B:-build}
version=$(dpkg-parsechangelog -S Version)
deb=$B/deb
src=$deb/longhaul-$version

rm -rf "$src" "$deb"/*.deb "$deb"/*.changes "$deb"/*.buildinfo
mkdir -p "$src"
tar -c --exclude=./build --exclude="./$B" --exclude=./.git . | tar -x -C "$src"
(cd "$src" && dpkg-buildpackage -us -uc -b) >"$deb/build.log" 2>&1 || {
	tail -n 30 "$deb/build.log" >&2
	echo "build.sh: the packages cannot be built; $deb/build.log has all of it" >&2
	exit 1
}
rm -rf "$src"
ls "$deb"/*.deb
if command -v lintian >/dev/null; then
	lintian --fail-on error,warning --allow-root "$deb"/*.changes
	echo "lintian: clean"
fi
