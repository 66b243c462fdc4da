//! podman, which finds the GPUs by CDI: rocworker configures nothing of it.

mod canary;

use super::Engine;

pub(super) const ENGINE: Engine = Engine {
    name: "podman",
    program: Some("podman"),
    // containers.conf(5)
    names_programs_in: Some((
        &["/etc/containers/containers.conf", "/usr/share/containers/containers.conf"],
        &["/etc/containers/containers.conf.d"],
    )),
    canary: canary::check,
    ..Engine::UNCONFIGURED
};
