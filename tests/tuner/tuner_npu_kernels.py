"""Hand-written Ascend C kernels for `scale_nest`: a right one, and one for each way to go wrong."""

from __future__ import annotations

from kernel_gen.codegen.source import KernelSource

_IN = """
    LocalTensor<float> a = in.AllocTensor<float>();
    DataCopy(a, xs, 1000);
    in.EnQue(a);
    a = in.DeQue<float>();
    LocalTensor<float> b = out.AllocTensor<float>();
"""
_OUT = """
    in.FreeTensor(a);
    out.EnQue(b);
    b = out.DeQue<float>();
"""
_MULTIPLY, _STORE, _END = "Muls(b, a, 2.0f, 1000);", "DataCopy(ys, b, 1000);", "out.FreeTensor(b);"
RIGHT = _IN + _MULTIPLY + _OUT + _STORE + _END
WRONG = RIGHT.replace("2.0f", "2.5f")
INCOMPLETE = _IN + _MULTIPLY + _OUT + "DataCopy(ys, b, 992);" + _END
OVERRUN = _IN + _MULTIPLY + _OUT + "DataCopy(ys, b, 1008);" + _END
WRITES_INPUT = _IN + _MULTIPLY + _OUT + "DataCopy(xs, b, 1000);" + _STORE + _END
FAR = _IN + _MULTIPLY + _OUT + "DataCopy(ys[1 << 24], b, 1000);" + _STORE + _END
RACE = _IN + _MULTIPLY + "DataCopy(ys, b, 1000);" + _OUT + _END
CRASH = "*reinterpret_cast<volatile int *>(8) = 1;"
ABORT = "__builtin_trap();"
HANG = "volatile int64_t forever = 1; while (forever) {}"
BROKEN = "this is no C++;"

_KERNEL = """
#include "kernel_operator.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void {entry}(GM_ADDR x, GM_ADDR y, GM_ADDR, GM_ADDR)
{{
    GlobalTensor<float> xs, ys;
    xs.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(x));
    ys.SetGlobalBuffer(reinterpret_cast<__gm__ float *>(y));
    TPipe pipe;
    TQue<TPosition::VECIN, 1> in;
    TQue<TPosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, 4096);
    pipe.InitBuffer(out, 1, 4096);
    {body}
}}
"""
_HEADER = "#pragma once\n#include <stdint.h>\nstruct {entry}_Tiling {{ int64_t none; }};\n"
_TILING = """
#include "{entry}_tiling.h"
extern "C" int tiling_{entry}(const int64_t *, int, {entry}_Tiling *out, uint32_t *blocks,
                              uint64_t *workspace)
{{
    out->none = 0;
    *blocks = 1;
    *workspace = 0;
    return 0;
}}
extern "C" uint64_t tiling_bytes_{entry}() {{ return sizeof({entry}_Tiling); }}
"""


_LAUNCH = """
#include "acl/acl.h"
#include "kernel_operator.h"
extern "C" __global__ __aicore__ void {entry}(GM_ADDR x, GM_ADDR y, GM_ADDR, GM_ADDR);
extern "C" void launch_{entry}(uint32_t blocks, aclrtStream stream, uint8_t *x, uint8_t *y,
                               uint8_t *workspace, uint8_t *tiling)
{{
    {entry}<<<blocks, nullptr, stream>>>(x, y, workspace, tiling);
}}
"""


def kernel(body: str, entry: str = "candidate") -> KernelSource:
    """A kernel over x and y with 1000 elements, for one core; `body` is Ascend C."""
    files = (
        (".cpp", _KERNEL),
        ("_tiling.h", _HEADER),
        ("_tiling.cpp", _TILING),
        ("_launch.cpp", _LAUNCH),
    )
    return KernelSource(
        entry, tuple((entry + name, text.format(entry=entry, body=body)) for name, text in files)
    )
