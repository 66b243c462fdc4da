//! Packages of another release of Debian with all that they need, unpacked beside the build and never installed.
//!
//! apt gets a state of its own for each. So it resolves what a package needs, checks every signature, and shares
//! nothing with this machine's own packages.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

use crate::command::Command;

/// Checks Debian's signatures.
pub(crate) const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// Where this machine's own sources name no mirror of Debian, as on Ubuntu.
const MIRROR: &str = "http://deb.debian.org/debian";

/// What is downloaded beside the packages that are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// All that they depend on.
    Too,
    /// Nothing: files of theirs are read, and none of their programs runs.
    Not,
}

/// Downloads them and unpacks them as `tree` in that place, which is there once it is whole. Needs no root.
pub(super) fn unpack(place: &Path, suite: &str, packages: &[&str], needed: Needed) -> Result<()> {
    empty(place)?;
    for part in ["lists/partial", "cache/archives/partial", "new"] {
        make(&place.join(part))?;
    }
    write(&place.join("status"), "")?;
    write(&place.join("debian.sources"), &sources(suite, &mirror()))?;
    let configuration = place.join("apt.conf");
    write(&configuration, &apt_configuration(place))?;
    let apt = |arguments: &[&str]| {
        Command::new(["apt-get", "--quiet"]).arguments(arguments).environment("APT_CONFIG", &configuration)
    };
    apt(&["update"]).run()?;
    let downloaded = place.join("cache/archives");
    let download = match needed {
        Needed::Too => apt(&["install", "--yes", "--no-install-recommends", "--download-only"]),
        Needed::Not => apt(&["download"]).inside(&downloaded),
    };
    download.arguments(packages).run()?;

    let tree = place.join("new");
    for archive in archives(&downloaded)? {
        Command::new(["dpkg-deb", "--extract"]).arguments([&archive, &tree]).run()?;
    }
    // Debian's base-files makes these; without them no program would find its loader.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let link = tree.join(name);
        if !link.exists() && tree.join("usr").join(name).is_dir() {
            std::os::unix::fs::symlink(Path::new("usr").join(name), &link)
                .with_context(|| format!("linking {}", link.display()))?;
        }
    }
    // As many megabytes of archives and of lists that nothing reads again.
    [place.join("cache"), place.join("lists")].iter().try_for_each(|folder| remove(folder))?;
    let whole = place.join("tree");
    std::fs::rename(&tree, &whole)
        .with_context(|| format!("moving {} to {}", tree.display(), whole.display()))
}

/// The mirror that this machine's own apt uses for Debian's main archive.
pub(crate) fn mirror() -> String {
    let targets =
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"];
    let known = Command::new(targets).read().unwrap_or_default();
    first_main_mirror(&known).unwrap_or(MIRROR).to_owned()
}

/// The security archive has suites of its own, and none of sid's.
fn first_main_mirror(known: &str) -> Option<&str> {
    known.lines().map(|line| line.trim_end_matches('/')).find(|uri| uri.ends_with("/debian"))
}

fn sources(suite: &str, mirror: &str) -> String {
    format!("Types: deb\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n")
}

/// apt's own user could not write below a home folder, so that apt stays the user who calls it. A mirror may hold sid as
/// it was when its Release file had not expired; the signature still says whose it is.
fn apt_configuration(place: &Path) -> String {
    let place = place.display();
    format!(
        "Dir::Etc::sourcelist \"{place}/debian.sources\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::State \"{place}\";\nDir::State::lists \"{place}/lists\";\nDir::State::status \"{place}/status\";\n\
         Dir::Cache \"{place}/cache\";\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n\
         Debug::NoLocking \"true\";\nAcquire::Check-Valid-Until \"false\";\n"
    )
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = std::fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    let paths = entries.filter_map(Result::ok).map(|entry| entry.path());
    let archives: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect();
    if archives.is_empty() {
        bail!("apt-get left no .deb in {}", folder.display());
    }
    Ok(archives)
}

fn empty(folder: &Path) -> Result<()> {
    remove(folder)?;
    make(folder)
}

fn remove(folder: &Path) -> Result<()> {
    match std::fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(error).with_context(|| format!("removing {}", folder.display()))
        }
        _ => Ok(()),
    }
}

fn make(folder: &Path) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("making {}", folder.display()))
}

fn write(file: &Path, text: &str) -> Result<()> {
    std::fs::write(file, text).with_context(|| format!("writing {}", file.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_own_mirror_is_used_where_it_has_debians_main_archive() {
        let debian = "http://mirror.example/debian-security/\nhttp://mirror.example/debian/\n";
        for (known, expected) in [
            (debian, Some("http://mirror.example/debian")),
            ("http://archive.ubuntu.com/ubuntu/\n", None),
            ("", None),
        ] {
            assert_eq!(first_main_mirror(known), expected, "{known}");
        }
    }

    #[test]
    fn apts_state_is_all_below_the_place_and_its_signatures_are_debians() {
        let configuration = apt_configuration(Path::new("/place"));
        for line in configuration.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(line.contains("\"/place") || line.contains("\"/dev/null\""), "{line}");
        }
        assert!(sources("sid", MIRROR).contains(&format!("Signed-By: {KEYRING}")));
    }
}
