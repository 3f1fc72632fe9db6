"""Host text that blocks a matrix product for the cube cores."""

CUBE_TILING = """\
struct Blocking {
    int64_t m, n, k, chunk, tasks;
};

// Tiles of C for the cores: the fewest cycles of the slowest core, where a tile takes the longer
// of its products (16 x 16 x 32 B a cycle) and of its operands' way from memory. Two buffers in L1,
// L0A and L0B each, one in L0C.
Blocking Block(int64_t m, int64_t n, int64_t k, int64_t batch, int64_t size, int64_t cores,
               double bytesPerCycle)
{
    const int64_t step = 32 / size;
    Blocking best = {16, 16, step, step, 1};
    double least = -1.0;
    for (int64_t tileM = 16; tileM <= 256; tileM += 16) {
        for (int64_t tileN = 16; tileN <= 256; tileN += 16) {
            if (tileM * tileN * 4 > 131072 || (tileM > UpTo(m, 16) && tileM > 16) ||
                (tileN > UpTo(n, 16) && tileN > 16)) {
                continue;
            }
            const int64_t wide = tileM > tileN ? tileM : tileN;
            int64_t tileK = 32768 / (wide * size) / 16 * 16;
            tileK = tileK > UpTo(k, 16) ? UpTo(k, 16) : tileK;
            int64_t chunk = 262144 / ((tileM + tileN) * size) / tileK * tileK;
            chunk = chunk > 1024 ? 1024 / tileK * tileK : chunk;
            chunk = chunk > UpTo(k, tileK) ? UpTo(k, tileK) : chunk;
            const int64_t tasks = batch * Parts(m, tileM) * Parts(n, tileN);
            const double share = static_cast<double>(Parts(tasks, cores));
            const double products = static_cast<double>((tileM / 16) * (tileN / 16)) *
                                    static_cast<double>(Parts(k, size == 4 ? 4 : step));
            const double moved = static_cast<double>((tileM + tileN) * k * size) / bytesPerCycle;
            const double out = static_cast<double>(tileM * tileN) / 64.0;
            const double cycles =
                share * ((products > moved ? products : moved) + out + 600.0) + 1000.0;
            if (tileK >= 16 && (least < 0.0 || cycles < least)) {
                least = cycles;
                best = {tileM, tileN, tileK, chunk, tasks};
            }
        }
    }
    return best;
}

// Rows of C that are multiplied while vector cores work on others: as few as keep all cores busy,
// in at most eight chunks, as a flag between cores counts no further than 15.
[[maybe_unused]] int64_t Chunk(const Blocking &b, int64_t m, int64_t n, int64_t cores)
{
    const int64_t down = Parts(m, b.m), across = Parts(n, b.n);
    const int64_t rounds = Parts(down * across, cores);
    for (int64_t tiles = Parts(down, 8); tiles < down; tiles++) {
        const int64_t whole = down / tiles * Parts(tiles * across, cores);
        if (whole + Parts(down % tiles * across, cores) <= rounds) {
            return tiles * b.m;
        }
    }
    return m;
}
"""
