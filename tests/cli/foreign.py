"""Folders as transformers saves them, from tests/import/golden.json and the formula of its weights."""

import base64
import json
import math
import pathlib
import struct

from program import safetensors

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "import" / "golden.json"


def golden_case(name):
    return next(one for one in json.loads(GOLDEN.read_text())["cases"] if one["name"] == name)


def numbers(number, shape, is_norm):
    values = [((k * 37 + number * 101) % 199 - 99) / 150 for k in range(math.prod(shape))]
    return [1 + value / 3 for value in values] if is_norm else values


def tensor_file(shapes, is_written=lambda tensor: True):
    """The bytes of a safetensors file of these shapes, with the tensors for which `is_written` is true."""
    header, body = {}, b""
    for number, (key, shape) in enumerate(sorted(shapes.items())):
        if not is_written(key):
            continue
        is_norm = ("norm" in key.lower() or ".ln_" in key) and key.endswith("weight")
        values = numbers(number, shape, is_norm)
        header[key] = {"dtype": "F32", "shape": shape,
                       "data_offsets": [len(body), len(body) + 4 * len(values)]}
        body += struct.pack(f"<{len(values)}f", *values)
    return safetensors(header, body)


def write_files(folder, files):
    for file, document in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        if file.endswith((".spm", ".model")):
            (folder / file).write_bytes(base64.b64decode(document))
        else:
            (folder / file).write_text(document if isinstance(document, str) else json.dumps(document))


def write_foreign(name, folder, is_written=lambda tensor: True):
    """Writes the folder of a golden case, with the tensors for which `is_written` is true; returns the case."""
    case = golden_case(name)
    folder.mkdir()
    write_files(folder, case["files"])
    (folder / "model.safetensors").write_bytes(tensor_file(case["tensors"], is_written))
    return case


def write_sentence_encoder(folder, files=None):
    """Writes the golden sentence encoder, with other contents of `files`; returns its texts and answers by prompt."""
    case = json.loads(GOLDEN.read_text())["sentences"]
    write_foreign("BertModel", folder)
    write_files(folder, case["files"] | (files or {}))
    for file, shapes in case["tensors"].items():
        (folder / file).write_bytes(tensor_file(shapes))
    return case
