#!/usr/bin/env bash
# A BERT scores pairs of texts; transformers 4.57 saved its tokenizer as PreTrainedTokenizerFast. One would guess that
# transformers 5 reads the folder as 4.57 does. It gives no token_type_ids, since the folder has no model_input_names
# and the default of the class has changed. The second text counts as part of the first, and every score changes
# without a warning.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment four torch==2.15.0 transformers==4.57.6 numpy==2.4.6
environment five torch==2.15.0 transformers==5.24.0 numpy==2.4.6
cat >make.py <<'PY'
import torch
from tokenizers import Tokenizer, models, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast

torch.manual_seed(0)
words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d"]
tokenizer = Tokenizer(models.WordPiece({word: i for i, word in enumerate(words)}, unk_token="[UNK]"))
tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
tokenizer.post_processor = processors.TemplateProcessing(
    single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]",
                        sep_token="[SEP]", mask_token="[MASK]").save_pretrained("pairs")
config = BertConfig(vocab_size=len(words), hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
                    intermediate_size=32, num_labels=1, initializer_range=1.0)
BertForSequenceClassification(config).save_pretrained("pairs")
PY
cat >score.py <<'PY'
import transformers
from transformers import AutoModelForSequenceClassification, AutoTokenizer

tokenizer, model = (kind.from_pretrained("pairs") for kind in (AutoTokenizer, AutoModelForSequenceClassification))
given = tokenizer("a b", "c d", return_tensors="pt")
print(transformers.__version__, ",".join(sorted(given)), round(model.eval()(**given).logits.item(), 4))
PY
four/bin/python make.py
four/bin/python score.py 2>/dev/null | tee four.txt
five/bin/python score.py 2>/dev/null | tee five.txt
grep -q "4.57.6 attention_mask,input_ids,token_type_ids" four.txt
grep -q "5.24.0 attention_mask,input_ids " five.txt
[[ $(cut -d' ' -f3 four.txt) != $(cut -d' ' -f3 five.txt) ]]
