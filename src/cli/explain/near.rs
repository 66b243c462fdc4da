//! What has the words of a text in which nothing is known: a part of a line of the kernel.

use kernel_log::knowledge::Knowledge;

/// The most names that a text is said to be near.
const NEAR: usize = 3;

/// What a person reads of a text in which nothing is known, as of a part of a line.
pub(super) fn near(text: &str) -> anyhow::Result<String> {
    let text = text.to_lowercase();
    let has = |name: &str| name.contains('-') && name.split('-').all(|word| text.contains(word));
    let messages = Knowledge::built_in()?.messages().iter().filter(|message| !message.silent);
    let near = messages.filter(|message| has(&message.id)).take(NEAR);
    let lines: String = near.map(|message| format!("Near it: rocworker explain {}\n", message.id)).collect();
    Ok(format!(
        "If this is a part of a line, give the whole line. rocworker explain --list has every name.\n{lines}"
    ))
}
