"""The exception tree of the project, and the two values that stand for failure without raising.

    GafError
    ├── InvalidInput          the caller's mistake: wrong argument, graph, file or bundle
    │   ├── InvalidGraph      a graph, nest or schedule that breaks a rule of its own type
    │   ├── InvalidRules      a rules file, with its line number
    │   ├── InvalidValues     values that eager refuses too, met by a running kernel
    │   ├── UnsupportedModel  the front end cannot read the model at all
    │   └── UntrustedBundle   signature, digest or trust is missing or wrong
    ├── Unavailable           something is missing here: compiler, device, service; may be retried
    │   └── DeviceFault       a device's runtime refused a call, or a kernel on it failed
    └── InternalError         our own bug: a stage handed on something that `verify` refuses

Raise for a caller's mistake only. What a search meets on its way (a kernel that does not compile,
a group that may not be fused) is a value: `Refusal` here, `Failure` in `kernel_gen.records`.
"""

from __future__ import annotations

from dataclasses import dataclass


class GafError(Exception):
    """Root of all errors raised on purpose."""


class InvalidInput(GafError, ValueError):
    """The caller's mistake; the message says what, where and what to do."""


class InvalidGraph(InvalidInput):
    """A graph, loop nest or schedule that breaks a rule of its type."""


class InvalidRules(InvalidInput):
    """A rules file that does not validate; the message holds the line number."""


class InvalidValues(InvalidInput):
    """Values that eager refuses too: an index outside of its tensor, an integer divided by zero.
    Nothing has been written to the caller's tensors."""


class UnsupportedModel(InvalidInput):
    """A model that no front end can read."""


class UntrustedBundle(InvalidInput):
    """A bundle whose signature, digest or signer is not accepted here."""


class Unavailable(GafError, RuntimeError):
    """A compiler, device or service is not available; may be retried."""


class DeviceFault(Unavailable):
    """A call of a device's runtime failed; the message holds its status. The process's device may
    be lost with it: open it again in another process."""


class InternalError(GafError, RuntimeError):
    """A stage produced something that its verifier refuses."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why ops do not share a kernel, or why a template does not take a nest.

    `code` is one of `docs/reason-codes.md` (kebab-case), `sentence` is for people and names the
    nodes and values concerned.
    """

    code: str
    sentence: str
