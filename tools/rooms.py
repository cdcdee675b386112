#!/usr/bin/env python3
"""Draws the layers of CMakeLists.txt as docs/rooms.svg with `dot` of Debian's graphviz: rooms.py

An arrow means that a layer includes another. Arrows that follow from others are omitted.
"""

import pathlib
import subprocess

import check_layers

ROOT = pathlib.Path(__file__).resolve().parents[1]
PICTURE = ROOT / "docs/rooms.svg"


def arrows(layers):
    """Pairs (layer, lower layer) from which all others follow."""
    below = {}
    for name, layer in layers.items():  # lowest first
        below[name] = layer.imports.union(*(below[other] for other in layer.imports))
    return {(name, other) for name, layer in layers.items() for other in layer.imports
            if not any(other in below[between] for between in layer.imports)}


def graph(layers):
    lines = ["digraph rooms {", "rankdir=BT;", "ranksep=0.35; nodesep=0.3;", 'bgcolor="white";',
             'node [shape=box, style="rounded,filled", fontname="sans-serif", fontsize=12, color="#555555"];',
             'edge [color="#777777", arrowsize=0.6, dir=back];']
    for name, layer in layers.items():
        lines.append(f'{name} [fillcolor="{"#dbe9f6" if layer.torch else "#f3efe2"}"];')
    lines += [f"{lower} -> {name};" for name, lower in sorted(arrows(layers))]
    return "\n".join([*lines, "}"])


def main():
    layers = check_layers.read_layers((ROOT / "CMakeLists.txt").read_text(encoding="utf-8"))
    drawn = subprocess.run(["dot", "-Tsvg"], input=graph(layers), check=True, stdout=subprocess.PIPE, text=True).stdout
    PICTURE.write_text(drawn, encoding="utf-8")


if __name__ == "__main__":
    main()
