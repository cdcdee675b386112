#!/usr/bin/env bash
# Metaspace with prepend_scheme "first", as in models like Llama and T5, puts a mark before a text's first word.
# A normaliser that strips blanks runs before, so one would guess that " a b" and "a b" give the same tokens. They
# do not: "first" means the start of the original text, and if the normaliser drops that character, no word is first.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python tokenizers==0.23.3
python/bin/python - <<'PY'
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers

pieces = [("<unk>", 0.0), ("▁a", -1.0), ("a", -2.0), ("▁b", -1.0), ("b", -2.0), ("▁", -3.0)]
tokenizer = Tokenizer(models.Unigram(pieces, unk_id=0))
tokenizer.normalizer = normalizers.Strip()
tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first")
found = {text: tokenizer.encode(text).tokens for text in ("a b", "a b ", " a b")}
print(found)
assert found["a b"] == found["a b "] == ["▁a", "▁b"]
assert found[" a b"] == ["a", "▁b"]
PY
