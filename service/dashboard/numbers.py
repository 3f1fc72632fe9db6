"""How numbers and instants are shown."""

from __future__ import annotations

import time
from datetime import UTC, datetime

UNSTEADY = 0.05  # interquartile range over median: more says that the machine was not quiet


def show_us(value: float | None) -> str:
    """Microseconds for people: 0.53 µs, 12.3 µs, 1.25 ms, 2.00 s; nothing for None."""
    if value is None:
        return "–"
    for limit, scale, unit in ((1e3, 1.0, "µs"), (1e6, 1e3, "ms")):
        if value < limit:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{_three_digits(value / 1e6)} s"


def show_seconds(value: float) -> str:
    """12.3 s, 2 min 5 s, 1 h 10 min."""
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    return f"{minutes // 60} h {minutes % 60} min"


def show_age(instant_us: int, now_us: int | None = None) -> str:
    """How long ago: "now", "12 s ago", "5 min ago", "3 h ago", "2 days ago"."""
    now_us = time.time_ns() // 1000 if now_us is None else now_us
    seconds = max(0, now_us - instant_us) // 1_000_000
    if seconds < 2:
        return "now"
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min"), (1, "s")):
        if seconds >= size * (2 if unit == "days" else 1):
            return f"{seconds // size} {unit} ago"
    return "now"


def show_instant(instant_us: int) -> str:
    """ISO 8601 in UTC, to the second."""
    return datetime.fromtimestamp(instant_us / 1e6, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _three_digits(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def show_rate(value: float) -> str:
    """Per second with a decimal prefix, to stand before a unit: "950 M", "1.20 T"."""
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{_three_digits(value / scale)} {prefix}"
    return f"{_three_digits(value)} "


def show_times(value: float | None) -> str:
    """A ratio: 1.25×, 31.4×; nothing for None."""
    return "–" if value is None else f"{_three_digits(value)}×"


def show_share(value: float | None) -> str:
    """A share in percent; nothing for None."""
    return "–" if value is None else f"{value:.0%}" if value >= 0.1 else f"{value:.1%}"


def show_bytes(value: float) -> str:
    """Bytes with a binary prefix: 512 B, 1.50 KiB, 20.0 MiB."""
    for scale, unit in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= scale:
            return f"{_three_digits(value / scale)} {unit}"
    return f"{value:.0f} B"
