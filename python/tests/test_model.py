"""attend.Model gives what the program prints."""

import html
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import attend

TEXTS = ["a b c", "d", "b b a c", "", "--help", "c\tx", "é\u2028a"]

pytestmark = pytest.mark.filterwarnings("ignore:.*unknown to the model")


@pytest.fixture
def model(program, trained):
    return attend.Model(trained / "translator", program=program)


@pytest.fixture
def reviews(program, trained):
    return attend.Model(trained / "reviews", program=program)


def output(model, *arguments, texts=()):
    command, *others = arguments
    return subprocess.run([model.program, command, *others], input="".join(text + "\n" for text in texts).encode(),
                          capture_output=True).stdout


@pytest.mark.parametrize("options, arguments", [
    ({}, []), ({"beam": 4, "nbest": 2}, ["--beam", "4", "--nbest", "2"]),
    ({"samples": 2, "seed": 7, "top_p": 0.9, "threads": 1}, ["--samples", "2", "--seed", "7", "--top-p", "0.9"]),
    ({"wu_length_penalty": True, "beam": 3, "strict": False, "unknown": None}, ["--wu-length-penalty", "--beam", "3"])])
def test_predict_gives_the_lines_of_the_program(model, options, arguments):
    lines = model.predict(TEXTS, **options)
    assert "".join(line + "\n" for line in lines).encode() == output(model, "predict", model.folder, *arguments,
                                                                    texts=TEXTS)
    assert len(lines) >= len(TEXTS)


def test_answers(model):
    answers = model.answers(iter(TEXTS), beam=3, nbest=3, details=True)
    printed = output(model, "predict", model.folder, "--beam=3", "--nbest=3", "--json", "--details", texts=TEXTS)
    assert answers == [json.loads(line) for line in printed.decode().split("\n")[:-1]]
    assert [answer["source"] for answer in answers] == TEXTS
    assert np.array(answers[0]["predictions"][0]["weights"]).shape[1] == 3


def test_classify_one_label(reviews):
    texts = ["a b", "c d", "c"]
    for probabilities, line in zip(reviews.classify(texts), reviews.predict(texts), strict=True):
        assert probabilities.keys() == {"y", "n"} and max(probabilities, key=probabilities.get) == line
        assert list(probabilities)[0] == line and sum(probabilities.values()) == pytest.approx(1, abs=1e-6)
    assert attend.Model(reviews.folder, program=reviews.program).classify(["", "a"])[0] == {}


def test_classify_several_labels(program, trained):
    model = attend.Model(trained / "topics", program=program)
    labels, = model.classify(["a b"])
    assert labels.keys() == {"a", "b", "c"} and list(labels.values()) == sorted(labels.values(), reverse=True)
    assert all(0 < probability < 1 for probability in labels.values())


def test_classify_refuses_other_answers(model):
    for options in ({}, {"maximum_length": 1}):
        with pytest.raises(ValueError, match=r"answers are not labels; use predict\(\)"):
            model.classify(["a b c"], **options)


def test_embed(model):
    vectors = model.embed(["a b c", "d"], threads=1)
    printed = output(model, "embed", model.folder, texts=["a b c", "d"]).decode().splitlines()
    assert vectors.dtype == np.float32 and vectors.flags["C_CONTIGUOUS"]
    assert np.array_equal(vectors, np.array([line.split() for line in printed], dtype=np.float32))
    with pytest.raises(ValueError, match=r"texts\[1\] has no vector"):
        model.embed(["a", ""])


def test_explain(model):
    explanation = model.explain("a b c", evidence=True, threads=1)
    printed = json.loads(output(model, "explain", model.folder, "a b c", "--json", "--evidence"))
    assert (explanation.source, explanation.target) == (printed["source"], printed["target"])
    assert explanation.evidence == printed["evidence"] and explanation.scores is None
    assert explanation.weights.dtype == np.float32
    assert np.array_equal(explanation.weights, np.array(printed["weights"], dtype=np.float32))
    assert len(explanation.maps) == 1 and explanation.patterns == {}


def test_explain_a_given_target_by_a_method(model):
    explanation = model.explain("--json", "c b", method="gradient_x_input", beam=2)
    assert explanation.source == ["--json"] and explanation.target == ["c", "b"]
    assert explanation.scores.shape == explanation.weights.shape == (2, 1) and "gradient" in explanation.title


def test_explain_gives_every_map_of_a_view(model):
    explanation = model.explain("a b", view="model")
    printed = output(model, "explain", model.folder, "a b", "--view", "model", "--json").decode().splitlines()
    assert [one.title for one in explanation.maps] == [json.loads(line)["title"] for line in printed]
    assert explanation.title == explanation.maps[0].title


def test_a_notebook_shows_the_page(model, tmp_path):
    explanation = model.explain("a b", "b a", evidence=True)
    output(model, "explain", model.folder, "a b", "--target", "b a", "--out", tmp_path / "x.html")
    assert explanation.page == (tmp_path / "x.html").read_text(encoding="utf-8")
    shown = explanation._repr_html_()
    srcdoc = shown.split('srcdoc="')[1].split('"')[0]
    assert shown.startswith("<iframe ") and html.unescape(srcdoc) == explanation.page


@pytest.mark.parametrize("texts, message", [
    ("abc", r"texts is one str; give a list, \[text\]"), (["a", b"b"], r"texts\[1\] is of type bytes; give a str"),
    ([None], r"texts\[0\] is of type NoneType"), (["a\nb"], r"texts\[0\] holds '\\n'; a text is one line without NUL"),
    (["a", "b\r"], r"texts\[1\] holds '\\r'"), (["\0"], r"texts\[0\] holds '\\x00'"),
    (["\udcff"], r"texts\[0\] holds half of a surrogate pair")])
@pytest.mark.parametrize("method", ["predict", "answers", "classify", "embed"])
def test_texts_that_are_no_lines(model, method, texts, message):
    with pytest.raises(ValueError, match=message):
        getattr(model, method)(texts)


def test_no_texts(model):
    assert model.predict([]) == model.answers([]) == model.classify([]) == []
    assert model.embed([]).shape == (0, 0)


def test_explain_refuses_what_is_no_text(model):
    for arguments, message in [((["a"],), "source is of type list"), ((None,), "source is of type NoneType"),
                               (("a\0",), "source holds"), (("a", 3), "target is of type int"), (("",), "the text is empty"),
                               (("a", "unseen"), "'unseen' is not one of the")]:
        with pytest.raises(ValueError, match=message):
            model.explain(*arguments)
    with pytest.raises(ValueError, match="no method is called 'none'; there are attention, "):
        model.explain("a", method="none")
    with pytest.raises(ValueError, match="without: makes no map"):
        model.explain("a", without="encoder.1")
    with pytest.raises(RuntimeError, match="Argument list too long"):
        model.explain("a " * 100_000)


def test_errors_repeat_the_line_of_the_program(model):
    with pytest.raises(ValueError, match=r"^--beam: Value 0 not in range 1 to 1000"):
        model.predict(["a"], beam=0)
    with pytest.raises(ValueError, match=r"^--nbest 3: a beam of 2 has no more answers; raise --beam$"):
        model.predict(["a"], beam=2, nbest=3)
    with pytest.raises(ValueError, match=r"^The following argument was not expected: --bem=2 \(see attend"):
        model.answers(["a"], bem=2)


def test_a_program_that_fails(trained, tmp_path):
    for body, message in [("echo attend: first >&2; echo attend: the disk is full >&2; exit 1", "^the disk is full$"),
                          ("exit 3", "ended with exit code 3$"), ("kill -9 $$", "ended with exit code -9$")]:
        fake = tmp_path / "fake"
        fake.write_text(f"#!/bin/sh\n{body}\n")
        fake.chmod(0o755)
        with pytest.raises(RuntimeError, match=message):
            attend.Model(trained / "translator", program=fake).predict(["a"])
    fake.write_bytes(b"no program")
    with pytest.raises(RuntimeError, match="Exec format error"):
        attend.Model(trained / "translator", program=fake).predict(["a"])


def test_reports_are_warnings(model):
    with pytest.warns(UserWarning, match="^1 of 2 source tokens are unknown to the model, first in line 1") as told:
        model.embed(["a x"])
    assert told[0].filename == __file__


def test_bad_lines_can_be_skipped(program, tmp_path, trained):
    fake = tmp_path / "fake"
    fake.write_text("#!/bin/sh\necho y\necho\necho 'attend: 1 of 2 lines cannot be read' >&2\nexit 1\n")
    fake.chmod(0o755)
    model = attend.Model(trained / "reviews", program=fake)
    with pytest.warns(UserWarning, match="1 of 2 lines cannot be read"):
        assert model.predict(["a", "b"], skip_bad=True) == ["y", ""]
    with pytest.raises(RuntimeError, match="1 of 2 lines cannot be read"):
        model.predict(["a", "b"])


def test_the_program_is_found(program, trained, tmp_path, monkeypatch):
    folder = trained / "reviews"
    monkeypatch.setenv("ATTEND_PROGRAM", str(tmp_path / "nothing"))
    assert attend.Model(folder, program=program).program == os.path.abspath(program)
    with pytest.raises(FileNotFoundError, match="nothing: no such program; build attend, and name it by program="):
        attend.Model(folder)
    with pytest.raises(FileNotFoundError, match="no such program"):
        attend.Model(folder, program=folder / "config.toml")
    monkeypatch.setenv("ATTEND_PROGRAM", program)
    assert attend.Model(str(folder)).predict(["a"]) != []
    monkeypatch.delenv("ATTEND_PROGRAM")
    (tmp_path / "attend").symlink_to(os.path.abspath(program))
    monkeypatch.setenv("PATH", str(tmp_path))
    assert attend.Model(folder).program == str(tmp_path / "attend")


def test_folders(program, trained, tmp_path, monkeypatch):
    with pytest.raises(FileNotFoundError, match="^nowhere: no such model folder"):
        attend.Model("nowhere", program=program)
    with pytest.raises(ValueError, match=str(tmp_path)):
        attend.Model(tmp_path, program=program).predict(["a"])
    monkeypatch.chdir(trained)
    model = attend.Model("reviews", program=program)
    monkeypatch.chdir(tmp_path)
    assert len(model.predict(["a"])) == 1 and "reviews" in repr(model)


def test_the_import_needs_no_numpy():
    code = "import sys; sys.modules['numpy'] = None; import attend; attend.Model"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True,
                   env=os.environ | {"PYTHONPATH": os.path.dirname(os.path.dirname(attend.__file__))})
