//! What keeps amdgpu from being loaded: lines in modprobe.d, words on the kernel's command line.

use std::collections::BTreeSet;

use root::{Error, Root, if_there};

/// Folders that modprobe reads, in its order: a file in an earlier folder hides its namesakes (modprobe.d(5)).
pub const FOLDERS: [&str; 5] = [
    "/etc/modprobe.d",
    "/run/modprobe.d",
    "/usr/local/lib/modprobe.d",
    "/usr/lib/modprobe.d",
    "/lib/modprobe.d",
];

const COMMAND_LINE: &str = "/proc/cmdline";

/// A line of modprobe.d, or a word of the kernel's command line, that keeps amdgpu from being loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hindrance {
    /// `FILE:LINE`, or the kernel's command line.
    pub place: String,
    pub says: String,
    pub remedy: &'static str,
}

/// Everything that keeps amdgpu from being loaded.
#[derive(Debug, Default)]
pub struct Hindrances {
    pub found: Vec<Hindrance>,
    /// Files that could not be read, by path: each may keep amdgpu out.
    pub unread: Vec<(String, Error)>,
}

impl Hindrances {
    /// Finds the lines beneath `root` that keep modprobe from loading the driver.
    #[must_use]
    pub fn read(root: &Root) -> Self {
        let mut hindrances = Self::default();
        for (place, line) in hindrances.lines(root) {
            let hindrance = match place.as_str() {
                COMMAND_LINE if hinders(&line) => Some(
                    "remove it from the boot loader's kernel command line (GRUB_CMDLINE_LINUX, then update-grub), and reboot",
                ),
                COMMAND_LINE => None,
                _ => keeps_out(&line).then_some(
                    "remove the line, then update-initramfs -u where there is an initramfs, and modprobe amdgpu",
                ),
            };
            let says = line.trim().to_owned();
            hindrances.found.extend(hindrance.map(|remedy| Hindrance { place, says, remedy }));
        }
        hindrances
    }

    /// The lines of modprobe.d, then the words of the kernel's command line, each behind its place.
    fn lines(&mut self, root: &Root) -> Vec<(String, String)> {
        let (mut lines, mut seen) = (Vec::new(), BTreeSet::new());
        for folder in FOLDERS {
            // A folder that is not there hinders nothing.
            let names = if_there(root.list(folder)).map(Option::unwrap_or_default);
            for name in self.or_unread(folder, names).unwrap_or_default() {
                let path = format!("{folder}/{}", name.to_string_lossy());
                if path.ends_with(".conf")
                    && seen.insert(name)
                    && let Some(bytes) = self.or_unread(&path, root.read(&path, 1 << 20))
                {
                    let text = String::from_utf8_lossy(&bytes);
                    let numbered = joined(&text).into_iter();
                    lines.extend(numbered.map(|(number, line)| (format!("{path}:{number}"), line)));
                }
            }
        }
        let line = self.or_unread(COMMAND_LINE, root.read_text(COMMAND_LINE, 64 << 10)).unwrap_or_default();
        lines.extend(line.split_whitespace().map(|word| (COMMAND_LINE.to_owned(), word.to_owned())));
        lines
    }

    fn or_unread<T>(&mut self, path: &str, read: Result<T, Error>) -> Option<T> {
        read.map_err(|error| self.unread.push((path.to_owned(), error))).ok()
    }
}

/// The lines of modprobe.d and the words of the kernel's command line that set this parameter of amdgpu's, each behind
/// its place.
pub fn set(root: &Root, parameter: &str) -> Vec<(String, String)> {
    let mut lines = Hindrances::default().lines(root);
    lines.retain(|(place, line)| match place.as_str() {
        COMMAND_LINE => line.strip_prefix("amdgpu.").is_some_and(|option| sets(option, parameter)),
        _ => {
            let mut words = line.split_whitespace();
            (words.next(), words.next()) == (Some("options"), Some("amdgpu"))
                && words.any(|option| sets(option, parameter))
        }
    });
    lines.into_iter().map(|(place, line)| (place, line.trim().to_owned())).collect()
}

/// The kernel takes `-` for `_` in a parameter's name (`dash2underscore` in kernel/params.c).
fn sets(option: &str, parameter: &str) -> bool {
    option.split_once('=').is_some_and(|(name, _)| name.replace('-', "_") == parameter)
}

/// Lines with the number of each; one that ends in a backslash continues in the next (modprobe.d(5)).
fn joined(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (number, line) in (1..).zip(text.lines()) {
        let (part, next) = line.strip_suffix('\\').map_or((line, false), |part| (part, true));
        match lines.last_mut() {
            Some((_, begun)) if goes_on => begun.push_str(part),
            _ => lines.push((number, part.to_owned())),
        }
        goes_on = next;
    }
    lines
}

/// `blacklist amdgpu`, or `install amdgpu /bin/false` and its like (modprobe.d(5)).
fn keeps_out(line: &str) -> bool {
    let mut words = line.split_whitespace();
    match (words.next(), words.next(), words.next()) {
        // kmod reads the first name and nothing behind it (libkmod-config.c), a comment among it.
        (Some("blacklist"), Some("amdgpu"), _) => true,
        (Some("install"), Some("amdgpu"), Some(command)) => {
            let program = command.rsplit('/').next();
            matches!(program, Some("true" | "false" | ":"))
        }
        _ => false,
    }
}

/// `module_blacklist=` is the kernel's, `modprobe.blacklist=` modprobe's, `rd.driver.blacklist=` dracut's, which writes
/// it into the initramfs' modprobe.d; with `nomodeset` amdgpu refuses to start
/// (drm_firmware_drivers_only() in amdgpu_drv.c).
fn hinders(word: &str) -> bool {
    let listed = ["modprobe.blacklist=", "module_blacklist=", "rd.driver.blacklist="];
    let listed = listed.iter().find_map(|option| word.strip_prefix(option));
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
            ("blacklist amdgpu # no gpu here", true),
            ("blacklist amdgpu radeon", true),
            ("blacklist radeon amdgpu", false),
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
            ("rd.driver.blacklist=nouveau,amdgpu", true),
            ("rd.driver.pre=amdgpu", false),
            ("modprobe.blacklist=amdgpux", false),
            ("amdgpu.dc=0", false),
        ] {
            assert_eq!(hinders(word), out, "{word:?}");
        }
    }

    #[test]
    fn a_line_goes_on_behind_a_backslash_as_kmod_reads_it() {
        let text = "options a b\\\n  c\nblacklist \\\namdgpu\n# no \\\nblacklist amdgpu\nblacklist amdgpu";
        let out = joined(text).into_iter().filter(|(_, line)| keeps_out(line));
        assert_eq!(out.map(|(number, _)| number).collect::<Vec<_>>(), [3, 7]);
    }
}
