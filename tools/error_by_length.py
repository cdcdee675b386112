#!/usr/bin/env python3
"""Prints two outputs of `attend evaluate --json` side by side, by source length."""

import json
import sys

BUCKETS = [(1, 4), (5, 6), (7, 8), (9, 10), (11, 12), (13, 99)]


def pooled(figures, low, high):
    """Examples and mean sequence error of the lengths from low to high."""
    rows = [r for r in figures["by_length"] if low <= r["source_length"] <= high]
    examples = sum(r["examples"] for r in rows)
    wrong = sum(r["examples"] * r["sequence_error_rate"] for r in rows)
    return examples, wrong / examples if examples else 0.0


def main():
    with_attention, without = (json.load(open(path)) for path in sys.argv[1:3])
    print(f"{'letters':>10} {'words':>7} {'attention':>10} {'without':>10}   wrong words")
    for low, high in BUCKETS:
        examples, error = pooled(with_attention, low, high)
        _, other = pooled(without, low, high)
        name = f"{low}-{high}" if high < 99 else f"{low}+"
        print(f"{name:>10} {examples:>7} {100 * error:>9.1f}% {100 * other:>9.1f}%")
    for name, key in (("words", "sequence_error_rate"), ("phonemes", "token_error_rate")):
        print(
            f"{'all ' + name:>18} {100 * with_attention[key]:>9.2f}% {100 * without[key]:>9.2f}%"
        )


if __name__ == "__main__":
    main()
