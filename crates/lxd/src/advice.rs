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
    let (mut passed, mut others, mut divided) = (0, Vec::new(), Vec::new());
    for card in cards {
        let mut one = Considered::new(card);
        let device = if is_bare(card) {
            let render = partition(card, is_partition);
            render.map(|render| (container.add_node(&Path::new("/dev/dri").join(&render)), render))
        } else {
            if !is_amd(card) {
                others.push(one.called());
            }
            let device = format!("gpu{passed}");
            address(card).map(|address| (container.add_gpu(&device, address), device))
        };
        match device {
            Ok((command, device)) => {
                let virtual_functions = card.sriov.as_ref().and_then(|sriov| sriov.current_vfs);
                if let Some(count @ 1..) = virtual_functions {
                    divided.push(format!(
                        "{} has given out {count} virtual functions; these commands pass the card itself",
                        one.called()
                    ));
                }
                passed += usize::from(!is_bare(card));
                commands.add.push(command);
                commands.remove.insert(0, container.remove(&device));
                one.device = Some(device);
            }
            Err(why_not) => one.why_not = Some(why_not),
        }
        considered.push(one);
    }
    anyhow::ensure!(passed > 0, nothing(&considered, container.client));
    // Beside /dev/kfd and the cards.
    let by_node = commands.add.len() - 1 - passed;
    let notes =
        notes(question, &others, by_node).into_iter().chain(divided).chain(about_cdi(question)).collect();
    let cdi = (question.takes_cdi == Some(true)).then(|| Commands {
        add: vec![container.add_by_cdi(CDI_DEVICE)],
        remove: vec![container.remove(CDI_DEVICE)],
    });
    Ok(Advice { cards: considered, commands, cdi, notes })
}

/// `others`: cards of other vendors; `by_node`: how many devices are named by render nodes.
fn notes(question: &Question<'_>, others: &[String], by_node: usize) -> Vec<String> {
    let mut notes = vec![
        format!(
            "gid is the number of the group render inside {}: {}. Without it a node is root:root 0660, which \
             members of render cannot open. Nor can the root of a Concourse task: outside of its user namespace it is \
             another user, and only the node's group lets it in",
            question.container.name, question.gid_from
        ),
        "computing goes through /dev/kfd, and no `gpu` device passes it. It exists once the host has loaded amdgpu. A \
         container to which you passed it does not start without it"
            .to_owned(),
    ];
    if !others.is_empty() {
        let others = others.join(", ");
        notes
            .push(format!("`gpu` without pci= would pass the cards of every vendor, and with them {others}"));
    }
    if by_node > 0 {
        notes.push(format!(
            "{by_node} of the devices are named by their render nodes, since a further partition of a card has no PCI \
             address. After the host numbers its cards anew or partitions one anew, remove these devices and ask again"
        ));
    }
    notes
}

/// Why there is nothing to advise.
fn nothing(considered: &[Considered], client: Client) -> String {
    let list = |of: &dyn Fn(&Considered) -> Option<String>| {
        considered.iter().filter_map(of).collect::<Vec<_>>().join("; ")
    };
    let of_amd = list(&|card| {
        let why_not = card.why_not.as_ref().filter(|_| card.vendor_id.as_deref() == Some(AMD))?;
        Some(format!("{}: {why_not}", card.called()))
    });
    if considered.is_empty() {
        format!(
            "the host has no GPU that {} sees: there is nothing to pass into a container",
            client.program()
        )
    } else if of_amd.is_empty() {
        format!("none of the host's cards is AMD's (vendor id {AMD}): {}", list(&|card| Some(card.called())))
    } else {
        format!("no card of AMD's can be passed into a container: {of_amd}")
    }
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

fn is_amd(card: &Card) -> bool {
    card.vendor_id.as_deref().is_some_and(|id| id.eq_ignore_ascii_case(AMD))
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
    let render = card.drm.as_ref().map(|drm| &drm.render_name);
    let why_not = match (card.driver.as_deref(), render) {
        _ if card.vendor_id.is_none() => "nothing says whose it is",
        _ if !is_amd(card) => "not AMD's",
        (Some("vfio-pci"), _) => "vfio-pci is bound to it: it is for a virtual machine",
        (None, None) => "no driver is bound to it: modprobe amdgpu on the host, and read dmesg",
        (Some("amdgpu"), None) => "amdgpu is bound to it and made no nodes: read dmesg on the host",
        (Some("amdgpu") | None, Some(None)) => {
            "it has no render node: amdgpu did not finish, read dmesg on the host"
        }
        (Some("amdgpu") | None, Some(Some(_))) => {
            let address = card.pci_address.as_deref().ok_or("it has no PCI address to name it by")?;
            return address.parse().map_err(|error| format!("{error}"));
        }
        (Some(other), _) => return Err(format!("{other} is bound to it, and computing needs amdgpu")),
    };
    Err(why_not.to_owned())
}

#[cfg(test)]
mod tests {
    use super::super::resources;
    use super::*;

    fn question(client: Client, takes_cdi: Option<bool>) -> Question<'static> {
        let container = Container { client, name: "c1", gid: Some(992) };
        Question { container, gid_from: "its /etc/group says so".to_owned(), takes_cdi }
    }

    fn is_partition(render: &str) -> Option<bool> {
        match render {
            "renderD131" => Some(true),
            "renderD140" => Some(false),
            _ => None,
        }
    }

    fn advised(cards: &str) -> anyhow::Result<Advice> {
        let cards = resources::cards(format!(r#"{{"gpu":{{"cards":[{cards}]}}}}"#).as_bytes()).unwrap();
        advise(&cards, &question(Client::Lxc, Some(false)), &is_partition)
    }

    const GOOD: &str = r#"{"vendor_id":"1002","pci_address":"0000:03:00.0","driver":"amdgpu",
        "drm":{"id":1,"card_name":"card1","render_name":"renderD129"}}"#;
    const NVIDIA: &str = r#"{"vendor_id":"10de","vendor":"NVIDIA","product":"AD103","pci_address":"0000:01:00.0",
        "driver":"nvidia","drm":{"id":0,"card_name":"card0","render_name":"renderD128"}}"#;

    #[test]
    fn amds_cards_go_in_by_their_address_with_kfd_before_them_and_out_in_reverse() {
        let other = GOOD.replace("03:00.0", "C3:00.0");
        let advice = advised(&format!("{NVIDIA},{GOOD},{other}")).unwrap();
        let shown = |commands: &[Command]| commands.iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(
            shown(&advice.commands.add),
            [
                "lxc config device add c1 kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660",
                "lxc config device add c1 gpu0 gpu pci=0000:03:00.0 gid=992 mode=0660",
                "lxc config device add c1 gpu1 gpu pci=0000:c3:00.0 gid=992 mode=0660",
            ]
        );
        assert_eq!(
            shown(&advice.commands.remove),
            ["gpu1", "gpu0", "kfd"].map(|name| format!("lxc config device remove c1 {name}"))
        );
        assert!(advice.notes.iter().any(|note| note.contains("with them 0000:01:00.0 (NVIDIA AD103)")));
        let alone = advised(GOOD).unwrap();
        assert!(alone.notes.iter().all(|note| !note.contains("every vendor")), "{:?}", alone.notes);
    }

    #[test]
    fn a_card_is_left_out_with_its_reason() {
        for (from, to, why) in [
            (r#""driver":"amdgpu""#, r#""driver":"vfio-pci""#, "it is for a virtual machine"),
            (r#""driver":"amdgpu""#, r#""driver":"radeon""#, "radeon is bound"),
            (r#""render_name":"renderD129""#, r#""render_name":"""#, "no render node"),
            (r#""drm":{"#, r#""x":{"#, "made no nodes"),
            ("\"amdgpu\",\n        \"drm\":", "\"\",\n        \"x\":", "no driver is bound"),
            ("0000:03:00.0", "", "no PCI address"),
            ("0000:03:00.0", "$(reboot)", "is not a PCI address"),
            (r#""vendor_id":"1002""#, r#""vendor":"AMD""#, "none of the host's cards is AMD's"),
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
        assert_eq!(
            last,
            "lxc config device add c1 renderD131 unix-char source=/dev/dri/renderD131 path=/dev/dri/renderD131 gid=992 \
             mode=0660"
        );
        assert_eq!(partition.commands.remove[0].to_string(), "lxc config device remove c1 renderD131");
        assert!(partition.notes.iter().any(|note| note.starts_with("1 of the devices are named by")));
        for (render, why) in [
            ("renderD140", "no partition of AMD's"),
            ("renderD150", "on the host itself"),
            ("", "neither a PCI address nor a render node"),
            ("renderD1;id", "neither a PCI address nor a render node"),
        ] {
            let advice = advised(&format!("{GOOD},{}", bare(render))).unwrap();
            assert_eq!(
                (advice.commands.add.len(), advice.cards[1].called().as_str()),
                (2, "card3"),
                "{render}"
            );
            assert!(advice.cards[1].why_not.as_ref().unwrap().contains(why), "{:?}", advice.cards[1]);
            assert!(advice.notes.iter().all(|note| !note.contains("every vendor")));
        }
    }

    #[test]
    fn without_a_card_of_amds_there_is_nothing_to_advise() {
        for (cards, start) in [
            ("", "the host has no GPU that lxc sees"),
            (NVIDIA, "none of the host's cards is AMD's (vendor id 1002): 0000:01:00.0 (NVIDIA AD103)"),
        ] {
            assert!(advised(cards).unwrap_err().to_string().starts_with(start));
        }
    }

    #[test]
    fn the_cdi_form_is_told_where_the_daemon_takes_it() {
        let cards = resources::cards(format!(r#"{{"gpu":{{"cards":[{GOOD}]}}}}"#).as_bytes()).unwrap();
        let cdi = |client, cdi| {
            let advice = advise(&cards, &question(client, cdi), &is_partition).unwrap();
            (
                advice.cdi.is_some(),
                advice.notes.iter().filter(|note| note.contains("CDI") || note.contains("6.7")).count(),
            )
        };
        assert_eq!(cdi(Client::Lxc, Some(true)), (true, 1));
        assert_eq!(cdi(Client::Lxc, None), (false, 1));
        assert_eq!(cdi(Client::Lxc, Some(false)), (false, 0));
        assert_eq!(cdi(Client::Incus, None), (false, 0));
    }
}
