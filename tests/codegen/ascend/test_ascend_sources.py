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
from tests.codegen.ascend.test_ascend_kernels import KERNELS

_SYMBOL = "fused_kernel"
_PUBLIC = """
Abs Add Adds AllocTensor BinaryRepeatParams Brcb BrcbRepeatParams Cast Compare CompareScalar
CreateVecIndex CrossCoreSetFlag CrossCoreWaitFlag DataCopy DataCopyExtParams DataCopyPad
DataCopyPadExtParams DataCopyParams DeQue Div Duplicate EnQue Exp FetchEventID Fill Fixpipe
FixpipeParamsV220 FreeTensor FusedMulAdd Gather Get GetBlockIdx GetBlockNum GetPhyAddr GetTPipePtr
GetTaskRatio GetValue GlobalTensor InitBuffer InitConstValueParams KERNEL_TASK_TYPE_DEFAULT Ln
LoadData
LoadData2DParams LoadData2dTransposeParams LoadDataWithTranspose LocalTensor Max Maxs Min Mins
Mmad MmadParams Mul Muls Nd2NzParams Not Or And PipeBarrier ReinterpretCast Reset Select SetFlag
SetGlobalBuffer SetValue ShiftLeft ShiftRight Sqrt Sub SyncAll TBuf TPipe TQue
UnaryRepeatParams WaitFlag WholeReduceMax WholeReduceMin WholeReduceSum
"""
"""Names of the public Ascend C API that generated kernels may call."""
_OWN = re.compile(r"Kernel|Init|Run|Scalar|UpTo|AtMost|Phase\d+Way\d+|Product\d+")
_CALLED = re.compile(r"\b([A-Z]\w+)(?=[(<{])|\b([A-Z]\w+)\s+\w+[;({=]")


def _source(name: str) -> KernelSource:
    made = lowered(KERNELS[name])
    assert not isinstance(made, Refusal)
    schedule = schedule_of(made.nest)
    assert not isinstance(schedule, Refusal)
    return generated(made.nest, schedule, CHIP, _SYMBOL)


@pytest.mark.parametrize(
    "name",
    [
        "bias", "layer_norm", "log_softmax", "sum_all", "argmax", "transposed", "concat_tails",
        "remainder_i32_rows", "gathered", "rows_of_a_table", "every_other_padded", "matmul",
        "linear_gelu", "linear_bias_relu", "convolution_3x3",
    ],
)  # fmt: skip
def test_sources_compile_without_a_warning(name: str, tmp_path: Path) -> None:
    assert compile_warnings(dict(_source(name).files[:3]), tmp_path) == ""


@pytest.mark.parametrize("name", KERNELS)
def test_kernels_call_nothing_but_the_public_interface(name: str) -> None:
    text = re.sub(r"//.*", "", _source(name).files[0][1])
    called = {word for pair in _CALLED.findall(text) for word in pair if word}
    others = called - set(_PUBLIC.split()) - FUNCTIONS.keys()
    assert not {word for word in others if not _OWN.fullmatch(word)}
