//! AMD's own driver as dkms builds it: whether it is built for the running kernel, the one that runs, and one that goes
//! with the machine's ROCm; where the configuration asks for it, whether it can be installed.

use check::{APPLY, About, Check, NO_COMMANDS};
use config::{Build, Release};
use packages::Packages;
use packages::desired::driver::packages;
use packages::driver::{
    Driver, Enrolled, Ground, PACKAGE, Signing, Stop, Verdict, asked_for, ingredients, installed, look,
    pairing,
};
use reconcile::Store;

use super::machine::Subject;

const NAME: &str = "dkms";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let about = About::all(NAME);
    subject.needs_host(about.clone(), "the driver is the host's: nothing is built for it in a container")?;
    subject.needs_amd(about.clone(), "there is no AMD GPU that needs a driver")?;
    let (build, around) = (subject.config.driver.on(), subject.facts.inventory.virtualization.as_ref());
    let ground = Ground::read(subject.root, subject.programs, build, around);
    let mut checks: Vec<Check> = match build {
        Some(Build::Release(wanted)) => vec![installation(subject, &ground, wanted)],
        Some(Build::Installer) => vec![by_installer(&ground)],
        None => Vec::new(),
    };
    let driver = &ground.driver;
    match (&driver.dkms, &driver.strays) {
        (Ok(dkms), Ok(strays)) if dkms.versions.is_empty() && strays.is_empty() => {}
        (Ok(dkms), Err(_)) if dkms.versions.is_empty() => checks.push(about.clone().skipped(
            "dkms has no amdgpu; the running kernel is unknown, and so is whether it has another amdgpu module",
        )),
        (Ok(_), _) => checks.extend(there(subject, driver)),
        (Err(why), _) => checks.push(about.clone().skipped(why)),
    }
    if checks.is_empty() {
        checks.push(about.skipped("dkms has no amdgpu, and needs none for the driver above"));
    }
    Ok(checks)
}

/// What an apply would say of the driver that is asked for.
fn installation(subject: &Subject<'_>, ground: &Ground, wanted: &Release) -> Check {
    let about = About::one(NAME, "driver.install");
    match packages(subject.config, subject.facts, ground, &Packages::read(subject.root), wanted) {
        Ok(_) if ground.driver.has(wanted) => about.ok(format!("the driver {wanted} is installed")),
        Ok(_) => about.warning(
            format!("the driver {wanted} is asked for and not installed, and nothing speaks against it"),
            APPLY,
        ),
        Err(stop) => failed(about, stop),
    }
}

/// What an apply would say of the driver that amdgpu-install brings.
fn by_installer(ground: &Ground) -> Check {
    let about = About::one(NAME, "rocm.install");
    match ingredients(&Build::Installer, ground) {
        Err(stop) => failed(about, stop),
        Ok(_) if ground.driver.package(PACKAGE).is_some() => about.ok("amdgpu-install's driver is installed"),
        Ok(_) => about.warning(
            "amdgpu-install's driver is asked for and not installed, and nothing speaks against it",
            APPLY,
        ),
    }
}

fn failed(about: About, stop: Stop) -> Check {
    about.failed(stop.why, stop.remedy)
}

/// The checks of a driver that dkms built, or that no package brought.
fn there(subject: &Subject<'_>, driver: &Driver) -> Vec<Check> {
    let mut checks = vec![runs(subject, driver)];
    if let Ok(kernel) = &driver.kernel {
        let about = About::one(NAME, "headers");
        let release = &kernel.release;
        checks.push(if kernel.has_headers {
            about.ok(format!("those of the running kernel {release} are there"))
        } else {
            about.warning(
                format!("those of the running kernel {release} are not there: dkms cannot build for it"),
                if subject.config.driver_release().is_some() {
                    APPLY.to_owned()
                } else {
                    format!("apt-get install {}", kernel.headers_package())
                },
            )
        });
    }
    checks.extend(signature(driver));
    checks.extend(pair(driver));
    for file in driver.strays.iter().flatten() {
        let file = file.display().to_string();
        checks.push(About::one(NAME, file).warning(
            "belongs to no package and not to dkms, and modprobe prefers it to the kernel's own",
            "find out where it came from; remove it, then depmod -a, to have another driver",
        ));
    }
    checks
}

/// The check whether the driver was built and installed for this kernel, and is loaded.
fn runs(subject: &Subject<'_>, driver: &Driver) -> Check {
    let about = About::one(NAME, "amdgpu");
    let is_loaded = subject.facts.inventory.amdgpu.loaded == Ok(true);
    let Some(programs) = subject.programs else { return by_tree(about, driver, is_loaded) };
    // A reboot that is not remembered is asked for again: no reason to say nothing.
    let receipt = Store::new(subject.root).receipt().unwrap_or_default();
    match look(subject.root, programs, driver, &subject.facts.inventory.amdgpu, asked_for(&receipt)) {
        Ok(Verdict::Loaded) => about.ok("the module that runs is the one that dkms has built"),
        Ok(Verdict::Loadable) => about.ok(
            "dkms has built it, and modprobe takes that build; the driver's check says why it is not loaded",
        ),
        Ok(Verdict::Reboot(_)) => about.warning(
            "the module that runs is another one than dkms has built",
            "reboot; where that changes nothing, update-initramfs -u and reboot",
        ),
        Ok(Verdict::Wrong(stop)) if is_loaded => about.warning(stop.why, stop.remedy),
        Ok(Verdict::Wrong(stop)) => failed(about, stop),
        Err(why) => about.skipped(why),
    }
}

/// The check by dkms' folders, where kmod gives no answer.
fn by_tree(about: About, driver: &Driver, is_loaded: bool) -> Check {
    let (dkms, kernel) = match (&driver.dkms, &driver.kernel) {
        (Ok(dkms), Ok(kernel)) => (dkms, &kernel.release),
        (Err(why), _) | (_, Err(why)) => return about.skipped(why),
    };
    match installed(dkms, kernel) {
        _ if dkms.versions.is_empty() => about.skipped("dkms has none"),
        Ok(name) => about.ok(format!(
            "{name} is built and installed for the running kernel {kernel}; whether it is the one that runs was not asked: \
             {NO_COMMANDS}"
        )),
        Err(stop) if is_loaded => about.warning(stop.why, stop.remedy),
        Err(stop) => failed(about, stop),
    }
}

fn signature(driver: &Driver) -> Option<Check> {
    let about = About::one(NAME, "signature");
    match &driver.signing {
        Signing::NotNeeded => None,
        Signing::Unknown(why) => Some(about.skipped(why)),
        Signing::Needed { because, certificate, enrolled } => Some(match enrolled {
            Enrolled::Yes => about.ok(format!("{because}, and {certificate} is enrolled")),
            Enrolled::No | Enrolled::NotMade => about.warning(
                format!("{because}, and {certificate}, which dkms signs with, is not enrolled: its modules are refused"),
                format!("mokutil --import {certificate}, reboot, and confirm it at the machine's screen"),
            ),
        }),
    }
}

fn pair(driver: &Driver) -> Option<Check> {
    let about = About::one(NAME, "pairing");
    Some(match pairing(&driver.release()?, driver.rocm.as_ref()) {
        Ok(text) => about.ok(text),
        Err(text) => about.warning(text, REMEDY),
    })
}

const REMEDY: &str =
    "take a pair that came out together (docs/packages.md), or try it with the programs that will run";
