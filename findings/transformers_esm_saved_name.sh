#!/usr/bin/env bash
# transformers 4.57 saves the rotary frequencies of an ESM-2 per layer (layer.0, layer.1, ...); transformers 5 keeps
# them once and renames on loading and saving. One would guess that a folder which 5.24 loads and saves has the old or
# the new names. It has one tensor "encoder.layer.*.attention.self.rotary_embeddings.inv_freq": the pattern of the
# renaming, with the star. 4.57 finds no frequencies and computes its own. If they were saved as float16, the
# output changes.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment four torch==2.15.0 transformers==4.57.6 numpy==2.4.6
environment five torch==2.15.0 transformers==5.24.0 numpy==2.4.6
cat >make.py <<'PY'
import torch
from transformers import EsmConfig, EsmModel

torch.manual_seed(0)
config = EsmConfig(vocab_size=8, hidden_size=32, intermediate_size=32, num_hidden_layers=2, num_attention_heads=1,
                   position_embedding_type="rotary", pad_token_id=1, mask_token_id=2, initializer_range=0.3)
EsmModel(config, add_pooling_layer=False).half().save_pretrained("made")
PY
cat >load.py <<'PY'
import sys

import torch
import transformers
from safetensors import safe_open

folder, *saved = sys.argv[1:]
with safe_open(f"{folder}/model.safetensors", "pt") as file:
    print("file", *sorted(name for name in file.keys() if "inv_freq" in name))
model, report = transformers.EsmModel.from_pretrained(
    f"./{folder}", add_pooling_layer=False, dtype=torch.float32, output_loading_info=True)
with torch.no_grad():
    output = model.eval()(torch.arange(3, 8).repeat(1, 40)).last_hidden_state
torch.save(output, f"{folder}-{transformers.__version__}.pt")
print(transformers.__version__, "missing", len(report["missing_keys"]), "unexpected", len(report["unexpected_keys"]))
for path in saved:
    model.save_pretrained(path)
PY
four/bin/python make.py 2>/dev/null
four/bin/python load.py made 2>/dev/null | tee made-four.txt
five/bin/python load.py made saved 2>/dev/null | tee made-five.txt
five/bin/python load.py saved 2>/dev/null | tee saved-five.txt
four/bin/python load.py saved 2>/dev/null | tee saved-four.txt
name=attention.self.rotary_embeddings.inv_freq
for log in made-four made-five; do
  grep -qxF "file encoder.layer.0.$name encoder.layer.1.$name" $log.txt
  grep -q "missing 0 unexpected 0" $log.txt
done
grep -qxF "file encoder.layer.*.$name" saved-five.txt
grep -q "missing 0 unexpected 0" saved-five.txt
grep -q "missing 2 unexpected 1" saved-four.txt
four/bin/python - <<'PY'
import torch

made = torch.load("made-4.57.6.pt")
for name in ("made-5.24.0", "saved-5.24.0", "saved-4.57.6"):
    difference = (torch.load(f"{name}.pt") - made).abs().max().item()
    print(f"{name} differs from made-4.57.6 by {difference:.1e}")
    assert difference > 1e-3 if name == "saved-4.57.6" else difference < 1e-4
PY
