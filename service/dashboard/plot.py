"""Plots as plain values: where marks, lines and ticks lie, in percent of the drawing.

`plot.html` turns them into SVG. Percentages let a plot take any width without scaling its text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

_LEFT, _RIGHT, _TOP, _BOTTOM = 15.0, 98.0, 4.0, 84.0  # percent: the area that data may take
_MARGIN = 0.06  # of the data's range, kept free on both sides
_MOST_TICKS = 6
_TEXT_WIDTH, _TEXT_HEIGHT = 9.0, 5.0  # percent: what a short text beside a mark takes
_NAME_WIDTH = 25.0  # percent: the name of a line
_LOG_STEPS = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0))


@dataclass(frozen=True, slots=True)
class Scale:
    """From values to shares of an axis; logarithmic scales need positive bounds."""

    low: float
    high: float
    log: bool = False

    def place(self, value: float) -> float:
        """0 at `low`, 1 at `high`."""
        low, high, at = (self._linear(v) for v in (self.low, self.high, value))
        return (at - low) / (high - low)

    def ticks(self) -> tuple[float, ...]:
        """Round values within the bounds, a handful of them."""
        return self._log_ticks() if self.log else self._linear_ticks()

    def _linear(self, value: float) -> float:
        return math.log10(value) if self.log else value

    def _linear_ticks(self) -> tuple[float, ...]:
        step = _round_step((self.high - self.low) / (_MOST_TICKS - 1))
        first = math.ceil(self.low / step)
        count = math.floor(self.high / step) - first + 1
        return tuple((first + i) * step for i in range(max(0, count)))

    def _log_ticks(self) -> tuple[float, ...]:
        decades = range(math.floor(math.log10(self.low)), math.ceil(math.log10(self.high)) + 1)
        found: tuple[float, ...] = ()
        for steps in _LOG_STEPS:
            more = [step * 10.0**decade for decade in decades for step in steps]
            inside = tuple(v for v in more if self.low <= v <= self.high)
            if found and len(inside) > _MOST_TICKS + 1:
                break
            found = inside
        if len(found) < 2:
            return Scale(self.low, self.high).ticks()
        return found[:: math.ceil(len(found) / (_MOST_TICKS + 1))]


def scale_of(values: Iterable[float], *, log: bool) -> Scale:
    """A scale on which all values fit; one that is not positive has no place on a logarithm."""
    known = [v for v in values if math.isfinite(v) and (v > 0 or not log)]
    if not known:
        return Scale(1.0, 10.0, log) if log else Scale(0.0, 1.0)
    low, high = min(known), max(known)
    if log:
        room = max((high / low) ** _MARGIN, 1.05)
        return Scale(low / room, high * room, True)
    room = _MARGIN * (high - low) or abs(high) * _MARGIN or 1.0
    return Scale(low - room, high + room)


def _round_step(least: float) -> float:
    """The next of 1, 2, 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in (1.0, 2.0, 5.0, 10.0) if step * power >= least * 0.999)


@dataclass(frozen=True, slots=True)
class Mark:
    """A point. `kind` is a word of `figures.css`, `title` what a reader hears of it, `text` stands
    beside it where there is room."""

    x: float
    y: float
    title: str
    kind: str = "usual"
    href: str = ""
    text: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """A straight line; `text` stands over its end, or beside its start."""

    x1: float
    y1: float
    x2: float
    y2: float
    kind: str = "limit"
    text: str = ""
    text_at_start: bool = False


@dataclass(frozen=True, slots=True)
class Tick:
    """A labelled position of an axis, in percent."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Plot:
    """A drawing. `title` says in words what it shows; positions are percentages."""

    title: str
    x_label: str
    y_label: str
    x_ticks: tuple[Tick, ...]
    y_ticks: tuple[Tick, ...]
    marks: tuple[Mark, ...] = ()
    lines: tuple[Line, ...] = ()

    left, right, top, bottom = _LEFT, _RIGHT, _TOP, _BOTTOM


@dataclass(frozen=True, slots=True)
class Axis:
    """A scale with the words for it. `words` names single positions in place of round values."""

    scale: Scale
    label: str
    show: Callable[[float], str]
    words: tuple[tuple[float, str], ...] = ()

    def ticks(self, place: Callable[[float], float]) -> tuple[Tick, ...]:
        """Ticks placed on the drawing."""
        named = self.words or tuple((v, self.show(v)) for v in self.scale.ticks())
        return tuple(Tick(place(value), text) for value, text in named)


def plot_of(
    title: str, x: Axis, y: Axis, marks: Sequence[Mark] = (), lines: Sequence[Line] = ()
) -> Plot:
    """A plot from marks and lines in the units of the axes; what has no place is left out."""

    def at_x(value: float) -> float:
        return round(_LEFT + (_RIGHT - _LEFT) * x.scale.place(value), 2)

    def at_y(value: float) -> float:
        return round(_BOTTOM - (_BOTTOM - _TOP) * y.scale.place(value), 2)

    placed = [
        replace(m, x=at_x(m.x), y=at_y(m.y))
        for m in marks
        if _has_place(x.scale, m.x) and _has_place(y.scale, m.y)
    ]
    drawn = [replace(n, x1=at_x(n.x1), y1=at_y(n.y1), x2=at_x(n.x2), y2=at_y(n.y2)) for n in lines]
    placed = _labelled_apart(placed, drawn)
    return Plot(title, x.label, y.label, x.ticks(at_x), y.ticks(at_y), tuple(placed), tuple(drawn))


def _labelled_apart(marks: Sequence[Mark], lines: Sequence[Line]) -> list[Mark]:
    """The marks; texts only where they stand clear of those before them and of lines' names."""
    names = [(n.x1, n.y1) for n in lines if n.text and n.text_at_start]
    found: list[Mark] = []
    for mark in marks:
        near = [m.y for m in found if m.text and abs(m.x - mark.x) < _TEXT_WIDTH]
        near += [y for x, y in names if -_TEXT_WIDTH < mark.x - x < _NAME_WIDTH]
        crowded = any(abs(y - mark.y) < _TEXT_HEIGHT for y in near)
        found.append(replace(mark, text="") if crowded else mark)
    return found


def _has_place(scale: Scale, value: float) -> bool:
    return math.isfinite(value) and (value > 0 or not scale.log)
