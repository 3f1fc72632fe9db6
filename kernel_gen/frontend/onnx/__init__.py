"""ONNX files as PyTorch modules.

A file becomes an `OnnxModule`, which runs each node by the torch function of the same meaning, so
that capture, the baseline and the framework's fallback are those of any other model. Arithmetic on
shapes is done while tracing: what depends on shapes and constants only never reaches the graph.
"""

from kernel_gen.frontend.onnx.module import OnnxModule
from kernel_gen.frontend.onnx.reading import read_onnx

__all__ = ["OnnxModule", "read_onnx"]
