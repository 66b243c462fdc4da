//! The groups of a machine, by the names that it gives them.

use root::{Meta, Root};

const FILE: &str = "/etc/group";

/// The groups of /etc/group; those that only a name service knows are not in it.
#[derive(Debug)]
pub struct Groups {
    /// Name and gid, or why the file could not be read.
    known: Result<Vec<(String, u32)>, String>,
}

impl Groups {
    /// An unreadable file is a reason, not a machine without groups.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let text = root.read_text(FILE, 4 << 20).map_err(|error| error.to_string());
        Self { known: text.map(|text| parse(&text)) }
    }

    /// The number of a group.
    #[must_use]
    pub fn gid(&self, name: &str) -> Option<u32> {
        let known = self.known.as_ref().ok()?;
        known.iter().find(|(known, _)| known == name).map(|(_, gid)| *gid)
    }

    /// The first name of a number.
    #[must_use]
    pub fn name(&self, gid: u32) -> Option<&str> {
        let known = self.known.as_ref().ok()?;
        known.iter().find(|(_, known)| *known == gid).map(|(name, _)| name.as_str())
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
    pub fn owner(&self, meta: &Meta) -> String {
        let user = if meta.uid == 0 { "root".to_owned() } else { format!("uid {}", meta.uid) };
        let group = self.name(meta.gid).map_or_else(|| format!("gid {}", meta.gid), str::to_owned);
        format!("{user}:{group} {:04o}", meta.mode)
    }
}

/// The number of a group in a text of group(5).
#[must_use]
pub fn gid_in(text: &str, name: &str) -> Option<u32> {
    parse(text).into_iter().find(|(known, _)| known == name).map(|(_, gid)| gid)
}

/// The fields of group(5); a line of another form is no group.
fn parse(text: &str) -> Vec<(String, u32)> {
    let group = |line: &str| {
        let mut fields = line.split(':');
        let (name, gid) = (fields.next()?, fields.nth(1)?);
        Some((name.to_owned(), gid.parse().ok()?))
    };
    text.lines().filter_map(group).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_that_are_no_groups_are_passed_over() {
        let text = "root:x:0:\nrender:x:992:ann,bob\n\n# a comment\nbroken\nvideo:x:forty:\nhuge:x:99999999999:\n:x:7\n";
        assert_eq!(parse(text), [("root".to_owned(), 0), ("render".to_owned(), 992), (String::new(), 7)]);
    }
}
