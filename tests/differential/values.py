"""Edge values of each type, as PostgreSQL reads them; None is NULL."""

LONG = "1" + "0" * 40 + ".5"

EDGES: dict[str, list[str | None]] = {
    "bool": ["t", "f", None],
    "int2": ["0", "1", "-1", "2", "-7", "100", "181", "182", "32767", "-32768", None],
    "int4": ["0", "1", "-1", "2", "-3", "10", "46341", "65536", "2147483647", "-2147483648", None],
    "int8": [
        *["0", "1", "-1", "3", "-10", "4294967296", "3037000500"],
        *["9223372036854775807", "-9223372036854775808", None],
    ],
    "float4": [
        *["0", "-0", "1", "-1.5", "0.1", "2.5", "16777217", "3.4028235e38", "1.1754944e-38"],
        *["1e-45", "Infinity", "-Infinity", "NaN", None],
    ],
    "float8": [
        *["0", "-0", "1", "-2.5", "0.5", "0.1", "1e15", "123456789.125", "9007199254740993"],
        *["1.7976931348623157e308", "5e-324", "Infinity", "-Infinity", "NaN", None],
    ],
    "numeric": [
        *["0", "1", "-1", "0.5", "-2.5", "3.14159265358979323846", "9999999999.99", "100.00"],
        *["0.000000000000000001", "123456789012345678901234567890.123456789", "-99999999999999999"],
        *[LONG, "NaN", "Infinity", "-Infinity", None],
    ],
    "text": [
        *["", "a", "A", "abc", "Ab_c%", "%b%", "_", "ä€😀x", " blank ", "12", "true", "a\\b"],
        *["aaaa", "2024-02-29", "1.5e2", "\\", None],
    ],
    "varchar": ["", "a", "aBc", "ß€", " x ", "12", "f", "2024-02-29 12:00", "%", None],
    "bpchar": ["", "a", "a  ", "abc", " b", "€ ", "12 ", "yes", "a%", None],
    "bytea": ["\\x", "\\x00", "\\xff", "\\xdeadbeef", "\\x616263", "\\x6162", "\\xde", None],
    "date": [
        *["2000-01-01", "1970-01-01", "2024-02-29", "1999-12-31", "0001-01-01", "0001-12-31 BC"],
        *["4714-11-24 BC", "5874897-12-31", "2023-10-29", "infinity", "-infinity", None],
    ],
    "time": ["00:00", "24:00", "23:59:59.999999", "12:34:56.789", "06:30", "00:00:00.000001", None],
    "timestamp": [
        *["2000-01-01 00:00", "1999-12-31 23:59:59.999999", "2024-02-29 12:30:15.5"],
        *["0044-03-15 12:00 BC", "4714-11-24 00:00:00 BC", "294276-12-31 23:59:59.999999"],
        *["2023-10-29 01:30", "infinity", "-infinity", None],
    ],
    "timestamptz": [
        *["2000-01-01 00:00+00", "1999-12-31 23:59:59.999999-05", "2024-02-29 12:30:15.5+05:30"],
        *["0044-03-15 12:00+00 BC", "4714-11-24 00:00:00+00 BC", "294276-12-31 23:59:59.999999+00"],
        *["2023-10-29 01:30+02", "infinity", "-infinity", None],
    ],
    "interval": [
        *["0", "1 day", "1 mon", "-1 year 2 mons -3 days 04:05:06.789", "1000000 hours", "30 days"],
        *["720:00:00", "178000000 years", "00:00:00.000001", "-2147483648 days", "1.5 days", None],
    ],
    "uuid": [
        "00000000-0000-0000-0000-000000000000",
        "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11",
        "ffffffff-ffff-ffff-ffff-ffffffffffff",
        None,
    ],
    "json": [
        *['{"a": 1, "b": [1.50, null], "a": 2}', ' [ "a", {"a": {}} ]', '"a"', "null", "1e2", None],
    ],
    "jsonb": [
        *['{"a": 1, "b": [1.50, null], "aa": 2}', '["a", {"a": {}}]', '"a"', "null", "1.0", "1"],
        *["100000", "true", "[]", "{}", '["b"]', "[1]", None],
    ],
}

# Values for literals: ordinary ones, so that most results are values, too.
LITERALS: dict[str, list[str]] = {
    "bool": ["t", "f"],
    "int2": ["3", "-2", "0", "1000"],
    "int4": ["5", "-2", "0", "70000"],
    "int8": ["7", "-2", "0", "5000000000"],
    "float4": ["0.5", "-3", "0", "1e10"],
    "float8": ["0.25", "-3", "0", "1e100"],
    "numeric": ["0.05", "-3", "0", "12345678901234567890.5"],
    "text": ["b", "", "a%", "%€%"],
    "varchar": ["aBc", "", "x%"],
    "bpchar": ["abc", "a ", ""],
    "bytea": ["\\x6162", "\\x"],
    "date": ["1998-12-01", "2024-02-29", "infinity"],
    "time": ["06:30", "23:59:59"],
    "timestamp": ["1998-12-01 12:00", "2024-02-29 00:00:00.5"],
    "timestamptz": ["1998-12-01 12:00+00", "2024-02-29 00:00:00.5-08"],
    "interval": ["90 days", "1 month", "1 year 2 mons 3 days 04:05:06", "-00:00:01"],
    "uuid": ["a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"],
    "json": ['{"a": 1}', "[1]"],
    "jsonb": ['{"a": 1}', "[1]", "{}"],
}

UNITS: dict[str, list[str]] = {
    name: units.split()
    for name, units in {
        "date": "year month day quarter week dow doy decade century epoch isoyear isodow "
        "millennium julian hour",
        "time": "hour minute second milliseconds microseconds epoch day",
        "timestamp": "year month day hour minute second milliseconds quarter week dow doy epoch "
        "microseconds decade century millennium julian",
        "timestamptz": "year month day hour second timezone timezone_hour epoch week dow isoyear "
        "timezone_minute century",
        "interval": "year month day hour minute second epoch quarter decade millennium "
        "microseconds week",
    }.items()
}
