#!/usr/bin/env bash
# transformers 5 lets a program register an attention of its own, with a function for its masks, and select it by name.
# One would guess that a model without attention functions refuses the name, as it refuses "sdpa", or keeps its own
# attention unchanged. BLOOM and MPNet take the name and never call the attention. They add the masks of the registered
# mask function to their scores: with sdpa_mask of transformers itself, which makes bool masks, results change without a
# warning.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python torch==2.15.0 transformers==5.24.0 numpy==2.4.6
python/bin/python - <<'PY'
import torch
import transformers
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

calls = []
sdpa = transformers.modeling_utils.ALL_ATTENTION_FUNCTIONS["sdpa"]
AttentionInterface.register("own", lambda *rows, **options: calls.append(1) or sdpa(*rows, **options))
AttentionMaskInterface.register("own", sdpa_mask)

SMALL = {"vocab_size": 50, "hidden_size": 32, "num_attention_heads": 4}
MODELS = {"Bloom": ("BloomForCausalLM", SMALL | {"n_layer": 2, "n_head": 4}),
          "MPNet": ("MPNetModel", SMALL | {"num_hidden_layers": 2, "intermediate_size": 48}),
          "Llama": ("LlamaForCausalLM", SMALL | {"num_hidden_layers": 2, "intermediate_size": 48})}
tokens = torch.arange(3, 15).view(2, 6)
mask = torch.tensor([[1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 0, 0]])
for name, (architecture, options) in MODELS.items():
    kind = getattr(transformers, architecture)
    torch.manual_seed(0)
    eager = kind._from_config(getattr(transformers, f"{name}Config")(**options), attn_implementation="eager").eval()
    found = []
    for attention in ("eager", "own"):
        config = getattr(transformers, f"{name}Config")(**options)
        model = kind._from_config(config, attn_implementation=attention).eval()
        model.load_state_dict(eager.state_dict())
        calls.clear()
        with torch.no_grad():
            found.append(model(tokens, attention_mask=mask)[0][mask > 0])
    difference = ((found[0] - found[1]).abs().max() / found[0].abs().max()).item()
    try:
        kind._from_config(getattr(transformers, f"{name}Config")(**options), attn_implementation="sdpa")
        refused = "taken"
    except ValueError:
        refused = "refused"
    print(f'{name}: "sdpa" is {refused}; "own" is taken, called {len(calls)} times, and differs from eager by '
          f"{difference:.0e} of the largest output")
    assert (refused, len(calls)) == (("taken", 2) if name == "Llama" else ("refused", 0))
    assert difference < 1e-5 if name == "Llama" else difference > 1e-3
PY
