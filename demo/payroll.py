#!/usr/bin/env python3
"""Prints a table of the demo's payroll as CSV: `payroll.py department`, or `employee`.

The rows are the same on every run.
"""

import csv
import datetime as dt
import random
import sys
import unicodedata

DEPARTMENTS = ["Research", "Sales", "Operations", "Finance", "People", "Support"]
FIRST = (
    "Ada Alan Barbara Björn Chloé Dennis Edsger Frances Grace Hedy Ines Jürgen Katherine "
    "Linus Margaret Niklaus Olga Peter Radia Sophie Tim Ursula Václav Wei Xiu Yukihiro Zoë"
).split()
LAST = (
    "Abbott Bauer Carter Dijk Eriksson Fischer García Hopper Ivanova Jones Kowalski Lamarr "
    "Moreau Nakamura O'Brien Petrov Quinn Rossi Schmidt Tanaka Ullman Virtanen Wang Young Zhou"
).split()
DIAGNOSES = [None, None, None, "asthma", "migraine", "diabetes type 2", "hay fever", "back pain"]
ROWS = 200


def ascii_of(name):
    plain = unicodedata.normalize("NFKD", name.lower()).encode("ascii", "ignore").decode()
    return plain.replace("'", "")


def employees():
    rng = random.Random(20)
    for number in range(1, ROWS + 1):
        first, last = rng.choice(FIRST), rng.choice(LAST)
        department = rng.randint(1, len(DEPARTMENTS))
        born = dt.date(1958, 1, 1) + dt.timedelta(days=rng.randrange(45 * 365))
        hired = min(born + dt.timedelta(days=rng.randrange(7300, 11000)), dt.date(2025, 1, 1))
        salary = rng.randint(28_000_00, 148_000_00) / 100
        review = dt.datetime(2025, 1, 6, 9, tzinfo=dt.UTC) + dt.timedelta(
            days=rng.randrange(300), minutes=15 * rng.randrange(32)
        )
        yield (
            number,
            department,
            f"{ascii_of(first)}.{ascii_of(last)}.{number}@example.org",
            f"{first} {last}",
            born,
            hired,
            f"{salary:.2f}",
            rng.choice([0, 0, 1, 2, 3, 5, 8, 13, 21]),
            review if rng.random() < 0.8 else None,
            rng.choice(DIAGNOSES),
        )


def main():
    tables = {"department": enumerate(DEPARTMENTS, 1), "employee": employees()}
    csv.writer(sys.stdout, lineterminator="\n").writerows(tables[sys.argv[1]])


if __name__ == "__main__":
    main()
