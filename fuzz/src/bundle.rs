//! `config.json`: read, and edited where it stands.

use allocation::{
    Error,
    bundle::{Bundle, Injection},
    container,
    request::Request,
};
use serde_json::Value;

use crate::{
    assert_fit_for_a_log, input,
    json::{as_go_decodes, is_object},
    oracle::Places,
    reference, tokens,
};

/// An injection and a bundle: see `input::read`.
pub fn check(data: &[u8]) {
    let Some((injection, text)) = input::read(data) else { return };
    let bundle = match Bundle::parse(text) {
        Ok(bundle) => bundle,
        Err(error) => return refused(text, &error),
    };
    assert!(is_object(text), "read, though it is no object: {text}");
    if let Err(error) = Request::from_env(bundle.env()) {
        assert_fit_for_a_log(&error.to_string());
    }
    container::is_kubernetes(bundle.annotation_keys());
    container::is_concourse_resource(bundle.env());
    let rootfs = bundle.rootfs();
    let as_read = as_go_decodes(text);
    let places = Places::of_bundle(&as_read);
    assert!(!places.in_doubt, "read, though it is not clear what it means: {text}");
    assert_eq!(rootfs.as_deref(), places.rootfs.as_deref(), "{text}");
    let namespace = bundle.user_namespace();
    let (devices, cgroups_path) = (bundle.devices(), bundle.cgroups_path());
    for error in [namespace.as_ref().err(), devices.as_ref().err(), cgroups_path.as_ref().err()] {
        error.into_iter().for_each(|error| assert_fit_for_a_log(&error.to_string()));
    }
    assert!(bundle.env().eq(&places.env), "{text}");
    assert!(bundle.annotation_keys().eq(&places.annotation_keys), "{text}");
    assert_eq!(namespace.ok(), places.user_namespace(), "{text}");
    assert_eq!(devices.ok(), places.devices(), "{text}");
    assert_eq!(cgroups_path.ok(), places.cgroups_path(), "{text}");
    let injected = bundle.inject(&injection);
    let can_be_edited = places.can_be_looked_into(&injection);
    // serde_json takes no number that is no f64 into a tree, and nothing that is nested deeper than 127.
    let tree = serde_json::from_str::<Value>(&as_read).ok();
    // Folders alone are left out where the list cannot be read.
    let folders = if places.mounts_can_be_read() { injection.folders } else { &[] };
    let expected = tree.map(|tree| reference::edit(tree, &Injection { folders, ..injection.clone() }));
    let injected = match injected {
        Ok(injected) => injected,
        Err(error) => {
            assert!(!can_be_edited || !matches!(expected, Some(Ok(_))), "not edited: {error}\n{text}");
            return assert_fit_for_a_log(&error.to_string());
        }
    };
    assert!(can_be_edited, "edited, though nobody can say what it means:\n{text}");
    let after = injected.as_deref().unwrap_or(text);
    let again = Bundle::parse(after).expect("what was injected reads again").inject(&injection);
    assert_eq!(again, Ok(None), "a second injection into\n{after}");
    tokens::assert_kept(text, after, &injection);
    if let Some(expected) = expected {
        let expected = expected.unwrap_or_else(|refused| {
            panic!("edited, though {}:\n{text}\n{after}", refused.0);
        });
        let after: Value = serde_json::from_str(&as_go_decodes(after)).expect("JSON");
        assert_eq!(after, expected, "\n{text}\n{after}");
    }
}

fn refused(text: &str, error: &Error) {
    assert_fit_for_a_log(&error.to_string());
    if is_object(text) {
        let as_read = as_go_decodes(text);
        assert!(Places::of_bundle(&as_read).in_doubt, "refused, though it is clear: {error} of {text}");
    }
}
