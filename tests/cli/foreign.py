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


def write_foreign(name, folder, is_written=lambda tensor: True):
    """Writes the folder of a golden case, with the tensors for which `is_written` is true; returns the case."""
    case = golden_case(name)
    folder.mkdir()
    for file, document in case["files"].items():
        if file.endswith((".spm", ".model")):
            (folder / file).write_bytes(base64.b64decode(document))
        else:
            (folder / file).write_text(document if isinstance(document, str) else json.dumps(document))
    header, body = {}, b""
    for number, (key, shape) in enumerate(sorted(case["tensors"].items())):
        if not is_written(key):
            continue
        is_norm = ("norm" in key.lower() or ".ln_" in key) and key.endswith("weight")
        values = numbers(number, shape, is_norm)
        header[key] = {"dtype": "F32", "shape": shape,
                       "data_offsets": [len(body), len(body) + 4 * len(values)]}
        body += struct.pack(f"<{len(values)}f", *values)
    (folder / "model.safetensors").write_bytes(safetensors(header, body))
    return case
