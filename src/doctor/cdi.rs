//! Whether engines read the truth: the CDI spec against the machine as it is now.

use std::path::Path;

use cdi::{self, Siblings, Wanted, wanted};
use check::{APPLY, About, Check};
use config::selection::select;
use root::Kind;

use super::machine::Subject;
use crate::run::siblings_at_apply;

const NAME: &str = "cdi";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let path = &subject.config.cdi.path;
    let about = || About::one(NAME, path.display().to_string());
    subject.needs_amd(about(), "there is no AMD GPU to describe")?;
    let selection = select(subject.config, subject.facts)
        .map_err(|_| about().skipped("the configuration names a GPU that is not there"))?;
    let wanted = wanted(subject.config, &selection, &subject.facts.inventory);
    // A spec that is there is held against what engines read now.
    let siblings = match subject.root.exists(path) {
        true => Siblings::read(subject.root, path, |_| false),
        false => siblings_at_apply(subject.root, path),
    };
    let conflicts =
        if let Wanted::Spec(spec) = &wanted { siblings.conflicts(spec.names()) } else { Vec::new() };
    let refusal = cdi::refusal(&conflicts);
    let apply =
        refusal.as_ref().map_or(APPLY.to_owned(), |refusal| format!("{}, then {APPLY}", refusal.remedy));
    let is_wanted = matches!(wanted, Wanted::Spec(_));
    let text = match subject.root.read_trusted(path, cdi::LIMIT) {
        Ok(bytes) => String::from_utf8_lossy(&bytes).into_owned(),
        Err(error) if error.is_not_found() && !is_wanted => {
            return Err(about().skipped("not there, and there is no usable GPU to describe"));
        }
        Err(error) if error.is_not_found() => {
            let missing = "not there: no engine and no wrapper finds a GPU".to_owned();
            return Err(about().failed(refusal.map_or(missing, |refusal| refusal.why), apply));
        }
        Err(error) => {
            return Err(about().failed(error.to_string(), format!("put that right, then {APPLY}")));
        }
    };
    let findings = cdi::check(subject.root, &text, &wanted);
    let remedy =
        if is_wanted { apply } else { "make a GPU usable first (the checks above), or remove it".to_owned() };
    let of_spec = findings.into_iter().map(|finding| about().failed(finding, remedy.clone()));
    let shared = conflicts.iter().filter(|it| it.breaks() && !it.ends_what_works());
    let shared = shared.map(|it| about().failed(it.text(), it.remedy()));
    let unknown = siblings.unknown().map(|text| about().warning(text, "see that it can be read"));
    let linked = path.parent().filter(|folder| is_link(subject, folder)).map(|folder| {
        let folder = folder.display();
        about().warning(
            format!("{folder} is a link, which engines with an older CDI library (podman 4.3) do not follow"),
            format!("make {folder} a folder, then {APPLY}; or mount the link's folder there"),
        )
    });
    let checks: Vec<Check> = of_spec.chain(shared).chain(unknown).chain(linked).collect();
    if checks.is_empty() {
        return Ok(vec![about().ok("valid, true of this machine, its names in no other spec")]);
    }
    Ok(checks)
}

/// Older CDI libraries walk the folder of specs (Go's filepath.Walk), which does not follow a link to it. Newer ones
/// list it (os.ReadDir). Links on the way are the kernel's to follow.
fn is_link(subject: &Subject<'_>, folder: &Path) -> bool {
    subject.root.lstat(folder).is_ok_and(|meta| meta.kind == Kind::Link)
}
