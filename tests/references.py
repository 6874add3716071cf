"""References for the template engine, whose classes, arguments and files have names that say nothing.

Each is a KernelBench-style module. `get_inputs(a=…, b=…)` gives other sizes where a test wants them.
"""

from __future__ import annotations

import functools
import textwrap
import types
from dataclasses import dataclass
from typing import Any

from toprung.model.task import Task
from toprung.proposers.templates.graph import Graph
from toprung.proposers.templates.lower import NotCovered

FRAME = """\
import torch
import torch.nn.functional as F


class Zq(torch.nn.Module):
    def __init__(self):
        super().__init__()
{init}

    def forward(self, {args}):
{body}


Model = Zq


def get_inputs(a={a}, b={b}):
    return {inputs}


def get_init_inputs():
    return []
"""


@dataclass(frozen=True)
class Reference:
    """A reference module, and the family that covers it; `None` where none does."""

    body: str
    family: str | None
    inputs: str = "[torch.randn(a, b) * 3]"
    args: str = "u"
    init: str = "pass"
    a: int = 5
    b: int = 37
    free: bool = True
    """Whether the sizes `a` and `b` may be changed."""
    says: str = ""
    """What the refusal says, where no family covers it."""

    @functools.cached_property
    def source(self) -> str:
        """The file."""
        return FRAME.format(
            init=textwrap.indent(self.init, " " * 8),
            body=textwrap.indent(self.body, " " * 8),
            inputs=self.inputs,
            args=self.args,
            a=self.a,
            b=self.b,
        )

    def module(self) -> Any:
        """The file, executed."""
        module = types.ModuleType("reference")
        exec(self.source, module.__dict__)
        return module


@functools.cache
def graph_of(reference: Reference) -> Graph:
    """The graph of a reference, captured in this process; raises `NotCovered`."""
    from toprung.proposers.templates.capture import capture

    found = capture(Task(name="x", reference=reference.source), "default", {})
    if found.graph is None:
        raise NotCovered(found.refused or "")
    return found.graph


TWO = "[torch.randn(a, b), torch.randn(a, b)]"
THREE_D = "[torch.randn(3, a, b)]"
IMAGE = "[torch.randn(2, 6, a, b)]"
GAIN = "self.k = torch.nn.Parameter(torch.randn(37))\nself.h = torch.nn.Parameter(torch.randn(37))"


def _layer(made: str) -> str:
    return f"self.z = torch.nn.{made}\nfor p in self.z.parameters():\n    torch.nn.init.normal_(p)"


ROW: dict[str, Reference] = {
    "softmax": Reference("return torch.softmax(u, -1)", "row"),
    "softmax_by_hand": Reference(
        "e = torch.exp(u - u.max(dim=-1, keepdim=True).values)\n"
        "return e / e.sum(dim=-1, keepdim=True)",
        "row",
    ),
    "softmax_by_hand_without_keepdim": Reference(
        "m = torch.amax(u, 1)\nz = (u - m[:, None]).exp()\n"
        "s = torch.sum(z, 1).unsqueeze(1).expand_as(z)\nreturn z.div(s)",
        "row",
    ),
    "softmax_by_hand_transposed": Reference(
        "t = u.transpose(0, 1)\nt = (t - t.amax(0, keepdim=True)).exp()\n"
        "return (t / t.sum(0, keepdim=True)).transpose(0, 1)",
        "row",
    ),
    "softmax_by_logsumexp": Reference(
        "return (u - torch.logsumexp(u, -1, keepdim=True)).exp()", "row"
    ),
    "softmax_without_maximum": Reference("e = u.exp()\nreturn e / e.sum(-1, keepdim=True)", "row"),
    "softmax_with_temperature": Reference(
        "return torch.softmax(u / self.t.abs(), -1)",
        "row",
        init="self.t = torch.nn.Parameter(torch.tensor(0.7))",
    ),
    "softmax_masked": Reference(
        "return torch.softmax(u.masked_fill(w > 0.5, float('-inf')), -1)", "row", TWO, "u, w"
    ),
    "softmax_causal": Reference(
        "n = u.shape[-1]\n"
        "return torch.softmax(u + torch.triu(torch.full((n, n), float('-inf')), 1), -1)",
        "row",
        "[torch.randn(3, b, b)]",
        b=9,
    ),
    "softmax_relative": Reference(
        "n = torch.arange(u.shape[-1])\nreturn torch.softmax(u + (n[:, None] - n[None, :]), -1)",
        "row",
        "[torch.randn(3, b, b)]",
        b=9,
    ),
    "softmax_of_heads": Reference(
        "return torch.softmax(u * 0.125 + w, -1)",
        "row",
        "[torch.randn(2, 3, a, b), torch.randn(2, 1, 1, b)]",
        "u, w",
    ),
    "log_softmax": Reference("return F.log_softmax(u, dim=1)", "row"),
    "log_softmax_by_hand": Reference(
        "s = u - u.max(1, keepdim=True)[0]\nreturn s - s.exp().sum(1, keepdim=True).log()", "row"
    ),
    "logsumexp": Reference("return torch.logsumexp(u, -1)", "row"),
    "layer_norm": Reference(
        "return self.z(u)", "row", THREE_D, init=_layer("LayerNorm(37)"), free=False
    ),
    "layer_norm_of_three": Reference(
        "return self.z(u)", "row", "[torch.randn(3, 2, 4, 5)]", init=_layer("LayerNorm((2, 4, 5))")
    ),
    "layer_norm_by_hand": Reference(
        "c = u.mean(-1, keepdim=True)\nv = ((u - c) ** 2).mean(-1, keepdim=True)\n"
        "return self.k * (u - c) / torch.sqrt(v + 1e-5) + self.h",
        "row",
        init=GAIN,
        free=False,
    ),
    "layer_norm_by_variance": Reference(
        "c = u.sum(-1) / u.shape[-1]\nv = u.var(-1, unbiased=False)\n"
        "return (u - c.unsqueeze(1)) * torch.rsqrt(v.unsqueeze(1) + 1e-5)",
        "row",
    ),
    "layer_norm_by_deviation": Reference(
        "return self.k * (u - u.mean(-1, keepdim=True)) / (u.std(-1, keepdim=True) + 1e-6)",
        "row",
        init=GAIN,
        free=False,
    ),
    "rms_norm": Reference(
        "return u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + 1e-6) * self.k",
        "row",
        THREE_D,
        init=GAIN,
        free=False,
    ),
    "rms_norm_module": Reference("return self.z(u)", "row", init=_layer("RMSNorm(37)"), free=False),
    "rms_norm_in_bf16": Reference(
        "z = u.float()\nz = z * torch.rsqrt((z * z).mean(-1, keepdim=True) + 1e-6)\n"
        "return self.k.to(u.dtype) * z.to(u.dtype)",
        "row",
        "[torch.randn(a, b).bfloat16()]",
        init=GAIN,
        free=False,
    ),
    "instance_norm": Reference("return self.z(u)", "row", IMAGE, init=_layer("InstanceNorm2d(6)")),
    "instance_norm_affine": Reference(
        "return self.z(u)", "row", IMAGE, init=_layer("InstanceNorm2d(6, affine=True)")
    ),
    "group_norm": Reference("return self.z(u)", "row", IMAGE, init=_layer("GroupNorm(3, 6)")),
    "l2_normalised": Reference("return F.normalize(u, dim=1)", "row"),
    "l1_normalised": Reference("return u / u.abs().sum(1, keepdim=True)", "row"),
    "sum_of_rows": Reference("return u.sum(-1)", "row", THREE_D),
    "extremes": Reference("return (*torch.max(u, -1), u.amin(-1, keepdim=True))", "row"),
    "argmax": Reference("return torch.argmax(u, -1)", "row"),
    "product": Reference("return (u * 0.5).prod(-1)", "row"),
    "norms": Reference(
        "return torch.linalg.vector_norm(u, 3, -1), torch.linalg.vector_norm(u, float('inf'), -1)",
        "row",
    ),
    "mean_of_some": Reference(
        "m = (w > 0).float()\nreturn (u * m).sum(-1) / m.sum(-1).clamp(min=1)", "row", TWO, "u, w"
    ),
    "divergence": Reference(
        "return F.kl_div(torch.log_softmax(u, -1), torch.softmax(w, -1), reduction='batchmean')",
        "row",
        TWO,
        "u, w",
    ),
    "cross_entropy": Reference(
        "return F.cross_entropy(u, w)",
        "row",
        "[torch.randn(a, b), torch.randint(0, b, (a,))]",
        "u, w",
    ),
    "cosine_loss": Reference(
        "return (1 - F.cosine_similarity(u, w, dim=1)).mean()", "row", TWO, "u, w"
    ),
    "triplet_loss": Reference(
        "return F.triplet_margin_loss(u, w, v)",
        "row",
        "[torch.randn(a, b), torch.randn(a, b), torch.randn(a, b)]",
        "u, w, v",
    ),
    "softmax_in_double": Reference(
        "return torch.softmax(u, -1)", "row", "[torch.randn(a, b).double()]"
    ),
    "whole_numbers": Reference(
        "return u * 2 + 1, u > 3, u.float() / 3, u.sum(-1)",
        "row",
        "[torch.randint(-9, 9, (a, b))]",
    ),
}

COLUMN: dict[str, Reference] = {
    "softmax_of_columns": Reference("return torch.softmax(u, 0)", "column"),
    "softmax_in_the_middle": Reference("return torch.softmax(u, 1)", "column", THREE_D),
    "rms_norm_of_channels": Reference(
        "return u / torch.sqrt(torch.mean(u**2, dim=1, keepdim=True) + 1e-5)", "column", IMAGE
    ),
    "layer_norm_of_channels": Reference(
        "return self.z(u.permute(0, 2, 3, 1)).permute(0, 3, 1, 2)",
        "column",
        IMAGE,
        init=_layer("LayerNorm(6)"),
    ),
    "sum_in_the_middle": Reference("return u.sum(1)", "column", THREE_D),
    "mean_of_columns": Reference("return u.mean(0)", "column"),
    "maximum_in_the_middle": Reference("return torch.max(u, dim=1)[0]", "column", THREE_D),
    "variance_of_columns": Reference("return u.var(0)", "column"),
    "argmin_in_the_middle": Reference("return u.argmin(1)", "column", THREE_D),
}

FULL: dict[str, Reference] = {
    "mse": Reference("return F.mse_loss(u, w)", "full", TWO, "u, w"),
    "mse_by_hand": Reference("d = u - w\nreturn (d * d).sum() / d.numel()", "full", TWO, "u, w"),
    "huber": Reference("return F.smooth_l1_loss(u, w)", "full", TWO, "u, w"),
    "hinge": Reference(
        "return torch.mean(torch.clamp(1 - u * w, min=0))",
        "full",
        "[torch.randn(a, b), torch.randint(0, 2, (b,)).float() * 2 - 1]",
        "u, w",
    ),
    "binary_cross_entropy": Reference(
        "return F.binary_cross_entropy_with_logits(u, w.sigmoid())", "full", TWO, "u, w"
    ),
    "frobenius": Reference("return u / torch.norm(u, p='fro')", "full", THREE_D),
    "standardised": Reference(
        "return (u - u.mean()) / (u.std() + 1e-6) * self.k", "full", init=GAIN, free=False
    ),
    "softmax_of_all": Reference("return torch.softmax(u.flatten(), 0).view_as(u)", "full"),
    "argmin_of_all": Reference("return u.argmin()", "full"),
}

POINTWISE: dict[str, Reference] = {
    "gelu": Reference("return F.gelu(u)", "pointwise"),
    "gelu_by_hand": Reference(
        "return 0.5 * u * (1 + torch.tanh(0.7978845608 * (u + 0.044715 * torch.pow(u, 3))))",
        "pointwise",
        THREE_D,
    ),
    "gelu_of_several": Reference(
        "return F.gelu(u + self.k) * w + u",
        "pointwise",
        "[torch.randn(a, b), torch.randn(a, 1)]",
        "u, w",
        GAIN,
        free=False,
    ),
    "activations": Reference(
        "return (F.silu(u) + F.mish(u) + F.softplus(u) + F.hardswish(u) + F.leaky_relu(u, 0.2)\n"
        "    + F.elu(u) + F.selu(u) + F.hardsigmoid(u) + F.hardtanh(u) + F.softsign(u)\n"
        "    + F.relu6(u) + F.logsigmoid(u) + F.celu(u, 0.5) + F.tanhshrink(u) + F.relu(u)\n"
        "    + F.softshrink(u) + F.hardshrink(u) + F.threshold(u, 0.1, 20))",
        "pointwise",
    ),
    "functions": Reference(
        "a = u.abs() + 0.1\n"
        "return (a.log() + a.log2() + a.log10() + a.log1p() + u.expm1() / 99 + torch.exp2(u) / 9\n"
        "    + u.sin() + u.cos() + a.sqrt() + a.rsqrt() + a.reciprocal() + u.atan() + u.floor()\n"
        "    + u.ceil() + u.round() + u.trunc() + u.sign() + u.erf() + torch.erfc(u) + a**0.3\n"
        "    + a**2.5 + u**3 + u**4)",
        "pointwise",
    ),
    "two_outputs": Reference(
        "return u * 2 + w, {'m': torch.maximum(u, w), 'k': [u - w, 3, None]}",
        "pointwise",
        TWO,
        "u, w",
    ),
    "batch_norm": Reference(
        "return self.z(u)",
        "pointwise",
        IMAGE,
        init=_layer("BatchNorm2d(6)")
        + "\nself.z.running_mean.normal_()\nself.z.running_var.uniform_(0.5, 2)",
    ),
    "gated": Reference(
        "return F.silu(u[..., :20]) * u[..., 20:]", "pointwise", "[torch.randn(a, 3, 40)]"
    ),
    "chunks": Reference(
        "x, y, z = u.chunk(3, 1)\nreturn x * y.sigmoid() + z", "pointwise", "[torch.randn(a, 30)]"
    ),
    "outer_product": Reference(
        "return (u[:, None] * w[None, :]).tanh()",
        "pointwise",
        "[torch.randn(a), torch.randn(b)]",
        "u, w",
    ),
    "bias_in_the_middle": Reference(
        "return F.relu(u + w[:, None, None] - self.c)",
        "pointwise",
        "[torch.randn(4, 5, b), torch.randn(4)]",
        "u, w",
        "self.c = torch.nn.Parameter(torch.randn(5, 1))",
    ),
    "in_bf16": Reference(
        "return F.gelu(u) * w + u",
        "pointwise",
        "[torch.randn(a, b).bfloat16(), torch.randn(b).bfloat16()]",
        "u, w",
    ),
    "sizes_as_numbers": Reference("return u * u.shape[-1] ** -0.5 + u.shape[0]", "pointwise"),
    "number_as_input": Reference("return u * w", "pointwise", "[torch.randn(a, b), 2.5]", "u, w"),
}

REFUSED: dict[str, Reference] = {
    "running_sum": Reference("return u.cumsum(-1)", None, says="aten.cumsum"),
    "product_of_matrices": Reference("return torch.relu(u @ u.t())", None, says="aten.mm"),
    "sorted": Reference("return u.sort(-1)[0] + 1", None, says="aten.sort"),
    "dropped": Reference("return F.dropout(u, 0.5, True)", None, says="aten.native_dropout"),
    "random": Reference("return u + torch.rand_like(u)", None, says="aten.rand_like"),
    "decides": Reference("return u if u.sum() > 0 else u * 2", None, says="values in its tensors"),
    "identity": Reference("return u", None, says="one of its inputs"),
    "view": Reference("return u.view(-1)", None, says="one of its inputs"),
    "in_place": Reference("u.add_(1)\nreturn u * 2", None, says="inputs in place"),
    "own_transpose": Reference(
        "return u + u.t()", None, "[torch.randn(8, 8)]", says="its own transpose"
    ),
    "two_ways": Reference(
        "return u.sum(0) + u.sum(1)", None, "[torch.randn(8, 8)]", says="its own transpose"
    ),
    "different_sums": Reference(
        "return u.sum((0, 1)), u.sum((1, 2))", None, THREE_D, says="different dimensions"
    ),
    "every_other_dimension": Reference(
        "return u / u.sum((0, 2), keepdim=True)", None, THREE_D, says="beside one another"
    ),
    "nested": Reference(
        "return u[0] * u[1]", None, "[[torch.randn(3), torch.randn(3)]]", says="input 0 is a list"
    ),
    "drawn_number": Reference(
        "return u * self.r", None, init="self.r = torch.rand(())", says="at random"
    ),
    "unregistered": Reference(
        "return u * self.r", None, init="self.r = torch.ones(37)", says="neither a parameter"
    ),
    "in_fp16": Reference("return u * 2", None, "[torch.randn(a, b).half()]", says="float16"),
}

COVERED: dict[str, Reference] = {**ROW, **COLUMN, **FULL, **POINTWISE}
