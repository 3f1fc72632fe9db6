"""What can be chosen for a matmul kernel, and first guesses from the target's capacities."""

from __future__ import annotations

from kernel_gen.codegen.cpu.axes import extent
from kernel_gen.codegen.cpu.matmul import guess
from kernel_gen.codegen.cpu.matmul.operand import (
    fits_in_place,
    holds_pairs,
    left_modes,
    may_turn,
    right_modes,
)
from kernel_gen.codegen.cpu.matmul.problem import Problem
from kernel_gen.codegen.cpu.matmul.row_epilogue import policies
from kernel_gen.codegen.cpu.matmul.scratch import divides_depth
from kernel_gen.codegen.cpu.matmul.tiling import Operand, Split, Tiling
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Choice, Parameter, Point, Space

_MOST_ROWS = 256  # row tiles of a block
_NC = (1, 2, 4, 8, 16, 32, 64, 128)
_UNROLL = (1, 2, 4)
_PREFETCH = (0, 4, 8, 16)
_AHEAD = ("none", "next")
_ELEMENTS = ("wide", "pairs")
_COLS = ("apart", "joined")
_WALK = ("straight", "turned")
_AHEAD_ROW_TILES = 8  # with fewer, one tile's share of a panel is long
_TEAM_STEPS = 200_000
_PARTS = (1, 2, 4, 8, 16)
_LEAST_DEPTH = 512  # steps of k: fewer are summed up faster than parts are
_LONG = 4  # times as many steps of k as rows or columns
_DOT_ROWS = 4  # beyond, packing a right operand that runs along k pays
Seed = tuple[tuple[str, Choice], ...]


def matmul_space(problem: Problem, target: Target) -> Space:
    tiles = guess.tiles(problem, target)
    named = {*tiles, *_tiles_in_place(problem, target)}
    row_tiles = max(-(-problem.m // min(tile.rows for tile in tiles)), 1)
    parameters = (
        Parameter("tile", tuple(_tile_name(tile) for tile in sorted(named))),
        Parameter("kc", guess.depths(problem)),
        Parameter("mc", guess.powers(min(row_tiles, _MOST_ROWS))),
        Parameter("nc", _NC),
        Parameter("left", tuple(str(mode) for mode in left_modes(problem))),
        Parameter("right", tuple(str(mode) for mode in right_modes(problem))),
        Parameter("split", _splits(problem, target)),
        *((Parameter("parts", _PARTS),) if _offers_depth(problem, target) else ()),
        Parameter("unroll", _UNROLL),
        Parameter("prefetch", _PREFETCH),
        Parameter("ahead", _AHEAD),
        *((Parameter("element", _ELEMENTS),) if holds_pairs(problem) else ()),
        *((Parameter("cols", _COLS),) if problem.joins_cols else ()),
        *((Parameter("walk", _WALK),) if may_turn(problem) else ()),
        Parameter("threads", ("one", "all")),
        *((Parameter("keep", policies(problem)),) if problem.finishes_rows else ()),
    )
    return Space(parameters, _seeds(problem, target, tiles))


def _tiles_in_place(problem: Problem, target: Target) -> list[guess.Tile]:
    """Tiles for a left operand that is read in place: with turned rows, and with few."""
    if left_modes(problem)[-1] is Operand.CALL or problem.m <= _DOT_ROWS:
        return []
    even = guess.even_tile(problem, target) if may_turn(problem) else None
    found = (even, guess.tile_in_place(problem, target))
    return [tile for tile in found if tile is not None]


def _seeds(problem: Problem, target: Target, tiles: list[guess.Tile]) -> tuple[Seed, ...]:
    """Tiles for reading in place; the best tile, then with long sums in parts, with the other ways
    to read operands, split the other way, and other tiles."""
    split = _split(problem, target, tiles[0])
    other = Split.ROWS if split is Split.COLS else Split.COLS
    left = left_modes(problem)
    right = _right(problem, target, tiles[0])
    few = problem.m <= _DOT_ROWS
    first = _seed(problem, target, tiles[0], split, left[-1], right)
    wished = [
        *(_in_place(problem, target, tile, split) for tile in _tiles_in_place(problem, target)),
        first,
        *((_with_other_element(first),) if right is not Operand.DOT else ()),
        *_with_other_columns(problem, first, right),
        *_with_parts(problem, target, first, split),
        *(
            _seed(problem, target, tiles[0], split, left[-1], mode)
            for mode in right_modes(problem)
            if few
        ),
        _seed(problem, target, tiles[0], split, left[0], right),
        *(() if few else (_with(first, **_inner_blocks(problem, target, tiles[0])),)),
        *(() if few else (_seed(problem, target, tiles[0], other, left[-1], right),)),
        *(
            _seed(problem, target, tile, split, left[-1], _right(problem, target, tile))
            for tile in tiles[1:3]
        ),
    ]
    return tuple(
        seed
        for seed in dict.fromkeys(wished)
        if fits_in_place(problem, tiling_of(problem, target, dict(seed)))
    )


def _splits(problem: Problem, target: Target) -> tuple[str, ...]:
    offered = _offers_depth(problem, target)
    return tuple(str(split) for split in Split if split is not Split.DEPTH or offered)


def _offers_depth(problem: Problem, target: Target) -> bool:
    """Whether parts of the sums may pay: they are long, and all of them stay in the last cache."""
    sums = max(problem.b, 1) * problem.m * problem.n * problem.sections
    few = sums * problem.product.dtype.bytes <= target.l3_bytes // 4
    long = problem.k >= max(_LONG * max(problem.m, problem.n), _LEAST_DEPTH)
    return few and long and divides_depth(problem)


def _lacks_tiles(problem: Problem, target: Target, tile: guess.Tile) -> bool:
    """Whether neither rows nor columns have a tile for each core."""
    cols = -(-problem.n // (tile.vectors * guess.lanes_of(problem, target)))
    return problem.b * max(-(-problem.m // tile.rows), cols) < target.cores


def _split(problem: Problem, target: Target, tile: guess.Tile) -> Split:
    """Threads that share rows read all of B, threads that share columns all of A, and meet before
    whole rows are finished."""
    row_tiles = -(-problem.m // tile.rows)
    if _offers_depth(problem, target) and _lacks_tiles(problem, target, tile):
        return Split.DEPTH
    if problem.b >= 2 * target.cores:
        return Split.BATCH
    whole = problem.finishes_rows or problem.m >= 2 * problem.n
    if problem.b * row_tiles >= 2 * target.cores and whole:
        return Split.ROWS
    return Split.COLS


def _right(problem: Problem, target: Target, tile: guess.Tile) -> Operand:
    """In place where it is read few times or its rows are short; packed otherwise."""
    modes = right_modes(problem)
    if Operand.DOT in modes and problem.m <= _DOT_ROWS:
        return Operand.DOT  # many streams, and no second copy of a constant
    if modes[0] is Operand.LOAD:
        return modes[0]
    if Operand.DIRECT not in modes or not _last_tile_fits(problem, target, tile):
        return modes[0]
    few = problem.m <= 4 * tile.rows
    short = problem.n * problem.product.dtype.bytes <= 1024
    return Operand.DIRECT if few or short else modes[0]


def _last_tile_fits(problem: Problem, target: Target, tile: guess.Tile) -> bool:
    """Whether whole vectors of the last columns exist (see `operand.fits_in_place`)."""
    lanes = guess.lanes_of(problem, target)
    rest = problem.inner_cols % (tile.vectors * lanes)
    return problem.inner_cols >= -(-rest // lanes) * lanes


def _seed(
    problem: Problem,
    target: Target,
    tile: guess.Tile,
    split: Split,
    left: Operand,
    right: Operand,
) -> Seed:
    rows = min(guess.block_rows(problem, target, tile), _MOST_ROWS)
    left = _cut(left) if split is Split.DEPTH else left
    packed = right.is_packed
    streams = right is Operand.DIRECT and problem.m <= 4 * tile.rows
    return (
        ("tile", _tile_name(tile)),
        ("kc", _depth(problem, target, tile, right)),
        ("mc", rows),
        ("nc", 128 if streams else guess.block_cols(problem, target, tile, rows)),
        ("left", str(left)),
        ("right", str(right)),
        ("split", str(split)),
        *((("parts", _parts(problem, target)),) if _offers_depth(problem, target) else ()),
        ("unroll", 2 if tile.rows * tile.vectors >= 8 else 4),
        ("prefetch", 8 if packed else 0),
        *((("element", _element(problem, target, packed)),) if holds_pairs(problem) else ()),
        *((("cols", _COLS[_joins(problem, target, tile, packed)]),) if problem.joins_cols else ()),
        *((("walk", _WALK[_turns(problem, tile, left)]),) if may_turn(problem) else ()),
        ("ahead", _AHEAD[packed and problem.m >= _AHEAD_ROW_TILES * tile.rows]),
        ("threads", "all" if _worth_a_team(problem) else "one"),
        *((("keep", policies(problem)[-1]),) if problem.finishes_rows else ()),
    )


def _parts(problem: Problem, target: Target) -> int:
    """The fewest parts that occupy all cores."""
    return next((n for n in _PARTS if n * problem.b >= target.cores), _PARTS[-1])


def _joins(problem: Problem, target: Target, tile: guess.Tile, packed: bool) -> bool:
    """Whether tiles are cut anew: packed, and not whole where the innermost axis ends."""
    columns = tile.vectors * guess.lanes_of(problem, target)
    return packed and problem.inner_cols % columns != 0


def _turns(problem: Problem, tile: guess.Tile, left: Operand) -> bool:
    """Whether a tile's rows are at one place in the padding if they are turned."""
    return left is Operand.POINTERS and extent(problem.rows[0]) % tile.rows == 0


def _in_place(problem: Problem, target: Target, tile: guess.Tile, split: Split) -> Seed:
    """The left operand read in place, a block of its rows in the second-level cache."""
    left = left_modes(problem)[-1]
    seed = _seed(problem, target, tile, split, left, _right(problem, target, tile))
    if dict(seed).get("walk") == "turned":
        rows = guess.block_rows_of_runs(problem, target, tile)
        return _with(seed, mc=min(rows, _MOST_ROWS), nc=1)
    rows = guess.block_rows_in_l2(problem, target, tile, int(dict(seed)["kc"]))
    cols = guess.block_cols(problem, target, tile, rows)
    return _with(seed, mc=min(rows, _MOST_ROWS), nc=cols)


def _depth(problem: Problem, target: Target, tile: guess.Tile, right: Operand) -> int:
    if right is Operand.DOT:
        return guess.streamed_depth(problem, target, tile)
    if right is Operand.DIRECT and problem.m <= 4 * tile.rows:
        return guess.shallow_depth(problem)
    return guess.depth(problem, target, tile)


def _element(problem: Problem, target: Target, packed: bool) -> str:
    """Pairs of bf16 where instructions multiply them, or where reading the weights takes longer
    than taking pairs apart."""
    few = problem.m <= _DOT_ROWS
    return _ELEMENTS[packed and (few or "avx512bf16" in target.features)]


def _inner_blocks(problem: Problem, target: Target, tile: guess.Tile) -> dict[str, Choice]:
    """Blocks for the inner caches: a tile of B in the first level, rows of A in the second."""
    depth = guess.depth_of_column_tile(problem, target, tile)
    rows = min(guess.block_rows_in_l2(problem, target, tile, depth), _MOST_ROWS)
    return {"kc": depth, "mc": rows, "nc": guess.block_cols(problem, target, tile, rows)}


def _with(seed: Seed, **changes: Choice) -> Seed:
    return tuple((name, changes.get(name, value)) for name, value in seed)


def _with_other_element(seed: Seed) -> Seed:
    """The same choices with packed elements of the other kind, if there are two."""
    return tuple(
        (name, _ELEMENTS[value == _ELEMENTS[0]] if name == "element" else value)
        for name, value in seed
    )


def _with_other_columns(problem: Problem, seed: Seed, right: Operand) -> list[Seed]:
    """The same choices with columns joined or apart, if there are both."""
    if not problem.joins_cols or not right.is_packed:
        return []
    return [_with(seed, cols=_COLS[dict(seed)["cols"] == _COLS[0]])]


def _with_parts(problem: Problem, target: Target, seed: Seed, split: Split) -> list[Seed]:
    """The same choices with the depth split, if it is not and may be."""
    if split is Split.DEPTH or not _offers_depth(problem, target):
        return []
    left = str(_cut(Operand(str(dict(seed)["left"]))))
    straight = {"walk": _WALK[0]} if may_turn(problem) else {}
    return [_with(seed, split=str(Split.DEPTH), left=left, **straight)]


def _cut(left: Operand) -> Operand:
    """How the left operand is read where the depth is split: pointers are of whole rows."""
    return Operand.CALL if left is Operand.POINTERS else left


def _worth_a_team(problem: Problem) -> bool:
    """Starting a team takes a few microseconds: the time of some 300 thousand multiply-adds."""
    return problem.b * problem.m * problem.n * problem.k >= _TEAM_STEPS


def _tile_name(tile: guess.Tile) -> str:
    return f"{tile.rows}x{tile.vectors}"


def tiling_of(problem: Problem, target: Target, point: Point) -> Tiling:
    """The tiling that a point of the space stands for."""
    rows, vectors = (int(part) for part in str(point["tile"]).split("x"))
    split = Split(str(point["split"]))
    whole = split is Split.DEPTH  # all rows and columns are one block
    return Tiling(
        lanes=guess.lanes_of(problem, target),
        mr=rows,
        nv=vectors,
        kc=int(point["kc"]),
        mc=1 if whole else int(point["mc"]),
        nc=1 if whole else int(point["nc"]),
        split=split,
        left=Operand(str(point["left"])),
        right=Operand(str(point["right"])),
        unroll=int(point["unroll"]),
        prefetch=int(point["prefetch"]),
        pairs=point.get("element", "wide") == "pairs",
        joined=point.get("cols", "apart") == "joined",
        ahead=point["ahead"] == "next",
        turned=point.get("walk", _WALK[0]) == "turned",
        team=point["threads"] == "all",
        keep=str(point.get("keep", "none")),
        parts=int(point.get("parts", 1)) if whole else 1,
    )
