//! Which values of a configuration stay in a report. rocworker removes every other one: what a secret is called and what
//! it looks like cannot be listed.

use engines::{self, Keys};

use super::keys::ENVIRONMENT;

/// Words that a secret's name has in it, in small letters.
pub(super) const SECRET_WORDS: [&str; 17] = [
    "secret",
    "token",
    "passw",
    "passphrase",
    "pwd",
    "key",
    "credential",
    "auth",
    "private",
    "cookie",
    "serial",
    "bearer",
    "basic ",
    "-----begin",
    "username",
    "user=",
    "user:",
];

pub(super) fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_WORDS.iter().any(|word| name.contains(word))
        || ["user", "basic"].iter().any(|end| name.ends_with(end))
        || matches!(name.rsplit(['_', '-', '.']).next(), Some("pass" | "pw" | "pin" | "cred" | "tok"))
}

/// How many steps the table `pattern` is below the table at `place`; `None` where it is not below it.
fn steps_below(pattern: &str, place: &[&str]) -> Option<usize> {
    let mut steps = pattern.split('.').filter(|step| !step.is_empty());
    let is_below = place.iter().all(|table| steps.next().is_some_and(|step| step == "*" || step == *table));
    is_below.then(|| steps.count())
}

/// Whether a key is known; `place`: the tables that it is in, and the key.
pub(super) fn is_known(keys: Keys<'_>, place: &[&str]) -> bool {
    place.split_last().is_some_and(|(key, tables)| {
        keys.iter().any(|(table, keys)| keys.contains(key) && steps_below(table, tables) == Some(0))
    })
}

/// Whether known keys are in the table at `place` or below it.
pub(super) fn has_known(keys: Keys<'_>, place: &[&str]) -> bool {
    keys.iter().any(|(table, _)| steps_below(table, place).is_some())
}

/// The value of the key at `place`, or a mark in its place.
pub(super) fn redacted(keys: Keys<'_>, place: &[&str], value: &str) -> String {
    let is_fingerprint = || place == ["repositories", "fingerprints"] && value.len() == 40 && is_hex(value);
    let is_kept = is_yes_or_no(value) || is_known(keys, place) && (is_plain(value) || is_fingerprint());
    match place.last() {
        _ if !is_kept => removed("text", value),
        Some(&("CONCOURSE_TAG" | "tag" | "tags")) => {
            value.split_inclusive([',', ' ', ';']).map(tag).collect()
        }
        _ => value.to_owned(),
    }
}

/// A worker's tag, which can be any words of a user's: behind an equals sign only values that rocworker writes stay.
fn tag(tag: &str) -> String {
    const OF_GPUS: [&str; 4] = ["gpu-type", "gpu-count", "gpu-devices", "compute-runtime"];
    match tag.split_once('=') {
        Some((name, value)) if !OF_GPUS.contains(&name) => {
            let value = value.trim_end_matches([',', ' ', ';']);
            let separator = tag.get(name.len() + 1 + value.len()..).unwrap_or_default();
            format!("{name}={}{separator}", removed("text", value))
        }
        _ => tag.to_owned(),
    }
}

/// `NAME=value`, of an environment.
pub(super) fn variable(text: &str) -> String {
    match text.split_once('=') {
        Some((name, value)) if is_of_environment(name) => {
            format!("{name}={}", redacted(ENVIRONMENT, &[name], value))
        }
        None if is_known(ENVIRONMENT, &[text]) => text.to_owned(),
        _ => removed("text", text),
    }
}

/// A known name, or capitals: what is in front of an equals sign may be a part of a secret that was cut there.
pub(super) fn is_of_environment(name: &str) -> bool {
    is_known(ENVIRONMENT, &[name]) || is_name(name) && !name.contains(|c: char| c.is_ascii_lowercase())
}

/// A command line: the program, and what its engine lists of options, their values and commands.
pub(super) fn arguments(words: &[String]) -> Vec<String> {
    let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let mut engines = engines::ALL.iter().filter_map(|engine| engine.command);
    let (_, options, commands) = engines.find(|(name, ..)| *name == program).unwrap_or_default();
    let mut after_option = false;
    let words = words.iter().enumerate().map(|(nth, word)| {
        let (name, value) = word.split_once('=').map_or((&**word, None), |(name, value)| (name, Some(value)));
        let is_option = name.starts_with('-') && options.contains(&name.trim_start_matches('-'));
        let is_value = std::mem::replace(&mut after_option, is_option && value.is_none());
        let is_kept = is_option && value.is_none_or(is_plain)
            || is_value && is_plain(word)
            || nth == 0 && is_path(word)
            || commands.contains(&word.as_str())
            || is_variable(word);
        if is_kept { word.clone() } else { removed("text", word) }
    });
    words.collect()
}

/// Whether a key that means nothing here can stay: it has the shape of a name.
pub(super) fn is_name(key: &str) -> bool {
    (1..=48).contains(&key.len())
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !is_random(key)
}

/// A name, or a mark in its place.
pub(super) fn name(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { removed("name", name) }
}

/// Whether a kernel parameter `NAME=value` can stay.
pub(crate) fn parameter(word: &str) -> bool {
    let is_plain = |(name, value)| is_name(name) && !is_secret(name) && is_plain(value);
    word == "nomodeset" || word.split_once('=').is_some_and(is_plain)
}

/// A line of modprobe.d that names amdgpu, up to the first word that may be a secret. A command may hold any: only one
/// that loads nothing stays, since doctor looks for it.
pub(crate) fn module_line(line: &str) -> String {
    let words: Vec<&str> = line.split_whitespace().collect();
    let [directive, module, rest @ ..] = words.as_slice() else { return String::new() };
    // An alias can have the wildcard `*`.
    let module = if is_word(module) { (*module).to_owned() } else { removed("name", module) };
    let is_kept: fn(&str) -> bool = match *directive {
        _ if !line.contains("amdgpu") => return String::new(),
        "blacklist" => return format!("blacklist {module}"),
        "options" => parameter,
        "alias" | "softdep" => |word| is_word(word.trim_end_matches(':')) && !is_secret(word),
        "install" | "remove" => |word| {
            matches!(word.trim_start_matches("/usr").trim_start_matches("/bin/"), "true" | "false" | ":")
        },
        _ => return String::new(),
    };
    let kept = rest.iter().take_while(|word| is_kept(word)).count();
    let (kept, secret) = rest.split_at(kept);
    let mark = (!secret.is_empty()).then(|| removed("text", &secret.join(" ")));
    let words = [(*directive).to_owned(), module].into_iter();
    words.chain(kept.iter().map(|word| (*word).to_owned())).chain(mark).collect::<Vec<_>>().join(" ")
}

/// What replaces a value: its kind and how long it was.
pub(super) fn removed(kind: &str, value: &str) -> String {
    let length = value.chars().count();
    format!("[removed: {kind}, {length} character{}]", if length == 1 { "" } else { "s" })
}

fn is_yes_or_no(value: &str) -> bool {
    let words = ["", "true", "false", "yes", "no", "on", "off", "none", "all"];
    words.iter().any(|word| value.eq_ignore_ascii_case(word))
}

/// `$DOCKER_OPTS`, `${FILE}`: only a start knows the value.
fn is_variable(word: &str) -> bool {
    let name = word.strip_prefix('$').map(|name| name.trim_start_matches('{').trim_end_matches('}'));
    name.is_some_and(|name| is_name(name) && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

/// Words, paths, numbers and addresses, or a list of them in which none sounds secret.
fn is_plain(value: &str) -> bool {
    match value.split_once("://") {
        Some(("unix" | "file" | "fd", rest)) => rest.is_empty() || is_path(rest),
        Some(("http" | "https" | "tcp", rest)) => {
            is_host(rest.trim_end_matches('/')) || rest.starts_with("repo.radeon.com/") && is_word(rest)
        }
        Some(_) => false,
        None if value.contains([',', ' ', ';']) && value.split([',', ' ', ';']).any(is_secret) => false,
        None => value.split([',', ' ', ';']).all(|piece| {
            let (name, word) = piece.split_once('=').unwrap_or(("", piece));
            is_path(piece.trim_start_matches('-'))
                || is_variable(piece)
                || is_numbers(piece)
                || is_word(word) && (name.is_empty() || is_name(name) && !is_secret(name))
        }),
    }
}

pub(super) fn is_path(piece: &str) -> bool {
    piece.starts_with('/')
        && piece.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+%:*".contains(c))
        && !is_random(piece)
}

fn is_word(piece: &str) -> bool {
    let is_of_word = |c: char| c.is_ascii_alphanumeric() || "._-+~/*".contains(c);
    piece.len() <= 64 && piece.chars().all(is_of_word) && !is_random(piece)
}

/// `0000:64:00.0`, `127.0.0.1:1338`, `226:128`.
pub(super) fn is_numbers(piece: &str) -> bool {
    piece.len() <= 21
        && piece.contains([':', '.'])
        && piece.split([':', '.']).all(|part| !part.is_empty() && is_hex(part))
        && !is_random(piece)
}

/// `proxy.example:3128`.
fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').unwrap_or((host, ""));
    port.len() <= 5
        && port.chars().all(|c| c.is_ascii_digit())
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && !is_random(name)
}

fn is_hex(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Letters and digits without a word in them, as tokens are; the uuids of GPUs stay (docs/doctor.md).
fn is_random(text: &str) -> bool {
    let is_uuid = text.strip_prefix("GPU-").is_some_and(|rest| rest.len() <= 32 && is_hex(rest));
    !is_uuid
        && text.split(['-', '_', '.', '/', ':', '=']).any(|part| {
            let digits = part.chars().filter(char::is_ascii_digit).count();
            part.len() >= 16 && digits > 0 && digits < part.len() || part.len() >= 40
        })
}
