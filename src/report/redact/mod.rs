//! Takes secrets and identities out of texts that strangers will read. Of a configuration only the plain values of known
//! keys stay; of an error what comes before the first word that sounds secret.

mod configuration;
mod keys;
#[cfg(test)]
mod tests;
mod value;

use host::hostname;
use root::Root;
use serde_json::Value;

pub(super) use keys::{CDI, POLICY};
use value::{SECRET_WORDS, is_name, is_numbers, is_path, is_secret, removed};
pub(super) use value::{module_line, parameter};

/// Replaces a login or a hardware address.
const MARK: &str = "[removed]";

/// What every sentence of the wrapper begins with.
const WRAPPER: &str = "runc-amd-wrapper: ";

/// Words that rocworker writes on every machine.
const NO_NAMES: [&str; 3] = ["localhost", "amdgpu", "amd.com"];

/// Removes secrets, and names of this machine.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// The hostname, its first label and its domain, in small letters.
    names: Vec<String>,
    /// How paths begin beneath another Root than `/`.
    root: Option<String>,
}

impl Redactor {
    pub(crate) fn new(root: &Root) -> Self {
        let beneath = (!root.is_host()).then(|| root.shown("/").display().to_string());
        Self { root: beneath, ..Self::of_host(hostname(root).as_deref()) }
    }

    /// A name shorter than four letters identifies no machine, and would be found in other words. So would a domain
    /// without a dot, such as `local`.
    fn of_host(hostname: Option<&str>) -> Self {
        let hostname = hostname.map(|name| name.trim_end_matches('.').to_ascii_lowercase());
        let hostname = hostname.as_deref().unwrap_or_default();
        let (label, domain) = hostname.split_once('.').unwrap_or((hostname, ""));
        let names = [hostname, label, if domain.contains('.') { domain } else { "" }].into_iter();
        let telling = names.filter(|name| name.len() >= 4 && !NO_NAMES.contains(name));
        Self { names: telling.map(str::to_owned).collect(), root: None }
    }

    /// A program's message, up to the first word that sounds secret.
    pub(crate) fn text(&self, text: &str) -> String {
        let lower = text.to_ascii_lowercase();
        let secret = SECRET_WORDS.iter().filter_map(|word| lower.find(word)).min();
        let (kept, secret) = text.split_at_checked(secret.unwrap_or(text.len())).unwrap_or(("", text));
        let mark = if secret.is_empty() { String::new() } else { removed("text", secret) };
        self.identities(kept) + &mark
    }

    /// A line with a sentence of the wrapper, in which values of a container's environment may be: the line's time, and
    /// the sentence's plain words, numbers and names of devices, up to the first word that sounds secret.
    pub(crate) fn wrapper_line(&self, line: &str) -> Option<String> {
        let (before, sentence) = line.split_once(WRAPPER)?;
        let time = before.split(' ').next().unwrap_or_default();
        Some(self.identities(&format!("{time} {WRAPPER}{}", plain_words(sentence, is_of_a_sentence))))
    }

    /// What doctor saw, in which values of other programs' configurations may be. Unlike in a container's words, paths,
    /// versions and names with dots stay.
    pub(crate) fn evidence(&self, sentence: &str) -> String {
        let sentence = self.beneath_root(sentence);
        let is_kept = |it: &str| is_of_a_sentence(&it.replace('.', "")) || is_path(it) || is_numbers(it);
        self.identities(&plain_words(&sentence, is_kept))
    }

    /// What is wrong with rocworker's configuration: the line, an unknown key and the known ones, but no value.
    pub(crate) fn error(&self, text: &str) -> String {
        let Some((before, quoted)) = text.split_once(['"', '`']) else { return self.text(text) };
        // An unknown key can contain `, expected`; the list of known keys comes last.
        let key = quoted.rsplit_once("`, expected ").map(|(key, _)| key);
        let is_kept = before.ends_with("unknown field ") && key.is_some_and(is_name);
        self.text(before)
            + &if is_kept { self.identities(&format!("`{quoted}")) } else { removed("text", quoted) }
    }

    /// Takes names out of rocworker's own answer.
    pub(crate) fn names_in(&self, value: &mut Value) {
        match value {
            Value::String(text) => *text = self.identities(&self.beneath_root(text)),
            Value::Array(items) => items.iter_mut().for_each(|item| self.names_in(item)),
            Value::Object(map) => map.values_mut().for_each(|value| self.names_in(value)),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn beneath_root(&self, text: &str) -> String {
        self.root.as_ref().map_or_else(|| text.to_owned(), |root| text.replace(root, "/"))
    }

    /// A text without the identities in it: logins, hardware addresses, the machine's name.
    fn identities(&self, text: &str) -> String {
        let in_login = |c: char| !" \t\"'=,<>()".contains(c);
        let text = replaced(text, in_login, |run| {
            let (login, host) = run.rsplit_once('@')?;
            match login.split_once("://") {
                Some((scheme, _)) => Some(format!("{scheme}://{MARK}@{host}")),
                None => login.contains(':').then(|| format!("{MARK}@{host}")),
            }
        });
        let in_address = |c: char| c.is_ascii_hexdigit() || matches!(c, ':' | '-');
        // Six pairs of digits, which no PCI address has.
        let text = replaced(&text, in_address, |run| {
            let pairs: Vec<&str> = run.trim_end_matches([':', '-']).split([':', '-']).collect();
            (pairs.len() == 6 && pairs.iter().all(|pair| pair.len() == 2)).then(|| MARK.to_owned())
        });
        self.names.iter().fold(text, |text, name| without_name(&text, name))
    }
}

/// A text with `HOST` for each `name` whose neighbours are no letter, digit or hyphen.
fn without_name(text: &str, name: &str) -> String {
    let in_word = |c: char| c.is_alphanumeric() || c == '-';
    let lower = text.to_ascii_lowercase();
    let (mut written, mut from) = (String::with_capacity(text.len()), 0);
    while let Some(at) = lower.get(from..).and_then(|rest| rest.find(name)).map(|at| from + at) {
        written += text.get(from..at).unwrap_or_default();
        let after = text.get(at + name.len()..).unwrap_or_default();
        let is_part = text.get(..at).is_some_and(|it| it.ends_with(in_word)) || after.starts_with(in_word);
        // Within what is only a part of a word, the name can begin anew at the next letter.
        let length = if is_part { 1 } else { name.len() };
        written += if is_part { text.get(at..at + length).unwrap_or_default() } else { "HOST" };
        from = at + length;
    }
    written + text.get(from..).unwrap_or_default()
}

/// A text in which each longest run of characters that belong together is what `instead` makes of it.
fn replaced(text: &str, belongs: impl Fn(char) -> bool, instead: impl Fn(&str) -> Option<String>) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(begin) = rest.find(&belongs) {
        let (before, run) = rest.split_at_checked(begin).unwrap_or((rest, ""));
        let (run, after) =
            run.find(|c| !belongs(c)).and_then(|end| run.split_at_checked(end)).unwrap_or((run, ""));
        replaced += before;
        replaced += instead(run).as_deref().unwrap_or(run);
        rest = after;
    }
    replaced + rest
}

/// A sentence's words that `is_kept` knows, up to the first that sounds secret.
fn plain_words(sentence: &str, is_kept: impl Fn(&str) -> bool) -> String {
    let mut rest = sentence.split(' ');
    let mut words = Vec::new();
    for word in rest.by_ref() {
        let core = word.trim_matches(|c: char| "\"'`(),.;:[]\\".contains(c));
        let stays = core.is_empty() || is_kept(core);
        words.push(if stays { word.to_owned() } else { removed("text", word) });
        if is_secret(core) {
            break;
        }
    }
    let secret = rest.collect::<Vec<_>>().join(" ");
    if !secret.is_empty() {
        words.push(removed("text", &secret));
    }
    words.join(" ")
}

fn is_of_a_sentence(word: &str) -> bool {
    const FOLDERS: [&str; 5] = ["/dev/", "/sys/", "/proc/", "/run/rocworker", "/etc/"];
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_node =
        || ["renderD", "card", "gfx"].iter().any(|name| word.strip_prefix(name).is_some_and(is_number));
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-'_".contains(&byte));
    is_plain && !word.starts_with('-')
        || word.len() < 8 && word.bytes().all(|byte| byte.is_ascii_digit())
        || is_node()
        || word.len() == 12 && word.split([':', '.']).all(is_number)
        || is_path(word) && FOLDERS.iter().any(|folder| word.starts_with(folder))
}
