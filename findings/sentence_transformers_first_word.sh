#!/usr/bin/env bash
# With include_prompt=False the tokens of the prompt are not part of a text's vector. One would guess that all tokens of
# the text are. sentence-transformers 6.2 counts the tokens of the prompt by itself. A byte-level BPE, as GPT-2 and
# ModernBERT have, splits the blank at the end of "query: " off, but joins it with a word that follows. So the prompt
# counts one token too many, and the first word of each text is left out. A text of one word has the vector zero.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment six torch==2.15.0 transformers==5.24.0 sentence-transformers==6.2.0 tokenizers==0.23.3 numpy==2.4.6
six/bin/python - 2>/dev/null <<'PY'
import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer import modules
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2Model, PreTrainedTokenizerFast

splitter = Tokenizer(models.BPE())
splitter.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
splitter.decoder = decoders.ByteLevel()
splitter.train_from_iterator(["query: cat runs"] * 9, trainers.BpeTrainer(
    vocab_size=300, special_tokens=["<pad>"], initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
    show_progress=False))
tokenizer = PreTrainedTokenizerFast(tokenizer_object=splitter, pad_token="<pad>")
torch.manual_seed(0)
GPT2Model(GPT2Config(vocab_size=len(tokenizer), n_embd=16, n_layer=1, n_head=1)).save_pretrained("gpt2")
tokenizer.save_pretrained("gpt2")
model = SentenceTransformer(modules=[modules.Transformer("gpt2"), modules.Pooling(16, include_prompt=False)],
                            prompts={"query": "query: "})
print("the prompt:", tokenizer.tokenize("query: "))
for text in ("cat", "cat runs"):
    print(f"after the prompt, {text}:", tokenizer.tokenize("query: " + text))
one, two = (torch.tensor(model.encode(text, prompt_name="query")) for text in ("cat", "cat runs"))
tokens = model.encode("cat runs", prompt_name="query", output_value="token_embeddings")
print("vector of cat:", one.abs().max().item())
print("cat runs differs from the vector of its last token by", (two - tokens[-1]).abs().max().item(),
      "and from the mean of its two tokens by", (two - tokens[-2:].mean(0)).abs().max().item())
assert one.abs().max() == 0 and torch.allclose(two, tokens[-1]) and not torch.allclose(two, tokens[-2:].mean(0))
PY
