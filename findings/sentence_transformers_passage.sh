#!/usr/bin/env bash
# encode_document takes the model's first prompt of "document", "passage" and "corpus", says its documentation. One
# would guess that a model with the prompts "query: " and "passage: ", as E5 has them, puts "passage: " before its
# documents. sentence-transformers 6.2 gives every model an empty prompt "document", and takes that one. So documents
# get no prompt although queries do, without a warning; passage and corpus are never used.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment six torch==2.15.0 transformers==5.24.0 sentence-transformers==6.2.0 numpy==2.4.6
six/bin/python - 2>/dev/null <<'PY'
import json
import pathlib

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from transformers import BertConfig, BertModel

words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "query", "passage", ":", "cat"]
folder = pathlib.Path("bert")
torch.manual_seed(0)
BertModel(BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=1, num_attention_heads=1,
                     intermediate_size=16)).save_pretrained(folder)
(folder / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
(folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "BertTokenizer"}))
model = SentenceTransformer(modules=[modules.Transformer(str(folder)), modules.Pooling(16)],
                            prompts={"query": "query: ", "passage": "passage: "})
print("prompts:", model.prompts)
pairs = {"encode_query and the prompt query": (model.encode_query("cat"), model.encode("cat", prompt_name="query")),
         "encode_document and the prompt passage": (model.encode_document("cat"),
                                                    model.encode("cat", prompt_name="passage")),
         "encode_document and no prompt": (model.encode_document("cat"), model.encode("cat"))}
differences = []
for name, (one, other) in pairs.items():
    differences.append(float(abs(one - other).max()))
    print(f"{name} differ by {differences[-1]:.3g}")
assert differences[0] == 0 and differences[1] > 1e-3 and differences[2] == 0
PY
