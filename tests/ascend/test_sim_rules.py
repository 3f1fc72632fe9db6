"""Each rule of the chip has a kernel that breaks it, and is caught with file, line and values."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kernel_gen.ascend import sim
from kernel_gen.ascend.chips import load_chip
from kernel_gen.ascend.sim import BuildError, SimResult, Simulator, build

_SOURCE = Path(__file__).parent / "kernels" / "broken.cpp"
_BLOCKS = {"race_cores": 2, "race_meeting": 2, "sound_meeting": 2}

# entry: code of the failure, words that its message must hold
_RULES = {
    "capacity": ("capacity", "188160"),
    "capacity_l0c": ("capacity", "131072"),
    "alignment": ("alignment", "multiple of 32"),
    "gm_alignment": ("gm-alignment", "sizeof(float)"),
    "gm_out_of_bounds": ("gm-out-of-bounds", "4000 to 4256"),
    "local_out_of_bounds": ("local-out-of-bounds", "0 to 4128"),
    "copy_limit": ("copy-limit", "4096 blocks"),
    "copy_limit_padding": ("copy-limit", "9 and 0"),
    "copy_empty": ("copy-empty", "DataCopyPad"),
    "queue_exhausted": ("queue-exhausted", "hang"),
    "queue_empty": ("queue-empty", "hang"),
    "queue_depth": ("queue-depth", "depth 1"),
    "queue_order": ("queue-order", "is free"),
    "queue_unmatched": ("queue-unmatched", "without a DeQue"),
    "queue_buffers": ("queue-buffers", "9 queue buffers"),
    "buffers_in_all": ("queue-buffers", "65 buffers"),
    "queue_uninitialised": ("queue-uninitialised", "InitBuffer"),
    "event_unset": ("event-unset", "hang"),
    "event_repeated": ("event-repeated", "already set"),
    "event_unmatched": ("event-unmatched", "without a WaitFlag"),
    "event_id": ("event-id", "event 6"),
    "event_exhausted": ("event-exhausted", "V to S"),
    "uninitialised": ("uninitialised", "4096 to 4352"),
    "race_vector": ("race", "PipeBarrier"),
    "race_in_place": ("race", "write after read"),
    "race_gather": ("race", "PipeBarrier"),
    "uninitialised_gather": ("uninitialised", "4096 to 4100"),
    "race_copy": ("race", "no event"),
    "race_scalar": ("race", "on pipe S"),
    "race_store": ("race", "on pipe MTE3"),
    "race_free": ("race", "on pipe MTE2"),
    "race_cores": ("race-cores", "another core"),
    "race_meeting": ("race-cores", "read after write"),
    "gm_input_written": ("gm-input-written", "input"),
    "gm_uninitialised": ("gm-uninitialised", "nothing has written"),
    "operand_overlap": ("operand-overlap", "in part"),
    "compare_count": ("compare-count", "100 elements"),
    "unsupported_type": ("unsupported-type", "int32_t"),
    "round_mode": ("round-mode", "float to int32_t"),
    "atomic_type": ("atomic-type", "half"),
    "repeat_limit": ("repeat-limit", "256 repeats"),
    "mask_limit": ("mask-limit", "64 of a repeat"),
    "gm_other_argument": ("gm-out-of-bounds", "argument of 4096 B"),
    "event_conflict": ("event-conflict", "FetchEventID"),
    "queue_foreign": ("queue-foreign", "not this queue's"),
    "event_unowned": ("event-unowned", "event 0"),
    "sync_kind": ("sync-kind", "cube core"),
    "sync_alone": ("sync-kind", "AIV_ONLY"),
    "core_flag_overflow": ("core-flag-overflow", "16 times"),
    "operand_memory": ("operand-memory", "expected L0A"),
    "capacity_table": ("capacity", "1024"),
    "table_alignment": ("alignment", "multiple of 64"),
    "table_source_alignment": ("alignment", "multiple of 32"),
    "table_type": ("unsupported-type", "bfloat16_t"),
    "table_memory": ("operand-memory", "bias table"),
    "table_uninitialised": ("uninitialised", "0 to 64"),
    "race_table": ("race", "no event"),
    "bias_alignment": ("alignment", "multiple of 128"),
    "bias_memory": ("operand-memory", "bias in L1"),
    "bias_type": ("unsupported-type", "bias of int32_t"),
    "deq_scale": ("deq-scale", "SetDeqScale"),
    "core_kind": ("core-kind", "vector core"),
    "core_hang": ("core-hang", "waits"),
    "core_flag_unmatched": ("core-flag-unmatched", "not waited for"),
    "core_flag": ("core-flag", "task type"),
}


_OF_ORDER = {"gm-input-written", "uninitialised", "gm-uninitialised", "race", "race-cores"}


@pytest.fixture(scope="module")
def broken(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., SimResult]:
    library = build({"broken.cpp": _SOURCE.read_text()}, tmp_path_factory.mktemp("broken"))
    x = np.arange(1024, dtype=np.float32)

    def run(entry: str, *, order: bool = True) -> SimResult:
        simulator = Simulator(library, entry, load_chip("910b1"))
        return simulator.run(
            [x], [np.zeros_like(x)], tiling=b"", blocks=_BLOCKS.get(entry, 1),
            workspace_bytes=4096, order=order,
        )  # fmt: skip

    return run


@pytest.mark.parametrize("entry", sorted(_RULES))
def test_broken_rule_is_reported(broken: Callable[..., SimResult], entry: str) -> None:
    code, words = _RULES[entry]
    result = broken(entry)
    assert [failure.code for failure in result.failures][:1] == [code]
    failure = result.failures[0]
    assert words in failure.message
    assert result.cycles == 0
    if code not in ("core-hang", "core-flag-unmatched"):  # known at the end only
        lines = _SOURCE.read_text().splitlines()
        start = next(i for i, text in enumerate(lines, 1) if f"ENTRY({entry})" in text)
        assert failure.file == "broken.cpp"
        assert start <= failure.line <= start + 16


@pytest.mark.parametrize("entry", sorted(_RULES))
def test_without_order_all_is_found_but_who_touched_which_bytes(
    broken: Callable[..., SimResult], entry: str
) -> None:
    code, _ = _RULES[entry]
    found = [failure.code for failure in broken(entry, order=False).failures]
    assert (code in found) == (code not in _OF_ORDER)


def test_rules_in_code_readme_and_tests_are_the_same() -> None:
    folder = Path(sim.__file__).parent
    text = "".join(path.read_text() for path in (folder / "runtime").glob("*.cpp"))
    raised = set(re.findall(r'"([a-z]+(?:-[a-z]+)+|race|alignment|capacity|uninitialised)"', text))
    readme = (folder / "README.md").read_text().split("## Rules")[1].split("**Order**")[0]
    documented = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", readme))
    assert raised == documented == {code for code, _ in _RULES.values()}


@pytest.mark.parametrize(
    "entry",
    [
        "sound_meeting",
        "sound_bound_queue",
        "sound_addresses",
        "sound_fetched_event",
        "sound_phases",
        "sound_gather",
        "sound_bias",
    ],
)
def test_ordered_accesses_are_no_race(broken: Callable[..., SimResult], entry: str) -> None:
    result = broken(entry)
    assert result.failures == ()
    assert result.cycles > 0


def test_sources_that_do_not_compile_give_the_compilers_message(tmp_path: Path) -> None:
    with pytest.raises(BuildError, match="type not supported by the chip"):
        build(
            {
                "k.cpp": '#include "kernel_operator.h"\n'
                "using namespace AscendC;\n"
                "void k(LocalTensor<int32_t> a) { Exp(a, a, 64); }\n"
            },
            tmp_path,
        )
