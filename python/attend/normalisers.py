"""Normalisers: weights from scores, named as in docs/mechanisms.md."""

from __future__ import annotations

import math
from dataclasses import dataclass

SOFTMAX, SIGMOID, NONE, SPARSEMAX, ENTMAX15 = range(5)


@dataclass(frozen=True)
class Normaliser:
    """A normaliser of the kernels. Scores are divided by the temperature first."""

    name: str
    code: int
    temperature: float = 1.0


def softmax() -> Normaliser:
    """exp(s_ij) / sum_j exp(s_ij) (Bahdanau et al. 2015, eq. 6)."""
    return Normaliser("softmax", SOFTMAX)


def temperature(t: float) -> Normaliser:
    """Softmax of s_ij / t, t from 1e-18 to 1e18 (Hinton et al. 2015, eq. 1)."""
    if not (isinstance(t, (int, float)) and math.isfinite(t) and 1e-18 <= t <= 1e18):
        raise ValueError(f"temperature is {t!r}; it must be a number from 1e-18 to 1e18")
    return Normaliser("temperature", SOFTMAX, float(t))


def sigmoid() -> Normaliser:
    """1 / (1 + exp(-s_ij)) (Ramapuram et al. 2024, eq. 3)."""
    return Normaliser("sigmoid", SIGMOID)


def none() -> Normaliser:
    """The scores themselves."""
    return Normaliser("none", NONE)


def sparsemax() -> Normaliser:
    """max(0, s_ij - t_i), t_i such that weights sum to 1 (Martins and Astudillo 2016, eq. 3)."""
    return Normaliser("sparsemax", SPARSEMAX)


def entmax15() -> Normaliser:
    """max(0, (s_ij - t_i) / 2)^2, t_i such that weights sum to 1 (Peters et al. 2019, alpha = 1.5)."""
    return Normaliser("entmax15", ENTMAX15)


BY_NAME = {one.name: one for one in (softmax(), sigmoid(), none(), sparsemax(), entmax15())}


def normaliser(given: object) -> Normaliser:
    """A normaliser from a Normaliser or its name."""
    if isinstance(given, Normaliser):
        return given
    if isinstance(given, str) and given in BY_NAME:
        return BY_NAME[given]
    raise ValueError(f"normaliser is {given!r}; it must be a normaliser of attend.normalisers or one of "
                     f"{', '.join(BY_NAME)}")
