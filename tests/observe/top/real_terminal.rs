//! The program in a terminal of tmux's: it draws, hears keys and signals, and leaves the terminal as it was.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use layout::{Machine, Nodes};
use support::fuse::{self, Fault, Served};
use support::laid::Laid;
use support::real;
use support::waiting::eventually;

use super::eight;

/// A terminal with a shell in it, on a server of its own.
struct Tmux {
    folder: tempfile::TempDir,
}

impl Tmux {
    fn new(columns: u16, lines: u16) -> Self {
        let folder = support::detect::scratch();
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o700)).unwrap();
        let tmux = Self { folder };
        let size = [columns, lines].map(|it| it.to_string());
        let shell = ["env", "-u", "NO_COLOR", "PS1=READY$ ", "ENV=", "sh", "-i"];
        let new = ["-f", "/dev/null", "new-session", "-d", "-x", &size[0], "-y", &size[1]];
        tmux.run(&[&new[..], &shell].concat());
        tmux.until("the shell is there", |screen| screen.contains("READY$"));
        tmux
    }

    fn output(&self, arguments: &[&str]) -> Output {
        let mut command = Command::new("tmux");
        command.env("TMUX_TMPDIR", self.folder.path()).env_remove("TMUX").env("LC_ALL", "C.UTF-8");
        command.args(["-u", "-L", "top"]).args(arguments).output().unwrap()
    }

    fn run(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    fn types(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    fn presses(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    fn commands(&self, line: &str) {
        self.types(line);
        self.presses("Enter");
    }

    #[track_caller]
    fn until(&self, what: &str, mut is_so: impl FnMut(&str) -> bool) {
        let mut last = String::new();
        let is_so = || {
            last = self.screen();
            is_so(&last)
        };
        let waited = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| eventually(what, is_so)));
        assert!(waited.is_ok(), "not so that {what}:\n{last}");
    }

    /// Whether the shell's screen, its cursor and its terminal's modes are back.
    #[track_caller]
    fn is_restored(&self, end: &str) {
        self.until(end, |screen| screen.contains(end));
        self.until("the shell's screen is back", |screen| screen.contains("before top"));
        assert_eq!(self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"]), "0 1\n");
        self.commands("stty -a | tr ' ' '\\n' | grep -xE -e '-?(icanon|echo|isig)' | tr '\\n' '+'");
        self.until("the modes are back", |screen| {
            ["+icanon+", "+echo+"].iter().all(|it| format!("+{screen}").contains(it))
                && screen.contains("isig+")
                && !screen.contains("-icanon+")
                && !screen.contains("-echo+")
        });
    }

    /// The only child of the shell.
    fn child(&self) -> i32 {
        let shell = self.run(&["display-message", "-p", "#{pane_pid}"]);
        let children = format!("/proc/{0}/task/{0}/children", shell.trim());
        let mut child = None;
        eventually("the shell has a child", || {
            child = std::fs::read_to_string(&children).unwrap().trim().parse().ok();
            child.is_some()
        });
        child.unwrap()
    }
}

impl Drop for Tmux {
    fn drop(&mut self) {
        self.output(&["kill-server"]);
    }
}

fn top(root: &Path, arguments: &str) -> String {
    format!(
        "echo before top; {} --root {} top {arguments}; echo ended $?",
        env!("CARGO_BIN_EXE_rocworker"),
        root.display()
    )
}

fn widest(screen: &str) -> usize {
    screen.lines().map(|line| line.chars().count()).max().unwrap_or(0)
}

#[test]
fn real_tmux_top_draws_hears_keys_and_leaves_the_terminal_as_it_was() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::new(100, 30);
    tmux.commands(&top(laid.top(), "--interval 0.2"));
    tmux.until("GPUs and processes are shown", |it| {
        it.contains("431/740 W") && it.contains("ollama.service")
    });
    assert_eq!(tmux.run(&["display-message", "-p", "#{alternate_on}"]), "1\n");
    tmux.types("s");
    tmux.until("it sorts by the next column", |it| it.contains("CUS↓"));
    tmux.types("/olla");
    tmux.presses("Enter");
    tmux.until("it filters", |it| it.contains("ollama") && !it.contains("python3"));
    tmux.presses("Escape");
    tmux.until("all are back", |it| it.contains("python3"));
    laid.put("sys/bus/pci/devices/0000:05:00.0/hwmon/hwmon2/power1_input", "555000000\n");
    tmux.until("a value that changes is shown", |it| it.contains("555/740 W"));
    tmux.run(&["resize-window", "-x", "40", "-y", "15"]);
    tmux.until("40 columns have a layout of their own", |it| it.contains("STAT") && it.contains("q quit"));
    assert!(widest(&tmux.screen()) <= 40);
    tmux.run(&["resize-window", "-x", "30", "-y", "12"]);
    tmux.until("30 are too few", |it| it.contains("too small"));
    tmux.run(&["resize-window", "-x", "120", "-y", "30"]);
    tmux.until("120 have all", |it| it.contains("SPX/NPS1") && it.contains("PROCS"));
    tmux.presses("Down");
    tmux.until("the next GPU is chosen", |it| it.contains("> 1 "));
    tmux.types("q");
    tmux.is_restored("ended 0");
}

#[test]
fn real_tmux_signals_and_control_c_restore_the_terminal() {
    use nix::sys::signal::{Signal, kill};
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    for (end, code) in
        [(Some(Signal::SIGTERM), "ended 143"), (Some(Signal::SIGHUP), "ended 129"), (None, "ended 0")]
    {
        let tmux = Tmux::new(80, 24);
        tmux.commands(&top(laid.top(), ""));
        tmux.until("it is drawn", |it| it.contains("431/740 W"));
        match end {
            Some(signal) => kill(nix::unistd::Pid::from_raw(tmux.child()), signal).unwrap(),
            None => tmux.presses("C-c"),
        }
        tmux.is_restored(code);
    }
}

#[test]
fn real_tmux_control_z_gives_the_shell_back_and_fg_the_screen() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::new(80, 24);
    tmux.commands(&top(laid.top(), ""));
    tmux.until("it is drawn", |it| it.contains("431/740 W"));
    tmux.presses("C-z");
    tmux.until("the shell is back", |it| it.contains("before top") && !it.contains("431/740 W"));
    tmux.commands("fg");
    tmux.until("the screen is back", |it| it.contains("431/740 W"));
    tmux.types("?");
    tmux.until("keys are heard", |it| it.contains("Keys of rocworker top"));
    tmux.presses("C-c");
    tmux.until("the shell is back", |it| it.contains("before top"));
}

#[test]
fn real_tmux_a_terminal_that_cannot_and_no_colour() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::new(100, 30);
    tmux.commands(&format!("export TERM=dumb; {}", top(laid.top(), "")));
    tmux.until("dumb is refused", |it| it.contains("TERM names none") && it.contains("ended 2"));
    tmux.commands(&format!("clear; export NO_COLOR=1 TERM=screen; {}", top(laid.top(), "")));
    tmux.until("it is drawn", |it| it.contains("431/740 W"));
    let colours = tmux.run(&["capture-pane", "-p", "-e"]);
    assert!(!["\u{1b}[3", "\u{1b}[9", "\u{1b}[4"].iter().any(|it| has_colour(&colours, it)), "{colours:?}");
}

/// Whether a sequence sets a colour: SGR 30 to 37, 90 to 97, 40 to 47. Italics (3) and underline (4) end at once.
fn has_colour(text: &str, begin: &str) -> bool {
    text.split(begin).skip(1).any(|rest| rest.starts_with(|c: char| c.is_ascii_digit() && c != '9'))
}

#[test]
fn real_fuse_keys_answer_while_a_card_hangs() {
    if !fuse::require() || !real::require(&["tmux"]) {
        return;
    }
    let folder = support::detect::scratch();
    Machine::instinct_with_readings(2, 1).lay_out(folder.path(), Nodes::Recorded).unwrap();
    let laid = Served::new(folder.path());
    let tmux = Tmux::new(100, 30);
    tmux.commands(&top(laid.path(), "--interval 0.2"));
    tmux.until("it is drawn", |it| it.contains("431/740 W"));
    laid.fault("/sys/bus/pci/devices/0000:05:00.0/gpu_busy_percent", Fault::Block);
    eventually("a read hangs", || laid.hanging() > 0);
    tmux.types("?");
    tmux.until("a key answers", |it| it.contains("Keys of rocworker top"));
    tmux.types("x");
    tmux.until("it says what hangs, and shows the rest", |it| {
        it.contains("1 read has not come back") && it.contains("432/740 W") && it.contains("62%")
    });
    // Every file: no reading ends before its deadline.
    laid.fault_everywhere(Fault::Delay(std::time::Duration::from_millis(400)));
    tmux.until("it says that it waits", |it| it.contains("The reading under way has taken"));
    tmux.types("p");
    tmux.until("keys answer still", |it| it.contains("PAUSED"));
    tmux.types("q");
    // The kernel ends no process whose read FUSE has not answered.
    laid.mend();
    laid.release();
    tmux.until("it ends", |it| it.contains("ended 0"));
}

#[test]
fn real_tmux_top_costs_little() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = Laid::out(&Machine::instinct_with_readings(8, 8));
    let tmux = Tmux::new(120, 40);
    tmux.commands(&top(laid.top(), ""));
    tmux.until("it is drawn", |it| it.contains("64 GPUs on 8 cards"));
    let pid = tmux.child();
    let ticks = || {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
        let fields: Vec<u64> =
            stat.rsplit_once(')').unwrap().1.split_whitespace().filter_map(|it| it.parse().ok()).collect();
        // utime and stime, without the state in front of them: a letter.
        fields[10] + fields[11]
    };
    let time = || tmux.screen().lines().next().unwrap_or_default().to_owned();
    let (before, mut last, mut readings) = (ticks(), time(), 0);
    eventually("ten readings are shown", || {
        let now = time();
        if now != last {
            (last, readings) = (now, readings + 1);
        }
        readings == 10
    });
    let share = ticks() - before;
    eprintln!("top of 64 partitions once a second, unoptimized: {share} ticks of 10 ms in 10 s");
    // A build with optimization takes a tenth of that.
    assert!(share < 300, "{share} ticks of 10 ms in 10 s");
}

#[test]
fn real_tmux_top_ends_with_its_terminal() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::new(80, 24);
    tmux.commands(&top(laid.top(), ""));
    tmux.until("it is drawn", |it| it.contains("431/740 W"));
    let stat = format!("/proc/{}/stat", tmux.child());
    drop(tmux);
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    eventually("top is gone", is_gone);
}
