//! Which of a host's cards go into a container, by which commands, and why not the others. Pure.

use std::path::Path;

use inventory::PciAddress;
use serde::Serialize;

use super::command::{Client, Command, Container};
use super::resources::Card;

const KFD: &str = "/dev/kfd";
/// The name of the one device of the CDI form.
const CDI_DEVICE: &str = "amd";
/// PCI-SIG's number of AMD; names of vendors differ from one PCI id database to the next.
const AMD: &str = "1002";

/// What the advice is about.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    pub container: Container<'a>,
    /// How the container's gid of the group `render` was found, or how to find it: a part of a sentence.
    pub gid_from: String,
    /// Whether the daemon takes AMD's CDI names; `None`: rocworker did not ask it.
    pub takes_cdi: Option<bool>,
}

/// What passes AMD's cards, and only them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub cards: Vec<Considered>,
    #[serde(flatten)]
    pub commands: Commands,
    /// Commands that pass the cards by LXD's CDI, where LXD has it.
    pub cdi: Option<Commands>,
    /// What a person should know, a sentence or two each.
    pub notes: Vec<String>,
}

/// Commands that pass devices, in the order in which they are to be run, and commands that remove the devices again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Commands {
    pub add: Vec<Command>,
    pub remove: Vec<Command>,
}

/// A card of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Considered {
    pub pci: Option<String>,
    /// The name of the card's node in /dev/dri.
    pub node: Option<String>,
    pub vendor_id: Option<String>,
    pub name: Option<String>,
    /// The name of the card's device in the container; `None`: the card is left out.
    pub device: Option<String>,
    /// Why the card is left out.
    pub why_not: Option<String>,
}

impl Considered {
    fn new(card: &Card) -> Self {
        let names: Vec<&str> =
            [&card.vendor, &card.product].into_iter().flatten().map(String::as_str).collect();
        Self {
            pci: card.pci_address.clone(),
            node: card.drm.as_ref().and_then(|drm| drm.card_name.clone()),
            vendor_id: card.vendor_id.clone(),
            name: (!names.is_empty()).then(|| names.join(" ")),
            device: None,
            why_not: None,
        }
    }

    /// `0000:01:00.0 (NVIDIA …)`, of what is known.
    #[must_use]
    pub fn called(&self) -> String {
        let place = self.pci.as_deref().or(self.node.as_deref()).unwrap_or("a card without address and node");
        let id = || self.vendor_id.as_ref().map(|id| format!("vendor {id}"));
        match self.name.clone().or_else(id) {
            Some(name) => format!("{place} ({name})"),
            None => place.to_owned(),
        }
    }

    /// Why the card is left out, as a sentence.
    #[must_use]
    pub fn left_out(&self) -> Option<String> {
        self.why_not.as_ref().map(|why_not| format!("{}: {why_not}", self.called()))
    }
}

/// What follows from the host's cards. `is_partition`: whether a render node, by its name, is a partition's of AMD's;
/// `None` where that is unknown.
///
/// # Errors
/// When no card of AMD's can be passed, with the reason of each.
pub fn advise(
    cards: &[Card],
    question: &Question<'_>,
    is_partition: &dyn Fn(&str) -> Option<bool>,
) -> anyhow::Result<Advice> {
    let container = question.container;
    let mut considered = Vec::new();
    let mut commands =
        Commands { add: vec![container.add_node(Path::new(KFD))], remove: vec![container.remove("kfd")] };
    let mut passed = 0;
    for card in cards {
        let mut one = Considered::new(card);
        let device = if is_bare(card) {
            let render = partition(card, is_partition);
            render.map(|render| (container.add_node(&Path::new("/dev/dri").join(&render)), render))
        } else {
            let device = format!("gpu{passed}");
            address(card).map(|address| (container.add_gpu(&device, address), device))
        };
        match device {
            Ok((command, device)) => {
                passed += usize::from(!is_bare(card));
                commands.add.push(command);
                commands.remove.insert(0, container.remove(&device));
                one.device = Some(device);
            }
            Err(why_not) => one.why_not = Some(why_not),
        }
        considered.push(one);
    }
    if passed == 0 {
        let left_out: Vec<String> = considered.iter().filter_map(Considered::left_out).collect();
        anyhow::ensure!(
            !left_out.is_empty(),
            "the host has no GPU that {} sees: there is nothing to pass into a container",
            container.client.program()
        );
        anyhow::bail!("no card of AMD's can be passed into a container: {}", left_out.join("; "));
    }
    let notes = vec![
        format!(
            "gid is the number of the group render inside {}: {}. Without it a node is root:root 0660, which \
             members of render cannot open. Nor can the root of a Concourse task: outside of its user namespace it is \
             another user, and only the node's group lets it in",
            container.name, question.gid_from
        ),
        "computing goes through /dev/kfd, and no `gpu` device passes it. It exists once the host has loaded amdgpu. A \
         container to which you passed it does not start without it"
            .to_owned(),
    ];
    let notes = notes.into_iter().chain(about_cdi(question)).collect();
    let cdi = (question.takes_cdi == Some(true)).then(|| Commands {
        add: vec![container.add_by_cdi(CDI_DEVICE)],
        remove: vec![container.remove(CDI_DEVICE)],
    });
    Ok(Advice { cards: considered, commands, cdi, notes })
}

fn about_cdi(question: &Question<'_>) -> Option<String> {
    match (question.takes_cdi, question.container.client) {
        (Some(true), client) => Some(format!(
            "this {} also takes AMD's CDI names, which pass /dev/kfd too. It gives these nodes no group, so that only \
             root can open them: programs that run as root in the container, but not a Concourse task",
            client.program()
        )),
        (None, Client::Lxc) => Some(
            "LXD from 6.7 on (API extension gpu_cdi_amd in `lxc info`) also takes gputype=physical \
             id=amd.com/gpu=all; docs/lxd.md says what that lacks"
                .to_owned(),
        ),
        (Some(false), _) | (None, Client::Incus) => None,
    }
}

/// Whether LXD knows nothing of it but its nodes, as of a partition beyond a card's first (seen with Incus 6.0): its
/// device is no PCI function.
fn is_bare(card: &Card) -> bool {
    card.vendor_id.is_none() && card.pci_address.is_none() && card.drm.is_some()
}

/// The render node by which a partition is passed, or why it is not.
fn partition(card: &Card, is_partition: &dyn Fn(&str) -> Option<bool>) -> Result<String, String> {
    let render = card.drm.as_ref().and_then(|drm| drm.render_name.as_deref());
    // The render node's name goes into a command.
    let is_plain = |name: &&str| {
        let number = name.strip_prefix("renderD");
        number.is_some_and(|number| number.len() < 8 && number.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let render = render.filter(is_plain).ok_or("it has neither a PCI address nor a render node")?;
    match is_partition(render) {
        Some(true) => Ok(render.to_owned()),
        Some(false) => Err("no PCI card, and no partition of AMD's".to_owned()),
        None => Err("no PCI card. A partition of AMD's looks like that (CPX, DPX, …): run rocworker lxd advise on the \
                     host itself"
            .to_owned()),
    }
}

/// The address by which a card is passed, or why it is not.
fn address(card: &Card) -> Result<PciAddress, String> {
    if card.vendor_id.as_deref() != Some(AMD) {
        return Err("not AMD's".to_owned());
    }
    let render = card.drm.as_ref().and_then(|drm| drm.render_name.as_ref());
    Err(match (card.driver.as_deref(), render) {
        (Some("vfio-pci"), _) => "vfio-pci is bound to it: it is for a virtual machine".to_owned(),
        (None, None) => "no driver is bound to it: modprobe amdgpu on the host, and read dmesg".to_owned(),
        (Some("amdgpu"), None) => "amdgpu made no render node: read dmesg on the host".to_owned(),
        (Some("amdgpu") | None, Some(_)) => {
            let address = card.pci_address.as_deref().ok_or("it has no PCI address to name it by")?;
            return address.parse().map_err(|error| format!("{error}"));
        }
        (Some(other), _) => format!("{other} is bound to it, and computing needs amdgpu"),
    })
}

#[cfg(test)]
mod tests {
    use super::super::resources;
    use super::*;

    fn advised(cards: &str) -> anyhow::Result<Advice> {
        let cards = resources::cards(format!(r#"{{"gpu":{{"cards":[{cards}]}}}}"#).as_bytes()).unwrap();
        let container = Container { client: super::super::command::Client::Lxc, name: "c1", gid: Some(992) };
        let question = Question { container, gid_from: "its /etc/group says so".to_owned(), takes_cdi: None };
        let is_partition = |render: &str| match render {
            "renderD131" => Some(true),
            "renderD140" => Some(false),
            _ => None,
        };
        advise(&cards, &question, &is_partition)
    }

    const GOOD: &str = r#"{"vendor_id":"1002","pci_address":"0000:03:00.0","driver":"amdgpu",
        "drm":{"id":1,"card_name":"card1","render_name":"renderD129"}}"#;

    #[test]
    fn a_card_is_left_out_with_its_reason() {
        for (from, to, why) in [
            (r#""driver":"amdgpu""#, r#""driver":"vfio-pci""#, "it is for a virtual machine"),
            (r#""driver":"amdgpu""#, r#""driver":"radeon""#, "radeon is bound"),
            (r#""render_name":"renderD129""#, r#""render_name":"""#, "no render node"),
            (r#""drm":{"#, r#""x":{"#, "no render node"),
            ("\"amdgpu\",\n        \"drm\":", "\"\",\n        \"x\":", "no driver is bound"),
            ("0000:03:00.0", "", "no PCI address"),
            ("0000:03:00.0", "$(reboot)", "is not a PCI address"),
            (r#""vendor_id":"1002""#, r#""vendor":"AMD""#, "0000:03:00.0 (AMD): not AMD's"),
        ] {
            let card = GOOD.replace(from, to);
            assert_ne!(card, GOOD);
            let error = advised(&card).unwrap_err().to_string();
            assert!(error.contains(why), "{error}");
            let beside = advised(&format!("{card},{GOOD}")).unwrap();
            assert_eq!((beside.commands.add.len(), beside.cards[0].device.as_deref()), (2, None), "{to}");
            assert_eq!(beside.cards[1].device.as_deref(), Some("gpu0"));
        }
    }

    #[test]
    fn a_partition_without_an_address_is_passed_by_its_render_node_where_it_is_known_to_be_one() {
        let bare = |render: &str| {
            format!(r#"{{"drm":{{"id":3,"card_name":"card3","render_name":"{render}"}},"numa_node":0}}"#)
        };
        let partition = advised(&format!("{GOOD},{}", bare("renderD131"))).unwrap();
        let last = partition.commands.add.last().unwrap().to_string();
        assert!(last.contains("add c1 renderD131 unix-char source=/dev/dri/renderD131 "), "{last}");
        assert_eq!(partition.commands.remove[0].to_string(), "lxc config device remove c1 renderD131");
        for (render, why) in [
            ("renderD140", "no partition of AMD's"),
            ("renderD150", "on the host itself"),
            ("", "neither a PCI address nor a render node"),
            ("renderD1;id", "neither a PCI address nor a render node"),
        ] {
            let advice = advised(&format!("{GOOD},{}", bare(render))).unwrap();
            assert_eq!(advice.commands.add.len(), 2, "{render}");
            assert!(advice.cards[1].left_out().unwrap().contains(why), "{:?}", advice.cards[1]);
        }
    }
}
