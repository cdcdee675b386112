import os
import pathlib
import random
import shutil
import subprocess
import sys

import pytest
import torch

sys.path.insert(0, str(pathlib.Path(__file__).parent))


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(1)
    torch.set_num_threads(2)


@pytest.fixture(scope="session")
def program():
    """Path of the program attend."""
    found = shutil.which(os.environ.get("ATTEND_PROGRAM") or "attend")
    if found is None:
        pytest.skip("NO PROGRAM attend: attend.Model is not tested; set ATTEND_PROGRAM")
    return found


@pytest.fixture(scope="session")
def trained(program, tmp_path_factory):
    """Folder with the models `translator` (words in reverse), `reviews` (one label) and `topics` (several labels)."""
    folder = tmp_path_factory.mktemp("models")
    draw = random.Random(1)
    texts = [[draw.choice("abcd") for _ in range(draw.randint(1, 5))] for _ in range(200)]
    targets = {"translator": lambda text: " ".join(reversed(text)), "reviews": lambda text: "yn"["a" in text],
               "topics": lambda text: "|".join(sorted(set(text) - {"d"}))}
    settings = {"translator": ["--target-units", "space", "--set", "model.hidden=16"],
                "reviews": ["--set", "model.type=classifier", "--set", "model.pooling=fixed_mlp"],
                "topics": ["--set", "model.type=classifier", "--set", "data.target=labels"]}
    for name, target in targets.items():
        data = folder / f"{name}.tsv"
        data.write_text("".join(f"{' '.join(text)}\t{target(text)}\n" for text in texts))
        subprocess.run([program, "train", "--data", data, "--valid", data, "--out", folder / name, "--source-units",
                        "space", "--set", "train.epochs=2", *settings[name]], check=True)
    return folder
