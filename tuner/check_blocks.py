"""Operands and references of the nests that a device has met lately."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from concurrent.futures import Executor

from kernel_gen.records import Failure, Stage
from tuner.messages import NestCheck
from tuner.reference import CheckBlock, build_check
from tuner.runner import Runner

_BLOCK_BYTES = 2 << 30  # kept for nests that may be measured again


class CheckBlocks:
    """Blocks in shared memory, open in a runner's child; the longest unused give way to others."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._blocks: OrderedDict[tuple[str, int, bool], CheckBlock] = OrderedDict()

    def open(self, check: NestCheck) -> CheckBlock | Failure:
        """The block of a nest, known to the child, or why there is no reference."""
        try:
            block = self._block(check)
        except Exception as error:  # noqa: BLE001 - a nest without a reference fails alone
            message = f"{type(error).__name__}: {error}"
            return Failure(Stage.CHECK, "no-reference", message[:500])
        self._runner.open(block.message.key, block.message, block.handle)
        return block

    def prepare(self, checks: Sequence[NestCheck], pool: Executor) -> Callable[[], None]:
        """Begins to compute what is missing for `checks` in `pool`. The function that is returned
        waits for it and keeps it; what fails is tried again by `open`, which says why."""
        wanted = {_key(check): check for check in checks}
        made = {k: pool.submit(build_check, c) for k, c in wanted.items() if k not in self._blocks}

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
            block = build_check(check)
            self._blocks[key] = block
            self._trim()
        self._blocks.move_to_end(key)
        return block

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


def _key(check: NestCheck) -> tuple[str, int, bool]:
    return check.key, check.seed, check.strict
