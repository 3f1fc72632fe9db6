"""Front ends: models become graphs, and torch runs graphs."""

from kernel_gen.frontend.capture import capture
from kernel_gen.frontend.captured import Captured

__all__ = ["Captured", "capture"]
