//! Where apt keeps what a repository offers.

use root::Root;

use crate::error::if_there;

pub(crate) const FOLDER: &str = "/var/lib/apt/lists";

/// What apt escapes in the name of a list, besides what cannot be printed (apt's apt-pkg/contrib/strutl.cc,
/// `URItoFileName`).
const ESCAPED: &[u8] = b"\\|{}[]<>\"^~_=!@#$%^&*";

/// What the names of a repository's lists begin with: `repo.radeon.com_rocm_apt_6.3.2_dists_noble_`.
pub(crate) fn file_name_prefix(uri: &str, suite: &str) -> String {
    let uri = uri.trim_end_matches('/');
    let whole = match suite.strip_suffix('/') {
        // A repository without suites: "an exact path, which has to end with a slash" (sources.list(5)).
        Some(path) => format!("{uri}/{path}/"),
        None => format!("{uri}/dists/{suite}/"),
    };
    let behind = whole.split_once("://").map_or(whole.as_str(), |(_, rest)| rest);
    let host = behind.split('/').next().unwrap_or_default();
    // Name and password of a user are not written into a name.
    let skipped = host.rfind('@').map_or(0, |at| at + 1);
    let mut name = String::new();
    for byte in behind[skipped..].bytes() {
        match byte {
            b'/' => name.push('_'),
            byte if ESCAPED.contains(&byte) || !byte.is_ascii_graphic() => {
                name.push_str(&format!("%{byte:02x}"))
            }
            byte => name.push(char::from(byte)),
        }
    }
    name
}

/// Takes away what was fetched of a repository, also in part; how many files.
pub(super) fn remove(root: &Root, prefix: &str) -> Result<usize, root::Error> {
    // Of an address that names nothing, which would be every list.
    if prefix.is_empty() {
        return Ok(0);
    }
    let mut gone = 0;
    for folder in [FOLDER.to_owned(), format!("{FOLDER}/partial"), format!("{FOLDER}/auxfiles")] {
        let names = if_there(root.list(&folder))?.unwrap_or_default();
        for name in names.iter().filter_map(|name| name.to_str()).filter(|name| name.starts_with(prefix)) {
            root.remove(format!("{folder}/{name}"))?;
            gone += 1;
        }
    }
    Ok(gone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_no_repository_takes_no_list_away() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::open(dir.path()).unwrap();
        let how = root::Attributes { mode: 0o644, owner: None };
        root.write(format!("{FOLDER}/a_dists_b_InRelease"), b"", how).unwrap();
        assert_eq!(remove(&root, "").unwrap(), 0);
        assert_eq!(remove(&root, "a_dists_b_").unwrap(), 1);
    }

    #[test]
    fn a_repositorys_lists_have_the_names_that_apt_gives_them() {
        for (uri, suite, expected) in [
            (
                "https://repo.radeon.com/rocm/apt/6.3.2",
                "noble",
                "repo.radeon.com_rocm_apt_6.3.2_dists_noble_",
            ),
            ("http://127.0.0.1:8080/a_b/", "stable", "127.0.0.1:8080_a%5fb_dists_stable_"),
            ("http://me:secret@host/~x", "a/b", "host_%7ex_dists_a_b_"),
            ("file:///srv/repo", "./", "_srv_repo_._"),
            ("http://", "/", ""),
        ] {
            assert_eq!(file_name_prefix(uri, suite), expected);
        }
    }
}
