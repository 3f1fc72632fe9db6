// Who touched which bytes last: an interval map from addresses to the last write and the reads
// since. Byte-exact, and small, because kernels touch whole tiles.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "../include/ascendc/sim.h"

namespace gafsim
{

// One instruction's touch, as far as later instructions need to know it.
struct Touch {
    uint32_t core = 0;
    Pipe pipe = Pipe::S;
    uint32_t number = 0;  // of the instruction in its pipe, from 1; 0 is no touch
    bool atomic = false;
    Where where = {nullptr, 0};

    bool SameUnit(const Touch &other) const { return core == other.core && pipe == other.pipe; }
};

// Touches, the first two of them without memory of their own.
class Readers
{
public:
    Touch *begin() { return more_.empty() ? first_ : more_.data(); }
    Touch *end() { return begin() + count_; }
    void clear()
    {
        count_ = 0;
        more_.clear();
    }
    void push_back(const Touch &touch)
    {
        if (count_ == kFirst && more_.empty()) {
            more_.assign(first_, first_ + kFirst);
        }
        if (count_ < kFirst) {
            first_[count_] = touch;
        } else {
            more_.push_back(touch);
        }
        ++count_;
    }

private:
    static constexpr uint32_t kFirst = 2;
    uint32_t count_ = 0;
    Touch first_[kFirst];
    std::vector<Touch> more_;  // all of them, where there are more
};

struct Span {
    uint64_t end = 0;
    bool written = false;  // false: poison
    Touch writer;
    Readers readers;

    // Of each unit the last reader is kept, which comes after all others, and the one before it:
    // the last may be the instruction that writes here next.
    void ReadBy(const Touch &own)
    {
        Touch *older = nullptr;
        int known = 0;
        for (Touch &reader : readers) {
            if (reader.SameUnit(own)) {
                if (reader.number == own.number) {
                    return;
                }
                ++known;
                older = older == nullptr || reader.number < older->number ? &reader : older;
            }
        }
        if (known < 2) {
            readers.push_back(own);
        } else {
            *older = own;
        }
    }
};

class Shadow
{
public:
    Shadow() = default;
    void Reset(uint64_t low, uint64_t high, bool written)
    {
        spans_.clear();
        Span all;
        all.end = high;
        all.written = written;
        spans_.emplace(low, all);
    }

    // Calls visit(low, span) on the spans of [low, high), cut at both ends.
    template <typename Visit>
    void Each(uint64_t low, uint64_t high, Visit visit)
    {
        Cut(low);
        Cut(high);
        for (auto it = spans_.lower_bound(low); it != spans_.end() && it->first < high; ++it) {
            visit(it->first, it->second);
        }
    }

    // Replaces what was known of [low, high).
    void Overwrite(uint64_t low, uint64_t high, const Touch &writer)
    {
        Cut(low);
        Cut(high);
        auto first = spans_.lower_bound(low);
        if (first == spans_.end()) {
            return;
        }
        first->second.written = true;
        first->second.writer = writer;
        first->second.readers.clear();
        first->second.end = high;
        spans_.erase(std::next(first), spans_.lower_bound(high));
    }

    // Whether no byte of [low, high) is poison.
    bool Written(uint64_t low, uint64_t high) const
    {
        auto it = spans_.upper_bound(low);
        it = it == spans_.begin() ? it : std::prev(it);
        for (; it != spans_.end() && it->first < high; ++it) {
            if (it->second.end > low && !it->second.written) {
                return false;
            }
        }
        return true;
    }

    void Poison(uint64_t low, uint64_t high)
    {
        Each(low, high, [](uint64_t, Span &span) { span.written = false; });
    }

private:
    void Cut(uint64_t at)
    {
        auto after = spans_.upper_bound(at);
        if (after == spans_.begin()) {
            return;
        }
        auto it = std::prev(after);
        if (it->first == at || it->second.end <= at) {
            return;
        }
        Span right = it->second;
        it->second.end = at;
        spans_.emplace_hint(after, at, std::move(right));
    }

    std::map<uint64_t, Span> spans_;
};

}  // namespace gafsim
