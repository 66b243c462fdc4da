use super::*;

fn words(line: &str) -> Vec<&[u8]> {
    line.split_whitespace().map(|word| if word == "''" { b"".as_slice() } else { word.as_bytes() }).collect()
}

fn certain(line: &str) -> Call<'_> {
    match read(&words(line)) {
        ParsedCommandLine::Certain(call) => call,
        doubtful @ ParsedCommandLine::Doubtful(_) => panic!("{line}: {doubtful:?}"),
    }
}

fn create<'a>(bundle: Option<&'a str>, id: &'a str) -> Command<'a> {
    Command::Create { bundle: bundle.map(str::as_bytes), id: id.as_bytes() }
}

fn exec<'a>(process: Option<&'a str>, id: &'a str) -> Command<'a> {
    Command::Exec { process: process.map(str::as_bytes), id: id.as_bytes() }
}

#[test]
fn a_line_means_what_runc_takes_it_for() {
    for (line, command) in [
        ("create --bundle B c1", create(Some("B"), "c1")),
        ("create -bundle=B c1", create(Some("B"), "c1")),
        ("create -b B c1", create(Some("B"), "c1")),
        ("create --b=B c1", create(Some("B"), "c1")),
        ("create c1 --bundle B", create(Some("B"), "c1")),
        ("create c1 -b=B --pid-file P", create(Some("B"), "c1")),
        ("create c1", create(None, "c1")),
        ("create --bundle= c1", create(Some(""), "c1")),
        ("create --bundle '' c1", create(Some(""), "c1")),
        ("create -b A -b B c1", create(Some("B"), "c1")),
        ("create --no-pivot=true c1", create(None, "c1")),
        ("create --no-pivot -b B c1", create(Some("B"), "c1")),
        ("create --bundle create create", create(Some("create"), "create")),
        ("--root=/r --debug create -b B c1", create(Some("B"), "c1")),
        ("--systemd-cgroup --log L --log-format json create c1", create(None, "c1")),
        ("-- create c1", create(None, "c1")),
        ("create -- c1", create(None, "c1")),
        ("create -b B -- -c1", create(Some("B"), "-c1")),
        ("run -d -b B --keep c1", Command::Run { bundle: Some(b"B"), id: b"c1" }),
        ("run -d --keep c1 -b B", Command::Nothing),
        ("exec c1 mkdir create x", exec(None, "c1")),
        ("exec --process F c1", exec(Some("F"), "c1")),
        ("exec -p=F -d c1", exec(Some("F"), "c1")),
        ("exec -t -e A=create c1 sh", exec(None, "c1")),
        ("exec c1 -p F", exec(None, "c1")),
        ("exec c1 --process F create", exec(None, "c1")),
        ("delete -f c1", Command::Delete { force: true, id: b"c1" }),
        ("delete c1 --force", Command::Delete { force: true, id: b"c1" }),
        ("delete --force=true c1", Command::Delete { force: true, id: b"c1" }),
        ("delete --force=false c1", Command::Delete { force: false, id: b"c1" }),
        ("start c1", Command::Other("start")),
        ("--root create state c1", Command::Other("state")),
        ("kill create KILL", Command::Other("kill")),
        ("", Command::Nothing),
        ("--version create c1", Command::Nothing),
        ("--version=false create c1", create(None, "c1")),
        ("create --help c1", Command::Nothing),
        ("create", Command::Nothing),
        ("create c1 c2", Command::Nothing),
        ("create --no-pivot c1 -b B", Command::Nothing),
        ("create -b A --bundle B c1", Command::Nothing),
        ("create --no-pivot=perhaps c1", Command::Nothing),
        ("create ---bundle=B c1", Command::Nothing),
        ("create -b", Command::Nothing),
        ("exec -t", Command::Nothing),
        ("creat c1", Command::Nothing),
        ("mkdir create c1", Command::Nothing),
        ("--log", Command::Nothing),
    ] {
        assert_eq!(certain(line).command, command, "{line}");
    }
}

#[test]
fn global_flags_are_kept_as_given() {
    let line = "--root R --log=L -log-format json -root S create --root x c1";
    assert_eq!(
        read(&words("--root R --log=L -log-format json -root S create c1")).global(),
        Global { root: Some(b"S"), log: Some(b"L"), log_format: Some(b"json") },
    );
    // Behind the subcommand it is a flag that no runc of today has; one id is left only if it takes a value.
    assert_eq!(certain(line).command, create(None, "c1"));
    assert_eq!(certain(line).global.root, Some(b"S".as_slice()));
}

#[test]
fn an_unknown_flag_leaves_one_meaning_where_runc_wants_one_operand() {
    for (line, command) in [
        ("create --new x --bundle B c1", create(Some("B"), "c1")),
        ("create --bundle B --new c1", create(Some("B"), "c1")),
        ("create --new=x --bundle B c1", create(Some("B"), "c1")),
        ("create --bundle B c1 --new x --newer y", create(Some("B"), "c1")),
        ("--new x create --bundle B c1", create(Some("B"), "c1")),
        ("--new=x create c1", create(None, "c1")),
        ("--new create c1", create(None, "c1")),
        ("exec --new=x -p F c1", exec(Some("F"), "c1")),
    ] {
        assert_eq!(certain(line).command, command, "{line}");
    }
}

#[test]
fn an_unknown_flag_that_changes_the_container_leaves_a_doubt_with_every_meaning() {
    let ParsedCommandLine::Doubtful(calls) = read(&words("exec -p F --new c1 c2")) else {
        panic!("no doubt")
    };
    let commands: Vec<_> = calls.iter().map(|call| call.command).collect();
    assert_eq!(commands, [exec(Some("F"), "c1"), exec(Some("F"), "c2")]);
}

#[test]
fn bytes_that_are_no_text_are_an_id_or_a_bundle_like_any_other() {
    let line: [&[u8]; 4] = [b"create", b"--bundle=\xff\xfe", b"-b=\xff", b"\x80id"];
    assert_eq!(
        read(&line),
        ParsedCommandLine::Certain(Call { global: Global::default(), command: Command::Nothing })
    );
    let line: [&[u8]; 3] = [b"create", b"--bundle=\xff\xfe", b"\x80id"];
    let command = Command::Create { bundle: Some(b"\xff\xfe"), id: b"\x80id" };
    assert_eq!(read(&line), ParsedCommandLine::Certain(Call { global: Global::default(), command }));
}

#[test]
fn a_hundred_unknown_flags_end_soon() {
    let flags: Vec<String> = (0..100).map(|n| format!("--new{n}")).collect();
    let mut line: Vec<&[u8]> = vec![b"create"];
    line.extend(flags.iter().map(|flag| flag.as_bytes()));
    line.push(b"c1");
    assert_eq!(
        read(&line),
        ParsedCommandLine::Certain(Call { global: Global::default(), command: create(None, "c1") })
    );
}
