//! The process object of `runc exec --process FILE`.

use crate::{
    bundle::{Doubt, Error, Process, ProcessEdits},
    json::Scanner,
    splice::{Brackets, Place, Splices},
};

/// Makes the edits in a process object, as [`crate::bundle::Bundle::inject`] does in a bundle's `process`, since
/// runc takes this object in place of that one. None: nothing changes.
///
/// # Errors
/// The text is not one JSON object, or a key that would be edited stands twice or has the wrong type.
pub fn inject(text: &str, edits: &ProcessEdits<'_>) -> Result<Option<String>, Error> {
    let mut scanner = Scanner::new(text);
    let mut doubt = Doubt::default();
    let mut process = Process::default();
    if scanner.peek()? != b'{' {
        return Err(Error::Syntax { offset: scanner.offset(), expected: "an object" });
    }
    let root = process.read(&mut scanner, &mut doubt, "")?;
    scanner.finish()?;
    if let Some(error) = doubt.0 {
        return Err(error);
    }
    let mut splices = Splices::default();
    let members = process.extend(text, root, edits, &mut splices, "")?;
    splices.extend(Place::Here(root), Brackets::Object, members.0);
    Ok(splices.edited(text))
}

#[cfg(test)]
mod tests;
