"""Framework nodes: calls of torch's own operators, encoded as attributes of a graph node.

A target is "aten.sort.default" or "prims.name.overload". Arguments are one attribute, a pair of
positional and keyword arguments; each argument is plain (None, bool, int, float, str) or a tagged
tuple: ("value", position among the node's inputs), ("complex", position of pairs that are its real
and imaginary parts), ("number", real part, imaginary part), ("list", item…), ("dtype", "f32"),
("format", "channels_last"), ("layout", "strided"), ("device", "cpu").

Graphs may come from anyone, so `resolve` finds operators by an allow-list and never by attribute
look-up of arbitrary names.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import torch

from kernel_gen.errors import InvalidGraph, UnsupportedModel
from kernel_gen.frontend.dtypes import from_torch, is_supported, to_torch
from kernel_gen.frontend.lower.core import Pair
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.graph import Attr

_DTYPES = frozenset(dtype.value for dtype in DType)
_TARGET = re.compile(r"(aten|prims)\.([a-z][a-z0-9_]*|_[a-z][a-z0-9_]*)\.([A-Za-z0-9_]+)\Z")
_FORMATS = {
    "contiguous": torch.contiguous_format,
    "preserve": torch.preserve_format,
    "channels_last": torch.channels_last,
    "channels_last_3d": torch.channels_last_3d,
}
# Operators whose inputs are trusted to be consistent, that reach outside the process, that change
# global state, or that write to arguments without saying so. Whatever else begins with an
# underscore is refused unless listed below.
_REFUSED = re.compile(
    r"from_file|nested|sparse|quant|cudnn|miopen|mkldnn|coo|csr|record_stream|set_data|"
    r"resize|rename|pin_memory|as_subclass|requires_grad|retain_grad|backward\Z|"
    r"batch_norm\Z|instance_norm"
)
_PRIVATE = frozenset(
    [
        "_softmax",
        "_log_softmax",
        "_safe_softmax",
        "_to_copy",
        "_unsafe_view",
        "_unsafe_index",
        "_weight_norm",
        "_weight_norm_interface",
        "_native_batch_norm_legit_functional",
        "_native_batch_norm_legit_no_training",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_attention_math",
        "_adaptive_avg_pool2d",
        "_adaptive_avg_pool3d",
        "_cdist_forward",
        "_pdist_forward",
        "_euclidean_dist",
        "_embedding_bag",
        "_embedding_bag_forward_only",
        "_fft_c2c",
        "_fft_c2r",
        "_fft_r2c",
        "_fused_rms_norm",
        "_prelu_kernel",
        "_local_scalar_dense",
        "_conj",
        "_trilinear",
        "_linalg_det",
        "_linalg_slogdet",
        "_linalg_svd",
        "_linalg_eigh",
        "_linalg_solve_ex",
        "_ctc_loss",
        "_fused_dropout",
        "_grid_sampler_2d_cpu_fallback",
        "_upsample_bilinear2d_aa",
        "_upsample_bicubic2d_aa",
        "_upsample_nearest_exact1d",
        "_upsample_nearest_exact2d",
        "_upsample_nearest_exact3d",
        "_thnn_fused_lstm_cell",
        "_native_multi_head_attention",
        "_transformer_encoder_layer_fwd",
        "_stack",
        "_unique",
        "_unique2",
        "_assert_tensor_metadata",
        "_int_mm",
        "_masked_softmax",
        "_chunk_cat",
    ]
)


def encode(
    args: Sequence[Any], kwargs: dict[str, Any], position: Callable[[Any], int | None]
) -> Attr:
    """Arguments as one attribute. `position` numbers tensors and gives None for all else."""
    positional = tuple(_encode(arg, position) for arg in args)
    named = tuple((name, _encode(kwargs[name], position)) for name in sorted(kwargs))
    return positional, named


def _encode(arg: Any, position: Callable[[Any], int | None]) -> Attr:
    place = position(arg)
    if place is not None:
        return ("complex" if isinstance(arg, Pair) else "value", place)
    match arg:
        case None | bool() | int() | float() | str():
            return arg
        case complex():
            return ("number", arg.real, arg.imag)
        case list() | tuple():
            return ("list", *(_encode(item, position) for item in arg))
        case torch.dtype():
            return ("dtype", str(from_torch(arg)))
        case torch.memory_format():
            return ("format", next(name for name, f in _FORMATS.items() if f == arg))
        case torch.device():
            return ("device", arg.type)
        case torch.layout() if arg == torch.strided:
            return ("layout", "strided")
    raise UnsupportedModel(f"argument {arg!r} of a torch operator cannot be stored in a graph")


def decode(encoded: Attr, values: Sequence[Any]) -> tuple[list[Any], dict[str, Any]]:
    """Positional and keyword arguments with tensors from `values`; raises InvalidGraph."""
    match encoded:
        case (tuple() as positional, tuple() as named):
            pairs = [_pair(item) for item in named]
            return (
                [_decode(arg, values) for arg in positional],
                {name: _decode(arg, values) for name, arg in pairs},
            )
    raise InvalidGraph(f"framework node: arguments {encoded!r} are not (positional, named)")


def _pair(item: Attr) -> tuple[str, Attr]:
    match item:
        case (str() as name, value):
            return name, value
    raise InvalidGraph(f"framework node: keyword argument {item!r} is not (name, value)")


def _decode(arg: Attr, values: Sequence[Any]) -> Any:
    match arg:
        case None | bool() | int() | float() | str():
            return arg
        case ("value", int() as place) if 0 <= place < len(values):
            return values[place]
        case ("complex", int() as place) if 0 <= place < len(values):
            return _complex(values[place])
        case ("number", float() as real, float() as imaginary):
            return complex(real, imaginary)
        case ("list", *items):
            return [_decode(item, values) for item in items]
        case ("dtype", str() as name) if name in _DTYPES:
            return to_torch(DType(name))
        case ("format", str() as name) if name in _FORMATS:
            return _FORMATS[name]
        case ("device", "cpu"):
            return torch.device("cpu")
        case ("layout", "strided"):
            return torch.strided
    raise InvalidGraph(f"framework node: argument {arg!r} is not understood")


def _complex(pairs: torch.Tensor) -> torch.Tensor:
    if pairs.dtype not in (torch.float32, torch.float64) or pairs.shape[-1:] != (2,):
        raise InvalidGraph(
            f"framework node: {pairs.dtype} of shape {tuple(pairs.shape)} holds no complex numbers"
        )
    return torch.view_as_complex(pairs.contiguous())


def split_target(target: str) -> tuple[str, str, str]:
    """Namespace, name and overload of an allowed target; raises InvalidGraph."""
    match = _TARGET.match(target)
    if match is None:
        raise InvalidGraph(f"framework node: target {target[:100]!r} is not aten.name.overload")
    namespace, name, overload = match.groups()
    if _REFUSED.search(name) or (name.startswith("_") and name not in _PRIVATE):
        raise InvalidGraph(f"framework node: operator {target} is not on the allow-list")
    return namespace, name, overload


def is_allowed(target: str) -> bool:
    """Whether `resolve` would accept `target`."""
    try:
        resolve(target)
    except InvalidGraph:
        return False
    return True


def resolve(target: str) -> Callable[..., Any]:
    """The torch operator of a target, if it is allowed and free of side effects.

    Refused with InvalidGraph: names outside aten and prims, private operators that are not
    listed, operators that write to an argument, and those that return no tensor.
    """
    namespace, name, overload = split_target(target)
    qualified = f"{namespace}::{name}"
    known = torch._C._jit_get_schemas_for_operator(qualified)
    wanted = "" if overload == "default" else overload
    if not any(schema.overload_name == wanted for schema in known):
        raise InvalidGraph(f"framework node: this torch has no operator {target}")
    packet = getattr(getattr(torch.ops, namespace), name)
    found = getattr(packet, overload)
    if not isinstance(found, torch._ops.OpOverload):
        raise InvalidGraph(f"framework node: {target} is not an operator")
    schema = found._schema
    if schema.is_mutable:
        raise InvalidGraph(f"framework node: operator {target} writes to its arguments")
    if not schema.returns or any("Tensor" not in str(r.type) for r in schema.returns):
        raise InvalidGraph(f"framework node: operator {target} returns more than tensors")
    return found


def resolve_in_place(target: str) -> Callable[..., Any]:
    """The operator that writes the results of `resolve(target)` into its first argument, and
    nothing else. Raises InvalidGraph where torch has none."""
    namespace, name, overload = split_target(target)
    resolve(target)
    packet = getattr(getattr(torch.ops, namespace), f"{name}_", None)
    found = getattr(packet, overload, None)
    if not isinstance(found, torch._ops.OpOverload):
        raise InvalidGraph(f"framework node: torch has no {target} in place")
    written = [a.alias_info is not None and a.alias_info.is_write for a in found._schema.arguments]
    if written[:1] != [True] or any(written[1:]):
        raise InvalidGraph(f"framework node: {target} in place writes to other arguments")
    return found


def unsupported_tensor(tensor: torch.Tensor, *, pairs: bool = False) -> str | None:
    """Why a tensor cannot be a value of a graph, or None; with `pairs` complex tensors can."""
    is_pair = pairs and tensor.dtype in (torch.complex64, torch.complex128)
    if tensor.device.type not in ("cpu", "meta"):
        return f"device {tensor.device.type} (move the model and its inputs to the CPU)"
    if tensor.layout != torch.strided:
        return f"layout {tensor.layout}"
    if not is_pair and not is_supported(tensor.dtype):
        return f"element type {tensor.dtype}"
    return None
