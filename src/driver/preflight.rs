//! What to bring for AMD's driver to be built and loaded, or the first reason why that cannot end well. Pure: nothing is
//! touched, nothing asked.

use std::collections::BTreeMap;

use reconcile::Status;
use reconcile::dpkg::There;

use super::dkms::State;
use super::pairing::{known, rocm_of};
use super::{Distribution, Driver, Enrolled, Kernel, Offered, Reason, Release, Signing, Stop};
use crate::host::Around;

/// AMD's driver as a package: its source, which dkms builds.
pub const PACKAGE: &str = "amdgpu-dkms";

/// What AMD has installed beside the driver; its scripts need it.
const SETUPTOOLS: &str = "python3-setuptools";

/// A package that the driver takes. It stays named once it is installed: what is named no more is taken back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bring {
    pub package: String,
    /// `None`: any.
    pub version: Option<String>,
    pub why: &'static str,
    /// Whether only its repository comes now: until apt has read it, apt would take another release from another source.
    pub waits: bool,
}

/// What apt has.
#[derive(Debug, Clone, Copy)]
pub struct Apt<'a> {
    /// Its answer to [`questions`]; `None` where it was not asked, as beneath another Root than `/`.
    pub offered: Option<&'a Offered>,
    /// Whether AMD's repository of the wanted driver is one of its sources already. Where it is still to come, nobody
    /// knows what it has.
    pub has_repository: bool,
}

/// Every package that matters to the driver for this kernel.
pub(super) fn packages(kernel: Option<&Kernel>) -> Vec<String> {
    let mut names = vec![PACKAGE.to_owned(), SETUPTOOLS.to_owned()];
    if let Some(kernel) = kernel {
        names.extend([kernel.headers_package(), kernel.modules_extra_package()]);
        names.extend(kernel.compiler.clone());
        names.extend(kernel.packages_of_others());
    }
    names
}

/// Whether the driver of this release is there, built, and where modprobe looks: there is nothing to bring.
fn is_done(wanted: &Release, driver: &Driver) -> bool {
    let (Ok(there), Ok(kernel), Ok(dkms)) = (&driver.packages, &driver.kernel, &driver.dkms) else {
        return false;
    };
    let is_whole = there.get(PACKAGE).is_some_and(|it| {
        it.status == Status::Installed && Release::of_package(&it.version).as_ref() == Some(wanted)
    });
    is_whole && matches!(dkms.state(&kernel.release), State::Installed(..))
}

/// Of which packages apt has to be asked whether they are to be had, before [`preflight`] can answer; none where
/// everything is there.
#[must_use]
pub fn questions(wanted: &Release, driver: &Driver) -> Vec<String> {
    let (Ok(there), Ok(kernel), Ok(distribution)) = (&driver.packages, &driver.kernel, &driver.distribution)
    else {
        return Vec::new();
    };
    if is_done(wanted, driver) {
        return Vec::new();
    }
    let is_missing = |name: &String| match there.get(name) {
        Some(it) if name == PACKAGE => Release::of_package(&it.version).as_ref() != Some(wanted),
        Some(_) => false,
        None => true,
    };
    let parts =
        parts(kernel, *distribution).into_iter().filter(|part| part.is_wanted).map(|part| part.package);
    parts.chain([PACKAGE.to_owned()]).filter(is_missing).collect()
}

/// What to bring for the driver of this release, in this order.
///
/// # Errors
/// The first reason why it cannot end well.
pub fn preflight(
    wanted: &Release,
    around: Option<&Around>,
    driver: &Driver,
    apt: Apt<'_>,
) -> Result<Vec<Bring>, Stop> {
    let offered = apt.offered;
    if let Some(Around::Container(name)) = around {
        return Err(Stop::new(
            Reason::Container,
            format!("this is a container ({name}), and a container has no kernel of its own"),
            "install it on the host, and write driver.install: keep here",
        ));
    }
    let distribution = driver.distribution.as_ref().map_err(|why| {
        Stop::new(
            Reason::Distribution,
            why,
            "install the driver by the distribution's own means, and write driver.install: keep",
        )
    })?;
    let kernel = driver.kernel.as_ref().map_err(Stop::unreadable)?;
    let there = driver.packages.as_ref().map_err(Stop::unreadable)?;
    let state = driver.dkms.as_ref().map_err(Stop::unreadable)?.state(&kernel.release);
    let version = version(wanted, driver, there, &state, apt)?;
    let is_done = is_done(wanted, driver);
    if !is_done {
        can_be_loaded(driver)?;
    }
    let mut bring = Vec::new();
    for part in parts(kernel, *distribution) {
        let is_there = there.contains_key(&part.package);
        let is_to_be_had = offered.is_none_or(|offered| offered.has(&part.package));
        if is_there || (!is_done && part.is_wanted && is_to_be_had) {
            bring.push(Bring { package: part.package, version: None, why: part.why, waits: false });
        } else if let (false, true, Some(stop)) = (is_done, part.is_wanted, part.else_stop) {
            return Err(stop);
        }
    }
    // What an earlier apply has brought for a kernel goes with that kernel, not with a start into a newer one.
    let of_others = kernel.packages_of_others().into_iter().filter(|name| there.contains_key(name));
    bring.extend(of_others.map(|package| {
        let why = "another kernel that is installed has the driver by it";
        Bring { package, version: None, why, waits: false }
    }));
    if !is_done && !kernel.has_headers && there.contains_key(&kernel.headers_package()) {
        return Err(headers_without_folder(kernel));
    }
    if !there.contains_key(PACKAGE) && apt.has_repository && offered.is_some() && version.is_none() {
        return Err(not_offered(wanted, *distribution));
    }
    let is_elsewhere = offered.is_some_and(|offered| !offered.versions(PACKAGE).is_empty());
    let waits = !there.contains_key(PACKAGE) && version.is_none() && is_elsewhere;
    bring.push(Bring {
        package: PACKAGE.to_owned(),
        version,
        waits,
        why: "AMD's driver, which dkms builds for the running kernel",
    });
    Ok(bring)
}

/// A package beside the driver's own.
struct Part {
    package: String,
    why: &'static str,
    /// Whether it has to come where it is not there.
    is_wanted: bool,
    /// What is said where it cannot come; `None`: most machines do without.
    else_stop: Option<Stop>,
}

/// In the order in which they come: what the driver is built with before the driver.
fn parts(kernel: &Kernel, distribution: Distribution) -> Vec<Part> {
    let headers = kernel.headers_package();
    let no_headers = Stop::new(
        Reason::NoHeaders,
        format!("it is built with the running kernel's headers, and apt has no {headers}"),
        "run apt-get update; where the mirror has them no more, install the newest kernel with its headers, reboot into \
         it, and apply again",
    );
    let no_setuptools = Stop::new(
        Reason::NotOffered,
        format!("its scripts need {SETUPTOOLS}, and apt does not have it"),
        "run apt-get update, and see whether the distribution's own repositories are among apt's sources",
    );
    let part = |package, why, is_wanted, else_stop| Part { package, why, is_wanted, else_stop };
    let mut parts = vec![part(headers, "the driver is built with it", !kernel.has_headers, Some(no_headers))];
    let extra = kernel.modules_extra_package();
    parts.push(part(extra, "the driver stands on modules of it", distribution.has_modules_extra(), None));
    if let Some(compiler) = &kernel.compiler {
        parts.push(part(compiler.clone(), "the running kernel was built with it", true, None));
    }
    parts.push(part(SETUPTOOLS.to_owned(), "the driver's scripts need it", true, Some(no_setuptools)));
    parts
}

/// The version of the driver's package that has to come; `None`: the one that is there, or where apt was not asked, any.
fn version(
    wanted: &Release,
    driver: &Driver,
    there: &BTreeMap<String, There>,
    state: &State<'_>,
    apt: Apt<'_>,
) -> Result<Option<String>, Stop> {
    let unknown = |what: String| {
        Stop::new(
            Reason::UnknownDriver,
            format!("{what}, and nobody knows what would become of it"),
            "remove that driver by the means by which it came, or keep it and write driver.install: keep",
        )
    };
    if let Some(file) = driver.strays.as_ref().map_err(Stop::unreadable)?.first() {
        return Err(unknown(format!(
            "{} is there, which belongs to no package and not to dkms",
            file.display()
        )));
    }
    let of_wanted = || {
        let versions = apt.offered.map_or(&[][..], |offered| offered.versions(PACKAGE));
        versions.iter().find(|version| Release::of_package(version).as_ref() == Some(wanted)).cloned()
    };
    let Some(package) = there.get(PACKAGE).filter(|it| it.status != Status::ConfigFiles) else {
        return match state {
            State::Unknown => Ok(of_wanted()),
            State::Added(version) | State::Built(version, _) | State::Installed(version, _) => Err(unknown(
                format!("dkms has amdgpu {}, which no package {PACKAGE} has brought", version.name),
            )),
        };
    };
    let version = &package.version;
    match Release::of_package(version) {
        Some(release) if release == *wanted => Ok(None),
        Some(release) if rocm_of(&release).is_some() => match of_wanted() {
            Some(version) => Ok(Some(version)),
            None if !apt.has_repository || apt.offered.is_none() => Ok(None),
            None => Err(Stop::new(
                Reason::OtherRelease,
                format!("the driver {release} is there ({PACKAGE} {version}), and apt has no {wanted}"),
                format!(
                    "run apt-get update; where apt has it not even then, write driver.version: {release}"
                ),
            )),
        },
        _ => Err(unknown(format!(
            "{PACKAGE} {version} is there, which is none of the drivers that rocworker knows ({})",
            known()
        ))),
    }
}

/// Nothing keeps a module from being loaded that dkms has built and signed.
fn can_be_loaded(driver: &Driver) -> Result<(), Stop> {
    if let Some(hindrance) = driver.hindrances.found.first() {
        let why = format!("{:?} in {} keeps amdgpu from being loaded", hindrance.says, hindrance.place);
        return Err(Stop::new(Reason::KeptOut, why, hindrance.remedy));
    }
    if let Some((_, error)) = driver.hindrances.unread.first() {
        return Err(Stop::unreadable(format!("nobody knows whether amdgpu may be loaded: {error}")));
    }
    match &driver.signing {
        Signing::NotNeeded => Ok(()),
        Signing::Unknown(why) => {
            Err(Stop::unreadable(format!("nobody knows whether the kernel takes unsigned modules: {why}")))
        }
        Signing::Needed { because, certificate, enrolled } => trusted(because, certificate, enrolled),
    }
}

fn trusted(because: &str, certificate: &str, enrolled: &Enrolled) -> Result<(), Stop> {
    let import = format!("mokutil --import {certificate}, reboot, and confirm it at the machine's screen");
    let (why, remedy) = match enrolled {
        Enrolled::Yes => return Ok(()),
        Enrolled::No => ("and the machine does not trust the key that dkms signs with".to_owned(), import),
        Enrolled::NotMade => (
            format!("and dkms has no key to sign with ({certificate} is not there)"),
            format!("{}, then {import}", make(certificate)),
        ),
        Enrolled::Unknown(why) => (
            format!("and whether it trusts the key of dkms cannot be told: {why}"),
            "apply again as root".to_owned(),
        ),
    };
    Err(Stop::new(Reason::Signature, format!("{because}, {why}"), remedy))
}

/// What makes the key that belongs to a certificate: shim's script on Ubuntu, openssl elsewhere (dkms' own way).
fn make(certificate: &str) -> String {
    if certificate.starts_with("/var/lib/shim-signed/") {
        return "update-secureboot-policy --new-key".to_owned();
    }
    let key = certificate.replace("mok.pub", "mok.key");
    format!(
        "openssl req -new -x509 -nodes -days 36500 -subj \"/CN=DKMS module signing key\" -newkey rsa:2048 -keyout {key} \
         -outform DER -out {certificate}"
    )
}

fn headers_without_folder(kernel: &Kernel) -> Stop {
    let package = kernel.headers_package();
    Stop::new(
        Reason::NoHeaders,
        format!("{package} is installed, and /lib/modules/{}/build/include is not there", kernel.release),
        format!("apt-get install --reinstall {package}, and apply again"),
    )
}

fn not_offered(wanted: &Release, distribution: Distribution) -> Stop {
    Stop::new(
        Reason::NotOffered,
        format!("apt has no {PACKAGE} of the driver {wanted}"),
        format!(
            "run apt-get update, and see whether AMD has the driver for this release of the distribution \
             (https://repo.radeon.com/amdgpu/{wanted}/ubuntu {}); name another driver.version where it has not",
            distribution.suite()
        ),
    )
}
