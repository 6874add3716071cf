"""Matrix products, convolutions, attention and dense linear algebra."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from .call import Call, Flops


def _epilogue(call: Call, numel: int) -> Flops:
    """`beta * c + alpha * (a @ b)`: an add unless beta is 0, a multiply for each other factor."""
    alpha, beta = call.get("alpha", 1), call.get("beta", 1)
    operations = (alpha != 1) + (0 if beta == 0 else 1 + (beta != 1))
    return Flops(other=operations * numel)


def mm(call: Call) -> Flops:
    """`(m, k) @ (k, n)`: 2 m k n."""
    a, b = call.inputs[0], call.inputs[1]
    return Flops(product=2 * a.shape[0] * a.shape[1] * b.shape[1])


def addmm(call: Call) -> Flops:
    """`c + (m, k) @ (k, n)`."""
    a, b = call.tensor("mat1"), call.tensor("mat2")
    return Flops(product=2 * a.shape[0] * a.shape[1] * b.shape[1]) + _epilogue(
        call, a.shape[0] * b.shape[1]
    )


def addmm_activation(call: Call) -> Flops:
    """`addmm`, then relu or (tanh) gelu."""
    return addmm(call) + Flops(other=call.numel * (9 if call.get("use_gelu") else 1))


def bmm(call: Call) -> Flops:
    """`(b, m, k) @ (b, k, n)`: 2 b m k n."""
    a, b = call.inputs[0], call.inputs[1]
    return Flops(product=2 * a.numel() * b.shape[2])


def baddbmm(call: Call) -> Flops:
    """`c + batch1 @ batch2`, batch by batch."""
    a, b = call.tensor("batch1"), call.tensor("batch2")
    return Flops(product=2 * a.numel() * b.shape[2]) + _epilogue(call, call.numel)


def addbmm(call: Call) -> Flops:
    """`c + sum over the batch of batch1 @ batch2`; the sum is part of the product."""
    a, b = call.tensor("batch1"), call.tensor("batch2")
    return Flops(product=2 * a.numel() * b.shape[2]) + _epilogue(call, call.numel)


def mv(call: Call) -> Flops:
    """`(m, k) @ (k)`: 2 m k."""
    return Flops(product=2 * call.inputs[0].numel())


def addmv(call: Call) -> Flops:
    """`c + mat @ vec`."""
    return Flops(product=2 * call.tensor("mat").numel()) + _epilogue(call, call.numel)


def dot(call: Call) -> Flops:
    """2 n."""
    return Flops(product=2 * call.inputs[0].numel())


def addr(call: Call) -> Flops:
    """`c + vec1 (outer) vec2`: a multiply per element, then the epilogue."""
    return Flops(other=call.numel) + _epilogue(call, call.numel)


def trilinear(call: Call) -> Flops:
    """`torch.nn.functional.bilinear`: sum over i, j of x1[n,i] W[o,i,j] x2[n,j].

    First x1 with W (2 n o i j), then with x2 (2 n o j): the cheaper order is not searched for.
    """
    x1, weight = call.inputs[0], call.inputs[1]
    rows = x1.numel() // x1.shape[-1]
    outs, left, right = weight.shape[-3:]
    return Flops(product=2 * rows * outs * right * (left + 1))


def linear(call: Call) -> Flops:
    """`x @ weight.T + bias`."""
    x, weight = call.tensor("input", "self"), call.tensor("weight")
    bias = call.numel if isinstance(call.named.get("bias"), torch.Tensor) else 0
    return Flops(product=2 * x.numel() * weight.shape[0], other=bias)


def _convolved(x: torch.Tensor, weight: torch.Tensor, out: torch.Tensor, transposed: bool) -> int:
    """2 x (places) x (channels that meet there) x (kernel elements).

    A convolution visits each element of its result, a transposed one each element of its input;
    `weight` is (out, in / groups, *kernel) or, transposed, (in, out / groups, *kernel). Dilation
    changes which elements meet, not how many.
    """
    per_place = math.prod(weight.shape[1:])
    return 2 * (x.numel() if transposed else out.numel()) * per_place


def convolution(call: Call) -> Flops:
    """Any number of dimensions, groups, strides and dilations, transposed or not, plus the bias."""
    x, weight = call.tensor("input", "self"), call.tensor("weight")
    transposed = bool(call.get("transposed", False))
    bias = call.numel if isinstance(call.named.get("bias"), torch.Tensor) else 0
    return Flops(product=_convolved(x, weight, call.outputs[0], transposed), other=bias)


def convolution_backward(call: Call) -> Flops:
    """Each of the two gradients costs what the forward pass costs; the bias's is a sum."""
    grad, x, weight = call.tensor("grad_output"), call.tensor("input"), call.tensor("weight")
    wants_x, wants_weight, wants_bias = call.get("output_mask", (True, True, True))
    forward = _convolved(x, weight, grad, bool(call.get("transposed", False)))
    return Flops(
        product=forward * (bool(wants_x) + bool(wants_weight)),
        other=grad.numel() if wants_bias else 0,
    )


def attended_pairs(queries: int, keys: int, is_causal: bool) -> int:
    """Pairs of query and key that attend: all, or under a causal mask sum over i of min(i + 1, keys).

    torch aligns the causal mask at the top left; for `queries == keys == n` it leaves n (n + 1) / 2.
    """
    if not is_causal:
        return queries * keys
    full = min(queries, keys)
    return full * (full + 1) // 2 + (queries - full) * keys


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, is_causal: bool, has_mask: bool
) -> Flops:
    """softmax(scale * q k^T + mask) v over the pairs P that attend, per batch and query head:

    2 P E (scores) + 2 P Ev (values) in products; P (scale) + P (mask, if given) + 5 P (softmax).
    """
    heads = math.prod(q.shape[:-2])
    pairs = heads * attended_pairs(q.shape[-2], k.shape[-2], is_causal)
    return Flops(product=2 * pairs * (q.shape[-1] + v.shape[-1]), other=pairs * (6 + has_mask))


def attention_backward(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, is_causal: bool
) -> Flops:
    """Gradients from kept probabilities, over the same pairs P as the forward pass.

    dV = P^T dO and dP = dO V^T: 4 P Ev; dQ = dS K and dK = dS^T Q: 4 P E; the softmax's own
    gradient 4 P and the scale P.
    """
    heads = math.prod(q.shape[:-2])
    pairs = heads * attended_pairs(q.shape[-2], k.shape[-2], is_causal)
    return Flops(product=4 * pairs * (q.shape[-1] + v.shape[-1]), other=5 * pairs)


def fused_attention(call: Call) -> Flops:
    """Whatever fused kernel torch chose; heads lie before the sequence, as in its public call."""
    mask = call.named.get("attn_bias", call.named.get("attn_mask"))
    return attention(
        call.tensor("query"),
        call.tensor("key"),
        call.tensor("value"),
        is_causal=bool(call.get("is_causal", False)),
        has_mask=isinstance(mask, torch.Tensor),
    )


def fused_attention_backward(call: Call) -> Flops:
    """The gradient of whatever fused kernel torch chose."""
    q, k, v = call.tensor("query"), call.tensor("key"), call.tensor("value")
    return attention_backward(q, k, v, is_causal=bool(call.get("is_causal", False)))


def cdist(call: Call) -> Flops:
    """Distances of all pairs of rows: subtract, |.|^p, add per component, and the root per pair."""
    x1, p = call.tensor("x1"), call.get("p", 2.0)
    per_component = 3 if p in (0.0, 1.0, 2.0, math.inf) else 4
    roots = 0 if p in (0.0, 1.0, math.inf) else 1
    return Flops(other=call.numel * (per_component * x1.shape[-1] + roots))


def _factorised(cost: Callable[[int], int]) -> Callable[[Call], Flops]:
    def formula(call: Call) -> Flops:
        a = call.first
        n = a.shape[-1]
        return Flops(product=(a.numel() // max(n * n, 1)) * cost(n))

    return formula


def qr(call: Call) -> Flops:
    """Householder: 2 m n^2 - 2 n^3 / 3 for m >= n."""
    a = call.first
    m, n = max(a.shape[-2:]), min(a.shape[-2:])
    return Flops(product=(a.numel() // max(m * n, 1)) * (2 * m * n * n - 2 * n**3 // 3))


def triangular_solve(call: Call) -> Flops:
    """n^2 per right-hand side."""
    a, b = call.inputs[0], call.inputs[1]
    triangle, other = (a, b) if call.name == "linalg_solve_triangular" else (b, a)
    return Flops(product=triangle.shape[-1] * other.numel())


def solve(call: Call) -> Flops:
    """LU (2 n^3 / 3), then two triangular solves (2 n^2 per right-hand side)."""
    a, b = call.inputs[0], call.inputs[1]
    n = a.shape[-1]
    return Flops(product=(a.numel() // max(n * n, 1)) * (2 * n**3 // 3) + 2 * n * b.numel())


PRODUCTS: dict[str, Callable[[Call], Flops]] = {
    "mm": mm,
    "_int_mm": mm,
    "_scaled_mm": mm,
    "addmm": addmm,
    "_addmm_activation": addmm_activation,
    "bmm": bmm,
    "baddbmm": baddbmm,
    "addbmm": addbmm,
    "mv": mv,
    "addmv": addmv,
    "dot": dot,
    "vdot": dot,
    "addr": addr,
    "_trilinear": trilinear,
    "linear": linear,
    "mkldnn_linear": linear,
    "convolution": convolution,
    "_convolution": convolution,
    "cudnn_convolution": convolution,
    "mkldnn_convolution": convolution,
    "convolution_backward": convolution_backward,
    "_scaled_dot_product_flash_attention": fused_attention,
    "_scaled_dot_product_flash_attention_for_cpu": fused_attention,
    "_scaled_dot_product_efficient_attention": fused_attention,
    "_scaled_dot_product_cudnn_attention": fused_attention,
    "_scaled_dot_product_fused_attention_overrideable": fused_attention,
    "_scaled_dot_product_flash_attention_backward": fused_attention_backward,
    "_scaled_dot_product_flash_attention_for_cpu_backward": fused_attention_backward,
    "_scaled_dot_product_efficient_attention_backward": fused_attention_backward,
    "_scaled_dot_product_cudnn_attention_backward": fused_attention_backward,
    "_cdist_forward": cdist,
    "cholesky": _factorised(lambda n: n**3 // 3),
    "linalg_cholesky_ex": _factorised(lambda n: n**3 // 3),
    "linalg_lu_factor_ex": _factorised(lambda n: 2 * n**3 // 3),
    "_linalg_det": _factorised(lambda n: 2 * n**3 // 3),
    "_linalg_slogdet": _factorised(lambda n: 2 * n**3 // 3),
    "linalg_inv_ex": _factorised(lambda n: 2 * n**3),
    "_linalg_solve_ex": solve,
    "linalg_qr": qr,
    "linalg_solve_triangular": triangular_solve,
    "triangular_solve": triangular_solve,
}
