"""Fusion strategies as rules: the same search, on fewer groups.

A strategy names the kinds of ops that may share a kernel. All other ops stay alone by a
`never-fuse` rule, and the built-in rules that rewrite programs are off. What `gaf.optimize` gets is
a rules text, as any user can write it; it works on every device.
"""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.ops import OPS, OpKind

ELEMENTWISE, REDUCTION, CONTRACTION, MOVEMENT = (
    "elementwise",
    "reduction",
    "contraction",
    "movement",
)

_BY_KIND = {
    **dict.fromkeys(
        (
            OpKind.UNARY,
            OpKind.PREDICATE,
            OpKind.BINARY,
            OpKind.COMPARE,
            OpKind.SELECT,
            OpKind.CAST,
        ),
        ELEMENTWISE,
    ),
    OpKind.REDUCTION: REDUCTION,
    OpKind.CONTRACTION: CONTRACTION,
    OpKind.VIEW: MOVEMENT,
    OpKind.JOIN: MOVEMENT,
    OpKind.INDEXED: MOVEMENT,
}
_COMPOSITES = {
    # A batch norm with fixed statistics is a scale and a shift.
    ELEMENTWISE: "gelu silu hardswish hardsigmoid relu6 mish softplus logsigmoid square leaky_relu "
    "elu clamp batch_norm",
    REDUCTION: "layer_norm rms_norm group_norm softmax log_softmax mean var std",
    CONTRACTION: "linear attention",
}
_OF_COMPOSITE = {op: kind for kind, names in _COMPOSITES.items() for op in names.split()}


@dataclass(frozen=True, slots=True)
class Strategy:
    """`kinds` of ops that may share kernels; None leaves all to the search. `kept` are built-in
    rules that stay on."""

    name: str
    kinds: frozenset[str] | None
    kept: frozenset[str] = frozenset()

    @property
    def rules(self) -> str | None:
        """The rules as YAML text; None where the built-in ones hold as they are."""
        if self.kinds is None:
            return None
        alone = [op for op in OPS if _kind(op) not in self.kinds and op != "framework"]
        off = [rule.name for rule in load_rules() if rule.name not in self.kept]
        rules = [{"name": name, "action": "none"} for name in off]
        why = f"The strategy '{self.name}' of the ablation leaves these ops alone."
        lone = {"name": "ablation", "why": why, "match": {"op": alone}, "action": "never-fuse"}
        return yaml.safe_dump({"version": 1, "rules": [*rules, lone]}, sort_keys=False)


def _kind(op: str) -> str | None:
    """The kind of an op; None for those that only the automatic strategy fuses."""
    return _OF_COMPOSITE.get(op) or _BY_KIND.get(OPS[op].kind)


NONE = Strategy("none", frozenset())
BY_ELEMENT = Strategy("elementwise", frozenset({ELEMENTWISE}))
WITH_REDUCTIONS = Strategy("+ reduction", frozenset({ELEMENTWISE, REDUCTION}))
WITH_PRODUCTS = Strategy("+ matmul", frozenset({ELEMENTWISE, REDUCTION, CONTRACTION, MOVEMENT}))
WITH_TRANSPOSES = Strategy(
    "+ transpose", frozenset({ELEMENTWISE, MOVEMENT}), frozenset({"channels-last"})
)
AUTOMATIC = Strategy("automatic", None)
