#!/usr/bin/env python3
"""Compares sentence encoders, tokenizers and exports with transformers and sentence-transformers; a row of ./dev conform.

    PYTHON tools/conform_encoders.py [--program build/release/attend] [--seed N] [--count N] [--only KIND]

PYTHON needs transformers (4 or 5), sentence-transformers (5 or 6) and sentencepiece. For each case, the library saves a
tiny random folder:

- a sentence encoder with a limit, poolings, layers, a cut and prompts, and its vectors as bytes and signs;
- a tokenizer with contradictory flags in tokenizer_config.json and tokenizer.json;
- a translator with added tokens.

`attend import` reads the folder. Vectors or tokens of random texts are compared with the library's. Then `attend
export` writes the model, and the library reads it and computes model(**tokenizer(text)). If an import is refused
because of a key, the case agrees only if this refusal is expected; its line says so.
"""

import functools
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["HF_HUB_OFFLINE"] = "1"

import numpy
import sentence_transformers
import sentencepiece
import tokenizers
import torch
import transformers
from sentence_transformers.sentence_transformer import modules
from sentence_transformers.util.quantization import quantize_embeddings
from tokenizers import decoders, models, normalizers, pre_tokenizers, processors, trainers

import conform_report

BAR = 1e-5
DEPTH, POSITIONS = 16, 48
WORDS = ("the a cat dog bird house river sits runs sees and or not on under over quickly slowly green old Paris London "
         "England is was very Grüße naïve café 東京 1984 don't we'll CAT Old ΟΔΟΣ [MASK] <mask> [SEP] </s> newword x😀y").split()
SIZES = {"hidden_size": DEPTH, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 24}
BERT_SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
ROBERTA_SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]


def is_4():
    return transformers.__version__.startswith("4.")


def drawn_texts(draw, count, longest=30):
    texts = [draw.choice(("", " ", "  ")) + draw.choice((" ", "  ")).join(draw.choices(WORDS, k=draw.randint(1, longest)))
             for _ in range(count)]
    return texts + ["the cat"]


@functools.cache
def word_pieces():
    tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False, strip_accents=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.train_from_iterator([" ".join(WORDS), " ".join(WORDS).lower(), "naive cafe grüsse"] * 3,
                                  trainers.WordPieceTrainer(vocab_size=300, special_tokens=BERT_SPECIAL, show_progress=False))
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer.to_str()


@functools.cache
def byte_pairs():
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.train_from_iterator([" ".join(WORDS)] * 3, trainers.BpeTrainer(
        vocab_size=400, special_tokens=ROBERTA_SPECIAL, show_progress=False,
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet())))
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=False)
    return tokenizer.to_str()


class Program:
    def __init__(self, path, folder):
        self.path, self.folder, self.made = path, folder, 0

    def run(self, *arguments, lines=()):
        done = subprocess.run([self.path, *map(str, arguments)], input="".join(line + "\n" for line in lines).encode(),
                              capture_output=True, check=False)
        if done.returncode != 0:
            raise ValueError(done.stderr.decode().strip().replace(str(self.folder), ""))
        return done.stdout.decode()

    def new_folder(self, name):
        self.made += 1
        return self.folder / f"{name}{self.made}"

    def imported(self, folder):
        out = self.new_folder("ours")
        self.run("import", folder, "--out", out)
        return out

    def exported(self, folder):
        out = self.new_folder("back")
        self.run("export", folder, "--out", out)
        return out

    def lines(self, *arguments, texts):
        return [json.loads(line) for line in self.run(*arguments, "--json", lines=texts).splitlines()]


def draw_weights(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            tensor.copy_(torch.randn(tensor.shape, generator=generator) * 0.3 + ("orm.weight" in name))
    return model.eval()


def config_of(kind, size):
    if kind == "roberta":
        return transformers.RobertaConfig(vocab_size=size, max_position_embeddings=POSITIONS + 2, pad_token_id=1, **SIZES)
    return transformers.BertConfig(vocab_size=size, max_position_embeddings=POSITIONS, **SIZES)


def encoder_folder(program, draw, kind, tokenizer, settings):
    """A tiny encoder with that tokenizer.json and tokenizer_config.json."""
    folder = program.new_folder("theirs")
    model = transformers.AutoModel.from_config(config_of(kind, 460))
    draw_weights(model, draw.randrange(1 << 30)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(tokenizer if isinstance(tokenizer, str) else json.dumps(tokenizer))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return folder


def settings_of(kind):
    if kind == "roberta":
        return dict(zip(("bos_token", "pad_token", "eos_token", "unk_token", "mask_token"), ROBERTA_SPECIAL),
                    cls_token="<s>", sep_token="</s>", tokenizer_class="RobertaTokenizer")
    return dict(zip(("pad_token", "unk_token", "cls_token", "sep_token", "mask_token"), BERT_SPECIAL),
                tokenizer_class="BertTokenizer")


POOLINGS = ("mean", "cls", "max", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
PROMPTS = {"query": "find: ", "plain": "", "document": "text of Zürich"}


def sentence_encoder(program, draw):
    """A sentence encoder with random settings, the folder that its library saved, and a name for reports."""
    kind = draw.choice(("bert", "roberta"))
    settings = settings_of(kind)
    # Without a limit the library would exceed the positions of RoBERTa.
    limit = draw.choice((6, 20, POSITIONS) if kind == "roberta" else (None, 6, 20, POSITIONS))
    if kind == "bert":
        settings["do_lower_case"] = draw.random() < 0.5
    if limit and draw.random() < 0.5:
        settings["model_max_length"], limit = limit, None
    if draw.random() < 0.3:
        settings["truncation_side"] = "left"
    folder = encoder_folder(program, draw, kind, word_pieces() if kind == "bert" else byte_pairs(), settings)
    transformer = modules.Transformer(str(folder), max_seq_length=limit, do_lower_case=draw.random() < 0.3)
    poolings = draw.sample(POOLINGS, draw.choice((1, 1, 2)))
    chain = [transformer, modules.Pooling(DEPTH, tuple(poolings), include_prompt=draw.random() < 0.5)]
    depth = DEPTH * len(poolings)
    if draw.random() < 0.5:
        activation = torch.nn.Tanh() if draw.random() < 0.5 else torch.nn.Identity()
        chain.append(modules.Dense(depth, 12, bias=draw.random() < 0.5, activation_function=activation))
        draw_weights(chain[-1], draw.randrange(1 << 30))
        depth = 12
    if draw.random() < 0.3:
        chain.append(modules.LayerNorm(depth))
        draw_weights(chain[-1], draw.randrange(1 << 30))
    if draw.random() < 0.3:
        chain.append(modules.Dropout(0.2))
    if draw.random() < 0.5:
        chain.append(modules.Normalize())
    cut = draw.choice((None, None, 8, 12))
    model = sentence_transformers.SentenceTransformer(modules=chain, truncate_dim=cut, device="cpu", prompts=PROMPTS,
                                                      default_prompt_name=draw.choice((None, "query", "plain")))
    name = f"{kind}, limit {settings.get('model_max_length') or limit}, {settings.get('truncation_side', 'right')}, " \
           f"{'+'.join(poolings)}, {len(chain)} modules, cut {cut}, prompt {model.default_prompt_name}, " \
           f"{'with' if chain[1].include_prompt else 'without'} its tokens, " \
           f"lower case {settings.get('do_lower_case')} {transformer.do_lower_case}"
    saved = program.new_folder("saved")
    model.save_pretrained(str(saved))
    return sentence_transformers.SentenceTransformer(str(saved), device="cpu"), saved, name


# See findings/sentence_transformers_lower_case.sh. transformers 4 and `attend import` keep the normaliser.
LOST_LOWER_CASE = "the library loses its own do_lower_case when it reads the folder again with transformers 5"


def compare_precisions(program, report, name, ours, texts):
    """Values of the vectors that `attend embed` prints, so that none is at another side of a border."""
    calibration = program.new_folder("texts").with_suffix(".txt")
    calibration.write_text("\n".join(texts[:3]) + "\n")
    vectors = numpy.array([line["vector"] for line in program.lines("embed", ours, texts=texts)], numpy.float32)
    for precision in ("int8", "uint8", "binary", "ubinary"):
        options = [[]] if precision.endswith("binary") else [[], ["--calibration", calibration]]
        for more in options:
            found = program.lines("embed", ours, "--precision", precision, *more, texts=texts)
            wanted = quantize_embeddings(vectors, precision, calibration_embeddings=vectors[:3] if more else None)
            report.compare(f"{name}, {precision}{', calibrated' if more else ''}",
                           [line["vector"] for line in found], wanted.tolist(), 0)


def sentence_case(program, draw, report, number):
    model, saved, name = sentence_encoder(program, draw)
    texts = drawn_texts(draw, 6)
    theirs = model.encode(texts).tolist()
    ours = program.imported(saved)
    found = [line["vector"] for line in program.lines("embed", ours, texts=texts)]
    case_name, prompt = f"sentence encoder {number}", draw.choice(tuple(PROMPTS))
    for case in (f"{case_name} ({name})", f"{case_name}, prompt {prompt}", f"{case_name}, exported"):
        if name.endswith(("None True", "False True")):
            report.reasons[case] = LOST_LOWER_CASE
    report.compare(f"{case_name} ({name})", found, theirs, BAR)
    found = [line["vector"] for line in program.lines("embed", ours, "--prompt-name", prompt, texts=texts)]
    report.compare(f"{case_name}, prompt {prompt}", found, model.encode(texts, prompt_name=prompt).tolist(), BAR)
    if number % 6 == 0:  # about the time of the other comparisons of six encoders
        compare_precisions(program, report, case_name, ours, texts)
    again = sentence_transformers.SentenceTransformer(str(program.exported(ours)), device="cpu")
    report.compare(f"{case_name}, exported", again.encode(texts).tolist(), theirs, BAR)


def flag(draw, settings, key, values):
    """Sets the key to one of the values, or omits it."""
    value = draw.choice((*values, "absent"))
    if value != "absent":
        settings[key] = value


def drawn_tokenizer(draw):
    """A kind, a tokenizer.json and a tokenizer_config.json that may contradict it."""
    kind = draw.choice(("bert", "roberta"))
    document, settings = json.loads(word_pieces() if kind == "bert" else byte_pairs()), settings_of(kind)
    if kind == "bert":
        document["normalizer"].update(lowercase=draw.random() < 0.5, strip_accents=draw.choice((None, False, True)),
                                      handle_chinese_chars=draw.random() < 0.7)
        flag(draw, settings, "do_lower_case", (True, False))
        flag(draw, settings, "strip_accents", (None, False, True))
        flag(draw, settings, "tokenize_chinese_chars", (True, False))
    else:
        document["pre_tokenizer"]["add_prefix_space"] = draw.random() < 0.5
        flag(draw, settings, "add_prefix_space", (True, False))
    if draw.random() < 0.3:
        settings["split_special_tokens"] = True
    flag(draw, settings, "truncation_side", ("left", "right"))
    settings["model_max_length"] = draw.choice((7, 20, POSITIONS))
    decoder = {str(token["id"]): {key: value for key, value in token.items() if key != "id"}
               for token in document["added_tokens"]}
    if draw.random() < 0.5:  # change flags of a special token and add a token
        decoder[draw.choice(sorted(decoder))].update(lstrip=draw.random() < 0.5, rstrip=draw.random() < 0.5)
        vocabulary = document["model"]["vocab"]
        number = vocabulary.get("newword", len(vocabulary))
        new = {"content": "newword", "single_word": draw.random() < 0.3, "lstrip": False, "rstrip": False,
               "normalized": draw.random() < 0.5, "special": False}
        decoder[str(number)] = new
        if draw.random() < 0.5:
            document["added_tokens"].append({"id": number, **new})
        settings["added_tokens_decoder"] = decoder
    return kind, document, settings


def told_differences(document, settings, kind):
    told = {key: value for key, value in settings.items() if key not in settings_of(kind) and key != "added_tokens_decoder"}
    own = document["normalizer"] or {"add_prefix_space": document["pre_tokenizer"].get("add_prefix_space")}
    return f"{kind}, {json.dumps({key: value for key, value in own.items() if key not in ('type', 'clean_text')})} against " \
           f"{json.dumps(told)}{', tokens' if 'added_tokens_decoder' in settings else ''}"


def states_of(folder, texts):
    """Vectors of tokens by the library's tokenizer and model."""
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    model = transformers.AutoModel.from_pretrained(folder).eval()
    found = []
    for text in texts:
        batch = tokenizer(text, truncation=True, return_tensors="pt")
        with torch.no_grad():
            found.append(model(**batch).last_hidden_state[0].tolist())
    return found


def tokenizer_case(program, draw, report, number):
    kind, document, settings = drawn_tokenizer(draw)
    folder = encoder_folder(program, draw, kind, document, settings)
    texts = drawn_texts(draw, 8)
    theirs = states_of(folder, texts)
    ours = program.imported(folder)
    found = [line["vectors"] for line in program.lines("embed", ours, "--tokens", texts=texts)]
    report.compare(f"tokenizer {number} ({told_differences(document, settings, kind)})", found, theirs, BAR)
    report.compare(f"tokenizer {number}, exported", states_of(program.exported(ours), texts), theirs, BAR)


@functools.cache
def pieces():
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter([" ".join(WORDS)] * 30), model_writer=model, vocab_size=90, eos_id=0, unk_id=1, bos_id=-1,
        pad_id=-1, hard_vocab_limit=False, minloglevel=2)
    return model.getvalue()


def draw_search(draw, settings, **others):
    """Draws settings of generate(), with or without beams, and adds the other ones."""
    settings.update(num_beams=draw.choice((1, 2, 4)), **others)
    if settings.num_beams > 1:
        settings.length_penalty = draw.choice((0.5, 1.0, 2.0))


def generated(model, tokenizer, texts):
    return [tokenizer.decode(model.generate(**tokenizer(text, return_tensors="pt"))[0]) for text in texts]


def translator_folder(program, draw):
    own = sentencepiece.SentencePieceProcessor(model_proto=pieces())
    names = ["</s>", "<unk>"] + [own.id_to_piece(i) for i in range(2, own.get_piece_size())] + [">>fra<<", "<pad>"]
    files = program.new_folder("files")
    files.mkdir()
    for side in ("source.spm", "target.spm"):
        (files / side).write_bytes(pieces())
    (files / "vocab.json").write_text(json.dumps({name: number for number, name in enumerate(names)}))
    (files / "tokenizer_config.json").write_text("{}")
    tokenizer = transformers.MarianTokenizer.from_pretrained(files)
    tokenizer.add_tokens(draw.sample(["newword", "cat", "東", "don't"], draw.randint(0, 3)))
    if draw.random() < 0.6:
        more = "additional_special_tokens" if is_4() else "extra_special_tokens"
        tokenizer.add_special_tokens({more: draw.sample([">>ita<<", "[SEP]", ">>fra<<"], draw.randint(1, 2))})
    padding = names.index("<pad>")
    model = transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=len(names), d_model=DEPTH, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=24, decoder_ffn_dim=24,
        encoder_attention_heads=2, decoder_attention_heads=2, max_position_embeddings=POSITIONS, pad_token_id=padding,
        decoder_start_token_id=padding, eos_token_id=0, forced_eos_token_id=0))
    draw_weights(model, draw.randrange(1 << 30))
    model.resize_token_embeddings(len(tokenizer))
    draw_search(draw, model.generation_config, max_length=draw.choice((8, 14)), forced_eos_token_id=0,
                min_length=draw.choice((0, 4)), bad_words_ids=[[padding]])
    folder = program.new_folder("theirs")
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def read_by_translator(folder, texts):
    """Tokens of texts, logits of the first tokens of answers, and answers of generate()."""
    tokenizer = transformers.MarianTokenizer.from_pretrained(folder)
    model = transformers.MarianMTModel.from_pretrained(folder).eval()
    tokens, logits = [], []
    for text in texts:
        batch = tokenizer(text, return_tensors="pt")
        tokens.append(tokenizer.convert_ids_to_tokens(batch.input_ids[0].tolist()))
        start = torch.tensor([[model.config.decoder_start_token_id]])
        with torch.no_grad():
            logits.append(model(**batch, decoder_input_ids=start).logits[0, 0].tolist())
    return tokens, logits, generated(model, tokenizer, texts)


def translator_case(program, draw, report, number):
    folder = translator_folder(program, draw)
    texts = [draw.choice(("", ">>fra<< ", ">>ita<<")) + text for text in drawn_texts(draw, 6, longest=5)]
    tokens, logits, answers = read_by_translator(folder, texts)
    ours = program.imported(folder)
    lines = program.lines("predict", ours, "--details", "--minimum-length", 0, "--maximum-length", 1,
                          texts=texts)
    # Here an unknown piece is printed as its text, and fixed tokens are printed in brackets.
    known = set(json.loads((folder / "vocab.json").read_text()))
    found = [[{"[</s>]": "</s>", "[<unk>]": "<unk>", "[<pad>]": "<pad>"}.get(token, token) for token in line["source_tokens"]]
             for line in lines]
    added = folder / "added_tokens.json"
    known |= set(json.loads(added.read_text())) if added.exists() else set()
    found = [[token if token in known else "<unk>" for token in line] for line in found]
    report.compare(f"translator {number} ({sorted(known - set(json.loads((folder / 'vocab.json').read_text())))})", found, tokens)
    again_tokens, again_logits, again_answers = read_by_translator(program.exported(ours), texts)
    report.compare(f"translator {number}, exported: tokens", again_tokens, tokens)
    report.compare(f"translator {number}, exported: logits", again_logits, logits, BAR)
    report.compare(f"translator {number}, exported: generate", again_answers, answers)


def language_model_case(program, draw, report, number):
    """Compares model(**tokenizer(text)) of a GPT-2 before import and after export."""
    document = json.loads(byte_pairs())
    document["post_processor"], document["pre_tokenizer"]["add_prefix_space"] = None, draw.random() < 0.5
    settings = {"tokenizer_class": "GPT2Tokenizer", "bos_token": "</s>", "eos_token": "</s>", "unk_token": "</s>",
                "add_prefix_space": draw.random() < 0.5}
    folder = program.new_folder("theirs")
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(
        vocab_size=460, n_embd=DEPTH, n_layer=2, n_head=2, n_positions=2 * POSITIONS, bos_token_id=2, eos_token_id=2))
    draw_search(draw, model.generation_config, max_new_tokens=draw.choice((5, 9)), min_new_tokens=draw.choice((1, 4)))
    draw_weights(model, draw.randrange(1 << 30)).save_pretrained(folder)
    (folder / "tokenizer.json").write_text(json.dumps(document))
    (folder / "tokenizer_config.json").write_text(json.dumps(settings))

    def read(where, texts):
        tokenizer = transformers.AutoTokenizer.from_pretrained(where)
        reader = transformers.AutoModelForCausalLM.from_pretrained(where).eval()
        with torch.no_grad():
            return [reader(**tokenizer(text, return_tensors="pt")).logits[0].tolist() for text in texts], \
                generated(reader, tokenizer, texts)

    texts = drawn_texts(draw, 4, longest=6)
    back = program.exported(program.imported(folder))
    (again, again_answers), (theirs, answers) = read(back, texts), read(folder, texts)
    report.compare(f"GPT-2 {number}, exported (space {document['pre_tokenizer']['add_prefix_space']} against "
                   f"{settings['add_prefix_space']})", again, theirs, BAR)
    report.compare(f"GPT-2 {number}, exported: generate", again_answers, answers)


CASES = ((sentence_case, 4), (tokenizer_case, 6), (translator_case, 2), (language_model_case, 1))


def main():
    parser = conform_report.arguments(__doc__)
    parser.add_argument("--count", type=int, default=6, help="how often each kind of case is drawn, times its share")
    parser.add_argument("--only", default="", help="only kinds of cases with this beginning, such as translator")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    torch.set_num_threads(1)
    print(f"transformers {transformers.__version__}, sentence-transformers {sentence_transformers.__version__}, "
          f"tokenizers {tokenizers.__version__}, sentencepiece {sentencepiece.__version__}, seed {options.seed}")
    report = conform_report.Report()
    with tempfile.TemporaryDirectory(prefix="attend-conform-") as folder:
        program = Program(str(pathlib.Path(options.program).resolve()), pathlib.Path(folder))
        for case, share in CASES:
            for number in range(share * options.count if case.__name__.startswith(options.only) else 0):
                draw = random.Random(f"{options.seed} {case.__name__} {number}")
                try:
                    case(program, draw, report, number)
                except ValueError as error:
                    report.state(f"{case.__name__} {number}", False, str(error))
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
