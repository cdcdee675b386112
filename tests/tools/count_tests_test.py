"""Tests of tools/count_tests.py on reports in CTest's format."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import cases  # noqa: E402

TOOL = ROOT / "tools" / "count_tests.py"
PASSED = '<testcase name="a" classname="a" time="0.01" status="run">\n<system-out></system-out>'
FAILED = '<testcase name="b" classname="b" time="0.01" status="fail">\n\t<failure message=""/>'
SKIPPED = ('<testcase name="c" classname="c" time="0" status="notrun">\n'
           '\t<skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>')
NOT_BUILT = ('<testcase name="d_NOT_BUILT" classname="d" time="0" status="notrun">\n'
             '\t<skipped message="Unable to find executable"/>')


def count(*reports):
    """Returns the exit status and the last line."""
    with tempfile.TemporaryDirectory() as folder:
        paths = [str(pathlib.Path(folder, f"{number}.xml")) for number in range(len(reports))]
        for path, report in zip(paths, reports):
            if report is not None:
                pathlib.Path(path).write_text("<testsuite>\n" + "\n".join(report) + "\n")
        run = subprocess.run([sys.executable, TOOL, *paths], capture_output=True, text=True)
        return run.returncode, run.stdout.splitlines()[-1]


def case(body, result="completed"):
    return f'<testcase name="x" file="a.cpp" line="1" status="run" result="{result}" time="0.">{body}</testcase>'


def count_cases(report, lines):
    """As count(), for one report and GoogleTest's report of its test "a"."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "tests.xml")
        path.write_text(report)
        pathlib.Path(folder, "cases").mkdir()
        pathlib.Path(folder, "cases", "a.xml").write_text("".join(lines))
        run = subprocess.run([sys.executable, TOOL, str(path)], capture_output=True, text=True)
        return run.returncode, run.stdout.splitlines()[-1]


class Count(unittest.TestCase):
    def test_sums_over_reports(self):
        self.assertEqual(count([PASSED] * 3, [PASSED]), (0, "4 passed, 0 failed"))

    def test_a_failure_fails(self):
        self.assertEqual(count([PASSED, FAILED]), (1, "1 passed, 1 failed"))

    def test_skipped_is_told_from_not_built(self):
        self.assertEqual(count([PASSED, SKIPPED]), (0, "1 passed, 0 failed, 1 skipped"))
        self.assertEqual(count([PASSED, NOT_BUILT]), (1, "1 passed, 1 failed"))

    def test_cases_of_googletest(self):
        bad = case('<failure message="b"/>')
        self.assertEqual(count_cases(PASSED, [case("")] * 2 + [case("", "skipped")]),
                         (0, "2 passed, 0 failed, 1 skipped"))
        failed = FAILED.replace('"b"', '"a"')
        self.assertEqual(count_cases(failed, [case(""), bad]), (1, "1 passed, 1 failed"))
        self.assertEqual(count_cases(failed, [case("")]), (1, "1 passed, 1 failed"))

    def test_the_slowest_come_first(self):
        report = [PASSED.replace('"a"', f'"{name}"').replace("0.01", f"{seconds}")
                  for name, seconds in (("quick", 1), ("slow", 30), ("b", 2), ("c", 3), ("d", 4), ("e", 5))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "tests.xml")
            path.write_text("\n".join(report))
            run = subprocess.run([sys.executable, TOOL, str(path)], capture_output=True, text=True)
        name = pathlib.Path(folder).name
        self.assertEqual(run.stdout.splitlines()[0], "slowest: " + ", ".join(
            f"{name} {test} s" for test in ("slow 30", "e 5", "d 4", "c 3", "b 2")))

    def test_nothing_run_is_no_success(self):
        self.assertEqual(count([]), (1, "0 passed, 0 failed"))
        self.assertEqual(count([SKIPPED]), (1, "0 passed, 0 failed, 1 skipped"))
        self.assertEqual(count([PASSED], None), (1, "1 passed, 0 failed"))


if __name__ == "__main__":
    cases.main()
