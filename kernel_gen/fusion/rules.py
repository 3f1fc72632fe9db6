"""Fusion rules: a pattern, a condition and an action each, read from YAML.

version: 1
rules:
  - name: keep-softmax-alone
    why: The profiler shows it apart.
    match: {op: softmax, min_elems: 4096}
    action: never-fuse
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from importlib import resources
from typing import NoReturn

import yaml

from kernel_gen.errors import InvalidRules
from kernel_gen.ir.dtype import DType
from kernel_gen.ir.ops import OPS
from kernel_gen.ir.target import DeviceKind

MAX_BYTES = 64 << 10
MAX_RULES = 256
_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,63}\Z")


class Action(StrEnum):
    """What a rule does with the nodes it matches."""

    EXPAND = "expand"  # replace a composite by its primitives
    FRAMEWORK = "framework"  # leave the op to torch
    NEVER_FUSE = "never-fuse"  # keep it apart from the named producers or consumers, or from all
    FUSE = "fuse"  # keep it in one kernel with the named producers or consumers
    MERGE = "merge"  # one matrix product for those that read the same operand
    FOLD = "fold"  # a batch norm into the constant weights before it
    CHANNELS_LAST = "channels-last"  # keep the images between convolutions with channels innermost
    NONE = "none"  # turns off the rule of the same name


@dataclass(frozen=True, slots=True)
class Match:
    """Which nodes a rule is about. Empty fields match everything.

    `producer` and `consumer` name ops of which at least one must stand before or after the node.
    `min_elems` and `max_elems` bound the elements of the result, inclusively; a symbolic shape
    matches neither bound. `device` names kinds of devices.
    """

    op: tuple[str, ...]
    producer: tuple[str, ...] = ()
    consumer: tuple[str, ...] = ()
    dtype: tuple[str, ...] = ()
    min_elems: int | None = None
    max_elems: int | None = None
    device: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `line` is where it begins in its file, counted from 1."""

    name: str
    why: str
    match: Match
    action: Action
    line: int


def load_rules(text: str | None = None) -> tuple[Rule, ...]:
    """The built-in rules, with those of the user's YAML `text` replacing or following them.

    Raises InvalidRules with the line number.
    """
    builtin = resources.files("kernel_gen.fusion").joinpath("rules.yaml").read_text("utf-8")
    rules = {rule.name: rule for rule in parse_rules(builtin)}
    if text:
        rules |= {rule.name: rule for rule in parse_rules(text)}
    return tuple(rule for rule in rules.values() if rule.action is not Action.NONE)


def parse_rules(text: str) -> tuple[Rule, ...]:
    """The rules of one YAML text, in order; raises InvalidRules with the line number."""
    if len(text.encode("utf-8", "replace")) > MAX_BYTES:
        raise InvalidRules(f"rules: larger than {MAX_BYTES} bytes")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except (yaml.YAMLError, RecursionError) as error:
        mark = getattr(error, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise InvalidRules(f"rules, line {line}: not YAML: {_first_line(error)}") from error
    if root is None:
        return ()
    top = _mapping(root, ("version", "rules"))
    if "version" not in top or _scalar(top["version"]) != "1":
        _fail(root, "expected 'version: 1'")
    rules = [_rule(node) for node in _sequence(top["rules"])] if "rules" in top else []
    if len(rules) > MAX_RULES:
        _fail(root, f"{len(rules)} rules, the limit is {MAX_RULES}")
    _refuse_twins(rules)
    return tuple(rules)


def _first_line(error: Exception) -> str:
    return str(getattr(error, "problem", None) or error).splitlines()[0][:200]


def _refuse_twins(rules: list[Rule]) -> None:
    seen: dict[str, int] = {}
    for rule in rules:
        if rule.name in seen:
            first = seen[rule.name]
            raise InvalidRules(f"rules, line {rule.line}: {rule.name!r} is defined in line {first}")
        seen[rule.name] = rule.line


def _rule(node: yaml.Node) -> Rule:
    entries = _mapping(node, ("name", "why", "match", "action"))
    for key in ("name", "action"):
        if key not in entries:
            _fail(node, f"a rule needs {key!r}")
    name, action = _scalar(entries["name"]), _scalar(entries["action"])
    if not _NAME.match(name):
        _fail(entries["name"], f"name {name[:80]!r}: expected lower-case letters, digits, '-'")
    if action not in list(Action):
        _fail(entries["action"], f"action {action[:80]!r}: expected one of {', '.join(Action)}")
    why = _scalar(entries["why"]) if "why" in entries else ""
    match = _match(entries["match"]) if "match" in entries else Match(())
    found = Rule(name, why, match, Action(action), node.start_mark.line + 1)
    _check_rule(node, found)
    return found


def _check_rule(node: yaml.Node, rule: Rule) -> None:
    if rule.action is Action.NONE:
        return
    if not rule.match.op:
        _fail(node, "match needs 'op': the name of an op, or a list of names")
    if rule.action is Action.FUSE and not (rule.match.producer or rule.match.consumer):
        _fail(node, "action fuse needs a 'producer' or 'consumer' to fuse with")


def _match(node: yaml.Node) -> Match:
    entries = _mapping(node, tuple(field.name for field in fields(Match)))
    return Match(
        op=_names(entries, "op", frozenset(OPS)),
        producer=_names(entries, "producer", frozenset(OPS)),
        consumer=_names(entries, "consumer", frozenset(OPS)),
        dtype=_names(entries, "dtype", frozenset(item.value for item in DType)),
        min_elems=_count(entries, "min_elems"),
        max_elems=_count(entries, "max_elems"),
        device=_names(entries, "device", frozenset(item.value for item in DeviceKind)),
    )


def _names(entries: Mapping[str, yaml.Node], key: str, allowed: frozenset[str]) -> tuple[str, ...]:
    if key not in entries:
        return ()
    node = entries[key]
    items = _sequence(node) if isinstance(node, yaml.SequenceNode) else [node]
    for item in items:
        if _scalar(item) not in allowed:
            _fail(item, f"{key} {_scalar(item)[:80]!r} is unknown")
    return tuple(_scalar(item) for item in items)


def _count(entries: Mapping[str, yaml.Node], key: str) -> int | None:
    if key not in entries:
        return None
    text = _scalar(entries[key])
    if not (text.isascii() and text.isdigit() and len(text) <= 15):
        _fail(entries[key], f"{key} {text[:80]!r}: expected a count")
    return int(text)


def _mapping(node: yaml.Node, allowed: tuple[str, ...]) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        _fail(node, f"expected a mapping with {', '.join(allowed)}")
    found: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _scalar(key)
        if name not in allowed:
            _fail(key, f"{name[:80]!r} is unknown here; expected {', '.join(allowed)}")
        if name in found:
            _fail(key, f"{name!r} stands twice")
        found[name] = value
    return found


def _sequence(node: yaml.Node) -> list[yaml.Node]:
    if not isinstance(node, yaml.SequenceNode):
        _fail(node, "expected a list")
    return list(node.value)


def _scalar(node: yaml.Node) -> str:
    if not isinstance(node, yaml.ScalarNode):
        _fail(node, "expected a single value")
    return str(node.value)


def _fail(node: yaml.Node, message: str) -> NoReturn:
    raise InvalidRules(f"rules, line {node.start_mark.line + 1}: {message}")
