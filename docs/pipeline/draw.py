"""Draws the pictures of these pages: python docs/pipeline/draw.py [FOLDER]

A line is a chain of boxes, `a|its second line -> b -> c`. A box is drawn once; `..>` is dashed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from kernel_gen.runtime.dot import quote, render

HERE = Path(__file__).parent
PICTURES: dict[str, str] = {
    "capture": """
        module|your nn.Module -> torch.export|traces, runs nothing -> rules|one per torch operator
        rules -> composites|layer_norm, attention -> graph|values, nodes, types
        rules -> primitives|add, matmul, reshape -> graph
        rules ..> framework node|torch's operator and why -> graph
    """,
    "fuse": """
        graph -> rules.yaml|merge, fold, channels-last -> program
        program -> growth|from each op to its neighbours -> legality|codes and sentences
        legality -> nest|statements over axes -> candidates|equal nests are one task
        legality ..> refusals|reported
    """,
    "cover": """
        candidates|groups with a kernel -> integer program|every value made once -> solver|HiGHS
        library|each op by torch -> integer program
        times|measured, else predicted -> integer program
        solver -> cover|groups in order
        solver ..> circles|cut off, solved again ..> integer program
    """,
    "schedule": """
        nest -> templates|which take it -> space|tile, order, unroll, pack, threads
        space -> point|one choice of each -> schedule|short list of decisions
        schedule -> replay|same kernel again, any time
    """,
    "codegen": """
        nest -> template -> loops|C++ with vector types -> object|g++, flags named, cached
        schedule -> template
        template ..> packs|constants laid out once -> object
        vector math|polynomials -> loops
    """,
    "tune": """
        study|one per nest -> candidate kernel -> build|a batch, no timing -> check|against float64
        check -> measure|core alone, until sure -> trial|time, or failure
        trial ..> study
        cost model|screens ..> candidate kernel
        trial -> whole program|covers beside the baseline -> plan
    """,
    "store": """
        plan -> bundle|plan.json, objects, signature -> cache folder|one directory per plan
        bundle -> database|artifacts by digest -> head|the key's current plan
        trials -> database
        jobs|lease, events -> database
    """,
    "serve": """
        client|graph without weights -> API|any replica -> database|job in the queue
        database -> driver|by lease -> workers|Ray, one per device
        workers -> driver -> plan|published, signed -> lookup|by key -> client
        database ..> dashboard|events
    """,
    "load": """
        call|module, inputs -> key|graph, shapes, machine -> bundle|trusted, requirements met
        bundle -> bind|weights packed once -> run|one call, own arena -> results|fresh, or views
        bundle ..> model itself|eager, with the reason
        run ..> model itself
    """,
}
_HEAD = """digraph {
rankdir=LR; bgcolor="transparent"; nodesep=0.25; ranksep=0.35;
node [shape=box, style="rounded,filled", fillcolor="#eef4ff", color="#3565b0",
      fontcolor="#14233c", fontname="Helvetica", fontsize=11];
edge [color="#3565b0"];
"""


def dot_of(text: str) -> str:
    """Graphviz's language for a picture's lines."""
    lines = [_HEAD]
    labels: dict[str, str] = {}
    for line in filter(None, map(str.strip, text.splitlines())):
        words = re.split(r" (->|\.\.>) ", line)
        names = [_box(word, labels) for word in words[::2]]
        for before, arrow, after in zip(names, words[1::2], names[1:], strict=False):
            style = "" if arrow == "->" else " [style=dashed, constraint=false]"
            lines.append(f"{quote(before)} -> {quote(after)}{style};")
    lines += [f'{quote(name)} [label="{label}"];' for name, label in labels.items()]
    return "\n".join([*lines, "}"])


def _box(word: str, labels: dict[str, str]) -> str:
    """The name of a box; its label is what its first mention says."""
    name, _, second = word.partition("|")
    if second or name not in labels:
        labels[name] = f"{name}\\n{second}" if second else name
    return name


def main(folder: Path) -> None:
    for name, text in PICTURES.items():
        (folder / f"{name}.svg").write_bytes(render(dot_of(text), "svg"))


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE)
