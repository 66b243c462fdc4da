//! What keeps amdgpu from being loaded: lines in modprobe.d, words on the kernel's command line.

use root::Root;

use super::check::{About, Check};
use super::machine::Subject;

const NAME: &str = "blacklist";

/// Where modprobe reads, in its order: a file in an earlier folder hides its namesakes (modprobe.d(5)).
pub(crate) const FOLDERS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

pub(super) fn check(subject: &Subject<'_>) -> Vec<Check> {
    if subject.in_container() {
        return vec![
            About::all(NAME).skipped("a container's modprobe.d decides nothing: the host loads the driver"),
        ];
    }
    if !subject.has_amd() {
        return vec![About::all(NAME).skipped("there is no AMD GPU that needs the driver")];
    }
    let mut unread = Vec::new();
    let mut hindrances = in_files(subject.root, &mut unread);
    hindrances.extend(on_command_line(subject.root, &mut unread));
    let loaded = subject.facts.machine.amdgpu.loaded == Ok(true);
    let mut checks: Vec<Check> = hindrances.into_iter().map(|hindrance| hindrance.check(loaded)).collect();
    checks.extend(unread);
    if checks.is_empty() {
        checks.push(About::all(NAME).ok("neither modprobe.d nor the kernel's command line keeps amdgpu out"));
    }
    checks
}

/// One line or word that keeps amdgpu out.
struct Hindrance {
    place: String,
    says: String,
    remedy: &'static str,
}

impl Hindrance {
    fn check(self, loaded: bool) -> Check {
        let about = About::one(NAME, self.place);
        if loaded {
            // Loaded by hand or by another module: true until the next boot.
            about.warning(
                format!("{:?} keeps amdgpu from being loaded at the next boot", self.says),
                self.remedy,
            )
        } else {
            about.failed(format!("{:?} keeps amdgpu from being loaded", self.says), self.remedy)
        }
    }
}

/// What could not be read goes to `unread`: it may keep amdgpu out, and nobody has looked.
fn in_files(root: &Root, unread: &mut Vec<Check>) -> Vec<Hindrance> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for folder in FOLDERS {
        let names = match root.list(folder) {
            Ok(names) => names,
            // A folder that is not there hinders nothing.
            Err(error) if error.is_not_found() => continue,
            Err(error) => {
                unread.push(About::one(NAME, folder).skipped(error.to_string()));
                continue;
            }
        };
        for name in names {
            if !name.to_string_lossy().ends_with(".conf") || seen.contains(&name) {
                continue;
            }
            let path = format!("{folder}/{}", name.to_string_lossy());
            seen.push(name);
            let bytes = match root.read(&path, 1 << 20) {
                Ok(bytes) => bytes,
                Err(error) => {
                    unread.push(About::one(NAME, path).skipped(error.to_string()));
                    continue;
                }
            };
            let text = String::from_utf8_lossy(&bytes);
            found.extend((1..).zip(text.lines()).filter(|(_, line)| keeps_out(line)).map(|(number, line)| {
                Hindrance {
                    place: format!("{path}:{number}"),
                    says: line.trim().to_owned(),
                    remedy: "remove the line, then update-initramfs -u where there is an initramfs, and modprobe amdgpu",
                }
            }));
        }
    }
    found
}

/// `blacklist amdgpu`, or `install amdgpu /bin/false` and its like (modprobe.d(5)).
pub(crate) fn keeps_out(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        (Some("blacklist"), Some("amdgpu"), None) => true,
        (Some("install"), Some("amdgpu"), Some(command)) => {
            let program = command.rsplit('/').next();
            matches!(program, Some("true" | "false" | ":"))
        }
        _ => false,
    }
}

fn on_command_line(root: &Root, unread: &mut Vec<Check>) -> Vec<Hindrance> {
    const FILE: &str = "/proc/cmdline";
    let line = match root.read_text(FILE, 64 << 10) {
        Ok(line) => line,
        Err(error) => {
            unread.push(About::one(NAME, FILE).skipped(error.to_string()));
            return Vec::new();
        }
    };
    let words = line.split_whitespace().filter(|word| hinders(word));
    words
        .map(|word| Hindrance {
            place: FILE.to_owned(),
            says: word.to_owned(),
            remedy: "take it out of the boot loader's kernel command line (GRUB_CMDLINE_LINUX, then update-grub), and reboot",
        })
        .collect()
}

/// `module_blacklist=` is the kernel's, `modprobe.blacklist=` modprobe's; with `nomodeset` amdgpu refuses to
/// start (drm_firmware_drivers_only() in amdgpu_drv.c).
pub(crate) fn hinders(word: &str) -> bool {
    let listed = word.strip_prefix("modprobe.blacklist=").or_else(|| word.strip_prefix("module_blacklist="));
    word == "nomodeset" || listed.is_some_and(|names| names.split(',').any(|name| name == "amdgpu"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_words_that_keep_amdgpu_out_are_known_from_those_that_do_not() {
        for (line, out) in [
            ("blacklist amdgpu", true),
            ("  blacklist\tamdgpu  ", true),
            ("install amdgpu /bin/false", true),
            ("install amdgpu /usr/bin/true", true),
            ("#blacklist amdgpu", false),
            ("blacklist amdgpu_extra", false),
            ("blacklist radeon", false),
            ("install amdgpu /sbin/modprobe --ignore-install amdgpu", false),
            ("options amdgpu ppfeaturemask=0xffffffff", false),
            ("", false),
        ] {
            assert_eq!(keeps_out(line), out, "{line:?}");
        }
        for (word, out) in [
            ("nomodeset", true),
            ("modprobe.blacklist=nouveau,amdgpu", true),
            ("module_blacklist=amdgpu", true),
            ("modprobe.blacklist=amdgpux", false),
            ("amdgpu.dc=0", false),
        ] {
            assert_eq!(hinders(word), out, "{word:?}");
        }
    }
}
