#!/usr/bin/env python3
"""Writes the tables of docs/benchmarks.md and docs/peers.md from bench/results; `./dev bench --write` runs it.

    tools/bench_page.py            # writes the tables between their markers
    tools/bench_page.py --check    # exits with 1 if a page differs

A file bench/results/DATE-MACHINE.json holds the figures of one machine and date: {machine, processor, date, rows}.
A row is {bench, case, metric, value, unit} and, optionally, bar, met and note. A value of two numbers is the range over
several cases or runs. Digits are printed as they are written in the file. FILE-DATE-MACHINE.csv holds rows of
tools/peers.py; docs/peers.md shows the newest file of each of PEER_FILES. tables() lists the tables; a table NAME is
between the lines `<!-- table NAME -->` and `<!-- end of table -->` of a page.
"""

import argparse
import csv
import decimal
import json
import pathlib
import re
import sys
import textwrap
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
PAGE, PEER_PAGE = ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "peers.md"
MARKED = re.compile(r"(<!-- table (\w+) -->\n).*?(<!-- end of table -->)", re.DOTALL)

# Columns and the files that fill them.
ZEN5, ZEN5_LATER, ZEN4 = "2026-11-25-zen5", "2026-11-27-zen5", "2026-11-21-zen4"
RAPIDS = "2026-11-22-sapphire-rapids"
ZEN4_LATER, ZEN4_PYTHON = "2026-11-29-zen4", "2026-11-30-zen4"
AMX, AMX_LATER = "2026-11-26-xeon-amx", "2026-11-27-xeon-amx"
PEERS = "peers"
PEER_FILES = (PEERS, "recurrence", "encoders")


@dataclass(frozen=True)
class Cell:
    """The values, or the bars, of some metrics of a case or of several."""

    file: str
    bench: str
    cases: str | tuple
    metrics: tuple
    field: str = "value"

    def keys(self):
        cases = (self.cases,) if isinstance(self.cases, str) else self.cases
        return [(self.bench, case, metric) for case in cases for metric in self.metrics]


def metrics(text):
    """Returns the names in a text: "share, forward | backward" has "share, forward" and "share, backward"."""
    first, *others = text.split(" | ")
    prefix = first.rpartition(", ")[0]
    return first, *(f"{prefix}, {other}" if prefix else other for other in others)


def by_machine(bench, files, rows):
    """Rows (label, case, metrics) with a column for each file; the last column has the bars of the first file."""
    for label, case, names in rows:
        names = metrics(names) if isinstance(names, str) else names
        yield label, *(Cell(file, bench, case, names) for file in files), Cell(files[0], bench, case, names, "bar")


def by_metric(file, bench, rows, columns):
    """Rows (label, case) with a column for each list of metrics."""
    for label, case in rows:
        yield label, *(Cell(file, bench, case, metrics(column)) for column in columns)


def peer(work, against, metric):
    return Cell(PEERS, PEERS, f"{work}, {against}", (metric,))


def headline():
    for label, work, against in (
            ("attention in fp32, 8 heads x 1,024, depth 64, both passes",
             "fp32 SDPA, 8 heads x 1,024, depth 64, both passes", "PyTorch"),
            ("the same in bf16", "bf16 SDPA, 8 heads x 1,024, depth 64, both passes", "PyTorch"),
            ("the same in fp32, forward", "fp32, 8 heads x 1,024, depth 64, forward", "ONNX Runtime"),
            ("additive attention, 1,024 keys, depth 128, both passes",
             "additive, 1 head x 1,024, depth 128, both passes", "KeOps"),
            ("beam search of 5, float32, two threads",
             "decoding, beam 5, float32, 500 sentences in batches of 64, 2 threads", "CTranslate2"),
            ("the same, int8", "decoding, beam 5, int8, 500 sentences in batches of 64, 2 threads", "CTranslate2")):
        yield label, peer(work, against, "attend"), against, peer(work, against, "ratio")
    yield "training a Transformer, bfloat16", Cell(ZEN5, "train", "Transformer, bfloat16", ("tokens/s",)), \
        "a loop over LibTorch's layers", Cell(ZEN5, "train", "Transformer, bfloat16", ("over plain LibTorch",))
    yield "answering 64 clients over HTTP", Cell(ZEN5_LATER, "serve", "64 clients", ("texts/s",)), \
        "`attend predict`", Cell(ZEN5_LATER, "serve", "64 clients", ("over predict",))


SCALED = "cost over scaled dot, both passes"
KERNELS = (
    *((f"scaled dot, depth {depth}, {isa}: % of the peak", f"scaled dot, depth {depth}, 512 to 8,192, {isa}",
       "share of the peak, forward | backward") for isa in ("AVX-512", "AVX2") for depth in (64, 128)),
    ("causal: % of the full cost", "causal, from 1,024", "share of the full cost, forward | backward"),
    ("two threads over one", "one head of 4,096", "two threads over one, forward | backward"),
    ("additive, AVX-512: cycles per triple", "additive, depth 128, 1,024, AVX-512",
     "cycles a triple, forward | backward"),
    ("additive, AVX2: cycles per triple, forward", "additive, depth 128, 1,024, AVX2", "cycles a triple, forward"),
    ("additive over composed, forward / both", "additive, depth 128, 1,024",
     "over the composed path, forward | both passes"),
    ("additive, 16,384: memory above in- and outputs", "additive, depth 128, 16,384",
     "memory above inputs and outputs, both passes"),
    ("window of 256, 16,384: % of the full cost", "window of 256 each way, 16,384",
     "share of the full cost, forward | backward"),
    ("window of 256: exponent of the length", "window of 256 each way, 4,096 to 65,536",
     "exponent of the length, forward | backward"),
    ("times scaled dot: general / cosine", ("general", "cosine"), SCALED),
    ("most scores and biases",
     "squared distance, sigmoid, sink, soft cap, buckets, relative keys, Gaussian", SCALED),
    ("dense bias with gradient / absolute distance", ("dense bias with its gradient", "absolute distance"), SCALED),
    ("sparsemax / entmax-1.5", ("sparsemax", "entmax-1.5"), SCALED),
    *((f"16 / 32 / 64 keys, depth {depth}: over composed, both",
       tuple(f"short sequences, batch 64, 4 heads, {length} long, depth {depth}" for length in (16, 32, 64)),
       "over the composed path, both passes") for depth in (32, 64)),
    ("decoding, two threads: % of the bandwidth", "decoding, 1 query, 8,192 keys, 8 heads, two threads",
     "share of the memory bandwidth"),
    ("the same from bf16 over fp32", "decoding, 1 query, 8,192 keys, 8 heads, bf16, two threads", "over fp32"),
    ("bars met", "all cases", "bars met | bars"),
)


def bf16_rows():
    for depth in (64, 128):
        yield str(depth), *(Cell(ZEN5, "attention", f"bf16, depth {depth}, {length}",
                                 metrics("over fp32, forward | both passes"))
                            for length in ("512", "1,024", "2,048", "4,096", "8,192"))


EDGES = (
    ("20,000 nodes of 16 edges, depth 64: times the gather", "edges, 20,000 nodes of 16 neighbours, depth 64",
     "time over the gather, forward | backward"),
    ("200,000 nodes: times the gather", "edges, 200,000 nodes of 16 neighbours, depth 64",
     "time over the gather, forward | backward"),
    ("20,000 nodes: over LibTorch's, forward / both", "edges, 20,000 nodes of 16 neighbours, depth 64",
     "over LibTorch's gather and scatter, forward | both passes"),
    ("10^7 edges, depth 32: time per edge over 10^6", "edges, 10^7 between 100,000 nodes, depth 32",
     "time per edge over 10^6, forward | backward"),
)

RECURRENCES = (
    *((f"{name}, depth {depth}, 2,048 tokens: % of the peak", f"{name}, depth {depth}, 2,048",
       "forward, share of the peak | both, share of the peak".split(" | "))
      for name in ("gated_delta", "kda", "mamba2") for depth in (64, 128)),
    ("exponent of the length, 1,024 to 65,536", "gated_delta, depth 64",
     ("forward, exponent of the length", "both, exponent of the length")),
    ("two threads over one", "gated_delta, batch 1", ("forward, two threads over one", "both, two threads over one")),
    ("memory over inputs, outputs and gradients, depth 128", "gated_delta, depth 128, 8,192",
     ("both, memory over inputs, outputs, gradients",)),
    ("both passes over exact attention, 512 / 4,096 tokens", "gated_delta, depth 64",
     ("both, over exact attention, 512", "both, over exact attention, 4096")),
    ("one step, depth 64 / 128", ("gated_delta, depth 64", "gated_delta, depth 128"), ("one step",)),
)


PASSES = ("forward", "both passes")


def python_rows():
    """Cases of tools/wheel_bars.py."""
    empty, *others = (f"scaled_dot, batch {shape}" for shape in (
        "1, 1 heads of 1, T=1, d=1", "64, 4 heads of 4, T=32, d=32", "1, 8 heads of 8, T=1024, d=64",
        "1, 8 heads of 2, T=1024, d=128"))
    def row(label, case, metric):
        cells = (Cell(ZEN4_PYTHON, "python", tuple(f"{case}, {kind}" for kind in PASSES), (name,))
                 for name in ("attend", metric))
        return label, *cells, Cell(ZEN4_PYTHON, "python", f"{case}, forward", (metric,), "bar")
    yield row("one query and one key: more than C++", empty, "more than C++")
    for case in (*others, "additive, batch 1, 1 heads of 1, T=1024, d=128"):
        yield row(f"{case}: over C++", case, "over C++")
    for dtype in ("float32", "bfloat16"):
        case = f"scaled dot, 8 heads x 1,024, depth 64, {dtype}"
        yield row(f"{case}: sdpa over attend", case, "sdpa over attend")
    case = "additive, 1,024 keys, depth 128, float32"
    yield row(f"{case}: eager over attend", case, "eager over attend")
    case = "100,000 calls"
    yield f"{case}: growth of memory", Cell(ZEN4_PYTHON, "python", case, ("growth of memory",)), "", \
        Cell(ZEN4_PYTHON, "python", case, ("growth of memory",), "bar")


def transformers_cases():
    """(label, cases) of tools/transformers_bars.py; the cases of a row differ in their dtype."""
    for mask in ("full", "causal"):
        for what in ("forward, 512", "forward, 2048", "forward and backward, 512"):
            case = f"attention of a layer, {mask}, {what} tokens"
            yield case, (f"{case}, float32", f"{case}, bfloat16")
    for model in ("BERT-base", "GPT-2"):
        for what in ("forward, 512", "forward, 2048", "training step, 512"):
            yield f"{model}, {what} tokens", (f"{model}, {what} tokens, float32", f"{model}, {what} tokens, bfloat16")
    for what in ("forward", "forward and backward"):
        case = f"gated delta rule of a layer, {what}, 2048 tokens"
        yield case, (f"{case}, float32",)
    case = "Qwen3-Next-like, training step, 2048 tokens"
    yield case, (f"{case}, float32",)
    yield "the same: memory", (f"memory of {case}",)
    for case in ("attention of a layer, 2048 tokens", "BERT-base with 1 layer, 2048 tokens",
                 "BERT-base with 12 layers, 2048 tokens"):
        case = f"memory of output_attentions, {case}, one head read"
        yield case, (case,)


def transformers_rows():
    for label, cases in transformers_cases():
        def cell(metric, field="value"):
            return Cell(ZEN4_PYTHON, "python", cases, (metric,), field)
        yield label, cell("attend"), cell("sdpa over attend"), cell("eager over attend"), cell("eager over attend", "bar")


def training_rows():
    for label, network in (("Transformer", "Transformer"), ("recurrent", "recurrent"),
                           ("recurrent, words of CMUdict", "words of CMUdict")):
        cases = tuple(f"{network}, {kind}" for kind in ("float32", "bfloat16"))
        yield label, Cell(ZEN5, "train", cases, ("tokens/s",)), *(
            Cell(file, "train", cases, ("over plain LibTorch",)) for file in (ZEN5, ZEN4, RAPIDS, AMX))


BEAMS = (
    ("beam search of 5, 500 sentences", "beam search of 5, 500 sentences", "time"),
    ("the same over running the decoder again", "beam search of 5, 500 sentences", "over running the decoder again"),
    ("1,000 words in batches over one by one, 2 threads / 1", "1,000 words greedily in batches",
     "over one by one, two threads | one thread"),
)
OVERLOAD = ("goodput over capacity", "refusals, slowest hundredth")
SERVER = (
    ("64 clients: over `predict`, by the clock / by processor time", "64 clients",
     ("over predict", "processor time of predict over the server's")),
    ("64 clients: texts/s of the server / of `predict`", "64 clients", ("texts/s", "texts/s of predict")),
    ("lone client, slowest hundredth / in process", "lone client",
     ("slowest hundredth", "slowest hundredth in process")),
    ("3x the capacity: goodput over it / slowest refusals", "three times the capacity", OVERLOAD),
    ("clients ask again twice: the same", "three times the capacity, clients ask again twice", OVERLOAD),
    ("soak: wrong answers / unexpected statuses", "soak", ("wrong answers", "unexpected statuses")),
    ("soak: growth of memory", "soak", ("growth of memory",)),
    ("10,000 slow connections: growth of memory / `/health`", "10,000 slow connections, 511 at once",
     ("growth of memory", "/health, slowest")),
)


def explanation_rows(figures):
    """Three methods per row."""
    cells = []
    for case in dict.fromkeys(case for bench, case, _ in figures[ZEN5_LATER] if bench == "explain"):
        if case != "the model":
            label = case.partition(",")[0]
            cells += [label if " " in label else f"`{label}`", Cell(ZEN5_LATER, "explain", case, ("time", "memory"))]
    cells += [""] * (-len(cells) % 6)
    return [cells[begin:begin + 6] for begin in range(0, len(cells), 6)]


# Labels of groups, what the work begins with, and the peer. A row belongs to the first group that fits.
PEER_GROUPS = (
    ("SDPA in fp32", "fp32 SDPA", "PyTorch"),
    ("SDPA in bf16", "bf16 SDPA", "PyTorch"),
    ("SDPA in fp32, forward", "fp32,", "ONNX Runtime"),
    ("one query of 8,192 keys", "decoding, 1 query", "PyTorch"),
    ("cosine", "cosine", "normalise + SDPA"),
    ("dense bias and its gradient", "dense bias", "PyTorch"),
    ("additive", "additive", "PyTorch eager"),
    ("additive", "additive", "KeOps"),
    ("squared distance", "squared distance", "KeOps"),
    ("layer of graph attention", "layer of graph attention", "PyTorch Geometric"),
    ("training", "training", "PyTorch eager"),
    ("decoding, float32", re.compile("decoding, beam .*float32"), "CTranslate2"),
    ("decoding, int8", re.compile("decoding, beam .*int8"), "CTranslate2"),
    ("linear recurrences, forward", re.compile(".*16 heads x .*, forward"), "ONNX Runtime"),
    ("one step of a recurrence", re.compile(".*, one step"), "ONNX Runtime"),
    ("gated delta rule, both passes", re.compile("gated_delta, .*both passes, . thread"), "transformers"),
    ("gated delta rule, memory", re.compile("gated_delta, .*memory"), "transformers"),
    *((f"vectors of texts, {weights}", re.compile(f"vectors of .*{weights}"), against)
      for weights in ("float32", "bfloat16", "int8") for against in ("transformers", "ONNX Runtime", "CTranslate2")),
)


def tables(figures):
    """{name: (header, rows)} of the tables of docs/benchmarks.md."""
    return {
        "headline": (("work", "Attend", "against", "ratio"), headline()),
        "kernels": (("case", "Zen 5", "Zen 4", "Sapphire Rapids", "bar"),
                    by_machine("attention", (ZEN5, ZEN4, RAPIDS), KERNELS)),
        "bf16": (("depth", "512 keys", "1,024", "2,048", "4,096", "8,192"), bf16_rows()),
        "edges": (("case", "forward / backward", "bar"), by_machine("attention", (AMX,), EDGES)),
        "recurrences": (("case", "Zen 4", "bar"), by_machine("recurrence", (ZEN4_LATER,), RECURRENCES)),
        "training": (("network", "Zen 5", "over plain: Zen 5", "Zen 4", "Sapphire Rapids", "Xeon with AMX"),
                     training_rows()),
        "steps": (("weights", "after 8 tokens", "after 200", "ratio", "growth of the caches", "least ratio"), by_metric(
            ZEN5, "decode", [(kind, f"step of 64 sentences, {kind}") for kind in ("float32", "bfloat16", "int8")],
            ["after 8 tokens", "after 200 tokens", "after 200 tokens over after 8", "growth of the caches",
             "least ratio"])),
        "beams": (("work", "Zen 4", "Sapphire Rapids", "Xeon with AMX"),
                  (row[:-1] for row in by_machine("decode", (ZEN4, RAPIDS, AMX), BEAMS))),
        "server": (("part", "Zen 5", "Xeon with AMX", "bar"), by_machine("serve", (ZEN5_LATER, AMX_LATER), SERVER)),
        "explanations": (("method", "time / memory") * 3, explanation_rows(figures)),
    }


def peer_tables():
    """As tables(), of docs/peers.md except peers."""
    return {"python": (("call, forward / both passes", "attend", "figure", "bar"), python_rows()),
            "transformers": (("case, float32 / bfloat16", "attend", "sdpa", "eager", "bar"), transformers_rows())}


def with_unit(texts, units):
    """The numbers with their unit, which is written once if all have the same."""
    def joined(text, unit):
        return text + ("" if not unit else unit if unit == "x" else f" {unit}")
    if len(set(units)) == 1:
        return joined(" / ".join(texts), units[0])
    return " / ".join(map(joined, texts, units))


def number(value):
    if isinstance(value, list):
        return "-".join(map(number, value))
    return f"{value:,}" if isinstance(value, decimal.Decimal) else str(value)


def text_of(cell, figures):
    """The text of a cell; empty if the file does not have the case."""
    if isinstance(cell, str):
        return cell
    rows = [figures[cell.file].get(key) for key in cell.keys()]
    rows = [row for row in rows if row and cell.field in row]
    text = with_unit([number(row[cell.field]) for row in rows], [row["unit"] for row in rows]) if rows else ""
    if cell.field == "bar" and len({str(row["bar"]) for row in rows}) == 1:
        text = with_unit([number(rows[0]["bar"])], [rows[0]["unit"]])
    missed = cell.field == "value" and any(row.get("met") is False for row in rows)
    return f"{text}, missed" if missed else text


def markdown(header, rows):
    line = "| {} |\n".format
    return line(" | ".join(header)) + "|---" * len(header) + "|\n" + "".join(line(" | ".join(row)) for row in rows)


def filled(name, header, rows, figures):
    rows = list(rows)
    for row in rows:
        if not any(text_of(cell, figures) for cell in row if isinstance(cell, Cell)):
            raise SystemExit(f"table {name}: bench/results has no figure for '{row[0]}'")
    return markdown(header, [[text_of(cell, figures) for cell in row] for row in rows])


def newest_peers(results=RESULTS):
    """The newest file of each of PEER_FILES that has one."""
    newest = (max(results.glob(f"{name}-*.csv"), default=None) for name in PEER_FILES)
    return [path for path in newest if path is not None]


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def label_of(row):
    for label, begins, against in PEER_GROUPS:
        if row["against"] == against and re.match(begins, row["work"]):
            return label
    return row["work"]


def ratios_of(rows):
    """The least and the largest ratio, and whether one is below its bar."""
    ratios = [decimal.Decimal(row["ratio"]) for row in rows]
    missed = any(not is_met(row) for row in rows)
    return "-".join(map(str, sorted({min(ratios), max(ratios)}))) + (", missed" if missed else "")


def is_met(row):
    return decimal.Decimal(row["ratio"]) >= decimal.Decimal(row["bar"])


def peer_table(paths):
    """The least and the largest ratio of each group of rows, after the conditions of each file."""
    groups, conditions = {}, []
    for path in paths:
        rows = rows_of(path)
        for row in rows:
            groups.setdefault((label_of(row), row["against"]), []).append(row)
        date = re.search(r"\d{4}-\d\d-\d\d", path.name)[0]
        bars = ", ".join(map(str, sorted({decimal.Decimal(row["bar"]) for row in rows})))
        conditions.append(textwrap.fill(
            f"{path.name.partition('-')[0]}: {sum(map(is_met, rows))} of {len(rows)} rows reach their bar ({bars}x). "
            f"{rows[0]['processor']}, {date}; {rows[0]['packages']}.", 120))
    text = markdown(("work", "against", "rows", "ratio"), [
        (label, against, str(len(members)), ratios_of(members)) for (label, against), members in groups.items()])
    return "\n\n".join([*conditions, text])


def load(results=RESULTS):
    """{file: {(bench, case, metric): row}}; PEERS has the rows of newest_peers()."""
    figures = {}
    for path in sorted(results.glob("*.json")):
        content = json.loads(path.read_text(encoding="utf-8"), parse_float=decimal.Decimal, parse_int=decimal.Decimal)
        figures[path.stem] = {(row["bench"], row["case"], row["metric"]): row for row in content["rows"]}
    figures[PEERS] = {
        (PEERS, f"{row['work']}, {row['against']}", metric):
            {"value": decimal.Decimal(row[metric]), "unit": "x" if metric == "ratio" else row["unit"]}
        for path in newest_peers(results) for row in rows_of(path) for metric in ("attend", "peer", "ratio")}
    return figures


def page_text(path, page, results=RESULTS):
    """The text `page` of a path with the tables that the figures give."""
    figures = load(results)
    chosen = peer_tables() if path == PEER_PAGE else tables(figures)
    made = {name: filled(name, *table, figures) for name, table in chosen.items()}
    if path == PEER_PAGE:
        made["peers"] = peer_table(newest_peers(results))
    there = [name for _, name, _ in MARKED.findall(page)]
    if sorted(there) != sorted(made):
        raise SystemExit(f"{path.name} has markers of {sorted(there)}, not of {sorted(made)}")
    return MARKED.sub(lambda match: match[1] + made[match[2]] + match[3], page)


def changed_pages():
    """(path, text with generated tables) of each page that differs from it."""
    for path in (PAGE, PEER_PAGE):
        page = path.read_text(encoding="utf-8")
        if (text := page_text(path, page)) != page:
            yield path, text


def write():
    for path, text in changed_pages():
        path.write_text(text, encoding="utf-8")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 if a page differs")
    if not parser.parse_args().check:
        write()
        return 0
    return 1 if any(changed_pages()) else 0


if __name__ == "__main__":
    sys.exit(main())
