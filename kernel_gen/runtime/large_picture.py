"""Pictures of programs with thousands of ops, laid out in linear time.

Graphviz's time grows with the square of a program and more. Here groups are columns of their ops,
as wide as their text. Each group, and each box outside of groups, lies in a row below all that it
reads; rows fill one column of the picture after the other, from the left.

    row 0   i0  c0            row 3   kernel 3
    row 1   kernel 0          row 4   o0
    row 2   kernel 1  kernel 2

Elements have the classes and ids that Graphviz gives them; lines between boxes have no text, and no
arrows, as they lead down, or to a later column.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from xml.sax.saxutils import escape

from kernel_gen.fusion.group import FusionPlan, Group
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.boxes import Box, Boxes, Kind
from kernel_gen.runtime.dot import group_fill, group_title, shown

# All in the picture's units, at a font size of 11.
_CHAR, _LINE = 6.4, 14.0
_MARGIN, _GAP, _ROW_GAP = 8.0, 14.0, 26.0
_WIDEST_ROW = 2400.0
_ASPECT = 1.6  # of the whole, width over height
_LINES_PER_PATH = 250  # few elements: a browser's time goes by their number
_LOOKS = {
    Kind.OP: "#ffffff",
    Kind.INPUT: "#ffffff",
    Kind.CONSTANT: "#ffffff",
    Kind.OUTPUT: "#dbeafe",
}
# Attributes, not a style sheet: a page that forbids inline styles shows the picture as well.
_TEXT = 'font-family="Helvetica,Arial,sans-serif" font-size="11" text-anchor="middle"'
_STROKE = 'stroke="#6b7280"'


@dataclass(frozen=True, slots=True)
class _Item:
    """What is placed as one: the boxes of a group, one below the other, or a single box."""

    boxes: tuple[Box, ...]
    title: str = ""
    fill: str = ""
    number: int = -1

    @property
    def width(self) -> float:
        texts = [len(shown(line)) for box in self.boxes for line in box.lines]
        return _CHAR * max([len(self.title), *texts]) + (4 if self.title else 2) * _MARGIN

    @property
    def height(self) -> float:
        inner = sum(_height(box) for box in self.boxes)
        return inner + ((_LINE + 2 * _MARGIN + _GAP * (len(self.boxes) - 1)) if self.title else 0)


def _height(box: Box) -> float:
    return _LINE * len(box.lines) + _MARGIN


def large_svg(
    program: Graph,
    cover: FusionPlan | None = None,
    notes: Mapping[Group, str] | None = None,
) -> bytes:
    """The picture as SVG; `notes` are short texts shown beside the name of a group."""
    boxes = Boxes(program, cover)
    items = list(_items(boxes, cover, notes or {}))
    links = [(source, reader) for source, reader, _ in boxes.links()]
    places = _places(_rows(items, links))
    drawn: list[str] = []
    middles: dict[str, tuple[float, float, float]] = {}  # box -> x of its middle, top, bottom
    frames: list[str] = []
    for item, x, y in places:
        if item.title:
            frames.append(_frame(item, x, y))
        for box, middle, top in _inside(item, x, y):
            middles[box.name] = (middle, top, top + _height(box))
            drawn.append(_box(box, middle, top, item))
    width = max((x + item.width for item, x, _ in places), default=0.0) + _GAP
    height = max((y + item.height for item, _, y in places), default=0.0) + _GAP
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}pt" height="{height:.0f}pt" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" class="columns" {_TEXT}>'
    )
    return "".join([head, *frames, *_edges(links, middles), *drawn, "</svg>"]).encode()


def _items(boxes: Boxes, cover: FusionPlan | None, notes: Mapping[Group, str]) -> Iterator[_Item]:
    for box in boxes.inputs():
        yield _Item((box,))
    for number, group in enumerate(cover.groups if cover else ()):
        title = group_title(number, group, notes.get(group, ""))
        fill = group_fill(number, group)
        yield _Item(tuple(boxes.group(number, group)), title, fill, number)
    for box in (*boxes.loose(), *boxes.outputs()):
        yield _Item((box,))


def _rows(items: Sequence[_Item], links: Sequence[tuple[str, str]]) -> list[list[_Item]]:
    """Items by the longest way to them; inputs and constants are right above their first reader.
    A row that would be too wide becomes several."""
    owner = {box.name: at for at, item in enumerate(items) for box in item.boxes}
    arcs = dict.fromkeys((owner[source], owner[reader]) for source, reader in links)
    level = _levels(len(items), [(a, b) for a, b in arcs if a != b])
    above: dict[int, int] = {}
    for source, reader in arcs:
        above[source] = min(above.get(source, level[reader]), level[reader])
    by_level: dict[int, list[_Item]] = {}
    for at, item in enumerate(items):
        given = item.boxes[0].kind in (Kind.INPUT, Kind.CONSTANT)
        row = max(above.get(at, 1) - 1, 0) if given else level[at]
        by_level.setdefault(row, []).append(item)
    return [row for at in sorted(by_level) for row in _cut(by_level[at])]


def _levels(count: int, arcs: Sequence[tuple[int, int]]) -> list[int]:
    """Length of the longest way to each of `count` items over `arcs`, which hold no circle."""
    readers: list[list[int]] = [[] for _ in range(count)]
    missing = [0] * count
    for source, reader in arcs:
        readers[source].append(reader)
        missing[reader] += 1
    level = [0] * count
    ready = [at for at in range(count) if not missing[at]]
    for at in ready:  # grows meanwhile
        for reader in readers[at]:
            level[reader] = max(level[reader], level[at] + 1)
            missing[reader] -= 1
            if not missing[reader]:
                ready.append(reader)
    return level


def _cut(row: Sequence[_Item]) -> Iterator[list[_Item]]:
    part: list[_Item] = []
    width = 0.0
    for item in row:
        if part and width + item.width > _WIDEST_ROW:
            yield part
            part, width = [], 0.0
        part.append(item)
        width += item.width + _GAP
    yield part


def _places(rows: Sequence[Sequence[_Item]]) -> list[tuple[_Item, float, float]]:
    """Each item with its left and top edge."""
    sizes = [(sum(i.width + _GAP for i in row), max(i.height for i in row)) for row in rows]
    area = sum((width + 2 * _GAP) * (height + _ROW_GAP) for width, height in sizes)
    tallest = max([math.sqrt(area / _ASPECT), *(height for _, height in sizes)])
    places: list[tuple[_Item, float, float]] = []
    left, begin = _GAP, 0
    while begin < len(rows):
        end, height = begin, 0.0
        while end < len(rows) and height + sizes[end][1] <= tallest + _ROW_GAP:
            height += sizes[end][1] + _ROW_GAP
            end += 1
        end = max(end, begin + 1)
        width = max(width for width, _ in sizes[begin:end])
        top = _GAP
        for row, (own, tall) in zip(rows[begin:end], sizes[begin:end], strict=True):
            x = left + (width - own) / 2
            for item in row:
                places.append((item, x, top))
                x += item.width + _GAP
            top += tall + _ROW_GAP
        left, begin = left + width + 2 * _GAP, end
    return places


def _inside(item: _Item, x: float, y: float) -> Iterator[tuple[Box, float, float]]:
    """Each box of an item with the x of its middle and its top."""
    top = y + (_LINE + _MARGIN if item.title else 0.0)
    for box in item.boxes:
        yield box, x + item.width / 2, top
        top += _height(box) + _GAP


def _frame(item: _Item, x: float, y: float) -> str:
    return (
        f'<g id="group{item.number}" class="cluster">'
        f"{_rectangle(x, y, item.width, item.height, item.fill)}"
        f'<text x="{x + item.width / 2:.1f}" y="{y + _LINE:.1f}">{escape(item.title)}</text></g>'
    )


def _box(box: Box, middle: float, top: float, item: _Item) -> str:
    width = item.width - (2 * _MARGIN if item.title else 0.0)
    texts = [
        f'<text x="{middle:.1f}" y="{top + _LINE * (at + 1):.1f}">{escape(shown(line))}</text>'
        for at, line in enumerate(box.lines)
    ]
    shape = _rectangle(middle - width / 2, top, width, _height(box), _LOOKS[box.kind])
    return f'<g class="node"><title>{box.name}</title>{shape}{"".join(texts)}</g>'


def _rectangle(x: float, y: float, width: float, height: float, fill: str) -> str:
    line = f"M{x:.1f} {y:.1f}h{width:.1f}v{height:.1f}h{-width:.1f}z"
    return f'<path fill="{fill}" {_STROKE} d="{line}"/>'


def _edges(
    links: Sequence[tuple[str, str]], middles: Mapping[str, tuple[float, float, float]]
) -> Iterator[str]:
    for begin in range(0, len(links), _LINES_PER_PATH):
        parts = []
        for source, reader in links[begin : begin + _LINES_PER_PATH]:
            (x, _, bottom), (to, top, _) = middles[source], middles[reader]
            parts.append(f"M{x:.1f} {bottom:.1f}L{to:.1f} {top:.1f}")
        yield f'<g class="edge"><path fill="none" {_STROKE} d="{"".join(parts)}"/></g>'
