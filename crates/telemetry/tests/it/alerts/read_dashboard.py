"""Reads a dashboard with Grafana's own types, and fails where they would lose a part of it."""

import json
import sys

from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard


def lost(written, read, place):
    if isinstance(written, dict) and isinstance(read, dict):
        return [one for key, value in written.items()
                for one in (lost(value, read[key], f"{place}.{key}") if key in read else [f"{place}.{key}"])]
    if isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        return [one for number, (left, right) in enumerate(zip(written, read))
                for one in lost(left, right, f"{place}[{number}]")]
    return [] if written == read else [f"{place}: {written!r} became {read!r}"]


register_default_plugins()
with open(sys.argv[1], encoding="utf-8") as file:
    dashboard = json.load(file)
read = json.loads(json.dumps(Dashboard.from_json(dashboard), cls=JSONEncoder))
found = lost(dashboard, read, "dashboard")
if found:
    sys.exit("Grafana knows no such part: " + "; ".join(found))
print(len(read["panels"]), "panels")
