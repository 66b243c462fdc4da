//! The list of folders in which docker looks for CDI specs: the managed one in it, and somebody else's.

use std::path::Path;

use engines::docker::desired::actions;
use reconcile::Kind;

use crate::desired::docker::{WRAPPER, applied, config, docker};

#[test]
fn a_folder_that_somebody_adds_to_our_list_of_specs_stays_beside_those_that_docker_had_by_itself() {
    let folders = |text: &str| {
        let value: serde_json::Value = serde_json::from_str(text).unwrap();
        value.get("cdi-spec-dirs").map(ToString::to_string)
    };
    for before in [None, Some("{}"), Some("{\"cdi-spec-dirs\": []}"), Some("{\"cdi-spec-dirs\": null}")] {
        let wanted = |text| {
            let docker = docker("28.5.2", text);
            actions(&config("cdi: {path: /srv/cdi/amd.json}"), &docker, Path::new(WRAPPER))
        };
        let (action, ours) = applied(&wanted(before), before.unwrap_or_default());
        let Kind::Edited(edit) = &action.kind else { panic!("{action:?}") };
        assert_eq!(folders(&ours).as_deref(), Some(r#"["/etc/cdi","/var/run/cdi","/srv/cdi"]"#));

        let theirs = ours.replace("\"/srv/cdi\"]", "\"/srv/cdi\", \"/opt/cdi\"]");
        assert_ne!(theirs, ours);
        let (again, text) = applied(&wanted(Some(&theirs)), &theirs);
        assert_eq!((&again.kind, &text), (&action.kind, &theirs), "{before:?}");
        let left = edit.revert(&theirs, before).unwrap().text.unwrap();
        assert_eq!(folders(&left).as_deref(), Some(r#"["/etc/cdi","/var/run/cdi","/opt/cdi"]"#));

        // No unmanaged folder is in it: the list goes, and docker's own is in effect again.
        let reordered = format!("{} ", ours.replace("\": [", "\":  ["));
        let left = edit.revert(&reordered, before).unwrap().text;
        let left = left.as_deref().and_then(folders);
        assert_eq!(left, before.and_then(folders), "{before:?}");
    }
}
