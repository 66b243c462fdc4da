//! Values and names as the page writes them.

use maud::{Markup, html};
use telemetry::container::short;
use telemetry::printable::printable;

/// The length at which text is cut: no kernel or engine gives longer names.
const MOST: usize = 512;

/// Shows text of a machine or a process, which anyone may have chosen. maud escapes it. Characters that would
/// hide or turn text are written out, and text from right to left does not affect what stands around it.
pub(super) fn untrusted(text: &str) -> Markup {
    html! { bdi { (plain(text)) } }
}

pub(super) fn container(name: &str) -> Markup {
    untrusted(short(name))
}

/// Makes text safe as [`untrusted`] does, for a title, which can hold no element.
pub(super) fn plain(text: &str) -> String {
    let short = match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{}…", text.get(..end).unwrap_or_default()),
        None => text.to_owned(),
    };
    printable(&short)
}

pub(super) fn known<T>(value: Option<T>, shown: impl FnOnce(T) -> Markup) -> Markup {
    match value {
        Some(value) => shown(value),
        None => unknown(),
    }
}

pub(super) fn unknown() -> Markup {
    html! { span.unknown { "unknown" } }
}

pub(super) fn bytes(bytes: f64) -> String {
    const KIB: f64 = 1024.0;
    let sizes = [("GiB", KIB * KIB * KIB), ("MiB", KIB * KIB), ("KiB", KIB)];
    match sizes.into_iter().find(|(_, size)| bytes >= *size) {
        Some((unit, size)) => format!("{:.1} {unit}", bytes / size),
        None => format!("{bytes:.0} B"),
    }
}

/// Seconds since 1970.
pub(super) fn time(seconds: u64) -> Markup {
    let exact = allocation::rfc3339(seconds);
    let shown = exact.replace('T', " ").replace('Z', " UTC");
    html! { time.time datetime=(exact) { (shown) } }
}

/// `1 process`, `2 processes`.
pub(super) fn counted(count: usize, one: &str, many: &str) -> String {
    if count == 1 { format!("1 {one}") } else { format!("{count} {many}") }
}

/// A bar that shows how full something is. Screen readers skip it: the numbers follow. The page's policy
/// forbids styles in elements.
pub(super) fn bar(part: f64, whole: f64) -> Markup {
    let percent = if whole > 0.0 { (100.0 * part / whole).clamp(0.0, 100.0) } else { 0.0 };
    html! {
        svg.bar viewBox="0 0 100 1" preserveAspectRatio="none" aria-hidden="true" {
            rect width=(format!("{percent:.1}")) height="1" {}
        }
    }
}

/// A table in a region of its own, so that a narrow window scrolls it and not the page. `id`: of its caption.
pub(super) fn table(id: &str, caption: &str, heads: &[(&str, bool)], rows: &Markup) -> Markup {
    html! {
        div.wide role="region" aria-labelledby=(id) tabindex="0" {
            table {
                caption id=(id) { (caption) }
                thead { tr {
                    @for (head, is_number) in heads { th.number[*is_number] scope="col" { (head) } }
                } }
                tbody { (rows) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_the_unit_that_fits() {
        for (size, expected) in [
            (0.0, "0 B"),
            (1023.0, "1023 B"),
            (1024.0, "1.0 KiB"),
            (1.5 * 1024.0 * 1024.0, "1.5 MiB"),
            (206_141_652_992.0, "192.0 GiB"),
        ] {
            assert_eq!(bytes(size), expected);
        }
    }

    #[test]
    fn what_a_process_calls_itself_is_text_and_steers_nothing() {
        assert_eq!(
            untrusted("<script>\"'&\u{202e}\u{1b}[31m\n").into_string(),
            "<bdi>&lt;script&gt;&quot;'&amp;\\u{202e}\\u{1b}[31m\\n</bdi>"
        );
        assert_eq!(plain(&"x".repeat(600)).chars().count(), MOST + 1);
    }
}
