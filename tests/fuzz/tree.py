"""Queries as trees, so that a failing one can be reduced.

A node is a template with `{0}`, `{1}` for its parts. Reduction knows nothing about SQL: it drops
items of lists and optional clauses, replaces a node with a part of the same kind, or an expression
with a plain value. A reduced query must fail in the same way.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class Node:
    """A piece of SQL. `kind` is an expression's type or a clause's name."""

    template: str
    parts: tuple["Node", ...] = ()
    kind: str = ""
    # Whether equal values of it are the same text: only these may be sorted or grouped.
    stable: bool = True
    # A clause that may be left out.
    optional: bool = False
    # A list: parts joined by this, at least one of them.
    separator: str | None = None
    # Simpler expressions of the same kind.
    simpler: tuple[str, ...] = field(default=())

    def text(self) -> str:
        texts = [part.text() for part in self.parts]
        if self.separator is not None:
            inner = self.separator.join(t for t in texts if t)
            return self.template.replace("{0}", inner) if inner else ""
        return self.template.format(*texts)


def listing(parts, separator: str = ", ", template: str = "{0}") -> Node:
    return Node(template, tuple(parts), "list", separator=separator)


def descendants(node: Node) -> Iterator[Node]:
    for part in node.parts:
        yield part
        yield from descendants(part)


def smaller(node: Node) -> Iterator[Node]:
    """The node with one thing less, the largest steps first."""
    if node.optional and node.template:
        yield replace(node, template="", parts=(), separator=None)
    if node.separator is not None and len(node.parts) > 1:
        for i in range(len(node.parts)):
            yield replace(node, parts=node.parts[:i] + node.parts[i + 1 :])
    if node.kind not in ("", "list"):
        for below in descendants(node):
            if below.kind == node.kind:
                yield below
        for text in node.simpler:
            if node.template != text:
                yield Node(text, (), node.kind)
    for i, part in enumerate(node.parts):
        for less in smaller(part):
            yield replace(node, parts=(*node.parts[:i], less, *node.parts[i + 1 :]))


def shrunk(node: Node, fails: Callable[[Node], bool], tries: int = 300) -> Node:
    """A smaller node that still fails."""
    progress = True
    while progress and tries > 0:
        progress = False
        for candidate in smaller(node):
            tries -= 1
            if tries <= 0:
                break
            if len(candidate.text()) < len(node.text()) and fails(candidate):
                node, progress = candidate, True
                break
    return node
