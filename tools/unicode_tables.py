#!/usr/bin/env python3
"""Writes the ranges of code points that attend/tokenizers uses, as in PyPI's `tokenizers`.

    python3 -m venv build/tokenizers && build/tokenizers/bin/pip install tokenizers==0.23.3
    build/tokenizers/bin/python tools/unicode_tables.py > attend/tokenizers/unicode_tables.cpp
    build/tokenizers/bin/python tools/unicode_tables.py --check

Its normalisers and pre-tokenizers use classes of several versions of Unicode, all different from utf8proc's. So each
class is read from the results of the part that uses it, for every code point. `--check` compares the results with the
file and exits with 1 if they differ. Decompositions and the order of marks are utf8proc's, except for the code points
of `untouched`; every run checks that these suffice.
"""

import argparse
import ctypes
import ctypes.util
import importlib.metadata
import pathlib
import sys

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers

FILE = pathlib.Path(__file__).resolve().parent.parent / "attend/tokenizers/unicode_tables.cpp"
VERSION = "0.23.3"
BATCH = 8192
POINTS = [point for point in range(0x110000) if not 0xD800 <= point < 0xE000]
COLUMNS = 98


def batches():
    for begin in range(0, len(POINTS), BATCH):
        yield POINTS[begin:begin + BATCH]


def mapped(normaliser, separator="|"):
    """The normaliser's result for each code point between two letters. Only the separator must become the separator."""
    texts = {ord(separator): separator}
    for batch in batches():
        points = [point for point in batch if point != ord(separator)]
        results = normaliser.normalize_str(separator.join(f"a{chr(point)}a" for point in points))
        results = results.split(separator)
        assert len(results) == len(points)
        texts.update((point, text[1:-1]) for point, text in zip(points, results))
    return texts


def split_inside(splitter, side):
    """The code points at or after which the splitter begins a new piece, between two `side`s, and the code points that
    are in no piece."""
    cut, gone = set(), set()
    for batch in batches():
        text = "".join(f"{side}{chr(point)}{side} " for point in batch)
        covered, starts = set(), set()
        for _, (begin, end) in splitter.pre_tokenize_str(text):
            starts.add(begin)
            covered.update(range(begin, end))
        for i, point in enumerate(batch):
            if 4 * i + 1 in starts or 4 * i + 2 in starts:
                cut.add(point)
            if 4 * i + 1 not in covered:
                gone.add(point)
    return cut, gone


def bert(**options):
    switched_off = dict(clean_text=False, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    return normalizers.BertNormalizer(**(switched_off | options))


def bert_classes():
    cleaned = mapped(bert(clean_text=True))
    cut, gone = split_inside(pre_tokenizers.BertPreTokenizer(), "a")
    stripped, decomposed = mapped(bert(strip_accents=True)), mapped(normalizers.NFD())
    return {
        "bert_removed": {point for point, text in cleaned.items() if text == ""},
        "bert_space": {point for point, text in cleaned.items() if text == " "},
        "bert_cjk": {point for point, text in mapped(bert(handle_chinese_chars=True)).items()
                     if text == f" {chr(point)} "},
        "bert_punctuation": cut - gone,
        "bert_mark": {point for point, text in stripped.items()
                      if text == "" and decomposed[point] == chr(point)},
        "white_space": gone,
    }


def byte_level_classes():
    splitter = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    apart_of = {side: split_inside(splitter, side)[0] for side in "a1!"}
    every = set(POINTS)
    return {
        "letter": every - apart_of["a"],
        "number": every - apart_of["1"],
        "regex_space": apart_of["a"] & apart_of["1"] & apart_of["!"],
    }


def word_characters():
    """Code points that must not precede a token with `single_word`."""
    tokenizer = Tokenizer(models.WordLevel({"[UNK]": 0}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_tokens([AddedToken("~z", single_word=True, normalized=False)])
    found = set()
    for batch in batches():
        encoding = tokenizer.encode("".join(f"{chr(point)}~z " for point in batch))
        begins = {begin for id, (begin, _) in zip(encoding.ids, encoding.offsets) if id == 1}
        found |= {point for i, point in enumerate(batch) if 4 * i + 1 not in begins}
    return found


def utf8proc():
    library = ctypes.CDLL(ctypes.util.find_library("utf8proc"))
    library.utf8proc_decompose_char.argtypes = [
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_ssize_t, ctypes.c_int, ctypes.c_void_p]
    library.utf8proc_decompose_char.restype = ctypes.c_ssize_t
    library.utf8proc_get_property.argtypes = [ctypes.c_int32]
    library.utf8proc_get_property.restype = ctypes.POINTER(ctypes.c_uint16)
    return library


def decompositions(library, compatible):
    """utf8proc's decomposition of each code point."""
    stable, compat, decompose = 1 << 1, 1 << 2, 1 << 4
    options = stable | decompose | (compat if compatible else 0)
    buffer = (ctypes.c_int32 * 64)()
    texts = {}
    for point in POINTS:
        size = library.utf8proc_decompose_char(point, buffer, 64, options, None)
        texts[point] = "".join(map(chr, buffer[:size]))
    return texts


def combining_class(library, point):
    return library.utf8proc_get_property(point)[1]


def check_order(library, untouched):
    """Asserts that marks are sorted by utf8proc's classes."""
    points = [point for point in POINTS if point not in untouched]
    classes = {point: combining_class(library, point) for point in points}
    probes = {}
    alone = mapped(normalizers.NFD())
    for point, value in classes.items():
        if value and alone[point] == chr(point):
            probes.setdefault(value, chr(point))
    nfd = normalizers.NFD()
    for value, probe in probes.items():
        # The second mark moves before the first if its class is lower.
        asked = [p for p in points if alone[p] == chr(p) and p != ord("|") and
                 (classes[p] or value in (1, 9, 230))]
        results = nfd.normalize_str("|".join(f"a{probe}{chr(p)}" for p in asked)).split("|")
        for p, result in zip(asked, results):
            moves = 0 < classes[p] < value
            assert result == (f"a{chr(p)}{probe}" if moves else f"a{probe}{chr(p)}"), f"U+{p:04X}"


def normal_forms():
    library = utf8proc()
    nfd, nfkd = mapped(normalizers.NFD()), mapped(normalizers.NFKD(), "\x02")
    canonical, compatible = decompositions(library, False), decompositions(library, True)
    untouched = set()
    for point in POINTS:
        if nfd[point] != canonical[point] or nfkd[point] != compatible[point]:
            assert nfd[point] == chr(point) and nfkd[point] == chr(point), f"U+{point:04X}"
            untouched.add(point)
    # Code points that the package does not treat as marks do not move.
    probe = normalizers.NFD()
    for point in POINTS:
        if combining_class(library, point) and nfd[point] == chr(point):
            behind = probe.normalize_str(f"a\u0345{chr(point)}") == f"a{chr(point)}\u0345"
            before = probe.normalize_str(f"a{chr(point)}\u0334") == f"a\u0334{chr(point)}"
            if not behind and not before:
                untouched.add(point)
    # U+0334 and U+0345 have the lowest and the highest class, so that they swap with marks of all other classes.
    untouched -= {point for point in untouched if combining_class(library, point) in (1, 240)}
    check_order(library, untouched)
    moving = {point for point in POINTS if point not in untouched and
              (nfd[point] != chr(point) or combining_class(library, point))}
    return {"nfd_changes": moving, "untouched": untouched}


def classes():
    combining = {point for point, text in mapped(normalizers.StripAccents()).items() if text == ""}
    return {**bert_classes(), **byte_level_classes(), "word_character": word_characters(),
            "combining": combining, **normal_forms()}


def lower_cases():
    """(first, last, step, difference) of the code points with a different lower case."""
    pairs = []
    for point, text in sorted(mapped(normalizers.Lowercase()).items()):
        if point == 0x130:
            assert text == "i\u0307"  # becomes two code points; handled in the code
        elif text != chr(point):
            assert len(text) == 1
            pairs.append((point, ord(text) - point))
    rows = []
    for point, difference in pairs:
        if rows and rows[-1][3] == difference:
            first, last, step, _ = rows[-1]
            gap = point - last
            if gap == step or (first == last and gap <= 2):
                rows[-1] = (first, point, gap, difference)
                continue
        rows.append((point, point, 1, difference))
    return rows


def steps(points):
    """(gap, count): number of code points outside the class, then number of code points in it."""
    rows, end = [], 0
    for point in sorted(points):
        if rows and point == end:
            rows[-1] = (rows[-1][0], rows[-1][1] + 1)
        else:
            rows.append((point - end, 1))
        end = point + 1
    return rows


def filled(items):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 2 > COLUMNS:
            lines.append(line)
            line = "   "
        line += f" {item},"
    return "\n".join(lines + [line])


def table(kind, name, rows):
    return (f"constexpr {kind} all_{name}[] = {{\n{rows}\n}};\n"
            f"constinit const std::span<const {kind}> {name} = all_{name};\n")


def source():
    parts = [f"""// Written by tools/unicode_tables.py from tokenizers {VERSION} of PyPI; do not edit.
// clang-format off

#include "attend/tokenizers/unicode_tables-inl.h"

namespace attend::internal {{
"""]
    for name, points in classes().items():
        rows = filled(f"{{{gap}, {count}}}" for gap, count in steps(points))
        parts.append(table("PointStep", f"{name}_steps", rows))
    rows = filled(f"{{{first:#x}, {last:#x}, {step}, {difference}}}"
                  for first, last, step, difference in lower_cases())
    parts.append(table("LowerRange", "lower_ranges", rows))
    parts.append("}  // namespace attend::internal\n")
    return "\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with the file")
    options = parser.parse_args()
    version = importlib.metadata.version("tokenizers")
    if version != VERSION:
        sys.exit(f"the tables are for tokenizers {VERSION}; this is {version}")
    text = source()
    if not options.check:
        print(text, end="")
    elif text != FILE.read_text(encoding="utf-8"):
        sys.exit(f"{FILE} differs from what tokenizers {VERSION} says; write it anew")
    else:
        print(f"equal for all {len(POINTS)} code points")


if __name__ == "__main__":
    main()
