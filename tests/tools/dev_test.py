"""Tests of the output of ./dev before it builds anything."""

import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/support"))

import cases  # noqa: E402


def dev(*arguments, path=None):
    environment = {**os.environ, **({"PATH": path} if path else {})}
    environment.pop("ATTEND_SKIP_PACKAGES", None)
    return subprocess.run([shutil.which("bash"), ROOT / "dev", *arguments], env=environment,
                          capture_output=True, text=True)


def until_closed(terminal):
    """Returns all output at the other end of a terminal; a single read may return a part."""
    told = b""
    while True:
        try:
            read = os.read(terminal, 10000)
        except OSError:  # EIO: the other end is closed, and all was read
            return told.decode()
        told += read


class Dev(unittest.TestCase):
    def test_help_names_every_command(self):
        run = dev("help")
        self.assertEqual(run.returncode, 0)
        for command in ("demo", "test", "build", "bench", "example", "check", "soak", "fuzz", "package",
                        "conform", "findings", "format"):
            self.assertRegex(run.stdout, rf"(?m)^  {command}\b")

    def test_misuse_exits_with_two(self):
        for arguments in (["dmeo"], ["build", "relaese"], ["test", "relaese"], ["soak", "--kils", "3"],
                          ["soak", "--kills"], ["package", "--tset"], ["fuzz", "piars"], ["fuzz", "--minutes", "ten"],
                          ["conform", "atention"], ["findings", "no_finding"]):
            run = dev(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn(arguments[-1] if arguments[-1] != "ten" else "--minutes", run.stderr)

    def test_rooms_are_for_release(self):
        for arguments in (["test", "asan", "nn"], ["test", "release", "asan", "--fast"]):
            run = dev(*arguments)
            self.assertEqual(run.returncode, 2, arguments)
            self.assertIn("asan", run.stderr)

    def test_progress_on_a_terminal(self):
        """Ninja counts from 0 while it scans for new files."""
        script = ('eval "$(sed -n "/^say()/,/^}/p; /^show_progress()/,/^}/p" "$1")"; set -eu;'
                  'show_progress release')
        terminal, other_end = pty.openpty()
        run = subprocess.run([shutil.which("bash"), "-c", script, "bash", ROOT / "dev"], stderr=other_end, text=True,
                             input="[0/2] looks\n[1/2] compiles\na warning\n[2/2] links\n", timeout=60)
        os.close(other_end)
        told = until_closed(terminal)
        os.close(terminal)
        self.assertEqual(run.returncode, 0)
        for text in ("1 of 2 steps", "a warning", "2 of 2 steps"):
            self.assertIn(text, told)

    def test_without_apt_it_prints_the_list_and_stops(self):
        with tempfile.TemporaryDirectory() as folder:
            for tool in ("bash", "dirname", "readlink", "sed", "awk"):
                os.symlink(shutil.which(tool), pathlib.Path(folder, tool))
            run = dev("build", path=folder)
        self.assertEqual(run.returncode, 2)
        names = run.stdout.split()
        self.assertIn("libtorch-dev", names)
        self.assertIn("no apt", run.stderr)
        self.assertFalse([name for name in names if "#" in name])


if __name__ == "__main__":
    cases.main()
