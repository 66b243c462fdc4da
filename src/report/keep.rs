//! What a report keeps of a file: keys of a list, and values of a type that holds no secret. A value is a truth value, a
//! number, a word of the list, an absolute path of the system's, or a name of a GPU. All else goes, comments too.

use std::collections::HashSet;
use std::net::Ipv4Addr;
use std::path::Path;
use std::sync::LazyLock;

use amdgpu::container_name;
use host::version::Version;
use inventory::PciAddress;
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, Item, Table};

/// What programs call their keys, options and variables, and words that they have as values.
static WORDS: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    let lines = include_str!("words.txt").lines().filter(|line| !line.starts_with("# "));
    lines.flat_map(str::split_whitespace).collect()
});

/// How paths begin that say what is installed, and not who works there.
const FOLDERS: [&str; 13] = [
    "/bin/", "/boot/", "/dev/", "/etc/", "/lib/", "/lib64/", "/opt/", "/run/", "/sbin/", "/srv/", "/sys/",
    "/usr/", "/var/",
];

/// Folders whose entries have the names of users, the serial numbers of disks, or secrets.
const PRIVATE: [&str; 9] = [
    "/dev/disk/",
    "/dev/mapper/",
    "/run/media/",
    "/run/secrets/",
    "/run/user/",
    "/srv/home/",
    "/usr/home/",
    "/var/home/",
    "/var/roothome/",
];

/// How kernel parameters begin that are about drivers.
const OF_DRIVERS: [&str; 6] =
    ["amdgpu.", "modprobe.blacklist=", "module_blacklist=", "nomodeset", "iommu=", "amd_iommu="];

/// A filter, and how many keys and words it has kept back.
#[derive(Debug, Default)]
pub(super) struct Filter {
    pub(super) removed: usize,
    /// Whether rocworker wrote the file for itself: text that is no typed value becomes empty, for a reader expects the key.
    is_own: bool,
}

impl Filter {
    /// What a report keeps of the file at a path; `None` of one in which it knows nothing.
    ///
    /// # Errors
    /// What the text is not, by the path's end.
    pub(super) fn file(&mut self, path: &Path, text: &str) -> Result<Option<String>, &'static str> {
        let name = path.to_string_lossy();
        self.is_own = name.starts_with("/run/rocworker/") || name.starts_with("/var/lib/rocworker/");
        let lines = match &*name {
            "/proc/cmdline" => {
                let is_of_driver = |word: &&str| OF_DRIVERS.iter().any(|begin| word.starts_with(begin));
                let words = text.split_whitespace().filter(|word| is_of_driver(word) && is_typed(word));
                return Ok(Some(words.collect::<Vec<_>>().join(" ") + "\n"));
            }
            "/proc/sys/kernel/osrelease" => return Ok(version(text).map(|it| format!("{it}\n"))),
            "/proc/1/environ" => {
                let name = text.split('\0').find_map(|variable| variable.strip_prefix("container="));
                return Ok(Some(name.map(|it| format!("container={}\0", container(it))).unwrap_or_default()));
            }
            _ if name.ends_with("/modules.dep") => {
                // Whether the kernel has amdgpu, and whether it is the kernel's own.
                let files = text
                    .lines()
                    .filter_map(|line| line.split(':').next())
                    .filter(|it| it.contains("/amdgpu.ko"));
                let folder = |file: &str| if file.starts_with("kernel/") { "kernel" } else { "updates" };
                files.map(|file| format!("{}/amdgpu.ko:\n", folder(file))).collect()
            }
            "/run/systemd/container" => return Ok(Some(container(text) + "\n")),
            config::PATH => {
                let value = config::json(text).map_err(|_| "is no YAML")?;
                return self.as_yaml(value).map(Some).ok_or("is no YAML");
            }
            _ if name.ends_with(".json") => return self.json(text).map(Some).ok_or("is no JSON"),
            _ if name.ends_with(".yaml") || name.ends_with(".yml") => {
                return self.yaml(text).map(Some).ok_or("is no YAML");
            }
            _ if name.ends_with(".toml") || name.starts_with("/etc/crio/") => {
                return self.toml(text).map(Some).ok_or("is no TOML");
            }
            // modprobe passes over a file whose name an earlier folder has; doctor names its lines by their numbers.
            _ if name.contains("/modprobe.d/") => return Ok(Some(self.lines(text, true))),
            _ => self.lines(&text.replace("\\\n", " "), false),
        };
        Ok((!lines.trim().is_empty()).then_some(lines))
    }

    /// The words of each line that begins with a typed one and has a word of the list. `all`: the others become empty.
    fn lines(&mut self, text: &str, all: bool) -> String {
        let mut kept = String::new();
        // A number at a line's begin is a device's, or the rest of a value of several lines.
        let is_of_devices = text.starts_with("Character devices:");
        for line in text.lines() {
            let line = line.replace(['"', '\''], "").replace('\t', " ");
            // The kernel's configuration says so of what is off.
            let is_unset = line.starts_with("# CONFIG_");
            let line = line.split_once('#').filter(|_| !is_unset).map_or(&*line, |(value, _)| value);
            let mut words = line.split([' ', ',', ';']).map(bare).filter(|word| !matches!(*word, "" | "#"));
            let is_known = words.clone().any(|word| is_listed(name_of(word)))
                && words.next().is_some_and(|first| is_typed(first) && (is_of_devices || !is_number(first)));
            let line = if is_known {
                self.words(line.trim())
            } else {
                self.removed += usize::from(!line.is_empty());
                None
            };
            if all || line.is_some() {
                kept += &(line.unwrap_or_default() + "\n");
            }
        }
        kept
    }

    /// The typed words of a text; `None` of one that has others alone.
    pub(super) fn words(&mut self, text: &str) -> Option<String> {
        let pieces: Vec<&str> = text.split_inclusive([',', ' ', ';']).collect();
        let kept = kept(pieces.iter().copied());
        if kept.len() == pieces.len() {
            return Some(text.to_owned());
        }
        self.removed += pieces.len() - kept.len();
        let kept = kept.concat();
        let kept = kept.trim_end_matches([',', ' ', ';']);
        (!kept.is_empty()).then(|| kept.to_owned())
    }

    /// The listed keys of a document with their typed values.
    pub(super) fn value(&mut self, value: Value) -> Option<Value> {
        Some(match value {
            Value::Null | Value::Bool(_) => value,
            Value::Number(ref number) if self.is_own || is_short(&number.to_string()) => value,
            Value::Number(_) => return None,
            // What stays of a sentence says nothing.
            Value::String(text) => {
                match self.words(&text).filter(|kept| *kept == text || !text.contains(' ')) {
                    Some(kept) => kept.into(),
                    None if self.is_own => "".into(),
                    None => return None,
                }
            }
            // A list of words may be a command line.
            Value::Array(items) if items.iter().all(Value::is_string) && !self.is_own => {
                let kept = kept(items.iter().filter_map(Value::as_str));
                self.removed += items.len() - kept.len();
                kept.into()
            }
            Value::Array(items) => items.into_iter().filter_map(|item| self.value(item)).collect(),
            Value::Object(map) => {
                let mut kept = Map::new();
                for (key, value) in map {
                    if is_listed(&key) || is_path(&key) || is_of_gpu(&key) {
                        kept.extend(self.value(value).map(|value| (key, value)));
                    } else {
                        self.removed += 1;
                    }
                }
                kept.into()
            }
        })
    }

    fn json(&mut self, text: &str) -> Option<String> {
        Some(format!("{:#}\n", self.value(serde_json::from_str(text).ok()?)?))
    }

    fn yaml(&mut self, text: &str) -> Option<String> {
        // Unlike JSON's, this Value refuses a key that is there twice.
        let whole: yaml_serde::Value = yaml_serde::from_str(text).ok()?;
        self.as_yaml(yaml_serde::from_value(whole).ok()?)
    }

    fn as_yaml(&mut self, value: Value) -> Option<String> {
        let value = self.value(value)?;
        if value.is_null() { Some(String::new()) } else { yaml_serde::to_string(&value).ok() }
    }

    fn toml(&mut self, text: &str) -> Option<String> {
        let Value::Object(map) = self.value(edit::Format::Toml.read(text).ok()?)? else { return None };
        let mut written = DocumentMut::new();
        *written.as_table_mut() = table(map)?;
        Some(written.to_string())
    }
}

fn table(map: Map<String, Value>) -> Option<Table> {
    let mut table = Table::new();
    table.set_implicit(!map.is_empty() && map.values().all(Value::is_object));
    for (key, value) in map {
        let item = match value {
            Value::Object(map) => Item::Table(self::table(map)?),
            // Without a table in it, a value is written in TOML as in JSON.
            other => Item::Value(other.to_string().parse().ok()?),
        };
        table.insert(&key, item);
    }
    Some(table)
}

/// The first word of a text that is a version or a kernel's release: `1.7.24~ds1`, `6.8.0-45-generic`.
pub(super) fn version(text: &str) -> Option<&str> {
    let words = text.split([' ', ',', '\n']).map(|word| word.trim_start_matches('v'));
    words.into_iter().find(|word| {
        let is_of_version = |c: char| c.is_ascii_alphanumeric() || "._+~-".contains(c);
        Version::find(word).is_some()
            && word.len() <= 48
            && word.chars().all(is_of_version)
            && word.parse::<Ipv4Addr>().is_err()
            && !is_random(word)
    })
}

/// A container manager's name that is listed, or the one that systemd gives to all others.
fn container(name: &str) -> String {
    let name = container_name(name);
    if name.is_empty() || is_listed(&name) { name } else { "container-other".to_owned() }
}

/// A word without what separates it from the next.
fn bare(word: &str) -> &str {
    word.trim_end_matches([',', ' ', ';', ':'])
}

/// A typed value, an option, or a listed name with a typed value behind its equals sign.
fn is_typed(word: &str) -> bool {
    match word.split_once('=') {
        Some((name, value)) => is_listed(name) && is_typed(value),
        None => word.is_empty() || is_listed(word) || is_number(word) || is_path(word) || is_of_gpu(word),
    }
}

/// The typed words among several. A number behind a word that goes is the value of that word.
fn kept<'t>(words: impl Iterator<Item = &'t str>) -> Vec<&'t str> {
    let mut is_behind = false;
    words
        .filter(|word| {
            let word = bare(word);
            is_behind = !is_typed(word) || is_behind && (word.is_empty() || is_number(word));
            !is_behind
        })
        .collect()
}

/// What stands before a word's equals sign.
fn name_of(word: &str) -> &str {
    word.split('=').next().unwrap_or_default()
}

/// A word of the list, as an option or as a parameter of amdgpu's too.
pub(super) fn is_listed(word: &str) -> bool {
    WORDS.contains(word.trim_start_matches('-').trim_start_matches("amdgpu."))
}

/// `7`, `0660`, `0x1002`, `8G`, `127.0.0.1:9401`, `226:128`, `6.4.1`; no address of another machine, no number of an account.
fn is_number(word: &str) -> bool {
    let hex = |digits: &str| digits.len() <= 8 && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_own = |ip: Ipv4Addr| ip.is_loopback() || ip.is_unspecified();
    let is_decimal = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
            && is_short(text)
            && (text.split('.').count() <= 3 || text.parse::<Ipv4Addr>().is_ok_and(is_own))
    };
    let digits = word.trim_start_matches('-').trim_end_matches(['K', 'M', 'G', 'T']);
    let (first, second) = digits.split_once(':').unwrap_or((digits, "0"));
    word.strip_prefix("0x").is_some_and(hex)
        || is_decimal(first) && second.bytes().all(|byte| byte.is_ascii_digit()) && is_short(second)
}

/// Whether a number is one of bytes at most, up to a TiB: an account or a card has more digits.
fn is_short(number: &str) -> bool {
    number.bytes().filter(u8::is_ascii_digit).count() <= 13
}

/// An absolute path of the system's, behind what a unit or an address has in front of it.
pub(super) fn is_path(word: &str) -> bool {
    let path = word.trim_start_matches(['-', '@', '+', '!', ':', '|']);
    let path = path.trim_start_matches("unix://").trim_start_matches("file://");
    // AMD's repository is public.
    let path = path
        .strip_prefix("https://repo.radeon.com")
        .map_or_else(|| path.to_owned(), |rest| format!("/usr{rest}"));
    // `PATH=/usr/bin:/bin`; an error's line stands behind its file.
    let mut parts = path.trim_end_matches(':').split(':').enumerate();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+%@*".contains(c);
    parts.all(|(nth, part)| {
        nth > 0 && is_number(part)
            || is_of_system(&format!("{part}/"))
                && part.len() <= 256
                && part.chars().all(is_plain)
                && !part.contains("/..")
                && !is_random(part)
    })
}

fn is_of_system(path: &str) -> bool {
    // A byte in hexadecimal, as in the address of a registry; systemd's specifiers are letters.
    let is_escaped = path.split('%').skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let is_beneath = |folders: &[&str]| folders.iter().any(|folder| path.starts_with(folder));
    is_beneath(&FOLDERS) && !is_beneath(&PRIVATE) && !is_escaped
}

/// `0000:64:00.0`, `renderD128`, `card0`, `gfx942`, `GPU-9c0e5c1b9ae8c1f2`, `0-3`.
pub(super) fn is_of_gpu(word: &str) -> bool {
    let is_hex =
        |text: &str| (1..=32).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    word.parse::<PciAddress>().is_ok()
        || ["renderD", "card"].iter().any(|name| word.strip_prefix(name).is_some_and(is_number))
        || word.strip_prefix("gfx").is_some_and(|digits| digits.len() <= 5 && is_hex(digits))
        || word.strip_prefix("GPU-").is_some_and(is_hex)
        || word.split_once('-').is_some_and(|(first, last)| is_number(first) && is_number(last))
        || is_number(word)
}

/// Letters and digits without a word in them, as tokens and serial numbers are.
fn is_random(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        part.len() >= 12 && part.bytes().any(|byte| byte.is_ascii_digit())
            || part.len() >= 16 && !part.bytes().any(|byte| byte.is_ascii_lowercase())
            || part.len() >= 40
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_kept_by_its_type() {
        for kept in [
            "true",
            "infinity",
            "0660",
            "-1",
            "8G",
            "0x1002",
            "127.0.0.1:9401",
            "0000:64:00.0",
            "226:128",
            "renderD128",
            "0-3",
            "gfx942",
            "GPU-9c0e5c1b9ae8c1f2",
            "/etc/cdi/amd.json",
            "unix:///run/c.sock",
            "-/etc/default/%N",
            "https://repo.radeon.com/rocm/apt/6.4",
            "gpu-type=amd",
            "amdgpu.dc=0",
            "--config-file=/srv/d.json",
            "io.containerd.runc.v2",
            "Environment=CONCOURSE_TAG=gpu",
        ] {
            assert_eq!(Filter::default().words(kept).as_deref(), Some(kept));
        }
        for gone in [
            "hunter",
            "7391846739184673918467",
            "0xzqx",
            "/root/.ssh",
            "/home/ann",
            "/tmp/x",
            "etc/cdi",
            "/usr/bin:hunter",
            "/run/ghp_A1b2C3d4E5f6G7h8",
            "/etc/../home/ann",
            "https://u:p@repo.radeon.com/",
            "https://mirror.example/x",
            "tag=hunter",
            "hunter=1",
            "--password=1",
            "-phunter",
            "GPU-hunter",
            "gfxhunter",
            "cardhunter",
            "1.hunter",
            "deadbeef0123cafe4567",
            "amdgpu.x=hunter",
            "4929123412341234",
            "0x0123456789abcdef",
            "10.7.0.107",
            "0:10.7.0.107",
            "10.7.0.107.",
            "010.007.000.107",
            "10.7.0.107.1",
            "2001:470:7001:11::1",
            "52:54:00:70:10:06",
            "/var/home/ann",
            "/run/user/1000/x",
            "/run/secrets/x",
            "/dev/disk/by-id/nvme-Samsung_SSD_980_S64DNF0R123456X",
            "/srv/3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "/opt/AKIAABCDEFGHIJKLMNOP",
            "/opt/u%3Apw%40host",
        ] {
            assert_eq!(Filter::default().words(gone), None, "{gone}");
        }
    }

    #[test]
    fn what_belongs_to_a_word_that_goes_goes_too() {
        for (name, text, expected) in [
            (
                "a.conf",
                "ExecStart=/usr/bin/dockerd --password 7001 --debug\n",
                "ExecStart=/usr/bin/dockerd --debug\n",
            ),
            ("modprobe.d/a", "install amdgpu /bin/x -u ann:7 7001 7002 # 7003\n", "install amdgpu /bin/x\n"),
            ("modprobe.d/a", "# gpu pin of ann 7001\n", "\n"),
            ("a.conf", "OTP=\"12 34\n567890 on\n\"\n", ""),
            ("a.toml", "[plugins.\"gpu=7001\"]\npath = \"/usr\"\n", "[plugins]\n"),
            (
                "a.json",
                "{\"runtimeArgs\":[\"--password\",\"7001\",\"7002\",\"--debug\"]}",
                "{\n  \"runtimeArgs\": [\n    \"--debug\"\n  ]\n}\n",
            ),
            ("a.json", "{\"tag=hunter\":1,\"metrics\":41111111700103137}", "{}\n"),
            (
                "config-6.8",
                "CONFIG_HSA_AMD=y # x\n# CONFIG_HSA_AMD is not set\n",
                "CONFIG_HSA_AMD=y\n# CONFIG_HSA_AMD is not set\n",
            ),
            ("devices", "Character devices:\n226 drm\n511 kfd\n", "Character devices:\n226 drm\n511 kfd\n"),
        ] {
            let kept = Filter::default().file(&Path::new("/etc").join(name), text).unwrap();
            assert_eq!(kept.unwrap_or_default(), expected, "{text}");
        }
    }

    /// Names of machines and users, and what only a publisher can check, are not listed.
    #[test]
    fn each_key_of_the_configuration_is_listed_or_left_out_on_purpose() {
        let lines = include_str!("../../templates/config.yaml").lines();
        let keys = lines.filter_map(|line| Some(line.trim_start_matches(['#', ' ']).split_once(": ")?.0));
        let keys = keys.filter(|key| !key.contains([' ', '.', '"']) && *key != "Default");
        let missing: Vec<&str> = keys.filter(|key| !WORDS.contains(key)).collect();
        assert_eq!(missing, ["gfx1103", "user", "mi300", "proxy", "fingerprints", "origin"]);
    }

    proptest::proptest! {
        #[test]
        fn no_text_makes_it_fail(text in "([-a-zA-Z0-9=:@/\"'\\[\\]{}| \\\\\n\u{e9}]|dc=|://){0,80}") {
            for name in ["a.json", "a.yaml", "a.toml", "modprobe.d/a.conf", "a.conf"] {
                Filter::default().file(&Path::new("/etc").join(name), &text).ok();
            }
        }
    }
}
