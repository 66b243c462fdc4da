"""Holds a bill of materials against CycloneDX' schema, and its references against what they name."""

import gzip
import json
import sys

import jsonschema

folder, document = sys.argv[1:]


def schema(name):
    with gzip.open(f"{folder}/{name}.schema.json.gz") as file:
        return json.load(file)


bom = schema("bom-1.5")
# As the references of cyclonedx-python-lib's copy have it.
here = "http://cyclonedx.org/schema"
store = {f"{here}/{name}.SNAPSHOT.schema.json": schema(name) for name in ["spdx", "jsf-0.82"]}
with open(document) as file:
    instance = json.load(file)
resolver = jsonschema.RefResolver(bom["$id"], bom, store=store)
jsonschema.Draft7Validator.check_schema(bom)
errors = list(jsonschema.Draft7Validator(bom, resolver=resolver).iter_errors(instance))
for error in errors:
    print(f"{error.json_path}: {error.message}")
named = {it["bom-ref"] for it in instance["components"] + instance["metadata"]["component"]["components"]}
for needs in instance["dependencies"]:
    for ref in [needs["ref"], *needs["dependsOn"]]:
        if ref not in named:
            print(f"{ref} is named and not there")
            errors.append(ref)
sys.exit(bool(errors))
