"""SVG elements. Horizontal places are fractions and vertical ones pixels, so that a drawing is as
wide as the page allows while its text keeps its size."""

from __future__ import annotations

from collections.abc import Iterable

from markupsafe import Markup


def element(name: str, /, *content: Markup | str, **attributes: str | float | None) -> Markup:
    """An element; `cls` is `class`, an underscore is a hyphen, and all text is escaped."""
    told = Markup("").join(
        Markup(' {}="{}"').format("class" if key == "cls" else key.replace("_", "-"), value)
        for key, value in attributes.items()
        if value is not None
    )
    return Markup("<{0}{1}>{2}</{0}>").format(name, told, Markup("").join(content))


def line(x1: float, y1: float, x2: float, y2: float, cls: str) -> Markup:
    """A straight line."""
    return element("line", x1=_across(x1), y1=_down(y1), x2=_across(x2), y2=_down(y2), cls=cls)


def dot(x: float, y: float, radius: float, cls: str, tip: str | None = None) -> Markup:
    """A circle; `tip` is shown when it is pointed at."""
    return element("circle", *_tip(tip), cx=_across(x), cy=_down(y), r=radius, cls=cls)


def bar(
    x: float, y: float, width: float, height: float, cls: str, tip: str | None = None
) -> Markup:
    """A rectangle; `width` is a fraction."""
    size = {"width": _across(width), "height": _down(height)}
    return element("rect", *_tip(tip), x=_across(x), y=_down(y), cls=cls, **size)


def text(
    x: float,
    y: float,
    said: str,
    cls: str = "",
    *,
    anchor: str = "start",
    shift: float = 0,
    tip: str | None = None,
) -> Markup:
    """Text on one line; `shift` moves it sideways by pixels."""
    place = {"x": _across(x), "y": _down(y), "dx": shift or None, "text_anchor": anchor}
    return element("text", *_tip(tip), said, cls=cls or None, **place)


def drawing(height: float, shows: str, marks: Iterable[Markup]) -> Markup:
    """A whole drawing of `height` pixels; `shows` tells it to those who cannot see it."""
    return element("svg", *marks, role="img", aria_label=shows, height=_down(height), width="100%")


def _across(place: float) -> str:
    return f"{place * 100:.2f}%"


def _down(place: float) -> str:
    return f"{place:.1f}"


def _tip(said: str | None) -> list[Markup]:
    return [element("title", said)] if said else []
