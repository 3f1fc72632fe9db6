"""Published measurements of the 910B generation against the simulator.

`python -m tests.ascend.calibration` prints the table, `--write` puts it into the simulator's
README. All simulated figures are for 910B1 (24 cube and 48 vector cores at 1850 MHz).
"""

from __future__ import annotations

import struct
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import SimResult, Simulator, build

KERNELS = Path(__file__).parent / "kernels"
README = Path(__file__).parents[2] / "kernel_gen" / "ascend" / "sim" / "README.md"
BEGIN, END = "<!-- calibration: begin -->", "<!-- calibration: end -->"
_SIDE = 12288  # of the square matrix of halves that was read

Run = Callable[..., SimResult]


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure and ours; `fitted` where a parameter was chosen to meet it."""

    what: str
    published: float
    simulated: float
    unit: str
    fitted: bool

    @property
    def error(self) -> float:
        return self.simulated / self.published - 1.0


class Bench:
    """The calibration kernels, built once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._libraries: dict[str, Path] = {}

    def run(
        self,
        entry: str,
        *,
        rounds: int = 1,
        size: int = 0,
        offset: int = 0,
        mnk: tuple[int, int, int] = (0, 0, 0),
        blocks: int = 1,
        read_bytes: int = 1 << 20,
    ) -> SimResult:
        simulator = self._simulator("calibration", entry)
        tiling = struct.pack("6I", rounds, size, offset, *mnk)
        x = np.empty(read_bytes, np.uint8)
        y = np.empty(1 << 20, np.uint8)
        return simulator.run([x], [y], tiling=tiling, blocks=blocks, check=False)

    def per_round(self, entry: str, **arguments: object) -> float:
        """Cycles of one round: what a hundred more of them cost."""
        few = self.run(entry, rounds=20, **arguments)  # type: ignore[arg-type]
        many = self.run(entry, rounds=120, **arguments)  # type: ignore[arg-type]
        return (many.cycles - few.cycles) / 100

    def matmul(self, side: int) -> SimResult:
        simulator = self._simulator("matmul", "matmul")
        a = np.empty((side, side), np.float16)
        tiling = struct.pack("6I", side, side, side, 128, 256, 64)
        return simulator.run([a, a], [a], tiling=tiling, blocks=24, check=False)

    def _simulator(self, source: str, entry: str) -> Simulator:
        if source not in self._libraries:
            text = (KERNELS / f"{source}.cpp").read_text()
            self._libraries[source] = build({f"{source}.cpp": text}, self._folder / source)
        return Simulator(self._libraries[source], entry, load_chip("910b1"))


def fitted(what: str, published: float, simulated: float, unit: str) -> Row:
    return Row(what, published, simulated, unit, fitted=True)


def held_out(what: str, published: float, simulated: float, unit: str) -> Row:
    return Row(what, published, simulated, unit, fitted=False)


def vector_rows(bench: Bench) -> list[Row]:
    """The Add ladder and the scalar unit."""
    add = [bench.per_round("vector_add", size=64, offset=o) for o in range(3)]
    scalar = bench.per_round("scalar_loop")
    return [
        fitted("Add, 64 repeats, no bank conflict", 88, add[0], "cycles"),
        fitted("Add, 64 repeats, sources in one bank group", 154, add[1], "cycles"),
        fitted("Add, 64 repeats, read and write in one bank", 139, add[2], "cycles"),
        fitted("scalar loop, two reads and a write", 34, scalar, "cycles"),
    ]


def memory_rows(bench: Bench) -> list[Row]:
    """Copies between GM and UB."""
    total, tile = 2 * _SIDE * _SIDE, 24576

    def read(burst: int, offset: int = 0) -> float:
        run = bench.run(
            "read_array", rounds=total // tile, size=tile, offset=offset, mnk=(burst, 0, 0),
            blocks=48, read_bytes=total + 64,
        )  # fmt: skip
        return run.latency_us

    large = bench.run(
        "read_array", rounds=40960, size=32768, mnk=(32768, 0, 0), blocks=48, read_bytes=40960 << 15
    )
    again = bench.run("read_again", rounds=50, size=1 << 20, blocks=48)
    copy_in, copy_out = (bench.per_round(f"copy_{way}", size=8192) for way in ("in", "out"))
    return [
        fitted("GM to UB, one core, 8 KB", 350, copy_in, "cycles"),
        fitted("UB to GM, one core, 8 KB", 295, copy_out, "cycles"),
        fitted("read of 1.3 GB, 48 cores", 1.456, _terabytes_per_s(large), "TB/s"),
        fitted("read again out of L2, 48 cores", 5.2, _terabytes_per_s(again), "TB/s"),
        held_out("12288² halves, large tiles", 202.7, read(tile), "µs"),
        fitted("12288² halves, bursts of 128 B", 220.8, read(128), "µs"),
        held_out("12288² halves, bursts of 128 B, unaligned", 259.0, read(128, 16), "µs"),
    ]


def cube_rows(bench: Bench) -> list[Row]:
    """The cube unit and what feeds it."""
    load = [bench.per_round("load", size=16384, offset=o) for o in range(2)]
    product = bench.per_round("product", mnk=(128, 256, 64))
    fix = bench.per_round("fix", mnk=(128, 128, 0))
    whole = bench.matmul(8192).latency_us
    return [
        fitted("L1 to L0A, 16 KB", 16384 / 256 + 28, load[0], "cycles"),
        fitted("L1 to L0B, 16 KB", 16384 / 128 + 28, load[1], "cycles"),
        fitted("L0C to L1, 128 × 128", 128 * 128 / 64 + 20, fix, "cycles"),
        fitted("product of 128 × 256 × 64 halves", 8 * 16 * 4, product, "cycles"),
        held_out("product of 8192³ halves, 24 cores", 3081.7, whole, "µs"),
    ]


def _terabytes_per_s(result: SimResult) -> float:
    return result.gm_bytes / result.latency_us / 1e6


def table(rows: list[Row]) -> str:
    """The rows in Markdown."""
    lines = [
        "| what | published | simulated | error | parameters |",
        "|---|---|---|---|---|",
    ]
    for row in rows:
        how = "fitted" if row.fitted else "held out"
        lines.append(
            f"| {row.what} | {row.published:.5g} {row.unit} | {row.simulated:.5g} {row.unit} | "
            f"{row.error:+.1%} | {how} |"
        )
    return "\n".join(lines)


def measure() -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(Path(folder))
        return [*vector_rows(bench), *memory_rows(bench), *cube_rows(bench)]


def write(text: str) -> None:
    """Puts the table between the README's marks."""
    readme = README.read_text(encoding="utf-8")
    before, rest = readme.split(BEGIN)
    after = rest.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    rows = table(measure())
    print(rows)
    if "--write" in sys.argv[1:]:
        write(rows)
