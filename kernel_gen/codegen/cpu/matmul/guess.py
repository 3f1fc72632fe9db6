"""A rough cost of register tiles, and blocks that fit the caches: where a search should begin."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.ir.target import Target

_FMA_PER_CYCLE = 2.0
_FMA_LATENCY = 4.0
_LOADS_PER_CYCLE = 2.0
# Chosen by hand, no measured rates: with these three the ranking of tiles agrees with times seen on
# a Zen 4 (8×3 ahead of 4×6 and 8×2 on large products) and a Zen 3 (6×2 ahead of 4×3). No other
# processor was tried.
_L2_BYTES_PER_CYCLE = 20.0
_LOAD_PRESSURE = 0.08  # cycles lost per load of a step
_BYTE_PRESSURE = 0.003  # cycles lost per byte of B
_CYCLES_PER_TILE = 40.0  # call, first and last iterations
_CYCLES_PER_VECTOR = 4.0  # a sum's way to and from the scratch tile, and through the epilogue
_KEPT_TILES = 12
_NO_FMA = ("x86-64", "x86-64-v2")
_BLOCKS_OF_DEPTH = (1, 2, 3, 4, 6, 8, 12, 16, 32, 64, 128, 256, 512)
_MAX_ROWS = 14
_WAYS = 8  # of a first-level cache; the right operand takes some
_MAX_VECTORS = 8


@dataclass(frozen=True, slots=True, order=True)
class Tile:
    """Rows and vectors of a register tile."""

    rows: int
    vectors: int


def registers(target: Target) -> int:
    """Vector registers of the instruction-set level."""
    return 32 if target.vector_bytes == 64 or target.isa.startswith("arm") else 16


def tile_registers(target: Target) -> int:
    """Vector registers for a tile's sums, the vectors of a step and one broadcast."""
    # 9×3 (31 of 32 registers) ran 2-3 % slower than 8×3 (28) on a Zen 4; why is not known
    return 30 if registers(target) == 32 else 16


def tiles(problem: Problem, target: Target, most_rows: int = _MAX_ROWS) -> list[Tile]:
    """Register tiles that fit, the cheapest by the model first."""
    lanes = lanes_of(problem, target)
    widest = min(_MAX_VECTORS, max(1, -(-_slab_cols(problem) // lanes)))
    room = tile_registers(target)
    if target.isa in _NO_FMA:
        room -= 1  # a product on its way to its sum
    fitting = [
        Tile(rows, vectors)
        for rows in range(1, min(most_rows, max(problem.m, 1)) + 1)
        for vectors in range(1, widest + 1)
        if (rows + 1) * vectors + 1 <= room
    ]
    return sorted(fitting, key=lambda tile: (_cycles(problem, target, tile), tile))[:_KEPT_TILES]


def tile_in_place(problem: Problem, target: Target) -> Tile | None:
    """The cheapest tile of few rows, where the cheapest of all has many: read in place, rows a
    power of two apart meet in one set of the first-level cache."""
    if tiles(problem, target)[0].rows <= _WAYS:
        return None
    return tiles(problem, target, _WAYS - 2)[0]


def even_tile(problem: Problem, target: Target) -> Tile | None:
    """The tile of fewest loads whose rows divide the first row axis, so that turned rows of a tile
    are at one place in the padding, and whose vectors divide the columns."""
    lanes = lanes_of(problem, target)
    points, vectors = extent(problem.rows[0]), problem.inner_cols // lanes
    fitting = [
        Tile(r, v)
        for r in range(2, min(_MAX_ROWS, points) + 1)
        for v in range(1, min(_MAX_VECTORS, vectors) + 1)
        if points % r == 0 and problem.inner_cols % (v * lanes) == 0
        if (r + 1) * v + 1 <= tile_registers(target)
    ]
    return min(
        fitting, key=lambda t: ((t.rows + t.vectors) / (t.rows * t.vectors), t), default=None
    )


def lanes_of(problem: Problem, target: Target) -> int:
    return max(1, target.vector_bytes // problem.product.dtype.bytes)


def _cycles(problem: Problem, target: Target, tile: Tile) -> float:
    """Cycles of one core for one product, data in the second-level cache."""
    lanes = lanes_of(problem, target)
    row_tiles = -(-problem.m // tile.rows)
    full, rest = divmod(_slab_cols(problem), tile.vectors * lanes)
    slab = full * _tile_cycles(problem, target, tile)
    if rest:
        slab += _tile_cycles(problem, target, Tile(tile.rows, -(-rest // lanes)))
    return row_tiles * slab * (problem.n // _slab_cols(problem) if problem.n else 1)


def _slab_cols(problem: Problem) -> int:
    """Columns that are cut into tiles together."""
    return problem.n if problem.joins_cols else problem.inner_cols


def _tile_cycles(problem: Problem, target: Target, tile: Tile) -> float:
    from_l2 = tile.vectors * target.vector_bytes / _L2_BYTES_PER_CYCLE
    step = step_cycles(tile.rows, tile.vectors, target, from_l2)
    return problem.k * step + _CYCLES_PER_TILE + _CYCLES_PER_VECTOR * tile.rows * tile.vectors


def step_cycles(rows: int, vectors: int, target: Target, least: float = 0.0) -> float:
    """Of one step of k of a register tile: multiply-adds, their latency, loads, or `least`; and
    what loads and bytes of B take beside them."""
    loads = rows + vectors
    bound = max(rows * vectors / _FMA_PER_CYCLE, _FMA_LATENCY, loads / _LOADS_PER_CYCLE, least)
    return bound + loads * _LOAD_PRESSURE + vectors * target.vector_bytes * _BYTE_PRESSURE


def depths(problem: Problem) -> tuple[int, ...]:
    """Choices of KC: k in 1, 2, 3, … equal blocks, multiples of 8, at most 2048 steps each, or
    more where a tile holds all rows and the weights are read once."""
    found = {-(-problem.k // (blocks * 8)) * 8 for blocks in _BLOCKS_OF_DEPTH}
    longest = 2048 if problem.m > _MAX_ROWS else 1 << 15
    good = sorted(d for d in found if 8 <= d <= longest)
    return tuple(good) or (max(8, min(found, key=lambda d: abs(d - 512))),)


def depth(problem: Problem, target: Target, tile: Tile) -> int:
    """The longest block whose rows of A fill about half of the first-level cache."""
    room = target.l1_bytes * 5 // 8 // (tile.rows * problem.product.dtype.bytes)
    fitting = [d for d in depths(problem) if d <= max(room, 256)]
    return max(fitting, default=min(depths(problem)))


def streamed_depth(problem: Problem, target: Target, tile: Tile) -> int:
    """The longest block whose rows of A take a quarter of the second-level cache: each column
    of B is then read from its begin to its end, with few breaks."""
    nbytes = tile.rows * problem.product.dtype.bytes
    return max(
        (d for d in depths(problem) if d * nbytes <= target.l2_bytes // 4),
        default=min(depths(problem)),
    )


def depth_of_column_tile(problem: Problem, target: Target, tile: Tile) -> int:
    """The longest block whose tile of B, rather than its rows of A, stays in the first-level
    cache while all row tiles pass it."""
    nbytes = tile.vectors * target.vector_bytes
    return max(
        (d for d in depths(problem) if d * nbytes <= target.l1_bytes * 3 // 4),
        default=min(depths(problem)),
    )


def shallow_depth(problem: Problem) -> int:
    """KC where B is read in place for few rows: as many streams as the hardware follows."""
    return min(depths(problem), key=lambda d: abs(d - 8))


def powers(limit: int) -> tuple[int, ...]:
    """1, 2, 4, … up to the first that covers `limit`."""
    found = [1]
    while found[-1] < limit:
        found.append(found[-1] * 2)
    return tuple(found)


def block_rows(problem: Problem, target: Target, tile: Tile) -> int:
    """MC in row tiles: packed rows of all of k, and whole rows of sums if the epilogue needs them,
    take an eighth of the last cache, for each core."""
    width = problem.k + (problem.n * problem.sections if problem.finishes_rows else 0)
    nbytes = tile.rows * max(width, 1) * problem.product.dtype.bytes
    room = max(1, target.l3_bytes // (4 * target.cores) // nbytes)
    choices = powers(-(-max(problem.m, 1) // tile.rows))
    return max(c for c in choices if c <= max(room, 4))


def block_rows_in_l2(problem: Problem, target: Target, tile: Tile, depth: int) -> int:
    """MC in row tiles: one block of k of the rows takes half of the second-level cache."""
    nbytes = tile.rows * depth * problem.product.dtype.bytes
    choices = powers(-(-max(problem.m, 1) // tile.rows))
    return max(c for c in choices if c == 1 or c * nbytes <= target.l2_bytes // 2)


def block_rows_of_runs(problem: Problem, target: Target, tile: Tile) -> int:
    """MC in row tiles where rows are pointed at: what one run of each of them reads takes half of
    the second-level cache."""
    nbytes = tile.rows * extent(problem.depth[-1]) * problem.product.dtype.bytes
    choices = powers(-(-max(problem.m, 1) // tile.rows))
    return max(c for c in choices if c == 1 or c * nbytes <= target.l2_bytes // 2)


def block_cols(problem: Problem, target: Target, tile: Tile, rows: int) -> int:
    """NC in column tiles: the sums of a block take a quarter of the second-level cache."""
    nbytes = tile.rows * tile.vectors * target.vector_bytes * rows
    room = max(1, target.l2_bytes // 4 // nbytes)
    return max(c for c in (1, 2, 4, 8, 16, 32) if c <= room)
