//! Which repositories apt knows: one that somebody has configured already must not be configured once more. With
//! another `Signed-By` apt refuses both, and then does nothing at all any more.

use std::path::{Path, PathBuf};

use root::Root;

const LIST: &str = "/etc/apt/sources.list";
const PARTS: &str = "/etc/apt/sources.list.d";
const LIMIT: usize = 1 << 20;

/// A repository, as one file names it (sources.list(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub file: PathBuf,
    /// Without a slash at its end.
    pub url: String,
    pub suite: String,
}

/// All repositories that are enabled. A file that cannot be read is passed over, as apt says what is wrong with it.
#[must_use]
pub fn known(root: &Root) -> Vec<Known> {
    let parts = root.list(PARTS).unwrap_or_default();
    let parts = parts
        .iter()
        .filter(|name| name.to_str().is_some_and(is_read))
        .map(|name| Path::new(PARTS).join(name));
    let mut known = Vec::new();
    for file in std::iter::once(PathBuf::from(LIST)).chain(parts) {
        let Ok(text) = root.read_text(&file, LIMIT) else { continue };
        let named = match file.extension().and_then(|it| it.to_str()) {
            Some("list") => one_line(&text),
            Some("sources") => stanzas(&text),
            _ => continue,
        };
        known.extend(named.into_iter().map(|(url, suite)| Known {
            file: file.clone(),
            url: url.trim_end_matches('/').to_owned(),
            suite,
        }));
    }
    known
}

/// apt passes over what has other characters in its name, or begins with a dot (apt's fileutl.cc, `GetListOfFilesInDir`).
fn is_read(name: &str) -> bool {
    !name.starts_with('.') && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// As apt reads a word (apt's strutl.cc, `StringToBool`).
fn is_no(word: &str) -> bool {
    ["0", "no", "false", "without", "off", "disable"].iter().any(|no| word.eq_ignore_ascii_case(no))
}

/// `deb [ OPTIONS ] URL SUITE COMPONENT…`.
fn one_line(text: &str) -> Vec<(String, String)> {
    let mut named = Vec::new();
    for line in text.lines() {
        let line = line.split('#').next().unwrap_or_default().trim();
        let Some(rest) = line.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t'])) else {
            continue;
        };
        let rest = rest.trim_start();
        let rest = match rest.strip_prefix('[') {
            Some(options) => options.split_once(']').map_or("", |(_, rest)| rest),
            None => rest,
        };
        let mut words = rest.split_whitespace();
        if let (Some(url), Some(suite)) = (words.next(), words.next()) {
            named.push((url.to_owned(), suite.to_owned()));
        }
    }
    named
}

/// Fields of deb822(5), in which a line that begins with a blank goes on with the one before.
fn stanzas(text: &str) -> Vec<(String, String)> {
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    let mut named = Vec::new();
    for stanza in lines.split(|line| line.trim().is_empty()) {
        let (urls, suites) = (field(stanza, "URIs"), field(stanza, "Suites"));
        let is_off = field(stanza, "Enabled").iter().any(|word| is_no(word));
        let has_binaries = field(stanza, "Types").contains(&"deb");
        if is_off || !has_binaries {
            continue;
        }
        for url in urls {
            named.extend(suites.iter().map(|suite| (url.to_owned(), (*suite).to_owned())));
        }
    }
    named
}

/// The words of a field.
fn field<'a>(stanza: &[&'a str], name: &str) -> Vec<&'a str> {
    let mut words = Vec::new();
    let mut is_in_it = false;
    for line in stanza {
        if line.starts_with([' ', '\t']) {
            if is_in_it {
                words.extend(line.split_whitespace());
            }
            continue;
        }
        let (key, value) = line.split_once(':').unwrap_or((line, ""));
        is_in_it = key.eq_ignore_ascii_case(name);
        if is_in_it {
            words.extend(value.split_whitespace());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use root::Attributes;

    use super::*;

    fn named(pairs: &[(&str, &str)]) -> Vec<(String, String)> {
        pairs.iter().map(|(url, suite)| ((*url).to_owned(), (*suite).to_owned())).collect()
    }

    #[test]
    fn one_line_sources_are_read_as_apt_reads_them() {
        let text = "# deb http://off stable main\n\
                    deb [arch=amd64 signed-by=/etc/apt/keyrings/rocm.gpg] https://repo.radeon.com/rocm/apt/7.2.4 noble main\n\
                    deb-src http://source stable main\n\tdeb http://tab\tstable main # why\ndeb\n";
        assert_eq!(
            one_line(text),
            named(&[("https://repo.radeon.com/rocm/apt/7.2.4", "noble"), ("http://tab", "stable")])
        );
    }

    #[test]
    fn stanzas_are_read_as_apt_reads_them() {
        let text = "# a comment\nTypes: deb deb-src\nURIs: http://a\n http://b\nsuites: x y\nComponents: main\n\n\
                    Types: deb\nURIs: http://off\nSuites: x\nEnabled: No\n\nTypes: deb\nURIs: http://out\nSuites: x\nEnabled: disable\n\nTypes: deb-src\nURIs: http://src\nSuites: x\n";
        assert_eq!(
            stanzas(text),
            named(&[("http://a", "x"), ("http://a", "y"), ("http://b", "x"), ("http://b", "y")])
        );
    }

    #[test]
    fn files_that_apt_passes_over_name_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let root = Root::open(folder.path()).unwrap();
        for name in ["amd.list", "amd rocm.list", ".hidden.list", "amd.list.save", "amd~.list"] {
            let how = Attributes { mode: 0o644, owner: None };
            root.write(Path::new(PARTS).join(name), b"deb http://a stable main\n", how).unwrap();
        }
        let files: Vec<PathBuf> = known(&root).into_iter().map(|it| it.file).collect();
        assert_eq!(files, [Path::new(PARTS).join("amd.list")]);
    }
}
