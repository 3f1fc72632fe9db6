"""Attention of real models: their graphs have attention groups, whose kernels are right."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import transformers

from kernel_gen.codegen.cpu.registry import templates
from kernel_gen.errors import Refusal
from kernel_gen.executor.execute import execute
from kernel_gen.frontend.capture import capture
from kernel_gen.fusion.apply_rules import apply_rules
from kernel_gen.fusion.candidates import Limits, candidates
from kernel_gen.fusion.judge import Candidate
from kernel_gen.fusion.rules import load_rules
from kernel_gen.ir.arrays import Array, numpy_dtype
from kernel_gen.ir.loopnest import BufferRole, LoopNest
from kernel_gen.ir.types import static_shape
from kernel_gen.runtime.build import Compiler
from kernel_gen.runtime.host import host_target
from tests.codegen.kernel_bench import KernelBench, run_kernel

Model = tuple[torch.nn.Module, tuple[torch.Tensor, ...]]


def _tokens(batch: int, seq: int) -> torch.Tensor:
    return torch.randint(0, 50, (batch, seq))


def bert(implementation: str) -> Model:
    config = transformers.BertConfig(
        hidden_size=48, num_hidden_layers=1, num_attention_heads=3, intermediate_size=64,
        vocab_size=50, attn_implementation=implementation,
    )  # fmt: skip
    return transformers.BertModel(config, add_pooling_layer=False), (_tokens(2, 21),)


def gpt2() -> Model:
    config = transformers.GPT2Config(
        n_embd=48, n_layer=1, n_head=3, vocab_size=50, n_positions=64, use_cache=False
    )
    return transformers.GPT2Model(config), (_tokens(2, 33),)


def _llama() -> transformers.LlamaModel:
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, vocab_size=50, use_cache=False,
    )  # fmt: skip
    return transformers.LlamaModel(config)


class Decoder(torch.nn.Module):
    """One token behind cached keys and values."""

    def __init__(self) -> None:
        super().__init__()
        self.model = _llama()

    def forward(self, ids: torch.Tensor, keys: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        cache = transformers.DynamicCache(config=self.model.config)
        cache.update(keys, values, 0)
        found = self.model(input_ids=ids, past_key_values=cache, use_cache=True)
        return torch.as_tensor(found.last_hidden_state)


def t5() -> Model:
    config = transformers.T5Config(
        num_layers=1, d_model=32, d_kv=12, num_heads=3, d_ff=48, vocab_size=50, use_cache=False
    )
    return transformers.T5EncoderModel(config), (_tokens(2, 30),)


MODELS: dict[str, Callable[[], Model]] = {
    "bert": lambda: bert("sdpa"),
    "bert by hand": lambda: bert("eager"),
    "gpt2": gpt2,
    "llama": lambda: (_llama(), (_tokens(1, 40),)),
    "llama decode": lambda: (Decoder(), (_tokens(1, 1), *torch.randn(2, 1, 2, 37, 16))),
    "t5": t5,
}


def _groups(model: Model) -> list[Candidate]:
    """Attention groups, the smallest first."""
    module, inputs = model
    with torch.no_grad():
        graph = capture(module.eval(), inputs).graph
    ruled = apply_rules(graph, load_rules())
    target = host_target()
    limits = Limits(lowered=150)
    found = candidates(ruled.program, templates(target), target, ruled.constraints, limits=limits)
    groups = [c for c in found.groups if "attention" in c.templates]
    return sorted(groups, key=lambda c: len(c.group.nodes))


def _operands(nest: LoopNest) -> list[Array]:
    """Random floats; integers and bools that are valid anywhere."""
    rng = np.random.default_rng(0)
    made: list[Array] = []
    for buffer in nest.buffers:
        if buffer.role is not BufferRole.OUTPUT:
            kind, shape = numpy_dtype(buffer.type.dtype), static_shape(buffer.type.shape)
            values = rng.normal(size=shape) if buffer.type.dtype.is_float else np.ones(shape)
            made.append(values.astype(kind))
    return made


@pytest.mark.parametrize("name", MODELS)
def test_attention_of_a_model(compiler: Compiler, name: str) -> None:
    torch.manual_seed(0)
    groups = _groups(MODELS[name]())
    assert groups, "no attention group was found"
    bench = KernelBench(compiler, host_target())
    nests = [groups[0].lowered.nest, groups[-1].lowered.nest]
    for nest in nests:
        assert not isinstance(bench.add(nest, "attention"), Refusal)
    for kernel, nest in zip(bench.build(), nests, strict=True):
        given = _operands(nest)
        (want,) = execute(nest, given, precision="f64")
        (found,) = run_kernel(kernel, given, 2)
        np.testing.assert_allclose(found, want, rtol=2e-5, atol=2e-5)
