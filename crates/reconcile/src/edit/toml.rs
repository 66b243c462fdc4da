use super::{Fault, Key, Reverted};

pub(super) fn apply(_keys: &[Key], _text: &str) -> Result<String, Fault> {
    Err(Fault { line: 1, problem: "not written yet".to_owned() })
}

pub(super) fn revert(_keys: &[Key], _text: &str, _before: Option<&str>) -> Result<Reverted, Fault> {
    Err(Fault { line: 1, problem: "not written yet".to_owned() })
}
