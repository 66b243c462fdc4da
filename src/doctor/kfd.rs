//! KFD, the driver that computing goes through: its topology, its hidden nodes, its major.

use check::{About, Check};
use inventory::{Gpu, PciAddress, Problem, Unknown};
use packages::driver::{self, Built, HSA_AMD};

use super::kfd_log::{KfdLog, Line};
use super::machine::{Subject, gpus, lacks_kfd, name_of};

const NAME: &str = "kfd";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    subject.needs_amd(About::all(NAME), "there is no AMD GPU that needs it")?;
    let log = if subject.facts.amd().any(lacks_kfd) {
        KfdLog::read(subject.root, subject.programs)
    } else {
        KfdLog::default()
    };
    let mut checks = vec![topology(subject, &log)];
    checks.extend(hidden(subject));
    checks.extend(major(subject));
    let inside = subject.facts.amd().filter(|gpu| !subject.is_left_outside(gpu));
    checks.extend(inside.filter_map(|gpu| of_gpu(subject, &log, gpu)));
    Ok(checks)
}

fn topology(subject: &Subject<'_>, log: &KfdLog) -> Check {
    let about = About::one(NAME, "topology");
    match &subject.facts.inventory.kfd.topology {
        Ok(()) => {
            let known = subject.facts.amd().filter(|gpu| gpu.kfd_node.is_some()).count();
            about.ok(format!("it knows {}", gpus(known)))
        }
        Err(reason) => match subject.facts.inventory.amdgpu.loaded {
            Ok(false) => about
                .failed(format!("there is none: {reason}"), "it comes with amdgpu: see to the driver first"),
            _ => not_started(about, subject, log, reason),
        },
    }
}

/// amdgpu runs without its KFD.
fn not_started(about: About, subject: &Subject<'_>, log: &KfdLog, reason: &Unknown) -> Check {
    let failed =
        |evidence: String, remedy: &str| about.clone().failed(evidence, where_it_is(subject, remedy));
    if let Some(parameter) = &subject.facts.inventory.kfd.parameter {
        return failed(format!("KFD did not start: {parameter}"), &corrected(subject, parameter.name));
    }
    if !reason.is_absent() {
        return failed(format!("whether there is one cannot be seen: {reason}"), AS_ROOT);
    }
    if let Some(line) = log.unnamed() {
        return failed(evidence_of(line), &line.remedy);
    }
    let release = subject.root.read_text("/proc/sys/kernel/osrelease", 256).ok();
    let release = release.as_deref().map(str::trim);
    let kernel = release.map_or_else(|| "this kernel".to_owned(), |release| format!("kernel {release}"));
    // AMD's own build has KFD whatever the kernel's configuration says.
    let is_amds_own = subject.facts.inventory.amdgpu.version.is_ok();
    let built = if is_amds_own { None } else { driver::built(subject.root, release, HSA_AMD) };
    match built {
        Some(Built { with: false, by }) => {
            failed(format!("there is none: {HSA_AMD} is off in {kernel} ({by})"), OTHER_KERNEL)
        }
        None if !is_amds_own => failed(
            format!(
                "there is none: {reason}. amdgpu runs, so {HSA_AMD} is likely off in {kernel}, whose configuration rocworker \
                 does not find"
            ),
            OTHER_KERNEL,
        ),
        _ => failed(format!("there is none: {reason}{}", unread(log)), READ_LOG),
    }
}

const OTHER_KERNEL: &str = "boot a kernel that is built with CONFIG_HSA_AMD=y, as the distributions' are: a reboot of \
                            this one does not help";

const READ_LOG: &str =
    "give the kernel's first error of kfd or amdgpu (journalctl -k --grep 'kfd|amdgpu') to rocworker explain";

const AS_ROOT: &str =
    "look as root; a file that root cannot read is a driver's fault: read dmesg for kfd, and reboot";

/// The remedy for a parameter of amdgpu: which files set it, and how the correction takes effect.
fn corrected(subject: &Subject<'_>, parameter: &str) -> String {
    let places = driver::parameter_set(subject.root, parameter);
    let places: Vec<String> = places.iter().map(|(place, says)| format!("{place} ({says})")).collect();
    let first = match &*places {
        [] => format!("find who sets {parameter} (modprobe --showconfig), and remove it"),
        places => format!("remove {parameter} from {}", places.join(" and ")),
    };
    format!("{first}, then update-initramfs -u where there is an initramfs, and reboot")
}

/// A container has its host's driver.
fn where_it_is(subject: &Subject<'_>, remedy: &str) -> String {
    if subject.in_container() { format!("on the host: {remedy}") } else { remedy.to_owned() }
}

fn evidence_of(line: &Line) -> String {
    format!("{} The kernel says: {}", line.means, line.text)
}

/// Says that the kernel's log may hold the reason, or does not.
fn unread(log: &KfdLog) -> String {
    match &log.unread {
        Some(why) => format!("; the kernel's log may say why, and was not read: {why}"),
        None => "; the kernel's log since boot does not say why".to_owned(),
    }
}

fn hidden(subject: &Subject<'_>) -> Option<Check> {
    let hidden = subject.facts.inventory.kfd.hidden_nodes;
    let about = About::one(NAME, "device cgroup");
    let evidence =
        format!("KFD hides {hidden} nodes here: the device cgroup does not let their GPUs through");
    match (hidden, subject.in_container()) {
        (0, _) => None,
        // A container that was given two GPUs of eight is in order.
        (_, true) => Some(about.ok(evidence)),
        (_, false) => Some(about.warning(
            evidence,
            "look from outside of the service or container that this runs in (DeviceAllow= in its unit)",
        )),
    }
}

/// /dev/kfd has no fixed major: a node of an earlier boot leads to whatever has the number now.
fn major(subject: &Subject<'_>) -> Option<Check> {
    let (major, minor) = subject.facts.inventory.kfd.node.number()?;
    let about = About::one(NAME, "/dev/kfd");
    Some(match amdgpu::registered_major(subject.root) {
        Ok(Some(registered)) if registered == major => {
            about.ok(format!("is {major}:{minor}, as sysfs and /proc/devices say"))
        }
        Ok(found) => {
            let found = found.map_or_else(|| "no kfd".to_owned(), |found| format!("kfd as {found}"));
            about.failed(
                format!("is {major}:{minor}, and /proc/devices has {found}"),
                "rm /dev/kfd and reboot: the driver makes the node when it is loaded; in a container, pass it in again",
            )
        }
        Err(error) => {
            about.ok(format!("is {major}:{minor}, as sysfs says (/proc/devices says nothing: {error})"))
        }
    })
}

/// The check for a problem of one GPU in KFD. Other checks report problems of its nodes and its driver.
fn of_gpu(subject: &Subject<'_>, log: &KfdLog, gpu: &Gpu) -> Option<Check> {
    let about = About::one(NAME, name_of(gpu));
    if let Some(Problem::UnknownToKfd { equals, .. }) = gpu.problems.iter().find(|it| is_unknown(it)) {
        let (evidence, remedy) = left_out(subject, log, gpu, equals);
        return Some(about.failed(evidence, where_it_is(subject, &remedy)));
    }
    let (problem, remedy) = gpu.problems.iter().find_map(|problem| Some((problem, remedy(problem)?)))?;
    Some(about.failed(problem.to_string(), remedy))
}

fn is_unknown(problem: &Problem) -> bool {
    matches!(problem, Problem::UnknownToKfd { .. })
}

const SLOT: &str = "compare the slots: AtomicOpsCap in lspci -vv, for the cards and each port above them. Put the card \
                    into a slot of PCIe 3.0 or later that the CPU itself serves, without a riser or a switch";

/// Why KFD leaves a GPU out, and what helps. `equals`: the cards in KFD that have this GPU's PCI ids.
fn left_out(subject: &Subject<'_>, log: &KfdLog, gpu: &Gpu, equals: &[PciAddress]) -> (String, String) {
    let equals: Vec<String> = equals.iter().map(ToString::to_string).collect();
    let has_equals = match &*equals {
        [] => String::new(),
        equals => format!(" KFD has {}, of the same PCI ids: the slot differs.", equals.join(", ")),
    };
    // A line without a card's ids may be about a chip that KFD does not support: not one of which it has another card.
    let unnamed = || log.unnamed().filter(|_| equals.is_empty());
    let Some(line) = log.about(gpu).or_else(unnamed) else {
        return match &*equals {
            [] => {
                let problem = gpu.problems.iter().find(|it| is_unknown(it)).map(ToString::to_string);
                (format!("{}{}", problem.unwrap_or_default(), unread(log)), READ_LOG.to_owned())
            }
            _ => (format!("KFD leaves it out{}.{has_equals}", unread(log)), SLOT.to_owned()),
        };
    };
    let others = |other: &&Gpu| other.pci != gpu.pci && other.problems.iter().any(is_unknown);
    let is_doubtful = !line.names_a_gpu() && subject.facts.amd().any(|other| others(&other));
    let doubt = if is_doubtful { " The line names no card." } else { "" };
    (format!("{}{doubt}{has_equals}", evidence_of(line)), line.remedy.clone())
}

/// The remedy for a problem other than a refusal of KFD's.
fn remedy(problem: &Problem) -> Option<&'static str> {
    match problem {
        Problem::UnreadInKfd(_) => Some(AS_ROOT),
        Problem::HiddenByKfd => {
            Some("let it through where this container is configured, or look from outside of it")
        }
        Problem::SharedMinor { .. } => {
            Some("reload amdgpu, and send a report to its developers: this is a driver's fault")
        }
        Problem::CardUnknown => Some("send a report: rocworker does not know this way of naming partitions"),
        Problem::NotAmd
        | Problem::NeverComputes(_)
        | Problem::LeftToRadeon(_)
        | Problem::Unbound
        | Problem::OtherDriver(_)
        | Problem::NoRenderNode
        | Problem::Node(_)
        | Problem::Kfd(_)
        | Problem::KfdParameter(_)
        | Problem::UnknownToKfd { .. }
        | Problem::NoKfd(_) => None,
    }
}
