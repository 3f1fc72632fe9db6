"""Pictures of programs that Graphviz would draw for minutes: every op once, in order, as text."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given

import graph_autofusion as gaf
from kernel_gen.errors import InvalidInput, Unavailable
from kernel_gen.ir.graph import Graph
from kernel_gen.runtime.large_picture import large_svg
from kernel_gen.runtime.picture import LARGE_NODES, graph_picture, plan_picture
from tests.fixtures import samples
from tests.fixtures.searches import residual, wide_plan
from tests.runtime.test_dot import HOSTILE, texts
from tests.strategies import graphs

_NAMESPACE = "{http://www.w3.org/2000/svg}"
_CORNERS = re.compile(r"M([-\d.]+) ([-\d.]+)h([\d.]+)v([\d.]+)")
Rectangle = tuple[float, float, float, float]  # left, top, right, bottom


def rectangles(svg: bytes, of: str) -> dict[str, Rectangle]:
    """Each element of the class `of` by its title or id."""
    found = {}
    for element in ElementTree.fromstring(svg).iter(f"{_NAMESPACE}g"):
        if element.get("class") != of:
            continue
        name = element.findtext(f"{_NAMESPACE}title") or element.get("id") or ""
        path = element.find(f"{_NAMESPACE}path")
        assert path is not None
        corners = _CORNERS.match(path.get("d") or "")
        assert corners is not None
        left, top, width, height = map(float, corners.groups())
        assert name not in found
        found[name] = (left, top, left + width, top + height)
    return found


def apart(one: Rectangle, other: Rectangle) -> bool:
    return one[2] <= other[0] or other[2] <= one[0] or one[3] <= other[1] or other[3] <= one[1]


@given(graphs())
def test_boxes_lie_apart_and_below_what_they_read(program: Graph) -> None:
    boxes = rectangles(large_svg(program), "node")
    count = len(program.inputs) + len(program.constants)
    assert len(boxes) == len(program.nodes) + count + len(program.outputs)
    shown = list(boxes.values())
    assert all(apart(a, b) for at, a in enumerate(shown) for b in shown[:at])
    maker = {value: f"n{at}" for at, node in enumerate(program.nodes) for value in node.outputs}
    for at, node in enumerate(program.nodes):
        for value in node.inputs:
            if value in maker:
                source, reader = boxes[maker[value]], boxes[f"n{at}"]
                assert source[3] < reader[1] or source[2] < reader[0]  # or in a later column


@pytest.mark.parametrize("width", [1, 40, 10_000])
def test_ten_thousand_ops_have_a_picture_of_readable_shape(width: int) -> None:
    svg = graph_picture(residual(10_000, width))
    boxes = rectangles(svg, "node")
    assert len([name for name in boxes if name.startswith("n")]) == 10_000
    size = ElementTree.fromstring(svg).get("viewBox")
    assert size is not None
    right, bottom = map(float, size.split()[2:])
    assert 0.3 < right / bottom < 4
    assert max(box[2] for box in boxes.values()) <= right
    assert max(box[3] for box in boxes.values()) <= bottom


def test_groups_are_frames_around_their_ops() -> None:
    plan = wide_plan(LARGE_NODES + 40)
    svg = plan_picture(plan)
    frames, boxes = rectangles(svg, "cluster"), rectangles(svg, "node")
    assert len(frames) == len(plan.cover.groups)
    for number, group in enumerate(plan.cover.groups):
        left, top, right, bottom = frames[f"group{number}"]
        inside = [boxes[f"n{index}g{number}"] for index in group.nodes]
        assert all(left < b[0] and top < b[1] and b[2] < right and b[3] < bottom for b in inside)
        assert all(above[3] < below[1] for above, below in pairwise(inside))
    assert "kernel 0 · 3.0 µs" in texts(svg)


def test_names_stay_text_and_no_style_is_inline() -> None:
    svg = large_svg(samples.graph(name=HOSTILE))
    assert b"<script" not in svg
    assert b"style" not in svg
    assert HOSTILE in texts(svg)


def test_export_of_a_large_program(tmp_path: Path) -> None:
    plan = wide_plan(LARGE_NODES + 40)
    assert b'class="cluster"' in gaf.export_graph(plan, tmp_path / "plan.svg").read_bytes()
    with pytest.raises(InvalidInput, match=r"640 ops.*\.svg"):
        gaf.export_graph(plan, tmp_path / "plan.png")
    assert not (tmp_path / "plan.png").exists()


def test_what_was_exported_stays_where_there_is_no_room_for_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = gaf.export_graph(wide_plan(8), tmp_path / "plan.dot")
    before = path.read_bytes()

    def write_half(self: Path, data: bytes) -> None:
        with self.open("wb") as file:
            file.write(data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_half)
    with pytest.raises(Unavailable, match=r"plan\.dot: No space left"):
        gaf.export_graph(wide_plan(40), path)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(Unavailable, match="No such file"):
        gaf.export_graph(wide_plan(8), tmp_path / "nowhere" / "plan.json")
