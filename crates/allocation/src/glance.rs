//! What a text says that is plain, without understanding the rest of it.

use crate::json::{Fault, Scanner};

/// The `runtime` that a policy names: all that most of runc's subcommands need of it.
///
/// The inner `None`: it names none. The outer one: that is not plain to see, because the text is no JSON
/// object, or a key has an escape in it, or `runtime` stands twice or is neither null nor a text without
/// escapes. Whoever gets that has to read the policy with [`crate::policy::Policy::parse`].
#[must_use]
pub fn runtime(policy: &str) -> Option<Option<&str>> {
    const NOT_PLAIN: Fault = Fault::Syntax { offset: 0, expected: "" };
    let mut found = None;
    let mut scanner = Scanner::new(policy);
    let read = scanner.object(|scanner, key| {
        let key = key.plain().ok_or(NOT_PLAIN)?;
        if key != "runtime" {
            return scanner.skip().map(drop);
        }
        let runtime = match scanner.peek()? {
            b'"' => Some(scanner.string()?.plain().ok_or(NOT_PLAIN)?),
            b'n' => scanner.skip().map(|_| None)?,
            _ => return Err(NOT_PLAIN),
        };
        if found.replace(runtime).is_some() { Err(NOT_PLAIN) } else { Ok(()) }
    });
    read.ok()?;
    scanner.finish().ok()?;
    Some(found.flatten())
}

#[cfg(test)]
mod tests {
    use super::runtime;

    #[test]
    fn a_runtime_is_seen_where_it_is_plain_and_nowhere_else() {
        for (policy, expected) in [
            (r#"{"runtime":"/usr/bin/runc"}"#, Some(Some("/usr/bin/runc"))),
            (r#" { "schema_version" : 1, "gpus":[{"runtime":"/x"}], "runtime" : "/r" } "#, Some(Some("/r"))),
            (r#"{"runtime":null,"x":1e400}"#, Some(None)),
            ("{}", Some(None)),
            (r#"{"Runtime":"/x"}"#, Some(None)),
            (r#"{"runtime":"/a\u002fb"}"#, None),
            (r#"{"runtim\u0065":"/x"}"#, None),
            (r#"{"runtime":null,"runtime":"/x"}"#, None),
            (r#"{"runtime":1}"#, None),
            (r#"{"runtime":["/x"]}"#, None),
            (r#"["/x"]"#, None),
            (r#"{"runtime":"/x"} x"#, None),
            (r#"{"runtime":"/x""#, None),
            ("", None),
        ] {
            assert_eq!(runtime(policy), expected, "{policy}");
        }
    }
}
