//! The process object of `runc exec --process FILE`.

use crate::{
    Error,
    bundle::{Process, ProcessEdits},
    json::Scanner,
    splice::{OBJECT, Place, Splices},
};

/// Makes the edits in a process object, as [`crate::bundle::Bundle::inject`] does in a bundle's `process`, since
/// runc takes this object in place of that one. None: nothing changes.
///
/// # Errors
/// The text is not one JSON object, or a key that would be edited appears twice or has the wrong type.
pub fn inject(text: &str, edits: &ProcessEdits<'_>) -> Result<Option<String>, Error> {
    let mut process = Process::default();
    let mut scanner = Scanner::new(text);
    let root = process.read(&mut scanner);
    let root = root.and_then(|root| scanner.finish().map(|()| root)).map_err(|fault| fault.of(text))?;
    let mut splices = Splices::default();
    let members = process.extend(text, root, edits, &mut splices, "")?;
    splices.extend(Place::Here(root), OBJECT, members.0);
    Ok(splices.edited(text))
}

#[cfg(test)]
mod tests;
