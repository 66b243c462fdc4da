//! What `juju status` shows of a unit after an apply: `Worker ready (v7.14.2) (GPU: 1x AMD)`.

use config::Off;
use host::version::Version;
use juju::{Role, UnitStatus, Workload};
use reconcile::{Effect, Finding, Outcome as EffectOutcome, Settled};

use crate::run::Outcome;

/// How the machine is after an apply, which may have changed what is true.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) role: Role,
    /// Concourse's version, where a worker is on the machine and its version is known.
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

/// After an apply. What is to be done first comes first: a problem hides everything else.
pub(super) fn status(found: &Found, applied: &Outcome) -> UnitStatus {
    if let Some(problem) = problem(found, applied) {
        return UnitStatus::installation_failed(&problem);
    }
    let gpus = found.gpus;
    let ready = found.version.map_or_else(|| "Worker ready".to_owned(), |it| format!("Worker ready (v{it})"));
    let text = match (found.role, found.off) {
        (Role::Web, _) => "Web node: no GPU is set up here".to_owned(),
        (_, Some(why)) => format!("{ready}; {why}"),
        (_, None) if gpus == 0 => {
            let why = found.why_no_gpu.as_deref().unwrap_or("see rocworker doctor");
            return UnitStatus::blocked(&format!("No usable GPU: {why}"));
        }
        (_, None) if found.lacks_worker => {
            let text = format!(
                "Waiting for concourse-worker.service, which mode=worker says comes (GPU: {gpus}x AMD)"
            );
            return UnitStatus::new(Workload::Waiting, &text);
        }
        (_, None) => format!("{ready} (GPU: {gpus}x AMD)"),
    };
    let remark = remark(applied).map_or_else(String::new, |it| format!("; {it}"));
    UnitStatus::new(Workload::Active, &format!("{text}{remark}"))
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

/// What the unit's status adds where the worker is ready: a pending effect, a contested path or a lack.
fn remark(applied: &Outcome) -> Option<String> {
    let mut pending = applied.effects.iter().filter(|it| it.outcome == EffectOutcome::Pending);
    let pending = pending.next().map(|it| format!("pending: {}", it.effect));
    let contested = || applied.contested.first().map(|it| format!("contested: {}: {}", it.path, it.text));
    let missing = || applied.missing_optional.as_ref().map(|it| format!("not installed: {it}"));
    pending.or_else(contested).or_else(missing)
}

#[cfg(test)]
mod tests {
    use super::*;

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
                "active: Worker ready (v7.14.2); the configuration leaves AMD's GPUs alone (compute-runtime: cuda)",
            ),
            (Found { version, role: Role::Web, ..with(1) }, "active: Web node: no GPU is set up here"),
            (with(2), "active: Worker ready (GPU: 2x AMD)"),
            (Found { role: Role::Machine, ..with(63) }, "active: Worker ready (GPU: 63x AMD)"),
            (
                Found { off: Some(Off::NoGpu), ..with(0) },
                "active: Worker ready; the configuration leaves AMD's GPUs alone (compute-runtime: none)",
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
            let UnitStatus { state, text } = status(&found, &Outcome::default());
            assert_eq!(format!("{}: {text}", state.word()), expected);
        }
        let mut applied = Outcome::default();
        applied.effects.push(pending);
        let UnitStatus { text, .. } = status(&with(1), &applied);
        assert_eq!(text, "Worker ready (GPU: 1x AMD); pending: systemctl restart x.service");
        applied.blocked.push(folder);
        let UnitStatus { state, text } = status(&with(1), &applied);
        assert_eq!(
            (state, &*text),
            (Workload::Blocked, "Installation failed: /etc/cdi/amd.json: is a folder")
        );
    }

    #[test]
    fn what_did_not_come_is_a_remark() {
        let mut applied = Outcome::default();
        assert_eq!(remark(&applied), None);
        applied.missing_optional = Some("rocm-smi-lib: no network".to_owned());
        assert_eq!(remark(&applied).unwrap(), "not installed: rocm-smi-lib: no network");
    }
}
