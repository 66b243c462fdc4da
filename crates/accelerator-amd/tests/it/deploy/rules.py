"""Evaluates a device mount rule as TensorFusion's hypervisor does. Reads [rule, device nodes] as JSON from stdin, and prints
the list of nodes that the rule keeps."""

import json
import sys

from cel_expr_python import cel

text, nodes = json.load(sys.stdin)
words = cel.Type.Map(cel.Type.STRING, cel.Type.STRING)
env = cel.NewEnv(
    variables={
        "device": words,
        "vendor": cel.Type.STRING,
        "model": cel.Type.STRING,
        "partitioned": cel.Type.BOOL,
        "env": words,
    }
)
rule = env.compile(text)


def kept(node):
    device = {"hostPath": node, "guestPath": node}
    data = {"device": device, "vendor": "AMD", "model": "AMD Instinct MI300X", "partitioned": False, "env": {}}
    result = rule.eval(data=data)
    if result.type() != cel.Type.BOOL:
        sys.exit(f"{text}: {result.value()}")
    return result.value()


print(json.dumps([node for node in nodes if kept(node)]))
