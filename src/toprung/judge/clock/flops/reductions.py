"""Reductions, scans, softmax, normalisations, pooling, resampling, losses, transforms.

Throughout, n is the number of elements of the input and r the number of results (rows, groups,
channels) that a reduction leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from .call import Call, Flops, padded


def _per_input(cost: int, per_result: int = 0) -> Callable[[Call], Flops]:
    """`cost * n + per_result * r`."""

    def formula(call: Call) -> Flops:
        return Flops(other=cost * call.first.numel() + per_result * call.numel)

    return formula


def vector_norm(call: Call) -> Flops:
    """|x|^p, add; then the root. p = 2: square, add, sqrt; p = 1, inf: abs, add or max."""
    p = call.get("ord", call.get("p", 2))
    p = 2 if p is None else p
    if p == 2:
        per_element, root = 2, 1
    elif p in (0, 1, math.inf, -math.inf):
        per_element, root = 2, 0
    else:
        per_element, root = 3, 1
    return Flops(other=per_element * call.first.numel() + root * call.numel)


def _searched(call: Call) -> Flops:
    """Comparisons to find one of n: n, whatever is wanted of them."""
    return Flops(other=call.first.numel())


def sort(call: Call) -> Flops:
    """n ceil(log2 m) comparisons for rows of m."""
    x = call.first
    row = x.shape[call.get("dim", -1)] if x.dim() else 1
    return Flops(other=x.numel() * math.ceil(math.log2(row)) if row > 1 else 0)


def bucketize(call: Call) -> Flops:
    """Binary search: ceil(log2(b + 1)) comparisons per value among b boundaries."""
    boundaries = call.tensor("boundaries", "sorted_sequence").shape[-1]
    return Flops(other=call.numel * math.ceil(math.log2(boundaries + 1)))


# --- softmax and normalisations


def softmax(call: Call) -> Flops:
    """max, subtract, exp, add, divide: 5 n."""
    return Flops(other=5 * call.numel)


def log_softmax(call: Call) -> Flops:
    """max, subtract, exp, add, subtract: 5 n; the logarithm per row."""
    x = call.first
    rows = x.numel() // max(call.size_over(x, call.get("dim", -1)), 1)
    return Flops(other=5 * x.numel() + rows)


def _affine(call: Call) -> int:
    """Multiply by `weight` and add `bias`, where given."""
    return sum(isinstance(call.named.get(name), torch.Tensor) for name in ("weight", "bias"))


def _normalised(elements: int, rows: int) -> int:
    """Mean (add per element, divide per row), subtract, square, add, (divide, + eps, rsqrt), scale."""
    return 5 * elements + 4 * rows


def layer_norm(call: Call) -> Flops:
    """5 n + 4 r, and one n each for weight and bias."""
    x = call.first
    rows = x.numel() // max(math.prod(call.get("normalized_shape")), 1)
    return Flops(other=_normalised(x.numel(), rows) + _affine(call) * x.numel())


def rms_norm(call: Call) -> Flops:
    """Square, add, (divide, + eps, rsqrt per row), scale: 3 n + 3 r, and n for the weight."""
    x = call.first
    rows = x.numel() // max(math.prod(call.get("normalized_shape")), 1)
    return Flops(other=3 * x.numel() + 3 * rows + _affine(call) * x.numel())


def group_norm(call: Call) -> Flops:
    """5 n + 4 r with r = batch x groups, and one n each for weight and bias."""
    x = call.first
    rows = call.get("N") * call.get("group")
    return Flops(other=_normalised(x.numel(), rows) + _affine(call) * x.numel())


def batch_norm(call: Call) -> Flops:
    """Training: 5 n + 4 c, and (multiply, multiply, add) per running statistic; evaluation with
    given statistics: subtract and scale (2 n) and (+ eps, rsqrt) per channel. Affine as elsewhere.
    """
    x = call.first
    channels = x.shape[1] if x.dim() > 1 else 1
    in_training = call.get("training", call.get("train", "no_training" not in call.name))
    affine = _affine(call) * x.numel()
    if not in_training:
        return Flops(other=2 * x.numel() + 2 * channels + affine)
    running = sum(
        isinstance(call.named.get(name), torch.Tensor) for name in ("running_mean", "running_var")
    )
    return Flops(other=_normalised(x.numel(), channels) + 3 * running * channels + affine)


def norm_backward(call: Call) -> Flops:
    """Gradients of layer, group and batch norm, with x^ = (x - mean) rstd and g the upstream one.

    x: x^ (2), g w (1 if there is a weight), its mean and its mean with x^ (3), combine (4);
    weight: g x^ summed (2); bias: g summed (1); all times n.
    """
    n = call.tensor("input").numel()
    wants_x, wants_weight, wants_bias = call.get("output_mask", (True, True, True))
    has_weight = isinstance(call.named.get("weight"), torch.Tensor)
    cost = (9 + has_weight) * bool(wants_x) + 2 * bool(wants_weight) + bool(wants_bias)
    return Flops(other=cost * n)


# --- pooling and resampling


def _window(call: Call) -> int:
    return math.prod(padded(call.get("kernel_size"), int(call.name.split("pool")[1][0])))


def max_pool(call: Call) -> Flops:
    """One comparison per window element."""
    return Flops(other=call.numel * _window(call))


def avg_pool(call: Call) -> Flops:
    """One add per window element, one divide per result."""
    return Flops(other=call.numel * (_window(call) + 1))


def adaptive_pool(call: Call) -> Flops:
    """Windows from floor(i n / o) to ceil((i + 1) n / o) in each dimension; averages divide once."""
    x, out = call.first, call.outputs[0]
    dims = int(call.name.split("pool")[1][0])
    elements = x.numel() // max(math.prod(x.shape[-dims:]), 1)
    for size, results in zip(x.shape[-dims:], out.shape[-dims:], strict=True):
        elements *= sum(-(-(i + 1) * size // results) - i * size // results for i in range(results))
    return Flops(other=elements + (out.numel() if "avg" in call.name else 0))


# Linear interpolation is 3 (subtract, multiply, add); a cubic one 7 (four products, three sums).
RESAMPLED = {
    "upsample_linear1d": 3,
    "upsample_bilinear2d": 3 * 3,
    "_upsample_bilinear2d_aa": 3 * 3,
    "upsample_trilinear3d": 3 * 7,
    "upsample_bicubic2d": 7 * 5,
    "_upsample_bicubic2d_aa": 7 * 5,
}


def resample(call: Call) -> Flops:
    """Interpolations per element of the result; the coordinates depend on sizes alone."""
    return Flops(other=RESAMPLED[call.name] * call.numel)


def grid_sample(call: Call) -> Flops:
    """Bilinear (9) or trilinear (21) interpolation per result, 2 per coordinate to unnormalise it."""
    grid = call.tensor("grid")
    is_linear = call.get("interpolation_mode", 0) == 0
    per_result = {2: 9, 3: 21}[grid.shape[-1]] if is_linear else 0
    return Flops(other=per_result * call.numel + 2 * grid.numel())


# --- losses


def _reduced(call: Call, elements: int) -> int:
    """What `reduction` adds: 0 none; 1 mean, a sum and a divide; 2 sum."""
    reduction = call.get("reduction", 1)
    return elements + 1 if reduction == 1 else elements if reduction == 2 else 0


def _loss(cost: int) -> Callable[[Call], Flops]:
    def formula(call: Call) -> Flops:
        n = call.first.numel()
        return Flops(other=cost * n + _reduced(call, n))

    return formula


def smooth_l1_loss(call: Call) -> Flops:
    """d = |x - t|: subtract, abs, compare, `0.5 d d` (2), and a divide unless beta is 1."""
    n = call.first.numel()
    cost = 5 + (call.get("beta", 1.0) != 1.0)
    return Flops(other=cost * n + _reduced(call, n))


def nll_loss(call: Call) -> Flops:
    """Per target: negate, multiply by its weight where given, then the reduction."""
    n = call.tensor("target").numel()
    weighted = isinstance(call.named.get("weight"), torch.Tensor)
    return Flops(other=(1 + 2 * weighted) * n + _reduced(call, n))


# --- transforms and scatter


def fft(call: Call) -> Flops:
    """5 N log2 N for a complex transform of N points, half of it where one side is real.

    The count that FFTW's authors use (Frigo and Johnson, Proc. IEEE 93(2), 2005).
    """
    is_real = call.name in ("_fft_r2c", "_fft_c2r")
    full = call.first if call.name != "_fft_c2r" else call.outputs[0]
    points = call.size_over(full, call.get("dim"))
    transforms = full.numel() // max(points, 1)
    total = 5 * transforms * points * math.log2(points) if points > 1 else 0
    return Flops(other=round(total / 2 if is_real else total))


def scattered(call: Call) -> Flops:
    """One operation per element that is scattered: an add, or what `reduce` names."""
    source = call.named.get("src", call.named.get("source", call.named.get("values")))
    count = source.numel() if isinstance(source, torch.Tensor) else call.tensor("index").numel()
    return Flops(other=count)


def index_put(call: Call) -> Flops:
    """An add per value where values accumulate."""
    return Flops(other=call.tensor("values").numel() if call.get("accumulate", False) else 0)


def scatter(call: Call) -> Flops:
    """Moves data, unless `reduce` asks for arithmetic."""
    return scattered(call) if call.named.get("reduce") else Flops()


def embedding_bag(call: Call) -> Flops:
    """One add (or comparison) per gathered element; a mean divides once per result."""
    gathered = call.tensor("indices").numel() * call.tensor("weight").shape[-1]
    return Flops(other=gathered + (call.numel if call.get("mode", 0) == 1 else 0))


def _summed_gradient(call: Call) -> Flops:
    """Every upstream element is added somewhere once."""
    return Flops(other=call.tensor("grad_output").numel())


def _avg_pool_backward(call: Call) -> Flops:
    """Divide, then one add per window element."""
    return Flops(other=call.tensor("grad_output").numel() * (_window(call) + 1))


def minmax(call: Call) -> Flops:
    """`max(a, b)` compares element by element; any other form searches n."""
    return Flops(other=call.numel) if call.overload == "other" else _searched(call)


REDUCTIONS: dict[str, Callable[[Call], Flops]] = {
    "sum": _per_input(1),
    "nansum": _per_input(2),
    "mean": _per_input(1, 1),
    "nanmean": _per_input(2, 2),
    "prod": _per_input(1),
    "amax": _searched,
    "amin": _searched,
    "aminmax": _per_input(2),
    "max": minmax,
    "min": minmax,
    "argmax": _searched,
    "argmin": _searched,
    "median": _searched,
    "nanmedian": _searched,
    "mode": sort,
    "kthvalue": _searched,
    "topk": _searched,
    "sort": sort,
    "argsort": sort,
    "any": _searched,
    "all": _searched,
    "count_nonzero": _searched,
    "nonzero": _searched,
    "bucketize": bucketize,
    "searchsorted": bucketize,
    "var": _per_input(4, 2),  # mean, subtract, square, add; two divides
    "std": _per_input(4, 3),
    "var_mean": _per_input(4, 2),
    "std_mean": _per_input(4, 3),
    "linalg_vector_norm": vector_norm,
    "norm": vector_norm,
    "logsumexp": _per_input(4, 2),  # max, subtract, exp, add; log and add
    "cumsum": _per_input(1),
    "cumprod": _per_input(1),
    "cummax": _per_input(1),
    "cummin": _per_input(1),
    "_logcumsumexp": _per_input(7),  # a logaddexp per element
    "trace": lambda call: Flops(other=min(call.first.shape)),
    "_softmax": softmax,
    "_safe_softmax": softmax,
    "_log_softmax": log_softmax,
    "_softmax_backward_data": _per_input(4),  # multiply, add, subtract, multiply
    "_log_softmax_backward_data": _per_input(4),  # exp, add, multiply, subtract
    "native_layer_norm": layer_norm,
    "_fused_rms_norm": rms_norm,
    "rms_norm": rms_norm,
    "native_group_norm": group_norm,
    "native_batch_norm": batch_norm,
    "cudnn_batch_norm": batch_norm,
    "miopen_batch_norm": batch_norm,
    "_native_batch_norm_legit": batch_norm,
    "_native_batch_norm_legit_no_training": batch_norm,
    "_batch_norm_with_update": batch_norm,
    "native_layer_norm_backward": norm_backward,
    "native_group_norm_backward": norm_backward,
    "native_batch_norm_backward": norm_backward,
    "max_pool1d": max_pool,
    "max_pool2d": max_pool,
    "max_pool3d": max_pool,
    "max_pool2d_with_indices": max_pool,
    "max_pool3d_with_indices": max_pool,
    "fractional_max_pool2d": max_pool,
    "fractional_max_pool3d": max_pool,
    "avg_pool1d": avg_pool,
    "avg_pool2d": avg_pool,
    "avg_pool3d": avg_pool,
    "_adaptive_avg_pool2d": adaptive_pool,
    "_adaptive_avg_pool3d": adaptive_pool,
    "adaptive_max_pool2d": adaptive_pool,
    "adaptive_max_pool3d": adaptive_pool,
    "max_pool2d_with_indices_backward": _summed_gradient,
    "max_pool3d_with_indices_backward": _summed_gradient,
    "avg_pool2d_backward": _avg_pool_backward,
    "avg_pool3d_backward": _avg_pool_backward,
    **dict.fromkeys(RESAMPLED, resample),
    "grid_sampler_2d": grid_sample,
    "grid_sampler_3d": grid_sample,
    "mse_loss": _loss(2),  # subtract, square
    "smooth_l1_loss": smooth_l1_loss,
    "huber_loss": _loss(5),
    "binary_cross_entropy": _loss(8),  # -(t log x + (1 - t) log(1 - x))
    "soft_margin_loss": _loss(4),  # log1p(exp(-t x))
    "nll_loss_forward": nll_loss,
    "nll_loss2d_forward": nll_loss,
    "nll_loss_backward": _summed_gradient,
    "nll_loss2d_backward": _summed_gradient,
    "_fft_r2c": fft,
    "_fft_c2r": fft,
    "_fft_c2c": fft,
    "scatter_add": scattered,
    "scatter_reduce": scattered,
    "index_add": scattered,
    "index_reduce": scattered,
    "scatter": scatter,
    "index_put": index_put,
    "_unsafe_index_put": index_put,
    "_index_put_impl": index_put,
    "col2im": _per_input(1),  # overlapping patches are added
    "_embedding_bag": embedding_bag,
    "_embedding_bag_forward_only": embedding_bag,
    "embedding_dense_backward": _summed_gradient,
}
