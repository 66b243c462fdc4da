//! A signed apt repository: a pool of packages, and releases of it.

use std::fmt::Write as _;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use sha2::{Digest as _, Sha256};
use tempfile::TempDir;

use crate::control::Control;
use crate::key::Key;
use crate::package::Package;

/// The architecture whose index is written; what Debian calls that of this project's machines.
const ARCHITECTURE: &str = "amd64";

/// A suite with one component. Packages are added; a release is the state at one moment.
///
/// A server serves the folder of a release, not that of the repository, so that an older release can be
/// served later.
#[derive(Debug)]
pub struct Repository {
    folder: TempDir,
    suite: String,
    component: String,
    origin: String,
    packages: Vec<Entry>,
    releases: u32,
}

/// A package in the pool.
#[derive(Clone, Debug)]
struct Entry {
    control: Control,
    file: PathBuf,
}

/// A release's dates: when it was made, and until when it is valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dates {
    pub made: SystemTime,
    pub valid_until: Option<SystemTime>,
}

impl Dates {
    /// Made so long ago, without an end.
    ///
    /// # Panics
    /// Where that is before the clock's first moment.
    pub fn ago(age: Duration) -> Self {
        Self { made: SystemTime::now().checked_sub(age).unwrap(), valid_until: None }
    }

    /// Made so long ago, to hold until so long ago.
    ///
    /// # Panics
    /// Where [`Dates::ago`] panics.
    pub fn ended(age: Duration, since: Duration) -> Self {
        Self { valid_until: SystemTime::now().checked_sub(since), ..Self::ago(age) }
    }
}

/// apt's own user has to get through to what a test serves and shares.
pub(crate) fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, fs::Permissions::from_mode(0o755)).unwrap();
}

impl Repository {
    /// A repository without packages. A pin can name the origin (apt_preferences(5), `o=`).
    ///
    /// # Panics
    /// Where no folder can be made.
    pub fn new(origin: &str, suite: &str, component: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        // apt's own user must get in where a test reads it by file: or copy:.
        open_to_all(folder.path());
        Self {
            folder,
            suite: suite.to_owned(),
            component: component.to_owned(),
            origin: origin.to_owned(),
            packages: Vec::new(),
            releases: 0,
        }
    }

    pub fn suite(&self) -> &str {
        &self.suite
    }

    pub fn component(&self) -> &str {
        &self.component
    }

    /// Builds a package, to be in the releases from now on.
    ///
    /// # Panics
    /// Where it cannot be built.
    pub fn add(&mut self, package: Package) {
        let pool = self.folder.path().join("pool");
        fs::create_dir_all(&pool).unwrap();
        let file = package.build(&pool);
        self.packages.push(Entry { control: package.control().clone(), file });
    }

    /// Adds as [`Repository::add`] does, from a package's file, which stays where it is.
    ///
    /// # Panics
    /// Where dpkg-deb takes the file for no package.
    pub fn add_file(&mut self, file: &Path) {
        let mut command = Command::new("dpkg-deb");
        let output = command.arg("--field").arg(file).output().unwrap();
        assert!(output.status.success(), "{command:?}: {output:?}");
        let control = Control::parse(&String::from_utf8(output.stdout).unwrap());
        self.packages.push(Entry { control, file: file.to_owned() });
    }

    /// The repository with these packages added.
    ///
    /// # Panics
    /// Where [`Repository::add`] panics.
    #[must_use]
    pub fn with(mut self, packages: impl IntoIterator<Item = Package>) -> Self {
        packages.into_iter().for_each(|package| self.add(package));
        self
    }

    /// Leaves a package out of the releases from now on.
    pub fn remove(&mut self, name: &str, version: &str) {
        let is = |entry: &Entry, field: &str, value: &str| entry.control.get(field) == Some(value);
        self.packages.retain(|entry| !is(entry, "Package", name) || !is(entry, "Version", version));
    }

    /// A release of what there is now, made now, and signed.
    ///
    /// # Panics
    /// Where it cannot be written or signed.
    pub fn release(&mut self, key: &Key) -> PathBuf {
        self.release_of(Dates::ago(Duration::ZERO), Some(key))
    }

    /// Makes a release as [`Repository::release`] does, with another date, or without a signature.
    ///
    /// # Panics
    /// Where [`Repository::release`] panics.
    pub fn release_of(&mut self, dates: Dates, key: Option<&Key>) -> PathBuf {
        self.releases += 1;
        let top = self.folder.path().join(format!("release-{}", self.releases));
        let pool = top.join("pool");
        let suite = top.join("dists").join(&self.suite);
        let index = format!("{}/binary-{ARCHITECTURE}/Packages", self.component);
        fs::create_dir_all(&pool).unwrap();
        fs::create_dir_all(suite.join(&index).parent().unwrap()).unwrap();

        let mut packages = String::new();
        for Entry { control, file } in &self.packages {
            let name = file.file_name().unwrap().to_str().unwrap();
            // Each release has a copy of the file, so that a test can spoil one release alone.
            fs::copy(file, pool.join(name)).unwrap();
            let bytes = fs::read(file).unwrap();
            let entry = control
                .clone()
                .with("Filename", &format!("pool/{name}"))
                .with("Size", &bytes.len().to_string())
                .with("SHA256", &sha256(&bytes));
            writeln!(packages, "{}", entry.text()).unwrap();
        }
        fs::write(suite.join(&index), &packages).unwrap();

        let release = suite.join("Release");
        fs::write(&release, self.release_text(dates, &index, &packages)).unwrap();
        if let Some(key) = key {
            fs::write(suite.join("InRelease"), key.clear_signed(&release)).unwrap();
            fs::write(suite.join("Release.gpg"), key.detached(&release)).unwrap();
        }
        top
    }

    fn release_text(&self, dates: Dates, index: &str, packages: &str) -> String {
        let mut release = Control::default()
            .with("Origin", &self.origin)
            .with("Label", &self.origin)
            .with("Suite", &self.suite)
            .with("Codename", &self.suite)
            .with("Date", &date(dates.made))
            .with("Architectures", ARCHITECTURE)
            .with("Components", &self.component);
        if let Some(end) = dates.valid_until {
            release = release.with("Valid-Until", &date(end));
        }
        let line = format!("\n {} {} {index}", sha256(packages.as_bytes()), packages.len());
        release.with("SHA256", &line).text()
    }

    /// The path at which a server is asked for a file of a release.
    pub fn path_of(&self, name: &str) -> String {
        format!("/dists/{}/{name}", self.suite)
    }

    /// The index of the packages, beneath the server's own address.
    pub fn path_of_index(&self) -> String {
        self.path_of(&format!("{}/binary-{ARCHITECTURE}/Packages", self.component))
    }

    /// A line for apt's sources (sources.list(5)).
    pub fn source(&self, url: &str, keyring: &Path) -> String {
        let (suite, component) = (&self.suite, &self.component);
        format!("deb [arch={ARCHITECTURE} signed-by={}] {url} {suite} {component}\n", keyring.display())
    }
}

/// The path at which a server is asked for a package.
pub fn path_of(package: &Package) -> String {
    format!("/pool/{}", package.file_name())
}

/// The digest as `sha256sum` prints it.
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// The time as Release has it: `Sun, 22 Nov 2026 03:00:00 UTC`.
fn date(time: SystemTime) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).unwrap().as_secs();
    let mut command = Command::new("date");
    command.env("LC_ALL", "C").args([
        "--utc",
        "--date",
        &format!("@{seconds}"),
        "+%a, %d %b %Y %H:%M:%S UTC",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{command:?}: {output:?}");
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}
