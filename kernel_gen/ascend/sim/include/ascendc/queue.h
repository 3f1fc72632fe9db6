// TPipe, TQueBind, TQue, TBuf.
#pragma once

#include "tensor.h"

namespace gafsim
{

// The pipe that fills a queue's buffers and the one that empties them.
constexpr Pipe ProducerOf(AscendC::TPosition source)
{
    using P = AscendC::TPosition;
    switch (source) {
        case P::A1:
        case P::B1:
        case P::C1:
        case P::VECIN:
        case P::GM: return Pipe::MTE2;
        case P::A2:
        case P::B2:
        case P::C2: return Pipe::MTE1;
        case P::CO1: return Pipe::M;
        case P::TSCM: return Pipe::MTE3;
        default: return Pipe::V;
    }
}
constexpr Pipe ConsumerOf(AscendC::TPosition target)
{
    using P = AscendC::TPosition;
    switch (target) {
        case P::A1:
        case P::B1:
        case P::C1:
        case P::TSCM: return Pipe::MTE1;
        case P::A2:
        case P::B2:
        case P::C2: return Pipe::M;
        case P::CO1: return Pipe::FIX;
        case P::VECOUT:
        case P::GM: return Pipe::MTE3;
        default: return Pipe::V;
    }
}

}  // namespace gafsim

namespace AscendC
{

class TPipe;

// The bookkeeping lies in the runtime, which finds it by the queue's address.
template <TPosition src, TPosition dst, int32_t depth, auto mask = 0>
class TQueBind
{
public:
    TQueBind() = default;
    TQueBind(const TQueBind &) = delete;
    TQueBind &operator=(const TQueBind &) = delete;

    template <typename T>
    LocalTensor<T> AllocTensor(gafsim::Where where = gafsim::Where::Here())
    {
        static_assert(depth > 0, "a queue of depth 0 allocates in place");
        return LocalTensor<T>(gafsim::QueueAlloc(this, where), src);
    }
    template <typename T>
    void AllocTensor(LocalTensor<T> &tensor, gafsim::Where where = gafsim::Where::Here())
    {
        tensor = LocalTensor<T>(gafsim::QueueAlloc(this, where), src);
    }
    template <typename T>
    bool EnQue(const LocalTensor<T> &tensor, gafsim::Where where = gafsim::Where::Here())
    {
        gafsim::QueueEnque(this, tensor.GetPhyAddr(), where);
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue(gafsim::Where where = gafsim::Where::Here())
    {
        return LocalTensor<T>(gafsim::QueueDeque(this, where), dst);
    }
    template <typename T>
    void DeQue(LocalTensor<T> &tensor, gafsim::Where where = gafsim::Where::Here())
    {
        tensor = LocalTensor<T>(gafsim::QueueDeque(this, where), dst);
    }
    // The same buffer on its way in (GM to VECIN) and out (VECOUT to GM), with arithmetic between.
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    bool EnQue(const LocalTensor<T> &tensor, gafsim::Where where = gafsim::Where::Here())
    {
        const gafsim::Pipe from = gafsim::ProducerOf(srcUserPos);
        gafsim::QueueEnque(this, tensor.GetPhyAddr(), where, &from);
        return true;
    }
    template <TPosition srcUserPos, TPosition dstUserPos, typename T>
    LocalTensor<T> DeQue(gafsim::Where where = gafsim::Where::Here())
    {
        const gafsim::Pipe to = gafsim::ConsumerOf(dstUserPos);
        return LocalTensor<T>(gafsim::QueueDeque(this, where, &to), dst);
    }
    template <typename T>
    void FreeTensor(LocalTensor<T> &tensor, gafsim::Where where = gafsim::Where::Here())
    {
        gafsim::QueueFree(this, tensor.GetPhyAddr(), where);
    }
    bool HasTensorInQue() const { return gafsim::QueueCount(this) > 0; }
    int32_t GetTensorCountInQue() const { return gafsim::QueueCount(this); }
    bool VacantInQue() const { return gafsim::QueueCount(this) < (depth > 0 ? depth : 1); }
    bool HasIdleBuffer() const { return gafsim::QueueIdle(this); }
    void FreeAllEvent() {}

private:
    friend class TPipe;
    void Init(uint8_t number, uint32_t length, gafsim::Where where)
    {
        constexpr bool bound = src == TPosition::VECIN && dst == TPosition::VECOUT;
        constexpr gafsim::Pipe from = gafsim::ProducerOf(bound ? TPosition::VECIN : src);
        constexpr gafsim::Pipe to = gafsim::ConsumerOf(dst);
        gafsim::QueueInit(this, gafsim::kMemoryOf<src>, static_cast<int>(src), from, to,
                          depth > 0 ? depth : 1, number, length, where);
    }
    char place_ = 0;
};

template <TPosition pos, int32_t depth, auto mask = 0>
class TQue : public TQueBind<pos, pos, depth, mask>
{
};

template <TPosition pos = TPosition::LCM>
class TBuf
{
public:
    template <typename T>
    LocalTensor<T> Get() const
    {
        return LocalTensor<T>(buffer_, pos);
    }
    template <typename T>
    LocalTensor<T> Get(uint32_t len) const
    {
        LocalTensor<T> tensor = Get<T>();
        tensor.SetSize(len);
        return tensor;
    }
    template <typename T>
    LocalTensor<T> GetWithOffset(uint32_t size, uint32_t bufOffset) const
    {
        LocalTensor<T> tensor;
        tensor.Assign(buffer_.memory, pos, buffer_.at + bufOffset, buffer_.at,
                      buffer_.at + buffer_.bytes, size);
        return tensor;
    }

private:
    friend class TPipe;
    gafsim::Buffer buffer_ = {gafsim::kMemoryOf<pos>, 0, 0};
};

class TPipe
{
public:
    TPipe() { gafsim::NewPipe(this); }
    TPipe(const TPipe &) = delete;
    TPipe &operator=(const TPipe &) = delete;

    template <TPosition src, TPosition dst, int32_t depth, auto mask>
    bool InitBuffer(TQueBind<src, dst, depth, mask> &que, uint8_t num, uint32_t len,
                    gafsim::Where where = gafsim::Where::Here())
    {
        que.Init(num, len, where);
        return true;
    }
    template <TPosition pos>
    bool InitBuffer(TBuf<pos> &buf, uint32_t len, gafsim::Where where = gafsim::Where::Here())
    {
        buf.buffer_ =
            gafsim::Reserve(gafsim::kMemoryOf<pos>, len, static_cast<int>(pos), false, where);
        return true;
    }

    void Init() {}
    void Destroy() {}
    void Reset() { gafsim::ResetPipe(); }

    template <HardEvent evt>
    TEventID AllocEventID(gafsim::Where where = gafsim::Where::Here())
    {
        constexpr gafsim::PipePair pair = gafsim::PipesOf(evt);
        return static_cast<TEventID>(gafsim::AllocEvent(pair.from, pair.to, where));
    }
    template <HardEvent evt>
    void ReleaseEventID(TEventID id, gafsim::Where where = gafsim::Where::Here())
    {
        constexpr gafsim::PipePair pair = gafsim::PipesOf(evt);
        gafsim::ReleaseEvent(pair.from, pair.to, id, where);
    }
    TEventID FetchEventID(HardEvent evt, gafsim::Where where = gafsim::Where::Here())
    {
        const gafsim::PipePair pair = gafsim::PipesOf(evt);
        return static_cast<TEventID>(gafsim::FetchEvent(pair.from, pair.to, where));
    }
    template <HardEvent evt>
    TEventID FetchEventID(gafsim::Where where = gafsim::Where::Here())
    {
        return FetchEventID(evt, where);
    }
};

}  // namespace AscendC

// The running core's pipe.
inline AscendC::TPipe *GetTPipePtr()
{
    return static_cast<AscendC::TPipe *>(gafsim::CurrentPipe());
}
