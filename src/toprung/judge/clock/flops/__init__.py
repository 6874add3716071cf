"""Floating-point operations of torch operators: one formula per operator, its convention beside it.

The convention is the one of XLA's cost analysis: one flop per element for every elementary function
(add, multiply, divide, compare, maximum, exp, log, sqrt, tanh, erf, sin, power, ...), two for a
multiply-add, none for moving, selecting, converting or generating data. What is made of elementary
functions is counted by its textbook formula, which the tables write out. A reduction of n elements
to one is n operations. Padding counts as data. Integer and boolean arithmetic counts nothing, except
in matrix products, where integer operands keep the same units busy.
"""

from .call import Call, Flops
from .table import flops_of

__all__ = ["Call", "Flops", "flops_of"]
