//! The Debian package, by real dpkg-deb. It depends on no library: its programs are static.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use md5::{Digest as _, Md5};

use super::VERSION;
use super::files::{Files, gzip, read};
use super::parts::{Parts, Places};
use super::sums::hex;
use crate::command::Command;
use crate::repository;

/// How much time is spent on making the package small.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Compression {
    Small,
    Fast,
}

/// The folder of the files that only the Debian package has.
const SOURCE: &str = "packaging/debian";
const SCRIPTS: [&str; 4] = ["preinst", "postinst", "prerm", "postrm"];

pub(super) fn build(
    parts: &Parts,
    moment: u64,
    compression: Compression,
    work: &Path,
    out: &Path,
) -> Result<PathBuf> {
    let source = repository::top().join(SOURCE);
    let changelog = read(&source.join("changelog"))?;
    let version = version(&String::from_utf8_lossy(&changelog))?;
    let architecture = Command::new(["dpkg", "--print-architecture"]).read()?.trim().to_owned();

    let mut files = content(parts);
    for (name, from) in [("changelog.Debian.gz", changelog), ("changelog.gz", parts.changelog.clone())] {
        files.put(format!("usr/share/doc/rocworker/{name}"), gzip(&from)?);
    }
    files.put("usr/share/doc/rocworker/notices.gz", gzip(&parts.notices)?);
    files.put("usr/share/doc/rocworker/copyright", read(&source.join("copyright"))?);
    for (name, page) in &parts.man {
        files.put(format!("usr/share/man/man8/{name}.gz"), gzip(page)?);
    }
    let overrides = source.join("lintian-overrides");
    if overrides.is_file() {
        files.put("usr/share/lintian/overrides/rocworker", read(&overrides)?);
    }

    let mut meta = Files::default();
    meta.put("md5sums", sums(&files));
    for script in SCRIPTS {
        let text =
            String::from_utf8(read(&source.join(script))?).context("a maintainer script is no text")?;
        meta.put_program(script, filled(script, &text, parts)?);
    }
    let kib = files.iter().map(|(_, file)| file.bytes.len().div_ceil(1024)).sum::<usize>();
    let own = String::from_utf8(read(&source.join("control"))?).context("control is no text")?;
    meta.put("control", control(&own, &version, &architecture, kib)?);

    let tree = work.join("deb");
    files.lay_out(&tree)?;
    meta.lay_out(&tree.join("DEBIAN"))?;
    let path = out.join(format!("rocworker_{version}_{architecture}.deb"));
    // xz in both: lintian looks into no other, and what it costs is the level.
    let level = match compression {
        Compression::Small => "-z9",
        Compression::Fast => "-z0",
    };
    Command::new(["dpkg-deb", "--build", "--root-owner-group", "-Zxz", level])
        .arguments([&tree, &path])
        // dpkg-deb sets no file's time to a later one than this.
        .environment("SOURCE_DATE_EPOCH", moment.to_string())
        .read()?;
    Ok(path)
}

/// The newest of packaging/debian/changelog, which must be of the version that is built.
fn version(changelog: &str) -> Result<String> {
    let newest = changelog.lines().next().and_then(|line| line.strip_prefix("rocworker ("));
    let newest = newest.and_then(|rest| rest.split(')').next());
    let newest =
        newest.with_context(|| format!("{SOURCE}/changelog does not begin with `rocworker (VERSION)`"))?;
    let upstream = newest.rsplit_once('-').map_or(newest, |(upstream, _)| upstream);
    ensure!(
        upstream == VERSION,
        "{SOURCE}/changelog begins with {newest}, and Cargo.toml has {VERSION}: add an entry for it"
    );
    Ok(newest.to_owned())
}

fn content(parts: &Parts) -> Files {
    let mut files = parts.placed(&Places {
        program: "usr/bin",
        wrapper: "usr/lib/rocworker",
        share: "usr/share",
        zsh: "vendor-completions",
        samples: "usr/share/rocworker/",
        docs: "usr/share/doc/rocworker",
    });
    files.put_all("usr/lib/systemd/system", &parts.units);
    files
}

/// The checksums in the format that `dpkg --verify` reads.
fn sums(files: &Files) -> String {
    files.iter().map(|(path, file)| format!("{}  {path}\n", hex(&Md5::digest(&file.bytes)))).collect()
}

/// A maintainer script with what the program says of itself.
fn filled(name: &str, text: &str, parts: &Parts) -> Result<String> {
    let names = |only: &dyn Fn(&str) -> bool| {
        let units = parts.units.iter().filter(|(_, text)| only(&String::from_utf8_lossy(text)));
        units.map(|(unit, _)| unit.as_str()).collect::<Vec<_>>().join(" ")
    };
    // A oneshot unit has ended by itself: it belongs to a start of the machine, and is neither stopped nor
    // started.
    let goes_on = |text: &str| !text.lines().any(|line| line == "Type=oneshot");
    let text = text
        .replace("@FORMATS@", parts.formats.trim_end())
        .replace("@UNITS@", &names(&|_| true))
        .replace("@SERVICES@", &names(&goes_on));
    match text.split('@').nth(1) {
        Some(left) if left.bytes().all(|byte| byte.is_ascii_uppercase()) => {
            bail!("{SOURCE}/{name} has @{left}@, for which there is nothing")
        }
        _ => Ok(text),
    }
}

/// The package's control file. Programs do not depend on the order of its fields; the description comes last,
/// as dpkg writes it.
fn control(own: &str, version: &str, architecture: &str, kib: usize) -> Result<String> {
    let at = own.find("\nSuggests:").context("packaging/debian/control has no Suggests")?;
    let (head, rest) = own.split_at(at + 1);
    Ok(format!("{head}Version: {version}\nArchitecture: {architecture}\nInstalled-Size: {kib}\n{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changelog_of_another_version_is_refused() {
        assert_eq!(version(&format!("rocworker ({VERSION}-1) unstable;\n")).unwrap(), format!("{VERSION}-1"));
        let error = version("rocworker (9.9.9-1) unstable;\n").unwrap_err().to_string();
        assert!(error.contains("9.9.9-1") && error.contains("add an entry"), "{error}");
        assert!(version("").is_err());
    }

    #[test]
    fn the_description_is_the_end_of_the_control_file() {
        let own = "Package: rocworker\nSuggests: docker.io\nDescription: a\n b\n";
        let text = control(own, "1-1", "amd64", 5).unwrap();
        assert_eq!(
            text,
            "Package: rocworker\nVersion: 1-1\nArchitecture: amd64\nInstalled-Size: 5\n\
             Suggests: docker.io\nDescription: a\n b\n"
        );
        assert!(control("Package: rocworker\n", "1", "amd64", 5).is_err());
    }
}
