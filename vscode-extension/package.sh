#!/usr/bin/env bash
# ../dist/amanu.vsix from what was built; with a PLATFORM of wheels.py ../dist/amanu-PLATFORM.vsix. With SOURCE_DATE_EPOCH
# two are equal to the byte: no zone, locale or umask of the machine counts.
set -eu
cd "$(dirname "$0")"
export TZ=UTC LC_ALL=C
mkdir -p ../dist
chmod -R u=rwX,go=rX dist media package.json README.md LICENSE ThirdPartyNotices.txt
vsce package ${1:+--target "$1"} --no-dependencies --allow-missing-repository --out "../dist/amanu${1:+-$1}.vsix"
