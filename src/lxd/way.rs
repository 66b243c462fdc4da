//! By what a card of the host goes into a container, or why it does not.

use amdgpu::Address;

use super::resources::Card;

/// PCI-SIG's number of AMD; names of vendors differ from one PCI id database to the next.
pub(super) const AMD: &str = "1002";

pub(super) fn is_amd(card: &Card) -> bool {
    card.vendor_id.as_deref().is_some_and(|id| id.eq_ignore_ascii_case(AMD))
}

/// By what a card is passed.
pub(super) enum Way {
    Address(Address),
    /// The name of a render node.
    Node(String),
}

/// Whether LXD knows nothing of it but its nodes, as of a partition beyond a card's first (seen with Incus 6.0): its
/// device is no PCI function.
pub(super) fn is_bare(card: &Card) -> bool {
    card.vendor_id.is_none() && card.pci_address.is_none() && card.drm.is_some()
}

pub(super) fn partition(card: &Card, is_partition: &dyn Fn(&str) -> Option<bool>) -> Result<Way, String> {
    let render = card.drm.as_ref().and_then(|drm| drm.render_name.as_deref());
    // It goes into a command.
    let is_plain = |name: &&str| {
        let number = name.strip_prefix("renderD");
        number.is_some_and(|number| number.len() < 8 && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let render = render.filter(is_plain).ok_or("it has neither a PCI address nor a render node")?;
    match is_partition(render) {
        Some(true) => Ok(Way::Node(render.to_owned())),
        Some(false) => Err("no PCI card, and no partition of AMD's".to_owned()),
        None => Err("no PCI card. A partition of AMD's looks like that (CPX, DPX, …): rocworker lxd advise on the host \
                     itself tells"
            .to_owned()),
    }
}

/// The address by which a card is passed, or why it is not.
pub(super) fn passable(card: &Card) -> Result<Way, String> {
    if !is_amd(card) {
        return Err(match &card.vendor_id {
            Some(_) => "not AMD's".to_owned(),
            None => "nothing says whose it is".to_owned(),
        });
    }
    let driver = card.driver.as_deref();
    match (driver, &card.drm) {
        (Some("vfio-pci"), _) => {
            return Err("vfio-pci is bound to it: it is for a virtual machine".to_owned());
        }
        (None, None) => {
            return Err("no driver is bound to it: modprobe amdgpu on the host, and read dmesg".to_owned());
        }
        (Some("amdgpu"), None) => {
            return Err("amdgpu is bound to it and made no nodes: read dmesg on the host".to_owned());
        }
        (Some("amdgpu") | None, Some(drm)) if drm.render_name.is_none() => {
            return Err("it has no render node: amdgpu did not finish, read dmesg on the host".to_owned());
        }
        (Some("amdgpu") | None, Some(_)) => {}
        (Some(other), _) => return Err(format!("{other} is bound to it, and computing needs amdgpu")),
    }
    let address = card.pci_address.as_deref().ok_or("it has no PCI address to name it by")?;
    address.parse().map(Way::Address).map_err(|error| format!("{error}"))
}
