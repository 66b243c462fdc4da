#!/bin/sh
# Installs ROCm from one of TheRock's archives into /opt/rocm-VERSION, with the link /opt/rocm: on a machine or in an image
# that is being built, without systemd and without a GPU. docs/packages.md describes it.
#
#   install_rocm_tarball.sh VERSION AMDGPU_FAMILY [RELEASE_TYPE]
#   install_rocm_tarball.sh 7.10.0 gfx94X-dcgpu stable
#   install_rocm_tarball.sh --root /srv/image 7.10.0 gfx94X-dcgpu stable
#
#   ROCM_SHA256        the archive's SHA-256; without it the archive is trusted for its https server alone
#   ROCM_TARBALL_URL   the archives' folder, where it is not AMD's
#   ROCWORKER          the program, where PATH does not have it
set -eu

program=${ROCWORKER:-rocworker}
if ! command -v "$program" >/dev/null 2>&1; then
    echo "install_rocm_tarball.sh: $program is not there: copy rocworker into the image first, or name it in ROCWORKER" >&2
    exit 1
fi
exec "$program" therock ${ROCM_SHA256:+"--sha256=$ROCM_SHA256"} ${ROCM_TARBALL_URL:+"--url=$ROCM_TARBALL_URL"} "$@"
