#!/usr/bin/env bash
# Run by test.sh as root of a fresh Debian: the first steps of a new user, in small.
set -euxo pipefail
cd /attend
export DEBIAN_FRONTEND=noninteractive
# The packages must work without the recommended ones.
install=(apt-get install -qq -y --no-install-recommends)
"${install[@]}" ./attend_*.deb pocketsphinx-en-us man-db >/dev/null

# The demo, with a model and data that take seconds.
attend doctor
attend data cmudict --out data
for part in train valid test; do
  head -n 200 data/$part.tsv >part.tsv
  mv part.tsv data/$part.tsv
done
attend train --data data --out model --recipe demo --set model.hidden=16 --set model.embedding=8 \
  --set train.steps=20
attend evaluate model --data data/test.tsv --json
test "$(printf 'economique\nbahdanau\n' | attend predict model --beam 5 | wc -l)" = 2
attend explain model economique --out economique.png
attend explain model economique --out economique.html
test -s economique.png -a -s economique.html
grep -x 'ExecStart=/usr/bin/attend serve --config /etc/attend/serve.toml' /usr/lib/systemd/system/attend.service
test -s /usr/lib/systemd/system/attend.socket
man attend-data-images | grep 'attend data images --images' >/dev/null
test -s /usr/share/bash-completion/completions/attend -a -s /usr/share/zsh/vendor-completions/_attend

# The programs of the README, by CMake and by pkg-config.
"${install[@]}" ./libattend-dev_*.deb g++ make cmake pkg-config >/dev/null
cmake -S tests/consumer -B consumer
cmake --build consumer
consumer/operator
test "$(consumer/answer | wc -l)" = 2
read -ra flags < <(pkg-config --cflags --libs attend)
for program in answer operator; do
  g++ -std=c++20 consumer/$program.cpp -o $program "${flags[@]}"
done
./operator
test "$(./answer | wc -l)" = 2
