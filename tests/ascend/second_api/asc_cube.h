// The cube unit and its copies (included inside namespace AscendC).
template <typename T>
struct InitConstValueParams {
    InitConstValueParams() = default;
    InitConstValueParams(uint16_t repeats, uint16_t blocks, uint16_t gap, T value) : repeatTimes(repeats), blockNum(blocks), dstGap(gap), initValue(value) {}
    uint16_t repeatTimes = 0, blockNum = 0, dstGap = 0;
    T initValue{};
};
struct LoadData2DParams {
    LoadData2DParams() = default;
    LoadData2DParams(uint16_t start, uint8_t repeats, uint16_t stride, uint8_t s, uint16_t gap, bool transpose, uint8_t mode)
        : startIndex(start), dstGap(gap), srcStride(stride), ifTranspose(transpose), repeatTimes(repeats), sid(s), addrMode(mode) {}
    uint16_t startIndex = 0, dstGap = 0, srcStride = 0;
    bool ifTranspose = false;
    uint8_t repeatTimes = 0, sid = 0, addrMode = 0;
};
struct LoadData2dTransposeParams {
    LoadData2dTransposeParams() = default;
    LoadData2dTransposeParams(uint16_t start, uint8_t repeats, uint16_t stride, uint16_t gap, uint16_t fracGap, uint8_t mode = 0)
        : startIndex(start), repeatTimes(repeats), srcStride(stride), dstGap(gap), dstFracGap(fracGap), addrMode(mode) {}
    uint16_t startIndex = 0;
    uint8_t repeatTimes = 0;
    uint16_t srcStride = 0, dstGap = 0, dstFracGap = 0;
    uint8_t addrMode = 0;
};
struct MmadParams {
    MmadParams() = default;
    MmadParams(uint16_t m_, uint16_t n_, uint16_t k_, bool bias, int32_t offset, bool sparse, bool winogradA, bool winogradB)
        : m(m_), n(n_), k(k_), isBias(bias), fmOffset(offset), enSsparse(sparse), enWinogradA(winogradA), enWinogradB(winogradB) {}
    MmadParams(uint16_t m_, uint16_t n_, uint16_t k_, uint8_t unit, bool source, bool init)
        : m(m_), n(n_), k(k_), unitFlag(unit), cmatrixSource(source), cmatrixInitVal(init) {}
    uint16_t m = 0, n = 0, k = 0;
    bool isBias = false;
    int32_t fmOffset = 0;
    bool enSsparse = false, enWinogradA = false, enWinogradB = false;
    uint8_t unitFlag = 0;
    bool kDirectionAlign = false, cmatrixSource = false, cmatrixInitVal = true;
};
struct FixpipeParamsV220 {
    FixpipeParamsV220() = default;
    FixpipeParamsV220(uint16_t n, uint16_t m, uint16_t src, uint32_t dst, bool relu) : nSize(n), mSize(m), srcStride(src), dstStride(dst), reluEn(relu) {}
    uint16_t nSize = 0, mSize = 0, srcStride = 0;
    uint32_t dstStride = 0;
    QuantMode_t quantPre = QuantMode_t::NoQuant;
    uint64_t deqScalar = 0;
    uint16_t ndNum = 1, srcNdStride = 0, dstNdStride = 0;
    bool reluEn = false;
    uint8_t unitFlag = 0;
    bool isChannelSplit = false;
};

template <typename T, typename U = T, typename std::enable_if<std::is_same<T, U>::value, bool>::type = true>
inline void InitConstValue(const LocalTensor<T> &d, const InitConstValueParams<U> &p)
{
    static_assert(kIsOf<T, int16_t, uint16_t, half, bfloat16_t, int32_t, uint32_t, float>, "InitConstValue: type");
    asc_host::Called("InitConstValue");
    const bool l1 = d.Where() == asc_host::L1;
    if (!l1 && d.Where() != asc_host::L0A && d.Where() != asc_host::L0B) {
        Fail("InitConstValue: position %d", int(d.position));
    }
    const uint32_t block = l1 ? 32 : 512;
    d.Aligned(block, "InitConstValue");
    if (p.repeatTimes > 32767 || p.blockNum > 32767 || p.dstGap > 32767) {
        Fail("InitConstValue: %u repeats, %u blocks, gap %u", p.repeatTimes, p.blockNum, p.dstGap);
    }
    for (uint32_t r = 0; r < p.repeatTimes; r++) {
        const uint64_t at = uint64_t(r) * (p.blockNum + p.dstGap) * block / sizeof(T), count = uint64_t(p.blockNum) * block / sizeof(T);
        d.Inside(at, count);
        for (uint64_t i = 0; i < count; i++) {
            std::memcpy(d.data + (at + i) * sizeof(T), &p.initValue, sizeof(T));
        }
    }
}
template <typename T, typename U = T, typename std::enable_if<std::is_same<T, U>::value, bool>::type = true>
inline void Fill(const LocalTensor<T> &d, const InitConstValueParams<U> &p)
{
    InitConstValue(d, p);
}

template <typename T>
inline void DataCopy(const LocalTensor<T> &d, const GlobalTensor<T> &a, const Nd2NzParams &p)
{
    asc_host::Called("DataCopy/nd2nz");
    d.In(asc_host::L1, "DataCopy nd2nz");
    d.Aligned(32, "DataCopy nd2nz");
    if (p.ndNum > 4095 || p.nValue > 16384 || p.srcDValue < 1 || p.dstNzC0Stride < 1 || p.dstNzC0Stride > 16384 || p.dstNzNStride < 1 ||
        p.dstNzNStride > 16384 || p.dstNzMatrixStride > 16384) {
        Fail("nd2nz: %u matrices of %u x %u, source rows of %u, strides %u %u %u", p.ndNum, p.nValue, p.dValue, p.srcDValue, p.dstNzC0Stride,
             p.dstNzNStride, p.dstNzMatrixStride);
    }
    constexpr uint32_t c0 = 32 / sizeof(T);
    for (uint32_t nd = 0; nd < p.ndNum; nd++) {
        for (uint32_t n = 0; n < p.nValue; n++) {
            for (uint32_t c = 0; c < (p.dValue + c0 - 1u) / c0 * c0; c++) {
                T value{};
                if (c < p.dValue) {
                    std::memcpy(&value, a.data + uint64_t(nd) * p.srcNdMatrixStride + uint64_t(n) * p.srcDValue + c, sizeof(T));
                }
                const uint64_t at = uint64_t(nd) * p.dstNzMatrixStride + uint64_t(c / c0) * p.dstNzC0Stride * c0 + uint64_t(n) * p.dstNzNStride * c0 + c % c0;
                d.Inside(at, 1);
                std::memcpy(d.data + at * sizeof(T), &value, sizeof(T));
            }
        }
    }
}

// L1 to the bias table: lengths in 64 B of L1.
template <typename T, typename U>
inline void DataCopy(const LocalTensor<T> &d, const LocalTensor<U> &a, const DataCopyParams &p)
{
    static_assert((kIsOf<T, float> && kIsOf<U, half, float>) || (kIsOf<T, int32_t> && kIsOf<U, int32_t>), "DataCopy to the bias table: types");
    asc_host::Called("DataCopy/C2");
    d.In(asc_host::BT, "DataCopy to the bias table");
    a.In(asc_host::L1, "DataCopy to the bias table");
    d.Aligned(64, "DataCopy to the bias table");
    a.Aligned(32, "DataCopy to the bias table");
    if (p.blockCount != 1) {
        Fail("DataCopy to the bias table: %u blocks are not modelled", p.blockCount);
    }
    const uint32_t count = p.blockLen * 64u / sizeof(U);
    a.Inside(0, count);
    d.Inside(0, count);
    for (uint32_t i = 0; i < count; i++) {
        d.SetValue(i, static_cast<float>(a.GetValue(i)));
    }
}

inline void CheckL0(asc_host::Memory m)
{
    if (m != asc_host::L0A && m != asc_host::L0B) {
        Fail("LoadData to %s", asc_host::Name(m));
    }
}
template <typename T>
inline void LoadData(const LocalTensor<T> &d, const LocalTensor<T> &a, const LoadData2DParams &p)
{
    asc_host::Called(p.ifTranspose ? "LoadData/transposed" : "LoadData");
    a.In(asc_host::L1, "LoadData");
    CheckL0(d.Where());
    d.Aligned(512, "LoadData");
    a.Aligned(32, "LoadData");
    constexpr uint32_t fractal = 512 / sizeof(T);
    if (p.addrMode != 0 || (p.ifTranspose && sizeof(T) != 2)) {
        Fail("LoadData: address mode %u, transposed %d", p.addrMode, p.ifTranspose);
    }
    for (uint32_t r = 0; r < p.repeatTimes; r++) {
        const uint64_t from = (p.startIndex + uint64_t(r) * p.srcStride) * fractal, to = uint64_t(r) * (1 + p.dstGap) * fractal;
        a.Inside(from, fractal);
        d.Inside(to, fractal);
        for (uint32_t i = 0; i < fractal; i++) {
            const uint32_t other = p.ifTranspose ? i % 16 * 16 + i / 16 : i;
            std::memcpy(d.data + (to + i) * sizeof(T), a.data + (from + other) * sizeof(T), sizeof(T));
        }
    }
}
template <typename T>
inline void LoadDataWithTranspose(const LocalTensor<T> &d, const LocalTensor<T> &a, const LoadData2dTransposeParams &p)
{
    static_assert(sizeof(T) == 4 || sizeof(T) == 2, "LoadDataWithTranspose: type");
    asc_host::Called("LoadDataWithTranspose");
    a.In(asc_host::L1, "LoadDataWithTranspose");
    CheckL0(d.Where());
    d.Aligned(512, "LoadDataWithTranspose");
    a.Aligned(32, "LoadDataWithTranspose");
    constexpr uint32_t c0 = 32 / sizeof(T), parts = 16 / c0;  // fractals of a square of 16 x 16
    for (uint32_t r = 0; r < p.repeatTimes; r++) {
        const uint64_t from = (p.startIndex + uint64_t(r) * p.srcStride) * 256, to = uint64_t(r) * (1 + p.dstGap) * 16 * c0;
        a.Inside(from, 256);
        for (uint32_t row = 0; row < 16; row++) {
            for (uint32_t col = 0; col < 16; col++) {  // of the transposed square
                const uint64_t source = from + row / c0 * 16 * c0 + col * c0 + row % c0;
                const uint64_t target = to + uint64_t(col / c0) * (1 + p.dstFracGap) * 16 * c0 + row * c0 + col % c0;
                d.Inside(target, 1);
                std::memcpy(d.data + target * sizeof(T), a.data + source * sizeof(T), sizeof(T));
            }
        }
        (void)parts;
    }
}

inline float Float(float x) { return x; }
inline float Float(half x) { return static_cast<float>(x); }
inline float Float(bfloat16_t x) { return Widened(x); }

template <typename T, typename U>
inline void Multiply(const LocalTensor<float> &c, const LocalTensor<T> &a, const LocalTensor<U> &b, const LocalTensor<float> *bias, const MmadParams &p)
{
    static_assert(std::is_same_v<T, U> && kIsOf<T, half, float, bfloat16_t>, "Mmad: types");
    c.In(asc_host::L0C, "Mmad");
    a.In(asc_host::L0A, "Mmad");
    b.In(asc_host::L0B, "Mmad");
    c.Aligned(1024, "Mmad");
    a.Aligned(512, "Mmad");
    b.Aligned(512, "Mmad");
    if (p.m > 4095 || p.n > 4095 || p.k > 4095 || p.kDirectionAlign || p.unitFlag != 0) {
        Fail("Mmad: %u x %u x %u, unit flag %u", p.m, p.n, p.k, p.unitFlag);
    }
    if (p.m == 0 || p.n == 0 || p.k == 0) {
        return;
    }
    if (bias == nullptr && !p.cmatrixInitVal && p.cmatrixSource) {
        Fail("Mmad: the bias table without a bias is not modelled");
    }
    constexpr uint32_t c0 = 32 / sizeof(T);
    const uint32_t mF = (p.m + 15) / 16, nF = (p.n + 15) / 16, kF = (p.k + c0 - 1) / c0;
    a.Inside(0, p.m == 1 ? p.k : mF * kF * 16 * c0);
    b.Inside(0, kF * nF * 16 * c0);
    c.Inside(0, mF * nF * 256);
    std::vector<float> left(p.m * p.k), right(p.k * p.n);
    for (uint32_t i = 0; i < p.m; i++) {
        for (uint32_t k = 0; k < p.k; k++) {
            left[i * p.k + k] = Float(a.GetValue(p.m == 1 ? k : (i / 16 * kF + k / c0) * 16 * c0 + i % 16 * c0 + k % c0));
        }
    }
    for (uint32_t k = 0; k < p.k; k++) {
        for (uint32_t j = 0; j < p.n; j++) {
            right[k * p.n + j] = Float(b.GetValue((k / c0 * nF + j / 16) * 16 * c0 + j % 16 * c0 + k % c0));
        }
    }
    std::vector<float> row(p.n);
    for (uint32_t i = 0; i < p.m; i++) {
        const auto at = [&](uint32_t j) { return (j / 16 * mF + i / 16) * 256 + i % 16 * 16 + j % 16; };
        for (uint32_t j = 0; j < p.n; j++) {
            row[j] = bias != nullptr ? bias->GetValue(j) : p.cmatrixInitVal ? 0.0f : c.GetValue(at(j));
        }
        for (uint32_t k = 0; k < p.k; k++) {
            for (uint32_t j = 0; j < p.n; j++) {
                row[j] += left[i * p.k + k] * right[k * p.n + j];
            }
        }
        for (uint32_t j = 0; j < p.n; j++) {
            c.SetValue(at(j), row[j]);
        }
    }
}
template <typename C, typename T, typename U>
inline void Mmad(const LocalTensor<C> &c, const LocalTensor<T> &a, const LocalTensor<U> &b, const MmadParams &p)
{
    static_assert(kIsOf<C, float>, "Mmad: type of the result");
    asc_host::Called("Mmad");
    Multiply(c, a, b, nullptr, p);
}
template <typename C, typename T, typename U, typename V>
inline void Mmad(const LocalTensor<C> &c, const LocalTensor<T> &a, const LocalTensor<U> &b, const LocalTensor<V> &bias, const MmadParams &p)
{
    static_assert(kIsOf<C, float> && kIsOf<V, float>, "Mmad: types of result and bias");
    asc_host::Called("Mmad/bias");
    bias.In(asc_host::BT, "Mmad");
    bias.Aligned(64, "Mmad");
    Multiply(c, a, b, &bias, p);
}

template <typename D>
inline void Stored(D *to, float value)
{
    if constexpr (kIsOf<D, bfloat16_t>) {
        *to = Narrowed(value);
    } else {
        *to = static_cast<D>(value);
    }
}
template <typename D, typename C>
inline void Fixpipe(const GlobalTensor<D> &d, const LocalTensor<C> &c, const FixpipeParamsV220 &p)
{
    static_assert(kIsOf<C, float> && kIsOf<D, half, float, bfloat16_t>, "Fixpipe: types");
    asc_host::Called("Fixpipe");
    c.In(asc_host::L0C, "Fixpipe");
    c.Aligned(64, "Fixpipe");
    const QuantMode_t needed = kIsOf<D, half> ? QuantMode_t::F322F16 : kIsOf<D, bfloat16_t> ? QuantMode_t::F322BF16 : QuantMode_t::NoQuant;
    if (p.quantPre != needed || p.nSize > 4095 || p.mSize > 8192 || p.dstStride == 0 || p.ndNum != 1 || p.unitFlag != 0 || p.isChannelSplit ||
        p.srcStride % 16 != 0) {
        Fail("Fixpipe: %u x %u, strides %u %u, mode %d", p.mSize, p.nSize, p.srcStride, p.dstStride, int(p.quantPre));
    }
    for (uint32_t i = 0; i < p.mSize; i++) {
        for (uint32_t j = 0; j < p.nSize; j++) {
            float value = c.GetValue(j / 16 * p.srcStride * 16u + i * 16 + j % 16);
            if (p.reluEn && value < 0) {
                value = 0;
            }
            Stored(d.data + uint64_t(i) * p.dstStride + j, value);
        }
    }
}
