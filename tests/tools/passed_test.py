"""Tests of tools/passed.py on a small tree."""

import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import cases  # noqa: E402


class Passed(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        self.kernel = self.root / "attend/kernels/cpu/forward.cpp"
        self.kernel.parent.mkdir(parents=True)
        self.kernel.write_text("one\n")
        (self.root / "tools").mkdir()
        shutil.copy(ROOT / "tools/passed.py", self.root / "tools")

    def run_tool(self, *arguments):
        return subprocess.run([sys.executable, self.root / "tools/passed.py", *arguments],
                              capture_output=True).returncode

    def test_what_was_recorded_holds_until_a_source_changes(self):
        self.assertEqual(self.run_tool("is", "targets"), 1)
        self.assertEqual(self.run_tool("record", "targets"), 0)
        self.assertEqual(self.run_tool("is", "targets"), 0)
        self.assertEqual(self.run_tool("is", "sanitized-kernels"), 1)
        (self.root / "README.md").write_text("no kernel\n")
        self.assertEqual(self.run_tool("is", "targets"), 0)
        self.kernel.write_text("two\n")
        self.assertEqual(self.run_tool("is", "targets"), 1)

    def test_a_new_file_and_another_name_are_changes(self):
        self.run_tool("record", "targets")
        moved = self.kernel.with_name("backward.cpp")
        self.kernel.rename(moved)
        self.assertEqual(self.run_tool("is", "targets"), 1)
        moved.rename(self.kernel)
        self.assertEqual(self.run_tool("is", "targets"), 0)
        moved.write_text("")
        self.assertEqual(self.run_tool("is", "targets"), 1)

    def test_records_stand_side_by_side_in_order(self):
        (self.root / "tools/passed.txt").write_text("tidy attend/a.cpp 0123456789abcdef\n")
        self.run_tool("record", "targets")
        self.run_tool("record", "sanitized-kernels")
        names = [line.rsplit(" ", 1)[0]
                 for line in (self.root / "tools/passed.txt").read_text().splitlines()]
        self.assertEqual(names, ["sanitized-kernels", "targets", "tidy attend/a.cpp"])

    def test_an_unknown_check_is_misuse(self):
        self.assertEqual(self.run_tool("is", "nothing"), 2)


if __name__ == "__main__":
    cases.main()
