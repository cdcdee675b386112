"""attend doctor reports the capabilities of the machine, and a remedy for every problem."""

import json
import os
import subprocess
import unittest

import program


def doctor(*arguments, **variables):
    """Returns the output of attend doctor; problems do not change its exit code."""
    return subprocess.run([program.PROGRAM, "doctor", *arguments], check=True,
                          env=program.environment() | variables, stdout=subprocess.PIPE,
                          text=True).stdout


class Doctor(unittest.TestCase):
    def diagnose(self, **variables):
        return json.loads(doctor("--json", **variables))

    def test_reports_the_machine(self):
        diagnosis = self.diagnose(OMP_NUM_THREADS="1")
        self.assertEqual(diagnosis["cores"], len(os.sched_getaffinity(0)))
        self.assertEqual(diagnosis["openmp_threads"], 1)
        self.assertEqual(diagnosis["libtorch_threads"], 1)
        for speed in ("matrix_product_gflops", "multiply_add_peak_gflops"):
            self.assertGreater(diagnosis[speed], 0)
        self.assertGreater(diagnosis["memory_gb"], diagnosis["free_memory_gb"])
        self.assertTrue(os.path.exists(diagnosis["blas_file"]))
        self.assertTrue(diagnosis["simd_targets"])

    def test_names_a_remedy_for_too_many_threads(self):
        threads = 4 * os.cpu_count()
        problems = self.diagnose(OMP_NUM_THREADS=str(threads))["problems"]
        [problem] = [one for one in problems if f"{threads} threads" in one["problem"]]
        self.assertIn("OMP_NUM_THREADS", problem["remedy"])

    def test_says_that_openblas_takes_the_processor_for_another(self):
        told = {"OPENBLAS_CORETYPE": "Prescott"}
        diagnosis = self.diagnose(**told)
        if not diagnosis["blas"].startswith("openblas"):
            program.skip(f"LibTorch computes with {diagnosis['blas']} here, not OpenBLAS")
        if not {"AVX2", "AVX3"} & set(diagnosis["simd_targets"]):
            program.skip("no AVX2: OpenBLAS's Prescott kernels are the right ones here")
        self.assertEqual(diagnosis["blas_core"], "Prescott")
        [problem] = [one for one in diagnosis["problems"] if "Prescott" in one["problem"]]
        core = "SKYLAKEX" if "AVX3" in diagnosis["simd_targets"] else "HASWELL"
        self.assertIn(f"OPENBLAS_CORETYPE={core}", problem["remedy"])
        self.assertIn("Prescott", doctor(**told))
        better = self.diagnose(OPENBLAS_CORETYPE=core)
        self.assertEqual([one for one in better["problems"] if "OpenBLAS" in one["problem"]], [])

    def test_prints_the_same_for_a_reader(self):
        text = doctor()
        for word in ("processor", "SIMD", "LibTorch", "BLAS", "GFLOP/s", "peak"):
            self.assertIn(word, text)


if __name__ == "__main__":
    program.main()
