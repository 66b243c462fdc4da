//! Looks at the machine twice a second and publishes each new offer.

use std::sync::Arc;
use std::time::Duration;

use root::Root;
use root::patient::{PATIENCE, Patient};
use tokio::sync::watch::{self, Receiver};
use tokio::time::MissedTickBehavior;

use crate::args::{Allocate, Args};
use crate::endpoint::outside;
use crate::leftovers::Leftovers;
use crate::look::{Look, look};
use crate::offer::Offer;
use crate::said::Said;
use crate::{pod_resources, say};

/// No event announces a switch of partitions, or a new judgement of health.
const EVERY: Duration = Duration::from_millis(500);

/// How long one look may take.
const DEADLINE: Duration = Duration::from_secs(5);

/// Begins to look. `None` until the machine has been read.
pub(crate) fn start(root: &Arc<Root>, args: Arc<Args>) -> Receiver<Option<Arc<Offer>>> {
    let (publish, offers) = watch::channel(None);
    let mut patient = Patient::<Look>::new(root.place(), PATIENCE, DEADLINE);
    let (of_sockets, pod_resources) = (Arc::clone(root), args.kubelet_dir.join("pod-resources/kubelet.sock"));
    let with_spec = args.allocate == Allocate::Cdi;
    tokio::spawn(async move {
        let mut ticks = tokio::time::interval(EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let (mut last, mut leftovers, mut said) = (None::<Look>, Leftovers::default(), Said::default());
        loop {
            ticks.tick().await;
            let before = last.clone();
            let looked = tokio::task::spawn_blocking(move || {
                let found = patient.run(move |root| look(root, before.as_ref(), with_spec));
                (patient, found)
            });
            // Only a defect ends the thread otherwise.
            let Ok((back, found)) = looked.await else { return };
            patient = back;
            let look = match found {
                Ok(look) => look,
                Err(error) => {
                    said.say(error.to_string());
                    continue;
                }
            };
            said.forget();
            let (mut held, mut problem) = (None, None);
            if leftovers.must_know_pods(look.users.as_deref()) {
                let socket = outside(&of_sockets, &pod_resources);
                match pod_resources::held(&socket, args.pod_name.as_deref()).await {
                    Ok(ids) => held = Some(ids),
                    Err(why) => problem = Some(why),
                }
            }
            let left = leftovers.note(look.users.as_deref(), held.as_ref(), &look.gpus.devices);
            let mut offer = Offer::of(&look, left, &args);
            offer.problems.extend(problem);
            last = Some(look);
            let published = publish.borrow().clone();
            for line in offer.news(published.as_deref()) {
                say(&line);
            }
            if published.as_deref() != Some(&offer) {
                publish.send_replace(Some(Arc::new(offer)));
            }
        }
    });
    offers
}
