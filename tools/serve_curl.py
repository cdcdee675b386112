"""Sends the requests of tools/serve_languages.py with curl."""

import pathlib
import subprocess

from serve_cases import Told

WRITTEN = "%{http_code}\t%{http_version}\t%{content_type}\t%header{content-length}\n"


def command(one, url, folder, sender):
    """curl's command for a case; `url` may be a list."""
    options = ["curl", "-sS", "--max-time", "0.3" if one.action == "abandon" else "120", *one.curl]
    for name, value in one.head(sender).items():
        options += ["-H", f"{name}: {value}"]
    if one.verb() == "HEAD":
        options += ["--head"]
    elif one.body is not None:
        file = folder / f"{one.name}.asked"
        file.write_bytes(one.body)
        options += ["-X", one.verb(), "--data-binary", f"@{file}"]
    if one.action == "chunked":
        options += ["-H", "Transfer-Encoding: chunked"]
    elif one.action == "expect":
        options += ["-H", "Expect: 100-continue"]
    return [*options, *(url if isinstance(url, list) else [url])]


def ask(one, url, folder, sender):
    """Answer that curl reads."""
    asked = url + one.path
    if one.action in ("stream", "leave"):
        return in_pieces(one, command(one, asked, folder, sender))
    if one.action == "many":
        return many(one, asked, folder, sender)
    target = folder / one.name
    done = subprocess.run([*command(one, asked, folder, sender), "-o", str(target), "-w", WRITTEN],
                          capture_output=True, text=True, check=False)
    if done.returncode:
        return Told(error=f"exit code {done.returncode}: {done.stderr.strip()}")
    return told(done.stdout, b"" if one.verb() == "HEAD" else target.read_bytes())


def told(line, body):
    status, version, kind, length = line.rstrip("\n").split("\t")
    return Told(int(status), f"HTTP/{version}", kind, int(length or -1), body)


def in_pieces(one, asked):
    with subprocess.Popen([*asked, "-N", "-w", "%{stderr}" + WRITTEN], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE) as process:
        pieces = []
        while piece := process.stdout.read1(1 << 16):
            pieces.append(piece)
            if one.action == "leave":
                process.terminate()
                return Told(200, "HTTP/1.1", one.kind, 1, piece)
        line = process.stderr.read().decode()
    if process.returncode:
        return Told(error=f"exit code {process.returncode}: {line.strip()}")
    found = told(line, b"".join(pieces))
    found.number = len(pieces)
    return found


def many(one, url, folder, sender):
    """Sends 40 requests over one connection, then 40 over 8 parallel connections; counts different answers."""
    different, first = set(), None
    for label, options in (("turn", []), ("once", ["--parallel", "--parallel-max", "8"])):
        target = folder / f"{one.name}-{label}"
        target.mkdir()
        asked = command(one, [f"{url}?[1-40]"], folder, sender)
        done = subprocess.run([*asked, *options, "-o", f"{target}/#1", "-w", WRITTEN], capture_output=True, text=True,
                              check=False)
        if done.returncode:
            return Told(error=f"exit code {done.returncode}: {done.stderr.strip()[-200:]}")
        bodies = [path.read_bytes() for path in pathlib.Path(target).iterdir()]
        different |= set(bodies) if len(bodies) == 40 else {b"missing", *bodies}
        first = first or told(done.stdout.splitlines()[0], bodies[0])
    first.number = len(different)
    return first
