"""Matmul kernels against the NumPy executor: shapes, layouts, types, prologues, epilogues."""

from __future__ import annotations

import itertools
import random
import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gen.errors import InvalidInput, Refusal
from kernel_gen.fusion.lower import lower
from kernel_gen.fusion.region import make_group
from kernel_gen.ir.builder import GraphBuilder
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import InputKind
from kernel_gen.ir.loopnest import LoopNest
from kernel_gen.ir.target import DeviceKind, Target
from kernel_gen.ir.types import TensorType
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from kernel_gen.runtime.plan import Artifact
from kernel_gen.schedule.schedule import Choice, Point, Schedule
from tests.codegen.matmul_nests import (
    EPILOGUES,
    PROLOGUES,
    ROW_EPILOGUES,
    Case,
    build,
    sections,
)
from tests.codegen.matmul_run import TEMPLATE, TYPES, Bench, Check


@pytest.fixture(scope="session")
def bench(compiler: Compiler) -> Bench:
    return Bench(compiler, host_target())


SHAPES = [
    (1, 1, 1),
    (1, 130, 7),
    (7, 1, 33),
    (13, 17, 19),
    (8, 48, 64),
    (37, 101, 300),
    (131, 65, 5),
]


def test_shapes_and_threads(bench: Bench) -> None:
    nests = [build(Case(*shape)) for shape in SHAPES]
    bench.check_all(Check(nest, bench.seed(nest, threads="all"), (1, 2, 3)) for nest in nests)


def level(bench: Bench, isa: str) -> Bench:
    """The same at another instruction-set level, if this machine has it."""
    try:
        return Bench(bench.compiler, host_target(isa))
    except InvalidInput as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "x86-64-v4"])
def test_each_instruction_set_level(bench: Bench, isa: str) -> None:
    lower = level(bench, isa)
    fused = build(Case(19, 53, 70, prologue="layer_norm", epilogue="bias_relu"))
    plain = build(Case(19, 53, 70, right="nk", constant=False))
    lower.check_all(Check(nest, threads=(1,)) for nest in (fused, plain))


@pytest.mark.parametrize("left", ["bmk", "mk", "bkm"])
def test_batches_and_broadcasts(bench: Bench, left: str) -> None:
    cases = [
        Case(21, 39, 18, b=5, left=left, right=right, out="bmn", constant=False)
        for right in ("bkn", "kn", "bnk")
    ]
    bench.check_all(
        Check(nest, bench.seed(nest, split=split))
        for nest in map(build, cases)
        for split in ("rows", "cols", "batch")
    )


def test_output_layouts(bench: Bench) -> None:
    case = Case(21, 39, 18, b=3, left="bmk", epilogue="residual")
    nests = [build(replace(case, out=out)) for out in ("bmn", "bnm", "mbn", "nmb")]
    bench.check_all(Check(nest, threads=(1,)) for nest in nests)


@pytest.mark.parametrize("left", ["mk", "km"])
def test_vectors_along_depth_for_few_rows(bench: Bench, left: str) -> None:
    nests = [
        build(Case(*shape, b=2, left="b" + left, right="bnk", out="bmn", constant=False))
        for shape in ((1, 37, 80), (4, 50, 16), (6, 9, 131))
    ]
    bench.check_all(
        Check(nest, bench.seed(nest, right="dot", kc=kc, left="call"))
        for nest in nests
        for kc in (24, 136)
    )


@pytest.mark.parametrize("stored", [DType.BF16, DType.F16])
def test_narrow_weights_are_read_where_they_lie(bench: Bench, stored: DType) -> None:
    """Odd rows begin at odd elements; blocks of depth end inside vectors."""
    checks = []
    for m, n, k in ((1, 37, 81), (3, 50, 17), (6, 9, 131)):
        nest = build(Case(m, n, k, b=2, left="bmk", right="bnk", out="bmn", stored=stored))
        for kc in (20, 136):
            checks.append(Check(nest, bench.seed(nest, right="dot", element="wide", kc=kc)))
        joined = sections(Case(m, n, k, stored=stored), buffers=2, joint=True)
        checks.append(Check(joined, bench.seed(joined, right="dot", element="wide")))
    bench.check_all(checks)


@pytest.mark.parametrize("stored", [DType.I8, DType.U8])
@pytest.mark.parametrize("computed", [DType.F32, DType.BF16])
def test_bytes_are_widened_where_they_are_multiplied(
    bench: Bench, stored: DType, computed: DType
) -> None:
    """Quantised weights, by way of bf16 or not, in place and packed."""
    checks = []
    for m, n, k in ((1, 37, 81), (3, 50, 17)):
        nest = _of_bytes(m, n, k, stored, computed)
        for right in ("dot", "load"):
            checks.append(Check(nest, bench.seed(nest, right=right)))
    bench.check_all(checks)


def _of_bytes(m: int, n: int, k: int, stored: DType, computed: DType) -> LoopNest:
    b = GraphBuilder()
    x = b.input(TensorType(computed, (m, k)))
    w = b.input(TensorType(stored, (n, k)), kind=InputKind.PARAMETER)
    scale = b.input(TensorType(computed, (n,)), kind=InputKind.PARAMETER)
    b.output(b.op("mul", b.op("linear", x, b.op("cast", w, dtype=str(computed))), scale))
    graph = b.build()
    lowered = lower(graph, make_group(graph, range(len(graph.nodes))))
    assert not isinstance(lowered, Refusal), lowered
    return lowered.nest


def test_empty_extents(bench: Bench) -> None:
    """Nothing to sum gives zeros, nothing to store stores nothing."""
    nests = [build(Case(*shape, epilogue="bias")) for shape in ((0, 5, 3), (5, 0, 3), (5, 3, 0))]
    bench.check_all(
        Check(nest, bench.seed(nest, split=split))
        for nest in nests
        for split in ("rows", "cols", "batch")
    )


def test_one_column_of_a_matrix_by_a_vector(bench: Bench) -> None:
    bench.check_all(
        Check(nest, threads=(1,))
        for nest in (
            build(Case(m, 1, k, right="k", out="m", constant=False, epilogue="residual"))
            for m, k in ((3, 5), (200, 77))
        )
    )


@pytest.mark.parametrize("prologue", PROLOGUES)
def test_prologues(bench: Bench, prologue: str) -> None:
    nests = [
        build(Case(30, 50, 83, left=left, prologue=prologue, epilogue="bias"))
        for left in ("mk", "km")
    ]
    bench.check_all(
        Check(nest, bench.seed(nest, split=split)) for nest in nests for split in ("rows", "cols")
    )


def test_epilogues(bench: Bench) -> None:
    case = Case(30, 50, 83, prologue="relu")
    bench.check_all(Check(build(replace(case, epilogue=epilogue))) for epilogue in EPILOGUES)


@pytest.mark.parametrize("epilogue", ROW_EPILOGUES)
def test_rows_are_finished_when_all_their_columns_are_summed(bench: Bench, epilogue: str) -> None:
    checks = []
    for out, b in (("mn", 1), ("mbn", 3), ("bmn", 2)):
        left = "mk" if b == 1 else "bmk"
        nest = build(Case(29, 70, 83, b=b, left=left, out=out, epilogue=epilogue))
        for split in ("rows", "cols", "batch"):
            for keep in _choices(bench, nest, "keep"):
                point = bench.seed(nest, split=split, keep=keep, mc=2, nc=1, kc=40)
                checks.append(Check(nest, point, (1, 3)))
    bench.check_all(checks)


@pytest.mark.parametrize(("m", "n"), [(4096, 4096), (2048, 50257), (3, 50257), (65536, 768)])
def test_the_first_guess_has_room_for_whole_rows(bench: Bench, m: int, n: int) -> None:
    nest = build(Case(m, n, 64, epilogue="softmax"))
    assert not isinstance(TEMPLATE.schedule(nest, bench.target, bench.seed(nest)), Refusal)


@pytest.mark.parametrize("out", ["nm", "bnm", "nbm"])
def test_reductions_along_the_rows_of_a_product_swap_its_operands(bench: Bench, out: str) -> None:
    b = 3 if "b" in out else 1
    case = Case(29, 70, 83, b=b, left="bmk" if b > 1 else "mk", out=out)
    bench.check_all(Check(build(replace(case, epilogue=epilogue))) for epilogue in ROW_EPILOGUES)


def test_rows_of_few_or_no_elements(bench: Bench) -> None:
    nests = [
        build(Case(m, n, k, epilogue=epilogue))
        for m, n, k in ((0, 5, 3), (5, 0, 3), (5, 3, 0), (3, 1, 7), (1, 40, 9))
        for epilogue in (("norm_of_sum", "row_statistics") if n else ("row_statistics",))
    ]
    bench.check_all(
        Check(nest, bench.seed(nest, split=split)) for nest in nests for split in ("rows", "cols")
    )


@pytest.mark.parametrize("isa", ["x86-64", "x86-64-v3", "x86-64-v4"])
@pytest.mark.parametrize(
    ("stored", "computed"),
    [(DType.F32, DType.F32), (DType.BF16, DType.F32), (DType.F16, DType.F32), (DType.F64,) * 2],
)
def test_row_epilogues_of_each_type_and_level(
    bench: Bench, isa: str, stored: DType, computed: DType
) -> None:
    case = Case(19, 53, 70, stored=stored, computed=computed, prologue="layer_norm")
    level(bench, isa).check_all(
        Check(build(replace(case, epilogue=epilogue))) for epilogue in ROW_EPILOGUES
    )


def _choices(bench: Bench, nest: LoopNest, name: str) -> tuple[Choice, ...]:
    space = TEMPLATE.space(nest, bench.target)
    return next(p.choices for p in space.parameters if p.name == name)


def test_sums_wait_between_blocks_of_depth(bench: Bench) -> None:
    nest = build(Case(45, 130, 83, epilogue="gate", prologue="softmax"))
    bench.check_all(
        Check(nest, bench.seed(nest, kc=kc, mc=mc, nc=nc))
        for kc in (8, 16, 40)
        for mc, nc in ((1, 2), (64, 8))
    )


@pytest.mark.parametrize(("stored", "computed"), TYPES)
def test_dtypes(bench: Bench, stored: DType, computed: DType) -> None:
    case = Case(20, 37, 50, stored=stored, computed=computed)
    nests = [build(replace(case, right=right)) for right in ("kn", "nk")]
    bench.check_all(Check(nest, threads=(1,)) for nest in nests)


@pytest.mark.parametrize("left", ["bmk", "bkm", "mk"])
def test_packed_rows_are_cut_into_blocks_of_depth(bench: Bench, left: str) -> None:
    """Blocks of whole vectors and not, the last one shorter, several blocks of rows."""
    nest = build(Case(37, 20, 83, b=2, left=left, out="bmn", constant=False))
    bench.check_all(
        Check(nest, bench.seed(nest, split=split, left="call", kc=kc, mc=mc))
        for split in ("rows", "cols", "batch")
        for kc, mc in ((32, 1), (24, 2), (20, 64))
    )


@pytest.mark.parametrize(("left", "right"), [("mk", "kn"), ("km", "nk")])
@pytest.mark.parametrize("constant", [False, True])
def test_pairs_of_bf16(bench: Bench, left: str, right: str, constant: bool) -> None:
    """Odd sums, blocks that end inside a vector, few columns."""
    how: dict[str, Choice] = {"left": "call", "right": "load" if constant else "call"}
    nests = [
        build(Case(*shape, left=left, right=right, stored=DType.BF16, constant=constant))
        for shape in ((13, 37, 51), (7, 16, 1), (1, 101, 66))
    ]
    bench.check_all(
        Check(nest, bench.seed(nest, element="pairs", kc=kc, mc=1, ahead="next", **how))
        for nest in nests
        for kc in (16, 20, 72)
    )


def test_pairs_are_for_what_is_stored_as_bf16(bench: Bench) -> None:
    for case in (Case(8, 16, 32), Case(8, 16, 32, stored=DType.BF16, prologue="relu")):
        nest = build(case)
        assert "element" not in {p.name for p in TEMPLATE.space(nest, bench.target).parameters}
        found = bench.build(nest, bench.seed(nest, element="pairs", left="call"))
        assert isinstance(found, Refusal)


def test_dot_products_of_pairs_where_the_target_has_them(bench: Bench) -> None:
    """Such code compiles everywhere; only a processor with AVX512_BF16 runs it."""
    target = Target(DeviceKind.CPU, "any", "x86-64-v4", features=("avx512bf16",), vector_bytes=64)
    nest = build(Case(16, 48, 64, stored=DType.BF16))
    point = dict(TEMPLATE.space(nest, target).seeds[0])
    assert point["element"] == "pairs"
    schedule = TEMPLATE.schedule(nest, target, point)
    assert isinstance(schedule, Schedule)
    kernel = TEMPLATE.generate(nest, target, schedule, "kernel")
    built = bench.compiler.compile([kernel], target)
    assert isinstance(built, Artifact), built
    # EVEX, prefix F3, 512 bits, opcode 52: VDPBF16PS
    f3 = re.escape(bytes(byte for byte in range(256) if byte & 7 == 6))
    dot_product = re.compile(rb"\x62[\x00-\xff][" + f3 + rb"][\x40-\x5f]\x52")
    assert dot_product.search(built.data)
    plain = bench.compiler.compile([kernel], replace(target, features=()))
    assert isinstance(plain, Artifact), plain
    assert not dot_product.search(plain.data)


def test_packed_at_load_only_if_nothing_else_reads_it(bench: Bench) -> None:
    nest = build(Case(9, 20, 30))
    kernel = bench.build(nest, bench.seed(nest))
    assert not isinstance(kernel, Refusal)
    assert [pack.operand for pack in kernel.source.packs] == [1]
    changing = build(Case(9, 20, 30, constant=False))
    other = bench.build(changing, bench.seed(changing))
    assert not isinstance(other, Refusal)
    assert other.source.packs == ()


@pytest.mark.parametrize("joint", [False, True])
@pytest.mark.parametrize("constant", [False, True])
def test_products_of_one_left_operand_share_a_kernel(
    bench: Bench, joint: bool, constant: bool
) -> None:
    case = Case(29, 70, 45, prologue="layer_norm", constant=constant)
    nests = [sections(case, buffers=buffers, joint=joint) for buffers in (1, 2)]
    bench.check_all(
        Check(nest, bench.seed(nest, split=split, kc=kc, mc=2, nc=1))
        for nest in nests
        for split, kc in (("rows", 16), ("cols", 16), ("batch", 48))
    )


def test_every_seed_is_right(bench: Bench) -> None:
    cases = [Case(65, 90, 700), Case(3, 200, 40, constant=False), Case(70, 33, 20, left="km")]
    halves = [Case(m, 40, 50, right="nk", stored=DType.BF16) for m in (2, 40)]
    bench.check_all(
        Check(nest, dict(seed))
        for nest in map(build, cases + halves)
        for seed in TEMPLATE.space(nest, bench.target).seeds
    )


def _point(nest: LoopNest, bench: Bench, seed: int) -> Point:
    choose = random.Random(seed)
    space = TEMPLATE.space(nest, bench.target)
    return {p.name: choose.choice(p.choices) for p in space.parameters}


CASES = st.builds(
    Case,
    m=st.integers(1, 70),
    n=st.integers(1, 150),
    k=st.integers(1, 90),
    b=st.integers(1, 4),
    left=st.sampled_from(["bmk", "mbk", "mk", "km", "bkm"]),
    right=st.sampled_from(["kn", "nk", "bkn", "bnk"]),
    out=st.sampled_from(["bmn", "mbn", "bnm"]),
    stored=st.sampled_from([DType.F32, DType.F32, DType.BF16]),
    constant=st.booleans(),
    prologue=st.sampled_from(PROLOGUES),
    epilogue=st.sampled_from(EPILOGUES + ROW_EPILOGUES),
)


DRAWN = st.tuples(CASES, st.integers(0, 1000), st.sampled_from([1, 2, 3]))


@pytest.mark.parametrize("right", ["bkn", "bnk"])
@pytest.mark.parametrize("stored", [DType.F32, DType.BF16])
def test_columns_joined_over_the_ends_of_their_innermost_axis(
    bench: Bench, right: str, stored: DType
) -> None:
    """Rows of 2 to 50 columns, cut into tiles of two vectors: runs of any length at any place."""
    checks = []
    for n, out, constant in itertools.product((2, 3, 8, 14, 50), ("bmn", "mbn"), (False, True)):
        case = Case(9, n, 21, b=6, right=right, out=out, constant=constant, stored=stored)
        nest = build(replace(case, epilogue="residual"))
        if "cols" not in bench.seed(nest):
            continue  # all columns are one axis
        changes: dict[str, Choice] = {"tile": "4x2", "cols": "joined", "nc": 2}
        changes["right"] = "load" if constant else "call"
        if stored is DType.BF16:
            changes["element"] = "pairs"
        for split, threads in (("cols", 2), ("rows", 3)):
            point = bench.seed(nest, **changes, split=split)
            checks.append(Check(nest, point, (threads,)))
    bench.check_all(checks)


@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(drawn=st.lists(DRAWN, min_size=8, max_size=8))
def test_any_case_at_any_point(bench: Bench, drawn: list[tuple[Case, int, int]]) -> None:
    checks = []
    for case, seed, threads in drawn:
        nest = build(case)
        if TEMPLATE.refuse(nest, bench.target) is not None:
            assert case.epilogue in ROW_EPILOGUES  # along rows that both operands have
            continue
        point = _point(nest, bench, seed)
        if not isinstance(TEMPLATE.schedule(nest, bench.target, point), Refusal):
            checks.append(Check(nest, point, (threads,)))
    if checks:
        bench.check_all(checks)
