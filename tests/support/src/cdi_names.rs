//! CDI specs beside rocworker's on the demo's machine, and which device an engine takes by a name. Tests of real engines hold
//! the engines against this table, and rocworker against both.

/// The device that a request gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Takes {
    /// The device of rocworker's /etc/cdi/amd.json.
    Rocworkers,
    /// The device of the other spec: [`NODE`] alone.
    Others,
    /// No device: the container does not start.
    Nothing,
}

/// The render node of the demo's GPU 1, which each of these specs has in its only device, with its number in hexadecimal.
pub const NODE: &str = "/dev/dri/renderD130 e2:82";

/// rocworker's reaction to the other spec.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Says {
    Nothing,
    /// rocworker writes no spec, for engines would then resolve a name no more.
    Refuses,
    /// rocworker writes its spec, and names the other one.
    Warns,
}

/// The other spec's path and version, its device's name as it is written there, the requested name, and the
/// two results.
pub type Beside = (&'static str, &'static str, &'static str, &'static str, Takes, Says);

pub const BESIDE: [Beside; 10] = [
    ("etc/cdi/amd.yaml", "0.5.0", "\"0\"", "0", Takes::Nothing, Says::Refuses),
    // Spellings that people use.
    ("etc/cdi/zz.yaml", "0.5.0", "0", "0", Takes::Nothing, Says::Refuses),
    ("etc/cdi/.amd.yaml", "0.5.0", "all", "all", Takes::Nothing, Says::Refuses),
    ("etc/cdi/amd.yaml", "0.5.0", "\"1\"", "0", Takes::Rocworkers, Says::Refuses),
    ("etc/cdi/amd.yaml", "0.5.0", "mine", "mine", Takes::Others, Says::Nothing),
    ("etc/cdi/amd.yaml", "0.5.0", "mine", "0", Takes::Rocworkers, Says::Nothing),
    ("run/cdi/amd.yaml", "0.5.0", "\"0\"", "0", Takes::Others, Says::Warns),
    ("etc/cdi/amd.yml", "0.5.0", "\"0\"", "0", Takes::Rocworkers, Says::Nothing),
    // Engines leave a spec out that breaks the rules: a key that CDI does not know, a name that is there twice.
    ("etc/cdi/amd.yaml", "0.5.0", "\"0\"\n  mine: 1", "0", Takes::Rocworkers, Says::Nothing),
    ("etc/cdi/amd.yaml", "0.5.0", TWICE, "0", Takes::Rocworkers, Says::Nothing),
];

/// A device and the name of a second one.
const TWICE: &str = "\"0\"\n  containerEdits: {env: [A=b]}\n- name: \"0\"";

/// A name that begins with a digit needs 0.5.0. Newer engines leave the whole spec out, and podman 4.3 does not.
pub fn of_a_version_that_is_too_low(takes: Takes) -> Beside {
    ("etc/cdi/amd.yaml", "0.3.0", "\"0\"", "0", takes, Says::Refuses)
}

/// A spec of one device.
pub fn spec(version: &str, name: &str) -> String {
    format!(
        "cdiVersion: {version}\nkind: amd.com/gpu\ndevices:\n- name: {name}\n  containerEdits:\n    deviceNodes:\n    \
         - path: /dev/dri/renderD130\n"
    )
}
