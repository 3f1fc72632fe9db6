// Launches softmax on a stream. Operands lie in device memory (x0: float, y0: float);
// `tiling` is a softmax_Tiling there.
#include "acl/acl.h"
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void softmax(GM_ADDR x0, GM_ADDR y0, GM_ADDR workspace, GM_ADDR tiling);

extern "C" void launch_softmax(uint32_t blockDim, aclrtStream stream, uint8_t *x0, uint8_t *y0, uint8_t *workspace, uint8_t *tiling)
{
    softmax<<<blockDim, nullptr, stream>>>(x0, y0, workspace, tiling);
}
