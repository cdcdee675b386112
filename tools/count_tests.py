#!/usr/bin/env python3
"""Counts the tests in CTest's JUnit reports: count_tests.py REPORT...

If a test NAME left a report of its cases (in GoogleTest's format) in cases/NAME.xml next to CTest's report, the cases
are counted.

Prints the slowest tests, then "N passed, N failed" and, if there are any, ", N skipped". Exits with 1 if a test failed,
a report is missing or no test ran.
"""

import pathlib
import re
import sys

# Not an XML parser: reports quote output of tests, which may have bytes that XML forbids.
CASE = re.compile(r'<testcase name="([^"]*)" [^>]*time="([^"]*)" status="(\w+)"[^>]*>\s*'
                  r'(?:<skipped message="([^"]*)")?')
SLOWEST = 5


def outcome(status, reason):
    if status == "run":
        return "passed"
    # CTest reports a missing program as "notrun", like a skipped test.
    if status == "disabled" or (status == "notrun" and reason.startswith("SKIP_")):
        return "skipped"
    return "failed"


def read(path):
    return path.read_text(encoding="utf-8", errors="replace")


def outcomes_of_cases(path, outcome_of_all):
    """Outcomes of the cases in a report of GoogleTest."""
    outcomes = []
    for case in read(path).split("<testcase ")[1:]:
        if "<failure" in case:
            outcomes.append("failed")
        elif 'result="skipped"' in case:
            outcomes.append("skipped")
        elif 'result="completed"' in case:
            outcomes.append("passed")
    # A failure after the last case, such as a leak, is in no case.
    if outcome_of_all == "failed" and "failed" not in outcomes:
        outcomes.append("failed")
    return outcomes


def main(paths):
    counts = {"passed": 0, "failed": 0, "skipped": 0}
    complete, seconds = True, {}
    for path in map(pathlib.Path, paths):
        if not path.is_file():
            print(f"count_tests: {path} is missing: its build or CTest failed", file=sys.stderr)
            complete = False
            continue
        for name, time, status, reason in CASE.findall(read(path)):
            seconds[f"{path.parent.name} {name}"] = float(time)
            cases = path.parent / "cases" / f"{name}.xml"
            own = outcome(status, reason)
            for one in outcomes_of_cases(cases, own) if cases.is_file() else [own]:
                counts[one] += 1
    slowest = sorted(seconds, key=seconds.get, reverse=True)[:SLOWEST]
    print("slowest: " + ", ".join(f"{name} {seconds[name]:.0f} s" for name in slowest))
    skipped = f", {counts['skipped']} skipped" if counts["skipped"] else ""
    print(f"{counts['passed']} passed, {counts['failed']} failed{skipped}")
    return 0 if complete and counts["passed"] and not counts["failed"] else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
