//! What a device can do, as the program's release tells it.

use crate::error::{HipError, Outcome};
use crate::session::Properties;

/// The device's target, such as `gfx90a:sramecc+:xnack-`.
///
/// # Errors
/// The worker's library names none.
pub fn target(properties: &Properties) -> Outcome<String> {
    let name = properties.bytes.get(396..652).unwrap_or_default();
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    match std::str::from_utf8(name) {
        Ok(name) if !name.is_empty() => Ok(name.to_owned()),
        _ => Err(HipError::INVALID_DEVICE),
    }
}
