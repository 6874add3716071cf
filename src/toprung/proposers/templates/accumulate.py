"""How each reduction is accumulated: in lanes, then in one number for a row, then for the call."""

from __future__ import annotations

from dataclasses import dataclass

from .ir import Kind, Reduce
from .lower import NotCovered
from .scalar import CPP_TYPES

INTEGERS: dict[str, str] = {
    "max": "std::numeric_limits<int64_t>::min()",
    "min": "std::numeric_limits<int64_t>::max()",
}


@dataclass(frozen=True, slots=True)
class Accumulator:
    """C++ text about one reduction. `{v}` is its variable, `{a}` its lanes, `{x}` the element.

    `at` is the place of the element, for reductions that tell where something is.
    """

    type: str
    start: str
    lanes: tuple[str, ...]
    update: str
    merge: str
    join: str
    """Statement that takes the value `{x}` of another row or thread into `{v}`."""
    value: str
    """The result, once everything has been taken in."""
    pieces: tuple[str, ...]


def accumulator(node: Reduce, operand: Kind, *, in_double: bool) -> Accumulator:
    """The accumulator of a reduction of elements of kind `operand`; raises `NotCovered`."""
    if operand == "b8":
        raise NotCovered(f"{node.function} of truth values")
    lane = CPP_TYPES[operand]
    wide = "int64_t" if operand == "i64" else "double"
    if node.function in ("sum", "prod"):
        return _folded(node.function, wide, wide if in_double or node.function == "prod" else lane)
    lowest = node.function.endswith("max")
    infinite = "-INF" if lowest else "INF"
    start = INTEGERS[node.function[-3:]] if operand == "i64" else infinite
    if node.function in ("max", "min"):
        pick = "larger" if lowest else "smaller"
        gather = "largest" if lowest else "smallest"
        return Accumulator(
            type=wide,
            start=start,
            lanes=(f"{lane} {{a}}[LANES]; fill({{a}}, {lane}({start}));",),
            update=f"{{a}}[l] = {pick}({{a}}[l], {{x}});",
            merge=f"{{v}} = {pick}({{v}}, {wide}({gather}({{a}})));",
            join=f"{{v}} = {pick}({{v}}, {{x}});",
            value="{v}",
            pieces=(gather, pick, "fill"),
        )
    if operand == "i64":
        raise NotCovered(f"{node.function} of whole numbers")
    sign = "" if lowest else "-"
    return Accumulator(
        type="Best",
        start="Best{-INF, std::numeric_limits<int64_t>::max()}",
        lanes=(
            f"{lane} {{a}}[LANES]; fill({{a}}, {lane}(-INF));",
            "int64_t {a}_at[LANES]; fill({a}_at, std::numeric_limits<int64_t>::max());",
        ),
        update=f"take_first({{a}}[l], {{a}}_at[l], {sign}({{x}}), {{at}});",
        merge="{v} = first_of({v}, first_best({a}, {a}_at));",
        join="{v} = first_of({v}, {x});",
        value="{v}.at",
        pieces=("best", "fill"),
    )


def _folded(function: str, wide: str, lane: str) -> Accumulator:
    sign, one, gather = ("+", 0, "total") if function == "sum" else ("*", 1, "all_multiplied")
    return Accumulator(
        type=wide,
        start=str(one),
        lanes=(f"{lane} {{a}}[LANES]; fill({{a}}, {lane}({one}));",),
        update=f"{{a}}[l] {sign}= {{x}};",
        merge=f"{{v}} {sign}= {gather}({{a}});",
        join=f"{{v}} {sign}= {{x}};",
        value="{v}",
        pieces=(gather, "fill"),
    )
