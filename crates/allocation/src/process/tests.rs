use super::inject;
use crate::bundle::{Bundle, Injection, ProcessEdits};

fn edits<'i>(gids: &[u32], env: &[&'i str]) -> ProcessEdits<'i> {
    ProcessEdits { gids: gids.to_vec(), env: env.to_vec(), ..ProcessEdits::default() }
}

#[test]
fn a_process_object_gets_gids_and_environment_and_keeps_the_rest() {
    let table = [
        ("{}", Some(r#"{"user":{"additionalGids":[992]},"env":["A=1"]}"#)),
        (
            r#"{"terminal":false,"user":{"uid":0,"gid":0},"args":["sh"],"env":["PATH=/bin"],"cwd":"/", "n":1.0}"#,
            Some(
                r#"{"terminal":false,"user":{"uid":0,"gid":0,"additionalGids":[992]},"args":["sh"],"env":["PATH=/bin","A=1"],"cwd":"/", "n":1.0}"#,
            ),
        ),
        (r#"{"user":{"additionalGids":[992]},"env":["A=1"]}"#, None),
        (
            r#"{"user":{"additionalGids":[7]},"env":["A=0"]}"#,
            Some(r#"{"user":{"additionalGids":[7,992]},"env":["A=0"]}"#),
        ),
    ];
    for (text, expected) in table {
        let injected = inject(text, &edits(&[992], &["A=1"])).unwrap();
        assert_eq!(injected.as_deref(), expected, "{text}");
        if let Some(injected) = injected {
            assert_eq!(inject(&injected, &edits(&[992], &["A=1"])), Ok(None), "{text}");
        }
    }
}

/// create and exec must give a process equal edits.
#[test]
fn agrees_with_what_a_bundle_gets() {
    for process in [r#"{"env":["A=0"]}"#, r#"{"user":{"additionalGids":[ 1 ]}}"#, r#"{"\u0075ser":null}"#] {
        let injection = Injection { process: edits(&[992, 1], &["A=1"]), ..Injection::default() };
        let bundle = format!(r#"{{"process":{process}}}"#);
        let bundle = Bundle::parse(&bundle).unwrap().inject(&injection).unwrap().unwrap();
        let process = inject(process, &edits(&[992, 1], &["A=1"])).unwrap().unwrap();
        assert_eq!(bundle, format!(r#"{{"process":{process}}}"#));
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let table = [
        ("", "not JSON: EOF while parsing a value at line 1 column 0"),
        ("[]", "expected an object, found a list (line 1, column 1)"),
        ("{} {}", "not JSON: trailing characters at line 1 column 4"),
        (r#"{"env":[],"Env":[]}"#, "the key \"env\" appears twice (line 1, column 11)"),
        (r#"{"user":5}"#, "expected an object, found \"5\" (line 1, column 9)"),
        (r#"{"user":{"additionalGids":{}}}"#, "expected a list, found an object (line 1, column 27)"),
    ];
    for (text, expected) in table {
        assert_eq!(inject(text, &edits(&[992], &["A=1"])).unwrap_err().to_string(), expected, "{text}");
    }
}

#[test]
fn a_process_has_the_memory_and_the_variable_that_the_container_has() {
    let edits = ProcessEdits {
        env: vec!["HSA_OVERRIDE_GFX_VERSION=11.0.0"],
        memlock_bytes: Some(1 << 30),
        ..ProcessEdits::default()
    };
    let memlock = r#"{"type":"RLIMIT_MEMLOCK","hard":1073741824,"soft":1073741824}"#;
    let table = [
        ("{}", Ok(Some(format!(r#"{{"rlimits":[{memlock}],"env":["HSA_OVERRIDE_GFX_VERSION=11.0.0"]}}"#)))),
        (
            r#"{"env":["HSA_OVERRIDE_GFX_VERSION=10.3.0"], "rlimits":null}"#,
            Ok(Some(format!(r#"{{"env":["HSA_OVERRIDE_GFX_VERSION=10.3.0"], "rlimits":[{memlock}]}}"#))),
        ),
        (
            r#"{"rlimits":[],"Rlimits":[]}"#,
            Err("the key rlimits cannot be read: the key \"rlimits\" appears twice (line 1, column 15)"),
        ),
        (
            r#"{"rlimits":[{"type":"RLIMIT_MEMLOCK"}]}"#,
            Err("the key rlimits cannot be read: the key \"hard\" is missing (line 1, column 13)"),
        ),
    ];
    for (text, expected) in table {
        let injected = inject(text, &edits).map_err(|error| error.to_string());
        assert_eq!(injected, expected.map_err(str::to_owned), "{text}");
        if let Ok(Some(injected)) = injected {
            assert_eq!(inject(&injected, &edits), Ok(None), "{text}");
        }
    }
}
