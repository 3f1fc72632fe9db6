"""Pictures of programs: groups, recomputed nodes, and names that try to break out."""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gen.errors import InvalidInput
from kernel_gen.fusion.group import FusionGroup, FusionPlan
from kernel_gen.runtime.dot import plan_to_dot, quote, render, to_dot
from tests.fixtures import samples

HOSTILE = 'a"]; evil [label="<script>alert(1)</script>\\'


def texts(svg: bytes) -> list[str]:
    root = ElementTree.fromstring(svg)
    return [found.text or "" for found in root.iter("{http://www.w3.org/2000/svg}text")]


def test_a_plan_shows_its_groups_with_times() -> None:
    dot = plan_to_dot(samples.plan())
    assert "subgraph cluster_0 {" in dot
    assert 'label="kernel 0 · 10.0 µs"' in dot
    assert 'label="torch: no-template"' in dot
    assert "aten.sort.default" in dot
    assert 'label="  f32 4×8  "' in dot


def test_a_program_without_a_cover_has_no_frames() -> None:
    dot = to_dot(samples.graph())
    assert "cluster" not in dot
    assert all(f"  n{index} [label=" in dot for index in range(3))


def test_a_recomputed_node_is_drawn_in_each_group() -> None:
    groups = (FusionGroup((0,), (0, 1), (2,)), FusionGroup((0, 1), (0, 1), (3,)))
    dot = to_dot(samples.graph(), FusionPlan(groups))
    assert "n0g0 [label=" in dot
    assert "n0g1 [label=" in dot
    assert "n0g1 -> n1g1" in dot
    assert "n0g0 -> n1g1" not in dot


def test_rendered_groups_keep_their_colours_and_titles() -> None:
    svg = render(plan_to_dot(samples.plan()), "svg")
    assert "kernel 0 · 10.0 µs" in texts(svg)
    assert b'id="group0"' in svg
    assert render(to_dot(samples.graph()), "png").startswith(b"\x89PNG")


def test_a_hostile_name_stays_text() -> None:
    svg = render(to_dot(samples.graph(name=HOSTILE)), "svg")
    assert b"<script" not in svg
    assert HOSTILE in texts(svg)


@given(st.text(max_size=40))
def test_quoted_text_has_no_open_quote(text: str) -> None:
    inner = quote(text)[1:-1]
    assert '"' not in inner.replace("\\\\", "").replace('\\"', "")
    assert not inner.replace("\\\\", "").endswith("\\")


def test_long_names_are_cut() -> None:
    assert len(quote("x" * 500)) < 70


def test_other_kinds_of_picture_are_refused() -> None:
    with pytest.raises(InvalidInput, match="svg or png"):
        render(to_dot(samples.graph()), "pdf")


def test_constants_and_loose_nodes_are_connected() -> None:
    plan = samples.plan()
    partial = dataclasses.replace(plan.cover, groups=plan.cover.groups[:1])
    dot = to_dot(plan.program, partial)
    assert "n1g0 -> n2 " in dot
    assert "n2 -> o0 " in dot
