//! The reading of runc's command line, of any bytes.

use runc_amd_wrapper::args::{Call, Command, ParsedCommandLine, read};

/// A command line, an argument a line.
pub fn check(data: &[u8]) {
    let line: Vec<&[u8]> = data.split(|byte| *byte == b'\n').collect();
    let reading = read(&line);
    assert_eq!(read(&line), reading);
    match &reading {
        ParsedCommandLine::Certain(call) => stands_there(call, &line),
        ParsedCommandLine::Doubtful(calls) => {
            assert!(calls.len() > 1, "in doubt between {calls:?}");
            assert!(calls.iter().all(|call| call.command != Command::Nothing), "{calls:?}");
            for (at, call) in calls.iter().enumerate() {
                assert!(!calls[..at].contains(call), "twice: {calls:?}");
                stands_there(call, &line);
            }
        }
    }
    let named = |line: &[&[u8]]| matches!(line, [name, ..] if *name == b"create" || *name == b"run");
    if let (true, ParsedCommandLine::Certain(call)) = (named(&line), &reading) {
        let may_be = matches!(call.command, Command::Create { .. } | Command::Run { .. } | Command::Nothing);
        assert!(may_be, "the subcommand stands first: {call:?}");
    }
}

/// What decides was given: an id is an argument of its own, a value too or the end of one.
fn stands_there(call: &Call<'_>, line: &[&[u8]]) {
    let word = |name: &[u8]| line.contains(&name);
    let value = |value: Option<&[u8]>| {
        let attached = |value: &[u8]| {
            line.iter().any(|argument| argument.strip_suffix(value).is_some_and(|flag| flag.ends_with(b"=")))
        };
        value.is_none_or(|value| word(value) || attached(value))
    };
    assert!([call.global.root, call.global.log, call.global.log_format].into_iter().all(value), "{call:?}");
    let (name, id, other): (&[u8], _, _) = match call.command {
        Command::Create { bundle, id } => (b"create", id, bundle),
        Command::Run { bundle, id } => (b"run", id, bundle),
        Command::Exec { process, id } => (b"exec", id, process),
        Command::Delete { id, .. } => (b"delete", id, None),
        Command::Other(name) => return assert!(word(name.as_bytes()), "{call:?}"),
        Command::Nothing => return,
    };
    assert!(word(name) && word(id) && value(other), "{call:?}");
}
