"""What a plan is made for: a device kind, its instruction set and its capacities."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from kernel_gen.errors import InvalidGraph


class DeviceKind(StrEnum):
    CPU = "cpu"
    ASCEND = "ascend"
    ASCEND_SIM = "ascend-sim"


@dataclass(frozen=True, slots=True)
class Target:
    """A device as the generator sees it. Capacities in bytes per core unless said otherwise.

    `model` is the CPU family and model ("x86-f25m17") or the NPU chip ("910b3"). `isa` is the
    instruction-set level in use ("x86-64", "x86-64-v3", "x86-64-v4", "armv8-neon"), `features`
    are extensions beyond it, sorted ("avx512bf16").
    """

    kind: DeviceKind
    model: str
    isa: str
    features: tuple[str, ...] = ()
    cores: int = 1
    vector_bytes: int = 16
    l1_bytes: int = 32 << 10
    l2_bytes: int = 1 << 20
    l3_bytes: int = 32 << 20  # shared by all cores

    def __post_init__(self) -> None:
        if self.cores < 1 or self.vector_bytes not in (16, 32, 64, 256):
            raise InvalidGraph(
                f"target {self.model}: {self.cores} cores, {self.vector_bytes} B vectors"
            )
        if list(self.features) != sorted(set(self.features)):
            raise InvalidGraph(f"target {self.model}: features {self.features} are not sorted")

    @property
    def key(self) -> str:
        """The target's part of a `PlanKey`: letters, digits, '-', '.', '+' only."""
        extensions = "".join(f"+{name}" for name in self.features)
        return f"{self.kind}-{self.model}-{self.isa}{extensions}-c{self.cores}"
