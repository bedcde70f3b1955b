#!/usr/bin/env python3
"""The dependencies between the modules of each crate, which must not be circular.

A module directly below a crate's root, with all files in its folder, is one node. A path that
starts with `crate::`, or with `super::` up to the root, is an arrow to the module that it names, or
to the module from which the root re-exports the name.

Ignores tests, the files of one folder among each other, and what the root defines itself: a parent
may use its children, and they the parent.

Invariant: there is no list of exceptions.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

COMMENT = re.compile(r"//[^\n]*")
TESTS = re.compile(
    r"#\[cfg\(test\)\]\s*mod \w+ \{.*?\n\}\n|#\[cfg\(test\)\]\s*use [^;]*;", re.DOTALL
)
USE = re.compile(r"\buse\s+((?:crate|self|super|\w+)(?:::[^;]*)?);", re.DOTALL)
PATH = re.compile(r"(?<![\w:$])((?:crate|super)(?:::\w+)+)")
EXPORT = re.compile(r"\bpub(?:\(crate\))? use ([^;]*);", re.DOTALL)


def leaves(tree, before=()):
    """Paths of a `use` tree, each as a tuple of names."""
    tree = tree.strip()
    head, brace, rest = tree.partition("{")
    names = tuple(n for n in re.sub(r"\s+as\s+\w+", "", head).strip().split("::") if n)
    if not brace:
        yield before + names
        return
    depth, part = 0, ""
    for sign in rest[: rest.rindex("}")] + ",":
        depth += (sign == "{") - (sign == "}")
        if sign == "," and depth == 0:
            if part.strip():
                yield from leaves(part, before + names)
            part = ""
        else:
            part += sign


def code_of(path):
    return TESTS.sub("", COMMENT.sub("", path.read_text()))


def modules(source):
    """Files by module, and the code of the root."""
    found = {}
    for path in sorted(source.rglob("*.rs")):
        names = path.relative_to(source).with_suffix("").parts
        if names[0] not in ("bin", "lib", "main", "tests") and names[-1] != "tests":
            found.setdefault(names[0], []).append(path)
    roots = [source / name for name in ("lib.rs", "main.rs") if (source / name).is_file()]
    return found, "\n".join(code_of(root) for root in roots)


def exports(root, names):
    """Names in the root, with the module that each is from."""
    found = {}
    for tree in EXPORT.findall(root):
        for path in leaves(tree):
            path = path[1:] if path[0] in ("crate", "self") else path
            if len(path) > 1 and path[0] in names:
                found[path[-1]] = path[0]
    return found


def from_root(path, depth):
    """A path relative to the crate's root, or None. `depth`: of the file's module."""
    ups = 0
    while ups < len(path) and path[ups] == "super":
        ups += 1
    if path[0] == "crate":
        return path[1:]
    return path[ups:] if ups and ups == depth else None


def arrows(source):
    """Maps each module to the modules that it uses, and these to the places."""
    found, root = modules(source)
    exported = exports(root, found)
    graph = {name: {} for name in found}
    for name, files in found.items():
        for path in files:
            code = code_of(path)
            parts = path.relative_to(source).with_suffix("").parts
            depth = len(parts) - (parts[-1] == "mod")
            paths = [p for tree in USE.findall(code) for p in leaves(tree)]
            paths += [tuple(p.split("::")) for p in PATH.findall(USE.sub("", code))]
            for used in paths:
                named = from_root(used, depth)
                if not named:
                    continue
                target = named[0] if named[0] in found else exported.get(named[0])
                if target and target != name:
                    graph[name].setdefault(target, set()).add(
                        f"{path.relative_to(ROOT)}: {'::'.join(used)}"
                    )
    return graph


def circles(graph):
    """Sets of mutually dependent modules."""

    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for target in graph[todo.pop()]:
                if target not in seen:
                    seen.add(target)
                    todo.append(target)
        return seen

    reached = {name: reach(name) for name in graph}
    left = {name for name in graph if name in reached[name]}
    while left:
        name = min(left)
        ring = {other for other in left if other in reached[name] and name in reached[other]}
        yield ring
        left -= ring


def main():
    faults = 0
    for source in sorted(ROOT.glob("crates/*/src")):
        graph = arrows(source)
        for ring in circles(graph):
            faults += 1
            print(f"crates/{source.parent.name}: {', '.join(sorted(ring))} form a circle")
            for name in sorted(ring):
                for target in sorted(ring & graph[name].keys()):
                    for place in sorted(graph[name][target]):
                        print(f"  {name} -> {target}  {place}")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
