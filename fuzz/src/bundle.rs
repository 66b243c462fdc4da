//! `config.json`: read, and edited where it stands.

use allocation::{
    bundle::{Bundle, Error},
    container,
    request::Request,
};
use serde::de::IgnoredAny;
use serde_json::Value;

use crate::{assert_fit_for_a_log, input, reference, tokens};

/// An injection and a bundle: see `input::read`.
pub fn check(data: &[u8]) {
    let Some((injection, text)) = input::read(data) else { return };
    let bundle = match Bundle::parse(text) {
        Ok(bundle) => bundle,
        Err(error) => return refused(text, &error),
    };
    assert!(is_object(text), "read, though it is no JSON object");
    if let Err(error) = Request::from_env(bundle.env()) {
        assert_fit_for_a_log(&error.to_string());
    }
    container::is_kubernetes(bundle.annotation_keys());
    container::is_concourse_resource(bundle.env());
    for error in
        [bundle.user_namespace().map(drop), bundle.devices().map(drop)].into_iter().filter_map(Result::err)
    {
        assert_fit_for_a_log(&error.to_string());
    }
    let injected = match bundle.inject(&injection) {
        Ok(injected) => injected,
        Err(error) => {
            assert!(!matches!(error, Error::Syntax { .. } | Error::TooDeep { .. }), "read before: {error}");
            return assert_fit_for_a_log(&error.to_string());
        }
    };
    assert_eq!(bundle.doubt(), None, "edited, though in doubt");
    let after = injected.as_deref().unwrap_or(text);
    let again = Bundle::parse(after).expect("what was injected reads again").inject(&injection);
    assert_eq!(again, Ok(None), "a second injection into\n{after}");
    tokens::assert_kept(text, after, &injection.env);
    // serde_json takes neither a lone surrogate nor a number that is no f64 into a tree.
    if let Ok(tree) = serde_json::from_str::<Value>(text) {
        let expected = reference::edit(tree, &injection).unwrap_or_else(|refused| {
            panic!("edited, though {}:\n{text}\n{after}", refused.0);
        });
        assert_eq!(serde_json::from_str::<Value>(after).expect("JSON"), expected, "\n{text}\n{after}");
    }
}

fn refused(text: &str, error: &Error) {
    assert_fit_for_a_log(&error.to_string());
    match error {
        Error::Syntax { offset, .. } => {
            assert!(*offset <= text.len());
            assert!(!is_object(text), "refused, though it is a JSON object: {error}");
        }
        Error::TooDeep { .. } => assert!(serde_json::from_str::<Value>(text).is_err(), "{error}"),
        other => panic!("reading alone cannot say: {other}"),
    }
}

/// As serde_json has it, to any depth.
fn is_object(text: &str) -> bool {
    text.trim_start_matches([' ', '\t', '\n', '\r']).starts_with('{')
        && serde_json::from_str::<IgnoredAny>(text).is_ok()
}
