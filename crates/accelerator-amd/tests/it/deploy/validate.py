"""Validates deploy/tensorfusion strictly: an unknown field is a fault at every depth, where an API server would drop it. The
first argument is the folder of TensorFusion's schemas. Prints how many objects each file has."""

import copy
import json
import pathlib
import sys

import jsonschema
import kubernetes_validate
import yaml

SCHEMAS = pathlib.Path(sys.argv[1])
# Of the chart's values those that its schema lacks, and the files that no schema of TensorFusion's describes.
OWN = json.loads(pathlib.Path(__file__).with_name("schemas.json").read_text(encoding="utf-8"))


class Strict(yaml.SafeLoader):
    """Takes no key twice, of which a server takes the last."""

    def construct_mapping(self, node, deep=False):
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        if len(keys) != len(set(keys)):
            raise yaml.YAMLError(f"a key stands twice{node.start_mark}")
        return super().construct_mapping(node, deep)


def strict(schema, is_pruned):
    """Closes each object. An API server prunes what an object without properties has, too; Helm allows that."""
    for part in (*schema.get("properties", {}).values(), schema.get("items"), schema.get("additionalProperties")):
        if isinstance(part, dict):
            strict(part, is_pruned)
    is_object = schema.get("type") == "object" and not schema.get("x-kubernetes-preserve-unknown-fields")
    if is_object and (is_pruned or "properties" in schema):
        schema.setdefault("additionalProperties", False)
    return schema


def custom_resources():
    for file in sorted(SCHEMAS.glob("tensor-fusion.ai_*.yaml")):
        definition = yaml.safe_load(file.read_text(encoding="utf-8"))["spec"]
        (version,) = definition["versions"]
        schema = strict(version["schema"]["openAPIV3Schema"], True)
        kind = definition["names"]["kind"]
        schema["required"] = ["apiVersion", "kind", "metadata", "spec"]
        schema["properties"]["apiVersion"] = {"const": f"{definition['group']}/{version['name']}"}
        schema["properties"]["kind"] = {"const": kind}
        schema["properties"]["metadata"] = copy.deepcopy(OWN["metadata of an object"])
        yield kind, schema


def values():
    schema = json.loads((SCHEMAS / "values.schema.json").read_text(encoding="utf-8"))
    lacking = OWN["values"]
    if set(lacking) & set(schema["properties"]):
        sys.exit("values.schema.json has caught up: shorten schemas.json")
    schema["properties"] |= lacking
    return strict(schema, False)


CUSTOM = dict(custom_resources())
BY_NAME = {"values-amd.yaml": values(), "gpu-info.yaml": OWN["gpu-info"], "metadata.yaml": OWN["metadata"]}


def core(thing):
    """The first fault alone: more does not come out of kubernetes_validate."""
    try:
        kubernetes_validate.validate(thing, "1.37", strict=True)
    except jsonschema.ValidationError as fault:
        yield fault


def pod_templates(part):
    """TensorFusion's schemas leave a podTemplate open."""
    for key, value in part.items() if isinstance(part, dict) else enumerate(part if isinstance(part, list) else []):
        if key == "podTemplate":
            yield value
        else:
            yield from pod_templates(value)


def found(name, thing):
    schema = BY_NAME.get(name) or CUSTOM.get(thing["kind"])
    if not schema:
        yield from core(thing)
        return
    yield from jsonschema.Draft202012Validator(schema).iter_errors(thing)
    for template in pod_templates(thing):
        yield from core({"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "template"}} | template)


faults = []
for path in map(pathlib.Path, sys.argv[2:]):
    count = 0
    try:
        for thing in yaml.load_all(path.read_text(encoding="utf-8"), Loader=Strict):
            for fault in found(path.name, thing):
                faults.append(f"{path}: {'.'.join(map(str, fault.absolute_path))}: {fault.message}")
            count += 1
    except kubernetes_validate.SchemaNotFoundError as fault:
        faults.append(f"{path}: {fault.message}")
    except yaml.YAMLError as fault:
        faults.append(f"{path}: {fault}")
    print(count)
if faults:
    sys.exit("\n".join(faults))
