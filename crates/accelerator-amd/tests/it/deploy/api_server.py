"""As much of an API server as kubectl needs for deploy/tensorfusion/test-amd-cluster.sh, with a GreptimeDB behind its proxy.
Holds the objects of the JSON file in its first argument by their paths, prints its port, and takes what kubectl posts and
patches. A pod that is posted is placed by TensorFusion's scheduler at once, and computes."""

import http.server
import json
import pathlib
import sys
import urllib.parse

objects = json.loads(pathlib.Path(sys.argv[1]).read_text(encoding="utf-8"))
rows = 0

KINDS = {
    "/api/v1": [("nodes", "Node", False), ("pods", "Pod", True), ("events", "Event", True)],
    "/apis/tensor-fusion.ai/v1": [
        ("gpupools", "GPUPool", False),
        ("gpus", "GPU", False),
        ("providerconfigs", "ProviderConfig", False),
        ("tensorfusionclusters", "TensorFusionCluster", False),
    ],
}


def patch_of(version, kind):
    """By this kubectl learns that the server judges fields, and leaves it to it."""
    group = version.rpartition("/")[0]
    return {
        "patch": {
            "parameters": [{"name": "fieldValidation", "in": "query"}],
            "x-kubernetes-group-version-kind": {"group": group, "version": "v1", "kind": kind},
        }
    }


def discovery(path):
    if path == "/openapi/v3":
        return {"paths": {place[1:]: {"serverRelativeURL": f"/openapi/v3{place}"} for place in KINDS}}
    if path.startswith("/openapi/v3/"):
        place = path.removeprefix("/openapi/v3")
        version = place.removeprefix("/apis/").removeprefix("/api/")
        paths = {f"{place}/{name}/{{name}}": patch_of(version, kind) for name, kind, _ in KINDS[place]}
        return {"openapi": "3.0.0", "info": {"title": "Kubernetes", "version": "v1"}, "paths": paths}
    if path == "/api":
        return {"kind": "APIVersions", "versions": ["v1"]}
    if path == "/apis":
        version = {"groupVersion": "tensor-fusion.ai/v1", "version": "v1"}
        group = {"name": "tensor-fusion.ai", "versions": [version], "preferredVersion": version}
        return {"kind": "APIGroupList", "apiVersion": "v1", "groups": [group]}
    if path in KINDS:
        verbs = ["get", "list", "create", "patch", "delete"]
        resources = [
            {"name": name, "singularName": kind.lower(), "kind": kind, "namespaced": is_inside, "verbs": verbs}
            for name, kind, is_inside in KINDS[path]
        ]
        group = path.removeprefix("/apis/").removeprefix("/api/")
        return {"kind": "APIResourceList", "groupVersion": group, "resources": resources}
    return None


def listed(path):
    """The objects beneath a collection, as `/api/v1/namespaces/x/pods`."""
    names = {name for kinds in KINDS.values() for name, _, _ in kinds}
    if path.rsplit("/", 1)[-1] in names:
        items = [thing for place, thing in objects.items() if place.rsplit("/", 1)[0] == path]
        return {"kind": "List", "apiVersion": "v1", "metadata": {}, "items": items}
    return None


def merged(into, patch):
    for key, value in patch.items():
        if isinstance(value, dict):
            into[key] = merged(into.get(key) or {}, value)
        elif value is None:
            into.pop(key, None)
        else:
            into[key] = value
    return into


def sql(query):
    global rows
    table = query.split(" FROM ")[1].split(" ")[0]
    if table not in ("tf_gpu_usage", "tf_worker_usage", "tf_node_metrics"):
        return None
    rows += 1
    return {"output": [{"records": {"rows": [[rows]], "total_rows": 1}}], "execution_time_ms": 1}


class Handler(http.server.BaseHTTPRequestHandler):
    def log_message(self, format, *arguments):
        pass

    def answer(self, body, status=200):
        if body is None:
            body, status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}, 404
        data = body.encode() if isinstance(body, str) else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/plain" if isinstance(body, str) else "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def body(self):
        return json.loads(self.rfile.read(int(self.headers["Content-Length"])))

    def do_GET(self):
        url = urllib.parse.urlsplit(self.path)
        query = urllib.parse.parse_qs(url.query)
        if "/proxy/" in url.path:
            self.answer(sql(query["sql"][0]) if "sql" in query else {})
        elif url.path.endswith("/log"):
            self.answer("AMD Instinct MI300X 1024.0\n")
        else:
            self.answer(discovery(url.path) or listed(url.path) or objects.get(url.path))

    def do_POST(self):
        thing = self.body()
        place = f"{urllib.parse.urlsplit(self.path).path}/{thing['metadata']['name']}"
        if thing["kind"] == "Pod":
            gpu = next(thing for path, thing in objects.items() if "/gpus/" in path)
            thing["metadata"]["annotations"]["tensor-fusion.ai/gpu-ids"] = gpu["metadata"]["name"]
            thing["status"] = {"phase": "Running"}
            gpu["status"]["available"]["vram"] = "180208Mi"
        objects[place] = thing
        self.answer(thing, 201)

    def do_PATCH(self):
        self.answer(merged(objects[urllib.parse.urlsplit(self.path).path], self.body()))

    def do_DELETE(self):
        gone = objects.pop(urllib.parse.urlsplit(self.path).path, None)
        self.answer(gone and {"kind": "Status", "apiVersion": "v1", "status": "Success"})


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_port, flush=True)
server.serve_forever()
