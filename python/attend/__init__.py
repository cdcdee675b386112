"""Attend for PyTorch: attention with any score, scope, bias and normaliser, and linear recurrences, on CPUs.

Each is one fused kernel, forward and backward, in memory linear in the tokens. docs/python.md begins with an example.
"""

from . import biases, normalisers, scopes, scores
from .functional import attention, attention_weights, column_sums, entropy, top
from .model import Explanation, Model
from .modules import AdditiveAttention, MultiHeadAttention
from .recurrence import causal_convolution, linear_recurrence
from .transformers import register_with_transformers

__version__ = "0.1.0"
__all__ = ["AdditiveAttention", "Explanation", "Model", "MultiHeadAttention", "attention", "attention_weights", "biases",
           "causal_convolution", "column_sums", "entropy", "linear_recurrence", "normalisers",
           "register_with_transformers", "scopes", "scores", "top"]
