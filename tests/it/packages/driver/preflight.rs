//! What would be brought for a driver, and what stops it before anything is touched.

use config::{Build, Release};
use layout::{Entry, Machine};
use packages::driver::{Driver, Ground, Offered, Stop, preflight, questions};
use reconcile::Want;

use crate::packages::driver::machines::{Come, KERNEL, PACKAGE, beneath, debian, dkms, done, status, ubuntu};

/// `apt-cache madison` of a machine whose sources have these.
fn offered(packages: &[(&str, &str)]) -> Offered {
    let line = |(name, version): &(&str, &str)| {
        format!("{name} | {version} | http://lab noble/main amd64 Packages\n")
    };
    packages::driver::offered::parse(&packages.iter().map(line).collect::<String>())
}

const ALL: [(&str, &str); 5] = [
    ("linux-headers-6.8.0-45-generic", "6.8.0-45.45"),
    ("linux-modules-extra-6.8.0-45-generic", "6.8.0-45.45"),
    ("gcc-13", "4:13.2.0-7ubuntu1"),
    ("python3-setuptools", "68.1.2-2ubuntu1"),
    ("amdgpu-dkms", PACKAGE),
];

fn without(name: &str) -> Offered {
    offered(&ALL.into_iter().filter(|(package, _)| *package != name).collect::<Vec<_>>())
}

/// What would be brought, `NAME`, `NAME=VERSION` or `NAME waits`, where AMD's repository is one of apt's sources.
fn answer(machine: &Machine, wanted: &str, offered: Option<&Offered>) -> Result<Vec<String>, Stop> {
    answer_of(machine, wanted, offered, true)
}

fn answer_of(
    machine: &Machine,
    wanted: &str,
    offered: Option<&Offered>,
    has_repository: bool,
) -> Result<Vec<String>, Stop> {
    let (_folder, root) = beneath(machine);
    let around = amdgpu::virtualization(&root);
    let ground = Ground { driver: Driver::read(&root), offered: Ok(offered.cloned()) };
    let bring = preflight(&Release::parse(wanted).unwrap(), around.as_ref(), &ground, has_repository)?;
    let named = |want: &Want| match want {
        Want::Present { version: Some(version) } => format!("={version}"),
        _ => String::new(),
    };
    let waits = |waits: bool| if waits { " waits" } else { "" };
    Ok(bring.into_iter().map(|it| it.package.name + &named(&it.package.want) + waits(it.waits)).collect())
}

fn asked(machine: &Machine, wanted: &str) -> Vec<String> {
    let (_folder, root) = beneath(machine);
    questions(&Build::Release(Release::parse(wanted).unwrap()), &Driver::read(&root))
}

#[test]
fn everything_that_the_driver_is_built_with_comes_before_it() {
    let names: Vec<&str> = ALL.map(|(name, _)| name).to_vec();
    let driver = format!("amdgpu-dkms={PACKAGE}");
    let expected = [&names[..4], &[driver.as_str()]].concat();
    assert_eq!(asked(&ubuntu(), "30.30.3"), names);
    assert_eq!(answer(&ubuntu(), "30.30.3", Some(&offered(&ALL))).unwrap(), expected);
    // Nobody was asked, as beneath another Root.
    assert_eq!(answer(&ubuntu(), "30.30.3", None).unwrap(), names);
    // Some kernels of Ubuntu's have no such package, and a machine may have the compiler under another name.
    assert_eq!(
        answer(&ubuntu(), "30.30.3", Some(&without(names[1]))).unwrap(),
        [&expected[..1], &expected[2..]].concat()
    );
    assert_eq!(
        answer(&ubuntu(), "30.30.3", Some(&without("gcc-13"))).unwrap(),
        [&expected[..2], &expected[3..]].concat()
    );
}

#[test]
fn headers_that_no_package_has_brought_are_good_and_debian_has_its_drivers_in_the_kernels_package() {
    assert_eq!(asked(&debian(), "30.30.3"), ["gcc-12", "python3-setuptools", "amdgpu-dkms"]);
    assert_eq!(answer(&debian(), "30.30.3", None).unwrap(), ["gcc-12", "python3-setuptools", "amdgpu-dkms"]);
}

#[test]
fn what_is_there_stays_named_and_apt_is_asked_nothing() {
    let names: Vec<&str> = ALL.map(|(name, _)| name).to_vec();
    assert_eq!(asked(&done(), "30.30.3"), Vec::<String>::new());
    assert_eq!(answer(&done(), "30.30.3", None).unwrap(), names);
    // A driver that is there and runs is not reverted because of what came later.
    let later = done()
        .put("/etc/modprobe.d/x.conf", "blacklist amdgpu\n")
        .put("/sys/module/module/parameters/sig_enforce", "Y\n");
    assert_eq!(answer(&later, "30.30.3", None).unwrap(), names);
    let without_headers = done().remove(&format!("/lib/modules/{KERNEL}/build"));
    assert_eq!(answer(&without_headers, "30.30.3", None).unwrap(), names);
}

#[test]
fn a_newer_kernel_takes_nothing_from_one_that_is_still_installed() {
    let newer = done()
        .put("/proc/sys/kernel/osrelease", "6.8.0-48-generic\n")
        .put("/lib/modules/6.8.0-48-generic/build/include", Entry::Directory);
    let brought = |machine: &Machine| {
        let mut bring = answer(machine, "30.30.3", None).unwrap();
        bring.retain(|name| name.ends_with("6.8.0-45-generic"));
        bring
    };
    let installed = newer.clone().put(&format!("/lib/modules/{KERNEL}/modules.builtin"), "");
    assert_eq!(brought(&installed), [ALL[0].0, ALL[1].0]);
    // What its headers and dkms have left of its folder is no kernel.
    assert_eq!(brought(&newer), Vec::<String>::new());
}

#[test]
fn another_known_release_is_replaced_where_the_wanted_one_is_to_be_had() {
    let newer = "1:6.16.13.30300400-2341068.24.04";
    let has = offered(&[("amdgpu-dkms", newer), ("amdgpu-dkms", PACKAGE)]);
    assert_eq!(asked(&done(), "30.30.4"), ["amdgpu-dkms"]);
    let bring = answer(&done(), "30.30.4", Some(&has)).unwrap();
    assert_eq!(bring.last().unwrap(), &format!("amdgpu-dkms={newer}"));
    let stop = answer(&done(), "30.30.4", Some(&offered(&[("amdgpu-dkms", PACKAGE)]))).unwrap_err();
    assert!(
        stop.why.contains("30.30.3 is there") && stop.remedy.contains("driver.version: 30.30.3"),
        "{stop}"
    );
}

#[test]
fn what_a_repository_has_that_is_still_to_come_is_known_to_nobody() {
    let to_come = without("amdgpu-dkms");
    let bring = answer_of(&ubuntu(), "30.30.3", Some(&to_come), false).unwrap();
    assert_eq!(bring, ALL.map(|(name, _)| name));
    // Another source's release would win.
    let others = offered(&[&ALL[..4], &[("amdgpu-dkms", "1:6.18.4.31400000-2400000.24.04")]].concat());
    let elsewhere = answer_of(&ubuntu(), "30.30.3", Some(&others), false);
    assert_eq!(elsewhere.unwrap().last().unwrap(), "amdgpu-dkms waits");
    // One of AMD's is there, and stays until it is known which takes its place.
    assert_eq!(answer_of(&done(), "30.30.4", Some(&to_come), false).unwrap().last().unwrap(), "amdgpu-dkms");
    let lacking = without("linux-headers-6.8.0-45-generic");
    let stop = answer_of(&ubuntu(), "30.30.3", Some(&lacking), false).unwrap_err();
    assert!(stop.why.contains("apt has no linux-headers-6.8.0-45-generic"), "{stop}");
}

/// Part of the sentence, part of what to do.
type Expected = (&'static str, &'static str);

fn stops() -> Vec<(Machine, Offered, Expected)> {
    let all = || offered(&ALL);
    let signed = "/sys/module/module/parameters/sig_enforce";
    vec![
        (
            ubuntu().put("/dev/lxd", Entry::Directory),
            all(),
            ("this is a container (lxd)", "install it on the host"),
        ),
        (
            ubuntu().put("/etc/os-release", "ID=fedora\nVERSION_ID=42\nPRETTY_NAME=\"Fedora Linux 42\"\n"),
            all(),
            (
                "this is Fedora Linux 42, and packages of AMD's are installed on Ubuntu 22.04, Ubuntu 24.04, Debian 12 only",
                "driver.install: keep",
            ),
        ),
        (ubuntu().remove("/proc/sys/kernel/osrelease"), all(), ("/proc/sys/kernel/osrelease", "apply again")),
        (
            dkms(ubuntu(), "6.3.6-1", KERNEL, Come::Installed),
            all(),
            (
                "dkms has amdgpu 6.3.6-1, which no package amdgpu-dkms has installed",
                "by the means by which it came",
            ),
        ),
        (
            ubuntu().put(
                "/var/lib/dpkg/status",
                status(&[("amdgpu-dkms", "1:6.8.5.60203-2041575.22.04")]).as_str(),
            ),
            all(),
            (
                "amdgpu-dkms 1:6.8.5.60203-2041575.22.04 is there, which is none of the drivers",
                "driver.install: keep",
            ),
        ),
        (
            ubuntu().put(&format!("/lib/modules/{KERNEL}/updates/amdgpu.ko"), "x"),
            all(),
            (
                "updates/amdgpu.ko is there, which belongs to no package and not to dkms",
                "driver.install: keep",
            ),
        ),
        (
            ubuntu().put("/etc/modprobe.d/no-gpu.conf", "# why\nblacklist amdgpu\n"),
            all(),
            ("\"blacklist amdgpu\" in /etc/modprobe.d/no-gpu.conf:2 keeps amdgpu", "remove the line"),
        ),
        (
            ubuntu().put("/proc/cmdline", "quiet nomodeset\n"),
            all(),
            ("\"nomodeset\" in /proc/cmdline", "update-grub"),
        ),
        (
            ubuntu().put("/etc/modprobe.d/folder.conf", Entry::Directory),
            all(),
            ("whether amdgpu may be loaded is not known: cannot read", "mend that"),
        ),
        (
            ubuntu().put(signed, "Y\n"),
            all(),
            (
                "(/var/lib/shim-signed/mok/MOK.der is not there)",
                "update-secureboot-policy --new-key, then mokutil --import",
            ),
        ),
        (
            debian().put(signed, "Y\n"),
            all(),
            ("dkms has no key to sign with (/var/lib/dkms/mok.pub is not there)", "openssl req"),
        ),
        (
            debian().put(signed, "Y\n").put("/var/lib/dkms/mok.pub", Entry::File(vec![3; 700])),
            all(),
            ("does not trust the key that dkms signs with", "mokutil --import /var/lib/dkms/mok.pub, reboot"),
        ),
        (
            ubuntu(),
            without("linux-headers-6.8.0-45-generic"),
            (
                "apt has no linux-headers-6.8.0-45-generic",
                "install the newest kernel with its headers, reboot",
            ),
        ),
        (
            ubuntu().put("/var/lib/dpkg/status", status(&ALL[..1]).as_str()),
            all(),
            (
                "linux-headers-6.8.0-45-generic is installed, and /lib/modules/6.8.0-45-generic/build/include is not there",
                "--reinstall linux-headers-6.8.0-45-generic",
            ),
        ),
        (
            ubuntu(),
            without("python3-setuptools"),
            ("python3-setuptools, and apt does not have it", "apt-get update"),
        ),
        (
            ubuntu(),
            without("amdgpu-dkms"),
            (
                "apt has no amdgpu-dkms of the driver 30.30.3",
                "run apt-get update, and see whether AMD has the driver",
            ),
        ),
        (
            debian(),
            offered(&[("python3-setuptools", "66"), ("amdgpu-dkms", "1:6.16.13.30300400-2341068.22.04")]),
            ("apt has no amdgpu-dkms of the driver 30.30.3", "amdgpu/30.30.3/ubuntu jammy)"),
        ),
    ]
}

#[test]
fn each_thing_that_cannot_end_well_stops_it_with_what_to_do() {
    for (machine, offered, (why, remedy)) in stops() {
        let stop = answer(&machine, "30.30.3", Some(&offered)).expect_err(why);
        assert!(stop.why.contains(why), "{why:?}: {stop}");
        assert!(stop.remedy.contains(remedy), "{remedy:?}: {stop}");
    }
}

#[test]
fn a_driver_that_is_not_built_for_a_new_kernel_is_held_against_that_kernel() {
    let next = "6.8.0-50-generic";
    let machine = done().put("/proc/sys/kernel/osrelease", format!("{next}\n").as_str());
    assert_eq!(
        asked(&machine, "30.30.3"),
        [format!("linux-headers-{next}"), format!("linux-modules-extra-{next}")]
    );
    let stop = answer(&machine, "30.30.3", Some(&offered(&[]))).unwrap_err();
    assert!(stop.why.contains(&format!("apt has no linux-headers-{next}")), "{stop}");
    let has = offered(&[("linux-headers-6.8.0-50-generic", "1")]);
    let bring = answer(&machine, "30.30.3", Some(&has)).unwrap();
    assert_eq!(bring, ["linux-headers-6.8.0-50-generic", "gcc-13", "python3-setuptools", "amdgpu-dkms"]);
}
