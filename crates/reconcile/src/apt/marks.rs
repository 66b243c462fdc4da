//! Which packages apt counts as installed for the sake of others: `apt-mark manual` takes a package out of these, and
//! so does `apt-get install` of it by name.

use std::collections::BTreeSet;

use root::{Root, if_there};

use super::dpkg;

/// apt's own notes (apt's apt-pkg/depcache.cc, `readStateFile`).
const STATES: &str = "/var/lib/apt/extended_states";
const LIMIT: usize = 64 << 20;

/// The names of packages that came for the sake of others, as apt prints them; nothing where apt has noted none.
pub(crate) fn automatic(root: &Root) -> Result<BTreeSet<String>, root::Error> {
    let Some(text) = if_there(root.read_text(STATES, LIMIT))? else { return Ok(BTreeSet::new()) };
    let native = dpkg::native(root)?;
    let is_automatic = |stanza: &dpkg::Stanza<'_>| stanza.field("Auto-Installed") == Some("1");
    let stanzas = dpkg::stanzas(&text).filter(is_automatic);
    Ok(stanzas.filter_map(|stanza| stanza.name(native.as_deref())).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    fn one_of_another_architecture_is_told_from_the_machines_own() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let how = root::Attributes { mode: 0o644, owner: None };
        let put = |path: &str, text: &str| root.write(Path::new(path), text.as_bytes(), how).unwrap();
        assert!(automatic(&root).unwrap().is_empty());
        put(
            STATES,
            "Package: lib\nArchitecture: i386\nAuto-Installed: 1\n\nPackage: lib\nArchitecture: amd64\nAuto-Installed: \
             0\n\nPackage: data\nArchitecture: amd64\nAuto-Installed: 1\n",
        );
        put("/var/lib/dpkg/arch", "amd64\ni386\n");
        let names: Vec<String> = automatic(&root).unwrap().into_iter().collect();
        assert_eq!(names, ["data", "lib:i386"]);
    }
}
