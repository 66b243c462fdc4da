//! What `rocworker lease release` and `cancel` change.

use std::collections::BTreeSet;

use allocation::Render;
use allocation::document::Document as _;
use allocation::lease::Lease;
use allocation::record::RecordedGpu;
use anyhow::{Error, bail, ensure};
use lease::kfd::Kfd;
use lease::lease_file::{Held, Holder, Leases};
use lease::liveness::By;
use lease::lock::Lock;
use lease::queue::Queue;
use lease::reap;
use lease::store::{self, Key};
use root::Root;

use super::{judge, paths};

/// Frees the GPUs of a container by its id, or one GPU by its render node, and returns their names. One whose container
/// lives, or whose lease cannot be read, only with `force`; the container runs on, and its further processes keep their
/// groups.
///
/// # Errors
/// Nothing called `name` holds a GPU, or one of its GPUs must stay held: then all of them stay.
pub fn release(root: &Root, name: &str, force: bool) -> anyhow::Result<Vec<String>> {
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let (leases, kept) = (Leases::of(&paths, None), store::records(&paths, None));
    let render = Render::parse(name);
    let find = || {
        let mut held = leases.all(&judge).map_err(Error::msg)?;
        held.retain(|held| match render {
            Some(render) => held.render == render,
            None => lease_of(held).is_some_and(|lease| lease.id == name),
        });
        let mut records = reap::look(&kept, &judge, &paths).map_err(Error::msg)?;
        records.retain(|(record, _)| match render {
            Some(render) => record.gpus.iter().any(|gpu| gpu.render == render),
            None => record.id == name && !record.gpus.is_empty(),
        });
        if !held.is_empty() || !records.is_empty() {
            return Ok((held, records));
        }
        if let Some(who) = render.and_then(|render| Kfd::read(&paths).user_of(render)) {
            bail!(
                "the GPU {name} is in use by {who}, and by no lease or record that could be released: end that process"
            );
        }
        bail!(
            "no container named {name} holds a GPU, and no GPU of that name is held; `rocworker lease list` shows what is \
             held"
        )
    };
    // Making the folders would be a change where there is nothing to release.
    find()?;
    let lock = Lock::take(&paths, paths.lock_patience).map_err(Error::msg)?;
    let (held, records) = find()?;

    let lives = |id: &str, by: By| format!("the container {id} lives, by its {}", by.name());
    let of_leases = held.iter().filter_map(|held| match &held.holder {
        Holder::Lease { by: None, .. } => None,
        Holder::Unknown(reason) => Some((held.render, format!("its lease {reason}"))),
        Holder::Lease { lease, by: Some(by) } => Some((held.render, lives(&lease.id, *by))),
    });
    let of_records = records.iter().filter_map(|(record, by)| {
        Some((render.or(record.gpus.first().map(|gpu| gpu.render))?, lives(&record.id, *by)))
    });
    if let Some((render, reason)) = of_leases.chain(of_records).next().filter(|_| !force) {
        bail!(
            "the GPU {render} is not released: {reason}; --force releases it all the same, and nothing then keeps another \
             container off that GPU"
        );
    }
    let of_leases = held.iter().filter_map(lease_of).map(|lease| &*lease.root);
    let roots: BTreeSet<&str> = of_leases.chain(records.iter().map(|(record, _)| &*record.root)).collect();
    ensure!(
        render.is_some() || roots.len() < 2,
        "containers named {name} of {} runc roots hold GPUs ({}): name the GPU instead",
        roots.len(),
        roots.iter().copied().collect::<Vec<_>>().join(", ")
    );
    let mut released = BTreeSet::new();
    for held in &held {
        leases.remove(&lock, held.render).map_err(Error::msg)?;
        released.insert(held.render);
    }
    for (mut record, _) in records {
        // The rest of the record stays: further processes get their groups by it.
        let is_released = |gpu: &RecordedGpu| render.is_none_or(|render| render == gpu.render);
        released.extend(record.gpus.extract_if(.., |gpu| is_released(gpu)).map(|gpu| gpu.render));
        kept.write(&lock, &Key::of(&record).file_name(), &record.to_json()?).map_err(Error::msg)?;
    }
    Ok(released.iter().map(Render::to_string).collect())
}

fn lease_of(held: &Held) -> Option<&Lease> {
    match &held.holder {
        Holder::Lease { lease, .. } => Some(lease),
        Holder::Unknown(_) => None,
    }
}

/// Ends the creates of containers of this id that wait for GPUs, by removing their tickets, and returns how many.
///
/// # Errors
/// No create of a container with this id waits.
pub fn cancel(root: &Root, id: &str) -> anyhow::Result<usize> {
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let find = |queue: &Queue| {
        let mut waiting = queue.waiting(&judge).map_err(Error::msg)?;
        waiting.retain(|waiting| waiting.ticket.id == id);
        ensure!(
            !waiting.is_empty(),
            "no create of a container named {id} waits for GPUs; `rocworker lease list` shows those that do"
        );
        Ok(waiting)
    };
    // Taking the lock would make the folders.
    find(&Queue::of(&paths, None))?;
    let lock = Lock::take(&paths, paths.lock_patience).map_err(Error::msg)?;
    let queue = Queue::of(&paths, Some(&lock));
    let waiting = find(&queue)?;
    for one in &waiting {
        queue.remove(&lock, one.number).map_err(Error::msg)?;
    }
    Ok(waiting.len())
}
