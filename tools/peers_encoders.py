#!/usr/bin/env python3
"""Times sentence encoders against transformers, ONNX Runtime and CTranslate2; tools/peers.py runs it.

    python tools/peers_encoders.py BUILD [--models minilm bert-base] [--turns 5] [--threads 1 2]

Models have random weights: the sizes of all-MiniLM-L6-v2 and of BERT-base, mean pooling, length 1. Sentences have 12, 64
or 256 tokens with the special tokens. All sides split the text, so a row is the time from texts to vectors. ONNX
Runtime runs a graph of its fused nodes, in int8 quantized by its own tool. Vectors are compared before timing. All
sides take turns. Prints a JSON object per row. A ratio is the median of the turns' ratios. One thread is timed by its
processor time, several by the clock.
"""

import argparse
import dataclasses
import itertools
import json
import pathlib
import random
import resource
import statistics
import subprocess
import tempfile
import time

import ctranslate2
import numpy
import onnx
import onnxruntime
import tokenizers
import torch
import transformers
from onnxruntime.quantization import QuantType, quantize_dynamic

SIZES = {"minilm": {"hidden_size": 384, "num_hidden_layers": 6, "num_attention_heads": 12, "intermediate_size": 1536},
         "bert-base": {"hidden_size": 768, "num_hidden_layers": 12, "num_attention_heads": 12,
                       "intermediate_size": 3072}}
WORDS = 30_000
LENGTHS = (12, 64, 256)
BARS = {"float32": 1.2, "bfloat16": 1.2, "int8": 1.1}
BATCH_BAR = 1.0


@dataclasses.dataclass(frozen=True)
class Case:
    model: str
    weights: str
    tokens: int
    batch: int
    threads: int

    @property
    def bar(self):
        return BARS[self.weights] if self.batch == 1 and self.tokens <= 64 else BATCH_BAR

    def work(self):
        texts = "one text" if self.batch == 1 else f"{self.batch} texts"
        return (f"vectors of {self.model}, {self.weights}, {texts} of {self.tokens} tokens, "
                f"{self.threads} thread{'s' * (self.threads > 1)}")


def make_tokenizer():
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words = {word: i for i, word in enumerate(special + [f"w{i}" for i in range(WORDS - len(special))])}
    made = tokenizers.Tokenizer(tokenizers.models.WordPiece(words, unk_token="[UNK]"))
    made.normalizer = tokenizers.normalizers.BertNormalizer(lowercase=True)
    made.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
    made.post_processor = tokenizers.processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[(name, words[name]) for name in ("[CLS]", "[SEP]")])
    return transformers.PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]", pad_token="[PAD]",
                                                cls_token="[CLS]", sep_token="[SEP]", mask_token="[MASK]")


def make_folder(name, folder):
    """A sentence encoder with random weights, as sentence-transformers saves it."""
    torch.manual_seed(1)
    model = transformers.BertModel(transformers.BertConfig(vocab_size=WORDS, **SIZES[name]),
                                   add_pooling_layer=False).eval()
    model.config.position_embedding_type = "absolute"  # a key of transformers 4, which CTranslate2 reads
    model.save_pretrained(folder)
    make_tokenizer().save_pretrained(folder)
    kinds = [("", "Transformer"), ("1_Pooling", "Pooling"), ("2_Normalize", "Normalize")]
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
               for i, (path, kind) in enumerate(kinds)]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(
        {"word_embedding_dimension": SIZES[name]["hidden_size"], "pooling_mode_mean_tokens": True}))
    return model


class Graph:
    """BERT's encoder of ONNX Runtime's fused nodes."""

    def __init__(self, model):
        self.weights = {name: tensor.detach().numpy() for name, tensor in model.named_parameters()}
        self.heads = model.config.num_attention_heads
        self.layers = model.config.num_hidden_layers
        self.epsilon = model.config.layer_norm_eps
        self.nodes, self.constants = [], []

    def constant(self, name, values):
        self.constants.append(onnx.numpy_helper.from_array(numpy.ascontiguousarray(values), name))
        return name

    def add(self, kind, inputs, name, domain="com.microsoft", **attributes):
        self.nodes.append(onnx.helper.make_node(kind, inputs, [name], name=name, domain=domain, **attributes))
        return name

    def parameter(self, name, transposed=False):
        values = self.weights[name]
        return self.constant(name, values.T if transposed else values)

    def norm(self, x, sum_with, part, bias, name):
        return self.add("SkipLayerNormalization", [x, sum_with, self.parameter(part + ".weight"),
                                                   self.parameter(part + ".bias"), bias], name, epsilon=self.epsilon)

    def linear(self, x, part, name):
        return self.add("MatMul", [x, self.parameter(part + ".weight", transposed=True)], name, domain="")

    def layer(self, x, index):
        part = f"encoder.layer.{index}."
        maps = [part + f"attention.self.{name}" for name in ("query", "key", "value")]
        weight = self.constant(part + "qkv", numpy.concatenate([self.weights[m + ".weight"].T for m in maps], 1))
        bias = self.constant(part + "qkv_bias", numpy.concatenate([self.weights[m + ".bias"] for m in maps]))
        read = self.add("Attention", [x, weight, bias, "mask"], part + "read", num_heads=self.heads)
        out = self.linear(read, part + "attention.output.dense", part + "out")
        x = self.norm(out, x, part + "attention.output.LayerNorm",
                      self.parameter(part + "attention.output.dense.bias"), part + "attended")
        hidden = self.linear(x, part + "intermediate.dense", part + "hidden")
        hidden = self.add("BiasGelu", [hidden, self.parameter(part + "intermediate.dense.bias")], part + "gelu")
        out = self.linear(hidden, part + "output.dense", part + "fed")
        return self.norm(out, x, part + "output.LayerNorm", self.parameter(part + "output.dense.bias"),
                         part + "end")

    def save(self, path):
        part = "embeddings."
        types = self.constant("types", self.weights[part + "token_type_embeddings.weight"][0])
        words = self.add("Gather", [self.parameter(part + "word_embeddings.weight"), "ids"], "words", domain="")
        places = self.add("Gather", [self.parameter(part + "position_embeddings.weight"), "places"], "rows", domain="")
        x = self.add("Add", [words, places], "sum", domain="")
        x = self.add("Add", [x, types], "embedded", domain="")
        x = self.add("LayerNormalization", [x, self.parameter(part + "LayerNorm.weight"),
                                            self.parameter(part + "LayerNorm.bias")], "begin", domain="",
                     epsilon=self.epsilon)
        for index in range(self.layers):
            x = self.layer(x, index)
        number = onnx.TensorProto
        inputs = [onnx.helper.make_tensor_value_info(name, number.INT32, shape)
                  for name, shape in (("ids", ["batch", "tokens"]), ("mask", ["batch", "tokens"]),
                                      ("places", ["tokens"]))]
        output = onnx.helper.make_tensor_value_info(x, number.FLOAT, ["batch", "tokens", "depth"])
        graph = onnx.helper.make_graph(self.nodes, "encoder", inputs, [output], self.constants)
        sets = [onnx.helper.make_opsetid("", 17), onnx.helper.make_opsetid("com.microsoft", 1)]
        onnx.save(onnx.helper.make_model(graph, opset_imports=sets, ir_version=8), path)


def pooled(hidden, mask):
    """The mean of the tokens' vectors, scaled to length 1."""
    weights = mask[..., None].astype(numpy.float32)
    mean = (hidden * weights).sum(1) / weights.sum(1)
    return mean / numpy.linalg.norm(mean, axis=1, keepdims=True)


class Transformers:
    name = "transformers"

    @staticmethod
    def types():
        return {"float32", "bfloat16"}

    def __init__(self, folder, case):
        self.model = transformers.AutoModel.from_pretrained(folder, dtype=getattr(torch, case.weights)).eval()
        self.threads = case.threads

    def vectors(self, batch):
        torch.set_num_threads(self.threads)
        with torch.inference_mode():
            hidden = self.model(input_ids=torch.from_numpy(batch["input_ids"]),
                                attention_mask=torch.from_numpy(batch["attention_mask"])).last_hidden_state
            return pooled(hidden.float().numpy(), batch["attention_mask"])


class OnnxRuntime:
    name = "ONNX Runtime"

    @staticmethod
    def types():
        return {"float32", "int8"}

    def __init__(self, folder, case):
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = case.threads, 1
        options.log_severity_level = 3
        path = folder / ("bytes.onnx" if case.weights == "int8" else "encoder.onnx")
        self.session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])

    def vectors(self, batch):
        ids, mask = (batch[name].astype(numpy.int32) for name in ("input_ids", "attention_mask"))
        places = numpy.arange(ids.shape[1], dtype=numpy.int32)
        return pooled(self.session.run(None, {"ids": ids, "mask": mask, "places": places})[0], mask)


class CTranslate2:
    name = "CTranslate2"

    @staticmethod
    def types():
        return ctranslate2.get_supported_compute_types("cpu")

    def __init__(self, folder, case):
        self.encoder = ctranslate2.Encoder(str(folder / "ctranslate2"), device="cpu", compute_type=case.weights,
                                           inter_threads=1, intra_threads=case.threads)

    def vectors(self, batch):
        lengths = batch["attention_mask"].sum(1)
        ids = [row[:length].tolist() for row, length in zip(batch["input_ids"], lengths)]
        found = self.encoder.forward_batch(ids).last_hidden_state.to(ctranslate2.DataType.float32)
        return pooled(numpy.array(found), batch["attention_mask"])


PEERS = (Transformers, OnnxRuntime, CTranslate2)


def processor_time():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


class Peer:
    """Splits the texts of a batch and computes their vectors."""

    def __init__(self, kind, folder, case, tokenizer, texts):
        self.name, self.side = kind.name, kind(folder, case)
        self.tokenizer, self.texts, self.batch = tokenizer, texts, case.batch

    def turn(self):
        wall, processor = time.perf_counter(), processor_time()
        found = [self.side.vectors(self.tokenizer(self.texts[i:i + self.batch], padding=True, return_tensors="np"))
                 for i in range(0, len(self.texts), self.batch)]
        return {"wall": time.perf_counter() - wall, "processor": processor_time() - processor,
                "vectors": numpy.concatenate(found)}


class Attend:
    name = "Attend"

    def __init__(self, build, folder, case, lines):
        command = [build / "answer_bench", folder / "attend", lines, "--embed", "--threads", str(case.threads),
                   "--weights", case.weights, "--batch", str(case.batch)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        found = json.loads(self.process.stdout.readline())
        return {**found, "vectors": numpy.array(found["vectors"])}

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def check_equal(case, ours, peer, theirs):
    """Compares the directions of the vectors: 1 - cosine."""
    worst = 1 - float((ours * theirs).sum(1).min())
    if worst > (1e-5 if case.weights == "float32" else 2e-2):
        raise SystemExit(f"{case.work()}, {peer}: 1 - cosine is {worst:.2g}")


def compare(args, folder, case, tokenizer):
    count = max(1, 2048 // case.tokens // case.batch // (4 if case.model == "bert-base" else 1)) * case.batch
    drawn = random.Random(1)
    texts = [" ".join(f"w{drawn.randrange(WORDS - 5)}" for _ in range(case.tokens - 2)) for _ in range(count)]
    lines = folder / "lines.txt"
    lines.write_text("".join(text + "\n" for text in texts))
    ours = Attend(args.build, folder, case, lines)
    peers = [Peer(kind, folder, case, tokenizer, texts) for kind in PEERS if case.weights in kind.types()]
    first = ours.turn()["vectors"]  # warm-up
    for peer in peers:
        check_equal(case, first, peer.name, peer.turn()["vectors"])
    turns = [[side.turn() for side in (ours, *peers)] for _ in range(args.turns)]
    ours.close()
    clock = "processor" if case.threads == 1 else "wall"
    for i, peer in enumerate(peers, 1):
        row = {"work": case.work(), "peer": peer.name, "unit": "ms per text", "bar": case.bar}
        for name, side in (("ours", 0), ("theirs", i)):
            row[name] = 1e3 * statistics.median(turn[side][clock] for turn in turns) / count
        row["ratio"] = statistics.median(turn[i][clock] / turn[0][clock] for turn in turns)
        print(json.dumps(row), flush=True)


def prepare(args, name, folder):
    model = make_folder(name, folder)
    subprocess.run([args.build / "attend", "import", folder, "--out", folder / "attend"], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    Graph(model).save(folder / "encoder.onnx")
    # Shape inference does not know the fused nodes.
    quantize_dynamic(folder / "encoder.onnx", folder / "bytes.onnx", weight_type=QuantType.QInt8,
                     extra_options={"DefaultTensorType": onnx.TensorProto.FLOAT})
    ctranslate2.converters.TransformersConverter(str(folder)).convert(str(folder / "ctranslate2"))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("build", type=pathlib.Path, help="folder with attend and answer_bench")
    parser.add_argument("--models", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--weights", nargs="+", choices=BARS, default=list(BARS))
    parser.add_argument("--tokens", nargs="+", type=int, default=LENGTHS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--batches", nargs="+", type=int, default=[1, 32])
    parser.add_argument("--turns", type=int, default=5)
    args = parser.parse_args()
    args.build = args.build.resolve()
    transformers.logging.set_verbosity_error()
    for name in args.models:
        with tempfile.TemporaryDirectory() as path:
            folder = pathlib.Path(path)
            prepare(args, name, folder)
            tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
            for case in itertools.product(args.weights, args.tokens, args.batches, args.threads):
                compare(args, folder, Case(name, *case), tokenizer)


if __name__ == "__main__":
    main()
