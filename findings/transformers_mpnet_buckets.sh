#!/usr/bin/env bash
# MPNet's configuration has relative_attention_num_buckets, and the table of the bias has that many rows. One would
# guess that 64 buckets separate more distances than 32, as in T5. transformers computes the buckets of MPNet with 32
# whatever is configured: the other rows are saved, but no distance reads them and training never changes them.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python torch==2.15.0 transformers==5.24.0 numpy==2.4.6
python/bin/python - 2>/dev/null <<'PY'
import torch
import transformers
from transformers import MPNetConfig, MPNetModel, T5Config, T5EncoderModel

torch.manual_seed(0)
common = dict(vocab_size=16, num_hidden_layers=1, num_layers=1, num_attention_heads=2, num_heads=2,
              relative_attention_num_buckets=64)
mpnet = MPNetModel(MPNetConfig(hidden_size=8, intermediate_size=8, max_position_embeddings=514, **common))
t5 = T5EncoderModel(T5Config(d_model=8, d_kv=4, d_ff=8, **common))
tokens = torch.randint(3, 16, (1, 500))
used = {}
for name, model, parameter in (("mpnet", mpnet, "encoder.relative_attention_bias.weight"),
                               ("t5", t5, "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight")):
    model.eval()(tokens).last_hidden_state.square().mul(torch.rand(500, 8)).sum().backward()
    gradient = dict(model.named_parameters())[parameter].grad
    used[name] = (gradient.shape[0], int((gradient.abs().sum(1) > 0).sum()))
    print(f"transformers {transformers.__version__} {name}: {used[name][0]} buckets, {used[name][1]} with a gradient")
assert used["mpnet"] == (64, 31), used
assert used["t5"][0] == 64 and used["t5"][1] > 60, used
PY
