"""Plots as values: scales, ticks, places of marks, and words for numbers."""

from __future__ import annotations

import pytest

from service.dashboard.numbers import (
    show_age,
    show_bytes,
    show_rate,
    show_seconds,
    show_share,
    show_times,
    show_us,
)
from service.dashboard.plot import Axis, Line, Mark, Scale, plot_of, scale_of


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0.0, 10.0), (0, 2, 4, 6, 8, 10)),
        (Scale(0.9, 1000.0, True), (1, 3, 10, 30, 100, 300, 1000)),
        (Scale(1.0, 1e12, True), (1, 1e2, 1e4, 1e6, 1e8, 1e10, 1e12)),
    ],
)
def test_ticks_are_round_and_few(scale: Scale, ticks: tuple[float, ...]) -> None:
    assert scale.ticks() == pytest.approx(ticks)


@pytest.mark.parametrize(
    "scale",
    [scale_of([12.0, 12.4], log=True), scale_of([5.0], log=True), scale_of([], log=False)],
    ids=["narrow", "one value", "no value"],
)
def test_every_scale_has_ticks_that_lie_on_it(scale: Scale) -> None:
    ticks = scale.ticks()
    assert len(ticks) >= 2
    assert all(0 <= scale.place(tick) <= 1 for tick in ticks)


def test_values_lie_within_the_drawing_and_impossible_ones_are_left_out() -> None:
    values = [0.5, 3.0, 900.0]
    scale = scale_of([*values, 0.0], log=True)
    axis = Axis(scale, "time", show_us)
    marks = [Mark(v, v, str(v)) for v in [*values, 0.0, float("nan")]]
    drawn = plot_of("t", axis, axis, marks, [Line(0.5, 0.5, 900.0, 900.0)])
    assert [mark.title for mark in drawn.marks] == ["0.5", "3.0", "900.0"]
    xs, ys = [m.x for m in drawn.marks], [m.y for m in drawn.marks]
    assert xs == sorted(xs)
    assert ys == sorted(ys, reverse=True)  # larger is higher
    assert min(xs) > drawn.left
    assert max(xs) < drawn.right
    (line,) = drawn.lines
    assert (line.x1, line.y2) == (xs[0], ys[-1])


def test_texts_stand_only_where_they_are_clear_of_others() -> None:
    axis = Axis(scale_of([0.0, 100.0], log=False), "share", str)
    places = ((10.0, 10.0), (11.0, 11.0), (11.0, 60.0), (80.0, 10.0))
    marks = [Mark(x, y, "", text=str(n)) for n, (x, y) in enumerate(places)]
    drawn = plot_of("t", axis, axis, marks)
    assert [mark.text for mark in drawn.marks] == ["0", "", "2", "3"]
    named = Line(75.0, 10.0, 100.0, 100.0, text="memory", text_at_start=True)
    drawn = plot_of("t", axis, axis, marks, [named])
    assert [mark.text for mark in drawn.marks] == ["0", "", "2", ""]


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "–"), (0.532, "0.53 µs"), (12.34, "12.3 µs"), (1250.0, "1.25 ms"), (2e6, "2.00 s")],
)
def test_times_are_shown_with_three_digits(value: float | None, text: str) -> None:
    assert show_us(value) == text


def test_durations_and_ages() -> None:
    assert [show_seconds(s) for s in (12.34, 125, 4200)] == ["12.3 s", "2 min 5 s", "1 h 10 min"]
    second = 1_000_000
    ages = [show_age(0, s * second) for s in (0, 12, 300, 7200, 90_000, 172_800)]
    assert ages == ["now", "12 s ago", "5 min ago", "2 h ago", "25 h ago", "2 days ago"]


def test_rates_sizes_and_ratios() -> None:
    assert [show_rate(v) for v in (12.0, 4.5e9, 1.2e12)] == ["12.0 ", "4.50 G", "1.20 T"]
    assert [show_bytes(v) for v in (512, 1536, 20 << 20)] == ["512 B", "1.50 KiB", "20.0 MiB"]
    assert [show_times(v) for v in (None, 1.254, 31.4, 4118.1)] == ["–", "1.25×", "31.4×", "4118×"]
    assert [show_share(v) for v in (None, 0.034, 0.5)] == ["–", "3.4%", "50%"]
