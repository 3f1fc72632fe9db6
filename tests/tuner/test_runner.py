import tempfile
from pathlib import Path

from tuner.runner import Runner


def test_scratch_goes_with_the_runner() -> None:
    with Runner() as runner:
        assert runner.scratch.is_dir()
    assert not runner.scratch.exists()


def test_scratch_of_dead_processes_is_removed() -> None:
    stale = Path(tempfile.mkdtemp(prefix="gaf-device-999999999-"))
    with Runner():
        assert not stale.exists()
