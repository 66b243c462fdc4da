//! The other machines that `--hosts GROUP` asks. Nothing but the command line reads it: it makes no drift.

use std::fmt::{self, Formatter};

use serde::de::{Deserializer, MapAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::Host;
use super::{Error, Source};

/// Machines by group, in the order of the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Inventory {
    /// The user as whom ssh logs in on a host that names none.
    pub user: Option<String>,
    pub groups: Vec<Group>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// The group's hosts as the configuration writes them, without [`Inventory::user`]: at least one, and each once.
    pub hosts: Vec<Host>,
}

impl Inventory {
    /// Adds the inventory's user to a host without one.
    #[must_use]
    pub fn with_user(&self, host: Host) -> Host {
        Host { user: host.user.or_else(|| self.user.clone()), ..host }
    }

    /// # Errors
    /// Names the groups that there are.
    pub fn group(&self, name: &str) -> Result<&Group, String> {
        self.groups.iter().find(|group| group.name == name).ok_or_else(|| {
            let groups: Vec<&str> = self.groups.iter().map(|group| group.name.as_str()).collect();
            match &*groups {
                [] => format!(
                    "no group {name:?}: the configuration defines no groups; write inventory: {{groups: {{{}: [gpu1, \
                     gpu2]}}}} into config.yaml",
                    if is_word(name) { name } else { "mi300" }
                ),
                groups => format!("no group {name:?}: the groups are {}", groups.join(", ")),
            }
        })
    }
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InventoryDocument {
    user: Option<String>,
    groups: Option<Groups>,
}

impl InventoryDocument {
    pub(super) fn check(self, source: &Source) -> Result<Inventory, Error> {
        let user = self.user;
        if let Some(user) = &user {
            let fits = format!("{user}@name").parse::<Host>().map(drop);
            let fits = fits.map_err(|_| format!("{user:?} is not a user name: write one such as ops"));
            source.check("inventory.user", user, fits)?;
        }
        let mut groups: Vec<Group> = Vec::new();
        for (name, hosts) in self.groups.unwrap_or_default().0 {
            let key = format!("inventory.groups.{name}");
            if !is_word(&name) {
                let problem =
                    format!("{name:?} is not a group name: use letters, digits and ._-, for example mi300");
                return Err(source.wrong("inventory.groups", Some(&name), problem));
            }
            let hosts = checked(&key, &hosts, source)?;
            groups.push(Group { name, hosts });
        }
        Ok(Inventory { user, groups })
    }
}

fn checked(key: &str, written: &[String], source: &Source) -> Result<Vec<Host>, Error> {
    if written.is_empty() {
        let problem =
            format!("{key} lists no machines: write a list such as [gpu1, root@gpu2], or remove the group");
        return Err(source.wrong(key, None, problem));
    }
    let mut hosts: Vec<Host> = Vec::new();
    for word in written {
        let host: Host = source.check(key, word, word.parse())?;
        if hosts.iter().any(|known| known.name == host.name) {
            let problem = format!("{key} lists {} twice: remove one", host.name);
            return Err(source.wrong(key, Some(word), problem));
        }
        hosts.push(host);
    }
    Ok(hosts)
}

/// Whether a shell passes the name to `--hosts` without quotes, and no program takes it for an option.
fn is_word(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    !name.is_empty() && !name.starts_with('-') && name.chars().all(fits)
}

/// Groups in the order of the file.
#[derive(Debug, Default)]
struct Groups(Vec<(String, Vec<String>)>);

impl Serialize for Groups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, hosts)| (name, hosts)))
    }
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GroupsVisitor)
    }
}

struct GroupsVisitor;

impl<'de> Visitor<'de> for GroupsVisitor {
    type Value = Groups;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("groups with lists of machines, as {mi300: [gpu1, root@gpu2]}")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Groups, A::Error> {
        let mut groups = Vec::new();
        while let Some((name, hosts)) = map.next_entry::<_, Option<_>>()? {
            groups.push((name, hosts.unwrap_or_default()));
        }
        Ok(Groups(groups))
    }
}
