"""Validates files of Kubernetes' objects strictly, and prints how many each file has."""

import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

CUSTOM = json.loads(pathlib.Path(__file__).with_name("crds.json").read_text(encoding="utf-8"))


class Strict(yaml.SafeLoader):
    """Takes no key twice, of which a server takes the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"a key stands twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def custom(kind, spec):
    return {
        "type": "object",
        "additionalProperties": False,
        "required": ["apiVersion", "kind", "metadata", "spec"],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"const": kind},
            "metadata": {
                "type": "object",
                "additionalProperties": False,
                "required": ["name"],
                "properties": {
                    "name": {"type": "string"},
                    "namespace": {"type": "string"},
                    "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                },
            },
            "spec": spec,
        },
    }


def validate(thing):
    kind = thing["kind"]
    if kind in CUSTOM:
        jsonschema.validate(thing, custom(kind, CUSTOM[kind]["spec"]))
    else:
        kubernetes_validate.validate(thing, "1.37", strict=True)


faults = []
for name in sys.argv[1:]:
    count = 0
    with open(name, encoding="utf-8") as file:
        try:
            for thing in yaml.load_all(file, Loader=Strict):
                validate(thing)
                count += 1
        except jsonschema.ValidationError as fault:
            faults.append(f"{name}: {'.'.join(map(str, fault.absolute_path))}: {fault.message}")
        except kubernetes_validate.SchemaNotFoundError as fault:
            faults.append(f"{name}: {fault.message}")
        except yaml.YAMLError as fault:
            faults.append(f"{name}: {fault}")
    print(count)
if faults:
    sys.exit("\n".join(faults))
