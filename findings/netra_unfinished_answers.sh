#!/usr/bin/env bash
# netra-transliterate writes Khmer words by beam search, with a beam of 3 by default. One would guess that a search
# returns answers that the model has ended. The search also compares hypotheses that have no end yet. A hypothesis is
# more probable than its continuations. So the default answer to some words is the beginning of the answer of greedy
# search, without the last letter.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python tensorflow==2.20.0 keras==3.15.1 khmerspell==0.1.1 Levenshtein==0.27.5 flask==3.1.3 \
  netra-transliterate==1.0.1 numpy==2.4.6
TF_CPP_MIN_LOG_LEVEL=3 python/bin/python - <<'PY'
from importlib import metadata

from khmer_transliterator._inference import Transliterator

print("netra-transliterate", metadata.version("netra-transliterate"), "keras", metadata.version("keras"))
model = Transliterator()
model._load()
end = model._khm_tokenizer.word_index["\n"]
for word in ("trott", "packard"):
    greedy = model.transliterate(word, beam_width=1)
    usual = model.transliterate(word)
    beams = model._beam_search(model._encode(word), 3, 32)
    best = max(beams, key=lambda each: each["prob"])
    print(f"{word}: greedy search {greedy}, by default {usual}, "
          f"which {'ends' if best['seq'][-1] == end else 'has no end'} with probability {best['prob']:.3f}")
    assert greedy.startswith(usual) and len(usual) < len(greedy) and best["seq"][-1] != end
PY
