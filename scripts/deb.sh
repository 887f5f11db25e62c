#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# scripts/deb.sh: builds the Debian packages in build/deb from a copy of the sources (`./x deb`). The
# version, the SONAME and the maintainer (DEBFULLNAME and DEBEMAIL, or those of git) come into
# packaging/debian here.
set -euo pipefail
cd "$(dirname "$0")/.."

version=$(sed -n "s/^\tversion: '\(.*\)',$/\1/p" meson.build)
case "$version" in
0.*) so=${version%.*} ;;
*) so=${version%%.*} ;;
esac
name=${DEBFULLNAME:-$(git config user.name || echo vidmm)}
email=${DEBEMAIL:-$(git config user.email || echo vidmm@localhost)}
date=$(git log -1 --format=%aD 2>/dev/null || date -R)
source=build/deb/vidmm-$version

rm -rf build/deb
mkdir -p "$source"
tar -c --exclude=./build --exclude=./.git --exclude=__pycache__ . | tar -x -C "$source"
cp -r packaging/debian "$source/debian"
for file in "$source/debian"/*@SO@*; do
	mv "$file" "${file//@SO@/$so}"
done
sed -i "s/@SO@/$so/; s/@MAINTAINER@/$name <$email>/" "$source/debian/control"
cat >"$source/debian/changelog" <<END
vidmm ($version) unstable; urgency=medium

  * Built from the sources; CHANGELOG.md lists the changes.

 -- $name <$email>  $date
END
cd "$source"
dpkg-buildpackage --build=binary --no-sign
