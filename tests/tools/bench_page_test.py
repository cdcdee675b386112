"""docs/benchmarks.md and docs/peers.md have the tables that tools/bench_page.py generates from bench/results."""

import decimal
import json
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path += [str(ROOT / "tools"), str(ROOT / "tests/support")]

import bench_page  # noqa: E402
import cases  # noqa: E402
import peers  # noqa: E402


class Page(unittest.TestCase):
    def test_they_have_the_generated_tables(self):
        self.assertEqual(list(bench_page.changed_pages()), [], "run ./dev bench --write")

    def test_a_changed_figure_is_found(self):
        page = bench_page.PAGE.read_text(encoding="utf-8").replace("31.3 ms", "13.1 ms")
        self.assertNotEqual(bench_page.page_text(bench_page.PAGE, page), page)

    def test_markers_without_a_table_are_refused(self):
        page = bench_page.PAGE.read_text(encoding="utf-8").replace("<!-- table bf16 -->", "<!-- table bf61 -->")
        with self.assertRaisesRegex(SystemExit, "bf61"):
            bench_page.page_text(bench_page.PAGE, page)


class Results(unittest.TestCase):
    def files(self):
        return sorted(bench_page.RESULTS.glob("*.json"))

    def test_names_are_date_and_machine(self):
        for path in self.files():
            with self.subTest(path.name):
                content = json.loads(path.read_text(encoding="utf-8"))
                self.assertEqual(path.stem, f"{content['date']}-{content['machine']}")
                self.assertEqual(sorted(content), ["date", "machine", "processor", "rows"])

    def test_rows_have_the_fields_of_json_and_each_is_there_once(self):
        for path in self.files():
            rows = json.loads(path.read_text(encoding="utf-8"))["rows"]
            keys = [(row["bench"], row["case"], row["metric"]) for row in rows]
            self.assertEqual(len(keys), len(set(keys)), path.name)
            for row in rows:
                with self.subTest(f"{path.name}: {row['case']}, {row['metric']}"):
                    self.assertLessEqual({"bench", "case", "metric", "value", "unit"}, set(row))
                    self.assertLessEqual(set(row), {"bench", "case", "metric", "value", "unit", "bar", "met", "note"})
                    values = row["value"] if isinstance(row["value"], list) else [row["value"]]
                    self.assertIn(len(values), (1, 2))
                    self.assertTrue(all(isinstance(value, (int, float)) for value in values))
                    self.assertEqual(values, sorted(values))


class Cells(unittest.TestCase):
    def text(self, *rows, metrics=("a",), field="value"):
        figures = {"f": {("b", "c", name): row for name, row in zip("ab", rows)}}
        return bench_page.text_of(bench_page.Cell("f", "b", "c", metrics, field), figures)

    def row(self, value, unit, **more):
        return {"value": decimal.Decimal(value), "unit": unit, **more}

    def test_digits_and_units(self):
        self.assertEqual(self.text(self.row("1.60", "x")), "1.60x")
        self.assertEqual(self.text(self.row("30256", "tokens/s")), "30,256 tokens/s")
        limits = [decimal.Decimal("81"), decimal.Decimal("85")]
        self.assertEqual(self.text(self.row("1", "x") | {"value": limits}), "81-85x")

    def test_two_figures_share_their_unit(self):
        both = ("a", "b")
        self.assertEqual(self.text(self.row("1.6", "x"), self.row("1.58", "x"), metrics=both), "1.6 / 1.58x")
        self.assertEqual(self.text(self.row("1", "s"), self.row("2", "GB"), metrics=both), "1 s / 2 GB")

    def test_bars_and_misses(self):
        missed = self.row("1.5", "x", bar=decimal.Decimal("1.7"), met=False)
        self.assertEqual(self.text(missed), "1.5x, missed")
        self.assertEqual(self.text(missed, field="bar"), "1.7x")
        self.assertEqual(self.text(self.row("1.5", "x"), field="bar"), "")

    def test_a_case_that_no_file_has_is_an_error(self):
        with self.assertRaisesRegex(SystemExit, "speed"):
            bench_page.filled("t", ("", ""), [("speed", bench_page.Cell("f", "b", "c", ("a",)))], {"f": {}})


class Peers(unittest.TestCase):
    def test_written_rows_are_grouped(self):
        rows = [{"work": f"fp32 SDPA, {heads} heads, forward", "peer": "PyTorch", "unit": "ms", "ours": 1234.5,
                 "theirs": 8.87, "ratio": ratio} for heads, ratio in ((1, 2.25), (2, 1.05))]
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "peers-2026-01-02-zen9.csv"
            peers.write_rows(path, rows, "a processor", "torch 1, numpy 2")
            self.assertEqual(bench_page.newest_peers(path.parent), [path])
            table = bench_page.peer_table([path])
            figures = bench_page.load(path.parent)
        self.assertIn("| SDPA in fp32 | PyTorch | 2 | 1.05-2.25, missed |", table)
        self.assertIn("peers: 1 of 2 rows reach their bar (1.1x). a processor, 2026-01-02; torch 1, numpy 2.", table)
        key = (bench_page.PEERS, "fp32 SDPA, 1 heads, forward, PyTorch", "attend")
        self.assertEqual(str(figures[bench_page.PEERS][key]["value"]), "1234")


if __name__ == "__main__":
    cases.main()
