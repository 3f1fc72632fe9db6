// The arithmetic of vector instructions, on flat arrays.
#pragma once

#include "core.h"

namespace gafsim
{

struct Scalars {
    double real;
    int64_t integer;
};

// d[i] = f(d[i], a[i], b[i]) for n lanes.
using Flat = void (*)(void *d, const void *a, const void *b, uint64_t n, const Scalars &scalars);

// Null where the chip has no such instruction for these types.
Flat ArithmeticOf(Op op, Type dst, Type src);

// Half and float arrays; values keep their bits where they are NaN.
void Widen(const uint16_t *from, float *to, uint64_t n);
void Narrow(const float *from, uint16_t *to, uint64_t n);

// Conversion with a rounding mode (RoundMode of the public API). False: no such conversion.
bool ConvertLanes(Type dst_type, Type src_type, void *dst, const void *src, uint64_t n, int round);
bool CanConvert(Type dst, Type src);
bool CanRound(Type dst, Type src, int round);

}  // namespace gafsim
