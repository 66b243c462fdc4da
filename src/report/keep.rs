//! What a report keeps of a file: keys of a list, and values of a type that holds no secret. A value is a truth value, a
//! number, a word of the list, an absolute path of the system's, or a name of a GPU. All else goes, comments too.

use std::collections::HashSet;
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
        for line in text.lines() {
            let line = line.replace(['"', '\''], "").replace('\t', " ");
            let mut words = line.split([' ', ',', ';']).map(bare).filter(|word| !matches!(*word, "" | "#"));
            let is_known = words.clone().any(is_listed) && words.next().is_some_and(is_typed);
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
        let kept: Vec<&str> = pieces.iter().filter(|it| is_typed(bare(it))).copied().collect();
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
            Value::Null | Value::Bool(_) | Value::Number(_) => value,
            // What stays of a sentence says nothing.
            Value::String(text) => {
                match self.words(&text).filter(|kept| *kept == text || !text.contains(' ')) {
                    Some(kept) => kept.into(),
                    None if self.is_own => "".into(),
                    None => return None,
                }
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
        let value = self.value(yaml_serde::from_value(whole).ok()?)?;
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

/// A word of the list, as an option or as a parameter of amdgpu's too.
pub(super) fn is_listed(word: &str) -> bool {
    let name = word.split('=').next().unwrap_or_default();
    WORDS.contains(name.trim_start_matches('-').trim_start_matches("amdgpu."))
}

/// `7`, `0660`, `0x1002`, `8G`, `127.0.0.1:9401`, `6.4.1`; no address of another machine.
fn is_number(word: &str) -> bool {
    let hex =
        word.strip_prefix("0x").is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let digits = word.trim_start_matches('-').trim_end_matches(['K', 'M', 'G', 'T']);
    let is_decimal = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.' || byte == b':');
    let host = word.split(':').next().unwrap_or_default();
    let is_others = host.split('.').count() > 3 && !host.starts_with("127.") && !host.starts_with("0.0.0.0");
    word.len() <= 21 && (hex || is_decimal) && !is_others
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
            || FOLDERS.iter().any(|folder| format!("{part}/").starts_with(folder))
                && part.len() <= 256
                && part.chars().all(is_plain)
                && !part.contains("/..")
                && !is_random(part)
    })
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

/// Letters and digits without a word in them, as tokens are.
fn is_random(text: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| {
        let digits = part.bytes().filter(u8::is_ascii_digit).count();
        part.len() >= 16 && digits > 0 && digits < part.len() || part.len() >= 40
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
        ] {
            assert_eq!(Filter::default().words(gone), None, "{gone}");
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
