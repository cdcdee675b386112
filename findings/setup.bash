# For all scripts of this folder: a temporary folder and virtual environments in it.
set -euo pipefail
export HF_HUB_OFFLINE=1 TOKENIZERS_PARALLELISM=false PIP_DISABLE_PIP_VERSION_CHECK=1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

# environment NAME PACKAGE...: makes $folder/NAME with these packages and prints their versions.
environment() {
  local name=$1
  shift
  python3 -m venv "$name"
  "$name/bin/pip" install --quiet "$@"
  printf 'packages: %s\n' "$*"
}
