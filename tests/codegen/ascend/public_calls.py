"""Calls of the public Ascend C API as its documentation gives them: facts that generated sources
are held to, independent of the simulator's header.

A row of the table is a name, the most template arguments that may be written out, and the
parameters in order, one list per overload. `kind:name` tells a parameter's type where it is a plain
number; a parameter in brackets has a default.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_BINARY = (
    "dst src0 src1 int32_t:count | dst src0 src1 uint64_t:mask uint8_t:repeats BinaryRepeatParams"
)
_UNARY = "dst src int32_t:count | dst src uint64_t:mask uint8_t:repeats UnaryRepeatParams"
_SCALAR = (
    "dst src scalar int32_t:count | dst src scalar uint64_t:mask uint8_t:repeats UnaryRepeatParams"
)
_WHOLE = "dst src int32_t:mask int32_t:repeats int32_t:dstRepeat int32_t:srcBlock int32_t:srcRepeat"
_TABLE = f"""
Add               2 {_BINARY}
Sub               2 {_BINARY}
Mul               2 {_BINARY}
Div               2 {_BINARY}
Max               2 {_BINARY}
Min               2 {_BINARY}
And               2 {_BINARY}
Or                2 {_BINARY}
FusedMulAdd       2 {_BINARY}
Abs               2 {_UNARY}
Exp               2 {_UNARY}
Ln                2 {_UNARY}
Sqrt              2 {_UNARY}
Not               2 {_UNARY}
Adds              2 {_SCALAR}
Muls              2 {_SCALAR}
Maxs              2 {_SCALAR}
Mins              2 {_SCALAR}
ShiftLeft         2 {_SCALAR}
ShiftRight        2 {_SCALAR} [roundEn]
Duplicate         2 dst scalar int32_t:count | dst scalar uint64_t:mask uint8_t:repeats uint16_t:dstBlock uint8_t:dstRepeat
Cast              3 dst src RoundMode uint32_t:count | dst src RoundMode uint64_t:mask uint8_t:repeats UnaryRepeatParams
Compare           3 dst src0 src1 CMPMODE uint32_t:count | dst src0 src1 CMPMODE uint64_t:mask uint8_t:repeats BinaryRepeatParams
CompareScalar     3 dst src scalar CMPMODE uint32_t:count | dst src scalar CMPMODE uint64_t:mask uint8_t:repeats UnaryRepeatParams
Select            3 dst mask src0 src1 SELMODE uint32_t:count | dst mask src0 src1 SELMODE uint64_t:mask uint8_t:repeats BinaryRepeatParams
CreateVecIndex    1 dst first uint32_t:count
Gather            1 dst src offset uint32_t:base uint32_t:count | dst src offset uint32_t:base uint64_t:mask uint8_t:repeats uint16_t:dstRepeat
Brcb              1 dst src uint8_t:repeats BrcbRepeatParams
WholeReduceSum    2 {_WHOLE}
WholeReduceMax    2 {_WHOLE} [ReduceOrder]
WholeReduceMin    2 {_WHOLE} [ReduceOrder]
DataCopy          2 dst src uint32_t:count | dst src params
DataCopyPad       1 dst src DataCopyExtParams | dst src DataCopyExtParams DataCopyPadExtParams
InitConstValue    2 dst InitConstValueParams
LoadData          1 dst src LoadData2DParams
LoadDataWithTranspose 1 dst src LoadData2dTransposeParams
Mmad              4 dst fm filter MmadParams | dst fm filter bias MmadParams
Fixpipe           3 dst src FixpipeParamsV220

DataCopyParams            0 | uint16_t:blockCount uint16_t:blockLen uint16_t:srcGap uint16_t:dstGap
DataCopyExtParams         0 | uint16_t:blockCount uint32_t:blockLen uint32_t:srcStride uint32_t:dstStride uint32_t:rsv
DataCopyPadExtParams      1 | bool:isPad uint8_t:left uint8_t:right value
BinaryRepeatParams        0 | uint8_t:dstBlock uint8_t:src0Block uint8_t:src1Block uint8_t:dstRepeat uint8_t:src0Repeat uint8_t:src1Repeat
UnaryRepeatParams         0 | uint16_t:dstBlock uint16_t:srcBlock uint8_t:dstRepeat uint8_t:srcRepeat
BrcbRepeatParams          0 | uint16_t:dstBlock uint16_t:dstRepeat
Nd2NzParams               0 | uint16_t:matrices uint16_t:rows uint16_t:columns uint16_t:srcMatrix uint16_t:srcRow uint16_t:c0Stride uint16_t:rowStride uint16_t:dstMatrix
InitConstValueParams      1 | uint16_t:repeats uint16_t:blocks uint16_t:gap value
LoadData2DParams          0 | uint16_t:start uint8_t:repeats uint16_t:srcStride uint8_t:sid uint16_t:dstGap bool:transpose uint8_t:addrMode
LoadData2dTransposeParams 0 | uint16_t:start uint8_t:repeats uint16_t:srcStride uint16_t:dstGap uint16_t:dstFracGap [uint8_t:addrMode]
MmadParams                0 | uint16_t:m uint16_t:n uint16_t:k uint8_t:unitFlag bool:cmatrixSource bool:cmatrixInitVal
FixpipeParamsV220         0 | uint16_t:nSize uint16_t:mSize uint16_t:srcStride uint32_t:dstStride bool:relu

TPipe             0 |
TQue              3 |
TBuf              1 |
GlobalTensor      1 |
LocalTensor       1 |
InitBuffer        0 queue uint8_t:number uint32_t:bytes | buffer uint32_t:bytes
AllocTensor       1 |
FreeTensor        1 tensor
EnQue             1 tensor
DeQue             1 |
Get               1 | uint32_t:count
Reset             0 |
FetchEventID      1 | HardEvent
SetGlobalBuffer   0 address | address uint64_t:bytes
GetValue          0 uint32_t:offset
SetValue          1 uint32_t:offset value
GetPhyAddr        0 | uint32_t:offset
ReinterpretCast   1 |
GetTPipePtr       0 |

PipeBarrier       1 |
SetFlag           1 event
WaitFlag          1 event
SyncAll           1 |
CrossCoreSetFlag  2 uint16_t:flag
CrossCoreWaitFlag 2 uint16_t:flag
GetBlockIdx       0 |
GetBlockNum       0 |
KERNEL_TASK_TYPE_DEFAULT 0 type
"""  # noqa: E501
_WORDS = {
    "TPosition": "GM A1 A2 B1 B2 C1 C2 CO1 CO2 VECIN VECOUT VECCALC",
    "RoundMode": "CAST_NONE CAST_RINT CAST_FLOOR CAST_CEIL CAST_ROUND CAST_TRUNC CAST_ODD",
    "CMPMODE": "LT GT EQ LE GE NE",
    "SELMODE": "VSEL_CMPMASK_SPR VSEL_TENSOR_SCALAR_MODE VSEL_TENSOR_TENSOR_MODE",
    "HardEvent": "MTE2_MTE1 MTE1_MTE2 MTE1_M M_MTE1 MTE2_V V_MTE2 MTE3_V V_MTE3 M_V V_M S_V V_S "
    "MTE3_MTE2 MTE2_MTE3 S_MTE2 MTE2_S S_MTE3 MTE3_S M_FIX FIX_M",
    "QuantMode_t": "NoQuant F322F16 F322BF16 DEQF16 VDEQF16 QF322B8_PRE VQF322B8_PRE REQ8 VREQ8",
    "ReduceOrder": "ORDER_VALUE_INDEX ORDER_INDEX_VALUE ORDER_ONLY_VALUE ORDER_ONLY_INDEX",
    "PIPE_": "S V M MTE1 MTE2 MTE3 FIX ALL",
    "KERNEL_TYPE_": "AIV_ONLY AIC_ONLY MIX_AIV_1_0 MIX_AIC_1_0 MIX_AIC_1_1 MIX_AIC_1_2",
}
"""Enumerations, and words that begin alike."""
PUBLIC_WORDS = {
    *(f"{kind}::{word}" for kind, words in _WORDS.items() if kind[-1] != "_"
      for word in words.split()),
    *(f"{kind}{word}" for kind, words in _WORDS.items() if kind[-1] == "_"
      for word in words.split()),
}  # fmt: skip
_WORD = re.compile(r"\b(?:" + "|".join(
    f"{kind}::\\w+" if kind[-1] != "_" else f"{kind}\\w+" for kind in _WORDS
) + r")\b")  # fmt: skip


@dataclass(frozen=True, slots=True)
class Call:
    """A call, or the declaration of a variable with arguments (None: without parentheses)."""

    name: str
    templates: int
    arguments: tuple[str, ...] | None
    text: str


@dataclass(frozen=True, slots=True)
class Signature:
    """`overloads` are lists of parameters; those in brackets may be left out."""

    templates: int
    overloads: tuple[tuple[str, ...], ...]

    def takes(self, call: Call) -> bool:
        if call.templates > self.templates:
            return False
        arguments = call.arguments
        return arguments is None or any(_fits(p, arguments) for p in self.overloads)


def _signature(row: str) -> tuple[str, Signature]:
    name, templates, *rest = row.split(maxsplit=2)
    overloads = [tuple(part.split()) for part in "".join(rest).split("|")]
    return name, Signature(int(templates), tuple(overloads))


SIGNATURES = dict(_signature(row) for row in _TABLE.strip().splitlines() if row)
_NAMED = re.compile(r"([A-Z]\w+)(?:<[^>]*>)?(?:\(|::)")
_CAST = re.compile(r"static_cast<(\w+)>\(")
_INTEGER = re.compile(r"-?\d+")
_TRUTH = re.compile(r"true|false")


def _fits(parameters: tuple[str, ...], arguments: tuple[str, ...]) -> bool:
    least = sum(not p.startswith("[") for p in parameters)
    if not least <= len(arguments) <= len(parameters):
        return False
    pairs = zip(parameters, arguments, strict=False)
    return all(_is_of(parameter.strip("[]"), argument) for parameter, argument in pairs)


def _is_of(parameter: str, argument: str) -> bool:
    """Whether an argument may be this parameter, as far as its text tells: casts and literals of
    numbers by their type, constructed structures and words of enumerations by their name."""
    kind, colon, _ = parameter.partition(":")
    named = _NAMED.match(argument)
    if named and (named[1] in _WORDS or kind[0].isupper()):
        return named[1] == kind
    cast = _CAST.match(argument)
    if kind[0].isupper():  # a structure or an enumeration
        return cast is None and not _INTEGER.fullmatch(argument)
    if kind == "bool":
        return cast is None and not _INTEGER.fullmatch(argument)
    if colon:
        return not _TRUTH.fullmatch(argument) and (cast is None or cast[1] == kind)
    return kind in ("scalar", "value", "first") or not _INTEGER.fullmatch(argument)


# ---- reading sources -----------------------------------------------------------------------------

_NAME = re.compile(
    r"(?<![\w:])(?:AscendC::)?([A-Z]\w+)(?=[<({])|(?<![\w:])([A-Z]\w+)(?=\s+\w+\s*[;({=])"
)
_CLOSING = {"(": ")", "{": "}", "<": ">"}


def calls(text: str) -> Iterator[Call]:
    """All calls and declarations of names in capitals. Declared functions count as calls of their
    parameters."""
    text = re.sub(r"//.*", "", text).replace("->", ". ")
    for found in _NAME.finditer(text):
        name, at, templates = found[1] or found[2], found.end(), 0
        if text[at] == "<":
            end = _end(text, at)
            templates, at = len(_split(text[at + 1 : end])), end + 1
        opening = (
            re.compile(r"(?:\s+\w+)?([({])").match(text, at) if found[2] or templates else None
        )
        opening = opening or re.compile(r"([({])").match(text, at)
        arguments = None
        if opening:
            start = opening.start(1)
            arguments = _split(text[start + 1 : _end(text, start)])
        yield Call(name, templates, arguments, text[found.start() : at + 60].split("\n")[0])


def words(text: str) -> set[str]:
    """Words of public enumerations, or that begin like one."""
    return set(_WORD.findall(re.sub(r"//.*", "", text)))


def _end(text: str, at: int) -> int:
    """Where what opens at `at` is closed."""
    opening, closing, depth = text[at], _CLOSING[text[at]], 0
    for i in range(at, len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if depth == 0:
            return i
    raise AssertionError(f"never closed: {text[at : at + 80]}")


def _split(text: str) -> tuple[str, ...]:
    """Arguments between the commas of the outermost level."""
    parts, opened, start = [], "", 0
    for i, c in enumerate(text):
        named = i > 0 and (text[i - 1].isalnum() or text[i - 1] == "_")
        if c in "([{" or (c == "<" and named):
            opened += c
        elif c in ")]}" or (c == ">" and opened.endswith("<")):
            opened = opened[:-1]
        elif c == "," and not opened:
            parts.append(text[start:i].strip())
            start = i + 1
    last = text[start:].strip()
    return (*parts, last) if parts or last else ()
