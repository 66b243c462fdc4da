//! How systemd starts containerd: the last definition of ExecStart= counts (systemd.unit(5), systemd.service(5)).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use root::Root;

const NAME: &str = "containerd.service";

/// Of units of the same name the first folder's counts (systemd.unit(5)).
const FOLDERS: [&str; 5] = [
    "/etc/systemd/system",
    "/run/systemd/system",
    "/usr/local/lib/systemd/system",
    "/usr/lib/systemd/system",
    "/lib/systemd/system",
];

const LIMIT: usize = 1 << 20;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unit {
    pub(super) start: Option<Start>,
}

/// A command line that starts containerd.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Start {
    pub(super) program: PathBuf,
    /// What `--config` says.
    pub(super) config: Option<PathBuf>,
    /// A word with a variable in it.
    pub(super) unknown: Option<String>,
}

impl Unit {
    pub(super) fn read(root: &Root) -> Option<Self> {
        let at = |folder: &str| Path::new(folder).join(NAME);
        // One that is masked is a link to /dev/null, and says nothing.
        let text = FOLDERS.iter().find_map(|folder| root.read_text(at(folder), LIMIT).ok())?;
        if text.trim().is_empty() {
            return None;
        }
        let mut drop_ins: BTreeMap<std::ffi::OsString, PathBuf> = BTreeMap::new();
        for folder in FOLDERS.iter().rev().map(|folder| Path::new(folder).join(format!("{NAME}.d"))) {
            for name in root.list(&folder).unwrap_or_default() {
                if name.to_string_lossy().ends_with(".conf") {
                    drop_ins.insert(name.clone(), folder.join(name));
                }
            }
        }
        let more = drop_ins.values().filter_map(|path| root.read_text(path, LIMIT).ok());
        Some(Self { start: start(&std::iter::once(text).chain(more).collect::<Vec<_>>()) })
    }
}

/// The last command of these files, in their order.
fn start(texts: &[String]) -> Option<Start> {
    let mut commands: Vec<String> = Vec::new();
    for text in texts {
        let joined = text.replace("\\\n", " ");
        let mut in_service = false;
        for line in joined.lines().map(str::trim) {
            if line.starts_with('[') {
                in_service = line == "[Service]";
            }
            let Some(value) = line.strip_prefix("ExecStart").filter(|_| in_service) else { continue };
            let Some(value) = value.trim_start().strip_prefix('=').map(str::trim) else { continue };
            // An empty one takes back those before it.
            if value.is_empty() { commands.clear() } else { commands.push(value.to_owned()) }
        }
    }
    let words = words(commands.last()?);
    let (program, arguments) = words.split_first()?;
    let program = PathBuf::from(program.trim_start_matches(['@', '-', ':', '+', '!', '|']));
    Some(Start {
        program,
        config: config(arguments),
        unknown: arguments.iter().find(|word| word.contains('$')).cloned(),
    })
}

/// One dash or two, with `=` or the value as the next word, as Go's flag package takes them.
fn config(arguments: &[String]) -> Option<PathBuf> {
    let mut words = arguments.iter();
    let mut found = None;
    while let Some(word) = words.next() {
        let Some(flag) = word.strip_prefix("--").or_else(|| word.strip_prefix('-')) else { continue };
        match flag.split_once('=') {
            Some(("config" | "c", value)) => found = Some(value.to_owned()),
            None if flag == "config" || flag == "c" => found = words.next().cloned(),
            _ => {}
        }
    }
    found.filter(|path| !path.contains('$')).map(PathBuf::from)
}

/// Words at blanks, quotes taken off.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_definition_counts_and_its_main_file() {
        let debian = "[Unit]\nExecStart=/no\n[Service]\nExecStartPre=-/sbin/modprobe overlay\nExecStart=/usr/bin/containerd\n";
        let over = |line: &str| format!("[Service]\nExecStart=\nExecStart={line}\n");
        for (drop_in, program, config, unknown) in [
            (String::new(), "/usr/bin/containerd", None, None),
            (
                over("/usr/local/bin/containerd --config /etc/c/x.toml"),
                "/usr/local/bin/containerd",
                Some("/etc/c/x.toml"),
                None,
            ),
            (over("-/bin/c -l debug \\\n  -c=\"/etc/a b.toml\""), "/bin/c", Some("/etc/a b.toml"), None),
            (over("/bin/c --config=/a -c /b --root /r"), "/bin/c", Some("/b"), None),
            (over("/bin/c $OPTIONS"), "/bin/c", None, Some("$OPTIONS")),
            (over("/bin/c --config ${FILE}"), "/bin/c", None, Some("${FILE}")),
        ] {
            let start = start(&[debian.to_owned(), drop_in.clone()]).unwrap();
            let expected = Start {
                program: program.into(),
                config: config.map(PathBuf::from),
                unknown: unknown.map(str::to_owned),
            };
            assert_eq!(start, expected, "{drop_in}");
        }
        assert_eq!(start(&["[Service]\nExecStart=/a\nExecStart=\n".to_owned()]), None);
    }
}
