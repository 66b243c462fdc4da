//! The process object of `runc exec --process FILE`.

use crate::{
    Error,
    bundle::{Process, ProcessEdits},
    object::{OBJECT, Object},
    splice::Splices,
};

/// Makes the edits in a process object, as [`crate::bundle::Bundle::inject`] does in a bundle's `process`, since
/// runc takes this object in place of that one. None: nothing changes.
///
/// # Errors
/// The text is not one JSON object, or a key that would be edited appears twice or has the wrong type.
pub fn inject(text: &str, edits: &ProcessEdits<'_>) -> Result<Option<String>, Error> {
    let process = Process::read(Object::whole(text)?)?;
    let mut splices = Splices::of(text);
    let members = process.extend(text, edits, &mut splices, "")?;
    splices.extend(Some(process.object.value), OBJECT, members.0);
    Ok(splices.edited())
}

#[cfg(test)]
mod tests;
