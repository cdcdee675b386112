#!/usr/bin/env python3
"""Counts the tests in CTest's JUnit reports: count_tests.py REPORT...

Prints one line, "N passed, N failed" and ", N skipped" when there are any. Exits with 1 when a test
failed, a report is missing or no test ran.
"""

import pathlib
import re
import sys

# Not an XML parser: the output of a test, which the report quotes, may hold bytes that XML forbids.
CASE = re.compile(r'<testcase [^>]*status="(\w+)"[^>]*>\s*(?:<skipped message="([^"]*)")?')


def outcome(status, reason):
    if status == "run":
        return "passed"
    # A test whose program is missing is reported as not run, as a skipped one is.
    if status == "disabled" or (status == "notrun" and reason.startswith("SKIP_")):
        return "skipped"
    return "failed"


def main(paths):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    complete = True
    for path in map(pathlib.Path, paths):
        if not path.is_file():
            print(f"count_tests: {path} is missing: its build or CTest failed", file=sys.stderr)
            complete = False
            continue
        for status, reason in CASE.findall(path.read_text(encoding="utf-8", errors="replace")):
            counts[outcome(status, reason)] += 1
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 0 if complete and counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
