use super::inject;
use crate::bundle::{Bundle, Injection};

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
            Some(r#"{"user":{"additionalGids":[7,992]},"env":["A=1"]}"#),
        ),
    ];
    for (text, expected) in table {
        let injected = inject(text, &[992], &["A=1"]).unwrap();
        assert_eq!(injected.as_deref(), expected, "{text}");
        if let Some(injected) = injected {
            assert_eq!(inject(&injected, &[992], &["A=1"]), Ok(None), "{text}");
        }
    }
}

/// create and exec give a process the same.
#[test]
fn agrees_with_what_a_bundle_gets() {
    for process in [r#"{"env":["A=0"]}"#, r#"{"user":{"additionalGids":[ 1 ]}}"#, r#"{"\u0075ser":null}"#] {
        let injection = Injection { gids: vec![992, 1], env: vec!["A=1"], ..Injection::default() };
        let bundle = format!(r#"{{"process":{process}}}"#);
        let bundle = Bundle::parse(&bundle).unwrap().inject(&injection).unwrap().unwrap();
        let process = inject(process, &[992, 1], &["A=1"]).unwrap().unwrap();
        assert_eq!(bundle, format!(r#"{{"process":{process}}}"#));
    }
}

#[test]
fn what_cannot_be_edited_is_refused() {
    let table = [
        ("", "not JSON at byte 0: expected a value"),
        ("[]", "not JSON at byte 0: expected an object"),
        ("{} {}", "not JSON at byte 3: expected the end of the text"),
        (r#"{"env":[],"Env":[]}"#, "the key env stands twice, so it is not clear which one counts"),
        (r#"{"user":5}"#, "the key user is not an object"),
        (r#"{"user":{"additionalGids":{}}}"#, "the key user.additionalGids is not an array"),
    ];
    for (text, expected) in table {
        assert_eq!(inject(text, &[992], &["A=1"]).unwrap_err().to_string(), expected, "{text}");
    }
}
