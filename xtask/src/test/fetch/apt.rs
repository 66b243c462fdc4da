//! Packages of a suite of Debian's, by an apt with a state of its own: it resolves what a package needs, checks every signature,
//! and shares nothing with this machine's packages.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};

use super::remove;
use crate::command::Command;
use crate::privilege::Privilege;

/// Checks Debian's signatures.
const KEYRING: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// The mirror for machines whose own sources name none of Debian, such as Ubuntu's.
const MIRROR: &str = "http://deb.debian.org/debian";

/// The packages that are downloaded beside the named ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// All packages on which the named ones depend.
    Too,
    /// No others: only files of the named packages are read, or their programs are static.
    Not,
}

/// apt for one suite.
#[derive(Debug)]
pub(super) struct Apt {
    state: PathBuf,
}

impl Apt {
    /// Makes its state in this folder, and reads the suite's lists of packages.
    pub(super) fn of(suite: &str, state: PathBuf) -> Result<Self> {
        Self::reading("deb", suite, state)
    }

    /// Reads the suite's lists of source packages too.
    pub(super) fn with_sources(suite: &str, state: PathBuf) -> Result<Self> {
        Self::reading("deb deb-src", suite, state)
    }

    fn reading(types: &str, suite: &str, state: PathBuf) -> Result<Self> {
        for part in ["lists/partial", "cache/archives/partial"] {
            let folder = state.join(part);
            fs::create_dir_all(&folder).with_context(|| format!("making {}", folder.display()))?;
        }
        for (name, text) in [
            ("status", String::new()),
            ("debian.sources", sources(types, suite, &mirror())),
            ("apt.conf", configuration(&state)),
        ] {
            let path = state.join(name);
            fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
        }
        let apt = Self { state };
        apt.get(&["update"]).run()?;
        Ok(apt)
    }

    fn get(&self, arguments: &[&str]) -> Command {
        self.command("apt-get").arguments(["--quiet"]).arguments(arguments)
    }

    fn command(&self, program: &str) -> Command {
        Command::new([program]).environment("APT_CONFIG", self.state.join("apt.conf"))
    }

    /// A package's dependencies whose names have one of these prefixes.
    pub(super) fn dependencies(&self, package: &str, begins: &[&str]) -> Result<Vec<String>> {
        let answer = self.command("apt-cache").arguments(["depends", "--important", package]).read()?;
        Ok(dependencies_in(&answer, begins))
    }

    /// The one package that another depends on whose name begins so.
    pub(super) fn dependency(&self, package: &str, begins: &str) -> Result<String> {
        let found = self.dependencies(package, &[begins])?;
        found.into_iter().next().with_context(|| format!("{package} depends on no {begins}…"))
    }

    /// Downloads packages into a folder, which is made.
    pub(super) fn download<T: AsRef<str>>(&self, packages: &[T], into: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
        self.get(&["download"]).arguments(packages.iter().map(AsRef::as_ref)).inside(into).run()?;
        archives(into)
    }

    /// Downloads the files of a source package into a folder, which is made, without unpacking them.
    pub(super) fn download_source(&self, package: &str, into: &Path) -> Result<Vec<PathBuf>> {
        fs::create_dir_all(into).with_context(|| format!("making {}", into.display()))?;
        self.get(&["source", "--only-source", "--download-only", package]).inside(into).run()?;
        entries(into)
    }

    /// Downloads packages with all that they depend on.
    fn download_with_needs(&self, packages: &[&str]) -> Result<Vec<PathBuf>> {
        let install = ["install", "--yes", "--no-install-recommends", "--download-only"];
        self.get(&install).arguments(packages).run()?;
        archives(&self.state.join("cache/archives"))
    }
}

pub(super) fn extract(archives: &[PathBuf], into: &Path) -> Result<()> {
    archives.iter().try_for_each(|archive| {
        Command::new(["dpkg-deb", "--extract"]).arguments([archive.as_path(), into]).run()
    })
}

/// Downloads packages and unpacks them as `tree`. Needs no root.
pub(super) fn unpack(place: &Path, suite: &str, packages: &[&str], needed: Needed) -> Result<()> {
    let (state, tree) = (place.join("apt"), place.join("tree"));
    fs::create_dir_all(&tree).with_context(|| format!("making {}", tree.display()))?;
    let apt = Apt::of(suite, state.clone())?;
    let archives = match needed {
        Needed::Too => apt.download_with_needs(packages)?,
        Needed::Not => apt.download(packages, &state.join("archives"))?,
    };
    extract(&archives, &tree)?;
    // Debian's base-files makes these; without them no program would find its loader.
    for name in ["bin", "sbin", "lib", "lib64"] {
        let link = tree.join(name);
        if !link.exists() && tree.join("usr").join(name).is_dir() {
            std::os::unix::fs::symlink(Path::new("usr").join(name), &link)
                .with_context(|| format!("linking {}", link.display()))?;
        }
    }
    remove(&state)
}

/// Makes a suite's smallest system with apt, and these packages in it. Its files are root's.
pub(super) fn system(place: &Path, suite: &str, packages: &str, privilege: Privilege) -> Result<()> {
    let (include, keyring) = (format!("--include={packages}"), format!("--keyring={KEYRING}"));
    let place = place.to_str().context("the cache folder's path is no text")?;
    let languages = "--aptopt=Acquire::Languages \"none\"";
    let mmdebstrap = ["mmdebstrap", "--mode=root", "--variant=apt", &include, languages, &keyring];
    let mirror = mirror();
    let argv = [&mmdebstrap[..], &[suite, place, &mirror]].concat();
    let made = Command::new(privilege.as_root(&argv)).run();
    if made.is_err() {
        Command::new(privilege.as_root(&["rm", "-rf", "--one-file-system", place])).run()?;
    }
    made
}

/// The mirror that this machine's own apt uses for Debian's main archive.
fn mirror() -> String {
    let targets =
        ["apt-get", "indextargets", "--format", "$(REPO_URI)", "Created-By: Packages", "Origin: Debian"];
    let known = Command::new(targets).read().unwrap_or_default();
    first_main_mirror(&known).unwrap_or(MIRROR).to_owned()
}

/// The security archive has suites of its own, and none of sid's.
fn first_main_mirror(known: &str) -> Option<&str> {
    known.lines().map(|line| line.trim_end_matches('/')).find(|uri| uri.ends_with("/debian"))
}

fn sources(types: &str, suite: &str, mirror: &str) -> String {
    format!("Types: {types}\nURIs: {mirror}\nSuites: {suite}\nComponents: main\nSigned-By: {KEYRING}\n")
}

/// apt's own user could not write below a home folder, so that apt stays the user who calls it. A mirror may hold sid as
/// it was when its Release file had not expired; the signature still says whose it is.
fn configuration(state: &Path) -> String {
    let state = state.display();
    format!(
        "Dir::Etc::sourcelist \"{state}/debian.sources\";\nDir::Etc::sourceparts \"/dev/null\";\n\
         Dir::State \"{state}\";\nDir::State::lists \"{state}/lists\";\nDir::State::status \"{state}/status\";\n\
         Dir::Cache \"{state}/cache\";\nAPT::Sandbox::User \"\";\nAcquire::Languages \"none\";\n\
         Debug::NoLocking \"true\";\nAcquire::Check-Valid-Until \"false\";\n"
    )
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("listing {}", folder.display()))?;
    Ok(entries.filter_map(Result::ok).map(|entry| entry.path()).collect())
}

fn archives(folder: &Path) -> Result<Vec<PathBuf>> {
    let paths = entries(folder)?.into_iter();
    let archives: Vec<PathBuf> =
        paths.filter(|path| path.extension().is_some_and(|extension| extension == "deb")).collect();
    ensure!(!archives.is_empty(), "apt-get left no .deb in {}", folder.display());
    Ok(archives)
}

/// An answer of `apt-cache depends` has an alternative's bar and a virtual package's angle brackets before some names.
fn dependencies_in(answer: &str, begins: &[&str]) -> Vec<String> {
    let depends = answer.lines().filter_map(|line| line.trim().strip_prefix("Depends: "));
    let wanted = depends.filter(|name| begins.iter().any(|begin| name.starts_with(begin)));
    wanted.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_are_those_that_begin_as_asked_without_alternatives_and_virtual_packages() {
        let image = "linux-image-7.2\n  Depends: linux-base-7.2\n  Depends: linux-binary-7.2\n  Depends: linux-modules-7.2\n";
        let headers =
            "linux-headers-6.1\n  Depends: linux-headers-6.1-common\n |Depends: gcc-12\n  Depends: gcc-12\n";
        for (answer, begins, expected) in [
            (
                "linux-image-amd64\n  Depends: linux-image-6.1.0-56-amd64\n",
                &["linux-image-"][..],
                &["linux-image-6.1.0-56-amd64"][..],
            ),
            (image, &["linux-binary-", "linux-modules-"], &["linux-binary-7.2", "linux-modules-7.2"]),
            (headers, &["linux-"], &["linux-headers-6.1-common"]),
            ("linux-source\n  Depends: <linux-source-7.3>\n", &["linux-source-"], &[]),
            ("linux-image-amd64\n", &["linux-image-"], &[]),
        ] {
            assert_eq!(dependencies_in(answer, begins), expected, "{answer}");
        }
    }

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
        let configuration = configuration(Path::new("/place"));
        for line in configuration.lines().filter(|line| line.starts_with("Dir::")) {
            assert!(line.contains("\"/place") || line.contains("\"/dev/null\""), "{line}");
        }
        assert!(sources("deb", "sid", MIRROR).contains(&format!("Signed-By: {KEYRING}")));
    }
}
