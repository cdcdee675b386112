#!/usr/bin/env bash
# A text of M2M100 begins with its language, __en__. One would guess that decoding with skip_special_tokens=True drops
# it, as NLLB and mBART do and the documentation of M2M100 shows. M2M100Tokenizer declares the languages as special
# tokens only if "en" is not in "__en__", which never holds. If no saved list has them, as after making a tokenizer from
# its two files, also saved and loaded, each translation begins with __fr__ in transformers 4.57 and 5.24.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment four transformers==4.57.6 sentencepiece==0.2.3 protobuf==7.36.2 numpy==2.4.6
environment five transformers==5.24.0 sentencepiece==0.2.3 protobuf==7.36.2 numpy==2.4.6
four/bin/python - 2>/dev/null <<'PY'
import json

import sentencepiece

sentencepiece.SentencePieceTrainer.train(
    sentence_iterator=iter(["the cat sees a dog", "a dog runs", "Paris is the capital"] * 20), vocab_size=40,
    model_type="bpe", model_prefix="sentencepiece", hard_vocab_limit=False, minloglevel=2)
pieces = sentencepiece.SentencePieceProcessor(model_file="sentencepiece.model")
names = ["<s>", "<pad>", "</s>", "<unk>", *(pieces.id_to_piece(i) for i in range(3, pieces.get_piece_size()))]
open("vocab.json", "w").write(json.dumps({name: i for i, name in enumerate(names)}))
PY
cat > decode.py <<'PY'
import transformers

made = transformers.M2M100Tokenizer("vocab.json", "sentencepiece.model", src_lang="en", tgt_lang="fr")
made.save_pretrained(f"saved{transformers.__version__}")
loaded = transformers.M2M100Tokenizer.from_pretrained(f"saved{transformers.__version__}")
for name, tokenizer in (("made", made), ("loaded", loaded)):
    text = tokenizer.decode(tokenizer("the cat").input_ids, skip_special_tokens=True)
    print(f"transformers {transformers.__version__}, {name}: {text!r}, special tokens: {tokenizer.all_special_tokens}")
    assert text == "__en__ the cat" and "__en__" not in tokenizer.all_special_tokens
PY
four/bin/python decode.py 2>/dev/null
five/bin/python decode.py 2>/dev/null
