//! What of a plan and of its effects is the kernel driver's.

use packages::driver::PACKAGE;
use reconcile::{Effect, Outcome as EffectOutcome, Plan, Resource, Settled};

pub(super) fn is_reboot(effect: &Effect) -> bool {
    matches!(effect, Effect::Reboot { .. })
}

/// Whether apt has read what a repository offers.
pub(super) fn is_read(settled: &Settled) -> bool {
    matches!(settled.effect, Effect::AptUpdate { .. }) && settled.outcome == EffectOutcome::Done
}

/// What of a plan is the driver itself: which of its releases are to be had is known only once apt has read AMD's
/// repository, which may be in the midst of an apply. `None`: nothing.
pub(super) fn of_driver(mut plan: Plan) -> Option<Plan> {
    let names = [Resource::Package(PACKAGE.to_owned()), Resource::Module("amdgpu".to_owned())];
    plan.changes.retain(|change| names.contains(&change.path));
    for findings in [&mut plan.blocked, &mut plan.contested] {
        findings.retain(|finding| names.contains(&finding.path));
    }
    // The outcome has everything else already.
    plan.left.clear();
    plan.skipped.clear();
    plan.linked.clear();
    let findings = plan.blocked.iter().chain(&plan.contested).map(|finding| &finding.path);
    let mut all = plan.changes.iter().map(|change| &change.path).chain(findings);
    all.any(|it| names.first() == Some(it)).then_some(plan)
}
