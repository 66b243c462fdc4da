//! The groups of a machine and their names, from its files and from its name services.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reconcile::command::{self, Programs};
use root::Root;
use serde::Deserialize;

const FILE: &str = "/etc/group";

/// File that nsswitch.conf(5)'s service `altfiles` reads: the groups of an image, such as Fedora's ostree systems have.
pub const ALTFILES: &str = "/usr/lib/group";

/// Folders in which nsswitch.conf(5)'s service `systemd` finds records that a file holds (nss-systemd(8), userdbd's
/// drop-ins).
const USERDB: [&str; 4] = ["/etc/userdb", "/run/userdb", "/run/host/userdb", "/usr/lib/userdb"];

/// A name service over a network may be slow.
const PATIENCE: Duration = Duration::from_secs(5);

/// What getent(1) ends with where a key is in no database.
const NO_SUCH_KEY: i32 = 2;

/// The groups that own GPU nodes, by udev's own rules.
const OWNERS: [&str; 2] = ["render", "video"];

/// The groups that a machine's name services know.
#[derive(Debug)]
pub struct Groups {
    /// The groups that files and services name, or why /etc/group could not be read.
    known: Result<Vec<Group>, String>,
    /// Services of nsswitch.conf that no file answers for: `sss`, `ldap`.
    services: Vec<String>,
    /// Whether getent(1) asked `services`.
    asked: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Group {
    name: String,
    gid: u32,
    /// The file that names the group, or `getent`.
    source: String,
}

impl Groups {
    /// What files say. An unreadable one is a reason, not a machine without groups.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let text = root.read_text(FILE, 4 << 20).map_err(|error| error.to_string());
        // For a line with a plus `compat` asks a further service (nsswitch.conf(5), "Compatibility mode").
        let has_plus = text.as_ref().is_ok_and(|text| text.lines().any(|line| line.starts_with('+')));
        let mut known = text.map(|text| parse(&text, FILE));
        let mut services = Vec::new();
        for service in services_of(root) {
            match (service.as_str(), &mut known) {
                ("files", _) | (_, Err(_)) => {}
                ("compat", Ok(_)) if !has_plus => {}
                ("altfiles", Ok(known)) => {
                    let text = root.read_text(ALTFILES, 4 << 20).unwrap_or_default();
                    known.extend(parse(&text, ALTFILES));
                }
                ("systemd", Ok(known)) => known.extend(USERDB.iter().flat_map(|folder| userdb(root, folder))),
                (_, Ok(_)) => services.push(service),
            }
        }
        Self { known, services, asked: false }
    }

    /// Adds what the other services know of the owners of GPU nodes and of `gids` where no file does: getent(1) asks
    /// them. `programs`: `None` beneath another Root than `/`.
    #[must_use]
    pub fn asking(mut self, programs: Option<&Programs>, gids: &[u32]) -> Self {
        let (Some(programs), false) = (programs, self.services.is_empty()) else { return self };
        let names = OWNERS.into_iter().filter(|name| self.gid(name).is_none()).map(str::to_owned);
        let nameless = gids.iter().filter(|gid| self.name(**gid).is_none()).map(u32::to_string);
        let keys: BTreeSet<String> = names.chain(nameless).collect();
        let mut found = Vec::new();
        for key in keys {
            match programs.run(&["getent", "group", &key], PATIENCE) {
                Ok(output) => found.extend(parse(&String::from_utf8_lossy(&output.stdout), "getent")),
                Err(command::Error::Failed { status, .. }) if status.code() == Some(NO_SUCH_KEY) => {}
                Err(_) => return self,
            }
        }
        if let Ok(known) = &mut self.known {
            known.extend(found);
            self.asked = true;
        }
        self
    }

    fn find(&self, is_it: impl Fn(&Group) -> bool) -> Option<&Group> {
        self.known.as_ref().ok()?.iter().find(|group| is_it(group))
    }

    /// The number of a group.
    #[must_use]
    pub fn gid(&self, name: &str) -> Option<u32> {
        self.find(|group| group.name == name).map(|group| group.gid)
    }

    /// The first name of a number.
    #[must_use]
    pub fn name(&self, gid: u32) -> Option<&str> {
        self.find(|group| group.gid == gid).map(|group| group.name.as_str())
    }

    /// What names a group other than /etc/group: usermod(8) adds no user to such a group.
    #[must_use]
    pub fn source_elsewhere(&self, name: &str) -> Option<&str> {
        self.find(|group| group.name == name).map(|group| group.source.as_str()).filter(|it| *it != FILE)
    }

    /// Services that may know further groups, and were not asked.
    #[must_use]
    pub fn not_asked(&self) -> Option<String> {
        (!self.asked && !self.services.is_empty()).then(|| self.services.join(", "))
    }

    /// What gives this machine a missing group, with a number where one is wanted. getent(1) ends as it does for a group
    /// that is not there while a service such as sssd is down: a second group would then take the name.
    #[must_use]
    pub fn made(&self, name: &str, gid: Option<u32>) -> String {
        let number = gid.map_or_else(String::new, |gid| format!("--gid {gid} "));
        let command = format!("groupadd --system {number}{name}");
        let services = self.services.join(", ");
        match (services.is_empty(), self.asked) {
            (true, _) => command,
            (false, true) => {
                format!(
                    "see that {services} of nsswitch.conf works (getent found no {name}); where it has none, {command}"
                )
            }
            (false, false) => {
                format!("see that getent group {name} answers ({services} of nsswitch.conf was not asked)")
            }
        }
    }

    /// Why no group is known.
    #[must_use]
    pub fn unknown(&self) -> Option<&str> {
        self.known.as_ref().err().map(String::as_str)
    }

    /// `render (992)`, or `gid 992` when it has no name.
    #[must_use]
    pub fn described(&self, gid: u32) -> String {
        self.name(gid).map_or_else(|| format!("gid {gid}"), |name| format!("{name} ({gid})"))
    }

    /// `root:render 0660`.
    #[must_use]
    pub fn owner(&self, (uid, gid): (u32, u32), mode: u32) -> String {
        let user = if uid == 0 { "root".to_owned() } else { format!("uid {uid}") };
        let group = self.name(gid).map_or_else(|| format!("gid {gid}"), str::to_owned);
        format!("{user}:{group} {mode:04o}")
    }
}

/// The number of a group in a text of group(5).
#[must_use]
pub fn gid_in(text: &str, name: &str) -> Option<u32> {
    parse(text, FILE).into_iter().find(|group| group.name == name).map(|group| group.gid)
}

/// The fields of group(5); a line of another form is no group.
fn parse(text: &str, source: &str) -> Vec<Group> {
    let group = |line: &str| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next()?, fields.nth(1)?);
        Some(Group { name: name.to_owned(), gid: gid.parse().ok()?, source: source.to_owned() })
    };
    text.lines().filter_map(group).collect()
}

/// The services of the last line `group:` in nsswitch.conf(5), without its reactions in brackets; `files` where there
/// is none.
fn services_of(root: &Root) -> Vec<String> {
    let text = root.read_text("/etc/nsswitch.conf", 64 << 10).unwrap_or_default();
    let Some(line) = text.lines().rev().find_map(of_group) else { return vec!["files".to_owned()] };
    let mut services = Vec::new();
    let mut is_reaction = false;
    for word in line.split_whitespace() {
        is_reaction |= word.starts_with('[');
        if !is_reaction {
            services.push(word.to_owned());
        }
        is_reaction &= !word.ends_with(']');
    }
    services
}

/// What a line of nsswitch.conf says behind `group:`. glibc takes blanks before the name, and for its colon
/// (`process_line` in nss/nss_database.c).
fn of_group(line: &str) -> Option<&str> {
    let is_end = |c: char| c == ':' || c.is_ascii_whitespace();
    let rest = line.split('#').next()?.trim_start().strip_prefix("group")?;
    rest.starts_with(is_end).then(|| rest.trim_start_matches(is_end))
}

/// Records `NAME.group` of a folder; `GID.group` are links to them.
fn userdb(root: &Root, folder: &str) -> Vec<Group> {
    #[derive(Deserialize)]
    struct Record {
        #[serde(rename = "groupName")]
        name: String,
        gid: u32,
    }
    let names = root.list(folder).unwrap_or_default().into_iter();
    let is_record = |name: &Path| {
        let number = name.file_stem().and_then(|stem| stem.to_str()?.parse::<u32>().ok());
        name.extension() == Some("group".as_ref()) && number.is_none()
    };
    let paths = names.filter(|name| is_record(Path::new(name))).map(|name| Path::new(folder).join(name));
    let group = |path: PathBuf| {
        let Record { name, gid } = serde_json::from_slice(&root.read(&path, 64 << 10).ok()?).ok()?;
        Some(Group { name, gid, source: path.display().to_string() })
    };
    paths.filter_map(group).collect()
}

#[cfg(test)]
#[allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and lays out its files"
)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_groups_are_passed_over() {
        let text = "root:x:0:\nrender:x:992:ann,bob\n\n# a comment\nbroken\nvideo:x:forty:\nhuge:x:99999999999:\n:x:7\n";
        let found: Vec<(String, u32)> = parse(text, FILE).into_iter().map(|it| (it.name, it.gid)).collect();
        assert_eq!(found, [("root".to_owned(), 0), ("render".to_owned(), 992), (String::new(), 7)]);
    }

    /// Groups of an image, of systemd's records, and of a service that only a program can ask.
    #[test]
    fn each_service_of_nsswitch_is_looked_at_where_it_keeps_its_groups() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("etc/group", "root:x:0:\n");
        put("usr/lib/group", "render:x:105:\nvideo:x:39:\n");
        put("etc/userdb/gpu.group", r#"{"groupName":"gpu","gid":500,"disposition":"regular"}"#);
        put("etc/userdb/500.group", "not read");
        let root = Root::open(dir.path()).unwrap();
        for (line, render, gpu, not_asked) in [
            ("", None, None, None),
            ("group: files", None, None, None),
            ("passwd: altfiles\ngroup:\tfiles altfiles systemd # and no more", Some(105), Some(500), None),
            ("group: files [SUCCESS=merge] sss [NOTFOUND = return] altfiles", Some(105), None, Some("sss")),
            ("group: files winbind ldap", None, None, Some("winbind, ldap")),
            // The last line counts, and blanks do not.
            ("group: files sss\n \tgroup : altfiles\ngroups: ldap\ngroup.x: ldap\n", Some(105), None, None),
            ("group: altfiles\ngroup files\n", None, None, None),
            ("group: altfiles\n#group: files\n", Some(105), None, None),
            ("group: compat", None, None, None),
        ] {
            put("etc/nsswitch.conf", line);
            let groups = Groups::read(&root);
            assert_eq!((groups.gid("render"), groups.gid("gpu")), (render, gpu), "{line}");
            assert_eq!(groups.not_asked().as_deref(), not_asked, "{line}");
            let command = "groupadd --system --gid 7 ml";
            let made = groups.made("ml", Some(7));
            assert_eq!(made == command, not_asked.is_none(), "{line}: {made}");
            assert_eq!(made.contains("groupadd"), not_asked.is_none(), "{line}: {made}");
            let asked = Groups { asked: true, ..groups };
            let made = asked.made("ml", Some(7));
            assert!(made.ends_with(command) && asked.not_asked().is_none(), "{line}: {made}");
            assert_eq!(made.contains("getent found no ml"), not_asked.is_some(), "{line}: {made}");
        }
        // The line with a plus asks NIS, which no file here answers for.
        put("etc/nsswitch.conf", "group: compat\n");
        put("etc/group", "root:x:0:\n+:::\n");
        let groups = Groups::read(&root);
        assert_eq!(groups.not_asked().as_deref(), Some("compat"));
        assert!(!groups.made("ml", None).contains("groupadd"));
        put("etc/group", "root:x:0:\n");
        put("etc/nsswitch.conf", "group: files altfiles");
        let groups = Groups::read(&root);
        assert_eq!(groups.name(39), Some("video"));
        assert_eq!(groups.source_elsewhere("video"), Some("/usr/lib/group"));
        assert_eq!(groups.source_elsewhere("root"), None);
    }
}
