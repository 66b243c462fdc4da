"""An API server that knows one node and one verb: PATCH by JSON merge patch (RFC 7396), over TLS, with a token.

Arguments: certificate, key, token, file with the node's labels as JSON, file that gets each request as a line.
Prints its port."""

import http.server
import json
import ssl
import sys

certificate, key, token, state, log = sys.argv[1:]


class Server(http.server.BaseHTTPRequestHandler):
    def do_PATCH(self):
        body = self.rfile.read(int(self.headers["Content-Length"])).decode()
        with open(log, "a") as out:
            out.write(json.dumps([self.path, self.headers["Content-Type"], json.loads(body)]) + "\n")
        with open(state) as file:
            labels = json.load(file)
        if self.headers["Authorization"] != "Bearer " + token:
            return self.answer(401, {"kind": "Status", "message": "Unauthorized"})
        if labels is None:
            return self.answer(403, {"kind": "Status", "message": 'nodes "gpu-1" is forbidden: not admitted'})
        patch = json.loads(body)["metadata"]["labels"]
        labels = {name: value for name, value in {**labels, **patch}.items() if value is not None}
        with open(state, "w") as file:
            json.dump(labels, file)
        self.answer(200, {"kind": "Node", "metadata": {"name": "gpu-1", "labels": labels}})

    def answer(self, status, body):
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(certificate, key)
server.socket = context.wrap_socket(server.socket, server_side=True)
print(server.server_port, flush=True)
server.serve_forever()
