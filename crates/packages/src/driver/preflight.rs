//! What to bring for AMD's driver to be built and loaded, or the first reason why that cannot end well. Pure: nothing is
//! touched, nothing asked.

use config::{Build, Release};
use inventory::Around;
use reconcile::command::Programs;
use reconcile::dpkg::There;
use reconcile::{Package, Status, Want};
use root::Root;

use super::dkms::State;
use super::pairing::{known, rocm_of};
use super::{Driver, Enrolled, Kernel, Offered, Signing, Stop, offered};

/// AMD's driver as a package: its source, which dkms builds.
pub const PACKAGE: &str = "amdgpu-dkms";

/// The package that AMD's scripts for the driver need.
pub(super) const SETUPTOOLS: &str = "python3-setuptools";

/// A package that the driver needs. An installed one stays named: apply removes what is named no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bring {
    pub package: Package,
    pub why: &'static str,
    /// Whether only its repository comes now: until apt has read it, apt would take another release from another source.
    pub waits: bool,
}

/// What decides about the driver, read where the configuration asks for one.
#[derive(Debug)]
pub struct Ground {
    pub driver: Driver,
    /// The versions that apt offers of missing packages, or why apt does not tell; `None`: apt was not asked.
    pub offered: Result<Option<Offered>, String>,
}

impl Ground {
    /// Reads the machine beneath `root`. apt is asked only of packages that are missing for the driver to `build`, and
    /// never in a container.
    #[must_use]
    pub fn read(
        root: &Root,
        programs: Option<&Programs>,
        build: Option<&Build>,
        around: Option<&Around>,
    ) -> Self {
        let driver = Driver::read(root);
        let build = build.filter(|_| !matches!(around, Some(Around::Container(_))));
        let questions = build.map(|build| questions(build, &driver)).unwrap_or_default();
        let offered = match programs {
            Some(programs) if !questions.is_empty() => offered::ask(programs, &questions).map(Some),
            _ => Ok(None),
        };
        Self { driver, offered }
    }

    fn offered(&self) -> Result<Option<&Offered>, Stop> {
        let offered = self.offered.as_ref().map_err(|why| {
            let why = format!("whether its packages are to be had is not known: {why}");
            Stop::new(why, "mend that, and apply again")
        })?;
        Ok(offered.as_ref())
    }
}

/// Whether the driver is there, built, and where modprobe looks: there is nothing to bring.
fn is_done(build: &Build, driver: &Driver) -> bool {
    let (Ok(kernel), Ok(dkms)) = (&driver.kernel, &driver.dkms) else { return false };
    let is_whole = driver.package(PACKAGE).is_some_and(|it| it.status == Status::Installed);
    let is_it = match build {
        Build::Release(wanted) => driver.has(wanted),
        Build::Installer => true,
    };
    is_whole && is_it && matches!(dkms.state(&kernel.release), State::Installed(..))
}

/// The packages whose versions apt has to be asked for before [`preflight`] can answer; none where everything is
/// installed.
#[must_use]
pub fn questions(build: &Build, driver: &Driver) -> Vec<String> {
    let (Ok(_), Ok(kernel)) = (&driver.packages, &driver.kernel) else { return Vec::new() };
    let is_unfit = matches!(build, Build::Release(_)) && driver.distribution.is_err();
    if is_unfit || is_done(build, driver) {
        return Vec::new();
    }
    let parts = parts(kernel, is_ubuntu(driver)).into_iter().filter(|part| part.is_wanted);
    let parts = parts.map(|part| part.package).filter(|name| driver.package(name).is_none());
    let package = match build {
        Build::Release(wanted) if !driver.has(wanted) => Some(PACKAGE.to_owned()),
        Build::Release(_) | Build::Installer => None,
    };
    parts.chain(package).collect()
}

fn is_ubuntu(driver: &Driver) -> bool {
    driver.distribution.as_ref().is_ok_and(|it| it.is_ubuntu())
}

/// What to bring for the driver of this release, in this order. `has_repository`: whether AMD's repository of it is one
/// of apt's sources already; apt reports nothing of one that is still to come.
///
/// # Errors
/// The first reason why the driver cannot be installed or loaded.
pub fn preflight(
    wanted: &Release,
    around: Option<&Around>,
    ground: &Ground,
    has_repository: bool,
) -> Result<Vec<Bring>, Stop> {
    let (driver, offered) = (&ground.driver, ground.offered()?);
    if let Some(Around::Container(name)) = around {
        return Err(Stop::new(
            format!("this is a container ({name}), and a container has no kernel of its own"),
            "install it on the host, and write driver.install: keep here",
        ));
    }
    let by_other_means = "install the driver by the distribution's own means, and write driver.install: keep";
    let distribution = driver.distribution.as_ref().map_err(|why| Stop::new(why, by_other_means))?;
    let (version, waits) = version(wanted, driver, offered, distribution.suite, has_repository)?;
    let mut bring = ingredients(&Build::Release(wanted.clone()), ground)?;
    let why = "AMD's driver, which dkms builds for the running kernel";
    let package = Package { want: Want::Present { version }, ..Package::present(PACKAGE) };
    bring.push(Bring { package, why, waits });
    Ok(bring)
}

/// What dkms needs to build the driver, and what the driver's own scripts need, in this order.
///
/// # Errors
/// The first reason why the driver could not be built or loaded.
pub fn ingredients(build: &Build, ground: &Ground) -> Result<Vec<Bring>, Stop> {
    let (driver, offered) = (&ground.driver, ground.offered()?);
    let kernel = driver.kernel.as_ref().map_err(Stop::unreadable)?;
    let there = driver.packages.as_ref().map_err(Stop::unreadable)?;
    let is_done = is_done(build, driver);
    if !is_done {
        can_be_loaded(driver)?;
    }
    let mut bring = Vec::new();
    for Part { package, why, is_wanted, else_stop } in parts(kernel, is_ubuntu(driver)) {
        let is_missing = !is_done && is_wanted;
        let is_to_be_had = offered.is_none_or(|offered| offered.contains_key(&package));
        if there.contains_key(&package) || is_missing && is_to_be_had {
            bring.push(Bring { package: Package::present(package), why, waits: false });
        } else if let (true, Some(stop)) = (is_missing, else_stop) {
            return Err(stop);
        }
    }
    // What an earlier apply installed for a kernel goes with that kernel, not with a start into a newer one.
    let of_others = kernel.packages_of_others().into_iter().filter(|name| there.contains_key(name));
    bring.extend(of_others.map(|package| {
        let why = "another kernel that is installed has the driver by it";
        Bring { package: Package::present(package), why, waits: false }
    }));
    let headers = kernel.headers_package();
    if !is_done && !kernel.has_headers && there.contains_key(&headers) {
        let folder = format!("/lib/modules/{}/build/include", kernel.release);
        return Err(Stop::new(
            format!("{headers} is installed, and {folder} is not there"),
            format!("apt-get install --reinstall {headers}, and apply again"),
        ));
    }
    Ok(bring)
}

/// A package beside the driver's own.
struct Part {
    package: String,
    why: &'static str,
    /// Whether rocworker installs the package where it is missing.
    is_wanted: bool,
    /// Why nothing is installed where apt cannot bring the package; `None`: most machines do without.
    else_stop: Option<Stop>,
}

/// The packages beside the driver's own, in the order in which they are installed: what builds the driver comes first.
fn parts(kernel: &Kernel, is_ubuntu: bool) -> Vec<Part> {
    let [headers, extra] = kernel.packages();
    let no_headers = Stop::new(
        format!("it is built with the running kernel's headers, and apt has no {headers}"),
        "run apt-get update; where the mirror has them no more, install the newest kernel with its headers, reboot into \
         it, and apply again",
    );
    let no_setuptools = Stop::new(
        format!("its scripts need {SETUPTOOLS}, and apt does not have it"),
        "run apt-get update, and see whether the distribution's own repositories are among apt's sources",
    );
    let part = |package, why, is_wanted, else_stop| Part { package, why, is_wanted, else_stop };
    let compiler = kernel.compiler.clone();
    let compiler = compiler.map(|name| part(name, "the running kernel was built with it", true, None));
    [
        Some(part(headers, "the driver is built with it", !kernel.has_headers, Some(no_headers))),
        Some(part(extra, "the driver needs modules of it", is_ubuntu, None)),
        compiler,
        Some(part(SETUPTOOLS.to_owned(), "the driver's scripts need it", true, Some(no_setuptools))),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The version of the driver's package to install; `None`: the installed one stays or, where apt does not tell, any
/// comes. The second value: whether apt has only other releases, so that the package waits for AMD's repository.
fn version(
    wanted: &Release,
    driver: &Driver,
    offered: Option<&Offered>,
    suite: &str,
    has_repository: bool,
) -> Result<(Option<String>, bool), Stop> {
    let unknown = |what: String| {
        Stop::new(
            format!("{what}, and rocworker does not know what would become of it"),
            "remove that driver by the means by which it came, or keep it and write driver.install: keep",
        )
    };
    if let Some(file) = driver.strays.as_ref().map_err(Stop::unreadable)?.first() {
        let file = file.display();
        return Err(unknown(format!("{file} is there, which belongs to no package and not to dkms")));
    }
    let versions = offered.and_then(|offered| offered.get(PACKAGE)).map_or(&[][..], Vec::as_slice);
    let of_wanted = versions.iter().find(|it| Release::of_package(it).as_ref() == Some(wanted)).cloned();
    let is_not_to_be_had = of_wanted.is_none() && has_repository && offered.is_some();
    let Some(There { version, .. }) = driver.package(PACKAGE) else {
        let dkms = driver.dkms.as_ref().map_err(Stop::unreadable)?;
        if let Some(other) = dkms.versions.last() {
            let name = &other.name;
            return Err(unknown(format!("dkms has amdgpu {name}, which no package {PACKAGE} has installed")));
        }
        if is_not_to_be_had {
            return Err(Stop::new(
                format!("apt has no {PACKAGE} of the driver {wanted}"),
                format!(
                    "run apt-get update, and see whether AMD has the driver for this release of the distribution \
                     (https://repo.radeon.com/amdgpu/{wanted}/ubuntu {suite}); name another driver.version where it has \
                     not"
                ),
            ));
        }
        let waits = of_wanted.is_none() && !versions.is_empty();
        return Ok((of_wanted, waits));
    };
    match Release::of_package(version) {
        Some(release) if release == *wanted => Ok((None, false)),
        Some(release) if rocm_of(&release).is_some() && is_not_to_be_had => Err(Stop::new(
            format!("the driver {release} is there ({PACKAGE} {version}), and apt has no {wanted}"),
            format!("run apt-get update; where apt has it not even then, write driver.version: {release}"),
        )),
        Some(release) if rocm_of(&release).is_some() => Ok((of_wanted, false)),
        _ => Err(unknown(format!(
            "{PACKAGE} {version} is there, which is none of the drivers that rocworker knows ({})",
            known()
        ))),
    }
}

/// Checks that nothing keeps a module from being loaded that dkms has built and signed.
fn can_be_loaded(driver: &Driver) -> Result<(), Stop> {
    if let Some(hindrance) = driver.hindrances.found.first() {
        let why = format!("{:?} in {} keeps amdgpu from being loaded", hindrance.says, hindrance.place);
        return Err(Stop::new(why, hindrance.remedy));
    }
    if let Some((_, error)) = driver.hindrances.unread.first() {
        return Err(Stop::unreadable(format!("whether amdgpu may be loaded is not known: {error}")));
    }
    let (because, certificate, enrolled) = match &driver.signing {
        Signing::NotNeeded => return Ok(()),
        Signing::Unknown(why) => {
            let why = format!("whether the kernel would load the module of dkms is not known: {why}");
            return Err(Stop::unreadable(why));
        }
        Signing::Needed { because, certificate, enrolled } => (because, certificate, enrolled),
    };
    let import = format!("mokutil --import {certificate}, reboot, and confirm it at the machine's screen");
    let (why, remedy) = match enrolled {
        Enrolled::Yes => return Ok(()),
        Enrolled::No => ("and the machine does not trust the key that dkms signs with".to_owned(), import),
        Enrolled::NotMade => (
            format!("and dkms has no key to sign with ({certificate} is not there)"),
            format!("{}, then {import}", make(certificate)),
        ),
    };
    Err(Stop::new(format!("{because}, {why}"), remedy))
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
