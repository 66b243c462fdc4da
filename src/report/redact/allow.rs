//! Which keys and values of a configuration stay in a report. Everything else is removed: what a secret is called, and
//! what it looks like, nobody can list.

use super::is_secret;
use super::keys::{ENVIRONMENT, FOLDERS, PROGRAMS};
use crate::engines::{self, Keys};

impl Keys {
    /// `place`: the tables that a key stands in, and the key.
    pub(super) fn is_known(&self, place: &[&str]) -> bool {
        let Some((key, tables)) = place.split_last() else { return false };
        let is_here = |pattern: &str| {
            let mut steps = pattern.split('.').filter(|step| !step.is_empty());
            pattern == "**"
                || tables.iter().all(|table| steps.next().is_some_and(|step| step == "*" || step == *table))
                    && steps.next().is_none()
        };
        let is_listed = self.tables.iter().any(|(table, keys)| keys.contains(key) && is_here(table));
        is_listed && (self.may_sound_secret || !is_secret(key))
    }
}

/// Whether a key that means nothing here may be told: it has the shape of a name, and no secret's.
pub(super) fn is_name(key: &str) -> bool {
    (1..=48).contains(&key.len())
        && key.starts_with(|c: char| c.is_ascii_alphabetic())
        && key.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.'))
        && !is_random(key)
}

/// What may be told of the value of the key at `place`; `None`: nothing.
pub(super) fn told(keys: &Keys, place: &[&str], value: &str) -> Option<String> {
    if says_yes_or_no(value) {
        return Some(value.to_owned());
    }
    if !keys.is_known(place) {
        return None;
    }
    if place.last() == Some(&"fingerprints") {
        return (value.len() == 40 && is_hex(value)).then(|| value.to_owned());
    }
    if value.contains("://") {
        return url(value);
    }
    let pieces = || value.split([',', ' ', ';']).filter(|piece| !piece.is_empty());
    pieces().all(is_plain).then(|| value.to_owned())
}

/// `NAME=value`, of an environment.
pub(super) fn variable(text: &str) -> String {
    match text.split_once('=') {
        Some((key, value)) if is_of_environment(key) => {
            format!("{key}={}", told(&ENVIRONMENT, &[key], value).unwrap_or_else(|| removed("text", value)))
        }
        None if ENVIRONMENT.is_known(&[text]) => text.to_owned(),
        _ => removed("text", text),
    }
}

/// Capitals: what stands in front of an equals sign may be a part of a secret that was cut there.
pub(super) fn is_of_environment(key: &str) -> bool {
    ENVIRONMENT.is_known(&[key])
        || is_name(key) && key.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_')
}

/// `NoNewPrivileges`, `X-Owner`: systemd's settings are words with capitals.
pub(super) fn is_of_unit(key: &str) -> bool {
    is_name(key) && key.starts_with(|c: char| c.is_ascii_uppercase())
}

pub(super) fn name(name: &str) -> String {
    if is_name(name) { name.to_owned() } else { removed("name", name) }
}

/// A command line: the program, options by their names, and what is known of their values.
pub(super) fn arguments(words: &[String]) -> Vec<String> {
    let program = words.first().and_then(|word| word.rsplit('/').next()).unwrap_or_default();
    let of_engines = engines::ALL.iter().filter_map(|engine| engine.command);
    let known = PROGRAMS.iter().copied().chain(of_engines).find(|(name, ..)| *name == program);
    let (options, commands) = known.map_or((&[][..], &[][..]), |(_, options, commands)| (options, commands));
    let mut option: Option<&str> = None;
    let mut said = Vec::with_capacity(words.len());
    for (at, word) in words.iter().enumerate() {
        let before = option.take();
        let dashed = word.strip_prefix("--").or_else(|| word.strip_prefix('-')).filter(|it| !it.is_empty());
        said.push(
            match dashed.map(|it| it.split_once('=').map_or((it, None), |(name, value)| (name, Some(value))))
            {
                // `-phunter2`: one dash, and letters that are no option.
                Some((name, value)) if is_option(options, word, name) => match value {
                    None => {
                        option = Some(name);
                        word.clone()
                    }
                    Some(value) => {
                        let begin = word.strip_suffix(value).unwrap_or_default();
                        format!(
                            "{begin}{}",
                            of_option(options, name, value).unwrap_or_else(|| removed("text", value))
                        )
                    }
                },
                Some(_) => removed("text", word),
                None if word == "--"
                    || commands.contains(&word.as_str())
                    || is_variable(word)
                    || at == 0 && is_path(word) =>
                {
                    word.clone()
                }
                None => before
                    .and_then(|option| of_option(options, option, word))
                    .unwrap_or_else(|| removed("text", word)),
            },
        );
    }
    said
}

fn is_option(options: &[&str], word: &str, name: &str) -> bool {
    let is_letter = name.len() == 1 && name.chars().all(|c| c.is_ascii_alphabetic());
    options.contains(&name) || is_letter || word.starts_with("--") && is_name(name)
}

fn of_option(options: &[&str], option: &str, value: &str) -> Option<String> {
    if says_yes_or_no(value) || is_variable(value) {
        return Some(value.to_owned());
    }
    if !options.contains(&option) {
        return None;
    }
    if value.contains("://") { url(value) } else { value.split(',').all(is_plain).then(|| value.to_owned()) }
}

/// What stands in the place of a value: its kind and how long it was.
pub(super) fn removed(kind: &str, value: &str) -> String {
    let kind = if value.contains("-----BEGIN ") {
        "PEM"
    } else if value.contains("://") {
        "address"
    } else {
        kind
    };
    let length = value.chars().count();
    format!("[removed: {kind}, {length} character{}]", if length == 1 { "" } else { "s" })
}

fn says_yes_or_no(value: &str) -> bool {
    value.is_empty()
        || ["true", "false", "yes", "no", "on", "off", "none", "all"]
            .iter()
            .any(|it| value.eq_ignore_ascii_case(it))
}

/// `$DOCKER_OPTS`, `${FILE}`: what only a start can tell, which rocworker says.
fn is_variable(word: &str) -> bool {
    let name = word
        .strip_prefix('$')
        .map(|it| it.strip_prefix('{').and_then(|it| it.strip_suffix('}')).unwrap_or(it));
    name.is_some_and(|name| is_name(name) && name.chars().all(|c| c.is_ascii_uppercase() || c == '_'))
}

fn is_plain(piece: &str) -> bool {
    is_path(piece.strip_prefix('-').unwrap_or(piece)) || is_address(piece) || is_word(piece)
}

pub(super) fn is_path(piece: &str) -> bool {
    piece.starts_with('/')
        && piece
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '/' | '.' | '_' | '-' | '+' | '%' | ':' | '*'))
        && !is_random(piece)
}

/// `0000:64:00.0`, `proxy.example:3128`, `127.0.0.1`, `226:128`.
fn is_address(piece: &str) -> bool {
    let of_hex = |part: &str| !part.is_empty() && part.chars().all(|c| c.is_ascii_hexdigit() || c == '.');
    is_host(piece) && piece.contains('.')
        || piece.contains(':') && piece.len() <= 16 && piece.split(':').all(of_hex)
}

fn is_word(piece: &str) -> bool {
    let (name, value) = piece.split_once('=').unwrap_or(("", piece));
    let is_of_word =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-' | '+' | '~' | '@' | '/' | '*');
    (name.is_empty() || is_name(name) && !is_secret(name))
        && !value.contains("//")
        && value.chars().all(is_of_word)
        && value.len() <= 64
        && !is_random(value)
}

/// An address without who logs in, a path or a query: whose it is, is told. Of AMD's folders the path stays.
fn url(value: &str) -> Option<String> {
    let (scheme, rest) = value.split_once("://")?;
    if !["http", "https", "tcp", "unix", "fd", "file"].contains(&scheme) {
        return None;
    }
    if matches!(scheme, "unix" | "file" | "fd") {
        return (rest.is_empty() || is_path(rest)).then(|| value.to_owned());
    }
    // A password may hold every character, the slash among them.
    let (login, rest) = match rest.rsplit_once('@') {
        Some((login, rest)) => (format!("{}@", removed("login", login)), rest),
        None => (String::new(), rest),
    };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    if !is_host(host) || !login.is_empty() && !path.is_empty() {
        return None;
    }
    let of_amd = |it: &str| {
        FOLDERS.contains(&it) || it.is_empty() || it.chars().all(|c| c.is_ascii_digit() || c == '.')
    };
    let path = if path.split('/').all(of_amd) { path.to_owned() } else { removed("path", path) };
    let slash = if rest.contains('/') { "/" } else { "" };
    Some(format!("{scheme}://{login}{host}{slash}{path}"))
}

fn is_host(host: &str) -> bool {
    let (name, port) = host.split_once(':').map_or((host, None), |(name, port)| (name, Some(port)));
    let is_port =
        port.is_none_or(|port| (1..=5).contains(&port.len()) && port.chars().all(|c| c.is_ascii_digit()));
    is_port
        && !name.is_empty()
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        && !is_random(name)
}

fn is_hex(text: &str) -> bool {
    text.chars().all(|c| c.is_ascii_hexdigit())
}

/// Letters and digits without a word in them, as tokens are. The uuids of GPUs are told (docs/doctor.md).
fn is_random(text: &str) -> bool {
    let text = text.strip_prefix("GPU-").filter(|rest| rest.len() <= 32 && is_hex(rest)).map_or(text, |_| "");
    text.split(['-', '_', '.', '/', ':', '=']).any(|part| {
        let digits = part.chars().filter(char::is_ascii_digit).count();
        part.len() >= 16 && digits > 0 && digits < part.len() || part.len() >= 40
    })
}
