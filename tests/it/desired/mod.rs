//! What each component should be: a pure function of the configuration and the machine.

mod concourse;
mod containerd;
mod crio;
mod docker;
mod host;
mod policy;
mod real_docker;
mod real_getent;
mod real_udev;
mod tags;
mod templates;
mod wanted;
