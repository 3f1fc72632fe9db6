"""Every operator case that the onnx package ships, run through our rules."""

from __future__ import annotations

import warnings
from collections import Counter
from functools import cache
from typing import Any

import numpy as np
import onnx
import pytest
import torch

from kernel_gen.errors import UnsupportedModel
from kernel_gen.frontend.onnx import OnnxModule, read_onnx
from kernel_gen.frontend.onnx.reading import OPSETS
from kernel_gen.frontend.onnx.values import RULES

# One worker makes and runs the cases, once.
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("onnx")]
_HALF = 2e-2
# Rules whose cases are of older opsets with other meanings, of types that are refused, or whose
# cases take sequences from outside (`test_onnx_loops` and `test_onnx_recurrent` make them inside).
_NOT_COVERED = {
    *("BitShift", "Cast", "CastLike", "Celu", "Compress", "CumProd", "DepthToSpace"),
    *("DequantizeLinear", "Einsum", "Mod", "OneHot", "QuantizeLinear", "Range", "ReduceLogSum"),
    *("ReduceLogSumExp", "ReverseSequence", "Scatter", "SpaceToDepth", "Upsample"),
    *("SequenceAt", "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert"),
    *("SequenceLength", "ConcatFromSequence", "SplitToSequence", "GlobalLpPool"),
}


@cache
def _outcomes() -> list[tuple[Any, str]]:
    """Each case, and what comes of it."""
    return [(case, _outcome(case)) for case in _cases()]


def _cases() -> list[Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from onnx.backend.test.case.node import collect_testcases

        found: list[Any] = collect_testcases(None)
    return [case for case in found if _within(case.model)]


def _within(model: Any) -> bool:
    """Whether a case's operators are read. Those that are older than the first opset that is read,
    and the same in it, are said to be of that opset."""
    imports = [i for i in model.opset_import if i.domain in ("", "ai.onnx")]
    if not imports or imports[0].version > OPSETS[1]:
        return False
    if imports[0].version < OPSETS[0]:
        if not all(_is_unchanged(node.op_type, imports[0].version) for node in model.graph.node):
            return False
        imports[0].version = OPSETS[0]
    return True


def _is_unchanged(op: str, version: int) -> bool:
    try:
        schemas = [onnx.defs.get_schema(op, v) for v in (version, OPSETS[0])]
    except onnx.defs.SchemaError:
        return False
    return bool(schemas[0].since_version == schemas[1].since_version)


def _outcome(case: Any) -> str:
    try:
        module = read_onnx(case.model.SerializeToString())
        if not all(_is_tensor(value) for inputs, _ in case.data_sets for value in inputs):
            return "refused"
        for inputs, outputs in case.data_sets:
            problem = _difference(case, module, inputs, outputs)
            if problem:
                return problem
    except UnsupportedModel:
        return "refused"
    return "right"


def _difference(case: Any, module: OnnxModule, inputs: Any, outputs: Any) -> str:
    found = module(*map(_tensor, inputs))
    several = found if isinstance(found, tuple) else (found,)
    for actual, wanted in zip(several, map(np.asarray, outputs), strict=False):
        values = actual.float().numpy() if actual.dtype is torch.bfloat16 else actual.numpy()
        if values.shape != wanted.shape:
            return f"{case.name}: shape {values.shape}, not {wanted.shape}"
        if wanted.dtype.kind in "fV":
            rtol = max(case.rtol, _HALF if wanted.dtype.itemsize == 2 else 1e-3)
            close = np.allclose(
                values.astype(float), wanted.astype(float), rtol, 1e-5, equal_nan=True
            )
        else:
            close = values.dtype == wanted.dtype and np.array_equal(values, wanted)
        if not close:
            return f"{case.name}: {values.ravel()[:4]}, not {wanted.ravel()[:4]}"
    return ""


def _is_tensor(value: Any) -> bool:
    """No sequence, no optional that is missing, no text."""
    return not isinstance(value, list) and np.asarray(value).dtype.kind != "O"


def _tensor(value: Any) -> torch.Tensor:
    array = np.asarray(value)
    if array.dtype.name == "bfloat16":
        return torch.tensor(array.astype(np.float32)).to(torch.bfloat16)
    return torch.tensor(array)


def test_all_operator_cases() -> None:
    """None is wrong; what cannot be run is refused by a typed error."""
    outcomes = Counter(outcome for _, outcome in _outcomes())
    wrong = [text for text in outcomes if text not in ("right", "refused")]
    assert not wrong
    assert outcomes["right"] > 3 * outcomes["refused"]


def test_every_rule_has_a_case_that_it_gets_right() -> None:
    covered = {
        node.op_type
        for case, outcome in _outcomes()
        if len(case.model.graph.node) == 1 and outcome == "right"
        for node in case.model.graph.node
    }
    assert set(RULES) - covered <= _NOT_COVERED
