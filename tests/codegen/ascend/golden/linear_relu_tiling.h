// What linear_relu is told of a call: extents, then the tile of each phase.
#pragma once

#include <stdint.h>

struct linear_relu_Tiling {
    int64_t s0;
    int64_t tileM0;
    int64_t tileN0;
    int64_t strip0;
    int64_t tileK0;
    int64_t chunkK0;
    int64_t stages0;
    int64_t kept0;
    int64_t chunkM0;
};
