//! What should be so of the machine itself before containers come into it: who may open AMD's nodes, and the kernel
//! module that makes them.
//!
//! A machine with udev and a kernel of its own gets rules and module files. A container has neither: there the nodes
//! that were passed in are set themselves.

mod check;
mod machine;
mod nodes;

use config::{Component, Config, Permissions};
use host::facts::Facts;
use host::groups::Groups;
use inventory::Around;
use minijinja::Value;
use reconcile::Desired;
use render::{Error, Templates};

/// The group that owns render nodes, by systemd's own rules (50-udev-default.rules) too.
pub const GROUP: &str = "render";

/// The subject of this room's notes.
const ABOUT: &str = "host";

/// The desired state of the first stage. It does not depend on which GPUs the configuration lists, since groups and
/// modules are the machine's. Some machines have no group `render`. `has_boot_unit`: whether rocworker's boot unit sets
/// a container's nodes at each start.
///
/// # Errors
/// When a template gives something that udev, modprobe or systemd-tmpfiles would not take.
pub fn actions(
    config: &Config,
    facts: &Facts,
    templates: &Templates,
    groups: &Groups,
    has_boot_unit: bool,
) -> Result<Desired, Error> {
    if !config.gpus.is_on() || !facts.has_amd() {
        return Ok(Desired::default());
    }
    let part = match &facts.inventory.virtualization {
        Some(Around::Container(name)) => {
            nodes::actions(config, facts, templates, groups, name, has_boot_unit)?
        }
        Some(Around::VirtualMachine(_)) | None => machine::actions(config, facts, templates, groups)?,
    };
    Ok(part.of(Component::Host))
}

/// What a template gives, where its reader's grammar takes it.
fn rendered(
    templates: &Templates,
    name: &'static str,
    context: Value,
    check: fn(&str) -> Result<(), String>,
) -> Result<String, Error> {
    let text = templates.render(name, context)?;
    check(&text).map_err(|problem| templates.unfit(name, problem))?;
    Ok(text)
}

/// Whether the group that is to open the nodes is not there: a name that nothing resolves is an error to its reader.
fn lacks_group(config: &Config, render_gid: Option<u32>) -> bool {
    config.permissions == Permissions::Render && render_gid.is_none()
}
