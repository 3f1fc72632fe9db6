// Copies (included inside namespace AscendC).
struct DataCopyParams {
    DataCopyParams() = default;
    DataCopyParams(uint16_t count, uint16_t len, uint16_t src, uint16_t dst) : blockCount(count), blockLen(len), srcStride(src), dstStride(dst) {}
    uint16_t blockCount = 1, blockLen = 0, srcStride = 0, dstStride = 0;
};
struct DataCopyExtParams {
    DataCopyExtParams() = default;
    DataCopyExtParams(uint16_t count, uint32_t len, uint32_t src, uint32_t dst, uint32_t reserved)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved) {}
    uint16_t blockCount = 1;
    uint32_t blockLen = 0, srcStride = 0, dstStride = 0, rsv = 0;
};
template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams() = default;
    DataCopyPadExtParams(bool pad, uint8_t left, uint8_t right, T value) : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
    bool isPad = false;
    uint8_t leftPadding = 0, rightPadding = 0;
    T paddingValue{};
};
struct Nd2NzParams {
    Nd2NzParams() = default;
    Nd2NzParams(uint16_t nd, uint16_t n, uint16_t d, uint16_t srcMatrix, uint16_t srcD, uint16_t c0, uint16_t nStride, uint16_t dstMatrix)
        : ndNum(nd), nValue(n), dValue(d), srcNdMatrixStride(srcMatrix), srcDValue(srcD), dstNzC0Stride(c0), dstNzNStride(nStride), dstNzMatrixStride(dstMatrix) {}
    uint16_t ndNum = 0, nValue = 0, dValue = 0, srcNdMatrixStride = 0, srcDValue = 0, dstNzC0Stride = 0, dstNzNStride = 0, dstNzMatrixStride = 0;
};

template <typename T>
constexpr bool kCopied = kIsOf<T, int8_t, uint8_t, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float, int64_t, uint64_t, double>;

template <typename T>
inline void DataCopy(const LocalTensor<T> &d, const LocalTensor<T> &a, const uint32_t count)
{
    static_assert(kCopied<T>, "DataCopy: type");
    asc_host::Called("DataCopy/UB");
    d.In(asc_host::UB, "DataCopy");
    a.In(asc_host::UB, "DataCopy");
    d.Aligned(32, "DataCopy");
    a.Aligned(32, "DataCopy");
    const uint32_t bytes = count * uint32_t(sizeof(T)) / 32 * 32;
    d.Inside(0, bytes / sizeof(T));
    a.Inside(0, bytes / sizeof(T));
    std::memcpy(d.data, a.data, bytes);
}

inline void CheckExt(const DataCopyExtParams &p, size_t size)
{
    if (p.blockCount > 4095 || p.blockLen > 2097151 || p.blockLen % size != 0) {
        Fail("DataCopyPad: %u blocks of %u B", p.blockCount, p.blockLen);
    }
}
template <typename T>
inline void DataCopyPad(const LocalTensor<T> &d, const GlobalTensor<T> &a, const DataCopyExtParams &p, const DataCopyPadExtParams<T> &pad)
{
    static_assert(kCopied<T>, "DataCopyPad: type");
    asc_host::Called("DataCopyPad/in");
    d.In(asc_host::UB, "DataCopyPad");
    d.Aligned(32, "DataCopyPad");
    CheckExt(p, sizeof(T));
    const uint32_t left = pad.leftPadding * uint32_t(sizeof(T)), right = pad.rightPadding * uint32_t(sizeof(T));
    if (left > 32 || right > 32) {
        Fail("DataCopyPad: paddings of %u and %u B", left, right);
    }
    T zero{};
    if (sizeof(T) == 8 && std::memcmp(&zero, &pad.paddingValue, sizeof(T)) != 0) {
        Fail("DataCopyPad: padding of 8-byte elements is not 0");
    }
    if (p.blockLen == 0 || p.blockCount == 0) {
        return;
    }
    const uint32_t whole = (left + p.blockLen + right + 31) / 32 * 32;
    const uint8_t *from = reinterpret_cast<const uint8_t *>(a.data);
    uint64_t to = 0;
    for (uint32_t i = 0; i < p.blockCount; i++) {
        if (to + whole > d.bytes) {
            Fail("DataCopyPad: block %u ends at byte %llu of a tensor of %u B", i, (unsigned long long)(to + whole), d.bytes);
        }
        std::vector<uint8_t> made(whole, 0x5a);  // whatever
        std::memcpy(made.data() + left, from, p.blockLen);
        for (uint32_t k = 0; k < whole; k += sizeof(T)) {
            const bool isDeclared = k < left || (k >= left + p.blockLen && k < left + p.blockLen + right);
            const bool isDummy = k >= left + p.blockLen + right;
            if ((isDeclared || (isDummy && left + right > 0)) && pad.isPad) {
                std::memcpy(made.data() + k, &pad.paddingValue, sizeof(T));
            } else if (isDummy && left + right == 0) {
                std::memcpy(made.data() + k, from, sizeof(T));
            }
        }
        std::memcpy(d.data + to, made.data(), whole);
        from += p.blockLen + uint64_t(p.srcStride);
        to += whole + 32ull * p.dstStride;
    }
}
template <typename T>
inline void DataCopyPad(const GlobalTensor<T> &d, const LocalTensor<T> &a, const DataCopyExtParams &p)
{
    static_assert(kCopied<T>, "DataCopyPad: type");
    asc_host::Called("DataCopyPad/out");
    a.In(asc_host::UB, "DataCopyPad");
    a.Aligned(32, "DataCopyPad");
    CheckExt(p, sizeof(T));
    uint8_t *to = reinterpret_cast<uint8_t *>(d.data);
    uint64_t from = 0;
    for (uint32_t i = 0; i < p.blockCount; i++) {
        if (from + p.blockLen > a.bytes) {
            Fail("DataCopyPad: block %u ends at byte %llu of a tensor of %u B", i, (unsigned long long)(from + p.blockLen), a.bytes);
        }
        std::memcpy(to, a.data + from, p.blockLen);
        to += p.blockLen + uint64_t(p.dstStride);
        from += (p.blockLen + 31) / 32 * 32 + 32ull * p.srcStride;
    }
}
