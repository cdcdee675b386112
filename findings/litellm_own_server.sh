#!/usr/bin/env bash
# LiteLLM asks a server of text-embeddings-inference for vectors if the model is huggingface/NAME and api_base is the
# server's address. One would guess that it talks to this server only. It first asks another host, the Hub's, which task
# the model NAME has, and sends the texts afterwards. So a computer without a way to that host gets no vectors from the
# server on the computer itself. input_type="feature-extraction", a setting for the meaning of texts at other providers,
# is here the answer to that question: with it, the request reaches the server. LiteLLM still asks the other host
# afterwards, how many tokens NAME reads, to compute a price, and passes over its absence.
. "$(dirname "${BASH_SOURCE[0]}")/setup.bash"
environment python litellm==1.110.2
LITELLM_LOCAL_MODEL_COST_MAP=True python/bin/python - <<'PY'
import http.server
import json
import socket
import threading

import litellm

litellm.suppress_debug_info = True
look_up = socket.getaddrinfo
other_hosts, requests = [], []


def look_up_own_addresses(host, *rest, **named):
    if host == "127.0.0.1":
        return look_up(host, *rest, **named)
    other_hosts.append(host)
    raise socket.gaierror(socket.EAI_NONAME, "only this computer can be reached")


class Server(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        requests.append(json.loads(self.rfile.read(int(self.headers["content-length"]))))
        body = b"[[0.1, 0.2]]"
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


socket.getaddrinfo = look_up_own_addresses
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
threading.Thread(target=server.serve_forever, daemon=True).start()


def ask(**named):
    other_hosts.clear()
    requests.clear()
    try:
        litellm.embedding(model="huggingface/me/mine", input=["a"], api_key="k", max_retries=0,
                          api_base=f"http://127.0.0.1:{server.server_port}", **named)
        raised = None
    except litellm.APIConnectionError as error:
        raised = type(error).__name__
    print(f"{named or 'as usual'}: {raised or 'vectors'}; the server got {requests}, "
          f"other hosts asked: {len(set(other_hosts))}")
    return raised, list(requests), len(set(other_hosts))


assert ask() == ("APIConnectionError", [], 1)
assert ask(input_type="feature-extraction") == (None, [{"inputs": ["a"]}], 1)
PY
