//! `create` and `run`: adds to the bundle the GPUs that its container asks for.
//!
//! # Containers that must never be hindered
//! A container that asks for nothing starts as with plain runc, whatever state the policy, the records and
//! the container's own bundle are in. An error is at most a warning in runc's log. So is an error about the
//! policy's folders, which every container gets.
//!
//! # Bundles that are not edited
//! A `config.json` may be a link, longer than 16 MiB, not UTF-8, or no JSON that can be edited safely
//! (doubled keys). The wrapper still searches it for a request, in bounded memory. If a string in it asks for
//! GPUs, the create fails with the reason, since the container would start without them; otherwise runc gets
//! the bundle as it is. A fifo cannot be searched without taking its bytes away from runc: the wrapper leaves
//! it to runc, with a warning. A file that cannot be read at this moment (no free descriptor, a fault of the
//! disk) fails the create, since it may hold a request.
//!
//! # The order
//! The wrapper decides and records under the lock, then rewrites the bundle, then executes runc. A create
//! that is killed in between leaves a record and leases whose creator is dead; the next decision clears them
//! away. Or it leaves a bundle that already has its GPUs, to which a second pass adds nothing.

use std::path::Path;

use allocation::Render;
use allocation::bundle::Bundle;
use allocation::container::{is_concourse_resource, is_kubernetes};
use allocation::document::Document as _;
use allocation::folder::Folder;
use allocation::gpu::Gpu;
use allocation::policy::{Ask, DefaultGrant, Edits, Policy, Setting, Sharing};
use allocation::record::Record;
use allocation::request::{self, GPU_WAIT, Request, Selector};
use allocation::selection::Pool;
use allocation::withheld::Withheld;

use crate::config::{self, Config};
use crate::container::Container;
use crate::exclusive::Exclusive;
use crate::folders::Search;
use crate::in_bundle::{brings_a_gpu, nodes_in};
use crate::log::Log;
use crate::nodes::{self, Devices};
use crate::paths::Paths;
use crate::policy_file::PolicyFile;
use crate::rootfs::Rootfs;
use crate::{first_schema, folders, health_file, memlock};
use lease::lease_file::Leases;
use lease::liveness::Judge;
use lease::lock::{BRIEFLY, Lock};
use lease::open;
use lease::reap::{self, creator_lives};
use lease::run_folder::RunFolder;
use lease::store::{self, Key};

/// The input of a create.
#[derive(Clone, Copy, Debug)]
pub struct Create<'a> {
    pub bundle: Option<&'a [u8]>,
    /// `None` where runc will refuse the id.
    pub container: Option<&'a Container<'a>>,
    pub paths: &'a Paths,
    pub log: Log<'a>,
}

impl Create<'_> {
    /// Does to the bundle what its container asks for.
    ///
    /// # Errors
    /// The sentence that says why an explicit request cannot be met: runc must not be run.
    pub fn prepare(&self, policy: &PolicyFile) -> Result<(), String> {
        match policy {
            PolicyFile::Absent => Ok(()),
            PolicyFile::NotRoots(warning) => {
                self.log.warn(warning);
                Ok(())
            }
            PolicyFile::Broken(reason) => self.refuse_if_it_asks(reason, DefaultGrant::All),
            PolicyFile::Good(policy) if policy.says_nothing() && policy.folders.is_empty() => Ok(()),
            PolicyFile::Good(policy) => self.prepare_under(policy),
        }
    }

    /// Where the wrapper can give no GPU, fails if the bundle's container asks for some.
    ///
    /// # Errors
    /// A sentence with the reason, if the container asks for GPUs.
    pub fn refuse_if_it_asks(&self, reason: &str, default: DefaultGrant) -> Result<(), String> {
        let path = config::path_in(self.bundle);
        match config::asks(&path) {
            Ok(asks) => self.goes_without(reason, asks, default),
            // runc says so itself.
            Err(error) if error.is_absent() => Ok(()),
            Err(open::Error::NotRegular) => {
                self.log.warn(&format!(
                    "the wrapper cannot see whether the container asks for GPUs, since it cannot search {}; the \
                     container starts without, since {reason}",
                    path.display()
                ));
                Ok(())
            }
            Err(error) => Err(unreadable(&path, &error)),
        }
    }

    /// Lets the container start without GPUs, for this reason: an error if it asks for GPUs, a warning if the
    /// default should have given it some.
    fn goes_without(&self, reason: &str, asks: bool, default: DefaultGrant) -> Result<(), String> {
        if asks {
            return Err(format!("the container asks for GPUs, but {reason}"));
        }
        if default == DefaultGrant::All {
            self.log.warn(&format!("the container asks for no GPU and starts without, since {reason}"));
        }
        Ok(())
    }

    fn prepare_under(&self, policy: &Policy) -> Result<(), String> {
        let config = match config::read(config::path_in(self.bundle)) {
            Ok(config) => config,
            Err((_, error)) if error.is_absent() => return Ok(()),
            Err((path, error)) => {
                let reason = format!("its {} {error}, and is not edited", path.display());
                if !policy.folders.is_empty() {
                    self.log.warn(&format!("the policy's folders are not mounted: {reason}"));
                }
                if policy.says_nothing() {
                    return Ok(());
                }
                return match error {
                    open::Error::NotRegular => {
                        self.log.warn(&reason);
                        Ok(())
                    }
                    open::Error::Io(_) if !error.is_link() => Err(unreadable(&path, &error)),
                    _ => self.refuse_if_it_asks(&reason, policy.default),
                };
            }
        };
        if policy.says_nothing() {
            self.mount_folders(policy, &config);
            return Ok(());
        }
        if policy.default == DefaultGrant::None && !request::may_be_in(&config.bytes) {
            self.mount_folders(policy, &config);
            return self.give_nothing();
        }
        let unreadable = |error: &dyn std::fmt::Display| {
            let reason = format!("its {} cannot be edited: {error}", config.path.display());
            self.goes_without(&reason, config::bytes_ask(&config.bytes), policy.default)?;
            self.mount_folders(policy, &config);
            self.give_nothing()
        };
        let Ok(text) = std::str::from_utf8(&config.bytes) else {
            return unreadable(&"it is not UTF-8");
        };
        let bundle = match Bundle::parse(text) {
            Ok(bundle) => bundle,
            Err(error) => return unreadable(&error),
        };
        let request = Request::from_env(bundle.env())?;
        let setting = Setting {
            kubernetes: is_kubernetes(bundle.annotation_keys()),
            // The kind decides only about a container that does not ask.
            concourse_resource: request.is_none() && is_concourse_resource(bundle.env()),
        };
        let ask = match policy.ask(request.as_ref(), setting) {
            Err(refusal) if brings_a_gpu(&bundle) => {
                self.log.warn(&format!("{refusal}; it starts with the GPUs that its bundle has"));
                Ask::Nothing
            }
            ask => ask?,
        };
        match ask {
            Ask::Nothing => {
                self.mount_folders(policy, &config);
                self.give_nothing()
            }
            Ask::Explicit(request) => {
                let folders = self.search(policy).folders(&config, &bundle);
                self.give(policy, &config, &bundle, Some(request), &folders)
            }
            Ask::Default => {
                let folders = self.search(policy).folders(&config, &bundle);
                if let Err(reason) = self.give(policy, &config, &bundle, None, &folders) {
                    self.log.warn(&format!("the container starts without GPUs: {reason}"));
                    folders::mount_these(&folders, &config, &bundle, &self.log);
                }
                Ok(())
            }
        }
    }

    fn search<'a>(&'a self, policy: &'a Policy) -> Search<'a> {
        Search { parents: &policy.folders, paths: self.paths, log: &self.log }
    }

    fn mount_folders(&self, policy: &Policy, config: &Config) {
        folders::mount(self.search(policy), config);
    }

    /// A record that an earlier container of this id left would speak for this one.
    fn give_nothing(&self) -> Result<(), String> {
        let Some(container) = self.container else { return Ok(()) };
        let (records, name) = (store::records(&self.paths.lease, None), container.key().file_name());
        if let Ok(Some(text)) = records.read(&name)
            && !container.lives(self.paths)
        {
            let gpus = Record::parse(&text).map(|record| record.gpus).unwrap_or_default();
            if gpus.iter().any(|gpu| container.has_lease(gpu.render, self.paths))
                && let Err(error) = self.end_leases(container)
            {
                // The record stays: by it the next decision finds the lease.
                self.log.warn(&error);
                return Ok(());
            }
            records.remove(&name).unwrap_or_else(|error| self.log.warn(&error));
        }
        Ok(())
    }

    /// The leases of an earlier container of this id would live with this one.
    fn end_leases(&self, container: &Container<'_>) -> Result<(), String> {
        let lock = Lock::take(&self.paths.lease, BRIEFLY)?;
        let judge = Judge::new(&self.paths.lease)?;
        let Key { root, id } = container.key();
        Leases::of(&self.paths.lease, Some(&lock)).remove_dead_of(&lock, &judge, root, id).map(drop)
    }

    /// `request`: what must be met; `None`: the default, as far as it can be had. `folders`: what was found before any lock
    /// was taken, since a file system may be slow to answer.
    fn give(
        &self,
        policy: &Policy,
        config: &Config,
        bundle: &Bundle<'_>,
        request: Option<&Request>,
        folders: &[Folder],
    ) -> Result<(), String> {
        let Some(container) = self.container else { return Ok(()) };
        let path = config.path.display();
        // A create without a request waits only briefly behind creates with one.
        let patience = if request.is_some() { self.paths.lease.lock_patience } else { BRIEFLY };
        let lock = Lock::take(&self.paths.lease, patience)
            .map_err(|error| format!("what containers are given cannot be kept: {error}"))?;
        let records = store::records(&self.paths.lease, Some(&lock));
        if container.lives(self.paths) {
            return Ok(());
        }
        self.is_still(config)?;
        let name = container.key().file_name();
        let earlier = records.read(&name).ok().flatten().and_then(|text| Record::parse(&text).ok());
        if earlier.as_ref().is_some_and(|record| self.is_own(record)) {
            // Another copy of this wrapper was run before this one, in this very process.
            return Ok(());
        }
        let devices = Devices::at(&self.paths.lease.sys, &self.paths.dev);
        let mut pool = Pool::new(match &policy.gpus {
            Some(gpus) if !policy.lacks_card_nodes => gpus.clone(),
            _ => first_schema::gpus(policy, &devices),
        });
        let unclear = |error| format!("its {path}: {error}");
        let withheld = self.withheld(policy);
        if !withheld.is_empty() {
            pool.quarantine(&withheld, &nodes_in(bundle, &pool).map_err(unclear)?);
        }
        let namespace = bundle.user_namespace().map_err(unclear)?;
        if policy.sharing == Sharing::Shared {
            self.warn_of_wait(bundle);
        }
        let creator = store::creator(policy.sharing, &self.paths.lease.proc)?;
        let (in_bundle, exclusive);
        let (lock, leased, mut selected) = match request {
            Some(request) if policy.sharing == Sharing::Exclusive => {
                in_bundle = nodes_in(bundle, &pool).map_err(unclear)?;
                exclusive = Exclusive {
                    policy,
                    pool: &pool,
                    request,
                    wait_s: request::wait_from_env(bundle.env())?,
                    key: container.key(),
                    creator: &creator,
                    records: &records,
                    paths: self.paths,
                    log: self.log,
                    in_bundle: &in_bundle,
                    withheld,
                    cgroups_path: bundle.cgroups_path().map_err(unclear)?,
                };
                match exclusive.acquire(lock)? {
                    Some((lock, selected)) => (lock, Some(&exclusive), selected),
                    None => return Ok(()),
                }
            }
            Some(request) => {
                let selected =
                    self.choose(&pool, request, container.key(), earlier.as_ref(), &records, &lock)?;
                if let Request::Count(_) = request {
                    let there = nodes_in(bundle, &pool).map_err(unclear)?;
                    let is_selected = |render: &Render| selected.iter().any(|gpu| gpu.render == *render);
                    if let Some(other) = there.iter().find(|render| !is_selected(render)) {
                        return Err(format!(
                            "its {path} has {other} already, which would be a GPU more than the container asks for: \
                             create it from a bundle that no earlier create has edited"
                        ));
                    }
                }
                (lock, None, selected)
            }
            None => {
                let (there, left_out) = pool.by_default();
                left_out.iter().for_each(|refusal| self.log.warn(&refusal.to_string()));
                self.reap(container.key(), &records, &lock);
                (lock, None, there)
            }
        };
        if let Some(Request::All) = request {
            pool.quarantined().for_each(|left_out| self.log.warn(&left_out.to_string()));
        }
        let setting = nodes::Setting { namespace: &namespace, log: self.log, devices: &devices };
        let mut examined = vec![setting.kfd(&policy.kfd)?];
        match request {
            Some(_) => {
                for gpu in &selected {
                    examined.extend(setting.gpu(gpu)?);
                }
            }
            None => selected.retain(|gpu| match setting.gpu(gpu) {
                Ok(nodes) => {
                    examined.extend(nodes);
                    true
                }
                Err(reason) => {
                    self.log.warn(&reason);
                    false
                }
            }),
        }
        if selected.is_empty() {
            drop(lock);
            folders::mount_these(folders, config, bundle, &self.log);
            return self.give_nothing();
        }
        let mut injection = nodes::injection(examined);
        let Edits { shm_bytes, memlock_bytes, .. } = policy.edits;
        let renders: Vec<Render> = selected.iter().map(|gpu| gpu.render).collect();
        let gfx_override = policy.edits.gfx_override_for(&renders, bundle.env()).unwrap_or_else(|left_out| {
            self.log.warn(&left_out);
            None
        });
        injection.process.env = gfx_override.as_deref().into_iter().collect();
        injection.process.memlock_bytes = memlock_bytes;
        memlock::keep_within_reach(&mut injection.process, &self.log);
        injection.shm_bytes = shm_bytes;
        let rootfs = Rootfs::of(config, bundle);
        if request.is_none() {
            let devices = bundle.devices().map_err(unclear)?;
            rootfs.has_room_for(&injection, bundle.mounts().map_err(unclear)?, &devices)?;
        }
        injection.folders = folders;
        let edited = bundle.edit(&injection, &mut |left_out| self.log.warn(left_out)).map_err(unclear)?;
        let record = store::record(container.key(), creator.clone(), &selected, &injection.process)?;
        if let Some(exclusive) = leased {
            // The lock was let go while it waited.
            self.is_still(config)?;
            exclusive.write(&lock, &selected)?;
        }
        records.write(&lock, &name, &record.to_json()?)?;
        edited.map_or(Ok(()), |text| config.replace(&text))
    }

    /// No create waits where GPUs are shared.
    fn warn_of_wait(&self, bundle: &Bundle<'_>) {
        match request::wait_from_env(bundle.env()) {
            Ok(0) => {}
            Ok(seconds) => self.log.warn(&format!(
                "{GPU_WAIT}={seconds} has no effect where GPUs are shared: it takes wrapper.sharing: exclusive and \
                 wrapper.wait-limit-s in rocworker's configuration"
            )),
            Err(error) => self.log.warn(&error.to_string()),
        }
    }

    /// The cards that the daemon keeps from containers, where the policy has quarantine and health.json can
    /// be read.
    fn withheld(&self, policy: &Policy) -> Withheld {
        if !policy.quarantine {
            return Withheld::default();
        }
        let (withheld, unknown) = health_file::read(self.paths);
        unknown.iter().for_each(|unknown| self.log.warn(unknown));
        withheld
    }

    /// Checks that the bundle is the one that was read. Under the lock no other wrapper replaces it.
    fn is_still(&self, config: &Config) -> Result<(), String> {
        if !config.was_replaced() {
            return Ok(());
        }
        let path = config.path.display();
        Err(format!("its {path} was changed meanwhile: another create is at work on this bundle"))
    }

    /// A create that failed after it had edited the bundle is mostly tried again with that bundle: a count
    /// then gets the GPUs of the first try, not further ones.
    fn choose<'p>(
        &self,
        pool: &'p Pool,
        request: &Request,
        key: Key<'_>,
        earlier: Option<&Record>,
        records: &RunFolder,
        lock: &Lock,
    ) -> Result<Vec<&'p Gpu>, String> {
        let Request::Count(count) = request else {
            self.reap(key, records, lock);
            return Ok(pool.select(request, |_| 0)?);
        };
        if let Some(record) = earlier.filter(|record| u32::try_from(record.gpus.len()) == Ok(*count)) {
            let same = record.gpus.iter().map(|gpu| Selector::Render(gpu.render)).collect();
            let same = pool.select(&Request::Listed(same), |_| 0);
            if let Ok(same) = same {
                self.reap(key, records, lock);
                return Ok(same);
            }
        }
        Ok(pool.select(request, reap::uses(records, lock, key, &self.paths.lease))?)
    }

    /// Removes some records of containers that are gone. A decision that reads no other container's record calls this, for
    /// it would remove none otherwise.
    fn reap(&self, own: Key<'_>, records: &RunFolder, lock: &Lock) {
        reap::some(records, lock, &self.paths.lease, |record| own.is_of(record));
    }

    fn is_own(&self, record: &Record) -> bool {
        record.creator.pid == std::process::id() && creator_lives(record, &self.paths.lease)
    }
}

/// A bundle that cannot be read may ask for GPUs. runc reads it too, a moment later, and then the container would start
/// without them.
fn unreadable(path: &Path, error: &open::Error) -> String {
    format!(
        "whether the container asks for GPUs is unknown: its {} {error}; create the container again once that file can \
         be read",
        path.display()
    )
}
