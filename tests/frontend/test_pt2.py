"""torch.export archives and TorchScript: same graphs as the model's own, nothing unpickled."""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from kernel_gen.errors import GafError, InvalidInput, UnsupportedModel
from kernel_gen.frontend import capture
from kernel_gen.frontend.exporting import as_module
from kernel_gen.frontend.files import of_program, read_model
from kernel_gen.frontend.pt2 import read_pt2


class _Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 3)
        self.register_buffer("shift", torch.randn(3))

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = torch.relu(self.linear(x)) + self.shift * torch.tensor([1.0, 2.0, 3.0])
        return y, torch.cat([x, x]).view(-1, 2, 4)


@pytest.fixture
def model() -> _Model:
    torch.manual_seed(0)
    return _Model().eval()


def _archive(model: nn.Module, x: torch.Tensor, *, dynamic: bool = False) -> bytes:
    shapes = ({0: torch.export.Dim("batch", min=2, max=64)},) if dynamic else None
    with torch.no_grad():
        program = torch.export.export(model, (x,), dynamic_shapes=shapes)
    target = io.BytesIO()
    torch.export.save(program, target)
    return target.getvalue()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dynamic", [False, True])
def test_an_archive_is_the_model(model: _Model, tmp_path: Path, dynamic: bool) -> None:
    x = torch.randn(6, 4)
    (tmp_path / "m.pt2").write_bytes(_archive(model, x, dynamic=dynamic))
    file = read_model(tmp_path / "m.pt2")
    for found, wanted in zip(file.module(x), model(x), strict=True):
        assert torch.equal(found, wanted)
    assert [tuple(i.shape) for i in file.example_inputs()] == [(6, 4)]
    assert capture(file.module, (x,)).graph.digest == capture(model, (x,)).graph.digest


@pytest.mark.filterwarnings("ignore")
def test_structure_is_read_without_weights(model: _Model) -> None:
    x = torch.randn(6, 4)
    file = of_program(read_pt2(_archive(model, x), weights=False), "m.pt2")
    assert not any(p.any() for p in file.module.parameters())
    assert capture(file.module, (x,)).graph.digest == capture(model, (x,)).graph.digest


Edit = Callable[[dict[str, Any]], None]


def _edited(content: bytes, edit: Edit, file: str = "models/model.json") -> bytes:
    """The archive with its program, or another of its JSON files, changed."""

    def edited(data: bytes) -> bytes:
        value = json.loads(data)
        edit(value)
        return json.dumps(value).encode()

    return _replaced(content, file, edited)


def _replaced(content: bytes, file: str, replace: Callable[[bytes], bytes]) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, replace(data) if name.endswith(file) else data)
    return target.getvalue()


def _first_node(program: dict[str, Any]) -> dict[str, Any]:
    node: dict[str, Any] = program["graph_module"]["graph"]["nodes"][0]
    return node


def _call_system(program: dict[str, Any]) -> None:
    _first_node(program)["target"] = "torch.os.system"


def _call_custom(program: dict[str, Any]) -> None:
    _first_node(program)["target"] = "torch.ops.mine.evil.default"


def _evaluate(program: dict[str, Any]) -> None:
    program["graph_module"]["graph"]["sym_int_values"] = {
        "s": {"as_expr": {"expr_str": "__import__('os').system('true')", "hint": None}}
    }


def _huge_power(program: dict[str, Any]) -> None:
    program["graph_module"]["graph"]["sym_int_values"] = {
        "s": {"as_expr": {"expr_str": "9**9**9**9", "hint": None}}
    }


def _odd_tree(program: dict[str, Any]) -> None:
    signature = program["graph_module"]["module_call_graph"][0]["signature"]
    signature["in_spec"] = (
        '[1, {"type": "collections.defaultdict", "context": "{}", "children_spec": []}]'
    )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("edit", [_call_system, _call_custom, _evaluate, _huge_power, _odd_tree])
def test_programs_that_reach_further_are_refused(model: _Model, edit: Edit) -> None:
    content = _edited(_archive(model, torch.randn(6, 4)), edit)
    with pytest.raises(UnsupportedModel):
        read_pt2(content)


@pytest.mark.filterwarnings("ignore")
def test_pickled_tensors_are_refused(model: _Model) -> None:
    content = _archive(model, torch.randn(6, 4))
    pickled = _replaced(
        content,
        "weights_config.json",
        lambda data: data.replace(b'"use_pickle": false', b'"use_pickle": true'),
    )
    with pytest.raises(UnsupportedModel, match="pickle"):
        read_pt2(pickled)


@pytest.mark.filterwarnings("ignore")
def test_damaged_archives(model: _Model, tmp_path: Path) -> None:
    content = _archive(model, torch.randn(6, 4))
    empty = io.BytesIO()
    zipfile.ZipFile(empty, "w").close()

    def without_nodes(program: dict[str, Any]) -> None:
        del program["graph_module"]["graph"]

    for bad in (b"", content[:200], empty.getvalue(), _edited(content, without_nodes)):
        with pytest.raises(InvalidInput):
            read_pt2(bad)


@pytest.mark.filterwarnings("ignore")
def test_flipped_bytes_are_refused_or_read(model: _Model) -> None:
    """In the archive's own records; any other error fails the test."""
    content = _archive(model, torch.randn(6, 4))
    listing = content.index(b"PK\x01\x02")
    chance = random.Random(2)
    for _ in range(40):
        altered = bytearray(content)
        altered[chance.randrange(listing, len(content))] = chance.randrange(256)
        with contextlib.suppress(GafError):
            read_pt2(bytes(altered))


def _odd_extent(config: dict[str, Any]) -> None:
    next(iter(config["config"].values()))["tensor_meta"]["sizes"][0]["as_int"] = []


def _other_type(config: dict[str, Any]) -> None:
    next(iter(config["config"].values()))["tensor_meta"]["dtype"] = 99


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("edit", [_odd_extent, _other_type])
def test_a_list_of_tensors_that_is_none_is_refused(model: _Model, edit: Edit) -> None:
    content = _archive(model, torch.randn(6, 4))
    with pytest.raises(InvalidInput):
        read_pt2(_edited(content, edit, "model_weights_config.json"))
    short = _replaced(content, "weight_0", lambda stored: stored[:-1])
    with pytest.raises(InvalidInput, match="are no tensor of"):
        read_pt2(short)


def _traced(model: nn.Module) -> Any:
    return torch.jit.trace(model, torch.ones(6, 4))


def _loaded(script: Any) -> Any:
    """The script as torch.jit.load gives it: its parameters are plain tensors."""
    file = io.BytesIO()
    torch.jit.save(script, file)
    file.seek(0)
    return torch.jit.load(file)


def _as_made(script: Any) -> Any:
    return script


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stored", [_as_made, _loaded])
@pytest.mark.parametrize("make", [torch.jit.script, _traced])
def test_torchscript_modules_are_converted(
    model: _Model, make: Callable[..., Any], stored: Callable[..., Any]
) -> None:
    x = torch.randn(6, 4)
    script = stored(make(model.linear))
    captured = capture(script, (x,))
    assert [node.op for node in captured.graph.nodes] == ["linear"]
    assert {getattr(b, "name", "x") for b in captured.bindings} == {"weight", "bias", "x"}
    assert captured.is_single


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stored", [_as_made, _loaded])
def test_a_script_has_its_own_parameters(model: _Model, stored: Callable[..., Any]) -> None:
    mirror = as_module(stored(torch.jit.script(model.linear)))
    for module in (mirror, copy.deepcopy(mirror)):
        module(torch.randn(6, 4)).sum().backward()
        assert [name for name, p in module.named_parameters() if p.grad is not None] == [
            "weight",
            "bias",
        ]
        assert not module.eval().training


class _Named(nn.Module):
    """Members called as those of the class that stands for a script might be."""

    def __init__(self) -> None:
        super().__init__()
        self.script, self.mirror = nn.Linear(4, 3), nn.Linear(4, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y: torch.Tensor = self.script(x) + self.mirror(x)
        return y


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("stored", [_as_made, _loaded])
@pytest.mark.parametrize("freeze", [_as_made, torch.jit.freeze])
def test_scripts_with_members_of_any_name_and_frozen_ones(
    freeze: Callable[..., Any], stored: Callable[..., Any]
) -> None:
    script = stored(freeze(torch.jit.script(_Named().eval())))
    captured = capture(script, (torch.randn(6, 4),))
    assert [node.op for node in captured.graph.nodes] == ["linear", "linear", "add"]
    assert not as_module(script).train(False).training


@pytest.mark.filterwarnings("ignore")
def test_torchscript_files_say_what_to_do(model: _Model, tmp_path: Path) -> None:
    torch.jit.save(torch.jit.script(model.linear), tmp_path / "m.pt")
    with pytest.raises(UnsupportedModel, match=r"torch\.jit\.load"):
        read_model(tmp_path / "m.pt")
    torch.save(model, tmp_path / "pickle.pt")
    with pytest.raises(UnsupportedModel, match="pickle"):
        read_model(tmp_path / "pickle.pt")
