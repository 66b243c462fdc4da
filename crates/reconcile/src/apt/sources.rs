//! Lists the repositories that apt knows.

use std::path::{Path, PathBuf};

use root::Root;

use super::stanza::stanzas;

const LIST: &str = "/etc/apt/sources.list";
pub(super) const PARTS: &str = "/etc/apt/sources.list.d";
const LIMIT: usize = 1 << 20;

/// A repository, as one file names it (sources.list(5)).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    pub file: PathBuf,
    /// The URL without a slash at its end.
    pub url: String,
    pub suite: String,
}

/// All enabled repositories. Skips a file that cannot be read: apt reports what is wrong with it.
#[must_use]
pub fn known(root: &Root) -> Vec<Known> {
    let parts = root.list(PARTS).unwrap_or_default();
    let parts = parts
        .iter()
        .filter(|name| name.to_str().is_some_and(is_read))
        .map(|name| Path::new(PARTS).join(name));
    std::iter::once(PathBuf::from(LIST)).chain(parts).flat_map(|file| in_file(root, &file)).collect()
}

/// The repositories that a file of apt's names, none where it cannot be read.
pub(super) fn in_file(root: &Root, file: &Path) -> Vec<Known> {
    let text = root.read_text(file, LIMIT).unwrap_or_default();
    let known = |(url, suite): (String, String)| Known {
        file: file.to_owned(),
        url: url.trim_end_matches('/').to_owned(),
        suite,
    };
    named(&text).into_iter().map(known).collect()
}

/// apt skips what has other characters in its name, begins with a dot (apt's fileutl.cc, `GetListOfFilesInDir`), or is of
/// neither format.
fn is_read(name: &str) -> bool {
    let is_known = name.ends_with(".list") || name.ends_with(".sources");
    is_known
        && !name.starts_with('.')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
}

/// Whether apt reads the word as "no" (apt's strutl.cc, `StringToBool`).
fn is_no(word: &str) -> bool {
    ["0", "no", "false", "without", "off", "disable"].iter().any(|no| word.eq_ignore_ascii_case(no))
}

/// URL and suite of each repository, in either format: a line of the one is no field of the other.
fn named(text: &str) -> Vec<(String, String)> {
    let mut named: Vec<_> = text.lines().filter_map(one_line).collect();
    let lines: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).map(str::trim_end).collect();
    for stanza in stanzas(&lines.join("\n")) {
        let words = |name| stanza.field(name).unwrap_or_default().split_whitespace();
        if words("Enabled").any(is_no) || !words("Types").any(|word| word == "deb") {
            continue;
        }
        for url in words("URIs") {
            named.extend(words("Suites").map(|suite| (url.to_owned(), suite.to_owned())));
        }
    }
    named
}

/// `deb [ OPTIONS ] URL SUITE COMPONENT…`.
fn one_line(line: &str) -> Option<(String, String)> {
    let line = line.split('#').next()?.trim();
    let rest = line.strip_prefix("deb").filter(|rest| rest.starts_with([' ', '\t']))?.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(options) => options.split_once(']')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace();
    Some((words.next()?.to_owned(), words.next()?.to_owned()))
}

#[cfg(test)]
mod tests {
    use root::Attributes;

    use super::*;

    #[test]
    fn sources_are_read_as_apt_reads_them_in_both_formats() {
        let lines = "# deb http://off stable main\n\
                     deb [arch=amd64 signed-by=/etc/apt/keyrings/rocm.gpg] https://repo.radeon.com/rocm/apt/7.2.4 noble main\n\
                     deb-src http://source stable main\n\tdeb http://tab\tstable main # why\ndeb\n";
        let stanzas = "# a comment\nTypes: deb deb-src\nURIs: http://a\n http://b\nsuites: x y\nComponents: main\n\n\
                       Types: deb\nURIs: http://off\nSuites: x\nEnabled: No\n \nTypes: deb\nURIs: http://out\nSuites: x\nEnabled: disable\n\nTypes: deb-src\nURIs: http://src\nSuites: x\n";
        for (text, expected) in [
            (lines, &[("https://repo.radeon.com/rocm/apt/7.2.4", "noble"), ("http://tab", "stable")][..]),
            (stanzas, &[("http://a", "x"), ("http://a", "y"), ("http://b", "x"), ("http://b", "y")]),
            ("", &[]),
        ] {
            let expected: Vec<_> =
                expected.iter().map(|(url, suite)| ((*url).to_owned(), (*suite).to_owned())).collect();
            assert_eq!(named(text), expected, "{text}");
        }
    }

    #[test]
    fn files_that_apt_skips_name_nothing() {
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
