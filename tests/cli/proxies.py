"""Proxies with their configurations in docs/serving.md.

test_serve_proxies.py and tools/serve_languages.py start them between clients and a server.
"""

import grp
import os
import pathlib
import pwd
import re
import shutil
from dataclasses import dataclass

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs/serving.md"
LISTENS, SERVER = "127.0.0.1:8081", "127.0.0.1:8080"  # in the configurations of docs/serving.md

NGINX = """daemon off;
user {user} {group};
pid {folder}/pid;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/bodies;
  proxy_temp_path {folder}/answers;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
{block}
}}
"""


@dataclass(frozen=True)
class Proxy:
    """Language of the proxy's code block in docs/serving.md, and its command, before the name of the configuration.
    `listens` and `server` are the addresses in the block; `at_path`, `at_port` and `server_at` replace them."""

    language: str
    command: tuple
    listens: str = LISTENS
    at_path: str = "{path}"
    at_port: str = "127.0.0.1:{port}"
    server: str = SERVER
    server_at: str = "127.0.0.1:{port}"
    whole: str = "{block}"


PROXIES = {
    "nginx": Proxy("nginx", ("nginx", "-e", "stderr", "-p", "{folder}", "-c"), at_path="unix:{path}", whole=NGINX),
    "haproxy": Proxy("haproxy", ("haproxy", "-q", "-f")),
    "caddy": Proxy("caddy", ("caddy", "run", "--adapter", "caddyfile", "--config"),
                   "http://attend.example:8081 {\n  bind 127.0.0.1",
                   "http://attend.example:8081 {{\n  bind unix/{path}", "http://127.0.0.1:{port} {{\n  bind 127.0.0.1",
                   whole="{{\n  admin off\n}}\n{block}"),
    "envoy": Proxy("yaml", ("envoy", "--log-level", "error", "--use-dynamic-base-id", "-c"),
                   "{socket_address: {address: 127.0.0.1, port_value: 8081}}", "{{pipe: {{path: {path}}}}}",
                   "{{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}",
                   "port_value: 8080", "port_value: {port}"),
}


def executable(name):
    """Path of a proxy's program, or None."""
    return shutil.which(name, path=f"/usr/sbin:/usr/bin:/usr/local/bin:{os.environ.get('PATH', '')}")


def environment(folder):
    """Further environment variables, so that a proxy writes only below `folder`."""
    return {name: str(folder) for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME")}


def command(name, folder, server_port, path=None, port=None):
    """Writes the configuration; returns the command that listens at a Unix socket or a port."""
    proxy = PROXIES[name]
    block = re.search(rf"(?ms)^```{proxy.language}\n(.*?)^```$", PAGE.read_text(encoding="utf-8"))[1]
    if proxy.language == "yaml":
        assert "envoy" in block, "the first block of YAML is not Envoy's"
    listens = (proxy.at_path if path else proxy.at_port).format(path=path, port=port)
    for old, new in ((proxy.listens, listens), (proxy.server, proxy.server_at.format(port=server_port))):
        assert old in block, f"{name}: the page has no '{old}'"
        block = block.replace(old, new)
    file = pathlib.Path(folder) / f"{name}.{proxy.language}"
    file.write_text(proxy.whole.format(block=block, folder=folder, user=pwd.getpwuid(os.getuid())[0],
                                       group=grp.getgrgid(os.getgid())[0]), encoding="utf-8")
    started = executable(proxy.command[0])
    return [started, *(part.format(folder=folder) for part in proxy.command[1:]), str(file)]
