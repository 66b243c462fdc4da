//! In which order an apply and an undo write: the bytes that were there before, then the receipt, then the file, each
//! made to last before the next.

use support::killed::{WRITES, calls};
use support::real;

use crate::setup::laid::Laid;
use crate::setup::program::Program;
use crate::setup::starting_states;

/// The calls of a run, without numbers that differ from run to run.
fn order(laid: &Laid, program: &Program, command: &str) -> String {
    let argv = program.argv(laid, &[command]);
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    let made = calls(&argv, WRITES);
    let top = laid.top().to_str().unwrap();
    let of_machine = made.iter().filter(|call| call.line.contains(top));
    of_machine.map(|call| normal(&call.line.replace(top, "")) + "\n").collect()
}

/// `renameat(5</etc/cdi>, ".rocworker-amd.json.4711", …) = 0` without the numbers of descriptors and processes, digests,
/// and how many bytes were written.
fn normal(line: &str) -> String {
    let mut text = String::new();
    let mut rest = line;
    while let Some(at) = rest.find(|c: char| c.is_ascii_alphanumeric()) {
        let (before, word) = rest.split_at(at);
        let end = word.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(word.len());
        let (word, after) = word.split_at(end);
        let is_number = word.bytes().all(|b| b.is_ascii_digit());
        let is_digest = word.len() == 64;
        text.push_str(before);
        match word {
            _ if is_digest => text.push_str("SHA256"),
            // Of a descriptor, and the pid at a temporary file's end.
            _ if is_number && after.starts_with('<') => {}
            _ if is_number && before.ends_with('.') && !word.starts_with('0') => text.push_str("PID"),
            _ => text.push_str(word),
        }
        rest = after;
    }
    text.push_str(rest);
    if text.starts_with("write(") {
        let path = text.split_once('>').map_or(text.as_str(), |(path, _)| path);
        return format!("{path}>)");
    }
    text
}

#[test]
fn real_order_in_which_an_apply_and_its_undo_write() {
    if !real::require_root(&["strace"]) {
        return;
    }
    let (laid, program) = (starting_states::machine(), Program::new());
    let (_, lay) =
        starting_states::STARTS.iter().find(|(name, _)| *name == "all-there-by-somebody-else").unwrap();
    lay(&laid, &program);
    insta::assert_snapshot!("order_of_apply", order(&laid, &program, "apply"));
    insta::assert_snapshot!("order_of_undo", order(&laid, &program, "undo"));
    // A second one of each writes nothing at all.
    assert_eq!(order(&laid, &program, "undo"), "");
    order(&laid, &program, "apply");
    assert_eq!(order(&laid, &program, "apply"), "");
}
