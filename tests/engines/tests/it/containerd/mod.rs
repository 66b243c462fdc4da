//! Containers that containerd starts through the wrapper, and what rocworker finds of containerd.

mod canary;
mod containers;
mod effective;
mod fidelity;
mod inherited;
mod load;
mod published_cri;
mod real_boots;
mod real_cdi_names;
mod real_concourse;
mod real_configured;
mod real_own_containerd;
mod real_pods;
mod real_stopped;
