//! runc must inherit through the wrapper what it would without it, and signals to its process must have equal
//! effects.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::process::{Child, Command, Stdio};

use real_engines::machine::ASKED;
use real_engines::pair::{Pair, Program, STATE, below};

/// Gives a process, before it becomes the one that is called, what no default has: directory, mask, limits, priority,
/// descriptors beyond the third, one of them for writing. Each limit is lower than a login has: none needs CAP_SYS_RESOURCE.
const UNUSUAL: &str = "cd /stage/seen && umask 027 && ulimit -n 333 && ulimit -t 3333 && renice -n 5 $$ >/dev/null && \
                       echo 77 >/proc/self/oom_score_adj && exec 3</etc/hostname 4>>/stage/fourth 9</dev/zero && exec \"$@\"";

const SHELL: [&str; 5] = ["/usr/bin/busybox", "sh", "-c", UNUSUAL, "sh"];

/// A call of one of the programs with an unusual umask, limits, priority, descriptors and signals.
fn unusual(pair: &Pair, program: Program, pipe: &str, arguments: &[&str]) -> Command {
    with_signals(pipe, &pair.command_within(program, &SHELL, arguments))
}

/// A command in which env(1) of coreutils blocks USR1 and ignores HUP; `pipe` is its option for PIPE.
fn with_signals(pipe: &str, inner: &Command) -> Command {
    let mut command = Command::new("env");
    command.args(["--block-signal=USR1", "--ignore-signal=HUP", &format!("--{pipe}-signal=PIPE")]);
    command.arg(inner.get_program()).args(inner.get_args()).env_clear().stdin(Stdio::null());
    for (name, value) in inner.get_envs() {
        command.env(name, value.unwrap());
    }
    command
}

/// A runtime that tells what it was handed, at the moment at which it begins: real runc is Go, whose start-up sets
/// handlers of its own.
const TELLTALE: &str = "#!/usr/bin/busybox sh
exec /usr/bin/busybox sh /stage/tell.sh \"$@\" 3<&3
";
const TELL: &str = r#"
busybox=/usr/bin/busybox
$busybox grep -E '^(Umask|Uid|Gid|Groups|Sig(Pnd|Blk|Ign|Cgt)|ShdPnd|Cap|NoNewPrivs|Seccomp|Threads|THP)' /proc/self/status
$busybox cat /proc/self/limits /proc/self/oom_score_adj /proc/self/cgroup
$busybox awk '{ print "nice " $19 }' /proc/self/stat
echo "cwd $($busybox readlink /proc/$$/cwd)"
for fd in /proc/$$/fd/*; do
    echo "fd ${fd##*/} $($busybox readlink $fd | $busybox sed 's/pipe:.*/pipe/')"
done
for word in "$@"; do echo "argument <$word>"; done
$busybox env | $busybox sort
"#;

#[test]
fn real_a_runtime_inherits_through_the_wrapper_what_it_would_without_it() {
    // The probe is on PATH behind the wrapper, and in front of the engine's own runc.
    for pair in Pair::of_every_engine(ASKED) {
        let probe = pair.outside("probe");
        fs::create_dir(&probe).unwrap();
        fs::create_dir_all(pair.outside("seen")).unwrap();
        fs::write(pair.outside("tell.sh"), TELL).unwrap();
        fs::write(probe.join("runc"), TELLTALE).unwrap();
        fs::set_permissions(probe.join("runc"), fs::Permissions::from_mode(0o755)).unwrap();
        pair.bundle("plain", &[], "true");
        let arguments = ["create", "--bundle", "/stage/bundles/plain", "--preserve-fds", "1", "c 1\n*"];
        for pipe in ["default", "ignore"] {
            let told = ["", "/opt/rocworker/shim:"].map(|shim| {
                let path = format!("PATH={shim}/stage/probe:/usr/sbin:/usr/bin");
                let mut call = vec!["/usr/bin/busybox", "env", &path, "ODD=\n=x", "runc"];
                call.extend(arguments);
                let inner = pair.host.command("/usr/bin", &[&SHELL[..], &call].concat());
                let mut command = with_signals(pipe, &inner);
                let output = command.stdin(Stdio::null()).output().unwrap();
                assert!(output.status.success(), "{output:?}");
                String::from_utf8(output.stdout).unwrap().replace(&path, "PATH")
            });
            let counted = "RUNC_AMD_WRAPPER_DEPTH=1\n";
            assert_eq!(told[1].matches(counted).count(), 1, "{}", told[1]);
            // std ignores SIGPIPE in the wrapper from its start on, so that the runtime gets its default action.
            let plain = told[0].replace("SigIgn:\t0000000180001001", "SigIgn:\t0000000180000001");
            assert_eq!(plain, told[1].replace(counted, ""), "{}: {pipe}", pair.engine.name);
            let ignored = told[1].lines().find_map(|line| line.strip_prefix("SigIgn:\t")).unwrap();
            let ignored = u64::from_str_radix(ignored, 16).unwrap();
            // Bit n stands for signal n + 1: HUP is 1, PIPE 13.
            assert_eq!((ignored & 1, ignored >> 12 & 1), (1, 0), "{}", told[1]);
            for part in [
                "Umask:\t0027\n",
                "SigBlk:\t0000000000000200\n",
                &format!("nice {}\n", (own_nice() + 5).min(19)),
                "\n77\n",
                "cwd /stage/seen\n",
                "fd 3 /etc/hostname\n",
                "fd 4 /stage/fourth\n",
                "fd 9 /dev/zero\n",
                "argument <c 1\n*>\n",
            ] {
                assert!(told[1].contains(part), "{part}: {}", told[1]);
            }
        }
    }
}

/// The nice value of the test, to which the caller's five are added.
fn own_nice() -> i32 {
    let stat = fs::read_to_string("/proc/self/stat").unwrap();
    // proc_pid_stat(5): the 19th field; the second, in brackets, is the only one that may hold spaces.
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(16).unwrap().parse().unwrap()
}

/// A container that says what it gets, and ends of SIGTERM with 7, or by itself after some seconds. It never hears
/// SIGHUP: its runc was started with that ignored.
const TRAPS: &str = "for name in INT USR2 HUP; do trap \"echo $name\" $name; done; trap 'echo TERM; exit 7' TERM; \
                     echo ready; for n in $(seq 500); do sleep 0.02; done";

/// The parts of `/proc/PID` of a foreground runc that do not change while its container runs. The blocked
/// signals are not among them: the threads of a Go program block some by turns.
fn process(pid: u32) -> BTreeMap<String, String> {
    let read = |name: &str| fs::read_to_string(format!("/proc/{pid}/{name}")).unwrap();
    let link = |name: String| {
        fs::read_link(format!("/proc/{pid}/{name}"))
            .map_or_else(|_| "-".to_owned(), |to| to.display().to_string())
    };
    let mut facts = BTreeMap::new();
    for line in read("status").lines() {
        let (key, value) = line.split_once(':').unwrap();
        let kept = ["Umask", "SigIgn", "SigCgt", "CapEff", "NoNewPrivs", "Seccomp", "Groups", "Name"];
        if kept.contains(&key) {
            facts.insert(key.to_owned(), value.trim().to_owned());
        }
    }
    for name in ["limits", "oom_score_adj", "cmdline", "cgroup"] {
        facts.insert(name.to_owned(), read(name));
    }
    for name in ["exe", "cwd", "fd/0", "fd/3", "fd/4", "fd/9"] {
        facts.insert(name.to_owned(), link(name.to_owned()));
    }
    facts
}

struct Foreground {
    child: Child,
    lines: BufReader<std::process::ChildStdout>,
    pid: u32,
}

impl Foreground {
    /// Runs a container until it prints that it is ready; holds the process of its runc.
    fn run(pair: &Pair, program: Program, id: &str, env: &[&str]) -> Self {
        let bundle = pair.bundle("foreground", env, TRAPS);
        let arguments = ["--root", STATE, "run", "--bundle", &bundle, id];
        let mut command = unusual(pair, program, "default", &arguments);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        lines.read_line(&mut line).unwrap();
        if line != "ready\n" {
            child.stderr.take().unwrap().read_to_string(&mut line).unwrap();
        }
        assert_eq!(line, "ready\n", "{} {program:?}", pair.engine.name);
        let pid = below(child.id(), "runc").unwrap();
        Self { child, lines, pid }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.pid.to_string()]).status().unwrap();
        assert!(sent.success());
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.lines.read_line(&mut line).unwrap();
        line
    }
}

#[test]
fn real_signals_to_the_wrappers_process_are_the_containers_as_with_plain_runc() {
    for pair in Pair::of_every_engine(ASKED) {
        for env in [&[][..], &["AMD_VISIBLE_DEVICES=0"]] {
            let told = Program::BOTH.map(|program| {
                let mut foreground = Foreground::run(&pair, program, "fore", env);
                let facts = process(foreground.pid);
                let mut heard = Vec::new();
                for name in ["INT", "USR2", "TERM"] {
                    foreground.signal(name);
                    heard.push(foreground.line());
                }
                let status = foreground.child.wait().unwrap();
                (facts, heard, status.code())
            });
            assert_eq!(told[0], told[1], "{}", pair.engine.name);
            let (facts, heard, code) = &told[1];
            assert_eq!((heard.concat().as_str(), *code), ("INT\nUSR2\nTERM\n", Some(7)));
            assert!(facts["exe"].ends_with("/usr/sbin/runc"), "{facts:#?}");
            assert_eq!((facts["Umask"].as_str(), facts["oom_score_adj"].as_str()), ("0027", "77\n"));
            assert!(facts["fd/4"].ends_with("/fourth"), "{facts:#?}");
        }
        // A container whose first process is killed: 128 and the signal's number, in either's words.
        let ends = Program::BOTH.map(|program| {
            let mut foreground = Foreground::run(&pair, program, "killed", &["AMD_VISIBLE_DEVICES=0"]);
            pair.say(program, &["kill", "killed", "KILL"]).well();
            let mut said = String::new();
            foreground.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
            (foreground.child.wait().unwrap().code(), said)
        });
        assert_eq!(ends[0], ends[1], "{}", pair.engine.name);
        assert_eq!(ends[1].0, Some(137));
    }
}

#[test]
fn real_bytes_go_in_and_out_of_a_container_through_the_wrapper_as_they_are() {
    let bytes: Vec<u8> = (0..=255_u8).cycle().take(200_000).collect();
    for pair in Pair::of_every_engine(ASKED) {
        let told = Program::BOTH.map(|program| {
            let bundle =
                pair.bundle("cat", &["AMD_VISIBLE_DEVICES=0"], "cat; ls /proc/self/fd >&2; cat <&3 >&2");
            let arguments = ["--root", STATE, "run", "--bundle", &bundle, "--preserve-fds", "2", "cat"];
            let mut command = unusual(&pair, program, "default", &arguments);
            let mut child =
                command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
            let mut stdin = child.stdin.take().unwrap();
            let given = bytes.clone();
            let writer = std::thread::spawn(move || stdin.write_all(&given).unwrap());
            let output = child.wait_with_output().unwrap();
            writer.join().unwrap();
            (output.status.code(), output.stdout, String::from_utf8(output.stderr).unwrap())
        });
        assert!(told[0] == told[1], "{}: {:?} {:?}", pair.engine.name, told[0].2, told[1].2);
        assert!(told[1].1 == bytes, "{}: {} bytes", pair.engine.name, told[1].1.len());
        // 0, 1, 2, the two that are to be kept, and ls's own; the one with the number 9 stays outside.
        let hostname = fs::read_to_string("/etc/hostname").unwrap();
        assert_eq!(
            (told[1].0, told[1].2.as_str()),
            (Some(0), format!("0\n1\n2\n3\n4\n5\n{hostname}").as_str())
        );
    }
}
