//! Lines that the wrapper has logged: its own sentences, in which values of a container's environment may stand.

use super::allow::{is_path, removed};
use super::is_secret;

/// What the wrapper's sentences begin with.
const NAME: &str = "runc-amd-wrapper: ";
/// Folders whose paths tell nothing of a person.
const FOLDERS: [&str; 5] = ["/dev/", "/sys/", "/proc/", "/run/rocworker", "/etc/"];

/// The line's time and the wrapper's sentence. Words that are no plain words of a sentence are replaced; so is the word
/// after one that sounds secret.
pub(super) fn redacted(line: &str, places: &mut usize) -> String {
    let Some(at) = line.find(NAME) else { return removed("text", line) };
    let time = line.split(' ').next().unwrap_or_default();
    let mut words = vec![time.to_owned()];
    let mut after_secret = false;
    for word in line.get(at..).unwrap_or_default().split(' ') {
        let core = word.trim_matches(|c: char| "\"'`(),.;:[]\\".contains(c));
        let is_kept = core.is_empty() || !after_secret && is_of_a_sentence(core);
        after_secret = is_kept && (is_secret(core) || matches!(core, "pass" | "pw" | "pin" | "cred" | "tok"));
        *places += usize::from(!is_kept);
        words.push(if is_kept { word.to_owned() } else { removed("text", word) });
    }
    words.join(" ")
}

fn is_of_a_sentence(word: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_node =
        || ["renderD", "card", "gfx"].iter().any(|name| word.strip_prefix(name).is_some_and(digits));
    let is_plain = word.bytes().all(|byte| byte.is_ascii_alphabetic() || b"-'_".contains(&byte));
    let is_pci = || word.len() == 12 && word.split([':', '.']).all(digits);
    let is_known_path = || is_path(word) && FOLDERS.iter().any(|folder| word.starts_with(folder));
    is_plain && !word.starts_with('-')
        || word.len() < 8 && word.bytes().all(|byte| byte.is_ascii_digit())
        || is_node()
        || is_pci()
        || is_known_path()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TIME: &str = "2026-11-22T18:40:01+00:00";

    #[test]
    fn the_wrappers_own_sentences_stay() {
        let said = "runc-amd-wrapper: the container starts without GPUs: there is no GPU \"renderD131\" on this machine, and \
                    /dev/kfd is not there; 0000:64:00.0 has 2 of 8";
        let mut places = 0;
        let line = format!("{TIME} containerd[812]: level=error msg=\"{said}");
        assert_eq!(redacted(&line, &mut places), format!("{TIME} {said}"));
        assert_eq!(places, 0);
    }

    #[test]
    fn what_a_container_or_an_engine_has_put_into_a_line_does_not() {
        for shape in [
            "pass=X",
            "DB_PASS=X",
            "cred=X",
            "pw: X",
            "TOK=X",
            "token X",
            "-pX",
            "[\"--password\",\"X\"]",
            "{\"pass\":\"X\"}",
            "https://host/?sig=X",
            "https://hooks.slack.com/services/T0/B0/X",
            "http://ann:a=X@proxy",
            "http://ann:a(X@proxy",
            "AMD_VISIBLE_DEVICES=X",
            "X",
        ] {
            for secret in ["zqx7secret", "Zq9/abc+def"] {
                let shape = shape.replace('X', secret);
                let line = format!(
                    "{TIME} dockerd[1]: env={shape} runc-amd-wrapper: the container asks for {shape} here"
                );
                let mut places = 0;
                let told = redacted(&line, &mut places);
                assert!(!told.contains("zqx7") && !told.contains("Zq9") && places > 0, "{told}");
                assert!(
                    told.starts_with(&format!("{TIME} runc-amd-wrapper: the container asks for ")),
                    "{told}"
                );
                assert!(told.ends_with(" here"), "{told}");
            }
        }
    }
}
