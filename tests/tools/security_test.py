"""SECURITY.md lists exactly the fuzz targets."""

import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tests/support"))

import cases  # noqa: E402


class FuzzTargets(unittest.TestCase):
    def test_the_table_lists_each_once(self):
        listed = []
        for line in (ROOT / "SECURITY.md").read_text(encoding="utf-8").splitlines():
            if line.startswith("| "):
                listed += re.findall(r"`(\w+)`", line.rstrip("| ").rsplit("|", 1)[1])
        targets = [path.name.removesuffix("_fuzz.cpp") for path in (ROOT / "tests/fuzz").glob("*_fuzz.cpp")]
        self.assertEqual(sorted(listed), sorted(targets))


if __name__ == "__main__":
    cases.main()
