//! The groups of a machine and their names, from its files and from its name services.

use std::collections::BTreeSet;
use std::time::Duration;

use reconcile::command::Programs;
use root::Root;

const FILE: &str = "/etc/group";

/// File that the name service `altfiles` reads: the groups of an image, such as Fedora's ostree systems have.
pub const ALTFILES: &str = "/usr/lib/group";

/// A name service over a network may be slow.
const PATIENCE: Duration = Duration::from_secs(5);

/// The groups that own GPU nodes, by udev's own rules.
const OWNERS: [&str; 2] = ["render", "video"];

/// The groups that files and name services know, or why /etc/group could not be read.
#[derive(Debug)]
pub struct Groups {
    known: Result<Vec<Group>, String>,
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
        let of_image = || parse(&root.read_text(ALTFILES, 4 << 20).unwrap_or_default(), ALTFILES);
        Self { known: text.map(|text| [parse(&text, FILE), of_image()].concat()) }
    }

    /// Adds what name services know of the owners of GPU nodes and of `gids` where no file does: getent(1) asks them.
    /// `programs`: `None` beneath another Root than `/`.
    #[must_use]
    pub fn asking(mut self, programs: Option<&Programs>, gids: &[u32]) -> Self {
        let Some(programs) = programs else { return self };
        let names = OWNERS.into_iter().filter(|name| self.gid(name).is_none()).map(str::to_owned);
        let nameless = gids.iter().filter(|gid| self.name(**gid).is_none()).map(u32::to_string);
        let keys: BTreeSet<String> = names.chain(nameless).collect();
        for key in keys {
            // getent fails where no service has the key; what cannot be asked knows nothing.
            if let (Ok(known), Ok(output)) =
                (&mut self.known, programs.run(&["getent", "group", &key], PATIENCE))
            {
                known.extend(parse(&String::from_utf8_lossy(&output.stdout), "getent"));
            }
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

    /// What gives this machine a missing group, with a number where one is wanted.
    #[must_use]
    pub fn made(name: &str, gid: Option<u32>) -> String {
        let number = gid.map_or_else(String::new, |gid| format!("--gid {gid} "));
        format!("groupadd --system {number}{name}")
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

    #[test]
    fn an_images_groups_are_known_and_where_each_is_from() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        put("usr/lib/group", "render:x:105:\nvideo:x:39:\nroot:x:7:\n");
        let root = Root::open(dir.path()).unwrap();
        assert!(Groups::read(&root).unknown().is_some());
        put("etc/group", "root:x:0:\n");
        let groups = Groups::read(&root);
        assert_eq!((groups.name(39), groups.gid("root")), (Some("video"), Some(0)));
        assert_eq!(groups.source_elsewhere("video"), Some(ALTFILES));
        assert_eq!(groups.source_elsewhere("root"), None);
        assert_eq!(Groups::made("ml", Some(7)), "groupadd --system --gid 7 ml");
    }
}
