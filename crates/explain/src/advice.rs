//! What a message means for this machine: which GPU it is, what a reset takes down, which commands to type.

use inventory::PciAddress;
use kernel_log::knowledge::{Class, Message};
use serde::Serialize;

use super::here::{Card, Here, Place};

/// What this machine adds to a message.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Advice {
    /// The line names a device of this machine that is no AMD GPU and has none below: no GPU is drained or reset.
    #[serde(skip)]
    pub is_of_no_gpu: bool,
    /// What holds if a line without an address is this machine's, which has one AMD card.
    #[serde(skip)]
    pub if_of_this_machine: Option<Box<Advice>>,
    /// The GPU that the line names, or the one beneath the port that it names.
    pub gpu: Option<String>,
    /// The indexes of all GPUs of its card; `None`: this machine has no such card.
    pub indexes: Option<Vec<u32>>,
    /// The card's XGMI hive, in 16 hexadecimal digits.
    pub hive: Option<String>,
    /// What a reset of that GPU resets: every entry of its card, and of each card of its hive.
    pub takes_down: Vec<TakenDown>,
    pub commands: Vec<Command>,
    /// What else is to be known of this machine, a sentence each.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TakenDown {
    pub gpu: String,
    pub index: u32,
}

/// A command to type, and its purpose.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Command {
    #[serde(rename = "for")]
    pub purpose: Purpose,
    pub run: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Purpose {
    Look,
    Drain,
    Reset,
}

impl Purpose {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Look => "look",
            Self::Drain => "drain",
            Self::Reset => "reset",
        }
    }
}

impl Advice {
    /// `address`: what the line names, if anything. `ids`: what a line of KFD's names in place of an address.
    #[must_use]
    pub fn of(message: &Message, address: Option<PciAddress>, ids: Option<(u16, u16)>, here: &Here) -> Self {
        let mut notes: Vec<String> = here.unknown.iter().map(|why| unread(why)).collect();
        notes.extend(ids.and_then(|ids| here.cards_with(ids)));
        let place = address.map(|address| (address, here.place(address)));
        let card = match &place {
            Some((_, Place::Card(card))) => Some(*card),
            Some((address, Place::Above(cards))) => {
                notes.push(above(*address, cards));
                if let [card] = **cards { Some(card) } else { None }
            }
            Some((address, Place::Other)) => {
                notes.push(format!("{address} is no AMD GPU of this machine, and none is below it now."));
                return Self::of_no_gpu(notes);
            }
            Some((address, Place::Absent)) => {
                notes.push(format!(
                    "This machine has no GPU {address}: the log is another machine's, or the GPU has gone."
                ));
                None
            }
            Some((_, Place::Unknown)) | None => None,
        };
        let taken = card.map(|card| here.reset_with(card)).unwrap_or_default();
        let gpu = card.map(|card| card.address).or(address);
        let mut commands = looks(message, gpu, card);
        if message.drain && (card.is_some() || matches!(place, Some((_, Place::Above(_))))) {
            let drains = drains(here);
            if drains.is_empty() {
                notes.push(STOP.to_owned());
            }
            commands.extend(drains);
        }
        if let Some(card) = card.filter(|_| message.reset && message.class != Class::ResetRecovered) {
            let resets = resets(card, here);
            if resets.is_empty() {
                let place = if here.is_beneath_root { "there" } else { "here" };
                notes.push(format!(
                    "Neither amd-smi nor rocm-smi is installed {place}: a restart of the machine resets the GPU."
                ));
            }
            commands.extend(resets);
        }
        let runs_there = |command: &Command| !command.run.starts_with("rocworker ");
        if here.is_beneath_root && commands.iter().any(runs_there) {
            notes.push("With --root, run the commands on that machine.".to_owned());
        }
        Self {
            is_of_no_gpu: false,
            if_of_this_machine: None,
            gpu: gpu.map(|address| address.to_string()),
            indexes: card.map(|card| card.indexes().collect()),
            hive: card.and_then(Card::hive).map(|hive| format!("{hive:016x}")),
            takes_down: taken.into_iter().flat_map(taken_down).collect(),
            commands,
            notes,
        }
    }

    /// The advice on a line that names no GPU, from a log that may be another machine's.
    #[must_use]
    pub fn of_any_machine(message: &Message, ids: Option<(u16, u16)>, here: &Here) -> Self {
        let card = here.card_of(message, ids);
        let if_of_this_machine = card.map(|card| Box::new(Self::of(message, Some(card.address), ids, here)));
        Self { if_of_this_machine, ..Self::of(message, None, ids, here) }
    }

    fn of_no_gpu(notes: Vec<String>) -> Self {
        Self {
            is_of_no_gpu: true,
            if_of_this_machine: None,
            gpu: None,
            indexes: None,
            hive: None,
            takes_down: Vec::new(),
            commands: Vec::new(),
            notes,
        }
    }
}

/// The advice where neither Concourse nor Kubernetes runs, which could drain the machine.
const STOP: &str = "Stop the containers that use this GPU; wrapper.quarantine: true (docs/wrapper.md) keeps new ones \
                    off a GPU that is unhealthy.";

fn unread(why: &str) -> String {
    format!("What this machine has is not known: {why}.")
}

fn taken_down(card: &Card) -> impl Iterator<Item = TakenDown> {
    let gpu = card.address.to_string();
    card.indexes().map(move |index| TakenDown { gpu: gpu.clone(), index })
}

fn above(address: PciAddress, cards: &[&Card]) -> String {
    let names: Vec<String> = cards.iter().map(|card| card.address.to_string()).collect();
    match &*names {
        [name] => format!("{address} is a port above GPU {name}."),
        names => format!("{address} is a port above {} GPUs: {}.", names.len(), names.join(", ")),
    }
}

/// The message's own commands; one for which something is not known is left out. A partitioned card's are for its first
/// entry: the card's files are there.
fn looks(message: &Message, gpu: Option<PciAddress>, card: Option<&Card>) -> Vec<Command> {
    let first = card.and_then(|card| card.gpus.first());
    let render = first.and_then(|gpu| gpu.render.as_ref()?.path.file_name());
    let values = [
        ("{pci}", gpu.map(|address| address.to_string())),
        ("{render}", render.map(|name| name.to_string_lossy().into_owned())),
        ("{index}", first.and_then(|gpu| gpu.index).map(|index| index.to_string())),
    ];
    let filled = |command: &String| {
        values.iter().try_fold(command.clone(), |text, (name, value)| match value {
            Some(value) => Some(text.replace(name, value)),
            None => (!text.contains(name)).then_some(text),
        })
    };
    let runs = message.commands.iter().filter_map(filled);
    runs.map(|run| Command { purpose: Purpose::Look, run }).collect()
}

/// The commands that drain this machine: none where neither Concourse nor Kubernetes runs.
fn drains(here: &Here) -> Vec<Command> {
    let name = |otherwise: &str| here.name.clone().unwrap_or_else(|| otherwise.to_owned());
    let worker = here.is_worker.then(|| format!("fly -t TARGET land-worker --worker {}", name("NAME")));
    let node = here.is_node.then(|| format!("kubectl drain {} --ignore-daemonsets", name("NODE")));
    worker.into_iter().chain(node).map(|run| Command { purpose: Purpose::Drain, run }).collect()
}

/// rocm-smi takes no address: its own numbers are asked for first.
fn resets(card: &Card, here: &Here) -> Vec<Command> {
    let runs = match (here.has_amd_smi, here.has_rocm_smi) {
        (true, _) => vec![format!("amd-smi reset --gpureset --gpu {}", card.address)],
        (false, true) => vec!["rocm-smi --showbus".to_owned(), "rocm-smi --gpureset -d N".to_owned()],
        (false, false) => Vec::new(),
    };
    runs.into_iter().map(|run| Command { purpose: Purpose::Reset, run }).collect()
}
