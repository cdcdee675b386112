"""Compares the program with recorded answers of the peers of `./dev conform` in tests/conform."""

import json
import pathlib

import arrays
import program

RECORDED = pathlib.Path(__file__).resolve().parents[1] / "conform"


class Conform(program.Case):
    def test_attention_is_that_of_onnx(self):
        """tools/conform_attention.py --record wrote the cases."""
        recorded = json.loads((RECORDED / "attention.json").read_text(encoding="utf-8"))
        self.assertGreaterEqual(len(recorded["cases"]), 16)
        for case in recorded["cases"]:
            options = []
            for option, array in case["arrays"].items():
                path = self.folder / f"{option[2:]}.npy"
                arrays.write_npy(path, (array["shape"], array["values"]), array["descr"])
                options += [option, f"dense_bias={path}" if option == "--param" else path]
            self.succeed("compute", *case["choices"], *options, "--out", "out.npz")
            found, _ = arrays.read_npz(self.folder / "out.npz")
            for name in ("context", "weights"):
                self.assertEqual(len(found[name][1]), len(case[name]), case["name"])
                difference = max(abs(a - b) for a, b in zip(found[name][1], case[name]))
                self.assertLessEqual(difference, case["tolerance"], f"{recorded['peer']}: {name} of {case['name']}")


if __name__ == "__main__":
    program.main()
