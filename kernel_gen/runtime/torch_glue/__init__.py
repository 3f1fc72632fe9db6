"""Running a plan on torch tensors: bound to a model's constants, called with its inputs."""

from kernel_gen.runtime.torch_glue.plan import BoundPlan, TorchPlan

__all__ = ["BoundPlan", "TorchPlan"]
