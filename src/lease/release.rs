//! What `rocworker lease release` and `cancel` change.

use allocation::Render;
use allocation::document::Document as _;
use allocation::record::Record;
use root::Root;
use runc_amd_wrapper::kfd::Kfd;
use runc_amd_wrapper::lease_file::{Held, Holder, Leases};
use runc_amd_wrapper::liveness::By;
use runc_amd_wrapper::lock::Lock;
use runc_amd_wrapper::queue::Queue;
use runc_amd_wrapper::reap;
use runc_amd_wrapper::store::{self, Key};

use super::{Error, judge, paths};

/// What a name on the command line stands for: the render node of one GPU, or else a container's id.
struct Name<'a> {
    text: &'a str,
    render: Option<Render>,
}

impl Name<'_> {
    fn is_of_lease(&self, held: &Held) -> bool {
        match (&held.holder, self.render) {
            (_, Some(render)) => held.render == render,
            (Holder::Lease { lease, .. }, None) => lease.id == self.text,
            (Holder::Unknown(_), None) => false,
        }
    }

    fn is_of_record(&self, record: &Record) -> bool {
        match self.render {
            Some(render) => record.gpus.iter().any(|gpu| gpu.render == render),
            None => record.id == self.text && !record.gpus.is_empty(),
        }
    }
}

/// What a name stands for now.
struct Found {
    held: Vec<Held>,
    /// Of containers that live, whether they have leases or not.
    records: Vec<(Record, By)>,
}

impl Found {
    /// The first GPU that must not be released without force, and why.
    fn obstacle(&self, name: &Name<'_>) -> Option<(Render, String)> {
        let lives = |id: &str, by: By| format!("the container {id} lives, by its {}", by.name());
        let of_leases = self.held.iter().filter_map(|held| match &held.holder {
            Holder::Lease { by: None, .. } => None,
            Holder::Unknown(reason) => Some((held.render, format!("its lease {reason}"))),
            Holder::Lease { lease, by: Some(by) } => Some((held.render, lives(&lease.id, *by))),
        });
        let of_records = self.records.iter().filter_map(|(record, by)| {
            let first = record.gpus.first()?.render;
            Some((name.render.unwrap_or(first), lives(&record.id, *by)))
        });
        of_leases.chain(of_records).next()
    }
}

/// Frees the GPUs of a container by its id, or one GPU by its render node, and gives their names. One whose container
/// lives, or whose lease cannot be read, only with `force`; the container is not ended, and its further processes keep
/// their groups.
///
/// # Errors
/// Nothing of that name is held, or one of its GPUs must stay: then all of them do.
pub fn release(root: &Root, name: &str, force: bool) -> Result<Vec<String>, Error> {
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let (leases, kept) = (Leases::of(&paths, None), store::records(&paths, None));
    let name = Name { text: name, render: Render::parse(name) };
    let not_held = || {
        let who = name.render.and_then(|render| Kfd::read(&paths).user_of(render));
        who.map_or_else(
            || Error::NotHeld(name.text.to_owned()),
            |who| Error::InUse { render: name.text.to_owned(), who },
        )
    };
    let find = || {
        let mut found = Found { held: leases.all(&judge)?, records: reap::look(&kept, &judge, &paths)? };
        found.held.retain(|held| name.is_of_lease(held));
        found.records.retain(|(record, _)| name.is_of_record(record));
        if found.held.is_empty() && found.records.is_empty() { Err(not_held()) } else { Ok(found) }
    };
    // Making the folders would be a change where there is nothing to release.
    find()?;
    let lock = Lock::take(&paths, paths.lock_patience)?;
    let found = find()?;
    if !force && let Some((render, reason)) = found.obstacle(&name) {
        return Err(Error::Alive { render: render.to_string(), reason });
    }
    let Found { held, records } = found;
    let mut roots: Vec<&str> = held.iter().filter_map(root_of).collect();
    roots.extend(records.iter().map(|(record, _)| record.root.as_str()));
    roots.sort_unstable();
    roots.dedup();
    if name.render.is_none() && roots.len() > 1 {
        let roots = roots.into_iter().map(str::to_owned).collect();
        return Err(Error::Ambiguous { id: name.text.to_owned(), roots });
    }
    let mut released: Vec<u32> = Vec::new();
    for held in &held {
        leases.remove(&lock, held.render)?;
        released.push(held.render.number());
    }
    for (mut record, _) in records {
        let is_released = |render: Render| name.render.is_none_or(|named| named == render);
        released
            .extend(record.gpus.iter().map(|gpu| gpu.render).filter(|r| is_released(*r)).map(Render::number));
        // The rest of the record stays: further processes get their groups by it.
        record.gpus.retain(|gpu| !is_released(gpu.render));
        kept.write(&lock, &Key::of(&record).file_name(), &record.to_json().map_err(String::from)?)?;
    }
    released.sort_unstable();
    released.dedup();
    Ok(released.into_iter().map(|number| format!("renderD{number}")).collect())
}

fn root_of(held: &Held) -> Option<&str> {
    match &held.holder {
        Holder::Lease { lease, .. } => Some(&lease.root),
        Holder::Unknown(_) => None,
    }
}

/// Ends the creates of containers of this id that wait for GPUs, by taking their tickets away, and gives how many.
///
/// # Errors
/// None waits.
pub fn cancel(root: &Root, id: &str) -> Result<usize, Error> {
    let paths = paths(root);
    let judge = judge(root, &paths)?;
    let none = || Error::NotWaiting(id.to_owned());
    if !Queue::of(&paths, None).waiting(&judge)?.iter().any(|waiting| waiting.ticket.id == id) {
        return Err(none());
    }
    let lock = Lock::take(&paths, paths.lock_patience)?;
    let queue = Queue::of(&paths, Some(&lock));
    let mut waiting = queue.waiting(&judge)?;
    waiting.retain(|waiting| waiting.ticket.id == id);
    if waiting.is_empty() {
        return Err(none());
    }
    for one in &waiting {
        queue.remove(&lock, one.number)?;
    }
    Ok(waiting.len())
}
