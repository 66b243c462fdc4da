//! The program in a terminal of tmux's: it draws, hears keys and signals, and leaves the terminal as it was.

use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use layout::{Machine, Nodes, health};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
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

    /// Starts top in it, and waits until it has drawn.
    fn started(root: &Path, (columns, lines): (u16, u16), arguments: &str) -> Self {
        let tmux = Self::new(columns, lines);
        tmux.commands(&top(root, arguments));
        tmux.until("it is drawn", |it| it.contains("431/740 W"));
        tmux
    }

    /// Whether the alternate screen is on, and the cursor.
    fn flags(&self) -> String {
        self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag}"])
    }

    /// Whether the shell's screen, its cursor and its terminal's modes are back.
    #[track_caller]
    fn is_the_shells(&self) {
        self.until("the shell's screen is back", |screen| {
            screen.contains("before top") && !screen.contains("431/740 W") && is_prompt(screen)
        });
        eventually("the cursor is back", || self.flags() == "0 1\n");
        self.commands("stty -a | tr ' ' '\\n' | grep -xE -e '-?(icanon|echo|isig)' | tr '\\n' '+'");
        self.until("the modes are back", |screen| {
            ["+icanon+", "+echo+"].iter().all(|it| format!("+{screen}").contains(it))
                && screen.contains("isig+")
                && !screen.contains("-icanon+")
                && !screen.contains("-echo+")
        });
    }

    /// Whether top has the terminal: it draws, and hears a key without Enter.
    #[track_caller]
    fn is_tops(&self) {
        self.until("the screen is back", |it| it.contains("431/740 W") && !it.contains("READY$"));
        eventually("the cursor is hidden", || self.flags() == "1 0\n");
        self.types("?");
        self.until("keys are heard", |it| it.contains("Keys of rocworker top"));
        self.types("x");
        self.until("the tables are back", |it| it.contains("431/740 W"));
    }

    /// Whether top has ended with this code and left the terminal as it was.
    #[track_caller]
    fn ends(&self, code: u8) {
        self.until("the shell's screen is back", |it| it.contains("before top") && is_prompt(it));
        self.commands("echo ended $?");
        self.until("it has ended so", |screen| screen.contains(&format!("ended {code}")));
        self.is_the_shells();
    }

    fn signals(&self, signal: Signal) {
        kill(Pid::from_raw(self.child()), signal).unwrap();
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
    format!("echo before top; {} --root {} top {arguments}", env!("CARGO_BIN_EXE_rocworker"), root.display())
}

/// Whether the shell waits for a command. Before that, top may still read what is typed.
fn is_prompt(screen: &str) -> bool {
    screen.trim_end().ends_with("READY$")
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
    let tmux = Tmux::started(laid.top(), (100, 30), "--interval 0.2");
    tmux.until("processes are shown", |it| it.contains("ollama.service"));
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
    tmux.ends(0);
}

#[test]
fn real_tmux_signals_and_control_c_restore_the_terminal() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    for (end, code) in [
        (Some(Signal::SIGTERM), 143),
        (Some(Signal::SIGHUP), 129),
        (Some(Signal::SIGINT), 130),
        (Some(Signal::SIGQUIT), 131),
        (None, 0),
    ] {
        let tmux = Tmux::started(laid.top(), (80, 24), "");
        match end {
            Some(signal) => tmux.signals(signal),
            None => tmux.presses("C-c"),
        }
        tmux.ends(code);
    }
}

/// Nothing can be restored or said then.
#[test]
fn real_tmux_a_terminal_that_goes_away_ends_top_without_a_panic() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let code = laid.path("code");
    let tmux = Tmux::new(80, 24);
    let script = format!("trap : HUP; {}; echo $? > {}", top(laid.top(), ""), code.display());
    tmux.run(&["new-window", "sh", "-c", &script]);
    tmux.until("it is drawn", |it| it.contains("431/740 W"));
    tmux.run(&["kill-server"]);
    let ended = || std::fs::read_to_string(&code).unwrap_or_default();
    eventually("it has ended", || ended().ends_with('\n'));
    // By an error of the terminal, or by SIGHUP: whichever top hears of first.
    assert!(["1\n", "129\n"].contains(&&*ended()), "{}", ended());
}

#[test]
fn real_tmux_control_z_gives_the_shell_back_and_fg_the_screen() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::started(laid.top(), (80, 24), "");
    tmux.presses("C-z");
    tmux.is_the_shells();
    tmux.commands("clear; echo before top; fg");
    tmux.is_tops();
    // From outside, and as a shell's script.
    tmux.signals(Signal::SIGTSTP);
    tmux.is_the_shells();
    tmux.commands("clear; echo before top; fg");
    tmux.is_tops();
    tmux.presses("C-c");
    tmux.ends(0);
    tmux.commands(&format!("clear; sh -c '{}; echo after top'", top(laid.top(), "")));
    tmux.is_tops();
    tmux.presses("C-z");
    tmux.is_the_shells();
    tmux.commands("clear; echo before top; fg");
    tmux.is_tops();
    tmux.types("q");
    tmux.until("the script goes on", |it| it.contains("after top"));
}

/// bash sets its own modes while a job is stopped, and `kill` there also sends SIGCONT.
#[test]
fn real_tmux_a_stopped_top_goes_on_or_ends_as_bash_asks() {
    if !real::require(&["tmux", "bash"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::new(80, 24);
    tmux.commands("exec bash --norc --noprofile");
    let start = || {
        tmux.commands(&format!("clear; {}", top(laid.top(), "")));
        tmux.is_tops();
    };
    start();
    tmux.signals(Signal::SIGSTOP);
    tmux.until("the shell speaks", is_prompt);
    tmux.commands("fg");
    tmux.is_tops();
    tmux.presses("C-z");
    tmux.is_the_shells();
    let stat = format!("/proc/{}/stat", tmux.child());
    tmux.commands("clear; echo before top; kill %1");
    eventually("top is gone", || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z ")));
    tmux.is_the_shells();
}

/// A job that no shell controls cannot be continued: the kernel does not stop it.
#[test]
fn real_tmux_control_z_without_a_shell_changes_nothing() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let tmux = Tmux::new(80, 24);
    let program = env!("CARGO_BIN_EXE_rocworker");
    tmux.run(&["new-window", program, "--root", laid.top().to_str().unwrap(), "top"]);
    tmux.is_tops();
    tmux.presses("C-z");
    tmux.is_tops();
}

#[test]
fn real_tmux_dumb_is_refused_and_no_color_is_honoured() {
    if !real::require(&["tmux"]) {
        return;
    }
    let laid = eight();
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
    laid.put("run/rocworker/health.json", &health(8, true, now));
    let tmux = Tmux::new(100, 30);
    tmux.commands(&format!("TERM=dumb; {}", top(laid.top(), "")));
    tmux.until("dumb is refused", |it| it.contains("TERM names none"));
    tmux.ends(2);
    for (setting, is_coloured) in [("", true), ("NO_COLOR=1", false)] {
        tmux.commands(&format!("clear; export TERM=screen {setting}; {}", top(laid.top(), "")));
        tmux.until("it is drawn", |it| it.contains("431/740 W") && it.contains("unhealthy"));
        let shown = tmux.run(&["capture-pane", "-p", "-e"]);
        let colours = ["\u{1b}[3", "\u{1b}[9", "\u{1b}[4"];
        assert_eq!(colours.iter().any(|it| has_colour(&shown, it)), is_coloured, "{setting}: {shown:?}");
        tmux.types("q");
        tmux.ends(0);
    }
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
    let tmux = Tmux::started(laid.path(), (100, 30), "--interval 0.2");
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
    tmux.ends(0);
}

#[test]
fn real_fuse_a_late_first_reading_is_told_whatever_the_interval() {
    if !fuse::require() || !real::require(&["tmux"]) {
        return;
    }
    let folder = support::detect::scratch();
    Machine::instinct_with_readings(2, 1).lay_out(folder.path(), Nodes::Recorded).unwrap();
    let laid = Served::new(folder.path());
    laid.fault_everywhere(Fault::Delay(std::time::Duration::from_millis(400)));
    let tmux = Tmux::new(100, 30);
    tmux.commands(&top(laid.path(), "--interval 10"));
    tmux.until("it says that it waits", |it| it.contains("The reading under way has taken"));
    tmux.types("q");
    laid.mend();
    laid.release();
    tmux.ends(0);
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
    let tmux = Tmux::started(laid.top(), (80, 24), "");
    let stat = format!("/proc/{}/stat", tmux.child());
    drop(tmux);
    let is_gone = || std::fs::read_to_string(&stat).map_or(true, |stat| stat.contains(") Z "));
    eventually("top is gone", is_gone);
}
