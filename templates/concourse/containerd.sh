#!/bin/sh
# Written by rocworker: starts the Concourse worker's containerd with a PATH on which rocworker's wrapper is the first
# runc (docs/concourse.md).
PATH={{ shim }}${PATH:+:$PATH}
export PATH
exec {{ containerd }} "$@"
