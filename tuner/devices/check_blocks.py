"""Operands and references of the nests that a device has met lately.

What fp32 itself cannot say is found out only where a candidate seems wrong: most nests have no such
elements, and to look for them takes twice as long as the reference.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from kernel_gen.records import Failure, Measurement, Stage
from tuner.child.checked_run import WRONG_RESULT
from tuner.child.messages import NestCheck
from tuner.devices.check_set import CheckBlock, build_check
from tuner.devices.runner import Runner

_BLOCK_BYTES = 2 << 30  # kept for nests that may be measured again
_Key = tuple[str, int, bool]


class CheckBlocks:
    """Blocks in shared memory, open in a runner's child; the longest unused give way to others."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._blocks: OrderedDict[_Key, CheckBlock] = OrderedDict()
        self._exempting: set[_Key] = set()  # whose blocks say what is exempt

    def judged(
        self, check: NestCheck, run: Callable[[str], Measurement | Failure]
    ) -> Measurement | Failure:
        """What `run` gives for a candidate with the block of its nest, whose key it is given and
        which the child knows; the failure where there is no reference."""
        found = self._open(check) or run(check.key)
        if not isinstance(found, Failure) or found.code != WRONG_RESULT:
            return found
        if check.strict or _key(check) in self._exempting:
            return found
        self._exempting.add(_key(check))
        self._drop(_key(check))
        return self._open(check) or run(check.key)

    def _open(self, check: NestCheck) -> Failure | None:
        """Lets the child know the block of a nest; why it cannot."""
        try:
            block = self._block(check)
        except Exception as error:  # noqa: BLE001 - a nest without a reference fails alone
            message = f"{type(error).__name__}: {error}"
            return Failure(Stage.CHECK, "no-reference", message[:500])
        self._runner.open(block.message.key, block.message, block.handle)
        return None

    def prepare(self, checks: Sequence[NestCheck], pool: Executor) -> Callable[[], None]:
        """Begins to compute what is missing for `checks` in `pool`. The function that is returned
        waits for it and keeps it; what fails is tried again by `judged`, which says why."""
        wanted = {_key(check): check for check in checks}
        made = {k: pool.submit(self._build, c) for k, c in wanted.items() if k not in self._blocks}

        def keep() -> None:
            for key, block in made.items():
                if block.exception() is None:
                    self._blocks[key] = block.result()
            self._trim()

        return keep

    def close(self) -> None:
        while self._blocks:
            self._blocks.popitem()[1].close()

    def _block(self, check: NestCheck) -> CheckBlock:
        key = _key(check)
        block = self._blocks.get(key)
        if block is None:
            block = self._build(check)
            self._blocks[key] = block
            self._trim()
        self._blocks.move_to_end(key)
        return block

    def _build(self, check: NestCheck) -> CheckBlock:
        return build_check(check, exempt=_key(check) in self._exempting)

    def _drop(self, key: _Key) -> None:
        block = self._blocks.pop(key, None)
        if block is not None:
            self._runner.forget([block.message.key])
            block.close()

    def _trim(self) -> None:
        dropped: list[str] = []
        while len(self._blocks) > 1 and self._used_bytes() > _BLOCK_BYTES:
            _, block = self._blocks.popitem(last=False)
            dropped.append(block.message.key)
            block.close()
        if dropped:
            self._runner.forget(dropped)

    def _used_bytes(self) -> int:
        return sum(block.nbytes for block in self._blocks.values())


def _key(check: NestCheck) -> _Key:
    return check.key, check.seed, check.strict
