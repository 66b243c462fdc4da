//! Containers that dockerd starts through the wrapper or by CDI.

mod canary_dockerd;
mod canary_several;
mod real_build;
mod real_docker_applied;
mod real_docker_default;
mod real_docker_holders;
mod real_dockerd;
mod real_users;
