"""attend doctor says what the machine offers, and names a remedy with every problem."""

import json
import os
import subprocess
import unittest

import program


def doctor(*arguments, **variables):
    """What attend doctor prints; problems are no failure."""
    return subprocess.run([os.environ["ATTEND_PROGRAM"], "doctor", *arguments], check=True,
                          env={**os.environ, **variables}, stdout=subprocess.PIPE, text=True,
                          timeout=120).stdout


class Doctor(unittest.TestCase):
    def diagnose(self, **variables):
        return json.loads(doctor("--json", **variables))

    def test_reports_the_machine(self):
        diagnosis = self.diagnose(OMP_NUM_THREADS="1")
        self.assertEqual(diagnosis["cores"], len(os.sched_getaffinity(0)))
        self.assertEqual(diagnosis["openmp_threads"], 1)
        self.assertEqual(diagnosis["libtorch_threads"], 1)
        self.assertGreater(diagnosis["matrix_product_gflops"], 0)
        self.assertGreater(diagnosis["memory_gb"], diagnosis["free_memory_gb"])
        self.assertTrue(os.path.exists(diagnosis["blas_file"]))
        self.assertTrue(diagnosis["simd_targets"])

    def test_names_a_remedy_for_too_many_threads(self):
        threads = 4 * os.cpu_count()
        problems = self.diagnose(OMP_NUM_THREADS=str(threads))["problems"]
        [problem] = [one for one in problems if f"{threads} threads" in one["problem"]]
        self.assertIn("OMP_NUM_THREADS", problem["remedy"])

    def test_prints_the_same_for_a_reader(self):
        text = doctor()
        for word in ("processor", "SIMD", "LibTorch", "BLAS", "GFLOP/s"):
            self.assertIn(word, text)


if __name__ == "__main__":
    program.main()
