//! Messages of the kernel, each device's apart: a flood about one takes nothing from another.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gpu_health::known::Event;
use gpu_health::rules::MOST_EVENTS;
use inventory::PciAddress;

/// How many messages of one device are kept: thirty-two of each of eight messages.
const MOST: usize = 256;

/// How many other devices' messages are kept: a device that is no card and no bridge above one may be a card that is
/// about to come up.
const MOST_OTHERS: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Kept {
    /// The machine's cards and the bridges above them.
    devices: BTreeSet<PciAddress>,
    /// The messages by device; `None` has those that name no device.
    by_device: BTreeMap<Option<PciAddress>, Vec<Logged>>,
    added: u64,
}

#[derive(Debug)]
struct Logged {
    nth: u64,
    since_boot: Duration,
    /// The event has no time of day: the clock may still be set.
    event: Event,
}

impl Kept {
    /// Which devices the machine has now.
    pub(super) fn devices(&mut self, devices: impl Iterator<Item = PciAddress>) {
        self.devices = devices.collect();
        self.end_others();
    }

    pub(super) fn add(&mut self, since_boot: Duration, event: Event) {
        self.added += 1;
        let (nth, gpu) = (self.added, event.gpu);
        let logged = self.by_device.entry(gpu).or_default();
        logged.push(Logged { nth, since_boot, event });
        shorten(logged);
        if logged.len() == 1 {
            self.end_others();
        }
    }

    /// The messages in the order in which the kernel logged them.
    pub(super) fn in_order(&self) -> impl Iterator<Item = (Duration, &Event)> {
        let mut all: Vec<&Logged> = self.by_device.values().flatten().collect();
        all.sort_by_key(|logged| logged.nth);
        all.into_iter().map(|logged| (logged.since_boot, &logged.event))
    }

    /// Drops the messages of other devices beyond [`MOST_OTHERS`]: the devices that the kernel logged last stay.
    fn end_others(&mut self) {
        let is_other = |device: &Option<PciAddress>| device.is_some_and(|it| !self.devices.contains(&it));
        let last = |logged: &Vec<Logged>| logged.last().map(|last| last.nth);
        let mut others: Vec<(Option<u64>, Option<PciAddress>)> = self
            .by_device
            .iter()
            .filter(|(device, _)| is_other(device))
            .map(|(it, of)| (last(of), *it))
            .collect();
        others.sort_unstable();
        let more = others.len().saturating_sub(MOST_OTHERS);
        for (_, device) in others.into_iter().take(more) {
            self.by_device.remove(&device);
        }
    }
}

/// Takes the oldest of those that say the newest's words of its ring, where they are enough for any rule. Else, of the
/// message that is there most often, the oldest: a reset that failed stays, whatever else the kernel repeats.
fn shorten(logged: &mut Vec<Logged>) {
    let key = |logged: &Logged| (logged.event.message.clone(), logged.event.ring.clone());
    let Some(newest) = logged.last().map(key) else { return };
    let is_alike = |logged: &Logged| (&logged.event.message, &logged.event.ring) == (&newest.0, &newest.1);
    let end = if logged.iter().filter(|it| is_alike(it)).count() > MOST_EVENTS {
        logged.iter().position(is_alike)
    } else if logged.len() > MOST {
        let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
        for it in logged.iter() {
            *counts.entry(&it.event.message).or_default() += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(message, _)| message);
        logged.iter().position(|it| most == Some(it.event.message.as_str()))
    } else {
        None
    };
    if let Some(end) = end {
        logged.remove(end);
    }
}

#[cfg(test)]
mod tests {
    use kernel_log::knowledge::{Class, Severity};

    use super::*;

    fn device(bus: u8) -> PciAddress {
        PciAddress { domain: 0, bus, device: 0, function: 0 }
    }

    fn event(gpu: Option<PciAddress>, message: &str, ring: Option<String>) -> Event {
        Event {
            at: 0,
            class: Class::ResetFailed,
            severity: Severity::Critical,
            gpu,
            message: message.to_owned(),
            ring,
            ends: Vec::new(),
            line: String::new(),
        }
    }

    fn kept() -> Kept {
        let mut kept = Kept::default();
        kept.devices([device(3), device(4)].into_iter());
        kept.add(Duration::ZERO, event(Some(device(3)), "gpu-reset-failed", None));
        kept
    }

    fn has_failed(kept: &Kept) -> bool {
        let is_it = |event: &Event| event.gpu == Some(device(3)) && event.message == "gpu-reset-failed";
        kept.in_order().any(|(_, event)| is_it(event))
    }

    #[test]
    fn a_flood_about_other_devices_takes_nothing_from_a_card() {
        let mut kept = kept();
        for n in 0..4200_u32 {
            let [.., domain, bus] = n.to_be_bytes();
            let other = PciAddress { domain: domain.into(), ..device(bus) };
            if other != device(3) {
                kept.add(Duration::ZERO, event(Some(other), "ring-timeout", None));
            }
            kept.add(Duration::ZERO, event(Some(device(4)), "ring-timeout", Some(n.to_string())));
            kept.add(Duration::ZERO, event(None, "ring-timeout", Some(n.to_string())));
        }
        assert!(has_failed(&kept));
        assert_eq!(kept.in_order().count(), 1 + 2 * MOST + MOST_OTHERS);
        // Cards that are read for the first time after their messages.
        let mut late = Kept::default();
        late.add(Duration::ZERO, event(Some(device(3)), "gpu-reset-failed", None));
        late.devices([device(3)].into_iter());
        for bus in 100..200 {
            late.add(Duration::ZERO, event(Some(device(bus)), "ring-timeout", None));
        }
        assert!(has_failed(&late));
    }

    #[test]
    fn a_flood_about_the_card_itself_leaves_the_message_that_stands_there_once() {
        for messages in [vec!["ring-timeout"], vec!["ring-timeout", "mes-no-answer", "block-hung"]] {
            let mut kept = kept();
            for n in 0..5000_usize {
                let message = messages[n % messages.len()];
                kept.add(Duration::ZERO, event(Some(device(3)), message, Some((n % 700).to_string())));
            }
            assert!(has_failed(&kept));
            assert_eq!(kept.in_order().count(), MOST);
        }
        let mut kept = kept();
        for _ in 0..100 {
            kept.add(Duration::ZERO, event(Some(device(3)), "ring-timeout", None));
        }
        assert_eq!(kept.in_order().count(), 1 + MOST_EVENTS);
    }

    #[test]
    fn messages_of_several_devices_come_in_the_kernels_order() {
        let mut kept = kept();
        for (n, bus) in (0_u64..).zip([4, 9, 3, 4]) {
            kept.add(Duration::from_secs(n), event(Some(device(bus)), "ring-timeout", None));
        }
        let order: Vec<u64> = kept.in_order().skip(1).map(|(at, _)| at.as_secs()).collect();
        assert_eq!(order, [0, 1, 2, 3]);
    }
}
