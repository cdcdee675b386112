"""Runs the tests of a script. Each leaves a line in the file that ATTEND_CASES names, in the form of
GoogleTest's reports, from which tools/count_tests.py counts."""

import os
import pathlib
import sys
import unittest


class Result(unittest.TextTestResult):
    succeeded = 0

    def addSuccess(self, test):
        super().addSuccess(test)
        self.succeeded += 1

    def lines(self):
        failed = len(self.failures) + len(self.errors) + len(self.unexpectedSuccesses)
        for outcome, count in (('result="completed">', self.succeeded),
                               ('result="completed"><failure/>', failed),
                               ('result="skipped">', len(self.skipped))):
            yield from [f"<testcase {outcome}</testcase>\n"] * count


def main():
    runner = unittest.TextTestRunner(verbosity=2, resultclass=Result)
    result = unittest.main(module="__main__", testRunner=runner, exit=False).result
    report = os.environ.get("ATTEND_CASES")
    if report:
        pathlib.Path(report).parent.mkdir(parents=True, exist_ok=True)
        pathlib.Path(report).write_text("".join(result.lines()))
    sys.exit(not result.wasSuccessful())
