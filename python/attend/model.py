"""Answers, vectors and explanations of trained models, by the program `attend`.

The program has a LibTorch of its own. One process cannot hold it and another PyTorch, so Model starts the program and
reads the lines that it writes.
"""

from __future__ import annotations

import html
import inspect
import json
import math
import os
import pathlib
import shutil
import subprocess
import tempfile
import warnings
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Union

if TYPE_CHECKING:
    import numpy as np

Option = Union[bool, int, float, str, None]

_PACKED_TYPES = {"binary": "int8", "ubinary": "uint8"}  # other names of `precision` are types of numpy


@dataclass(frozen=True, eq=False)
class Map:
    """The tokens of `source` that each token of `target` depends on, by one method. `evidence` is filled on demand,
    and `patterns` for heads (docs/explanation.md)."""

    title: str
    source: list[str]
    target: list[str]
    weights: np.ndarray                # float32 [target, source]
    scores: np.ndarray | None = None   # float32 [target, source], NaN for no score; None: the weights are the scores
    evidence: list[dict[str, Any]] = field(default_factory=list)  # name, value, bar, passed, missing
    patterns: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, eq=False, kw_only=True)
class Explanation(Map):
    """Result of Model.explain(). If a view has several maps, `maps` has all, and the fields of Map belong to the first.
    A notebook shows the page."""

    model: Model
    text: str
    options: dict[str, Option]
    maps: list[Map]

    @cached_property
    def page(self) -> str:
        """The page of `attend explain --out x.html` with the same options: all methods, or the one that was given,
        tested, and all heads. The first use computes it."""
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # explain() gave the same
            out = pathlib.Path(folder, "page.html")
            self.model._run("explain", [self.text], self.options | {"evidence": None, "out": str(out)})
            return out.read_text(encoding="utf-8")

    def _repr_html_(self) -> str:
        return (f'<iframe srcdoc="{html.escape(self.page)}" sandbox="allow-scripts" '
                'style="width: 100%; height: 640px; border: 0"></iframe>')


class Model:
    """A trained model: the folder that `attend train` or `attend import` wrote.

    program: the program `attend`; None: $ATTEND_PROGRAM, otherwise `attend` on the PATH. Methods take the options of
    the program with `_` for `-`, such as beam=5, length_penalty=0.5 or strict=True. `attend predict --help` lists them.
    Reports of a program that succeeds, such as unknown tokens, become a UserWarning.

    Each call starts the program once for all texts and loads the weights again. Give many texts at once. A process that
    lives on would give other results: the number of a line seeds its draws, options hold for all lines, a bad line ends
    the process, and reports come at its end. `attend serve` keeps models loaded.

    Errors: FileNotFoundError if the folder or the program is missing; ValueError for arguments that the program
    refuses (exit code 2), and RuntimeError if it fails, both with its line.
    """

    def __init__(self, folder: str | os.PathLike[str], *, program: str | os.PathLike[str] | None = None) -> None:
        self.folder = os.path.abspath(folder)
        if not os.path.isdir(self.folder):
            raise FileNotFoundError(f"{os.fspath(folder)}: no such model folder; attend train --out makes one")
        wanted = os.fspath(program or os.environ.get("ATTEND_PROGRAM") or "attend")
        found = shutil.which(wanted)
        if found is None:
            raise FileNotFoundError(f"{wanted}: no such program; build attend, and name it by program= or "
                                    "$ATTEND_PROGRAM or put it on the PATH")
        self.program = os.path.abspath(found)
        self._search: dict[str, int] | None = None  # options for classify(); None: unknown yet

    def __repr__(self) -> str:
        return f"attend.Model({self.folder!r})"

    def predict(self, texts: Iterable[str], *, beam: int | None = None, nbest: int | None = None,
                **options: Option) -> list[str]:
        """The lines of `attend predict`: one per text, or with nbest (at most beam) or samples several per text,
        `text TAB answer TAB score`. Texts have no line breaks. Line breaks of answers are written as `\\n`."""
        return self._lines("predict", texts, {"beam": beam, "nbest": nbest, **options})

    def answers(self, texts: Iterable[str], *, beam: int | None = None, nbest: int | None = None,
                **options: Option) -> list[dict[str, Any]]:
        """One object of `attend predict --json` per text: source, predictions (target, score, log_probability,
        complete; or number; or labels), cut and unknown. details=True adds tokens, their probabilities and weights."""
        return self._objects("predict", texts, {"beam": beam, "nbest": nbest, **options})

    def classify(self, texts: Iterable[str], **options: Option) -> list[dict[str, float]]:
        """Probabilities of labels per text, sorted, the largest first: at most 1000 labels, and none for an empty text.
        ValueError if the model answers with anything else than labels."""
        texts = _checked(texts)
        search = self._label_search(texts, options)
        return [_label_probabilities(answer["predictions"]) for answer in self.answers(texts, **search, **options)]

    def embed(self, texts: Iterable[str], **options: Option) -> np.ndarray:
        """The vectors of `attend embed`, [texts, width]; [0, 0] without texts. The type is float32, or the one of
        `precision` (int8 for "binary", uint8 for "ubinary"). ValueError for an empty text, since it has no vector."""
        import numpy as np

        vectors = [answer["vector"] for answer in self._objects("embed", texts, options)]
        for i, vector in enumerate(vectors):
            if not vector:
                raise ValueError(f"texts[{i}] has no vector; leave empty texts out")
        precision = str(options.get("precision") or "float32")
        numbers = np.array(vectors, dtype=_PACKED_TYPES.get(precision, precision))
        return numbers.reshape(len(vectors), -1 if vectors else 0)

    def explain(self, source: str, target: str | None = None, *, method: str | None = None, evidence: bool = False,
                **options: Option) -> Explanation:
        """The maps of `attend explain` for the model's answer to `source`, or for `target`. method: a row of
        docs/explanation.md (None: the weights, or what replaces them); evidence: whether to test the map; view, layer,
        head and others: as the program."""
        import numpy as np

        _check("source", source, "\0")
        for name, text in (("target", target), ("method", method)):
            if text is not None:
                _check(name, text, "\0")
        if options.get("without"):
            raise ValueError("without: makes no map; use attend explain --without")
        options = {"target": target, "method": method, "evidence": evidence, **options}
        maps = []
        for line in self._run("explain", [source], {**options, "json": True}):
            one = json.loads(line)
            for name in {"weights", "scores"} & one.keys():
                one[name] = np.array(one[name], dtype=np.float32)
            maps.append(Map(**one))
        return Explanation(**vars(maps[0]), model=self, text=source, options=options, maps=maps)

    def _label_search(self, texts: list[str], options: dict[str, Option]) -> dict[str, int]:
        """Options that give all labels of a text. The first text with an answer shows the kind of the answers."""
        for text in texts if self._search is None else []:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                answer, = self.answers([text], details=True, **options)
            for one in answer["predictions"]:
                is_label = one.get("complete") and len(one["tokens"]) == len(one["log_probabilities"]) == 1
                if "labels" not in one and not is_label:
                    raise ValueError(f"{self.folder}: answers are not labels; use predict() or answers()")
                self._search = {} if "labels" in one else {"beam": 1000, "nbest": 1000}
            if self._search is not None:
                break
        return self._search or {}

    def _objects(self, command: str, texts: Iterable[str], options: dict[str, Option]) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._lines(command, texts, {**options, "json": True})]

    def _lines(self, command: str, texts: Iterable[str], options: dict[str, Option]) -> list[str]:
        texts = _checked(texts)
        return self._run(command, [], options, "".join(text + "\n" for text in texts)) if texts else []

    def _run(self, command: str, operands: list[str], options: dict[str, Option], text: str = "") -> list[str]:
        """Lines of standard output of the program; text: its standard input."""
        arguments = [self.program, command, self.folder, *_arguments(options), *(["--", *operands] if operands else [])]
        try:
            done = subprocess.run(arguments, input=text.encode(), capture_output=True)
        except OSError as error:
            raise RuntimeError(f"{self.program}: {error.strerror}") from error
        told = [line.removeprefix("attend: ") for line in done.stderr.decode(errors="replace").splitlines()
                if line.startswith("attend: ")]
        # With skip_bad the exit code is 1 although every text has an answer.
        if done.returncode != 0 and not (done.returncode == 1 and options.get("skip_bad") and done.stdout):
            kind = ValueError if done.returncode == 2 else RuntimeError
            raise kind(told[-1] if told else f"{self.program}: ended with exit code {done.returncode}")
        level = [frame.filename for frame in inspect.stack(0)].count(__file__) + 1
        for line in told:
            warnings.warn(line, stacklevel=level)
        return done.stdout.decode().split("\n")[:-1]


def _arguments(options: dict[str, Option]) -> Iterator[str]:
    for name, value in options.items():
        if value == "":  # the program would read the next argument after `=`
            yield from ("--" + name.replace("_", "-"), "")
        elif value is not None and value is not False:
            yield "--" + name.replace("_", "-") + ("" if value is True else f"={value}")


def _label_probabilities(predictions: list[dict[str, Any]]) -> dict[str, float]:
    if predictions and "labels" in predictions[0]:
        labels = {label["label"]: label["probability"] for label in predictions[0]["labels"]}
        return dict(sorted(labels.items(), key=lambda item: -item[1]))
    return {one["target"]: math.exp(one["log_probability"]) for one in predictions}


def _check(name: str, text: str, refused: str) -> None:
    if not isinstance(text, str):
        raise ValueError(f"{name} is of type {type(text).__name__}; give a str")
    for character in refused:
        if character in text:
            raise ValueError(f"{name} holds {character!r}; a text is one line without NUL")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError(f"{name} holds half of a surrogate pair; decode the text as UTF-8") from error


def _checked(texts: Iterable[str]) -> list[str]:
    if isinstance(texts, str):
        raise ValueError("texts is one str; give a list, [text]")
    texts = list(texts)
    for i, text in enumerate(texts):
        _check(f"texts[{i}]", text, "\n\r\0")
    return texts
