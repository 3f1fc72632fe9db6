// Tiling of softmax: runs on the host, once per shape.
#include "softmax_tiling.h"

namespace {

constexpr int64_t kCores = 40;

int64_t UpTo(int64_t value, int64_t step)
{
    return (value + step - 1) / step * step;
}

int64_t Parts(int64_t extent, int64_t size)
{
    return (extent + size - 1) / size;
}

constexpr int64_t kUb = 188160;  // bytes of the unified buffer
constexpr int64_t kMostRows = 2040;  // 255 repeats of 8 rows

constexpr int64_t kLargest = -1;  // as lanes: whatever it costs

// One way to run a phase. A free extent may be cut into tiles; a split one is shared by cores,
// others are walked by one core.
struct Way {
    int64_t rows, cols, outer, walked;
    bool freeRows, freeCols, splitRows, splitCols;
    int64_t passes, align, unit;  // lanes that a row, and a comparison, are rounded up to
    double copyCycles, crossCycles;  // per lane: of rows, of what is transposed in the buffer
    double workCycles, tileCycles;   // per lane, per tile
    double tileScalar, rowScalar, colScalar, laneScalar;  // of the scalar unit: per tile, row …
    int64_t (*bytes)(int64_t, int64_t);
};

struct Tile {
    int64_t height, width, tasks;
    double cycles;
};

// Cycles of the slowest core. Copies, computation and the scalar unit's part of neighbouring tiles
// overlap; of one tile, all are seen.
double Cycles(const Way &way, int64_t height, int64_t width, int64_t cores, int64_t *tasks)
{
    const int64_t down = Parts(way.rows, height), across = Parts(way.cols, width);
    *tasks = way.outer * (way.splitRows ? down : 1) * (way.splitCols ? across : 1);
    const int64_t steps =
        way.walked * (way.splitRows ? 1 : down) * (way.splitCols ? 1 : across) * way.passes;
    const int64_t share = Parts(*tasks, cores);
    const double lanes = static_cast<double>(height * UpTo(width, way.align));
    // What is transposed comes in pieces as long as the tile is high, of whole 16 and a start.
    const double crossed = static_cast<double>(width * (UpTo(height, 16) + 16));
    const double copies = lanes * way.copyCycles + crossed * way.crossCycles;
    const double work = way.tileCycles + lanes * way.workCycles;
    const double scalar = way.tileScalar + static_cast<double>(height) * way.rowScalar +
                          static_cast<double>(width) * way.colScalar +
                          static_cast<double>(height * width) * way.laneScalar;
    const double either = copies > work ? copies : work;
    const double longer = scalar > either ? scalar : either;
    return static_cast<double>(share * steps) * (60.0 + longer) + copies + work + scalar;
}

// The cheapest tile that fits, or the largest one; or one of height 0.
Tile Choose(const Way &way, int64_t lanes, int64_t cores)
{
    Tile best = {0, 0, 0, 0.0};
    const int64_t factors[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192};
    const int64_t count = static_cast<int64_t>(sizeof(factors) / sizeof(factors[0]));
    for (int64_t i = 0; i < (way.freeCols ? 2 * count : 1); i++) {
        const int64_t across = factors[i % count] * (i < count ? 1 : cores);
        const int64_t all = way.cols > 0 ? way.cols : 1;
        const int64_t part = across > 1 ? UpTo(Parts(all, across), way.unit) : all;
        const int64_t width = way.freeCols && part < all ? part : all;
        for (int64_t j = 0; j < (way.freeRows ? 2 * count : 1); j++) {
            const int64_t down = factors[j % count] * (j < count ? 1 : cores);
            const int64_t height =
                way.freeRows ? Parts(way.rows > 0 ? way.rows : 1, down) : way.rows;
            const bool small = !way.freeCols || width <= way.unit;
            const bool least = height <= 1 && small;
            if (height < 1 || width < 1 || height > kMostRows || way.bytes(height, width) > kUb ||
                (lanes > 0 && height * width > lanes && !least)) {
                continue;
            }
            int64_t tasks = 0;
            const double cycles = Cycles(way, height, width, cores, &tasks);
            const bool better = lanes == kLargest
                                    ? height * width > best.height * best.width
                                    : cycles < best.cycles;
            if (best.height == 0 || better) {
                best = {height, width, tasks, cycles};
            }
        }
    }
    return best;
}

int64_t Bytes0Way0(int64_t tileHeight, int64_t tileWidth)
{
    const int64_t pitch = UpTo(tileWidth, 8);
    [[maybe_unused]] const int64_t tileLanes = UpTo(tileHeight * pitch, 64);
    [[maybe_unused]] const int64_t tileCols = UpTo(pitch, 64);
    [[maybe_unused]] const int64_t tileRows = UpTo(tileHeight, 64);
    [[maybe_unused]] const int64_t tileCross = UpTo(pitch * UpTo(tileHeight, 16), 64);
    return UpTo(tileHeight * 64 * 4, 512) + UpTo(tileLanes * 4, 512) * 5 + 256 + UpTo(tileRows * 4, 512) + UpTo(UpTo(tileHeight, 8) * 32, 512) + UpTo(UpTo(tileLanes / 2, 64) * 4, 512);
}

int64_t Bytes0Way1(int64_t tileHeight, int64_t tileWidth)
{
    const int64_t pitch = UpTo(tileWidth, 8);
    [[maybe_unused]] const int64_t tileLanes = UpTo(tileHeight * pitch, 64);
    [[maybe_unused]] const int64_t tileCols = UpTo(pitch, 64);
    [[maybe_unused]] const int64_t tileRows = UpTo(tileHeight, 64);
    [[maybe_unused]] const int64_t tileCross = UpTo(pitch * UpTo(tileHeight, 16), 64);
    return UpTo(tileLanes * 4, 512) * 10 + UpTo(tileRows * 4, 512) * 2 + 256 + UpTo(tileHeight * 64 * 4, 512) + UpTo(UpTo(tileHeight, 8) * 32, 512);
}

}  // namespace

// dims: s0, s1. Returns 0; 1 for another number of dims; 2 where no tile fits.
extern "C" int tiling_softmax(const int64_t *dims, int nDims, softmax_Tiling *out,
    uint32_t *blockDim, uint64_t *workspaceBytes)
{
    if (nDims != 2) {
        return 1;
    }
    const int64_t s0 = dims[0];
    const int64_t s1 = dims[1];
    const int64_t lanes = 0;
    const int64_t cores = kCores;
    int64_t most = 1;
    out->s0 = s0;
    out->s1 = s1;
    {
        Tile tile = {0, 0, 0, 0.0};
        if (tile.height == 0) {
            const Way way = {s0, s1, 1, 1, true, false, true, false, 1, 8, 64, 0.3956, 0.0000, 0.2406, 2753.0, 0.0, 0.0, 0.0, 0.0, Bytes0Way0};
            tile = Choose(way, lanes, cores);
            if (tile.height == 0) {
                tile = Choose(way, 0, cores);
            }
            out->key0 = 0;
        }
        if (tile.height == 0) {
            const Way way = {s0, s1, 1, 1, true, true, true, false, 3, 8, 64, 0.7912, 0.0000, 0.3937, 2914.0, 0.0, 0.0, 0.0, 0.0, Bytes0Way1};
            tile = Choose(way, lanes, cores);
            if (tile.height == 0) {
                tile = Choose(way, 0, cores);
            }
            out->key0 = 1;
        }
        if (tile.height == 0) {
            return 2;
        }
        out->height0 = tile.height;
        out->width0 = tile.width;
        const int64_t tasks = tile.tasks;
        most = tasks > most ? tasks : most;
    }
    const int64_t bound = cores;
    *blockDim = static_cast<uint32_t>(most < bound ? most : bound);
    *workspaceBytes = static_cast<uint64_t>(0);
    return 0;
}

extern "C" uint64_t tiling_bytes_softmax()
{
    return sizeof(softmax_Tiling);
}
