#!/usr/bin/env bash
# Positions that restart at 0 in a row mean packed sequences; the masks of transformers 5 keep them apart. One would
# guess that the logits of one forward pass do not depend on use_cache. With use_cache=False they equal the logits of
# the separate sequences. With use_cache=True, the default, the second sequence attends to the first, without a
# warning. A mask of ones, as tokenizers return for unpadded texts, has the same effect without a cache.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python torch==2.15.0 transformers==5.24.0 numpy==2.4.6
python/bin/python - <<'PY'
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
model = LlamaForCausalLM(LlamaConfig(vocab_size=20, hidden_size=16, intermediate_size=16, num_hidden_layers=1,
                                     num_attention_heads=2, initializer_range=0.5)).eval()
tokens = torch.tensor([[3, 4, 5, 6, 7, 8]])
positions = torch.tensor([[0, 1, 2, 0, 1, 2]])
cases = {"default": {}, "use_cache=True": {"use_cache": True}, "use_cache=False": {"use_cache": False},
         "use_cache=False, mask of ones": {"use_cache": False, "attention_mask": torch.ones_like(tokens)}}
for attention in ("eager", "sdpa"):
    model.set_attn_implementation(attention)
    with torch.no_grad():
        alone = model(tokens[:, 3:]).logits
        for name, options in cases.items():
            packed = model(tokens, position_ids=positions, **options).logits[:, 3:]
            difference = (packed - alone).abs().max().item()
            print(f"{attention}, {name}: the packed second sequence differs from itself alone by {difference:.1e}")
            assert difference < 1e-5 if name == "use_cache=False" else difference > 0.1
PY
