"""Common parts of the Python programs in this folder, which are started as `PROGRAM URL create` and
`PROGRAM URL run`. The first creates tables with plain types, whose columns may be protected before
the second is run. The second prints a line of JSON for each check with its name and its outcome,
which must not depend on that.

Nothing here knows about protected columns: the programs are applications.
"""

import datetime
import decimal
import json
import sys
import uuid

CHECKS = []


def check(function):
    """A function of the program's session that gives a value."""
    CHECKS.append(function)
    return function


def plain(value):
    """A value as JSON can have it, with the types that clients see."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return repr(value)
    if isinstance(value, decimal.Decimal | datetime.timedelta | uuid.UUID):
        return f"{type(value).__name__} {value}"
    if isinstance(value, datetime.date | datetime.time):
        return f"{type(value).__name__} {value.isoformat()}"
    if isinstance(value, bytes | bytearray | memoryview):
        return "bytes " + bytes(value).hex()
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, set | frozenset):
        return sorted(map(plain, value), key=repr)
    try:
        return [plain(v) for v in value]
    except TypeError:
        return repr(value)


def sqlstate(error):
    """That of an error, or of what it was raised from."""
    while error is not None:
        for holder in (error, getattr(error, "orig", None)):
            for name in ("sqlstate", "pgcode"):
                code = getattr(holder, name, None)
                if code:
                    return str(code)
            arguments = getattr(holder, "args", ())
            if arguments and isinstance(arguments[0], dict) and "C" in arguments[0]:
                return arguments[0]["C"]
        error = error.__cause__
    return None


def outcome(function, argument):
    try:
        return {"value": plain(function(argument))}
    except Exception as error:
        message = " ".join(str(error).split())[:400]
        return {
            "error": type(error).__name__,
            "sqlstate": sqlstate(error),
            "message": message,
        }


def main(create, session):
    """`session` gives a context for one check; what a check leaves behind is its own affair."""
    url, phase = sys.argv[1:3]
    if phase == "create":
        create(url)
        return
    with session(url) as fresh:
        for function in CHECKS:
            with fresh() as argument:
                result = outcome(function, argument)
            print(json.dumps({"name": function.__name__, **result}), flush=True)
