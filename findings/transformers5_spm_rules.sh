#!/usr/bin/env bash
# A SentencePiece file holds the rules that normalise a text before it is split, here nmt_nfkc as in DeBERTa-v2 and v3.
# One would guess that a folder with spm.model has the same tokens in transformers 4.57 and 5.24, since both read that
# file. Version 5 takes the pieces from it and normalises by NFC instead: full-width letters and ligatures, which the
# file maps to plain letters, become unknown.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment four transformers==4.57.6 sentencepiece==0.2.1 protobuf==6.33.0
environment five transformers==5.24.0 sentencepiece==0.2.1 protobuf==6.33.0
cat >read.py <<'PY'
import pathlib
import sys

import sentencepiece
import transformers
from transformers import DebertaV2TokenizerFast

folder = pathlib.Path("model")
if not folder.exists():
    folder.mkdir()
    words = "final offer of first files and flat fields for five fish".split()
    pathlib.Path("text").write_text("\n".join(" ".join(words[i % 11] for i in range(k, k + 4)) for k in range(200)))
    sentencepiece.SentencePieceTrainer.train(
        input="text", model_prefix=str(folder / "spm"), vocab_size=28, pad_id=0, bos_id=1, eos_id=2, unk_id=3,
        pad_piece="[PAD]", bos_piece="[CLS]", eos_piece="[SEP]", unk_piece="[UNK]", user_defined_symbols=["[MASK]"],
        minloglevel=2)
    (folder / "config.json").write_text('{"model_type": "deberta-v2"}')
tokenizer = DebertaV2TokenizerFast.from_pretrained(str(folder))
pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spm.model"))
same = {}
for name, text in (("plain", "final files"), ("ligature", "\ufb01nal \ufb01les"),
                   ("full width", "\uff46\uff49\uff56\uff45 fish")):
    got = tokenizer.tokenize(text)
    wanted = pieces.encode(text, out_type=str)
    same[name] = got == wanted
    print(f"transformers {transformers.__version__} {name}: {' '.join(got)} | spm.model: {' '.join(wanted)}")
assert same == {"plain": True, "ligature": sys.argv[1] == "4", "full width": sys.argv[1] == "4"}, same
PY
four/bin/python read.py 4
five/bin/python read.py 5
