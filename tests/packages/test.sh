#!/usr/bin/env bash
# Installs the packages of a folder into a fresh Debian, from the mirrors that apt takes here, and uses them
# there: `tests/packages/test.sh build/package`. Nothing of this system can replace a missing dependency.
set -euo pipefail
packages=("$(realpath "$1")"/*.deb)
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
sources=$(mktemp)
trap 'rm -f "$sources"' EXIT
# shellcheck disable=SC2016
apt-get indextargets --format 'deb $(REPO_URI) $(RELEASE) $(COMPONENT)' 'Created-By: Packages' 'Origin: Debian' |
  sort -u >"$sources"
release=$(sed -n 's/^VERSION_CODENAME=//p' /etc/os-release)
# shellcheck disable=SC2016
mmdebstrap --quiet --variant=apt --format=null --dpkgopt=force-unsafe-io \
  --customize-hook='mkdir -p "$1"/attend/tests/consumer' \
  --customize-hook="copy-in ${packages[*]} README.md tests/packages/use.sh /attend" \
  --customize-hook='copy-in tests/consumer/CMakeLists.txt tests/consumer/pairs.tsv /attend/tests/consumer' \
  --customize-hook='chroot "$1" /attend/use.sh' \
  "$release" /dev/null "$sources"
