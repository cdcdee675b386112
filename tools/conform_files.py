#!/usr/bin/env python3
"""Compares the program's readers with the libraries of the formats, on random files.

    python3 -m venv build/formats
    build/formats/bin/pip install pillow==13.0.0 conllu==6.0.0 biopython==1.88 soundfile==0.14.0 numpy==2.4.6
    cmake --build --preset release --target read_file
    build/formats/bin/python tools/conform_files.py [--program build/release/attend] [--seed 1]

A row of `./dev conform`. Draws PNG files of every colour type, bit depth, interlace, palette, transparency and
orientation. Draws JPEG files, files in columns (CoNLL and CoNLL-U), FASTA, CSV, sounds and interactions, too. The
target read_file, next to the program, reads them. Prints one line per case and the counts; exits with 1 if a case
differs.

Three differences are intended, and the comparison expects them:

- 16-bit grey PNG keeps the high byte of each sample, as in OpenCV. Pillow's conversion clips values at 255.
- A blank in a word of CoNLL-U becomes _.
- Line breaks in a field of CSV become spaces.
"""

import csv
import importlib.metadata
import io
import json
import pathlib
import random
import re
import struct
import subprocess
import sys
import tempfile
import warnings
import zlib

import conllu
import numpy
import soundfile
from Bio import SeqIO
from PIL import Image, ImageOps

import conform_report

PACKAGES = ("pillow", "conllu", "biopython", "soundfile", "numpy")
GREY, RGB, PALETTE, GREY_ALPHA, RGB_ALPHA = 0, 2, 3, 4, 6
SAMPLES = {GREY: 1, RGB: 3, PALETTE: 1, GREY_ALPHA: 2, RGB_ALPHA: 4}
DEPTHS = {GREY: (1, 2, 4, 8, 16), RGB: (8, 16), PALETTE: (1, 2, 4, 8), GREY_ALPHA: (8, 16),
          RGB_ALPHA: (8, 16)}
PASSES = ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1))


class Reader:
    """The program that reads files, one request at a time."""

    def __init__(self, program):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, *request):
        self.process.stdin.write("\t".join(map(str, request)) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def packed_row(row, depth):
    """Samples of one row as bytes."""
    if depth == 16:
        return row.astype(">u2").tobytes()
    if depth == 8:
        return row.astype(numpy.uint8).tobytes()
    bits = ((row[:, None] >> numpy.arange(depth - 1, -1, -1)) & 1).astype(numpy.uint8)
    return numpy.packbits(bits.reshape(-1)).tobytes()


def filtered(rows, width, draw):
    """Applies one of the five filters to each row; `width`: bytes of a pixel, at least 1."""
    result, above = b"", bytes(len(rows[0]))
    for row in rows:
        kind = draw.randrange(5)
        line = bytearray([kind])
        for i, byte in enumerate(row):
            left = row[i - width] if i >= width else 0
            up, corner = above[i], above[i - width] if i >= width else 0
            guess = left + up - corner
            paeth = min((left, up, corner), key=lambda value: abs(guess - value))
            line.append((byte - (0, left, up, (left + up) // 2, paeth)[kind]) % 256)
        result, above = result + bytes(line), row
    return result


def png(draw, colour, depth):
    """A random PNG file, with any of the chunks that change its display."""
    height, width = draw.randint(1, 19), draw.randint(1, 19)
    palette = draw.randint(1, 2 ** depth) if colour == PALETTE else 2 ** depth
    array = numpy.random.default_rng(draw.randrange(2 ** 32)).integers(
        0, palette, (height, width, SAMPLES[colour]))
    interlaced = draw.random() < 0.4
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, int(interlaced))
    chunks = []
    if draw.random() < 0.3:
        chunks.append(chunk(b"gAMA", struct.pack(">I", draw.choice([45455, 100000, 220000]))))
    if draw.random() < 0.3:
        chunks.append(chunk(b"sRGB", b"\0"))
    if colour == PALETTE:
        chunks.append(chunk(b"PLTE", draw.randbytes(3 * palette)))
    if colour in (GREY, RGB, PALETTE) and draw.random() < 0.4:
        key = array[0, 0]
        chunks.append(chunk(b"tRNS", draw.randbytes(draw.randint(1, palette)) if colour == PALETTE
                            else b"".join(struct.pack(">H", int(value)) for value in key)))
    after = []
    if draw.random() < 0.4:
        exif = Image.Exif()
        exif[0x0112] = draw.randint(1, 8)
        (chunks if draw.random() < 0.7 else after).append(chunk(b"eXIf", exif.tobytes()[6:]))
    pieces = [array[top::down, left::across] for top, left, down, across in PASSES] if interlaced else [array]
    data = b"".join(
        filtered([packed_row(row.reshape(-1), depth) for row in piece],
                 max(1, depth * SAMPLES[colour] // 8), draw)
        for piece in pieces if piece.size > 0)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + b"".join(chunks) + chunk(b"IDAT", zlib.compress(data))
            + b"".join(after) + chunk(b"IEND", b""))


def pillows_pixels(file, mode):
    image = ImageOps.exif_transpose(Image.open(file))
    if image.mode.startswith("I"):
        high = Image.fromarray((numpy.asarray(image).astype(numpy.int64) >> 8).astype(numpy.uint8))
        return high.convert(mode)
    return image.convert(mode)


def differs(ours, image):
    """Difference of an answer from an image of Pillow, as text; None if they are equal."""
    if "error" in ours:
        return ours["error"]
    if (ours["width"], ours["height"]) != image.size:
        return f"size {ours['width']} x {ours['height']}, Pillow {image.size}"
    mine = numpy.frombuffer(bytes.fromhex(ours["pixels"]), numpy.uint8).astype(int)
    theirs = numpy.frombuffer(image.tobytes(), numpy.uint8).astype(int)
    largest = int(abs(mine - theirs).max())
    return f"bytes differ by up to {largest}" if largest else None


def png_cases(draw, folder, read, count):
    for colour, depths in DEPTHS.items():
        for depth in depths:
            for i in range(count):
                path = folder / "x.png"
                path.write_bytes(png(draw, colour, depth))
                for name, mode in (("grey", "L"), ("rgb", "RGB")):
                    yield (f"colour type {colour}, {depth} bits, {name}, {i}",
                           differs(read("image", name, path), pillows_pixels(path, mode)))
    # Files that Pillow writes, for each of its modes.
    for mode in ("1", "L", "LA", "P", "RGB", "RGBA", "I;16"):
        pixels = Image.frombytes("RGBA", (12, 9), draw.randbytes(12 * 9 * 4))
        image = (Image.frombytes("I;16", (12, 9), draw.randbytes(12 * 9 * 2)) if mode == "I;16"
                 else pixels.convert(mode))
        path = folder / "y.png"
        image.save(path)
        for name, wanted in (("grey", "L"), ("rgb", "RGB")):
            yield (f"Pillow's mode {mode}, {name}",
                   differs(read("image", name, path), pillows_pixels(path, wanted)))


def drawn_picture(draw):
    """A smooth image, which JPEG changes little."""
    small = Image.frombytes("RGB", (4, 4), draw.randbytes(48))
    return small.resize((draw.randint(1, 40), draw.randint(1, 40)), Image.Resampling.BICUBIC)


def jpeg_cases(draw, folder, read, count):
    for i in range(4 * count):
        path, exif = folder / "x.jpg", Image.Exif()
        mode = draw.choice(["RGB", "RGB", "L"])
        exif[0x0112] = draw.randint(1, 8)
        drawn_picture(draw).convert(mode).save(
            path, quality=draw.randint(30, 100), subsampling=draw.randrange(3), exif=exif,
            progressive=draw.random() < 0.5, optimize=draw.random() < 0.5)
        stray = draw.random() < 0.3
        if stray:
            data = path.read_bytes()
            tables = data.index(b"\xff\xdb")
            path.write_bytes(data[:tables] + b"\0stray" + data[tables:])
        rgb = pillows_pixels(path, "RGB")
        raw = Image.open(path)
        raw.draft("L", raw.size)  # the luminance stored in the file
        grey = ImageOps.exif_transpose(raw)
        for name, image in (("rgb", rgb), ("grey", grey)):
            yield f"{mode}{', stray bytes' if stray else ''}, {name}, {i}", differs(read("image", name, path), image)
    path = folder / "y.jpg"
    drawn_picture(draw).convert("CMYK").save(path)
    answer = read("image", "rgb", path)
    yield "CMYK is refused", None if "CMYK" in answer.get("error", "") else "it was read"


WORDS = ["a", "den", "#tag", "#", "I'm", "\u00e9t\u00e9", "\u6771\u4eac", "10", "1-2", "5.1", "_", "-", ".", "New"]
LABELS = ["NOUN", "VERB", "X", "ADP", "_"]


def conllu_text(draw):
    lines = []
    for sentence in range(draw.randint(1, 5)):
        if draw.random() < 0.7:
            lines.append(f"# sent_id = {sentence}")
        if draw.random() < 0.3:
            lines.append("#text=" + " ".join(draw.choices(WORDS, k=3)))
        row = lambda number, form, label: "\t".join([number, form, "_", label] + ["_"] * 6)
        for number in range(1, draw.randint(2, 7)):
            if draw.random() < 0.2:
                lines.append(row(f"{number}-{number + 1}", "dunno", "_"))
            form = draw.choice(WORDS + ["10 000", "a b c"])
            lines.append(row(str(number), form, draw.choice(LABELS)))
            if draw.random() < 0.2:
                lines.append(row(f"{number}.1", "left out", "VERB"))
        lines.append("")
    return "\n".join(lines) + "\n"


def conll_cases(draw, folder, read, count):
    for i in range(6 * count):
        name = draw.choice(["x.conllu", "x.conll"])
        path, text = folder / name, conllu_text(draw)
        path.write_text(text, encoding="utf-8")
        wanted = []
        for sentence in conllu.parse(text):
            words = [token for token in sentence if isinstance(token["id"], int)]
            wanted.append([" ".join(token["form"].replace(" ", "_") for token in words),
                           " ".join(token["upos"] or "_" for token in words)])
        columns = ("", "") if name == "x.conllu" and draw.random() < 0.5 else ("2", "4")
        yield f"CoNLL-U as {name}, {i}", compared(read("pairs", path, *columns), "pairs", wanted)
    for i in range(6 * count):
        blank, columns = draw.choice(["\t", " "]), draw.randint(2, 4)
        sentences = [[(draw.choice(WORDS), draw.choice(LABELS)) for _ in range(draw.randint(1, 5))]
                     for _ in range(draw.randint(1, 6))]
        if blank == " ":  # "# ..." begins a comment
            sentences = [sentence if sentence[0][0] != "#" else [("x", "X")] + sentence for sentence in sentences]
        sentences.append([("end", "X")])
        lines = []
        for sentence in sentences:
            if draw.random() < 0.4:
                lines.append("# id = " + draw.choice(WORDS))
            lines += [blank.join([word] + ["-"] * (columns - 2) + [label]) for word, label in sentence] + [""]
        path = folder / "y.conll"
        path.write_text("\n".join(lines), encoding="utf-8")
        wanted = [[" ".join(word for word, _ in sentence), " ".join(label for _, label in sentence)]
                  for sentence in sentences]
        yield (f"CoNLL of {columns} columns between {'TABs' if blank != ' ' else 'blanks'}, {i}",
               compared(read("pairs", path, "", ""), "pairs", wanted))


def compared(ours, key, wanted):
    if "error" in ours:
        return ours["error"]
    if ours[key] == wanted:
        return None
    first = next((pair for pair in zip(ours[key], wanted) if pair[0] != pair[1]), None)
    return f"{len(ours[key])} of {len(wanted)}; first {first}"


def fasta_cases(draw, folder, read, count):
    for i in range(6 * count):
        suffix = draw.choice(["fasta", "fas", "fa", "fsa", "faa", "fna", "ffn", "frn", "mpfa"])
        letters = "ACGTNacgt-" if suffix in ("fna", "ffn", "frn") else "ACDEFGHIKLMNPQRSTVWYXBZU*-ac"
        lines = []
        for number in range(draw.randint(1, 6)):
            lines.append(f">sp|P{number}| of {draw.choice(WORDS)}")
            residues, width = draw.choices(letters, k=draw.randint(1, 150)), draw.randint(10, 70)
            lines += ["".join(residues[j:j + width]) for j in range(0, len(residues), width)]
            if draw.random() < 0.3:
                lines.append("")
        path = folder / f"x.{suffix}"
        path.write_bytes(draw.choice(["\n", "\r\n"]).join(lines + [""]).encode())
        wanted = "".join(f"{record.seq}\n" for record in SeqIO.parse(path, "fasta"))
        answer = read("text", path)
        yield f".{suffix}, {i}", answer.get("error") or (None if answer["text"] == wanted else "another text")


def csv_cases(draw, folder, read, count):
    parts = ["a", "5\" pipe", ",", "\"", "so, so", "\n", " ", "\u00e9", "x\"y\"", "''", ";"]
    for i in range(6 * count):
        rows = [["".join(draw.choices(parts, k=draw.randint(0, 3)) + [draw.choice(parts[:5])]
                         + draw.choices(parts, k=draw.randint(0, 2))) for _ in range(3)] for _ in range(8)]
        output = io.StringIO()
        writer = csv.writer(output, quoting=draw.choice([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
                            lineterminator=draw.choice(["\n", "\r\n"]))
        writer.writerow(["id", "text", "label"])
        writer.writerows(rows)
        text = output.getvalue()
        if draw.random() < 0.3:  # a quote that is not doubled
            text += "7,5\" pipe,6\" \"\n"
        path = folder / "x.csv"
        path.write_bytes(text.encode())
        read_rows = list(csv.reader(io.StringIO(text, newline="")))[1:]
        shown = [[field.replace("\r\n", " ").replace("\n", " ") for field in row[1:]] for row in read_rows]
        yield f"rows, {i}", compared(read("pairs", path, "text", "label"), "pairs", shown)


def table_cases(draw, folder, read, count):
    """JSON Lines and TSV, as Python writes them."""
    parts = ["a", "5\" pipe", "\"", "\\", "so, so", " ", "\u00e9", "{", "}", "'"]
    for i in range(4 * count):
        rows = [["".join(draw.choices(parts, k=draw.randint(0, 3))) + "x" for _ in range(3)] for _ in range(8)]
        path = folder / "x.tsv"
        path.write_text("id\ttext\tlabel\n" + "".join("\t".join(row) + "\n" for row in rows), encoding="utf-8")
        yield f"TSV, {i}", compared(read("pairs", path, "text", "label"), "pairs", [row[1:] for row in rows])
        values = [[row[1] + draw.choice(["", "\n", "\t", "\r\n", "\u2028"]) + "x",
                   draw.choice([row[2], draw.randrange(-9, 10 ** 12), draw.random(), True])] for row in rows]
        path = folder / "x.jsonl"
        path.write_text("".join(json.dumps({"id": None, "text": text, "label": label},
                                           ensure_ascii=draw.random() < 0.5) + draw.choice(["\n", "\r\n", "\n\n"])
                                for text, label in values), encoding="utf-8", newline="")
        lines = path.read_text(encoding="utf-8").split("\n")
        read_back = [json.loads(line) for line in lines if line.strip()]
        shown = [[re.sub(r"\r\n|[\r\n\t]", " ", one["text"]),
                  one["label"] if isinstance(one["label"], str) else json.dumps(one["label"])] for one in read_back]
        yield f"JSON Lines, {i}", compared(read("pairs", path, "text", "label"), "pairs", shown)


SOUNDS = {"wav": ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE", "ULAW"),
          "flac": ("PCM_S8", "PCM_16", "PCM_24"), "aiff": ("PCM_16", "FLOAT"), "au": ("PCM_16",), "caf": ("PCM_16",)}


def sound_cases(draw, folder, read, count):
    for suffix, kinds in SOUNDS.items():
        for kind in kinds:
            for i in range(count):
                channels, rate = draw.randint(1, 3), draw.choice([8000, 16000, 44100, 48000])
                generator = numpy.random.default_rng(draw.randrange(2 ** 32))
                path = folder / f"x.{suffix}"
                soundfile.write(path, generator.uniform(-1, 1, (draw.randint(1, 500), channels)), rate, subtype=kind)
                samples, read_rate = soundfile.read(path, dtype="float32", always_2d=True)
                mean = samples[:, 0]
                for channel in range(1, channels):
                    mean = mean + samples[:, channel]
                mean = mean / numpy.float32(channels)
                answer = read("sound", path)
                problem = answer.get("error")
                if not problem and answer["rate"] != read_rate:
                    problem = f"rate {answer['rate']}, soundfile {read_rate}"
                if not problem and not numpy.array_equal(numpy.array(answer["samples"], numpy.float32), mean):
                    problem = "other samples"
                yield f"{suffix} {kind}, {channels} channels, {i}", problem


def interaction_cases(draw, folder, read, count):
    for i in range(8 * count):
        rows, size = draw.randint(20, 60), draw.choice([10, 10 ** 10, 10 ** 18])
        offset = draw.choice([0, 1_700_000_000, 1_700_000_000_000_000_000])
        users = [f"u{draw.randrange(5)}" for _ in range(rows)]
        items = [f"i{draw.randrange(40)}" for _ in range(rows)]
        times = numpy.array([offset + draw.randrange(size) for _ in range(rows)], numpy.int64)
        form = draw.choice(["tab", "blank", "u.data", "ratings.dat", "csv"])
        path = folder / ("x.csv" if form == "csv" else "x.txt")
        if form == "csv":
            lines = ["user,item,rating," + draw.choice(["time", "timestamp"])]
            lines += [f"{user},\"{item}\",3,{time}" for user, item, time in zip(users, items, times)]
        else:
            between = {"tab": "\t{}\t", "blank": " {} ", "u.data": "\t{}\t3\t", "ratings.dat": "::{}::3::"}[form]
            lines = [user + between.format(item) + str(time) for user, item, time in zip(users, items, times)]
        path.write_text("\n".join(lines) + "\n")
        order = numpy.argsort(times, kind="stable")
        wanted = {user: [] for user in users}
        for place in order:
            wanted[users[place]].append(items[place])
        kept = [[user, taken] for user, taken in wanted.items() if len(taken) > 1]
        yield f"{form}, times from {offset} on, {i}", compared(read("items", path), "sequences", kept)


FORMATS = {"PNG with Pillow": png_cases, "JPEG with Pillow": jpeg_cases, "CoNLL with conllu": conll_cases,
           "FASTA with Biopython": fasta_cases, "CSV with Python": csv_cases,
           "TSV and JSON Lines with Python": table_cases, "sounds with soundfile": sound_cases,
           "interactions with numpy": interaction_cases}


def main():
    parser = conform_report.arguments(__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=5, help="how many files of each kind")
    options = parser.parse_args()
    print(", ".join(f"{name} {importlib.metadata.version(name)}" for name in PACKAGES), f"seed {options.seed}")
    warnings.filterwarnings("ignore", category=UserWarning, module="PIL")  # warnings about transparent palettes
    read, report = Reader(pathlib.Path(options.program).resolve().parent / "read_file"), conform_report.Report()
    with tempfile.TemporaryDirectory() as folder:
        for name, cases in FORMATS.items():
            draw = random.Random(f"{options.seed} {name}")
            for case, problem in cases(draw, pathlib.Path(folder), read, options.count):
                report.state(f"{name}: {case}", problem is None, problem or "equal")
    read.close()
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
