//! Compares versions (deb-version(7)).

use std::cmp::Ordering;

/// Compares the epochs, then the upstream versions, then Debian's revisions.
#[must_use]
pub fn compare(a: &str, b: &str) -> Ordering {
    let ((epoch_a, a), (epoch_b, b)) = (epoch(a), epoch(b));
    let ((upstream_a, revision_a), (upstream_b, revision_b)) = (revision(a), revision(b));
    numbers(epoch_a, epoch_b)
        .then_with(|| parts(upstream_a, upstream_b))
        .then_with(|| parts(revision_a, revision_b))
}

fn epoch(version: &str) -> (&str, &str) {
    version.split_once(':').unwrap_or(("0", version))
}

fn revision(version: &str) -> (&str, &str) {
    version.rsplit_once('-').unwrap_or((version, ""))
}

/// Compares stretches without and with digits by turns, until they differ.
fn parts(mut a: &str, mut b: &str) -> Ordering {
    while !a.is_empty() || !b.is_empty() {
        let ((words_a, rest_a), (words_b, rest_b)) = (split(a, false), split(b, false));
        let ((number_a, rest_a), (number_b, rest_b)) = (split(rest_a, true), split(rest_b, true));
        let order = words(words_a, words_b).then_with(|| numbers(number_a, number_b));
        if order.is_ne() {
            return order;
        }
        (a, b) = (rest_a, rest_b);
    }
    Ordering::Equal
}

fn split(text: &str, digits: bool) -> (&str, &str) {
    text.split_at(text.find(|c: char| c.is_ascii_digit() != digits).unwrap_or(text.len()))
}

/// Letters before everything else, and a tilde even before the end.
fn words(a: &str, b: &str) -> Ordering {
    let weight = |byte: Option<u8>| match byte {
        Some(b'~') => -1,
        None => 0,
        Some(byte) if byte.is_ascii_alphabetic() => i32::from(byte),
        Some(byte) => i32::from(byte) + 256,
    };
    let (mut a, mut b) = (a.bytes(), b.bytes());
    loop {
        let pair = (a.next(), b.next());
        let order = weight(pair.0).cmp(&weight(pair.1));
        if order.is_ne() || pair == (None, None) {
            return order;
        }
    }
}

/// Compares numbers of any length.
fn numbers(a: &str, b: &str) -> Ordering {
    let (a, b) = (a.trim_start_matches('0'), b.trim_start_matches('0'));
    a.len().cmp(&b.len()).then_with(|| a.cmp(b))
}
