//! What a change needs before it: a file that is there, or a package or module that has come.

use std::path::{Path, PathBuf};

use root::Root;

use crate::dpkg::Status;
use crate::plan::{Change, Plan};
use crate::state::Found;
use crate::work::Carried;
use crate::{State, module, package};

/// Why a change cannot be made yet; `None` where all that it needs is there.
pub(crate) fn unmet(root: &Root, plan: &Plan, carried: &Carried, change: &Change) -> Option<String> {
    change.needs.iter().find_map(|path| {
        if package::named(path).is_none() && module::named(path).is_none() {
            return (!root.exists(path)).then(|| format!("it needs {}, which is not there", path.display()));
        }
        let came = carried.done.contains(path) || is_right(root, plan, carried, path);
        (!came).then(|| format!("it needs {}, which did not come", path.display()))
    })
}

/// Whether nothing had to be done about it.
fn is_right(root: &Root, plan: &Plan, carried: &Carried, path: &PathBuf) -> bool {
    let failed = carried.failed.iter().chain(&plan.blocked).chain(&plan.contested).chain(&plan.skipped);
    failed.into_iter().all(|finding| finding.path != *path) && is_there(root, path)
}

fn is_there(root: &Root, path: &Path) -> bool {
    let found = Found::look(root, path).map(|found| found.state());
    matches!(found, Ok(State::Loaded | State::Package { status: Status::Installed, .. }))
}
