// Events, barriers and flags between cores; who the running core is.
#pragma once

#include "tensor.h"

namespace AscendC
{

template <HardEvent event>
inline void SetFlag(int32_t eventID, gafsim::Where where = gafsim::Where::Here())
{
    constexpr gafsim::PipePair pair = gafsim::PipesOf(event);
    gafsim::SetEvent(pair.from, pair.to, eventID, where);
}

template <HardEvent event>
inline void WaitFlag(int32_t eventID, gafsim::Where where = gafsim::Where::Here())
{
    constexpr gafsim::PipePair pair = gafsim::PipesOf(event);
    gafsim::WaitEvent(pair.from, pair.to, eventID, where);
}

template <pipe_t pipe>
inline void PipeBarrier(gafsim::Where where = gafsim::Where::Here())
{
    static_assert(pipe != PIPE_S,
                  "the scalar pipe is in order; PipeBarrier<PIPE_S> does not exist");
    gafsim::Barrier(static_cast<gafsim::Pipe>(pipe), where);
}

template <bool isAIVOnly = true>
inline void SyncAll(gafsim::Where where = gafsim::Where::Here())
{
    gafsim::SyncCores(isAIVOnly, where);
}

// The form with counters in GM and UB does the same by hand; the counters are not needed here.
template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t> &, const LocalTensor<int32_t> &, const int32_t = 0,
                    gafsim::Where where = gafsim::Where::Here())
{
    gafsim::SyncCores(isAIVOnly, where);
}

template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::SetCoreFlag(modeId, static_cast<gafsim::Pipe>(pipe), flagId, where);
}

template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, gafsim::Where where = gafsim::Where::Here())
{
    gafsim::WaitCoreFlag(static_cast<gafsim::Pipe>(pipe), flagId, where);
}

inline int64_t GetBlockIdx()
{
    return gafsim::BlockIndex();
}
inline int64_t GetBlockNum()
{
    return gafsim::BlockCount();
}
inline int64_t GetSubBlockIdx()
{
    return gafsim::SubBlockIndex();
}
inline int64_t GetSubBlockNum()
{
    return gafsim::SubBlockCount();
}
inline int64_t GetTaskRatio()
{
    return gafsim::TaskRatio();
}

// The whole workspace is the kernel's own here: nothing of it is reserved.
inline GM_ADDR GetUserWorkspace(GM_ADDR workspace)
{
    return workspace;
}

template <typename T>
inline void SetAtomicAdd()
{
    gafsim::SetAtomic(1, gafsim::TypeOf<T>::value);
}
template <typename T>
inline void SetAtomicMax()
{
    gafsim::SetAtomic(2, gafsim::TypeOf<T>::value);
}
template <typename T>
inline void SetAtomicMin()
{
    gafsim::SetAtomic(3, gafsim::TypeOf<T>::value);
}
inline void SetAtomicNone()
{
    gafsim::SetAtomic(0, gafsim::Type::F32);
}

}  // namespace AscendC

#define KERNEL_TYPE_AIV_ONLY 0
#define KERNEL_TYPE_AIC_ONLY 1
#define KERNEL_TYPE_MIX_AIV_1_0 2
#define KERNEL_TYPE_MIX_AIC_1_0 3
#define KERNEL_TYPE_MIX_AIC_1_1 4
#define KERNEL_TYPE_MIX_AIC_1_2 5
#define KERNEL_TASK_TYPE_DEFAULT(kind) ::gafsim::DeclareTask(kind)
#define KERNEL_TASK_TYPE(key, kind) ::gafsim::DeclareTask(kind)
#define ASCEND_IS_AIC (::gafsim::IsCubeCore())
#define ASCEND_IS_AIV (!::gafsim::IsCubeCore())
