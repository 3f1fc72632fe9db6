"""What a caller of `optimize` asks for, validated once."""

from __future__ import annotations

import inspect
import os
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from graph_autofusion.arguments import checked_store, checked_url
from kernel_gen.errors import InvalidInput
from kernel_gen.records import Budget

DEFAULT_SECONDS = 60.0
_STORES = (
    "sqlite://",
    "sqlite+pysqlite://",
    "postgres://",
    "postgresql://",
    "postgresql+psycopg://",
)


class OnMiss(StrEnum):
    """What happens when no plan is known for a program."""

    TUNE = "tune"  # search now, then run the plan
    QUEUE = "queue"  # run the framework now, swap the plan in at a later call
    EAGER = "eager"  # run the framework
    ERROR = "error"  # raise


@dataclass(frozen=True, slots=True)
class Options:
    """The keyword arguments of `optimize`. Hashable parts enter the plan's key."""

    device: str = "cpu"
    budget: Budget = Budget(DEFAULT_SECONDS)
    service: str | None = None
    store: str | None = None
    on_miss: OnMiss = OnMiss.TUNE
    training: bool = False
    dynamic_shapes: Any = None
    rules: str = ""
    numerics: str = "fast"
    strict: bool = False


def parse_budget(budget: Budget | float | int | None) -> Budget:
    """A Budget, seconds, or None for 60 s; raises InvalidInput."""
    if budget is None:
        return Budget(DEFAULT_SECONDS)
    if isinstance(budget, Budget):
        return budget
    if isinstance(budget, bool) or not isinstance(budget, int | float):
        raise InvalidInput(
            f"budget is {budget!r}: expected seconds or gaf.Budget(seconds=…, trials=…)"
        )
    try:
        return Budget(float(budget))
    except OverflowError:
        raise InvalidInput("budget: expected 0 to 604800 seconds") from None


def parse_options(
    *,
    device: str = "cpu",
    budget: Budget | float | None = None,
    service: str | None = None,
    store: str | None = None,
    on_miss: str | None = None,
    training: bool = False,
    dynamic_shapes: Any = None,
    rules: str | Path | Mapping[str, Any] | None = None,
    numerics: str = "fast",
    strict: bool = False,
    environ: Mapping[str, str] = os.environ,
) -> Options:
    """Checked options with defaults from the environment (GAF_SERVICE, GAF_STORE)."""
    service = _parse_service(service, environ.get("GAF_SERVICE"))
    default_miss = OnMiss.QUEUE if service else OnMiss.TUNE
    return Options(
        device=_parse_device(device),
        budget=parse_budget(budget),
        service=service,
        store=_parse_store(store, environ.get("GAF_STORE")),
        on_miss=_parse_choice("on_miss", on_miss, OnMiss, default_miss),
        training=_parse_training(_parse_flag("training", training)),
        dynamic_shapes=dynamic_shapes,
        rules=rules_text(rules),
        numerics=_parse_numerics(numerics),
        strict=_parse_flag("strict", strict),
    )


def parse_mapping(options: Mapping[str, Any]) -> Options:
    """`parse_options` of a mapping; raises InvalidInput for a name that is none of its own."""
    known = [name for name in inspect.signature(parse_options).parameters if name != "environ"]
    unknown = [name for name in options if name not in known]
    if unknown:
        raise InvalidInput(f"option {unknown[0]!r:.100}: expected one of {', '.join(known)}")
    return parse_options(**options)


def _parse_flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidInput(f"{name} is {value!r:.100}: expected True or False")
    return value


def _parse_store(store: Any, default: str | None) -> str | None:
    name, url = ("store", _parse_url("store", store)) if store else ("GAF_STORE", default or None)
    if url is not None and not url.startswith(_STORES):
        raise InvalidInput(
            f"{name} is {url!r}: expected sqlite:///FILE or postgresql://USER@HOST/NAME"
        )
    return None if url is None else checked_store(name, url)


def _parse_service(service: Any, default: str | None) -> str | None:
    name, url = ("service", service) if service else ("GAF_SERVICE", default)
    return checked_url(name, url) if url else None


def _parse_device(device: Any) -> str:
    """The name of a device; torch's own of the CPU is one, too."""
    if str(device) == "cpu":
        return "cpu"
    from kernel_gen.runtime.device_names import checked_device

    return checked_device(device)


def _parse_url(name: str, value: object) -> str | None:
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"{name} is {value!r}: expected a URL as text")
    return value


def _parse_training(training: bool) -> bool:
    if training:
        raise InvalidInput(
            "training=True: plans for backward graphs are not available in this version; leave it "
            "False, and the framework runs whenever gradients are needed"
        )
    return training


def _parse_numerics(numerics: str) -> str:
    if numerics not in ("fast", "strict"):
        raise InvalidInput(f"numerics {numerics!r}: expected 'fast' or 'strict'")
    return numerics


def _parse_choice(name: str, value: str | None, kind: type[OnMiss], default: OnMiss) -> OnMiss:
    if value is None:
        return default
    try:
        return kind(value)
    except ValueError:
        words = ", ".join(repr(str(choice)) for choice in kind)
        raise InvalidInput(f"{name} {value!r}: expected one of {words}") from None


def rules_text(rules: str | Path | Mapping[str, Any] | None) -> str:
    """The YAML text of `rules`: a path, the text itself, or a mapping of the same form."""
    if rules is None:
        return ""
    import yaml  # these two: only where there are rules

    from kernel_gen.fusion.rules import load_rules

    if isinstance(rules, Mapping):
        try:
            text = yaml.safe_dump(dict(rules), sort_keys=True)
        except (yaml.YAMLError, TypeError) as error:
            raise InvalidInput(f"rules: a mapping that YAML cannot hold: {error}") from None
    elif not isinstance(rules, str | Path):
        raise InvalidInput(f"rules is {rules!r}: expected a file, YAML text or a mapping")
    else:
        text = str(rules) if _is_yaml(rules) else _read_rules(Path(rules))
    load_rules(text)
    return text


def _is_yaml(rules: str | Path) -> bool:
    """Whether `rules` are the text itself: of several lines, or with a colon and no such file."""
    if isinstance(rules, Path):
        return False
    return "\n" in rules or (":" in rules and not os.path.exists(rules))


def _read_rules(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"rules file {path}: {error.strerror}") from error
    except ValueError as error:  # not UTF-8, or a path that no file can have
        raise InvalidInput(f"rules file {str(path)!r}: {error}") from error
