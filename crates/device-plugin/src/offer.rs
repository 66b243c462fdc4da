//! What the kubelet may give to pods: a pure function of what was read.

use std::collections::{BTreeMap, BTreeSet};

use inventory::kubelet::DOMAIN;

use crate::args::{Allocate, Args, ResourceNames};
use crate::device::{Device, Modes};
use crate::look::Look;

/// The resource of GPUs that are not named by their modes.
const GPU: &str = "gpu";

/// The devices of each resource, by the resource's name without its domain.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Offer {
    pub(crate) resources: BTreeMap<String, Vec<Offered>>,
    /// KFD's generation of which the offer is true.
    pub(crate) generation: Option<u64>,
    /// Sentences for the log.
    pub(crate) problems: BTreeSet<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Offered {
    pub(crate) device: Device,
    /// Why no pod may get it now: the end of a sentence about the device.
    pub(crate) unhealthy: Option<String>,
}

impl Offer {
    /// `leftovers`: for each device on which a pod has left something, by its id, the end of a sentence about the device.
    pub(crate) fn of(look: &Look, leftovers: &BTreeMap<String, String>, args: &Args) -> Self {
        let mut problems: BTreeSet<String> = look.problems.iter().cloned().collect();
        let mut resources = BTreeMap::<String, Vec<Offered>>::new();
        let modes: BTreeSet<&str> = look.gpus.devices.iter().filter_map(|device| device.modes()).collect();
        let is_mixed = args.resource_names == ResourceNames::Single && modes.len() > 1;
        if is_mixed {
            let modes = modes.into_iter().collect::<Vec<_>>().join(", ");
            problems.insert(format!(
                "the cards are divided differently ({modes}), and with --resource-names single a pod could not say which \
                 it wants, so none is offered: divide them alike, or use --resource-names mixed"
            ));
        }
        let mut without_name = Vec::new();
        for device in look.gpus.devices.iter().filter(|_| !is_mixed) {
            if args.allocate == Allocate::Cdi && device.cdi.is_none() {
                without_name.push(device.id.as_str());
                continue;
            }
            let name = match (args.resource_names, &device.modes) {
                (ResourceNames::Mixed, Modes::Are(modes)) => modes,
                (ResourceNames::Mixed, Modes::Unread(why)) => {
                    problems.insert(format!("{} is not offered: its modes are not known: {why}", device.id));
                    continue;
                }
                (ResourceNames::Mixed, Modes::None) | (ResourceNames::Single, _) => GPU,
            };
            let unhealthy = withheld(look, device).or_else(|| leftovers.get(&device.id).cloned());
            resources.entry(name.to_owned()).or_default().push(Offered { device: device.clone(), unhealthy });
        }
        if !without_name.is_empty() {
            problems.insert(format!(
                "/etc/cdi/amd.json has no name that gives one of these alone, so none is offered: {}; `rocworker status` \
                 says why",
                without_name.join(", ")
            ));
        }
        Self { resources, generation: look.gpus.generation, problems }
    }

    /// What a person should know of this offer after `before`, a sentence each. `None`: it is the first one.
    pub(crate) fn news(&self, before: Option<&Self>) -> Vec<String> {
        let none = Self::default();
        let is_first = before.is_none();
        let before = before.unwrap_or(&none);
        let mut news: Vec<String> = self.problems.difference(&before.problems).cloned().collect();
        if is_first && self.resources.is_empty() && news.is_empty() {
            news.push(
                "this node has no GPU that a container can use: `rocworker detect` says why".to_owned(),
            );
        }
        let names: BTreeSet<&String> = self.resources.keys().chain(before.resources.keys()).collect();
        for name in names {
            let [now, before] = [self, before].map(|offer| offer.devices(name));
            let ids = |devices: &[Offered]| devices.iter().map(|it| it.device.id.clone()).collect::<Vec<_>>();
            if ids(now) != ids(before) {
                let list = if now.is_empty() { "no GPU any more".to_owned() } else { ids(now).join(", ") };
                news.push(format!("{DOMAIN}/{name} has {list}"));
            }
            for Offered { device, unhealthy } in now {
                let before = before.iter().find(|it| it.device.id == device.id);
                match (unhealthy, before.and_then(|it| it.unhealthy.as_ref())) {
                    (Some(why), before) if Some(why) != before => {
                        news.push(format!("no pod gets {}: it {why}", device.id));
                    }
                    (None, Some(_)) => news.push(format!("pods get {} again", device.id)),
                    _ => {}
                }
            }
        }
        news
    }

    pub(crate) fn devices(&self, resource: &str) -> &[Offered] {
        self.resources.get(resource).map_or(&[], Vec::as_slice)
    }
}

impl Device {
    fn modes(&self) -> Option<&str> {
        match &self.modes {
            Modes::Are(modes) => Some(modes),
            Modes::None | Modes::Unread(_) => None,
        }
    }
}

/// The verdict of rocworker's daemon on the device's card.
fn withheld(look: &Look, device: &Device) -> Option<String> {
    let card = device.gpu.withheld(&look.withheld)?;
    card.quarantine.clone().or_else(|| card.leftover.clone())
}
