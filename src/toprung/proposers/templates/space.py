"""The choices that matter for a plan, and in which order they are tried first."""

from __future__ import annotations

from .choices import Choices
from .ir import Reduce, operands
from .match import Level, Plan

Space = dict[str, tuple[str | int | bool, ...]]
"""Name of a choice -> its values; the others keep their defaults."""

BIG_BYTES = 4 << 20
"""Outputs from which on huge pages are asked for at all."""


def first_choices(plan: Plan) -> Choices:
    """A sensible first attempt. Sums over whole columns or tensors are made in double: a column's
    sum is one long chain, and the sum of a tensor waits for memory anyway."""
    if plan.loops.family in ("column", "full"):
        return Choices(sum_in="double")
    return Choices(keep="output") if _may_keep_in_output(plan) else Choices()


def space_of(plan: Plan, threads: int) -> Space:
    """What may be varied for `plan` on a machine with so many threads, most promising first."""
    space: Space = {}
    streams = any(o.level == Level.ELEMENT and o.dtype == "float32" for o in plan.outputs)
    column = plan.loops.family == "column"
    if plan.loops.family in ("pointwise", "full"):
        space["chunk"] = (65536, 16384, 262144)
    if column:
        space["width"] = (256, 512, 128, 64)
    if streams and not column:
        space["stream"] = (False, True)
    if _keeps(plan):
        scratch = ("scratch", "recompute")
        space["keep"] = ("output", *scratch) if _may_keep_in_output(plan) else scratch
    if not column:
        space["lanes"] = (32, 64, 16)
    if plan.loops.family == "row":
        space["prefetch"] = (True, False)
    space["schedule"] = ("static", "dynamic")
    space["vector"] = (512, 256)
    space["grain"] = (32768, 131072, 8192)
    if _writes_much(plan):
        space["pages"] = ("huge", "plain")
    if not column:
        space["block"] = (4096, 1024, 16384)
    if threads > 1:
        space["share"] = (1, 2)
    return space


def _keeps(plan: Plan) -> bool:
    """Whether elements of one pass are needed in a later one."""
    return any(plan.depth[n] > 0 and plan.level[n] == Level.ELEMENT for n in plan.nodes) or any(
        plan.depth[operands(node)[0]] > 0
        for node in (plan.expression.nodes[n] for n in plan.nodes)
        if isinstance(node, Reduce)
    )


def _may_keep_in_output(plan: Plan) -> bool:
    """Whether a row may wait where its result will stand."""
    whole = [o for o in plan.outputs if o.level == Level.ELEMENT]
    fits = len(whole) == 1 and whole[0].dtype == "float32"
    return fits and plan.loops.family == "row" and not plan.loops.segment and _keeps(plan)


def _writes_much(plan: Plan) -> bool:
    axes = plan.expression.axes
    hint = 4
    for axis in (*plan.loops.outer, *plan.loops.reduced, *plan.loops.row):
        hint *= axes[axis].hint
    return hint >= BIG_BYTES and any(o.level == Level.ELEMENT for o in plan.outputs)
