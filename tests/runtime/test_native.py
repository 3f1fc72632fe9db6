"""Loading objects: exactly the given bytes, any number of them, without a temporary folder."""

from __future__ import annotations

import hashlib
import os
import tempfile

import pytest
import torch

from kernel_gen.errors import InternalError, InvalidInput, Unavailable
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.native import NativePlan
from kernel_gen.runtime.plan import Artifact, Plan
from kernel_gen.runtime.torch_glue import TorchPlan
from tests.runtime.small_plans import chain_graph, plan_of

OTHERS = ("gaf_arena_bytes", "gaf_create", "gaf_run", "gaf_destroy")


@pytest.fixture(scope="module")
def plans(compiler: Compiler) -> tuple[Plan, Plan]:
    """Two plans whose objects have the same symbols and other arenas."""
    first = plan_of(chain_graph(), compiler)
    second = plan_of(chain_graph(), compiler, scratch_bytes=4096)
    return first, second


def sizes(plans: tuple[Plan, Plan]) -> list[int]:
    return [NativePlan(plan.artifacts[0]).arena_bytes(2) for plan in plans]


def test_each_load_gets_its_own_object(plans: tuple[Plan, Plan]) -> None:
    assert sizes(plans) == [256, 256 + 8192]
    assert sizes(plans[::-1]) == [256 + 8192, 256]


def test_no_temporary_folder(plans: tuple[Plan, Plan], monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> str:
        raise FileNotFoundError("no usable temporary directory")

    monkeypatch.setattr(tempfile, "mkdtemp", refuse)
    assert sizes(plans) == [256, 256 + 8192]


def test_nothing_is_left_open(plans: tuple[Plan, Plan]) -> None:
    sizes(plans)
    before = len(os.listdir("/proc/self/fd"))
    sizes(plans)
    assert len(os.listdir("/proc/self/fd")) == before


def test_garbage_is_unavailable(plans: tuple[Plan, Plan]) -> None:
    data = b"not an object"
    with pytest.raises(Unavailable, match="cannot load object"):
        NativePlan(Artifact("x.so", hashlib.sha256(data).hexdigest(), data))


def test_other_entry_version_is_refused_by_the_object_itself(compiler: Compiler) -> None:
    text = 'extern "C" unsigned gaf_abi_version(void) { return 99; }'
    text += "\n" + "\n".join(f'extern "C" void {name}(void) {{}}' for name in OTHERS)
    built = compiler.compile_texts([("x.cpp", text)], plan_of(chain_graph(), compiler).target)
    assert isinstance(built, Artifact)
    with pytest.raises(Unavailable, match="ABI 99, not 1"):
        NativePlan(built)


def test_object_without_the_entry_points_is_unavailable(compiler: Compiler) -> None:
    built = compiler.compile_texts([("x.cpp", "int x;")], plan_of(chain_graph(), compiler).target)
    assert isinstance(built, Artifact)
    with pytest.raises(Unavailable, match="gaf_abi_version"):
        NativePlan(built)


def test_lazily_negated_tensors_are_refused(plans: tuple[Plan, Plan]) -> None:
    negated = torch._neg_view(torch.randn(4, 6))
    with pytest.raises(InvalidInput, match="resolve_neg"):
        TorchPlan(plans[0]).bind([negated])


def test_wrong_number_of_constants_is_a_bad_argument(plans: tuple[Plan, Plan]) -> None:
    with pytest.raises(InternalError, match="bad argument"):
        NativePlan(plans[0].artifacts[0]).create([])
