"""A keeper that lies, against a real PostgreSQL with the extension.

Mechanism: the extension must check every position, length, kind, number and text
that it reads from the channel. Right answer: each statement ends with an ordinary
error or result within its timeout, and the server never restarts. With a bug a
backend would crash (and PostgreSQL restart), hang beyond its timeout, or leak
memory of its own.

Usage: hostile_keeper.py SOCKET SECONDS [SEED]; PGHOST, PGPORT, PGUSER and PGDATABASE
as usual; the server's confide.keeper_socket is SOCKET.
"""

import fcntl
import mmap
import os
import pathlib
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time

HEADER, RING = 4096, 256 * 1024
SIZE = HEADER + 2 * RING
REQUEST, ANSWER = 256, 512
WRITTEN, READER_SLEEPS, READ, WRITER_SLEEPS = 0, 64, 128, 192
BESIDE, TAG, BELOW_TAG = 8, 56, (1 << 56) - 1
F_ADD_SEALS, SEALS = 1033, 7
HEADER_FILE = pathlib.Path(__file__).parent.parent / "src/generated/contract.h"
VERSION = int(re.search(r"CONTRACT_VERSION (\d+)", HEADER_FILE.read_text())[1])
LISTED = HEADER_FILE.read_text().split("#define CFD_ANSWERED(X)")[1].split("\n\n")[0]
ANSWERED = {int(k) for k in re.findall(r"X\((\d+)", LISTED)}

ENVELOPE = "cfd1.zwIHAAAAAAAYAAAAAAAAANrPLxNmlh8ZNIwQNqOTkVkK8ZiAIUOuFhS5"
STATEMENTS = [
    f"SELECT '{ENVELOPE}'::enc_int4",
    f"SELECT '{ENVELOPE}'::enc_int4 < '{ENVELOPE}'::enc_int4",
    f"SELECT '{ENVELOPE}'::enc_int4 + '{ENVELOPE}'::enc_int4",
    f"INSERT INTO hostile VALUES ('{ENVELOPE}', '{ENVELOPE}')",
    f"COPY hostile FROM stdin;\n{ENVELOPE}\t{ENVELOPE}\n{ENVELOPE}\t{ENVELOPE}\n\\.\n",
    "SELECT * FROM hostile",
    "SELECT sum(a), min(b) FROM hostile",
    "SELECT count(*) FROM hostile GROUP BY a ORDER BY a",
    f"CREATE TABLE gone AS SELECT '{ENVELOPE}'::enc_text AS t; DROP TABLE gone",
    "SELECT * FROM confide.confide_stat_keeper",
    r"SELECT confide.handshake(1, '\x00'), confide.handshake(3, '\x00')",
    "SELECT confide.bench_answered(50)",
    "ANALYZE hostile",
    f"SELECT count(*) FROM hostile WHERE a < '{ENVELOPE}'::enc_int4",
    f"SELECT a + a, b FROM hostile WHERE a * a > '{ENVELOPE}'::enc_int4",
    "SELECT a, count(*), sum(a), max(b) FROM hostile GROUP BY a",
    "SELECT sum(a), avg(a), count(b) FROM hostile",
    "SELECT b FROM hostile ORDER BY b, a LIMIT 3",
    "SELECT b FROM hostile ORDER BY b DESC",
    "COPY hostile TO STDOUT",
    "BEGIN; CREATE INDEX ON hostile (a); ROLLBACK",
    f"SET enable_seqscan = off; SELECT * FROM hostile WHERE b = '{ENVELOPE}'::enc_text",
    f"INSERT INTO hostile SELECT '{ENVELOPE}', '{ENVELOPE}' FROM generate_series(1, 300)",
    "DELETE FROM hostile WHERE random() < 0.2",
    "VACUUM hostile",
    "SELECT * FROM confide.gc('hostile'), confide.gc()",
    "SELECT * FROM confide.verify('hostile')",
    "SELECT count(repeat('x', 500000 + g)::enc_text) FROM generate_series(1, 3) g",
]


class Channel(threading.Thread):
    """One channel: answers what it should not."""

    def __init__(self, connection, rng):
        super().__init__(daemon=True)
        self.connection = connection
        self.rng = rng
        self.mode = rng.choice(["plausible", "plausible", "plausible", "wild", "silent"])
        self.read = 0
        self.written = 0

    def word(self, offset, value=None, form="<Q"):
        if value is not None:
            struct.pack_into(form, self.memory, offset, value)
        return struct.unpack_from(form, self.memory, offset)[0]

    def welcome(self):
        self.connection.recv(48)
        fd = os.memfd_create("hostile", os.MFD_ALLOW_SEALING)
        os.ftruncate(fd, SIZE if self.rng.random() > 0.02 else SIZE - 4096)
        if self.rng.random() > 0.02:
            fcntl.fcntl(fd, F_ADD_SEALS, SEALS)
        version = VERSION if self.rng.random() > 0.02 else self.rng.getrandbits(32)
        status = 0 if self.rng.random() > 0.05 else self.rng.randrange(8)
        arena = 1 << 19 if self.rng.random() > 0.05 else self.rng.getrandbits(32)
        fields = struct.pack("<4sIIIQ16sQ16s", b"CFDH", version, status, arena, 1, b"t", 7, b"")
        if self.rng.random() < 0.02:
            fields = self.rng.randbytes(64)
        if self.rng.random() < 0.02:
            fields = fields[: self.rng.randrange(64)]
        fds = [fd] * self.rng.choice([1, 1, 1, 1, 1, 1, 1, 2, 0])
        self.memory = mmap.mmap(fd, SIZE) if os.fstat(fd).st_size == SIZE else bytearray(SIZE)
        struct.pack_into("<4sI", self.memory, 0, b"CFDR", VERSION)
        socket.send_fds(self.connection, [fields], fds)
        os.close(fd)

    def take(self, count):
        """Bytes of the request ring, None when the backend is gone."""
        deadline = time.monotonic() + 5
        while (self.word(REQUEST + WRITTEN) & BELOW_TAG) - self.read < count:
            if time.monotonic() > deadline:
                return None
            time.sleep(0.0002)
            try:
                if self.connection.recv(64, socket.MSG_DONTWAIT) == b"":
                    return None
            except BlockingIOError:
                pass
        ring = bytes(self.memory[HEADER : HEADER + RING])
        start = self.read % RING
        data = (ring + ring)[start : start + count]
        self.read += count
        self.word(REQUEST + READ, self.read)
        if self.word(REQUEST + WRITER_SLEEPS, form="<I"):
            self.word(REQUEST + WRITER_SLEEPS, 0, "<I")
            self.connection.send(b"w")
        return data

    def beside(self, part):
        """Puts bytes beside the position, right ones or others; gives the tag."""
        kind = self.rng.choice(["none", "right", "right", "other", "wild"])
        if kind == "none" or len(part) > 49:
            return 0
        count = len(part) if kind == "right" else self.rng.randrange(64)
        tag = count | self.rng.randrange(4) << 6
        data = part if kind == "right" else self.rng.randbytes(49)
        for i in range(7):
            seven = data[7 * i : 7 * i + 7].ljust(7, b"\0")
            mark = tag if kind != "wild" or self.rng.random() < 0.9 else self.rng.randrange(256)
            self.word(ANSWER + BESIDE + 8 * i, int.from_bytes(seven, "little") | mark << TAG)
        return tag << TAG

    def give(self, data):
        for start in range(0, len(data), 4096):
            part = data[start : start + 4096]
            for i, byte in enumerate(part):
                self.memory[HEADER + RING + (self.written + i) % RING] = byte
            self.written += len(part)
            self.word(ANSWER + WRITTEN, self.written | self.beside(part))
            if self.word(ANSWER + READER_SLEEPS, form="<I"):
                self.word(ANSWER + READER_SLEEPS, 0, "<I")
                self.connection.send(b"w")

    def batch(self, kind, request):
        """An answer of the right form, or nearly, to a request about rows."""
        rng = self.rng
        words = struct.unpack_from("<4I", request.ljust(16, b"\0"))
        rows = min(rng.choice([*words, 1, 7]), 40_000)
        one = rng.choice([1, 1, 1, 16, 0])
        revealed = struct.pack("<II", rows, one)
        error = rng.choice([b"", b"", b"22012\0\0\0no\0\0\0", b"22012"])
        if kind == 36:
            envelope = b"\xcf\x02\x03\0" + rng.randbytes(32)
            one = struct.pack("<I", rng.choice([36, 36, 36, 35, 0, 1 << 31])) + envelope
            return one * (len(request) // 16)
        if kind in (66, 83):
            return struct.pack("<I", rng.choice([1, 2, 0, 1 << 31]))
        if kind == 68:
            nulls = struct.pack("<II", rng.choice([0, 1, rows]), rng.choice([0, rows]))
            return struct.pack("<II", rows, 1) + nulls + rng.randbytes(rows) + error
        if kind in (69, 70):
            return revealed + bytes(rng.choice([0, 1, 2, 255]) for _ in range(rows * one)) + error
        if kind == 76:
            return struct.pack("<II", rows, 16) + rng.randbytes(16 * rows) + error
        if kind == 73:
            steps = rng.choice([0, 0, rows])
            ranks = b"".join(rng.randrange(9).to_bytes(4, "little") for _ in range(rows))
            return struct.pack("<II", rows, steps) + ranks + rng.randbytes(steps)
        if kind == 78:
            below = rng.randrange(9)
            places = struct.pack("<II", below, below + rng.choice([0, 1, 1 << 30]))
            return places * rng.choice([words[0] % 64, 1])
        if kind == 85:
            return struct.pack("<QII", rng.choice([1, 1000]), rows, rng.choice([0, 0, 1]))
        if kind == 86:
            column = struct.pack("<II", rng.choice([0, 0, 3]), rows) + rng.randbytes(8 * rows)
            return struct.pack("<IIQ", rows, rng.choice([0, 0, 1, 2]), 1) + column
        if kind == 54:
            return struct.pack("<QQ", 1, rng.choice([0, 0, 1])) + rng.randbytes(rng.choice([0, 60]))
        return None

    def body(self, kind, request):
        rng = self.rng
        if rng.random() < 0.8 and (found := self.batch(kind, request)) is not None:
            return found
        lengths = {48: 8, 50: 8 * rng.randrange(1, 5), 65: rng.choice([1, 8]), 17: 0, 16: 0}
        length = lengths.get(kind, rng.randrange(0, 60))
        if rng.random() < 0.2:
            length = rng.choice([0, 1, 7, 8, 9, 64, 5000, 300000])
        if kind == 96 and rng.random() < 0.8:  # a keeper without a store
            return struct.pack("<IIQQQ", 1, 0, 0, 0, 0)
        if kind == 48 and rng.random() < 0.8:
            return struct.pack("<II", rng.choice([1, 1, 1, 2, 0]), 0)
        if kind == 50 and rng.random() < 0.8:
            count = rng.choice([1, 1, 2, 3])
            return struct.pack("<QQQ", count, 1 << 44 | 5, 1 << 44 | 6)[: rng.choice([16, 24, 24])]
        if kind == 65 and rng.random() < 0.8:
            return bytes([rng.choice([0, 1, 2, 255])])
        return rng.randbytes(length)

    def error(self):
        state = self.rng.choice([b"22012", b"00000", b"01000", b"\xff\xff\xff\xff\xff", b"57P01"])
        texts = b"\0".join(self.rng.randbytes(self.rng.randrange(30)) for _ in range(4))
        code = self.rng.choice([b"\0\0\0", self.rng.randbytes(3)])
        text = state + code + b"%s %n %d " + texts + b"\0"
        return text[: self.rng.choice([3, 8, 9, 100])]

    def answer(self, kind, sequence, request):
        rng = self.rng
        code, body = (1, self.body(kind, request)) if rng.random() < 0.85 else (2, self.error())
        length = len(body)
        if self.mode == "wild":
            code = rng.choice([code, code, 0, 3, 77])
            length = rng.choice([length, length, length + 9, 1 << 31, 64 << 20])
            sequence = rng.choice([sequence, sequence, sequence - 1, sequence + 1, 0])
        self.give(struct.pack("<IHHIxxxx", length, code, 0, sequence & 0xFFFFFFFF) + body)
        if self.mode == "wild" and rng.random() < 0.2:
            word = rng.choice([ANSWER + WRITTEN, REQUEST + READ])
            self.word(word, rng.getrandbits(64))
            self.connection.send(b"w")

    def run(self):
        try:
            self.welcome()
            while (header := self.take(16)) is not None:
                length, kind, _, sequence = struct.unpack("<IHHIxxxx", header)
                request = b""
                while length > 0:
                    part = min(length, RING // 2)
                    if (taken := self.take(part)) is None:
                        return
                    request = request or taken
                    length -= part
                answered = kind in ANSWERED
                if self.mode == "silent" and self.rng.random() < 0.3:
                    time.sleep(1.5)
                if answered and not (self.mode == "silent" and self.rng.random() < 0.3):
                    self.answer(kind, sequence, request)
                if self.rng.random() < 0.01:
                    return
        except (OSError, BrokenPipeError, ValueError, struct.error):
            pass
        finally:
            self.connection.close()


def listening(path):
    if os.path.exists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    os.chmod(path, 0o777)
    listener.listen(64)
    return listener


def serve(listener, rng):
    while True:
        Channel(listener.accept()[0], random.Random(rng.random())).start()


def psql(text, settings="-c statement_timeout=2s"):
    environment = {**os.environ, "PGOPTIONS": settings}
    return subprocess.run(
        ["psql", "-XqAt"],
        input=text.encode(),
        env=environment,
        capture_output=True,
        check=False,
    )


def started():
    """When the server's processes began: a crash of any backend begins them anew."""
    return psql(
        "SELECT backend_start FROM pg_stat_activity WHERE backend_type = 'checkpointer'"
    ).stdout


def end_of(statement):
    return statement if statement.endswith("\n") else statement + ";\n"


def worker(end, rng, counts):
    while time.monotonic() < end:
        # Any of the last ones is enough: a process that stood still may meet its timeout.
        text = "".join(end_of(s) for s in rng.choices(STATEMENTS, k=6)) + 3 * "SELECT 'alive';\n"
        result = psql(text)
        counts["batches"] += 1
        counts["alive"] += result.stdout.endswith(b"alive\n")
        for line in result.stderr.splitlines():
            if line.startswith((b"server closed", b"connection to server was lost")):
                counts["lost"] += 1


def main():
    path, seconds = sys.argv[1], float(sys.argv[2])
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else random.randrange(1 << 30)
    rng = random.Random(seed)
    threading.Thread(target=serve, args=(listening(path), rng), daemon=True).start()
    psql("CREATE TABLE IF NOT EXISTS hostile (a enc_int4, b enc_text)")
    before = started()
    counts = {"batches": 0, "alive": 0, "lost": 0}
    end = time.monotonic() + seconds
    workers = [
        threading.Thread(target=worker, args=(end, random.Random(rng.random()), counts))
        for _ in range(4)
    ]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    after = started()
    counts["dead"] = counts["batches"] - counts.pop("alive")
    print(f"seed {seed}: {counts}, server {'the same' if before == after else 'RESTARTED'}")
    sys.exit(before != after or counts["lost"] + counts["dead"] > 0)


if __name__ == "__main__":
    main()
