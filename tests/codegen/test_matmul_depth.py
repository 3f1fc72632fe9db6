"""Products whose sums are cut into parts that threads share out (`split` depth)."""

from __future__ import annotations

import itertools
import random
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gen.errors import InvalidInput, Refusal
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.schedule.schedule import Choice, Schedule
from tests.codegen.kernel_bench import run_kernel
from tests.codegen.matmul_nests import EPILOGUES, ROW_EPILOGUES, Case, build, operands, sections
from tests.codegen.matmul_run import TEMPLATE, TYPES, Bench, Check

PARTS = (1, 2, 5)


@pytest.fixture(scope="session")
def bench(compiler: Compiler) -> Bench:
    return Bench(compiler, host_target())


def split(bench: Bench, nest: LoopNest, parts: int = 2, **changes: Choice) -> dict[str, Choice]:
    """The first guess with the depth split, and some other choices replaced."""
    return dict(bench.seed(nest, split="depth", parts=parts, threads="all", **changes))


def test_shapes_parts_and_threads(bench: Bench) -> None:
    shapes = [(1, 1, 1), (7, 1, 33), (13, 17, 19), (8, 48, 64), (37, 101, 300), (131, 65, 5)]
    bench.check_all(
        Check(nest, split(bench, nest, parts, kc=kc), (1, 2, 3))
        for nest in (build(Case(*shape)) for shape in shapes)
        for parts, kc in ((1, 40), (2, 8), (5, 512))
    )


@pytest.mark.parametrize("left", ["mk", "km"])
@pytest.mark.parametrize("right", ["kn", "nk"])
@pytest.mark.parametrize("constant", [False, True])
def test_each_way_to_read_operands(bench: Bench, left: str, right: str, constant: bool) -> None:
    checks = []
    for k in (64, 83):
        nest = build(Case(13, 37, k, left=left, right=right, constant=constant, epilogue="bias"))
        choices = {p.name: p.choices for p in TEMPLATE.space(nest, bench.target).parameters}
        for one, other in itertools.product(choices["left"], choices["right"]):
            point = split(bench, nest, 3, left=one, right=other, kc=24, tile="4x2")
            if not isinstance(TEMPLATE.schedule(nest, bench.target, point), Refusal):
                checks.append(Check(nest, point, (1, 3)))
    assert len(checks) >= 2
    bench.check_all(checks)


@pytest.mark.parametrize("epilogue", EPILOGUES + ROW_EPILOGUES)
def test_epilogues_see_whole_sums(bench: Bench, epilogue: str) -> None:
    cases = [
        Case(29, 70, 83, prologue="relu", epilogue=epilogue),
        Case(9, 33, 83, b=3, left="bmk", right="bkn", out="bmn", constant=False),
        Case(9, 33, 83, b=3, left="bmk", out="mbn", prologue="row_scale"),
    ]
    nests = [build(replace(case, epilogue=epilogue)) for case in cases]
    bench.check_all(
        Check(nest, split(bench, nest, parts, kc=40), (1, 3)) for nest in nests for parts in PARTS
    )


@pytest.mark.parametrize(("stored", "computed"), TYPES)
def test_types(bench: Bench, stored: DType, computed: DType) -> None:
    case = Case(20, 37, 51, stored=stored, computed=computed)
    nests = [build(replace(case, right=right)) for right in ("kn", "nk")]
    bench.check_all(Check(nest, split(bench, nest, 3, kc=16), (1, 2)) for nest in nests)


@pytest.mark.parametrize("constant", [False, True])
def test_pairs_of_bf16_and_sections(bench: Bench, constant: bool) -> None:
    how: dict[str, Choice] = {"left": "call", "right": "load" if constant else "call"}
    pairs = [
        build(Case(13, 37, 51, left=left, right=right, stored=DType.BF16, constant=constant))
        for left, right in (("mk", "kn"), ("km", "nk"))
    ]
    checks = [
        Check(nest, split(bench, nest, 3, element="pairs", kc=kc, **how), (1, 2))
        for nest in pairs
        for kc in (8, 20)
    ]
    case = Case(29, 33, 45, prologue="relu", constant=constant)
    for joint in (False, True):
        nest = sections(case, buffers=2, joint=joint)
        checks.append(Check(nest, split(bench, nest, 2, kc=16, ahead="next"), (1, 2)))
    bench.check_all(checks)


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_each_instruction_set_level(bench: Bench, isa: str) -> None:
    try:
        level = Bench(bench.compiler, host_target(isa))
    except InvalidInput as missing:
        pytest.skip(str(missing))
    cases = [
        Case(19, 53, 70, prologue="relu", epilogue="layer_norm"),
        Case(19, 53, 70, right="nk", constant=False, stored=DType.BF16),
        Case(7, 53, 70, left="km", right="kn", constant=False),
    ]
    nests = [build(case) for case in cases]
    level.check_all(Check(nest, split(level, nest, 3, kc=24), (2,)) for nest in nests)


def test_columns_joined_over_the_ends_of_their_innermost_axis(bench: Bench) -> None:
    checks = []
    for right, constant in itertools.product(("bkn", "bnk"), (False, True)):
        case = Case(9, 14, 41, b=6, right=right, out="bmn", constant=constant)
        nest = build(replace(case, epilogue="residual"))
        how: dict[str, Choice] = {"tile": "4x2", "right": "load" if constant else "call"}
        assert "cols" in bench.seed(nest)
        for joined in ("joined", "apart"):
            checks.append(Check(nest, split(bench, nest, 3, cols=joined, kc=16, **how), (1, 2)))
    bench.check_all(checks)


def test_the_first_guess_cuts_what_has_too_few_tiles(bench: Bench) -> None:
    """Eight rows and columns are one tile: only parts of their sums occupy two cores."""
    target = replace(bench.target, cores=2)
    few = TEMPLATE.space(build(Case(8, 8, 65536)), target)
    assert dict(few.seeds[0])["split"] == "depth"
    assert dict(few.seeds[0])["parts"] == 2
    many = TEMPLATE.space(build(Case(64, 2048, 16384)), target)
    assert dict(many.seeds[0])["split"] != "depth"
    assert "depth" in {dict(seed)["split"] for seed in many.seeds}


def test_long_sums_of_every_seed_are_right(bench: Bench) -> None:
    nests = [build(Case(5, 21, 2100, left=left, constant=False)) for left in ("mk", "km")]
    bench.check_all(
        Check(nest, dict(seed))
        for nest in nests
        for seed in TEMPLATE.space(nest, bench.target).seeds
    )


def test_empty_extents(bench: Bench) -> None:
    nests = [build(Case(*shape, epilogue="bias")) for shape in ((0, 5, 3), (5, 0, 3), (5, 3, 0))]
    bench.check_all(Check(nest, split(bench, nest, 2)) for nest in nests)


@pytest.mark.parametrize("threads", [2, 3])
def test_results_do_not_depend_on_the_team(bench: Bench, threads: int) -> None:
    nest = build(Case(8, 20, 3000, epilogue="gate", constant=False))
    kernel = bench.build(nest, split(bench, nest, 4, kc=256))
    assert not isinstance(kernel, Refusal)
    inputs = operands(nest, seed=1)
    (alone,) = run_kernel(kernel, inputs, 1)
    for _ in range(5):
        (shared,) = run_kernel(kernel, inputs, threads)
        np.testing.assert_array_equal(alone, shared)


def test_statistics_of_whole_rows_come_before_their_parts(bench: Bench) -> None:
    """A norm in front of a product is not cut: no parts are offered, and none taken."""
    nest = build(Case(4, 16, 4096, prologue="layer_norm"))
    names = {p.name for p in TEMPLATE.space(nest, bench.target).parameters}
    assert "parts" not in names
    found = TEMPLATE.schedule(nest, bench.target, split(bench, nest, 2))
    assert isinstance(found, Refusal)
    assert found.code == "operand-layout"


def test_parts_are_offered_where_sums_are_long_and_few(bench: Bench) -> None:
    def offered(case: Case) -> bool:
        parameters = TEMPLATE.space(build(case), bench.target).parameters
        return "depth" in next(p.choices for p in parameters if p.name == "split")

    assert offered(Case(8, 16, 65536))
    assert not offered(Case(8, 16, 64))
    assert not offered(Case(8192, 8192, 4096))


def test_the_schedule_tells_the_parts(bench: Bench) -> None:
    nest = build(Case(8, 16, 4096))
    schedule = TEMPLATE.schedule(nest, bench.target, split(bench, nest, 4))
    assert isinstance(schedule, Schedule)
    (parallel,) = schedule.find("parallel")
    assert (parallel.arg("split"), parallel.arg("parts")) == ("depth", 4)
    rows = TEMPLATE.schedule(nest, bench.target, bench.seed(nest, split="rows"))
    assert isinstance(rows, Schedule)
    assert "parts" not in dict(rows.find("parallel")[0].args)


def test_too_many_partial_sums_are_refused(bench: Bench) -> None:
    nest = build(Case(4096, 4096, 4096))
    found = TEMPLATE.schedule(nest, bench.target, split(bench, nest, 16))
    assert isinstance(found, Refusal)
    assert found.code == "tile-too-large"


CASES = st.builds(
    Case,
    m=st.integers(1, 40),
    n=st.integers(1, 70),
    k=st.integers(1, 200),
    b=st.integers(1, 3),
    left=st.sampled_from(["bmk", "mbk", "mk", "km", "bkm"]),
    right=st.sampled_from(["kn", "nk", "bkn", "bnk"]),
    out=st.sampled_from(["bmn", "mbn", "bnm"]),
    stored=st.sampled_from([DType.F32, DType.BF16, DType.F16]),
    constant=st.booleans(),
    prologue=st.sampled_from(["none", "relu", "row_scale"]),
    epilogue=st.sampled_from(EPILOGUES + ROW_EPILOGUES),
)
DRAWN = st.tuples(CASES, st.integers(0, 1000), st.sampled_from([1, 2, 3]))


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(DRAWN, min_size=8, max_size=8))
def test_any_case_at_any_point(bench: Bench, drawn: list[tuple[Case, int, int]]) -> None:
    checks = []
    for case, seed, threads in drawn:
        nest, choose = build(case), random.Random(seed)
        if TEMPLATE.refuse(nest, bench.target) is not None:
            continue
        space = TEMPLATE.space(nest, bench.target)
        point = {p.name: choose.choice(p.choices) for p in space.parameters}
        point |= {"split": "depth", "parts": choose.choice(PARTS), "kc": choose.choice((8, 20, 64))}
        if not isinstance(TEMPLATE.schedule(nest, bench.target, point), Refusal):
            checks.append(Check(nest, point, (threads,)))
    if checks:
        bench.check_all(checks)
