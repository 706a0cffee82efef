#!/usr/bin/env bash
# ../dist/amanu.vsix from what was built. With SOURCE_DATE_EPOCH two are equal to the byte: no zone, locale or umask of the
# machine counts.
set -eu
cd "$(dirname "$0")"
export TZ=UTC LC_ALL=C
mkdir -p ../dist
chmod -R u=rwX,go=rX dist media package.json README.md LICENSE ThirdPartyNotices.txt
vsce package --no-dependencies --allow-missing-repository --out ../dist/amanu.vsix
