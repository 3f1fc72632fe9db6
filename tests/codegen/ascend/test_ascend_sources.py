"""Generated sources as somebody else's compiler sees them: no warnings, public calls only."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from kernel_gen.ascend.sim import compile_warnings
from kernel_gen.codegen.ascend.device.library import FUNCTIONS
from kernel_gen.codegen.source import KernelSource
from kernel_gen.errors import Refusal
from tests.codegen.ascend.ascend_run import CHIP, generated, lowered, schedule_of
from tests.codegen.ascend.public_calls import PUBLIC_WORDS, SIGNATURES, calls, words
from tests.codegen.ascend.test_ascend_kernels import KERNELS

_SYMBOL = "fused_kernel"
_MACROS = ("ASCEND_IS_AIC", "ASCEND_IS_AIV", "GM_ADDR")
_OWN = re.compile(r"Kernel|Init|Run|Scalar|UpTo|AtMost|Phase\d+Way\d+|Product\d+")
"""Names that generated kernels define themselves, beside the functions of the device library."""


def _source(name: str, **choices: int | str) -> KernelSource:
    made = lowered(KERNELS[name])
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest, **choices)
    assert not isinstance(schedule, Refusal)
    return generated(made.nest, schedule, CHIP, _SYMBOL)


@pytest.mark.parametrize(
    "name",
    [
        "bias", "layer_norm", "log_softmax", "sum_all", "argmax", "transposed", "concat_tails",
        "remainder_i32_rows", "gathered", "rows_of_a_table", "every_other_padded", "matmul",
        "empty_beside", "linear_gelu", "linear_bias_relu", "convolution_3x3",
    ],
)  # fmt: skip
def test_sources_compile_without_a_warning(name: str, tmp_path: Path) -> None:
    assert compile_warnings(dict(_source(name).files[:3]), tmp_path) == ""


def test_loops_declare_what_they_use_alone(tmp_path: Path) -> None:
    """Weights are read in the last of three walks over a row: only that one has their lanes."""
    files = dict(_source("layer_norm_tails", walk="steps").files[:3])
    text = files[f"{_SYMBOL}.cpp"]
    assert text.count("for (int64_t col0 = 0;") == 3
    assert text.count("const int32_t cn = ") == 1
    assert compile_warnings(files, tmp_path) == ""


def _wrong(text: str) -> list[str]:
    """Calls that the public interface does not have, and words that are none of its own."""
    found = []
    for call in calls(text):
        if _OWN.fullmatch(call.name) or call.name in FUNCTIONS or call.name in _MACROS:
            continue
        known = SIGNATURES.get(call.name)
        if known is None or not known.takes(call):
            found.append(call.text)
    return found + sorted(words(text) - PUBLIC_WORDS)


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_call_the_public_interface_as_it_is_documented(name: str) -> None:
    assert _wrong(_source(name).files[0][1]) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_device_library_calls_it_as_it_is_documented(name: str) -> None:
    assert _wrong(FUNCTIONS[name]) == []


@pytest.mark.parametrize(
    "text",
    [
        "Add(a, b, c);",
        "Add(a, b, c, d, n);",
        "Add(a, b, c, mask, static_cast<uint8_t>(r), static_cast<uint64_t>(m));",
        "Add(a, b, c, static_cast<uint8_t>(r), static_cast<uint64_t>(m), strides);",
        "Add<float, true, 1>(a, b, c, n);",
        "Mmad(c, a, b, table, other, MmadParams(1, 1, 1, 0, false, true));",
        "MmadParams(m, n, k, false, 0, true)",
        "MmadParams(m, n, k)",
        "Cast(d, x, n, RoundMode::CAST_NONE);",
        "Cast(d, x, CMPMODE::EQ, n);",
        "Cast(d, x, RoundMode::CAST_NEAREST, n);",
        "DataCopyPad(d, x, DataCopyParams(1, 2, 0, 0));",
        "DataCopyPad(d, x, DataCopyExtParams(1, 2, 0, 0, 0), pad, 3);",
        "DataCopyPadExtParams<T> pad(0, 0, T{});",
        "Duplicate(d, 1.0f);",
        "CrossCoreSetFlag<0, PIPE_FIX>();",
        "PipeBarrier<PIPE_MTE4>();",
        "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX);",
        "TQue<TPosition::L1, 1> queue;",
        "queue.AllocTensor<float, 1>();",
        "pipe.InitBuffer(queue, 2, static_cast<uint8_t>(n), 1);",
        "Sigmoid(d, x, n);",
        "WholeReduceSum(d, x, 64, 1, 1, 1);",
    ],
)
def test_other_calls_are_noticed(text: str) -> None:
    assert _wrong(text) != []
