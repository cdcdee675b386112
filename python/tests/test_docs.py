"""The code of docs/python.md runs."""

import importlib.util
import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


pytestmark = pytest.mark.skipif(not PAGE.exists(), reason="only in a clone")


def blocks_of_page(of_models):
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 5
    return [block for block in blocks if ("attend.Model" in block) == of_models]


def test_the_code_of_the_page():
    names: dict = {}
    blocks = blocks_of_page(of_models=False)
    assert len(blocks) == 4
    if importlib.util.find_spec("transformers") is None:
        blocks = [block for block in blocks if "transformers" not in block]
    for block in blocks:
        exec(block, names)
    assert names["weights"].shape == (2, 1, 5, 120)
    assert names["slopes"].grad is None and names["context"].shape == (2, 8, 100, 64)
    assert len(names["answers"]) == 8 and names["right"] >= 6  # 8 with each of three seeds


def test_the_code_about_models(program, trained, monkeypatch):
    monkeypatch.chdir(trained)
    monkeypatch.setenv("ATTEND_PROGRAM", program)
    names: dict = {}
    block, = blocks_of_page(of_models=True)
    exec(block, names)
    assert len(names["lines"]) == 2 and len(names["best"]["predictions"]) == 3
    assert names["vectors"].shape[0] == 2 and names["labels"].keys() == {"y", "n"}
    assert names["explanation"].weights.shape[1] == 3
