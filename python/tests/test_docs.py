"""The code of docs/python.md runs."""

import importlib.util
import pathlib
import re

import pytest

PAGE = pathlib.Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.skipif(not PAGE.exists(), reason="only in a clone")
def test_the_code_of_the_page():
    names: dict = {}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    if importlib.util.find_spec("transformers") is None:
        blocks = [block for block in blocks if "transformers" not in block]
    for block in blocks:
        exec(block, names)
    assert names["weights"].shape == (2, 1, 5, 120)
    assert names["slopes"].grad is None and names["context"].shape == (2, 8, 100, 64)
