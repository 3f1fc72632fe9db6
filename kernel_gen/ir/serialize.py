"""Graphs from JSON, verified."""

from __future__ import annotations

from pathlib import Path

from kernel_gen.codec import from_json
from kernel_gen.errors import InvalidInput
from kernel_gen.ir.graph import Graph
from kernel_gen.ir.verify import verify


def graph_from_json(text: str | bytes) -> Graph:
    """The verified graph in the text, in the text's own order; raises InvalidInput."""
    graph = from_json(Graph, text)
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
