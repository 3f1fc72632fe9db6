"""The cost model of a target: with the rates kept for it where it was calibrated."""

from __future__ import annotations

from cost_models.analytic import AnalyticModel
from cost_models.ascend import AscendModel
from cost_models.calibrate import machine_of
from cost_models.model import CostModel
from kernel_gen.ir.target import DeviceKind, Target


def model_for(target: Target) -> CostModel:
    """What screens candidates for this kind of device."""
    return AnalyticModel(machine_of(target)) if target.kind is DeviceKind.CPU else AscendModel()
