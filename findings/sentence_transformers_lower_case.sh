#!/usr/bin/env bash
# A sentence encoder made with do_lower_case=True reads texts in lower case. One would guess that it still does after
# save_pretrained and loading. sentence-transformers 6.2 writes no do_lower_case, but Lowercase in tokenizer.json.
# transformers 5 replaces this normaliser by the one of the tokenizer's class. So the loaded model distinguishes "CAT"
# from "cat", and its vectors are different.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment five torch==2.15.0 transformers==5.24.0 sentence-transformers==6.2.0 numpy==2.4.6
five/bin/python - <<'PY'
import json
import pathlib

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from transformers import BertConfig, BertModel

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "cat", "CAT"]
folder = pathlib.Path("bert")
torch.manual_seed(0)
BertModel(BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=1,
                     intermediate_size=16)).save_pretrained(folder)
(folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
(folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer", "do_lower_case": False}))
made = SentenceTransformer(modules=[modules.Transformer(str(folder), do_lower_case=True), modules.Pooling(16)])
made.save_pretrained("saved")
loaded = SentenceTransformer("saved")
print("sentence_bert_config.json has do_lower_case:",
      "do_lower_case" in json.loads(pathlib.Path("saved/sentence_bert_config.json").read_text()))
differences = [float(abs(model.encode("cat") - model.encode("CAT")).max()) for model in (made, loaded)]
print(f"cat and CAT differ by {differences[0]:.3g} as made, by {differences[1]:.3g} after loading")
assert differences[0] == 0 and differences[1] > 1e-3
PY
