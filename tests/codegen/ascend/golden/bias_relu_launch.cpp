// Launches bias_relu on a stream. Operands lie in device memory (x0: half, x1: half, y0: half);
// `tiling` is a bias_relu_Tiling there.
#include "acl/acl.h"
#include "kernel_operator.h"

extern "C" __global__ __aicore__ void bias_relu(GM_ADDR x0, GM_ADDR x1, GM_ADDR y0, GM_ADDR workspace, GM_ADDR tiling);

extern "C" void launch_bias_relu(uint32_t blockDim, aclrtStream stream, uint8_t *x0, uint8_t *x1, uint8_t *y0, uint8_t *workspace, uint8_t *tiling)
{
    bias_relu<<<blockDim, nullptr, stream>>>(x0, x1, y0, workspace, tiling);
}
