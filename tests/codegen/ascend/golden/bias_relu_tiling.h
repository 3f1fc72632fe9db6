// What bias_relu is told of a call: extents, then the tile of each phase.
#pragma once

#include <stdint.h>

struct bias_relu_Tiling {
    int64_t s0;
    int64_t s1;
    int64_t height0;
    int64_t width0;
    int64_t key0;
};
