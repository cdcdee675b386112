#!/usr/bin/env bash
# A folder of NLLB in its older form has a SentencePiece model, and the class knows the 202 languages by their codes.
# One would guess that a source begins with the token of its language, as in transformers 4. Version 5 reads the same
# folder without an error but without the tokens of the languages: eng_Latn becomes <unk>, and so does the language of
# the answer that a caller would give to generate().
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment four transformers==4.57.6 sentencepiece==0.2.3 protobuf==7.36.2 numpy==2.4.6
environment five transformers==5.24.0 sentencepiece==0.2.3 protobuf==7.36.2 numpy==2.4.6
four/bin/python - 2>/dev/null <<'PY'
import pathlib

import sentencepiece

folder = pathlib.Path("nllb")
folder.mkdir()
sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the cat sees a dog", "a dog runs", "Paris is the capital"] * 20), vocab_size=40,
    model_type="bpe", model_prefix=str(folder / "sentencepiece.bpe"), hard_vocab_limit=False, minloglevel=2)
(folder / "tokenizer_config.json").write_text('{"tokenizer_class": "NllbTokenizer", "src_lang": "eng_Latn"}')
PY
cat > split.py <<'PY'
import sys

import transformers

kind = getattr(transformers, sys.argv[1])
tokenizer = kind.from_pretrained("nllb", src_lang="eng_Latn")
tokens = tokenizer.convert_ids_to_tokens(tokenizer("the cat").input_ids)
print(f"transformers {transformers.__version__} {type(tokenizer).__name__}: {tokens}")
assert tokens[-1] == "</s>" and tokens[0] == sys.argv[2], tokens
code = tokenizer.convert_tokens_to_ids("fra_Latn")
assert (code == tokenizer.unk_token_id) == (sys.argv[2] == "<unk>"), code
PY
four/bin/python split.py NllbTokenizer eng_Latn 2>/dev/null
five/bin/python split.py NllbTokenizer '<unk>' 2>/dev/null
