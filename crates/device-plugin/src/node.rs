//! Keeps the labels of this node, through the API server.
//!
//! The program may patch its node and read none: a patch's answer has the labels that the node then has.

mod api_server;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use inventory::labels::{Labels, is_of_gpus};
use root::Root;
use root::patient::{PATIENCE, Patient};
use tokio::sync::watch::Receiver;

use crate::args::Args;
use crate::offer::Offer;
use crate::said::Said;
use api_server::patch_labels;

/// After so long the program sets the labels again, which another program or a person may have changed.
const EVERY: Duration = Duration::from_secs(600);
/// After so long a patch that has failed is tried again.
const AGAIN: Duration = Duration::from_secs(15);

const DEADLINE: Duration = Duration::from_secs(5);

/// Labels the node, where that is wanted, at once, when its labels change with an offer, and every ten minutes. It ends by a
/// defect alone.
pub(crate) async fn keep_labelled(
    root: Arc<Root>,
    args: Arc<Args>,
    mut offers: Receiver<Option<Arc<Offer>>>,
) {
    let Some(name) = args.label_node.clone() else { return std::future::pending().await };
    let mut patient = Patient::<Result<Labels, String>>::new(root.place(), PATIENCE, DEADLINE);
    let mut has: Option<(Labels, Instant)> = None;
    let mut said = Said::default();
    loop {
        let wanted = args.wanted_labels();
        let (of, args, had) = (name.clone(), Arc::clone(&args), has.clone());
        let labelled = tokio::task::spawn_blocking(move || {
            let read = patient.run(move |root| amdgpu::labels(root, &wanted));
            let labels = read.map_err(|error| error.to_string()).and_then(|labels| labels);
            let set = labels.and_then(|labels| match had {
                Some((had, at)) if had == labels && at.elapsed() < EVERY => Ok((had, at)),
                _ => set(&args, &of, &labels).map(|()| (labels, Instant::now())),
            });
            (patient, set)
        });
        let Ok((back, set)) = labelled.await else { return };
        patient = back;
        match set {
            Ok(now) => {
                said.say(format!("the node {name} has {} labels of its GPUs", now.0.len()));
                has = Some(now);
                tokio::time::timeout(EVERY, offers.changed()).await.ok();
            }
            Err(why) => {
                said.say(format!("the node {name} is not labelled: {why}"));
                tokio::time::sleep(AGAIN).await;
            }
        }
    }
}

/// Sets the labels, and removes from the node each other label of GPUs.
fn set(args: &Args, name: &str, labels: &Labels) -> Result<(), String> {
    let wanted = labels.iter().map(|(name, value)| (name.as_str(), Some(value.as_str()))).collect();
    let has = patch_labels(&args.service_account, name, &wanted)?;
    let stale: BTreeMap<&str, Option<&str>> = has
        .keys()
        .filter(|name| is_of_gpus(name) && !labels.contains_key(*name))
        .map(|name| (name.as_str(), None))
        .collect();
    if !stale.is_empty() {
        patch_labels(&args.service_account, name, &stale)?;
    }
    Ok(())
}
