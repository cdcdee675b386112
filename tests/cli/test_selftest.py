"""attend selftest compares every SIMD target of the processor with the formulas."""

import json
import unittest

import program


class Selftest(program.Case):
    def test_every_target_is_within_its_bounds(self):
        report = json.loads(self.succeed("selftest", "--json").stdout)
        doctor = json.loads(self.succeed("doctor", "--json").stdout)
        self.assertEqual(report["cpu"], doctor["cpu"])
        self.assertIs(report["passed"], True)
        self.assertTrue(report["targets"])
        for target in report["targets"]:
            self.assertEqual(set(target), {"target", "results", "failures", "error", "bound",
                                           "result"})
            self.assertEqual(target["failures"], 0, target)
            self.assertGreater(target["results"], 10000)
            self.assertGreater(target["error"], 0)
            self.assertLessEqual(target["error"], target["bound"])
        names = [target["target"] for target in report["targets"]]
        self.assertEqual(len(names), len(set(names)))
        self.assertLessEqual(set(names) - {"SCALAR", "EMU128"}, set(doctor["simd_targets"]))

    def test_prints_the_same_for_a_reader(self):
        text = self.succeed("selftest").stdout
        for word in ("target", "error", "bound", "passed"):
            self.assertIn(word, text)
        self.assertNotIn("FAILED", text)

    def test_help_has_examples(self):
        self.assertIn("attend selftest --json", self.succeed("selftest", "--help").stdout)


if __name__ == "__main__":
    program.main()
