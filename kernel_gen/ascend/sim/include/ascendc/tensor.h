// GlobalTensor and LocalTensor.
#pragma once

#include "types.h"

namespace AscendC
{

template <typename T>
class GlobalTensor
{
public:
    using PrimType = T;

    void SetGlobalBuffer(__gm__ T *buffer, uint64_t bufferSize)
    {
        address_ = buffer;
        base_ = buffer;
        size_ = bufferSize;
    }
    void SetGlobalBuffer(__gm__ T *buffer) { SetGlobalBuffer(buffer, 0); }

    GlobalTensor operator[](const uint64_t offset) const
    {
        GlobalTensor part = *this;
        part.address_ = address_ + offset;
        part.size_ = size_ > offset ? size_ - offset : 0;
        return part;
    }

    T operator()(const uint64_t offset, gafsim::Where where = gafsim::Where::Here()) const
    {
        return GetValue(offset, where);
    }
    T GetValue(const uint64_t offset, gafsim::Where where = gafsim::Where::Here()) const
    {
        T value{};
        gafsim::ScalarRead((*this)[offset].Sim(), &value, where);
        return value;
    }
    void SetValue(const uint64_t offset, T value, gafsim::Where where = gafsim::Where::Here())
    {
        gafsim::ScalarWrite((*this)[offset].Sim(), &value, where);
    }

    const __gm__ T *GetPhyAddr() const { return address_; }
    __gm__ T *GetPhyAddr(const uint64_t offset) const { return address_ + offset; }
    uint64_t GetSize() const { return size_; }

    gafsim::Operand Sim() const
    {
        return {gafsim::Memory::GM, gafsim::TypeOf<T>::value, reinterpret_cast<uint64_t>(address_),
                reinterpret_cast<uint64_t>(base_), ~uint64_t{0}};
    }

private:
    __gm__ T *address_ = nullptr;
    __gm__ T *base_ = nullptr;  // tells which argument it belongs to
    uint64_t size_ = 0;
};

template <typename T>
class LocalTensor
{
public:
    using PrimType = T;

    LocalTensor() = default;
    LocalTensor(const gafsim::Buffer &buffer, TPosition position)
        : memory_(buffer.memory), position_(position), at_(buffer.at), low_(buffer.at),
          high_(buffer.at + buffer.bytes), size_(buffer.bytes / sizeof(T))
    {
    }

    // A tensor at an address of the caller's choice, without a TPipe.
    LocalTensor(TPosition position, uint32_t addr, uint32_t tileSize)
        : memory_(gafsim::MemoryOf(position)), position_(position), at_(addr), low_(addr),
          high_(addr + tileSize * static_cast<uint32_t>(sizeof(T))), size_(tileSize)
    {
        const uint32_t capacity = gafsim::CapacityOf(memory_);
        high_ = high_ < capacity ? high_ : capacity;
    }

    LocalTensor operator[](const uint32_t offset) const
    {
        LocalTensor part = *this;
        part.at_ = at_ + offset * static_cast<uint32_t>(sizeof(T));
        part.size_ = size_ > offset ? size_ - offset : 0;
        return part;
    }

    // A scalar store through the reference that the public API returns.
    class Element
    {
    public:
        Element(const LocalTensor &tensor, uint32_t offset, gafsim::Where where)
            : tensor_(tensor), offset_(offset), where_(where)
        {
        }
        Element &operator=(T value)
        {
            tensor_.SetValue(offset_, value, where_);
            return *this;
        }
        operator T() const { return tensor_.GetValue(offset_, where_); }

    private:
        LocalTensor tensor_;
        uint32_t offset_;
        gafsim::Where where_;
    };
    Element operator()(const uint32_t offset, gafsim::Where where = gafsim::Where::Here()) const
    {
        return Element(*this, offset, where);
    }

    T GetValue(const uint32_t index, gafsim::Where where = gafsim::Where::Here()) const
    {
        T value{};
        gafsim::ScalarRead((*this)[index].Sim(), &value, where);
        return value;
    }
    template <typename U>
    void SetValue(const uint32_t index, const U value,
                  gafsim::Where where = gafsim::Where::Here()) const
    {
        T stored = static_cast<T>(value);
        gafsim::ScalarWrite((*this)[index].Sim(), &stored, where);
    }

    template <typename U>
    LocalTensor<U> ReinterpretCast() const
    {
        LocalTensor<U> other;
        other.Assign(memory_, position_, at_, low_, high_,
                     static_cast<uint32_t>(uint64_t{size_} * sizeof(T) / sizeof(U)));
        return other;
    }

    void SetSize(const uint32_t size) { size_ = size; }
    uint32_t GetSize() const { return size_; }
    uint32_t GetLength() const { return size_ * static_cast<uint32_t>(sizeof(T)); }
    TPosition GetPosition() const { return position_; }
    uint64_t GetPhyAddr() const { return at_; }
    uint64_t GetPhyAddr(const uint32_t offset) const { return at_ + offset * sizeof(T); }
    template <typename U>
    void SetUserTag(const U tag)
    {
        tag_ = static_cast<int32_t>(tag);
    }
    int32_t GetUserTag() const { return tag_; }

    void Assign(gafsim::Memory memory, TPosition position, uint32_t at, uint32_t low, uint32_t high,
                uint32_t size)
    {
        memory_ = memory;
        position_ = position;
        at_ = at;
        low_ = low;
        high_ = high;
        size_ = size;
    }

    gafsim::Operand Sim() const { return {memory_, gafsim::TypeOf<T>::value, at_, low_, high_}; }

private:
    gafsim::Memory memory_ = gafsim::Memory::UB;
    TPosition position_ = TPosition::VECCALC;
    uint32_t at_ = 0;
    uint32_t low_ = 0;
    uint32_t high_ = 0;
    uint32_t size_ = 0;
    int32_t tag_ = -1;
};

}  // namespace AscendC
