"""The log of attend serve: clients are answered, whatever happens to its reader."""

import fcntl
import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import threading

import program
from program import PAIRS, SMALL, settings
from test_serve import Server


class LoggingServer(Server):
    """A server with a given descriptor or file as standard error."""

    def __init__(self, *arguments, cwd, stderr):
        self.process = subprocess.Popen(
            [program.PROGRAM, "serve", *map(str, arguments), "--port", "0"], cwd=cwd,
            stdout=subprocess.PIPE, stderr=stderr, env=program.environment(), text=True)
        self.url = self.process.stdout.readline().split()[-1]

    def end(self):
        if self.process.poll() is None:
            self.process.terminate()
        code = self.process.wait(60)
        self.process.stdout.close()
        return code

    def lost(self):
        lines = self.ask("GET", "/metrics")[2].splitlines()
        return next(int(line.split()[1]) for line in lines
                    if line.startswith("attend_log_lines_lost_total "))


class Log(program.Case):
    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="attend-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared)
        (cls.shared / "pairs.tsv").write_text(PAIRS)
        run = program.attend("train", "--data", "pairs.tsv", "--out", "words",
                             *settings(SMALL | {"train.epochs": 1}), cwd=cls.shared)
        assert run.returncode == 0, run.stderr

    def serve(self, *arguments, stderr):
        server = LoggingServer("words", *arguments, cwd=self.shared, stderr=stderr)
        self.addCleanup(server.end)
        return server

    def test_a_full_disk(self):
        with open("/dev/full", "w") as full:
            server = self.serve(stderr=full)
        for _ in range(3):
            self.assertEqual(server.ask("GET", "/health")[0], 200)
        while server.lost() < 3:
            pass
        self.assertEqual(server.end(), 0)

    def test_readers_that_go(self):
        read, write = os.pipe()
        server = self.serve(stderr=write)
        os.close(write)
        os.close(read)
        # Also after a reader of standard output that reads only the port.
        server.process.stdout.close()
        for _ in range(3):
            self.assertEqual(server.ask("GET", "/health")[0], 200)
        while server.ask("GET", "/ready")[0] != 200:
            pass
        self.assertEqual(server.end(), 0)

    def test_a_reader_that_stops(self):
        read, write = os.pipe()
        fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
        server = self.serve("--log", "json", stderr=write)
        os.close(write)
        self.assertEqual(server.process.stdout.readline(), "attend: ready\n")
        connection, asked = server.connect(), 600
        for i in range(asked):  # a megabyte is being written, another one waits, the rest is lost
            self.assertEqual(server.ask("GET", f"/{i}/" + "x" * 7000, connection=connection)[0], 404)
        connection.close()
        self.assertGreater(server.lost(), 0)
        events = []
        with open(read) as log:
            reader = threading.Thread(target=lambda: events.extend(map(json.loads, log)))
            reader.start()
            while not any(event["event"] == "lost" for event in events):
                server.ask("GET", "/more")  # before its next line the log reports the lost lines
                asked += 1
            server.ask("GET", "/last")
            asked += 1
            while events[-1].get("target") != "/last":
                pass
            self.assertEqual(server.end(), 0)
            reader.join()
        lost = sum(event["lines"] for event in events if event["event"] == "lost")
        self.assertGreater(lost, 0)
        targets = [event["target"] for event in events if event["event"] == "request"]
        self.assertIn("/0/" + "x" * 7000, targets)
        # One more request was for the metrics.
        self.assertEqual(len(targets) + lost, asked + 1)


if __name__ == "__main__":
    program.main()
