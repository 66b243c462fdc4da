#!/usr/bin/python3 -IS
"""Stands in for Juju's hook tools, by the name that it is called by.

It takes what Juju's own tools take (juju, cmd/jujuc and docs/user/reference/hook-commands) and refuses everything else,
as they do, with exit code 2. What it is told is kept as one JSON array a line in pending; whoever runs the hook makes it
count when the hook ends with 0 (Juju flushes a context then), and drops it otherwise.
"""

import json
import os
import re
import sys

HOME = os.environ["STAND_IN"]
STATUSES = {"active", "blocked", "maintenance", "waiting"}
LEVELS = {"TRACE", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"}
# names.IsValidAction's keys, and what Juju keeps for itself.
KEY = re.compile(r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*$")
RESERVED = {"stdout", "stdout-encoding", "stderr", "stderr-encoding", "return-code"}

# Flags, each with whether it takes a value, and how many words may follow.
GRAMMAR = {
    "config-get": ({"--all": False, "-a": False, "--format": True, "-o": True, "--output": True}, 0, 1),
    "action-get": ({"--format": True, "-o": True, "--output": True}, 0, 1),
    "action-set": ({}, 1, None),
    "action-fail": ({}, 0, 1),
    "status-set": ({"--application": False}, 1, 2),
    "juju-log": ({"--debug": False, "-l": True, "--log-level": True, "--format": True}, 1, None),
    "application-version-set": ({}, 1, 1),
    "open-port": ({"--endpoints": True, "--format": True}, 1, 1),
    "close-port": ({"--endpoints": True, "--format": True}, 1, 1),
}


def refuse(why):
    sys.stderr.write(f"ERROR {why}\n")
    sys.exit(2)


def parsed(name, words):
    flags, least, most = GRAMMAR[name]
    said, rest = {}, []
    words = list(words)
    while words:
        word = words.pop(0)
        if word == "--":
            rest += words
            break
        if not word.startswith("-") or word == "-":
            # gnuflag: flags may stand behind words too.
            rest.append(word)
            continue
        flag, _, value = word.partition("=")
        if flag not in flags:
            refuse(f"option provided but not defined: {flag}")
        if flags[flag] and "=" not in word:
            if not words:
                refuse(f"option needs an argument: {flag}")
            value = words.pop(0)
        said[flag] = value
    if len(rest) < least or (most is not None and len(rest) > most):
        refuse(f"{name}: {len(rest)} arguments")
    return said, rest


def check(name, said, rest):
    is_action = "JUJU_ACTION_NAME" in os.environ
    if name.startswith("action-") and not is_action:
        refuse("not running an action")
    if name == "status-set" and rest[0] not in STATUSES:
        refuse(f"invalid status {rest[0]!r}")
    if name == "juju-log":
        level = said.get("--log-level", said.get("-l", "INFO"))
        if level not in LEVELS:
            refuse(f"log level value {level!r} is not one of TRACE, DEBUG, INFO, WARNING, ERROR")
    if name in ("config-get", "action-get") and said.get("--format", "smart") not in ("json", "yaml", "smart"):
        refuse("unknown format")
    if name in ("open-port", "close-port") and not re.fullmatch(r"[1-9][0-9]{0,4}/(tcp|udp)", rest[0]):
        refuse(f"invalid port {rest[0]!r}")
    if name == "action-set":
        for word in rest:
            key, equals, _ = word.partition("=")
            if not equals:
                refuse(f"argument {word!r} must be of the form key...=value")
            if not KEY.match(key):
                refuse(f"key {key!r} must start and end with lowercase alphanumeric, and contain only lowercase "
                       "alphanumeric and hyphens")
            if key in RESERVED:
                refuse(f"cannot set reserved action key {key!r}")


def main():
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    if "JUJU_CONTEXT_ID" not in os.environ or "JUJU_AGENT_SOCKET_ADDRESS" not in os.environ:
        refuse("JUJU_CONTEXT_ID not set")
    said, rest = parsed(name, words)
    check(name, said, rest)
    with open(os.path.join(HOME, "pending"), "a", encoding="utf-8") as pending:
        pending.write(json.dumps([name, *words], ensure_ascii=False) + "\n")
    if name in ("config-get", "action-get"):
        if said.get("--format") != "json" or rest:
            refuse("this stand-in answers --format=json of everything only")
        answer = "config.json" if name == "config-get" else "params.json"
        with open(os.path.join(HOME, answer), encoding="utf-8") as text:
            sys.stdout.write(text.read())


main()
