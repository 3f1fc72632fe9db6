"""Graphs from JSON, verified."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_gen.codec import from_tree, parse
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.verify import check_counts, verify


def graph_from_json(text: str | bytes) -> Graph:
    """The verified graph in the text, in the text's own order; raises InvalidInput."""
    tree = parse(Graph, text)
    check_counts(*(_count(tree, what) for what in ("nodes", "values", "outputs")))
    graph = from_tree(Graph, tree)
    verify(graph)
    return graph


def read_graph(path: Path) -> Graph:
    """The verified graph in a file; raises InvalidInput, which names the file."""
    try:
        return graph_from_json(path.read_text(encoding="utf-8"))
    except InvalidInput as error:
        raise type(error)(f"{path}: {error}") from error
    except OSError as error:
        raise InvalidInput(f"{path}: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidInput(f"{path}: not UTF-8 text: {error}") from error


def _count(tree: Any, what: str) -> int:
    """Items of a list of the tree before they are looked at: reading many takes long."""
    found = tree.get(what) if isinstance(tree, dict) else None
    return len(found) if isinstance(found, list) else 0
