//! The process file of `runc exec --process FILE`.

use allocation::{bundle::Bundle, process};
use serde_json::Value;

use crate::{
    assert_fit_for_a_log, input,
    json::{as_go_decodes, is_object},
    oracle::Places,
    reference, tokens,
};

/// An injection, of which the edits of the process count, and a process object: see `input::read`.
pub fn check(data: &[u8]) {
    let Some((mut injection, text)) = input::read(data) else { return };
    injection.nodes.clear();
    injection.shm_bytes = None;
    injection.folders = &[];
    let edits = &injection.process;
    if !is_object(text) {
        return assert!(process::inject(text, edits).is_err(), "edited, though it is no object: {text}");
    }
    let as_read = as_go_decodes(text);
    let can_be_edited =
        Places::of_process(&as_read).is_some_and(|places| places.can_be_looked_into(&injection));
    let injected = match process::inject(text, edits) {
        Ok(injected) => injected,
        Err(error) => {
            assert!(!can_be_edited, "not edited: {error}\n{text}");
            return assert_fit_for_a_log(&error.to_string());
        }
    };
    assert!(can_be_edited, "edited, though nobody can say what it means:\n{text}");
    let after = injected.as_deref().unwrap_or(text);
    assert_eq!(process::inject(after, edits), Ok(None), "a second injection into\n{after}");
    tokens::assert_kept(text, after, &injection);
    if let Ok(mut tree) = serde_json::from_str::<Value>(&as_read) {
        reference::edit_process(&mut tree, edits).expect("edited");
        let after: Value = serde_json::from_str(&as_go_decodes(after)).expect("JSON");
        assert_eq!(after, tree, "\n{text}\n{after}");
    }
    // create and exec give a process the same.
    let within = |process: &str| format!("{{\"process\":{process}}}");
    let bundle = within(text);
    let of_bundle = Bundle::parse(&bundle).and_then(|bundle| bundle.inject(&injection));
    assert_eq!(of_bundle, Ok(injected.as_deref().map(within)), "{text}");
}
