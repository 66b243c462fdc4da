//! `explain CODE`, `explain --list` and `list-errors`.

mod afids;
mod answers;
mod document;
mod real_headers;

use std::path::Path;
use std::process::{Command, Output};

fn rocworker(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_rocworker")).args(arguments).output().unwrap()
}

/// Its answer: it succeeds, and says nothing beside it.
#[track_caller]
fn answer(arguments: &[&str]) -> String {
    let output = rocworker(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && stderr.is_empty(), "{arguments:?}: {}: {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

/// The sentence with which it refuses: exit code 2, one line, and no answer.
#[track_caller]
fn refusal(arguments: &[&str]) -> String {
    let output = rocworker(arguments);
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
    let sentence = stderr.strip_prefix("rocworker: ").and_then(|said| said.strip_suffix('\n')).unwrap();
    assert!(!sentence.contains('\n'), "{sentence}");
    sentence.to_owned()
}

fn beneath<'a>(root: &'a Path, arguments: &[&'a str]) -> Vec<&'a str> {
    [&["--root", root.to_str().unwrap()], arguments].concat()
}
