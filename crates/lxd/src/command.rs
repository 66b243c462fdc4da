//! The commands that pass a device into a container and remove it, as doctor, the charm and `lxd advise` print them.

use std::fmt;
use std::path::Path;

use inventory::PciAddress;

/// Stands in commands for a container's unknown name.
pub const PLACEHOLDER: &str = "CONTAINER";

/// Stands in commands for the unknown number of the group `render` in the container: LXD and Incus refuse the word, so
/// that they pass nothing with a wrong group.
const UNKNOWN_GID: &str = "GID-OF-RENDER-IN-THE-CONTAINER";

/// The mode that goes with the group: only its members read and write.
const MODE: &str = "mode=0660";

/// The client program that takes the commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Client {
    Lxc,
    Incus,
}

impl Client {
    /// What the program is called.
    #[must_use]
    pub fn program(self) -> &'static str {
        match self {
            Self::Lxc => "lxc",
            Self::Incus => "incus",
        }
    }

    /// The client of a container's host; `around` is a word of [`inventory::Around`].
    #[must_use]
    pub fn of_container(around: &str) -> Option<Self> {
        match around {
            "lxd" => Some(Self::Lxc),
            "incus" => Some(Self::Incus),
            _ => None,
        }
    }
}

/// A command as a program takes it.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(transparent)]
pub struct Command(Vec<String>);

/// Prints the command as it is typed. No word needs quotes in a shell (see [`is_name`]; the paths are of /dev).
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join(" "))
    }
}

/// Commands for one container.
#[derive(Debug, Clone, Copy)]
pub struct Container<'a> {
    pub client: Client,
    pub name: &'a str,
    /// The number of the group `render` in the container.
    pub gid: Option<u32>,
}

impl Container<'_> {
    /// A card with its card and render node. By its PCI address: `id` is the number of its card node, which another
    /// boot gives to another card.
    #[must_use]
    pub fn add_gpu(&self, device: &str, pci: PciAddress) -> Command {
        self.add(device, &["gpu", &format!("pci={pci}"), &self.gid(), MODE])
    }

    /// Passes a node by its path, as a device with the node's name: /dev/kfd, which no `gpu` device passes.
    #[must_use]
    pub fn add_node(&self, path: &Path) -> Command {
        let shown = path.display();
        let device = path.file_name().unwrap_or(path.as_os_str()).to_string_lossy();
        let (source, path) = (format!("source={shown}"), format!("path={shown}"));
        self.add(&device, &["unix-char", &source, &path, &self.gid(), MODE])
    }

    /// Every card of AMD's by the CDI spec that LXD's own copy of AMD's toolkit makes.
    #[must_use]
    pub fn add_by_cdi(&self, device: &str) -> Command {
        self.add(device, &["gpu", "gputype=physical", "id=amd.com/gpu=all"])
    }

    /// Group and mode of a device that is passed in already.
    #[must_use]
    pub fn set_rights(&self, device: &str) -> Command {
        self.command(&["set", self.name, device, &self.gid(), MODE])
    }

    #[must_use]
    pub fn remove(&self, device: &str) -> Command {
        self.command(&["remove", self.name, device])
    }

    fn add(&self, device: &str, rest: &[&str]) -> Command {
        self.command(&[&["add", self.name, device], rest].concat())
    }

    fn command(&self, rest: &[&str]) -> Command {
        let words = [&[self.client.program(), "config", "device"], rest].concat();
        Command(words.into_iter().map(str::to_owned).collect())
    }

    fn gid(&self) -> String {
        self.gid.map_or_else(|| format!("gid={UNKNOWN_GID}"), |gid| format!("gid={gid}"))
    }
}

/// Whether this can be an instance, with or without the remote in front that LXD and Incus write with a colon: letters,
/// digits and dashes (LXD's instances are named as hosts are).
#[must_use]
pub fn is_name(text: &str) -> bool {
    let is_label = |text: &str, more: &[u8]| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || more.contains(&byte);
        (1..=63).contains(&text.len()) && text.bytes().all(plain) && !text.starts_with('-')
    };
    match text.split_once(':') {
        Some((remote, name)) => is_label(remote, b"-_.") && is_label(name, b"-"),
        None => is_label(text, b"-"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_command_is_as_lxd_and_incus_take_it() {
        let of = |client, gid| Container { client, name: "c1", gid };
        let lxc = of(Client::Lxc, Some(992));
        let pci = "03:00.0".parse().unwrap();
        for (command, expected) in [
            (
                lxc.add_gpu("gpu0", pci),
                "lxc config device add c1 gpu0 gpu pci=0000:03:00.0 gid=992 mode=0660",
            ),
            (
                lxc.add_node(Path::new("/dev/kfd")),
                "lxc config device add c1 kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660",
            ),
            (lxc.add_by_cdi("amd"), "lxc config device add c1 amd gpu gputype=physical id=amd.com/gpu=all"),
            (lxc.set_rights("kfd"), "lxc config device set c1 kfd gid=992 mode=0660"),
            (of(Client::Incus, None).remove("kfd"), "incus config device remove c1 kfd"),
            (
                of(Client::Incus, None).set_rights("kfd"),
                "incus config device set c1 kfd gid=GID-OF-RENDER-IN-THE-CONTAINER mode=0660",
            ),
        ] {
            assert_eq!(command.to_string(), expected);
        }
    }

    #[test]
    fn names_are_those_that_an_instance_can_have() {
        for name in ["c", "juju-3f2a81-0", "remote:c1", "my_remote.lan:c1"] {
            assert!(is_name(name), "{name}");
        }
        for name in ["", "-c", "--force", "c 1", "c;id", "c/../d", "$(id)", "a:b:c", "remote:", ":c", "ä"] {
            assert!(!is_name(name), "{name}");
        }
        assert!(!is_name(&"c".repeat(64)));
    }
}
