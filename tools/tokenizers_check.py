#!/usr/bin/env python3
"""Compares attend/tokenizers with PyPI's `tokenizers` and `sentencepiece`: ids, decoded texts, speed.

    python3 -m venv build/tokenizers
    build/tokenizers/bin/pip install tokenizers==0.23.3 sentencepiece==0.2.3
    cmake --build --preset release --target tokenize
    build/tokenizers/bin/python tools/tokenizers_check.py TEXT... [--program build/release/attend]

Trains a small vocabulary of each kind on the lines of the texts. Both sides encode these lines, each single code point,
and random lines (scripts, emoji, control characters, combining marks, special tokens, invalid UTF-8). Prints the
differences of each kind and the ratio of speeds on one thread, by processor time in alternating turns. Speed is
measured on all lines of the texts, and on the random lines, which hardly repeat words. Exits with 1 if ids or texts
differ or the speed on texts is too low.

    build/tokenizers/bin/python tools/tokenizers_check.py --golden tests/tokenizers/golden.json

writes the data of the test that runs without PyPI.
"""

import importlib.metadata
import io
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import sentencepiece
from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers,
                        processors, trainers)

import conform_report

VERSIONS = {"tokenizers": "0.23.3", "sentencepiece": "0.2.3"}
BAR = 3
TURNS = 5
LINES = 12000
SIZE = 4000
GOLDEN_SIZE = 300
GOLDEN_LINES = 14

SCRIPTS = [(0x20, 0x7E), (0xA0, 0x24F), (0x250, 0x2AF), (0x300, 0x36F), (0x370, 0x3FF), (0x400, 0x52F),
           (0x590, 0x5FF), (0x600, 0x6FF), (0x900, 0x97F), (0xE00, 0xE7F), (0x10A0, 0x10FF),
           (0x1100, 0x11FF), (0x1E00, 0x1FFF), (0x2000, 0x206F), (0x2070, 0x218F), (0x3040, 0x30FF),
           (0x4E00, 0x9FFF), (0xAC00, 0xD7A3), (0xF900, 0xFAFF), (0xFB00, 0xFDFF), (0xFE00, 0xFFFF),
           (0x1D100, 0x1D7FF), (0x1F300, 0x1FAFF), (0xE0000, 0xE01EF), (0x0, 0x1F), (0x7F, 0x9F)]
SNIPPETS = ["don't", "we'll", "I'VE", "'s", " 're", "  ", "\t", "\r\n", " \n ", "\u00a0", "\u3000", "\u2581",
            "\u2581\u2581a", "[CLS]", "[SEP]", "[MASK]", " [MASK] ", "<mask>", " <mask> ", "<s>", "</s>", "<unk>",
            "[UNK]", "<|endoftext|>", "##ing", "##", "\U0001F468\u200D\U0001F469\u200D\U0001F467", "\U0001F44D\U0001F3FD",
            "e\u0301", "e\u0323\u0301", "a\u0315\u0300\u05ae\u0301b", "\u1100\u1161\u11a8", "\u0130", "\u00df", "\u03a3",
            "\uff21\uff22", "\ufb01", "12,345.67", "x" * 120, "alpha beta", "alphabeta", "alpha", "Beta ", " gamma",
            "\u00bd", "\u2460", "\ufeff", "\ufffd", "\u0000"]
MALFORMED = [b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf4\x90\x80\x80",
             b"\x80", b"\xe2\x28\xa1", b"\xf0\x9f\x20"]


def drawn_lines(texts, count, seed=1):
    """Random records of bytes, all from one seed."""
    draw = random.Random(seed)
    records = []
    while len(records) < count:
        line = bytearray()
        for _ in range(draw.randint(1, 12)):
            kind = draw.random()
            if kind < 0.3:
                line += draw.choice(draw.choice(texts).split() or [""]).encode()
            elif kind < 0.6:
                first, last = draw.choice(SCRIPTS)
                for _ in range(draw.randint(1, 6)):
                    line += chr(draw.randint(first, last)).encode()
            elif kind < 0.85:
                line += draw.choice(SNIPPETS).encode()
            elif kind < 0.9:
                line += draw.choice(MALFORMED)
            else:
                point = draw.randrange(0x110000)
                line += b"" if 0xD800 <= point < 0xE000 else chr(point).encode()
            line += b" " * draw.choice([0, 1, 1, 2])
        records.append(bytes(line))
    return records


def invented_lines(count, seed=1):
    """Lines of words of every script that repeat, so that vocabularies get tokens for them."""
    draw = random.Random(seed + 1)
    words = []
    for first, last in SCRIPTS[2:-2]:
        letters = [chr(draw.randint(first, last)) for _ in range(12)]
        words += ["".join(draw.choices(letters, k=draw.randint(2, 7))) for _ in range(20)]
    return [" ".join(draw.choices(words, k=8)) for _ in range(count)]


def trained(model, trainer, texts, normaliser=None, splitter=None):
    tokenizer = Tokenizer(model)
    if normaliser:
        tokenizer.normalizer = normaliser
    if splitter:
        tokenizer.pre_tokenizer = splitter
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def bert(texts, size, lowercase=True):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokenizer = trained(models.WordPiece(unk_token="[UNK]"),
                        trainers.WordPieceTrainer(vocab_size=size, special_tokens=special, show_progress=False),
                        texts, normalizers.BertNormalizer(lowercase=lowercase),
                        pre_tokenizers.BertPreTokenizer())
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")])
    return tokenizer


def bert_cased(texts, size):
    tokenizer = bert(texts, size, False)
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    tokenizer.enable_truncation(24, direction="left")
    return tokenizer


def byte_level(texts, size, prefix, special, normaliser=None):
    tokenizer = trained(models.BPE(),
                        trainers.BpeTrainer(vocab_size=size, special_tokens=special, show_progress=False,
                                            initial_alphabet=pre_tokenizers.ByteLevel.alphabet()),
                        texts, normaliser, pre_tokenizers.ByteLevel(add_prefix_space=prefix))
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def gpt2(texts, size):
    tokenizer = byte_level(texts, size, False, ["<|endoftext|>"])
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    return tokenizer


def roberta(texts, size):
    tokenizer = byte_level(texts, size, True, ["<s>", "<pad>", "</s>", "<unk>"])
    tokenizer.add_special_tokens([AddedToken("<mask>", lstrip=True)])
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    return tokenizer


def added(texts, size):
    """Added tokens of every kind, normalised and not."""
    tokenizer = byte_level(texts, size, False, ["[UNK]"], normalizers.Sequence(
        [normalizers.NFC(), normalizers.Lowercase()]))
    tokenizer.add_tokens([AddedToken("alpha", single_word=True), AddedToken("Beta", normalized=True),
                          AddedToken("gamma", lstrip=True, normalized=False), AddedToken("alpha beta"),
                          AddedToken("##", rstrip=True, normalized=False),
                          AddedToken("\u03a3", rstrip=True, lstrip=True)])
    return tokenizer


def characters(texts, size):
    tokenizer = trained(models.BPE(unk_token="<unk>", fuse_unk=True, end_of_word_suffix="</w>"),
                        trainers.BpeTrainer(vocab_size=size, special_tokens=["<unk>"], show_progress=False,
                                            limit_alphabet=size // 10, end_of_word_suffix="</w>"),
                        texts, normalizers.NFKC(), pre_tokenizers.WhitespaceSplit())
    tokenizer.decoder = decoders.BPEDecoder()
    return tokenizer


def unigram(texts, size):
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    tokenizer = trained(models.Unigram(),
                        trainers.UnigramTrainer(vocab_size=size, special_tokens=special, unk_token="<unk>",
                                                show_progress=False),
                        texts, normalizers.Sequence([normalizers.NFKC(), normalizers.Replace(Regex(" {2,}"), " ")]),
                        pre_tokenizers.Metaspace())
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return tokenizer


def fields(message):
    """(number, value) of the fields of a protobuf message; values of fixed-size fields are bytes."""
    position = 0

    def varint():
        nonlocal position
        value = shift = 0
        while True:
            byte = message[position]
            position += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while position < len(message):
        tag = varint()
        if tag & 7 == 0:
            yield tag >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(tag & 7) or varint()
        yield tag >> 3, message[position:position + size]
        position += size


def xlm_roberta(texts, size):
    """XLM-R's tokenizer with the charsmap of SentencePiece, as `tokenizers` applies it."""
    settings = dict(fields(Pieces(texts, 400).model))[3]
    tokenizer = unigram(texts, size)
    normaliser = normalizers.Sequence([normalizers.Precompiled(dict(fields(settings))[2]),
                                       normalizers.Replace(Regex(" {2,}"), " ")])
    tokenizer.normalizer = normaliser
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme="always")])
    return tokenizer


class Pieces:
    """A SentencePiece model with the methods of Tokenizer that this script calls."""

    def __init__(self, texts, size, **options):
        out = io.BytesIO()
        settings = dict(vocab_size=size, model_type="unigram", hard_vocab_limit=False, minloglevel=2) | options
        sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(texts), model_writer=out, **settings)
        self.model = out.getvalue()
        self.processor = sentencepiece.SentencePieceProcessor(model_proto=self.model)

    def save(self, path):
        pathlib.Path(path).write_bytes(self.model)

    def ids(self, records):
        return self.processor.encode(records, out_type=int, num_threads=1)

    def decode_batch(self, ids):
        return [self.processor.decode(one) for one in ids]


def bytes_behind(normaliser):
    """Makes a tokenizer with the bytes of the normalised text as ids."""
    def make(_texts, _size):
        vocabulary = {c: i for i, c in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
        tokenizer.normalizer = normaliser
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.decoder = decoders.ByteLevel()
        return tokenizer
    return make


# Name, function that makes it, whether its speed is checked and it is in the golden file.
KINDS = [
    ("BERT, lower case", bert, True),
    ("BERT, cased", bert_cased, True),
    ("GPT-2", gpt2, True),
    ("RoBERTa", roberta, True),
    ("unigram, NFKC", unigram, True),
    ("XLM-R", xlm_roberta, False),
    ("added tokens", added, True),
    ("BPE of characters", characters, True),
    ("NFC", bytes_behind(normalizers.NFC()), False),
    ("NFD", bytes_behind(normalizers.NFD()), False),
    ("NFKD, no accents", bytes_behind(normalizers.Sequence(
        [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()])), False),
    ("strip, prepend", bytes_behind(normalizers.Sequence(
        [normalizers.Strip(), normalizers.Replace("``", '"'), normalizers.Prepend("\u2581")])), False),
    ("white space, NFC", bytes_behind(normalizers.Sequence(
        [normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " "), normalizers.NFC(),
         normalizers.Strip(left=False, right=True)])), False),
]


# The same for SentencePiece.
PIECE_KINDS = [
    ("SentencePiece unigram", lambda texts, size: Pieces(texts, size), True),
    ("SentencePiece pairs", lambda texts, size: Pieces(texts, size, model_type="bpe"), True),
    ("unigram, bytes, symbols", lambda texts, size: Pieces(
        texts, size, byte_fallback=True, user_defined_symbols=["alpha", "##", "\u0130", "alphabet"],
        normalization_rule_name="nfkc_cf"), False),
    ("pairs, symbols, all spaces", lambda texts, size: Pieces(
        texts, size, model_type="bpe", user_defined_symbols=["alpha", "##", "\u0130", "alphabet"],
        remove_extra_whitespaces=False, normalization_rule_name="identity", byte_fallback=True), False),
    ("unigram, no prefix", lambda texts, size: Pieces(
        texts, size, add_dummy_prefix=False, control_symbols=["<pad>", "<mask>"]), False),
]


def packed(records):
    return b"".join(b"%d\n%s" % (len(record), record) for record in records)


def unpacked(data):
    records, begin = [], 0
    while begin < len(data):
        end = data.index(b"\n", begin)
        size = int(data[begin:end])
        records.append(data[end + 1:end + 1 + size].decode())
        begin = end + 1 + size
    return records


def ours(program, mode, file, data):
    return subprocess.run([program, mode, file], input=data, capture_output=True, check=True).stdout


def their_ids(tokenizer, records):
    if isinstance(tokenizer, Pieces):
        return tokenizer.ids(records)
    texts = [record.decode("utf-8", errors="replace") for record in records]
    return [encoding.ids for encoding in tokenizer.encode_batch(texts)]


def compare(program, tokenizer, file, records):
    """Records with different ids, and records with different decoded texts: (record, ours, theirs)."""
    encodings = their_ids(tokenizer, records)
    data = packed(records)
    ids = [[int(id) for id in line.split()] for line in ours(program, "ids", file, data).split(b"\n")[:-1]]
    decoded = unpacked(ours(program, "decode", file, data))
    assert len(ids) == len(decoded) == len(records)
    wrong = [(record, a, b) for record, a, b in zip(records, ids, encodings) if a != b]
    theirs = tokenizer.decode_batch(encodings)
    wrong_texts = [(record, a, b) for record, a, b in zip(records, decoded, theirs) if a != b]
    return wrong, wrong_texts


def speed(program, tokenizer, file, records):
    data = packed(records)
    texts = [record.decode("utf-8", errors="replace") for record in records]
    ratios, rates = [], []
    for _ in range(TURNS):
        own = float(ours(program, "time", file, data))
        begin = time.process_time()
        tokenizer.ids(records) if isinstance(tokenizer, Pieces) else tokenizer.encode_batch_fast(texts)
        ratios.append((time.process_time() - begin) / own)
        rates.append(sum(map(len, records)) / own / 1e6)
    return statistics.median(rates), statistics.median(ratios)


def golden(path):
    """Writes small tokenizers and their results for texts, for tests without PyPI."""
    texts = invented_lines(40) + ["Don't stop! The alphabet's letters: alpha, beta, gamma."] * 5
    cases = []
    for name, make, wanted in KINDS:
        if not wanted:
            continue
        tokenizer = make(texts, GOLDEN_SIZE)
        lines = [record.decode("utf-8", errors="replace") for record in drawn_lines(texts, GOLDEN_LINES)]
        answers = []
        for line in lines:
            alone, both = tokenizer.encode(line), tokenizer.encode(line, lines[0])
            answers.append({"text": line, "ids": alone.ids, "decoded": tokenizer.decode(alone.ids),
                            "pair": both.ids, "types": both.type_ids})
        cases.append({"name": name, "tokenizer": json.loads(tokenizer.to_str()), "answers": answers})
    text = ",\n".join(json.dumps(case, ensure_ascii=False, separators=(",", ":")) for case in cases)
    path.write_text(f"[\n{text}\n]\n", encoding="utf-8")


def main():
    parser = conform_report.arguments(__doc__.splitlines()[0])
    parser.add_argument("texts", nargs="*", type=pathlib.Path, help="files to train vocabularies on")
    parser.add_argument("--points", type=int, default=1, help="step between tested code points (default: 1)")
    parser.add_argument("--kind", help="only kinds with this in their names")
    parser.add_argument("--golden", type=pathlib.Path, help="write this file instead")
    options = parser.parse_args()
    for package, wanted in VERSIONS.items():
        if importlib.metadata.version(package) != wanted:
            sys.exit(f"the comparison is with {package} {wanted}; this is {importlib.metadata.version(package)}")
    if options.golden:
        return golden(options.golden)
    texts = [line for path in options.texts for line in path.read_text(encoding="utf-8").splitlines()[:4000]]
    texts += invented_lines(2000, options.seed)
    drawn = drawn_lines(texts, LINES, options.seed)
    records = drawn + [line.encode() for line in texts]
    ordinary = [line.encode() for path in options.texts for line in path.read_text(encoding="utf-8").splitlines()]
    points = [chr(point).encode() for point in range(0, 0x110000, options.points)
              if not 0xD800 <= point < 0xE000]
    report = conform_report.Report()
    program = pathlib.Path(options.program).resolve().parent / "tokenize"
    print(f"{len(records)} lines, {len(points)} code points; "
          + ", ".join(f"{package} {wanted}" for package, wanted in VERSIONS.items()))
    print("| kind | ids that differ | texts that differ | code points that differ | MB/s | faster | on drawn lines |")
    print("|---|---|---|---|---|---|---|")
    for name, make, timed in KINDS + PIECE_KINDS:
        if options.kind and options.kind not in name:
            continue
        with tempfile.TemporaryDirectory() as folder:
            tokenizer = make(texts, SIZE)
            file = pathlib.Path(folder) / ("spiece.model" if isinstance(tokenizer, Pieces) else "tokenizer.json")
            tokenizer.save(str(file))
            lines = compare(program, tokenizer, file, records)
            single = compare(program, tokenizer, file, points)
            timed = timed and bool(ordinary)
            if timed:
                rate, ratio = speed(program, tokenizer, file, ordinary)
                ratio_of_drawn = speed(program, tokenizer, file, drawn)[1]
        figures = f"{rate:.1f} | {ratio:.1f} x | {ratio_of_drawn:.1f} x" if timed else "| |"
        print(f"| {name} | {len(lines[0])} | {len(lines[1])} | {len(single[0]) + len(single[1])} | {figures} |",
              flush=True)
        for different in (*lines, *single):
            report.state(name, not different, f"{len(different)} differ")
            for record, own, theirs in different[:3]:
                print(f"  {record!r}\n    ours   {own!r}\n    theirs {theirs!r}", file=sys.stderr)
        if timed:
            report.state(f"{name}, speed", ratio >= BAR, f"{ratio:.1f} times, bar {BAR}")
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
