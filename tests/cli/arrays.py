"""Shared by the tests of the program: runs it, and reads and writes arrays in .npy and .npz files.

An array is a pair (shape, flat list of numbers in C order).
"""

import ast
import itertools
import struct
import subprocess
import zipfile

import program

FORMATS = {"<f8": "d", "<f4": "f", "<f2": "e", "<i8": "q", "<i4": "i", "|u1": "B", "|b1": "?"}


def run(*arguments, cwd=None):
    """Runs `attend ARGUMENTS`; returns the finished process with text output."""
    return subprocess.run(
        [program.PROGRAM, *map(str, arguments)],
        env=program.environment(),
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
    )


def write_npy(path, array, descr="<f8"):
    shape, values = array
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {tuple(shape)}, }}\n".encode()
    data = struct.pack(f"<{len(values)}{FORMATS[descr]}", *values)
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + data)


def parse_npy(data):
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    (length,) = struct.unpack_from("<H", data, 8)
    assert (10 + length) % 64 == 0
    header = ast.literal_eval(data[10 : 10 + length].decode())
    assert header["fortran_order"] is False
    kind = FORMATS[header["descr"]]
    values = [value for (value,) in struct.iter_unpack("<" + kind, data[10 + length :])]
    return header["shape"], values, header["descr"]


def read_npz(path):
    """{name: (shape, values)} and {name: descr}."""
    arrays, descrs = {}, {}
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        for entry in archive.namelist():
            assert entry.endswith(".npy")
            shape, values, descr = parse_npy(archive.read(entry))
            arrays[entry[:-4]] = (shape, values)
            descrs[entry[:-4]] = descr
    return arrays, descrs


def nested(array):
    """Returns an array as nested lists."""
    shape, values = array
    if not shape:
        return values[0]
    step = len(values) // shape[0] if shape[0] else 0
    return [
        nested((shape[1:], values[i * step : (i + 1) * step])) for i in range(shape[0])
    ]


def flat(lists):
    """Returns nested lists as an array."""
    if not isinstance(lists, list):
        return (), [lists]
    parts = [flat(part) for part in lists]
    shape = parts[0][0] if parts else ()
    return (len(parts), *shape), list(itertools.chain.from_iterable(part[1] for part in parts))
