"""Tests of tools/check_english.py on files made for each kind of prose and each pattern."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tests/support")]

import cases  # noqa: E402
import check_english  # noqa: E402


def found(files):
    """Returns {room: {pattern: [(file, line)]}} for files with these texts."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return {room: dict(patterns) for room, patterns in check_english.findings(root, files).items()}


class Patterns(unittest.TestCase):
    def test_each_is_found_in_a_comment(self):
        for name, text in {
                "where": "Zero where the mask is set.", "behind": "The layer behind it.", "those": "Shapes, and those of b.",
                "no subject": "What the layer returns.", "person": "Whom it reads.", "alone": "The mask alone.",
                "none": "The row has none.", "beside": "The file beside it.", "goes on": "Training goes on.",
                "so many": "As many as there are.", "over 30 words": "one " * 31 + "end."}.items():
            with self.subTest(name):
                self.assertEqual(found({"attend/nn/a.h": f"\n// {text}\nint f();\n"})["attend/nn"].get(name),
                                 [("attend/nn/a.h", 2)])

    def test_plain_sentences_are_not(self):
        for text in ("Returns the scores of each query, or zeros if the mask is set.", "It is no longer used.",
                     "Uses what the encoder returned.", "The whole of it; a copy of that file.", "one " * 29 + "end."):
            with self.subTest(text):
                self.assertEqual(found({"attend/nn/a.h": f"// {text}\n"}), {})


class Kinds(unittest.TestCase):
    def lines(self, name, text):
        return sorted(line for patterns in found({name: text}).values() for places in patterns.values()
                      for _, line in places)

    def test_comments_and_texts_of_cpp(self):
        self.assertEqual(self.lines("attend/a/b.cpp", "// a\n// b\n//  beside it\n"), [3])
        self.assertEqual(self.lines("attend/a/b.cpp", 'f();  // beside it\ng("it stands beside alone");\n'), [1, 2, 2, 2])
        self.assertEqual(self.lines("attend/a/b.cpp", 'f(beside, "alone", R"(alone)");  // NOLINT(alone)\n'), [])

    def test_adjacent_literals_of_cpp_are_one_text(self):
        half = "one " * 16
        self.assertEqual(self.lines("attend/a/b.cpp", f'f("{half}"\n  "{half}");\ng(beside);\n'), [1])
        self.assertEqual(self.lines("attend/a/b.cpp", 'f("any "\n  "of them is right");\n'), [])
        self.assertEqual(self.lines("attend/a/b.cpp", 'f("it is right\\n"\n  "  the file beside it");\n'), [2])
        listed = "Examples:\\n" + "".join(f'"\n  "  attend train {"--set " * 12}x\\n' for _ in range(3))
        self.assertEqual(self.lines("attend/a/b.cpp", f'f("{listed}");\n'), [])

    def test_a_sentence_of_several_lines_is_one(self):
        half = "one " * 16
        self.assertEqual(self.lines("attend/a/b.h", f"// {half}\n// {half}\n"), [1])
        self.assertEqual(self.lines("attend/a/b.h", f"// {half}.\n// {half}\n"), [])

    def test_comments_and_docstrings_of_python(self):
        self.assertEqual(self.lines("tools/a.py", 'def f():\n    """What is alone."""\n    alone = "alone"  # alone\n'),
                         [2, 2, 3])

    def test_texts_of_python_except_in_tests(self):
        text = 'f("it is alone", f"a {x} beside b", "alone", "all alone here".split())\n'
        self.assertEqual(self.lines("tools/a.py", text), [1, 1])
        self.assertEqual(self.lines("tests/a/b.py", text), [])

    def test_texts_of_javascript(self):
        self.assertEqual(self.lines("attend/a/page/b.js", "f('it is alone', `a ${x}\nbeside b`, 'alone');  // alone\n"),
                         [1, 2, 2])

    def test_comments_of_shell_and_toml(self):
        for name in ("dev", "tools/a.sh", "recipes/a.toml", "CMakeLists.txt"):
            with self.subTest(name):
                self.assertEqual(self.lines(name, "# it alone\nalone = 1\n"), [1])

    def test_documents_without_their_code(self):
        self.assertEqual(self.lines("docs/a.md", "alone\n\n    alone\n\n```\nalone\n```\n\n- `alone` alone\n"), [1, 9])

    def test_rows_of_tables_have_no_sentences(self):
        self.assertEqual(self.lines("docs/a.md", "| " + "one " * 40 + "|\n"), [])

    def test_files_without_prose_are_not_read(self):
        self.assertEqual(self.lines("tests/old_folders/a/config.toml", "# alone\n"), [])
        self.assertEqual(self.lines("tests/data/a.tsv", "alone\n"), [])


class Budgets(unittest.TestCase):
    FOUND = {"attend/nn": {"alone": [("attend/nn/a.h", 3), ("attend/nn/b.h", 5)]}}

    def test_a_room_over_its_budget_is_printed_with_its_places(self):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            self.assertTrue(check_english.over_budget(self.FOUND, {"attend/nn": {"alone": 1}}))
        for part in ('attend/nn: "alone" 2 times, at most 1', "attend/nn/a.h:3", "attend/nn/b.h:5"):
            self.assertIn(part, printed.getvalue())
        self.assertFalse(check_english.over_budget(self.FOUND, {"attend/nn": {"alone": 2}}))

    def test_budgets_only_fall(self):
        lowered = check_english.lowered
        self.assertEqual(lowered(self.FOUND, {}), {"attend/nn": {"alone": 2}})
        self.assertEqual(lowered(self.FOUND, {"attend/nn": {"alone": 5, "where": 3}}), {"attend/nn": {"alone": 2}})
        self.assertEqual(lowered(self.FOUND, {"attend/nn": {"alone": 1}}), {"attend/nn": {"alone": 1}})
        self.assertEqual(lowered(self.FOUND, {"attend/ops": {"alone": 1}}), {})


if __name__ == "__main__":
    cases.main()
