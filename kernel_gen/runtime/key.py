"""`PlanKey`: the one place that formats and parses the keys of plans.

    gaf1:<graph>:<shape class>:<options>:<target>

All parts are URL-safe and computable without a compiler.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass

from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.target import DeviceKind, Target

PREFIX = "gaf1"
_PART = re.compile(r"[A-Za-z0-9.+_-]{1,128}\Z")


@dataclass(frozen=True, slots=True)
class PlanKey:
    """Identity of a plan: same key, same program on the same kind of target.

    `graph` and `options` are digests cut to 32 and 16 hex digits; `shape` is "static" or the
    digest of the symbol ranges; `target` is `Target.key`.
    """

    graph: str
    shape: str
    options: str
    target: str

    def __post_init__(self) -> None:
        for part in (self.graph, self.shape, self.options, self.target):
            if not _PART.match(part):
                raise InvalidInput(f"plan key part {part!r}: expected letters, digits, . + _ -")

    def __str__(self) -> str:
        return f"{PREFIX}:{self.graph}:{self.shape}:{self.options}:{self.target}"

    @staticmethod
    def parse(text: str) -> PlanKey:
        """The key that `str` has written; raises InvalidInput."""
        parts = text.split(":")
        if len(parts) != 5 or parts[0] != PREFIX:
            raise InvalidInput(
                f"not a plan key: {text[:200]!r}; expected {PREFIX}:graph:shape:options:target"
            )
        return PlanKey(*parts[1:])


def stands_in(target: str, wanted: str) -> bool:
    """Whether a plan for one target (its part of a key) may be worth trying on another: among
    CPUs only, as an NPU's plan is for its own chip."""
    return all(part.startswith(f"{DeviceKind.CPU}-") for part in (target, wanted))


def options_digest(*, numerics: str, training: bool, rules: str) -> str:
    """Digest of what changes a plan besides graph and target."""
    text = f"{numerics}\0{int(training)}\0{rules}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def plan_key(
    graph: Graph, target: Target, *, numerics: str = "fast", training: bool = False, rules: str = ""
) -> PlanKey:
    """The key under which a plan for `graph` on `target` is stored; needs no compiler."""
    options = options_digest(numerics=numerics, training=training, rules=rules)
    return PlanKey(graph.digest[:32], shape_class(graph), options, target.key)


def shape_class(graph: Graph) -> str:
    """ "static", or the digest of the ranges of the graph's symbols."""
    if not graph.symbols:
        return "static"
    text = ";".join(f"{s.name}:{s.low}:{s.high}" for s in graph.symbols)
    return hashlib.sha256(text.encode()).hexdigest()[:16]
