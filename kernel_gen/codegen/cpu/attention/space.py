"""What can be chosen for an attention kernel, and where a search should begin."""

from __future__ import annotations

from kernel_gen.codegen.cpu.attention.operands import key_in_place, value_in_place
from kernel_gen.codegen.cpu.attention.pairs import pairs_depth, pairs_keys
from kernel_gen.codegen.cpu.attention.problem import Problem
from kernel_gen.codegen.cpu.attention.tiling import Operand, Tiling
from kernel_gen.codegen.cpu.matmul.guess import step_cycles, tile_registers
from kernel_gen.ir.target import Target
from kernel_gen.schedule.schedule import Choice, Parameter, Point, Space

Seed = tuple[tuple[str, Choice], ...]

_FEW_ROWS = 8
"""Rows up to which keys may be read in place, with vectors along the depth."""
_TEAM_STEPS = 300_000  # multiply-adds that take as long as starting a team
_ROW_BLOCKS = (8, 16, 32, 48, 64, 96, 128)
_KEY_BLOCKS = (64, 128, 256, 512, 1024)
_SPLITS = (1, 2, 4, 8)


def lanes_of(problem: Problem, target: Target) -> int:
    return target.vector_bytes // problem.dtype.bytes


def attention_space(problem: Problem, target: Target) -> Space:
    """Parameters and seeds."""
    tiles = _tiles(problem, target)
    parameters = (
        Parameter("tile", tuple(f"{rows}x{vectors}" for rows, vectors in tiles)),
        Parameter("rows", tuple(sorted({_row_block(problem, n) for n in _ROW_BLOCKS}))),
        Parameter("keys", tuple(sorted({_key_block(problem, n) for n in _KEY_BLOCKS}))),
        Parameter("key", tuple(map(str, key_modes(problem)))),
        Parameter("value", tuple(map(str, value_modes(problem, target)))),
        Parameter("splits", _splits(problem, target)),
        Parameter("threads", ("one", "all")),
        Parameter("ahead", ("none", "next")),
    )
    return Space(parameters, _seeds(problem, target, parameters))


def key_modes(problem: Problem) -> tuple[Operand, ...]:
    """Ways to read the keys."""
    in_place = problem.m <= _FEW_ROWS and key_in_place(problem) is not None
    found = (Operand.DOT, Operand.PACK) if in_place else (Operand.PACK,)
    return (*found, Operand.PAIRS) if pairs_depth(problem) else found


def value_modes(problem: Problem, target: Target) -> tuple[Operand, ...]:
    """Ways to read the values."""
    place = value_in_place(problem, lanes_of(problem, target))
    found = (Operand.PACK,) if place is None else (Operand.PLACE, Operand.PACK)
    return (*found, Operand.PAIRS) if pairs_keys(problem) else found


def _tiles(problem: Problem, target: Target) -> tuple[tuple[int, int], ...]:
    """Register tiles (rows, vectors) that fit the registers with a vector of each column and one
    broadcast, those with the least work first."""
    lanes = lanes_of(problem, target)
    widest = max(1, min(8, -(-max(problem.e, problem.t) // lanes)))
    tallest = min(14, problem.m)
    fitting = [
        (rows, vectors)
        for rows in range(1, tallest + 1)
        for vectors in range(1, widest + 1)
        if rows * vectors + vectors + 1 <= tile_registers(target)
    ]
    return tuple(sorted(fitting, key=lambda tile: (_cycles(problem, target, tile), tile))[:8])


def _cycles(problem: Problem, target: Target, tile: tuple[int, int]) -> float:
    """Of the products of one head. Tiles of rows and of keys are computed whole; of the values'
    columns the last tile has whole vectors."""
    (rows, vectors), lanes = tile, lanes_of(problem, target)
    full, rest = divmod(-(-problem.e // lanes), vectors)
    panels = -(-problem.t // (vectors * lanes))
    step = _step_cycles(rows, vectors, target)
    tail = _step_cycles(rows, rest, target) if rest else 0.0
    one = panels * step * problem.d + (full * step + tail) * problem.t
    return one * -(-problem.m // rows)


def _step_cycles(rows: int, vectors: int, target: Target) -> float:
    """Of one step of the depth, with its share of a tile's call; more with no register to spare."""
    full = (rows + 1) * vectors + 1 == tile_registers(target)
    return (step_cycles(rows, vectors, target) + 0.5) * (1.05 if full else 1.0)


def _row_block(problem: Problem, wanted: int) -> int:
    """Rows of a block: all of them if `wanted` covers them."""
    return min(wanted, problem.m)


def _key_block(problem: Problem, wanted: int) -> int:
    return wanted if wanted < problem.t else -(-problem.t // 16) * 16


def _splits(problem: Problem, target: Target) -> tuple[Choice, ...]:
    """Parts of the keys: only where heads and blocks of rows may not occupy all cores."""
    if problem.b * problem.m > 64 * target.cores or problem.t < 128:
        return (1,)
    return _SPLITS


def _seeds(problem: Problem, target: Target, parameters: tuple[Parameter, ...]) -> tuple[Seed, ...]:
    """Few rows by many keys first: their scores fit the second-level cache, and the fewer the
    blocks of keys, the fewer rescaled results and sums along rows."""
    choices = {parameter.name: parameter.choices for parameter in parameters}
    steps = problem.b * problem.m * problem.t * (problem.d + problem.e)
    best: dict[str, Choice] = {
        "tile": choices["tile"][0],
        "rows": _nearest(choices["rows"], 32),
        "keys": _nearest(choices["keys"], 512),
        "key": _first_mode(problem, target, choices["key"]),
        "value": _first_mode(problem, target, choices["value"]),
        "splits": 1,
        "threads": "all" if steps >= _TEAM_STEPS else "one",
        "ahead": "next" if problem.m > _FEW_ROWS else "none",
    }
    other = {**best, "tile": choices["tile"][min(1, len(choices["tile"]) - 1)]}
    short = {**best, "keys": _nearest(choices["keys"], 128), "rows": _nearest(choices["rows"], 64)}
    packed = {**best, "key": str(Operand.PACK), "value": str(Operand.PACK)}
    split = {**best, "splits": 2 if problem.b < target.cores and len(choices["splits"]) > 1 else 1}
    seeds = (tuple(seed.items()) for seed in (best, short, other, packed, split))
    return tuple(dict.fromkeys(seeds))


def _first_mode(problem: Problem, target: Target, modes: tuple[Choice, ...]) -> Choice:
    """Pairs where instructions multiply them and packing pays, else in place if possible."""
    pairs = "avx512bf16" in target.features and problem.m > _FEW_ROWS
    return str(Operand.PAIRS) if pairs and str(Operand.PAIRS) in modes else modes[0]


def _nearest(choices: tuple[Choice, ...], wanted: int) -> Choice:
    return min(choices, key=lambda choice: abs(int(choice) - wanted))


def tiling_of(problem: Problem, target: Target, point: Point) -> Tiling:
    """The tiling that a point of the space stands for: blocks in whole register tiles."""
    rows, vectors = (int(part) for part in str(point["tile"]).split("x"))
    nr = vectors * lanes_of(problem, target)
    return Tiling(
        lanes=lanes_of(problem, target),
        mr=rows,
        nv=vectors,
        rows=-(-int(point["rows"]) // rows) * rows,
        keys=-(-int(point["keys"]) // nr) * nr,
        key=Operand(str(point["key"])),
        value=Operand(str(point["value"])),
        splits=int(point["splits"]),
        team=point["threads"] == "all",
        ahead=point["ahead"] == "next",
    )
