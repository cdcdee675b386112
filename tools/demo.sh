#!/usr/bin/env bash
# Trains a model that pronounces new words from a dictionary, and the same model without attention, and
# draws the attention of the first. `./dev demo` builds the program and runs this.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
attend=build/release/attend
out=build/demo
words=(attention economique bahdanau cholmondeley tchaikovsky siobhan quinoa nguyen ptolemy worcestershire)

step() { printf '\n== %s\n' "$*"; }

mkdir -p "$out"
step "1. A pronouncing dictionary, split by a hash of the word"
"$attend" data cmudict --out "$out/data"

step "2. Training with attention (Bahdanau et al. 2015), one to five minutes"
"$attend" train --data "$out/data" --out "$out/model" --config recipes/demo.toml --resume &
training=$!
trap 'kill "$training" 2>/dev/null || true' EXIT
# Each better epoch saves its weights, so that the first picture is drawn during training.
until [[ -e $out/model/weights.safetensors ]] || ! kill -0 "$training" 2>/dev/null; do sleep 1; done
if "$attend" explain "$out/model" economique --out "$out/first.png"; then
  printf '\nthe first picture, of what has been learned so far: %s\n\n' "$PWD/$out/first.png"
fi
wait "$training"
trap - EXIT

step "3. The same model without attention, for comparison"
"$attend" train --data "$out/data" --out "$out/model-without-attention" \
  --config recipes/demo.toml --set model.score=none --resume

step "4. Errors on words neither has seen"
"$attend" evaluate "$out/model" --data "$out/data/test.tsv" --json >"$out/with.json"
"$attend" evaluate "$out/model-without-attention" --data "$out/data/test.tsv" --json >"$out/without.json"
python3 tools/error_by_length.py "$out/with.json" "$out/without.json"

step "5. How it would say ten words"
printf '%s\n' "${words[@]}" | "$attend" predict "$out/model" --beam 5 >"$out/words.txt"
printf '%s\n' "${words[@]}" | paste - "$out/words.txt" | awk -F'\t' '{ printf "%-16s %s\n", $1, $2 }'

step "6. Which letters each sound came from"
"$attend" explain "$out/model" economique --beam 5 --out "$out/economique.png"
"$attend" explain "$out/model" economique --beam 5 --out "$out/economique.html"
"$attend" explain "$out/model" economique --beam 5
printf '\npicture: %s\npage:    %s\n' "$PWD/$out/economique.png" "$PWD/$out/economique.html"
printf '\nto type words of your own, and to see both models beside each other:\n  %s\n' \
  "$attend serve $out/model $out/model-without-attention --examples $out/data/test.tsv"
printf 'and open http://localhost:8080/ in a browser\n'
