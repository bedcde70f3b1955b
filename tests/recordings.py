"""Recordings in tests: the command that starts, stops and shows them, and statements from the
server's log."""

import re
import subprocess

from stack import PG_BIN


class Recorder:
    """`confide record` at a stack whose administrator is the principal of its proxy."""

    def __init__(self, stack, folder):
        self.stack, self.folder = stack, folder
        self.key = folder / "recording.key"
        self.name = None

    def confide(self, *arguments):
        command = [self.stack.data.parent / "bin" / "confide", "record", *arguments]
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )

    def place(self, url=None):
        return ["--dbname", url or self.stack.app_url, "--bindir", PG_BIN]

    def start(self, *scope):
        done = self.confide("start", *self.place(), "--key", self.key, *scope)
        assert done.returncode == 0, done.stderr
        self.name = done.stdout.strip()

    def stop(self):
        done = self.confide("stop", *self.place())
        assert done.returncode == 0, done.stderr

    @property
    def directory(self):
        return self.stack.data.parent / "keeper" / "data" / "recordings" / self.name

    def show(self, directory=None, *more):
        return self.confide("show", directory or self.directory, "--key", self.key, *more)

    def shown(self, *more):
        done = self.show(None, *more)
        assert done.returncode == 0, done.stderr
        return dict(line.rsplit(" ", 1) for line in done.stdout.splitlines())


def statements(log):
    """The statements in a server's log, as they came, with envelopes."""
    found = re.findall(r"LOG:  (?:00000: )?statement: (.*?)\n(?=\S)", log, re.S)
    return [text.replace("\n\t", "\n") for text in found]


# What a file of a recording begins with, and what stands beside the sealed part of a frame.
FILE_HEAD, FRAME_HEAD = 16, 28


def frames(content):
    """The frames of a recording's file."""
    rest, found = content[FILE_HEAD:], []
    while rest:
        length = int.from_bytes(rest[:4], "little") + FRAME_HEAD
        found.append(rest[:length])
        rest = rest[length:]
    return found


def tampered(content):
    """What somebody without the key can do to a recording's file, and what he is told."""
    head, parts = content[:FILE_HEAD], frames(content)
    assert len(parts) > 2, "there is nothing to reorder"
    first, second, *rest = parts
    middle = len(content) // 2
    changed = content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]
    return {
        "altered": (changed, "was altered"),
        "cut within a frame": (content[:-1], "is cut"),
        "cut behind a frame": (content[: -len(parts[-1])], "no end"),
        "without its begin": (head + b"".join(parts[1:]), "begin is missing"),
        "without a frame": (head + b"".join([first, *rest]), "is missing, or was moved"),
        "reordered": (head + b"".join([second, first, *rest]), "is missing, or was moved"),
        "a frame twice": (head + b"".join([first, *parts]), "is missing, or was moved"),
        "more behind the end": (content + first, "after the end"),
    }
