"""Expressions over columns of the families rnd_ and soft_ give what they give on plain ones, or are
refused for a reason that is listed here. The expressions are those of test_expressions.py, of each
kind and type a part.

With a bug a value, a type or a SQLSTATE differs, or something is refused that should not be, by
another message than those that docs/families.md explains.
"""

import os
import random
import re
from collections import Counter

import pytest
from cases import contexts, composites, direct, with_literals
from results import Outcome
from test_expressions import SEED, Comparison, fill, known  # noqa: F401
from values import EDGES

# How many cases of each kind and type; 0: all.
CASES = int(os.environ.get("CONFIDE_CASES", "12"))
# What a message of a refusal has in it, by family and SQLSTATE.
REASONS = {
    "rnd": {
        "0A000": [],
        "42883": [],
        "42804": [],
    },
    "soft": {
        "0A000": [],
        "42883": [],
        "42804": [],
    },
}
TYPES = {
    "rnd": list(EDGES),
    "soft": ["bool", "int2", "int4", "int8", "numeric", "text", "date", "timestamp"],
}
# What no soft_numeric holds is left out of both twins.
DECIMAL = re.compile(r"-?\d{1,10}(\.\d{1,4})?$")


def edges(family: str) -> dict[str, list]:
    if family == "rnd":
        return EDGES
    made = {type_: EDGES[type_] for type_ in TYPES[family]}
    made["numeric"] = [v for v in EDGES["numeric"] if v is None or DECIMAL.match(v)]
    return made


class Family(Comparison):
    """Counts what was refused, and what for."""

    def __init__(self, plain, protected, family: str):
        super().__init__(plain, protected)
        self.reasons = REASONS[family]
        self.told: Counter = Counter()

    def refused(self, got: Outcome) -> bool:
        listed = self.reasons.get(got.sqlstate or "", [])
        reason = next((r for r in listed if re.search(r, got.message)), None)
        if reason is None:
            return super().refused(got)
        self.told[reason] += 1
        return True


@pytest.fixture(scope="module", params=["rnd", "soft"])
def sides(stack, request):
    """The family, and connections that find the plain and the protected tables."""
    family = request.param
    values = edges(family)
    with stack.connect_app() as plain, stack.connect_app() as protected:
        fill(plain, f"values_plain_{family}", "", values)
        fill(protected, f"values_{family}", f"{family}_", values)
        yield family, plain, protected


@pytest.mark.parametrize("type_", EDGES)
def test_type(known, sides, type_, report):  # noqa: F811
    family, plain, protected = sides
    if type_ not in TYPES[family]:
        pytest.skip(f"there is no {family}_{type_}")
    rng = random.Random(f"{SEED}/{family}/{type_}")
    here = [s for s in known if all(a in TYPES[family] or a == "unit" for a in s.args)]
    comparison = Family(plain, protected, family)
    kinds = [
        direct(type_, here),
        with_literals(type_, here, rng),
        contexts(type_, rng),
        composites(type_, here, rng),
    ]
    cases = [case for kind in kinds for case in (rng.sample(kind, min(CASES, len(kind))) if CASES else kind)]
    for case in cases:
        comparison.compare(case)
    report(f"{family}_{type_}: {len(cases)} expressions, {comparison.compared} values, refused {sum(comparison.told.values())}")
    shown = "\n".join(comparison.differences[:400])
    assert not comparison.differences, f"{len(comparison.differences)} differ:\n{shown}"
