//! Output, names and times that somebody else has written.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use fleet::script::{Further, Script, Wanted};
use layout::{Entry, Machine};
use nix::errno::Errno;
use proptest::prelude::*;
use root::files::Content;
use root::{Asked, Root};

use crate::frames::{machines, shells};

/// What the script's first shell prints of a small machine.
fn printed(wanted: Wanted) -> (Script, Vec<u8>) {
    let folder = machines::laid_out(&machines::odd());
    let script = Script::beneath(folder.path(), wanted, None, &Further::default());
    let output = shells::all()[0].run(&script.text);
    (script, output.stdout)
}

fn token(script: &Script) -> String {
    script.text.split(['=', ' ']).nth(1).unwrap().to_owned()
}

#[test]
fn a_banner_is_skipped_and_a_cut_answer_is_an_error_at_its_frame() {
    let (script, stdout) = printed(Wanted::Machine);
    let banner = [b"Welcome!\nrocworker-frames 1 0\nend 0 0\n\n".as_slice(), &stdout].concat();
    assert_eq!(script.parse(&banner).unwrap().files, script.parse(&stdout).unwrap().files);
    for end in 0..stdout.len() {
        let problem = script.parse(&stdout[..end]).unwrap_err();
        assert!(
            problem.starts_with("its answer ended too early, at frame ")
                || problem.starts_with("it did not run rocworker's script, and printed: ")
                || problem.starts_with("it printed nothing: "),
            "{end}: {problem}"
        );
    }
    let (other, _) = printed(Wanted::Machine);
    let problem = other.parse(&stdout).unwrap_err();
    assert!(problem.starts_with("it did not run rocworker's script"), "{problem}");
    assert_eq!(
        script.parse(b"This account is \x1b[31mlocked\n").unwrap_err(),
        "it did not run rocworker's script, and printed: This account is \\u{1b}[31mlocked"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_output_makes_the_parser_panic(
        edits in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>(), 0_usize..60), 1..20)
    ) {
        static PRINTED: std::sync::OnceLock<(Script, Vec<u8>)> = std::sync::OnceLock::new();
        let (script, stdout) = PRINTED.get_or_init(|| printed(Wanted::Health));
        let mut bytes = stdout.clone();
        for (at, byte, cut) in edits {
            let at = at.index(bytes.len());
            bytes[at] = byte;
            let end = (at + cut).min(bytes.len());
            bytes.drain(at..end);
        }
        // What is left may be whole: an edit of a file's bytes is none of the frames'.
        if let Ok(reading) = script.parse(&bytes) {
            Root::of_files(reading.files).list("/sys/class/drm").ok();
        }
    }
}

#[test]
fn a_file_that_holds_a_whole_answer_forges_nothing() {
    let (_, answer) = printed(Wanted::Machine);
    for shell in shells::all() {
        let folder = machines::laid_out(&machines::odd());
        let config = folder.path().join("etc/rocworker/config.yaml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(&config, [&answer, b"\0R=\0\nend 0 0\n\n".as_slice(), &answer].concat()).unwrap();
        let reading = shell.read(folder.path(), Wanted::Doctor);
        let found = &reading.files.entries[Path::new("/etc/rocworker/config.yaml")];
        assert!(matches!(&found.content, Content::File(bytes) if *bytes == fs::read(&config).unwrap()));

        // Whoever could know the script's word in advance can spoil an answer, and forge none.
        let script = Script::beneath(folder.path(), Wanted::Doctor, None, &Further::default());
        fs::write(&config, format!("R={}\0\nend 0 0\n\n", token(&script))).unwrap();
        let problem = script.parse(&shell.run(&script.text).stdout).unwrap_err();
        assert!(problem.contains("a file has the script's mark in it"), "{problem}");
    }
}

#[test]
fn names_are_taken_as_they_are() {
    let names: [&[u8]; 12] = [
        b"a b.yaml",
        b"-n.yaml",
        b"* ?[a].yaml",
        b"$(id)`id`.yaml",
        b"%s\\n.yaml",
        b"'quoted\".yaml",
        b"caf\xc3\xa9.yaml",
        b"\xff\xfe.yaml",
        b"a: No such file.yaml",
        b"a -> b.yaml",
        b"line\nbreak.yaml",
        b".hidden",
    ];
    for shell in shells::all() {
        let folder = machines::laid_out(&Machine::new());
        let place = folder.path().join("etc/crio/crio.conf.d");
        fs::create_dir_all(&place).unwrap();
        for name in names {
            fs::write(place.join(OsStr::from_bytes(name)), name).unwrap();
        }
        let reading = shell.read(folder.path(), Wanted::Doctor);
        let root = Root::of_files(reading.files);
        let local = Root::open(folder.path()).unwrap();
        assert_eq!(
            root.list("/etc/crio/crio.conf.d").unwrap(),
            local.list("/etc/crio/crio.conf.d").unwrap(),
            "{}",
            shell.name
        );
        for name in names {
            let path = Path::new("/etc/crio/crio.conf.d").join(OsStr::from_bytes(name));
            // Names that would part what ls says, and hidden ones, are listed and not read.
            let is_read =
                !name.starts_with(b".") && !name.contains(&b'\n') && !name.windows(4).any(|it| it == b" -> ");
            let found = root.read(&path, 4096).ok();
            assert_eq!(found.as_deref(), is_read.then_some(name), "{}: {path:?}", shell.name);
            // busybox' ls writes a question mark for what is not ASCII: such a file is read, and its owner is not known.
            if is_read && (name.is_ascii() || shell.name != "busybox") {
                let (mine, theirs) = (local.stat(&path).unwrap(), root.stat(&path).unwrap());
                assert_eq!(
                    (mine.kind, mine.mode, mine.uid, mine.gid, mine.len),
                    (theirs.kind, theirs.mode, theirs.uid, theirs.gid, theirs.len)
                );
            }
        }
    }
}

#[test]
fn since_is_quoted_and_journalctls_exit_code_is_returned() {
    let Some(shell) = shells::busybox() else { return };
    let folder = machines::laid_out(&machines::odd());
    let run = |since: Option<&str>| {
        let script = Script::beneath(folder.path(), Wanted::Journal, since, &Further::default());
        script.parse(&shell.run(&script.text).stdout).unwrap().journal.unwrap()
    };
    assert_eq!(run(None).code, 127);
    shell.put(
        "journalctl",
        "#!/bin/sh\nfor word; do printf '<%s>\\n' \"$word\"; done\necho said >&2\nexit 3\n",
    );
    let since = "'; touch /tmp/x; $(touch /tmp/x) `touch /tmp/x` \\ #\n\"";
    let journal = run(Some(since));
    let stdout = String::from_utf8(journal.stdout).unwrap();
    assert!(
        stdout.contains(&format!("<--since={since}>")) && stdout.ends_with("<_TRANSPORT=kernel>\n"),
        "{stdout}"
    );
    assert_eq!((journal.code, journal.stderr.as_slice()), (3, b"said".as_slice()));
    assert!(!Path::new("/tmp/x").exists());
    assert!(String::from_utf8(run(None).stdout).unwrap().contains("<--boot>"));
}

/// The kernel ends a read whose records it has overwritten.
#[test]
fn a_log_whose_reading_broke_off_is_no_whole_log() {
    let folder = machines::laid_out(&machines::odd().put("/dev/kmsg", "6,1,0,-;old\n"));
    let runs = folder.path().join("runs");
    for shell in shells::all() {
        // As dd says it: these words at its first runs, and then that it is at the end.
        let kmsg = |broken: usize| {
            let script = Script::beneath(folder.path(), Wanted::Health, None, &Further::default());
            fs::write(&runs, "").unwrap();
            let dd = format!(
                "dd() {{ cat \"${{1#if=}}\"; echo x >> {runs}; words='Broken pipe'
                 [ $(grep -c x {runs}) -le {broken} ] || words='Resource temporarily unavailable'
                 echo \"dd: error reading '${{1#if=}}': $words\" >&2; return 1; }}\n",
                runs = runs.display()
            );
            let stdout = shell.run(&format!("{dd}{}", script.text)).stdout;
            let content =
                script.parse(&stdout).unwrap().files.entries.remove(Path::new("/dev/kmsg")).unwrap();
            (content.content, fs::read_to_string(&runs).unwrap().lines().count())
        };
        let whole = Content::File(b"6,1,0,-;old\n".to_vec());
        assert_eq!(kmsg(0), (whole.clone(), 1), "{}", shell.name);
        assert_eq!(kmsg(2), (whole, 3), "{}", shell.name);
        assert_eq!(kmsg(99), (Content::Failed(Errno::EPIPE), 3), "{}", shell.name);
    }
}

/// The user's start files may have set these, and `ls` may be none.
#[test]
fn an_environment_changes_no_answer_and_without_ls_nothing_is_absent() {
    let folder = machines::laid_out(&machines::odd().put("/dev/kfd", "x"));
    for shell in shells::all() {
        let read = |before: &str| {
            let script = Script::beneath(folder.path(), Wanted::Doctor, None, &Further::default());
            script.parse(&shell.run(&format!("{before}\n{}", script.text)).stdout).unwrap().files
        };
        let plain = read("");
        let set = "QUOTING_STYLE=c BLOCK_SIZE=K TIME_STYLE=+%s; export QUOTING_STYLE BLOCK_SIZE TIME_STYLE";
        assert_eq!(read(set), plain, "{}", shell.name);
        let kfd = &read("ls() { return 127; }").entries[Path::new("/dev/kfd")];
        assert_eq!(kfd.content, Content::Unread("ls says nothing of it".to_owned()), "{}", shell.name);
    }
}

/// A configuration may name anything.
#[test]
fn a_further_path_that_no_frame_can_carry_damages_no_answer() {
    let machine = machines::odd().put("/opt/a\nb", Entry::Directory).put("/opt/c -> d", Entry::Directory);
    let folder = machines::laid_out(&machine.put("/opt/e\nf/g", "x"));
    let mut further = Further::default();
    for path in ["/opt/a\nb", "/opt/c -> d", "/opt/e\nf/g", "/opt/e\nf", "/"] {
        further.paths.insert(path.into(), Asked::Content);
        further.paths.insert(format!("{path}/h").into(), Asked::Meta);
    }
    for shell in shells::all() {
        let reading = shell.read_further(folder.path(), Wanted::Doctor, &further);
        assert!(!reading.files.entries.is_empty(), "{}", shell.name);
    }
}

/// An answer made of these frames.
fn parsed(frames: &[(&str, &str, &str)]) -> Result<root::files::Files, String> {
    let script = Script::new(Wanted::Machine, None, &Further::default());
    let mut answer = format!("\nrocworker-frames 1 {}\n", token(&script));
    for (kind, about, bytes) in [("about", "", "0 1")].iter().chain(frames).chain(&[("end", "", "")]) {
        answer += &format!("{kind} {} {}\n{about}{bytes}\n", about.len(), bytes.len());
    }
    script.parse(answer.as_bytes()).map(|reading| reading.files)
}

/// Taken apart, 32 million lines took 3 GB. Here the kind is unknown, so the parser counts them before it looks at it.
#[test]
fn a_list_of_millions_of_paths_is_refused_before_it_is_taken_apart() {
    let paths = "/\n".repeat(400_001);
    for (about, bytes) in [(&*paths, ""), ("", &*paths)] {
        let problem = parsed(&[("?", about, bytes)]).unwrap_err();
        assert!(problem.ends_with("it names too many paths"), "{problem}");
    }
}

#[test]
fn a_path_and_a_links_target_have_an_end() {
    let (fits, long) = ("a".repeat(4094), "a".repeat(4095));
    let link = |target: &str| {
        let said = format!("lrwxrwxrwx 1 0 0 3 Nov 23 22:11 /l -> {target}");
        parsed(&[("l", "/l\n", &said)])
    };
    let put = |path: &str| parsed(&[("t", path, "x")]);
    assert!(put(&format!("/{fits}")).is_ok() && link(&long).is_ok());
    for problem in [put(&format!("/{long}")), link(&format!("{long}a"))] {
        let problem = problem.unwrap_err();
        assert!(problem.ends_with("it names a path that is longer than any"), "{problem}");
    }
}

#[test]
fn what_is_behind_a_closed_folder_cannot_be_looked_at() {
    let links = "lrwxrwxrwx 1 0 0 3 Nov 23 22:11 /l -> /closed/b";
    let files = parsed(&[
        ("p", "", "/closed/a\n"),
        ("l", "/l\n", links),
        ("m", "/l\n", "ls: cannot access '/l': Permission denied"),
    ]);
    let root = Root::of_files(files.unwrap());
    for path in ["/closed/a", "/l"] {
        assert!(!root.exists(path), "{path}");
        let said = root.stat(path).unwrap_err().to_string();
        assert_eq!(said, format!("cannot stat {path}: Permission denied"));
    }
    assert!(root.is_there("/l"));
    assert!(root.not_read().is_empty(), "{:?}", root.not_read());
}

#[test]
fn real_the_kernels_log_is_read_to_its_end_by_each_shell() {
    if !support::real::require_root(&["busybox", "dash"]) {
        return;
    }
    let mut local = kernel_log::kmsg::Kmsg::open(&Root::open(Path::new("/")).unwrap()).unwrap();
    let mut records = Vec::new();
    loop {
        let read = local.read().unwrap();
        records.extend(read.records);
        if !read.more {
            break;
        }
    }
    for shell in shells::all() {
        let script = Script::new(Wanted::Health, None, &Further::default());
        let output = shell.run(&script.text);
        let reading = script.parse(&output.stdout).unwrap();
        assert!(reading.as_root && reading.taken_at > Some(1_700_000_000));
        let mut there = kernel_log::kmsg::Kmsg::open(&Root::of_files(reading.files)).unwrap();
        let mut remote = Vec::new();
        loop {
            let read = there.read().unwrap();
            remote.extend(read.records);
            if !read.more {
                break;
            }
        }
        // The kernel may have said more since, and have overwritten its oldest records.
        let last = records.last().unwrap().sequence;
        assert!(
            remote.iter().any(|it| it.sequence == last),
            "{}: {} of {}",
            shell.name,
            remote.len(),
            records.len()
        );
    }
}
