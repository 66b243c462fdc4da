//! Whether the wrapper's program is where engines name it, found as an apply finds it.

use check::{APPLY, About, Check};
use engines::program::Program;
use host::version::Versions;

use super::machine::Subject;
use crate::memory::Memory;

const NAME: &str = "wrapper";

pub(super) fn check(subject: &Subject<'_>) -> Result<Vec<Check>, Check> {
    let about = About::all(NAME);
    subject.needs_amd(about.clone(), "there is no AMD GPU that it would provide")?;
    subject.needs_kfd(about.clone())?;
    let program = match find(subject, &mut versions(subject)) {
        Ok(program) => program,
        Err(why) => return Err(about.failed(why, format!("put that right, then {APPLY}"))),
    };
    let shown = program.path.display();
    let Some(bytes) = &program.bytes else { return Ok(vec![about.ok(format!("{shown} is there"))]) };
    Ok(vec![match subject.root.read_trusted(&program.path, bytes.len()) {
        Ok(there) if there == *bytes => about.ok(format!("{shown} is there")),
        Err(error) if error.is_not_found() => about.failed(format!("{shown} is not there yet"), APPLY),
        _ => about.warning(format!("{shown} is another build than the one beside rocworker"), APPLY),
    }])
}

/// Finds the wrapper's program as an apply does: the package's, the one beside this program, or an earlier apply's
/// copy.
pub(super) fn find(subject: &Subject<'_>, versions: &mut Versions<'_>) -> Result<Program, String> {
    Program::find(subject.root, subject.beside)?.that_runs(versions, subject.beside)
}

/// Programs report their versions once for each build.
pub(super) fn versions<'a>(subject: &Subject<'a>) -> Versions<'a> {
    let known = Memory::read(subject.root).map(|memory| memory.versions).unwrap_or_default();
    Versions::new(subject.root, subject.programs, known)
}
