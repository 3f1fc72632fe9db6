"""Helpers of the tuner's tests: their own modules on the path, one Ray for the whole session."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tuner.devices.ascend_device import AscendDevice
    from tuner.devices.device import LocalDevice
    from tuner.devices.ray_device import RayDevice

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def ray_session() -> Iterator[None]:
    """Ray on loopback; stopped at the end of the session."""
    from tuner.devices.ray_runtime import ray_runtime

    with ray_runtime():
        yield


@pytest.fixture(scope="session")
def ray_device(ray_session: None) -> Iterator[RayDevice]:
    from tuner.devices.ray_device import RayDevice

    device = RayDevice()
    yield device
    device.close()


@pytest.fixture(scope="session")
def simulated_device() -> Iterator[AscendDevice]:
    from kernel_gen.runtime.device_names import device_target
    from tuner.devices.ascend_device import AscendDevice

    device = AscendDevice(device_target("ascend-sim:910b3"))
    yield device
    device.close()


@pytest.fixture(scope="session")
def npu_device(stub_cann_home: Path) -> Iterator[AscendDevice]:
    """`ascend:1` over the stub of CANN."""
    from tuner.devices.ascend_device import AscendDevice
    from tuner.devices.opening import open_device

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ASCEND_HOME_PATH", str(stub_cann_home))
        device = open_device("ascend:1")
    assert isinstance(device, AscendDevice)
    yield device
    device.close()


@pytest.fixture(scope="session")
def local_device() -> Iterator[LocalDevice]:
    from tuner.devices.device import LocalDevice

    device = LocalDevice()
    yield device
    device.close()
