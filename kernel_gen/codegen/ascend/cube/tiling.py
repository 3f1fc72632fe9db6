"""Host text that blocks a matrix product for the cube cores."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Blocks:
    """What a schedule decides of a product's blocks: tiles in elements, buffers in L1; 0: the cost
    expression does. Where the tile fits no buffer, the cost expression decides all."""

    tile_m: int = 0
    tile_n: int = 0
    stages: int = 0

    def text(self) -> str:
        """Arguments of `Block`."""
        return f"{self.tile_m}, {self.tile_n}, {self.stages}"


CUBE_TILING = """\
constexpr int64_t kMostKept = 8;  // buffers of one queue

struct Blocking {
    int64_t m, n, strip, k, chunk, stages, kept, tasks;
};

// What a product is blocked for; `size` and `outSize` are bytes of an element. Cycles a row are of
// the vector cores beside it, where they work on chunks of rows (0: they do not).
struct Matrices {
    int64_t m, n, k, batch, size, outSize, cores;
    double rowCycles;
};

// Cycles per byte of an operand that all tiles together ask for `times` times: once out of memory,
// then out of L2, both shared by all cores.
double ByteCycles(double times)
{
    const double cycles = kMemoryByteCycles / times + kL2ByteCycles * (1.0 - 1.0 / times);
    return cycles > kCopyByteCycles ? cycles : kCopyByteCycles;
}

// Cycles of the slowest core: a tile takes the longest of its products (16 x 16 x 32 B a cycle), of
// its operands' way from memory (12 B more for each burst), and of their way to L0A and L0B; a part
// of what overlaps is seen (0.15, an estimate), all of it with two buffers in L1, as the second
// strip holds one chunk back. The first operands' way and the last strip's are seen, with few
// buffers each tile's way out as well.
double BlockCycles(const Matrices &x, const Blocking &b)
{
    const double share = static_cast<double>(Parts(b.tasks, x.cores));
    const double area = static_cast<double>((b.m / 16) * (b.n / 16));
    const double products = area * static_cast<double>(Parts(x.k, x.size == 4 ? 4 : 32 / x.size));
    const int64_t chunks = Parts(x.k, b.chunk), down = Parts(x.m, b.m);
    const double again = share < static_cast<double>(down) ? share : static_cast<double>(down);
    const double saved = static_cast<double>(b.kept) / static_cast<double>(chunks);
    const double fresh = 1.0 - saved * (1.0 - 1.0 / again);
    const double left = ByteCycles(static_cast<double>(Parts(x.n, b.n)));
    const double right = ByteCycles(fresh * static_cast<double>(down)) * fresh;
    const double line = static_cast<double>(x.k * x.size + 12 * chunks);
    const double read = static_cast<double>(b.m) * left + static_cast<double>(b.n) * right;
    const double written = static_cast<double>(b.m * b.n * x.outSize);
    const double moved = line * read + written * kMemoryByteCycles;
    const double loads = static_cast<double>(b.m * Parts(b.n, b.strip) + 2 * b.n) *
                         static_cast<double>(x.k * x.size) / 256.0;
    const int64_t pieces = Parts(b.n, b.strip) * Parts(x.k, b.k);
    const double steps = static_cast<double>(10 * pieces);
    double longest = products > moved ? products : moved;
    longest = longest > loads ? longest : loads;
    const double all = products + moved + loads;
    const double busy = b.stages > 2 ? longest + 0.15 * (all - longest) : all;
    const double first = moved / static_cast<double>(chunks);
    const double out = static_cast<double>(b.m * b.n) / 64.0 * (b.stages > 3 ? 1.0 / share : 1.0);
    return share * (busy + steps + out) + first;
}

// Blocks of a tile of tileM x tileN and chunks of k; tasks is 0 where they do not fit. L0C holds
// two strips, L0A and L0B three steps each, L1 `stages` chunks of both operands and some more of
// the right one.
Blocking Blocked(const Matrices &x, int64_t tileM, int64_t tileN, int64_t chunk, int64_t stages)
{
    const int64_t strip = tileN > 16 ? UpTo(Parts(tileN, 2), 16) : 16;
    const int64_t most = 21824 / ((tileM > strip ? tileM : strip) * x.size) / 16 * 16;
    if (most < 16 || tileM * strip * 8 > 131072) {
        return {tileM, tileN, strip, 16, 16, 2, 0, 0};
    }
    const int64_t tileK = UpTo(Parts(chunk, Parts(chunk, most)), 16);
    const int64_t both = (tileM + tileN) * chunk * x.size, right = tileN * chunk * x.size;
    int64_t deep = kL1 / both;
    deep = deep > (stages > 0 ? stages : 4) ? (stages > 0 ? stages : 4) : deep;
    int64_t kept = (kL1 - deep * both) / right;
    kept = kept > kMostKept ? kMostKept : kept;
    kept = kept > Parts(x.k, chunk) ? Parts(x.k, chunk) : kept;
    kept = x.m > tileM ? kept : 0;
    const int64_t tasks = x.batch * Parts(x.m, tileM) * Parts(x.n, tileN);
    return {tileM, tileN, strip, tileK, chunk, deep, kept, deep > 1 ? tasks : 0};
}

// Rows of C that are multiplied while vector cores work on others: as few as keep all cores busy,
// in at most eight chunks, as a flag between cores counts no further than 15.
int64_t Chunk(const Blocking &b, int64_t m, int64_t n, int64_t cores)
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

// The cheapest blocks; of the sizes asked for where these are not 0.
Blocking Block(const Matrices &x, int64_t tileM, int64_t tileN, int64_t stages)
{
    const int64_t mostM = UpTo(x.m, 16) < 256 ? UpTo(x.m, 16) : 256;
    const int64_t mostN = UpTo(x.n, 16) < 512 ? UpTo(x.n, 16) : 512;
    const int64_t chunks[] = {1024, 512, 384, 256, 192, 128, 64, 32, 16};
    Blocking best = {16, 16, 16, 16, 16, 2, 0, 0};
    double least = 0.0;
    for (int64_t m = mostM; m >= 16; m -= 16) {
        for (int64_t n = mostN; n >= 16; n -= 16) {
            const bool asked = (tileM == 0 || m == (tileM < mostM ? tileM : mostM)) &&
                               (tileN == 0 || n == (tileN < mostN ? tileN : mostN));
            for (const int64_t size : chunks) {
                const int64_t chunk = size < UpTo(x.k, 16) ? size : UpTo(x.k, 16);
                const Blocking b = Blocked(x, m, n, chunk, stages);
                if (!asked || b.tasks == 0) {
                    continue;
                }
                double cycles = BlockCycles(x, b);
                if (x.rowCycles > 0.0) {  // nothing overlaps the first chunk
                    cycles += x.rowCycles * static_cast<double>(Chunk(b, x.m, x.n, x.cores));
                }
                if (best.tasks == 0 || cycles < least) {
                    least = cycles;
                    best = b;
                }
            }
        }
    }
    const bool bound = tileM > 0 || tileN > 0 || stages > 0;
    return best.tasks == 0 && bound ? Block(x, 0, 0, 0) : best;
}
"""
