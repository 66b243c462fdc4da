//! The other machines that `--hosts GROUP` asks. Nothing but the command line reads it: it makes no drift.

use std::fmt::{self, Formatter};

use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Serialize, Serializer};

use super::Host;
use super::scalar::Word;
use super::{Error, Source, is_of_key, words};

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
#[serde(
    deny_unknown_fields,
    rename_all = "kebab-case",
    expecting = "keys with values, as `groups: {mi300: [gpu1, gpu2]}`"
)]
pub(super) struct InventoryDocument {
    user: Option<Word>,
    groups: Option<Groups>,
}

impl InventoryDocument {
    pub(super) fn check(self, source: &Source) -> Result<Inventory, Error> {
        let user = self.user.map(|Word(user)| user);
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
            if groups.iter().any(|group| group.name == name) {
                let problem = format!("{key} is defined twice: merge the two lists");
                return Err(source.wrong_at(source.second_group(&name), &key, problem));
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
            return Err(source.wrong_at(source.last_of(key, word), key, problem));
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

impl Source {
    fn second_group(&self, name: &str) -> usize {
        let of_groups = self.line_of("inventory.groups");
        let lines = (1..).zip(self.text.lines()).skip(of_groups - 1);
        // One line may name both groups.
        lines.filter(|(_, line)| is_of_key(line, name)).map(|(number, _)| number).nth(1).unwrap_or(of_groups)
    }

    fn line_of(&self, key: &str) -> usize {
        match self.wrong(key, None, "") {
            Error::Wrong { line, .. } => line.max(1),
            _ => 1,
        }
    }

    /// The last line of a list that has this word.
    fn last_of(&self, key: &str, word: &str) -> usize {
        let of_key = self.line_of(key);
        let lines = (1..).zip(self.text.lines()).skip(of_key - 1);
        // The list ends where the next key begins. An address of IPv6 has colons of its own.
        let has_key = |line: &str| line.contains(": ") || line.trim_end().ends_with(':');
        let of_list = lines.take_while(|(number, line)| *number == of_key || !has_key(line));
        let has_word = |line: &str| words(line).any(|it| it == word);
        of_list.filter(|(_, line)| has_word(line)).last().map_or(of_key, |(number, _)| number)
    }
}

#[derive(Debug, Default, Serialize)]
struct Hosts(Vec<String>);

impl<'de> Deserialize<'de> for Hosts {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(HostsVisitor)
    }
}

struct HostsVisitor;

impl<'de> Visitor<'de> for HostsVisitor {
    type Value = Hosts;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("a list of machines, as `[gpu1, root@gpu2]`")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Hosts, A::Error> {
        let mut hosts = Vec::new();
        while let Some(Word(host)) = list.next_element()? {
            hosts.push(host);
        }
        Ok(Hosts(hosts))
    }
}

/// Groups in the order of the file. A name that is there twice stays, so that it can be refused with its line.
#[derive(Debug, Default)]
struct Groups(Vec<(String, Vec<String>)>);

impl Serialize for Groups {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, hosts)| (name, hosts)))
    }
}

impl<'de> Deserialize<'de> for Groups {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(GroupsVisitor)
    }
}

struct GroupsVisitor;

impl<'de> Visitor<'de> for GroupsVisitor {
    type Value = Groups;

    fn expecting(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str("groups with lists of machines, as `mi300: [gpu1, root@gpu2]`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Groups, A::Error> {
        let mut groups = Vec::new();
        while let Some(Word(name)) = map.next_key()? {
            let hosts: Option<Hosts> = map.next_value()?;
            groups.push((name, hosts.unwrap_or_default().0));
        }
        Ok(Groups(groups))
    }
}
