"""What the user's process loads."""

from __future__ import annotations

import json
import subprocess
import sys

import graph_autofusion as gaf

HEAVY = {
    *(
        "ray",
        "optuna",
        "sqlalchemy",
        "alembic",
        "fastapi",
        "uvicorn",
        "pydantic",
        "scipy",
        "highspy",
    ),
    *("typer", "rich", "httpx2", "cryptography", "platformdirs", "yaml", "sympy"),
    *("service", "tuner", "db", "cost_models"),
}


def _new_modules(program: str) -> set[str]:
    text = f"""
import torch, sys, json
before = set(sys.modules)
{program}
print(json.dumps(sorted({{name.partition(".")[0] for name in set(sys.modules) - before}})))
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    return set(json.loads(done.stdout.splitlines()[-1]))


def test_importing_loads_little() -> None:
    loaded = _new_modules("import graph_autofusion as gaf; gaf.optimize")
    assert "kernel_gen" in loaded
    assert not loaded & HEAVY


def test_the_command_loads_no_torch() -> None:
    """Nor does showing a plan or reading a graph: torch takes longer than most commands."""
    text = """
import sys
import graph_autofusion as gaf
import graph_autofusion.cli.app
gaf.print_graph
assert sorted(gaf.__all__) == sorted(name for name in dir(gaf) if name in gaf.__all__)
print([name for name in ("torch", "ray", "sqlalchemy", "fastapi") if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_all_public_names_are_there() -> None:
    assert all(getattr(gaf, name) is not None for name in gaf.__all__)


def test_finding_a_plan_loads_only_what_reads_plans() -> None:
    """No generator of code, no NPU, nothing that signs, no client of a service."""
    text = """
import sys, importlib
import graph_autofusion.resolver
from graph_autofusion.options import Options
from kernel_gen.runtime.device_names import device_target
device_target("cpu")
others = (
    "graph_autofusion.client",
    "kernel_gen.codegen.registry",
    "kernel_gen.codegen.cpu.vectors",
    "kernel_gen.codegen.ascend",
    "kernel_gen.runtime.ascend",
    "kernel_gen.runtime.driver_source",
    "kernel_gen.runtime.signer",
)
print([name for name in others if name in sys.modules])
for name in others:
    importlib.import_module(name)
"""
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"
