//! What a person should know of the commands, beside them.

use super::advice::{Cdi, Considered, Question};
use super::command::Client;
use super::resources::Card;
use super::way::{is_amd, is_bare};

/// A sentence or two each. `considered` has what came of each of `cards`.
pub(super) fn notes(cards: &[Card], considered: &[Considered], question: &Question<'_>) -> Vec<String> {
    let client = question.container.client.program();
    let mut notes = vec![
        format!(
            "gid is the number of the group render inside {}: {}. Without it a node is root:root 0660: members of render \
             cannot open it, nor can the root of a Concourse task, who is another user outside of its user namespace and \
             gets in by the node's group alone",
            question.container.name, question.gid_from
        ),
        format!(
            "/dev/kfd is what computing goes through, and no `gpu` device brings it along. It is there once the host has \
             loaded amdgpu; a container to which it was passed does not start without it"
        ),
    ];
    let others: Vec<_> = considered
        .iter()
        .zip(cards)
        .filter(|(_, card)| !is_amd(card) && !is_bare(card))
        .map(|(card, _)| card.called())
        .collect();
    if !others.is_empty() {
        notes.push(format!(
            "`gpu` without pci= would pass the cards of every vendor, and with them {}",
            others.join(", ")
        ));
    }
    let by_node = considered
        .iter()
        .zip(cards)
        .filter(|(card, of_card)| is_bare(of_card) && card.device.is_some())
        .count();
    if by_node > 0 {
        notes.push(format!(
            "{by_node} of the devices are named by their render nodes, for a further partition of a card has no PCI \
             address: when the host numbers its cards anew or a card is partitioned anew, remove these devices and ask again"
        ));
    }
    for (card, of_card) in considered.iter().zip(cards) {
        let given_out = of_card.sriov.as_ref().and_then(|sriov| sriov.current_vfs).filter(|count| *count > 0);
        if let (Some(count), Some(_)) = (given_out, &card.device) {
            notes.push(format!(
                "{} has given out {count} virtual functions; what is passed is the card itself",
                card.called()
            ));
        }
    }
    notes.extend(of_cdi(question, client));
    notes
}

fn of_cdi(question: &Question<'_>, client: &str) -> Option<String> {
    match (question.cdi, question.container.client) {
        (Cdi::Taken, _) => Some(format!(
            "this {client} also takes AMD's CDI names, which bring /dev/kfd along. It gives these nodes no group: they are \
             root's alone, which is enough for programs that run as root in the container, and not for a Concourse task"
        )),
        (Cdi::Unknown, Client::Lxc) => Some(
            "LXD from 6.7 on (API extension gpu_cdi_amd in `lxc info`) also takes gputype=physical \
             id=amd.com/gpu=all; what that lacks stands in docs/lxd.md"
                .to_owned(),
        ),
        (Cdi::Refused, _) | (Cdi::Unknown, Client::Incus) => None,
    }
}
