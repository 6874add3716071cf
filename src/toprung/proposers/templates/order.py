"""In which order the axes of a graph lie in memory."""

from __future__ import annotations

from .axes import Label
from .ir import Expression, Load, Reduce
from .lower import NotCovered


def domain_order(expression: Expression, nodes: tuple[int, ...]) -> Label:
    """All axes, so that every tensor that is read has its own in this order; outputs where possible.

    Raises `NotCovered` when two tensors have them in different orders.
    """
    axes = expression.axes
    loads = [
        _distinct(axes.resolve(tuple(a for label, _ in node.steps for a in label)))
        for node in (expression.nodes[n] for n in nodes)
        if isinstance(node, Load)
    ]
    wished = [
        _distinct(tuple(axis for label in axes.dims(ref.dims) for axis in label))
        for ref in expression.outputs
    ]
    domains = [
        axes.resolve(node.domain)
        for node in (expression.nodes[n] for n in nodes)
        if isinstance(node, Reduce)
    ]
    known = list(dict.fromkeys(axis for order in [*wished, *loads, *domains] for axis in order))
    before: dict[int, set[int]] = {axis: set() for axis in known}
    for order in loads:
        for place, axis in enumerate(order):
            before[axis] |= set(order[:place])
    if len(_sorted(known, before)) < len(known):
        raise NotCovered("tensors whose dimensions lie in different orders in memory")
    for order in wished:
        trial = {axis: set(earlier) for axis, earlier in before.items()}
        for place, axis in enumerate(order):
            trial[axis] |= set(order[:place])
        if len(_sorted(known, trial)) == len(known):
            before = trial
    return tuple(_sorted(known, before))


def _distinct(order: Label) -> Label:
    if len(set(order)) < len(order):
        raise NotCovered("a tensor that meets its own transpose")
    return order


def _sorted(known: list[int], before: dict[int, set[int]]) -> list[int]:
    """Axes after all that must come before them; shorter than `known` when there is a circle."""
    found: list[int] = []
    waiting = list(known)
    while waiting:
        ready = next((axis for axis in waiting if before[axis] <= set(found)), None)
        if ready is None:
            break
        found.append(ready)
        waiting.remove(ready)
    return found
