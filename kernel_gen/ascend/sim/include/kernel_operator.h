// The simulator's implementation of the public Ascend C API, for the host's C++ compiler.
//
// Kernels include this one header, as they do on a device. Names, signatures, argument order and
// meaning follow the public API documentation; the parts are split by subject.
#pragma once

#include "ascendc/types.h"
#include "ascendc/tensor.h"
#include "ascendc/queue.h"
#include "ascendc/sync.h"
#include "ascendc/vector.h"
#include "ascendc/copy.h"
#include "ascendc/compare.h"
#include "ascendc/reduce.h"
#include "ascendc/rearrange.h"
#include "ascendc/math.h"
#include "ascendc/cube.h"
