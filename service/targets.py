"""Which target a job's plan is for: that of a device which a worker has announced."""

from __future__ import annotations

from db.store import Store
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.target import Target
from kernel_gen.runtime.host import host_target


def resolve_target(store: Store, device: str, wanted: str | None) -> Target:
    """The target of a live device of this name, of key `wanted` if given.

    Without a live CPU worker "cpu" means this machine, whose worker may be about to start. Raises
    InvalidInput for a device that nobody has.
    """
    alive = [found for found in store.devices.list() if found.alive]
    targets = {found.target.key: found.target for found in alive if found.device == device}
    if device == "cpu" and not targets:
        own = host_target()
        targets = {own.key: own}
    if wanted is not None and wanted in targets:
        return targets[wanted]
    if wanted is not None or not targets:
        known = sorted({f"{found.device} ({found.target.key})" for found in alive}) or ["none"]
        raise InvalidInput(
            f"no worker has device {device!r}{f' of target {wanted!r}' if wanted else ''}; "
            f"alive: {', '.join(known)}"
        )
    return next(iter(targets.values()))
