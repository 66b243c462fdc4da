//! Which of a host's cards go into a container, by which commands, and why not the others. Pure.

use std::path::Path;

use serde::Serialize;

use super::command::{Client, Command, Container};
use super::notes::notes;
use super::resources::Card;
use super::way::{AMD, Way, is_bare, partition, passable};

const KFD: &str = "/dev/kfd";
/// What the one device of the CDI form is called.
const CDI_DEVICE: &str = "amd";

/// Whether the daemon takes AMD's CDI names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cdi {
    Taken,
    Refused,
    /// It was not asked.
    Unknown,
}

/// What the advice is about.
#[derive(Debug, Clone)]
pub struct Question<'a> {
    pub container: Container<'a>,
    /// Where its gid comes from, or how to find it: a part of a sentence.
    pub gid_from: String,
    pub cdi: Cdi,
}

/// What passes AMD's cards, and only them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub cards: Vec<Considered>,
    /// In the order in which they are to be run.
    pub add: Vec<Command>,
    /// What takes it all back.
    pub remove: Vec<Command>,
    /// The same by LXD's CDI, where it has it.
    pub cdi: Option<ByCdi>,
    /// What a person should know, a sentence or two each.
    pub notes: Vec<String>,
}

/// Instead of [`Advice::add`] and [`Advice::remove`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ByCdi {
    pub add: Vec<Command>,
    pub remove: Vec<Command>,
}

/// A card of the host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Considered {
    pub pci: Option<String>,
    /// Its card node's name.
    pub node: Option<String>,
    pub vendor_id: Option<String>,
    pub name: Option<String>,
    /// What its device in the container is called; `None`: it is left out.
    pub device: Option<String>,
    /// Why it is left out.
    pub why_not: Option<String>,
}

/// Nothing can be advised.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("the host has no GPU that {0} sees: nothing can be passed into a container")]
    NoCard(&'static str),
    #[error("none of the host's cards is AMD's (vendor id {AMD}): {0}")]
    NoneOfAmd(String),
    #[error("no card of AMD's can be passed into a container: {0}")]
    NoneToPass(String),
}

impl Considered {
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

    fn new(card: &Card, device: Result<String, String>) -> Self {
        let name = match (&card.vendor, &card.product) {
            (Some(vendor), Some(product)) => Some(format!("{vendor} {product}")),
            (vendor, product) => product.clone().or_else(|| vendor.clone()),
        };
        let (device, why_not) = match device {
            Ok(device) => (Some(device), None),
            Err(why_not) => (None, Some(why_not)),
        };
        let node = card.drm.as_ref().and_then(|drm| drm.card_name.clone());
        Self { pci: card.pci_address.clone(), node, vendor_id: card.vendor_id.clone(), name, device, why_not }
    }
}

/// What follows from the host's cards. `is_partition`: whether a render node, by its name, is a partition's of AMD's;
/// `None` where nobody can tell.
///
/// # Errors
/// When no card of AMD's can be passed, with the reason of each.
pub fn advise(
    cards: &[Card],
    question: &Question<'_>,
    is_partition: &dyn Fn(&str) -> Option<bool>,
) -> Result<Advice, Error> {
    let container = question.container;
    let mut considered = Vec::new();
    let mut add = vec![container.add_node(Path::new(KFD))];
    let mut remove = vec![container.remove("kfd")];
    let mut passed = 0;
    for card in cards {
        let way = if is_bare(card) { partition(card, is_partition) } else { passable(card) };
        let device = way.map(|way| {
            let (device, command) = match &way {
                Way::Address(address) => {
                    let device = format!("gpu{passed}");
                    passed += 1;
                    let command = container.add_gpu(&device, *address);
                    (device, command)
                }
                Way::Node(name) => {
                    let command = container.add_node(&Path::new("/dev/dri").join(name));
                    (name.clone(), command)
                }
            };
            add.push(command);
            remove.insert(0, container.remove(&device));
            device
        });
        considered.push(Considered::new(card, device));
    }
    if passed == 0 {
        return Err(nothing(&considered, container.client));
    }
    let cdi = (question.cdi == Cdi::Taken).then(|| ByCdi {
        add: vec![container.add_by_cdi(CDI_DEVICE)],
        remove: vec![container.remove(CDI_DEVICE)],
    });
    let notes = notes(cards, &considered, question);
    Ok(Advice { cards: considered, add, remove, cdi, notes })
}

fn nothing(considered: &[Considered], client: Client) -> Error {
    let (amd, others): (Vec<_>, Vec<_>) =
        considered.iter().partition(|card| card.vendor_id.as_deref() == Some(AMD));
    let list = |cards: &[&Considered], why: bool| {
        let one = |card: &&Considered| match (&card.why_not, why) {
            (Some(why_not), true) => format!("{}: {why_not}", card.called()),
            _ => card.called(),
        };
        cards.iter().map(one).collect::<Vec<_>>().join("; ")
    };
    match (amd.is_empty(), others.is_empty()) {
        (true, true) => Error::NoCard(client.program()),
        (true, false) => Error::NoneOfAmd(list(&others, false)),
        (false, _) => Error::NoneToPass(list(&amd, true)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::resources;
    use super::*;

    fn question(client: Client, cdi: Cdi) -> Question<'static> {
        let container = Container { client, name: "c1", gid: Some(992) };
        Question { container, gid_from: "its /etc/group says so".to_owned(), cdi }
    }

    fn is_partition(render: &str) -> Option<bool> {
        match render {
            "renderD131" => Some(true),
            "renderD140" => Some(false),
            _ => None,
        }
    }

    fn advised(cards: &str) -> Result<Advice, Error> {
        let cards = resources::cards(format!(r#"{{"gpu":{{"cards":[{cards}]}}}}"#).as_bytes()).unwrap();
        advise(&cards, &question(Client::Lxc, Cdi::Refused), &is_partition)
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
            shown(&advice.add),
            [
                "lxc config device add c1 kfd unix-char source=/dev/kfd path=/dev/kfd gid=992 mode=0660",
                "lxc config device add c1 gpu0 gpu pci=0000:03:00.0 gid=992 mode=0660",
                "lxc config device add c1 gpu1 gpu pci=0000:c3:00.0 gid=992 mode=0660",
            ]
        );
        assert_eq!(
            shown(&advice.remove),
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
            assert_eq!((beside.add.len(), beside.cards[0].device.as_deref()), (2, None), "{to}");
            assert_eq!(beside.cards[1].device.as_deref(), Some("gpu0"));
        }
    }

    #[test]
    fn a_partition_without_an_address_is_passed_by_its_render_node_where_it_is_known_to_be_one() {
        let bare = |render: &str| {
            format!(r#"{{"drm":{{"id":3,"card_name":"card3","render_name":"{render}"}},"numa_node":0}}"#)
        };
        let partition = advised(&format!("{GOOD},{}", bare("renderD131"))).unwrap();
        let last = partition.add.last().unwrap().to_string();
        assert_eq!(
            last,
            "lxc config device add c1 renderD131 unix-char source=/dev/dri/renderD131 path=/dev/dri/renderD131 gid=992 \
             mode=0660"
        );
        assert_eq!(partition.remove[0].to_string(), "lxc config device remove c1 renderD131");
        assert!(partition.notes.iter().any(|note| note.starts_with("1 of the devices are named by")));
        for (render, why) in [
            ("renderD140", "no partition of AMD's"),
            ("renderD150", "on the host itself"),
            ("", "neither a PCI address nor a render node"),
            ("renderD1;id", "neither a PCI address nor a render node"),
        ] {
            let advice = advised(&format!("{GOOD},{}", bare(render))).unwrap();
            assert_eq!((advice.add.len(), advice.cards[1].called().as_str()), (2, "card3"), "{render}");
            assert!(advice.cards[1].why_not.as_ref().unwrap().contains(why), "{:?}", advice.cards[1]);
            assert!(advice.notes.iter().all(|note| !note.contains("every vendor")));
        }
    }

    #[test]
    fn without_a_card_of_amds_there_is_nothing_to_advise() {
        for (cards, said) in [
            ("", "the host has no GPU that lxc sees"),
            (NVIDIA, "none of the host's cards is AMD's (vendor id 1002): 0000:01:00.0 (NVIDIA AD103)"),
        ] {
            assert!(advised(cards).unwrap_err().to_string().starts_with(said));
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
        assert_eq!(cdi(Client::Lxc, Cdi::Taken), (true, 1));
        assert_eq!(cdi(Client::Lxc, Cdi::Unknown), (false, 1));
        assert_eq!(cdi(Client::Lxc, Cdi::Refused), (false, 0));
        assert_eq!(cdi(Client::Incus, Cdi::Unknown), (false, 0));
    }
}
