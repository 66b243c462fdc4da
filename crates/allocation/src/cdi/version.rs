//! Versions of the CDI specification.

use super::{Device, Edits, Spec};

/// Every version that was released, in their order.
const RELEASED: [&str; 10] =
    ["0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"];

impl Spec<'_> {
    /// The lowest version whose consumers understand all that the spec has in it: the one to write, since a
    /// consumer refuses every version that it does not know (specs-go/version.go of CDI).
    ///
    /// Whether `intelRdt` needs 1.1.0 depends on what is in it, which is not read here: 0.7.0 is its lowest.
    #[must_use]
    pub fn minimum_version(&self) -> &'static str {
        let has_other = |edits: &Edits<'_>, name: &str| edits.others.iter().any(|other| other == name);
        if self.any_edits(|edits| has_other(edits, "netDevices")) {
            return "1.1.0";
        }
        if self.any_edits(|edits| !edits.additional_gids.is_empty() || has_other(edits, "intelRdt")) {
            return "0.7.0";
        }
        let class_has_a_dot = self.kind.split_once('/').is_some_and(|(_, class)| class.contains('.'));
        if class_has_a_dot || self.annotated || self.devices.iter().any(|device| device.annotated) {
            return "0.6.0";
        }
        let leads_with_a_digit = |device: &Device<'_>| device.name.starts_with(|c: char| c.is_ascii_digit());
        let has_a_host_path =
            |edits: &Edits<'_>| edits.device_nodes.iter().any(|node| node.host_path.is_some());
        if self.devices.iter().any(leads_with_a_digit) || self.any_edits(has_a_host_path) {
            return "0.5.0";
        }
        if self.any_edits(|edits| edits.mounts.iter().any(|mount| mount.kind.is_some())) {
            return "0.4.0";
        }
        "0.3.0"
    }

    fn any_edits(&self, of: impl Fn(&Edits<'_>) -> bool) -> bool {
        of(&self.edits) || self.devices.iter().any(|device| of(&device.edits))
    }
}

/// The place of a version among the released ones, by which they compare; None if there is none such.
/// Consumers let a `v` before it pass.
pub(super) fn released(version: &str) -> Option<usize> {
    let version = version.strip_prefix('v').unwrap_or(version);
    RELEASED.iter().position(|released| *released == version)
}
