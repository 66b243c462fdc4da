//! The unit's status: every text that `juju status` shows of it, and what decides between them: pure. People and scripts
//! search these texts: `Worker ready (v7.14.2) (GPU: 1x AMD)`.

use std::time::{Duration, Instant};

use config::{self, Off};
use host::version::Version;
use lxd::on_host::OnHost;
use printable::{printable, shortened};
use reconcile::{Effect, Finding, Outcome as EffectOutcome, Progress, Settled, Step, Verb};

use super::options::{Role, WrongConfig};
use crate::doctor::{Check, Status};
use crate::run::Outcome;

/// Juju's words for a unit's workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    Active,
    Blocked,
    Maintenance,
    Waiting,
}

/// A status as `status-set` takes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitStatus {
    pub state: Workload,
    /// One line.
    pub text: String,
}

/// How the machine is after an apply, which may have changed what is true.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) role: Role,
    /// Concourse's, where a worker is there and its version is known.
    pub(super) version: Option<Version>,
    /// The GPUs that containers may be given.
    pub(super) gpus: usize,
    /// Why the options leave AMD's GPUs alone.
    pub(super) off: Option<Off>,
    /// Whether the options want a worker and the machine has none.
    pub(super) lacks_worker: bool,
    /// Why no GPU can be used, and the one thing to do.
    pub(super) why_no_gpu: Option<String>,
}

/// Longer than any command that is shown, in characters. Juju has no bound of its own, and a table has.
const LONGEST: usize = 600;

/// Some five lines of a terminal, with three commands or four. Juju keeps a status of any length; the table of `juju status`
/// shows 120 letters of it (juju/cmd/juju/status/output_tabular.go), and `--format=yaml` all.
const READABLE: usize = 400;

/// Between two steps that Juju hears of: apt reports a hundred in a minute, and each is a call to the controller.
const PAUSE: Duration = Duration::from_secs(5);

impl UnitStatus {
    pub(super) fn new(state: Workload, text: &str) -> Self {
        let text = printable(&text.split_whitespace().collect::<Vec<_>>().join(" "));
        Self { state, text: shortened(text, LONGEST) }
    }

    fn blocked(text: &str) -> Self {
        Self::new(Workload::Blocked, text)
    }

    /// After an apply. What is to be done first comes first: a problem hides everything else.
    pub(super) fn after_apply(found: &Found, applied: &Outcome) -> Self {
        if let Some(problem) = problem(found, applied) {
            return Self::installation_failed(&problem);
        }
        let gpus = found.gpus;
        let ready =
            found.version.map_or_else(|| "Worker ready".to_owned(), |it| format!("Worker ready (v{it})"));
        let text = match (found.role, found.off) {
            (Role::Web, _) => "Web node: no GPU is set up here".to_owned(),
            (_, Some(why)) => {
                let word = if why == Off::Cuda { "cuda" } else { "none" };
                format!("{ready} (no GPU: compute-runtime is {word})")
            }
            (_, None) if gpus == 0 => {
                let why = found.why_no_gpu.as_deref().unwrap_or("see rocworker doctor");
                return Self::blocked(&format!("No usable GPU: {why}"));
            }
            (_, None) if found.lacks_worker => {
                let text = format!(
                    "Waiting for concourse-worker.service, which mode=worker says comes (GPU: {gpus}x AMD)"
                );
                return Self::new(Workload::Waiting, &text);
            }
            (_, None) => format!("{ready} (GPU: {gpus}x AMD)"),
        };
        let remark = remark(applied).map_or_else(String::new, |it| format!("; {it}"));
        Self::new(Workload::Active, &format!("{text}{remark}"))
    }

    /// After an error.
    pub(super) fn failed(error: &anyhow::Error) -> Self {
        let is_wrong = error.is::<WrongConfig>() || error.is::<config::Error>();
        match error.to_string() {
            problem if is_wrong => Self::blocked(&format!("Config failed: {problem}")),
            problem => Self::installation_failed(&problem),
        }
    }

    fn installation_failed(problem: &str) -> Self {
        Self::blocked(&format!("Installation failed: {problem}"))
    }

    pub(super) fn removal_failed(problem: &str) -> Self {
        Self::blocked(&format!("Removal failed: {problem}"))
    }

    /// After the action undo; `but_for`: what it has not reverted.
    pub(super) fn undone(unit: &str, but_for: Option<&str>) -> Self {
        let but_for = but_for.map_or_else(String::new, |what| format!(", but for {what}"));
        Self::blocked(&format!(
            "Taken back by the action undo{but_for}: juju run {unit} apply sets it up again"
        ))
    }

    /// The action undo found before its first change what would stop it.
    pub(super) fn undo_refused(why: &str) -> Self {
        Self::blocked(&format!("The action undo changed nothing: {why}"))
    }

    /// A person has applied on the machine after the action undo.
    pub(super) fn applied_since_undo(unit: &str) -> Self {
        Self::blocked(&format!(
            "Taken back by the action undo, and set up since by rocworker apply on the machine: juju run {unit} apply keeps \
             it, juju run {unit} undo takes it back"
        ))
    }

    /// A person has set the machine up by this command, and not the charm.
    pub(super) fn set_up_by(command: &str, unit: &str) -> Self {
        Self::blocked(&format!(
            "Set up by {command} on the machine, and left as it is: juju run {unit} apply has the charm's options take its \
             place"
        ))
    }

    /// The daemon keeps the tags of a GPU that has gone.
    pub(super) fn tags_held() -> Self {
        Self::new(
            Workload::Waiting,
            "A GPU has gone: the worker keeps its tags for a while, should it come back (rocworker status)",
        )
    }

    /// What a hook is at.
    fn of_progress(progress: &Progress<'_>) -> Self {
        let text = match progress {
            Progress::Begins(change) | Progress::Made(change)
                if matches!(change.change, Verb::Remove | Verb::Restore) =>
            {
                format!("taking back {}", change.path)
            }
            Progress::Begins(change) | Progress::Made(change) => {
                format!("{}: {}", change.path, change.reason)
            }
            Progress::Comes(change, Step { text, percent: None }) => format!("{}: {text}", change.path),
            Progress::Comes(change, Step { text, percent: Some(percent) }) => {
                format!("{}: {text} ({percent:.0} %)", change.path)
            }
            Progress::Waits(text) => text.clone(),
            Progress::Settles(effect) => effect.to_string(),
        };
        Self::new(Workload::Maintenance, &text)
    }
}

impl Workload {
    /// As `status-set` takes it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Blocked => "blocked",
            Self::Maintenance => "maintenance",
            Self::Waiting => "waiting",
        }
    }
}

/// The restart of the machine that an apply waits for.
pub(super) fn reboot(applied: &Outcome) -> Option<&Effect> {
    let reboot =
        |it: &&Settled| it.outcome == EffectOutcome::Pending && matches!(it.effect, Effect::Reboot { .. });
    applied.effects.iter().find(reboot).map(|it| &it.effect)
}

/// The first thing that could not be applied.
fn problem(found: &Found, applied: &Outcome) -> Option<String> {
    let line = |it: &Finding| format!("{}: {}", it.path, it.text);
    let failed = applied.effects.iter().filter(|it| it.outcome == EffectOutcome::Failed);
    let mut failed = applied.failed.iter().map(line).chain(failed.map(|it| it.text.clone()));
    // Why no GPU can be used says more than what follows from it.
    let notes = applied.notes.iter().filter(|note| note.problem);
    let notes = notes.map(|note| format!("{}: {}", note.about, note.text));
    let mut open = applied.blocked.iter().map(line).chain(notes).filter(|_| found.why_no_gpu.is_none());
    failed.next().or_else(|| open.next())
}

/// What is to be said beside a worker that is ready.
fn remark(applied: &Outcome) -> Option<String> {
    let mut pending = applied.effects.iter().filter(|it| it.outcome == EffectOutcome::Pending);
    let pending = pending.next().map(|it| format!("pending: {}", it.effect));
    let contested = || applied.contested.first().map(|it| format!("contested: {}: {}", it.path, it.text));
    let lacks = || applied.lacks.as_ref().map(|it| format!("not installed: {it}"));
    pending.or_else(contested).or_else(lacks)
}

/// The step that Juju heard of last, and when.
#[derive(Debug, Default)]
pub(super) struct Steps {
    /// A tool that does not answer takes a minute each time, and work must go on.
    pub(super) is_silent: bool,
    last: Option<(Instant, UnitStatus)>,
}

impl Steps {
    /// The status to set now for this progress, if any: the first step at once, a later one when it is another and the
    /// last came some time ago. A wait takes long, and is shown at once.
    pub(super) fn due(&mut self, progress: &Progress<'_>, now: Instant) -> Option<UnitStatus> {
        let status = UnitStatus::of_progress(progress);
        let is_due = |(when, last): &(Instant, UnitStatus)| {
            *last != status && (matches!(progress, Progress::Waits(_)) || now.duration_since(*when) >= PAUSE)
        };
        if self.is_silent || !self.last.as_ref().is_none_or(is_due) {
            return None;
        }
        self.last = Some((now, status.clone()));
        Some(status)
    }
}

/// The first thing that doctor finds wrong, with what to do; `None` where it finds nothing wrong. In a container to which
/// nodes were not passed, all of the commands that pass them, for one alone makes no GPU usable; where they are many,
/// what prints them.
pub(super) fn first_remedy(checks: &[Check]) -> Option<String> {
    let of = |status| checks.iter().find(|check| check.status == status && check.remedy.is_some());
    let first = of(Status::Failed).or_else(|| of(Status::Warning))?;
    // A path or an address is a thing, and evidence reads on from it; another subject is a heading.
    let thing = first.subject.as_ref().filter(|subject| subject.contains(['/', ':']));
    let subject = thing.map_or_else(String::new, |subject| format!("{subject} "));
    let said = |remedy: &str| format!("{subject}{}: {remedy}", first.evidence);
    let Some(on_host) = &first.on_host else { return first.remedy.as_deref().map(said) };
    let alike = checks.iter().filter(|check| check.status == first.status);
    let all =
        alike.filter_map(|check| check.on_host.as_deref().cloned()).fold(OnHost::clone(on_host), OnHost::and);
    let whole = said(&all.to_string());
    Some(if whole.chars().count() > READABLE { said(&all.in_brief()) } else { whole })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::doctor::About;
    use lxd::command::{Client, Command, Container, PLACEHOLDER};

    #[test]
    fn a_status_says_what_people_search_for() {
        let with = |gpus| Found {
            role: Role::Worker,
            version: None,
            gpus,
            off: None,
            lacks_worker: false,
            why_no_gpu: None,
        };
        let pending = Settled {
            effect: Effect::Restart { unit: "x.service".to_owned(), drain: None },
            outcome: EffectOutcome::Pending,
            text: String::new(),
        };
        let folder = Finding { path: "/etc/cdi/amd.json".into(), text: "is a folder".to_owned() };
        let version = Some(Version { major: 7, minor: 14, patch: 2 });
        for (found, expected) in [
            (with(1), "active: Worker ready (GPU: 1x AMD)"),
            (Found { version, ..with(1) }, "active: Worker ready (v7.14.2) (GPU: 1x AMD)"),
            (
                Found { version, off: Some(Off::Cuda), ..with(0) },
                "active: Worker ready (v7.14.2) (no GPU: compute-runtime is cuda)",
            ),
            (Found { version, role: Role::Web, ..with(1) }, "active: Web node: no GPU is set up here"),
            (with(2), "active: Worker ready (GPU: 2x AMD)"),
            (Found { role: Role::Machine, ..with(63) }, "active: Worker ready (GPU: 63x AMD)"),
            (
                Found { off: Some(Off::NoGpu), ..with(0) },
                "active: Worker ready (no GPU: compute-runtime is none)",
            ),
            (
                Found { role: Role::Web, off: Some(Off::NoGpu), ..with(0) },
                "active: Web node: no GPU is set up here",
            ),
            (
                Found {
                    why_no_gpu: Some("the driver is not loaded:\n modprobe amdgpu".to_owned()),
                    ..with(0)
                },
                "blocked: No usable GPU: the driver is not loaded: modprobe amdgpu",
            ),
            (
                Found { lacks_worker: true, ..with(1) },
                "waiting: Waiting for concourse-worker.service, which mode=worker says comes (GPU: 1x AMD)",
            ),
        ] {
            let UnitStatus { state, text } = UnitStatus::after_apply(&found, &Outcome::default());
            assert_eq!(format!("{}: {text}", state.word()), expected);
        }
        let mut applied = Outcome::default();
        applied.effects.push(pending);
        let UnitStatus { text, .. } = UnitStatus::after_apply(&with(1), &applied);
        assert_eq!(text, "Worker ready (GPU: 1x AMD); pending: systemctl restart x.service");
        applied.blocked.push(folder);
        let UnitStatus { state, text } = UnitStatus::after_apply(&with(1), &applied);
        assert_eq!(
            (state, &*text),
            (Workload::Blocked, "Installation failed: /etc/cdi/amd.json: is a folder")
        );
        let wrong = UnitStatus::failed(&WrongConfig("tag: a blank".to_owned()).into());
        assert_eq!(wrong.text, "Config failed: tag: a blank");
    }

    #[test]
    fn what_did_not_come_is_a_remark() {
        let mut applied = Outcome::default();
        assert_eq!(remark(&applied), None);
        applied.lacks = Some("rocm-smi-lib: no network".to_owned());
        assert_eq!(remark(&applied).unwrap(), "not installed: rocm-smi-lib: no network");
    }

    #[test]
    fn a_text_is_one_line_of_bounded_length_that_steers_no_terminal() {
        let status = UnitStatus::blocked(&format!("a\u{1b}[31m\n\tb {}", "x".repeat(700)));
        assert!(status.text.starts_with("a\\u{1b}[31m b xxx"), "{}", status.text);
        assert_eq!(status.text.chars().count(), 601);
    }

    #[test]
    fn the_first_thing_that_fails_is_told_and_of_a_container_each_command_once() {
        let lxd = Container { client: Client::Lxc, name: PLACEHOLDER, gid: Some(992) };
        let kfd = lxd.add_node(Path::new("/dev/kfd"));
        let gpu = lxd.add_node(Path::new("/dev/dri/renderD128"));
        let about = |subject: &str| About::one("nodes", subject);
        let on_host = |commands: &[&Command]| {
            OnHost::new(&lxd, commands.iter().map(|command| (*command).clone()).collect())
        };
        for (checks, expected) in [
            (vec![about("/dev/kfd").ok("fine")], None),
            (
                vec![
                    About::all("nodes").warning("a warning", "look"),
                    about("/dev/kfd").failed("is not there", "modprobe amdgpu"),
                    About::all("nodes").failed("another", "another"),
                ],
                Some("/dev/kfd is not there: modprobe amdgpu".to_owned()),
            ),
            (
                vec![
                    about("passthrough").failed("none of them in /dev", on_host(&[&kfd, &gpu])),
                    about("/dev/kfd").failed("is not there", on_host(&[&kfd])),
                    about("/dev/dri/renderD129").warning("is not there", "look"),
                ],
                Some(format!("none of them in /dev: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("/dev/kfd").failed("is not there", on_host(&[&kfd])),
                    about("passthrough").failed("none of them in /dev", on_host(&[&gpu])),
                    about("GPU 1").failed("cannot be opened", "on the host: see to its group"),
                ],
                Some(format!("/dev/kfd is not there: on the host: {kfd} && {gpu}")),
            ),
            (
                vec![
                    about("passthrough").warning("right, if the other is another's", on_host(&[&gpu])),
                    about("/dev/kfd").ok("fine"),
                ],
                Some(format!("right, if the other is another's: on the host: {gpu}")),
            ),
        ] {
            assert_eq!(first_remedy(&checks), expected);
        }
    }

    #[test]
    fn more_commands_than_can_be_read_are_told_by_what_prints_them() {
        for (name, called) in
            [(PLACEHOLDER, "CONTAINER"), ("c1", "c1 (its hostname, and likely its name there)")]
        {
            let lxd = Container { client: Client::Lxc, name, gid: Some(992) };
            let kfd = lxd.add_node(Path::new("/dev/kfd"));
            let renders =
                (128..136).map(|minor| lxd.add_node(Path::new(&format!("/dev/dri/renderD{minor}"))));
            let commands = std::iter::once(kfd.clone()).chain(renders).collect();
            let check =
                About::one("virtualization", "passthrough").failed("none", OnHost::new(&lxd, commands));
            let expected = format!(
                "none: on the host: rocworker lxd advise --container {called} prints the 9 commands, and so does rocworker \
                 doctor in here; the first is {kfd}"
            );
            assert_eq!(first_remedy(&[check]), Some(expected));
        }
    }

    #[test]
    fn the_first_step_is_told_at_once_and_the_others_now_and_then() {
        let mut steps = Steps::default();
        let begin = Instant::now();
        let reload = Progress::Settles(&reconcile::Effect::SystemdReload);
        let waits = |text: &str| Progress::Waits(text.to_owned());
        let mut at = |seconds, progress: &Progress<'_>| {
            steps.due(progress, begin + Duration::from_secs(seconds)).is_some()
        };
        assert!(at(0, &reload));
        assert!(!at(9, &reload), "it was reported");
        assert!(at(9, &waits("waiting for apt")));
        assert!(!at(10, &reload), "too early");
        assert!(at(10, &waits("waiting for the worker")), "a wait is reported at once");
        assert!(at(15, &reload));
        steps.is_silent = true;
        assert_eq!(steps.due(&waits("waiting for apt"), begin + Duration::from_secs(99)), None);
    }
}
