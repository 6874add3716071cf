"""Elementwise operators: flops per element of the result."""

from __future__ import annotations

from collections.abc import Callable

from .call import Call, Flops, words

# Elementary functions: one flop per element.
ELEMENTARY = words("""
    abs acos acosh angle asin asinh atan atan2 atanh ceil copysign cos cosh
    deg2rad digamma div eq erf erfc erfinv exp exp2 expm1 float_power floor floor_divide
    fmax fmin fmod frac ge gt isfinite isinf isnan ldexp le lgamma log log10 log1p log2
    logical_and logical_not logical_or logical_xor lt maximum minimum mul mvlgamma ne neg nextafter
    pow rad2deg reciprocal relu remainder round rsqrt sgn sign signbit sin sinc sinh
    special_bessel_j0 special_bessel_j1 special_erfcx special_i0 special_i1 special_ndtri sqrt
    square tan tanh threshold true_divide trunc clamp_max clamp_min hardshrink
    threshold_backward
    """)

# Made of elementary functions; the formula is beside the count.
COMPOSED: dict[str, int] = {
    "sigmoid": 4,  # 1 / (1 + exp(-x)): neg, exp, add, div
    "silu": 5,  # x * sigmoid(x)
    "log_sigmoid_forward": 6,  # min(x, 0) - log1p(exp(-|x|))
    "mish": 4,  # x * tanh(log1p(exp(x)))
    "hardtanh": 2,  # two bounds
    "relu6": 2,
    "hardsigmoid": 4,  # clamp(x + 3, 0, 6) / 6
    "hardswish": 5,  # x * hardsigmoid(x)
    "leaky_relu": 2,  # compare, multiply
    "rrelu_with_noise": 2,
    "_prelu_kernel": 2,
    "prelu": 2,
    "softshrink": 2,  # compare, subtract
    "glu": 5,  # a * sigmoid(b), per element of the result
    "lerp": 3,  # a + w * (b - a)
    "xlogy": 2,
    "special_xlog1py": 3,
    "special_entr": 3,  # -x * log(x)
    "logaddexp": 7,  # max + log1p(exp(-|a - b|)): max, sub, abs, neg, exp, log1p, add
    "logaddexp2": 7,
    "logit": 3,  # log(x / (1 - x))
    "hypot": 4,
    "nan_to_num": 3,  # three tests
    "heaviside": 1,
    "native_dropout": 2,  # mask and scale
    "frexp": 1,
    "polar": 4,
    # Backward: g is the upstream gradient, y the result of the forward pass.
    "sigmoid_backward": 3,  # g * y * (1 - y)
    "tanh_backward": 3,  # g * (1 - y * y)
    "silu_backward": 9,  # s = sigmoid(x); g * s * (1 + x * (1 - s))
    "leaky_relu_backward": 2,
    "hardtanh_backward": 2,
    "hardsigmoid_backward": 3,
    "hardswish_backward": 5,
    "elu_backward": 3,
    "softplus_backward": 4,  # g * exp(x) / (exp(x) + 1)
    "log_sigmoid_backward": 5,
    "mish_backward": 14,
    "glu_backward": 12,
    "native_dropout_backward": 2,
    "smooth_l1_loss_backward": 4,
    "huber_loss_backward": 4,
    "mse_loss_backward": 3,  # 2 * (x - t) * g
    "_prelu_kernel_backward": 4,
}

# Complex arithmetic in real operations, where the convention is common; others are reported.
COMPLEX = {
    "add": 2,
    "sub": 2,
    "rsub": 2,
    "neg": 2,
    "mul": 6,
    "div": 11,
    "abs": 4,
    "conj_physical": 1,
}


def _scaled_sum(call: Call) -> int:
    """`a + alpha * b`."""
    return 1 if call.get("alpha", 1) == 1 else 2


def _addc(call: Call) -> int:
    """`a + value * b * c` and `a + value * b / c`."""
    return 2 if call.get("value", 1) == 1 else 3


def _clamp(call: Call) -> int:
    return sum(call.get(bound) is not None for bound in ("min", "max"))


def _elu(call: Call) -> int:
    """`x` or `scale * alpha * (exp(input_scale * x) - 1)`: compare, expm1, multiply."""
    return 3 + (call.get("scale", 1) != 1) + (call.get("input_scale", 1) != 1)


def _gelu(call: Call) -> int:
    """`0.5 x (1 + erf(x / sqrt 2))`: 5; `0.5 x (1 + tanh(k (x + c x^3)))`: 9."""
    return 9 if call.get("approximate", "none") == "tanh" else 5


def _gelu_backward(call: Call) -> int:
    """`g * (Phi(x) + x * phi(x))`: 4 + 4 + 3; the derivative of the tanh form: 18."""
    return 18 if call.get("approximate", "none") == "tanh" else 11


def _softplus(call: Call) -> int:
    """`log1p(exp(beta x)) / beta` beyond a threshold `x`: exp, log1p, compare (, mul, div)."""
    return 3 if call.get("beta", 1) == 1 else 5


PER_ELEMENT: dict[str, Callable[[Call], int]] = {
    "add": _scaled_sum,
    "sub": _scaled_sum,
    "rsub": _scaled_sum,
    "addcmul": _addc,
    "addcdiv": _addc,
    "clamp": _clamp,
    "clip": _clamp,
    "elu": _elu,
    "gelu": _gelu,
    "gelu_backward": _gelu_backward,
    "softplus": _softplus,
}


def elementwise(call: Call) -> Flops | None:
    """Flops of an elementwise operator, or `None` if it is none that is known."""
    name = call.name
    is_known = name in ELEMENTARY or name in COMPOSED or name in PER_ELEMENT
    if not is_known and name not in COMPLEX:
        return None
    if any(t.dtype.is_complex for t in (*call.inputs, *call.outputs)):
        cost = COMPLEX.get(name)
        return None if cost is None else Flops(other=cost * call.numel)
    if not is_known:
        return Flops()
    cost = PER_ELEMENT[name](call) if name in PER_ELEMENT else COMPOSED.get(name, 1)
    return Flops(other=cost * call.numel)
