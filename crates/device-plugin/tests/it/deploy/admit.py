"""Judges updates of nodes by a ValidatingAdmissionPolicy, as the API server does: the update counts only if each
condition holds, and a fault in an expression refuses it (failurePolicy: Fail). Reads the updates from stdin, and prints
for each "not matched", or the list of what refuses it."""

import json
import re
import sys

import yaml
from cel_expr_python import cel
from cel_expr_python.ext.ext_strings import ExtStrings

with open(sys.argv[1], encoding="utf-8") as file:
    spec = next(yaml.safe_load_all(file))["spec"]
if spec["failurePolicy"] != "Fail":
    sys.exit("another failurePolicy than Fail")
env = cel.NewEnv(
    variables={name: cel.Type.DYN for name in ("object", "oldObject", "request")}, extensions=[ExtStrings()]
)


def inlined(expression):
    """The server computes a variable where it is used, and those that follow it cannot use it earlier."""
    for variable in reversed(spec["variables"]):
        expression = re.sub(rf"variables\.{variable['name']}\b", lambda _: f"({variable['expression']})", expression)
    return expression


def compiled(part, key="expression"):
    return env.compile(inlined(part[key])) if key in part else None


conditions = [compiled(condition) for condition in spec["matchConditions"]]
validations = [
    (compiled(validation), compiled(validation, "messageExpression"), validation["message"])
    for validation in spec["validations"]
]


def refusals(update):
    for expression, long, short in validations:
        result = expression.eval(data=update)
        if result.type() == cel.Type.ERROR:
            yield f"fault: {result.value()}"
        elif result.value() is not True:
            yield long.eval(data=update).value() if long else short


def judged(update):
    if not all(condition.eval(data=update).value() is True for condition in conditions):
        return "not matched"
    return list(refusals(update))


print(json.dumps([judged(update) for update in json.load(sys.stdin)]))
