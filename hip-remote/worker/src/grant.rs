//! Which of the machine's GPUs a client gets, by the policy of the container wrapper: no two owners of a GPU then know
//! nothing of each other.
//!
//! A client's process counts as a container would. It has a record, and under `sharing: exclusive` leases, which live as
//! long as the process. A machine without a policy gives each client all GPUs that the HIP library shows.

use std::path::Path;

use allocation::document::Document as _;
use allocation::gpu::Gpu;
use allocation::policy::{Policy, Sharing};
use allocation::request::Request;
use allocation::selection::Pool;
use allocation::withheld::Withheld;
use lease::lease_file::Leases;
use lease::liveness::Judge;
use lease::lock::{BRIEFLY, Lock};
use lease::reap;
use lease::run_folder::RunFolder;
use lease::store::{self, Key};
use runc_amd_wrapper::args::Global;
use runc_amd_wrapper::exclusive::Exclusive;
use runc_amd_wrapper::health_file;
use runc_amd_wrapper::log::Log;
use runc_amd_wrapper::paths::Paths;
use runc_amd_wrapper::policy_file::{self, PolicyFile};

/// Stands for a runtime's state folder, which a client's process has not.
const ROOT: &str = "/run/rocworker/hip-worker";

fn id_of(pid: u32) -> String {
    format!("hip-client-{pid}")
}

/// Takes GPUs for this process: their indexes, in the order of KFD's nodes. `count` is how many; `None` stands for all, or
/// for one where a GPU has one holder. Without a policy the answer is `None`.
///
/// # Errors
/// A sentence: which GPUs are not free and who has them, or what of the policy cannot be used.
pub fn take(paths: &Paths, count: Option<u32>) -> Result<Option<Vec<usize>>, String> {
    let policy = match policy_file::load(&paths.policy, paths.lease.owner) {
        PolicyFile::Absent => None,
        PolicyFile::NotRoots(reason) | PolicyFile::Broken(reason) => return Err(reason),
        PolicyFile::Good(policy) => Some(policy),
    };
    // The first schema of policies names no GPUs.
    let named = policy.and_then(|policy| Some((policy.gpus.clone()?, policy)));
    let Some((gpus, policy)) = named else {
        let path = paths.policy.display();
        return count.map_or(Ok(None), |_| {
            Err(format!("the worker was started with --gpus, and {path} names no GPUs to count"))
        });
    };
    let request = match (count, policy.sharing) {
        (Some(count), _) => Request::Count(count),
        (None, Sharing::Exclusive) => Request::Count(1),
        (None, Sharing::Shared) => Request::All,
    };
    let (withheld, unknown) =
        if policy.quarantine { health_file::read(paths) } else { (Withheld::default(), None) };
    if let Some(unknown) = unknown {
        log!("{unknown}");
    }
    let mut pool = Pool::new(gpus);
    pool.quarantine(&withheld, &[]);
    let own = Own { paths, policy: &policy, pool: &pool, request: &request, withheld };
    own.take().map(Some)
}

/// What a decision looks at.
struct Own<'a> {
    paths: &'a Paths,
    policy: &'a Policy,
    pool: &'a Pool,
    request: &'a Request,
    withheld: Withheld,
}

impl Own<'_> {
    fn take(self) -> Result<Vec<usize>, String> {
        let lease = &self.paths.lease;
        let lock = Lock::take(lease, lease.lock_patience)?;
        let records = store::records(lease, Some(&lock));
        let id = id_of(std::process::id());
        let key = Key { root: Path::new(ROOT), id: &id };
        let creator = store::creator(self.policy.sharing, &lease.proc)?;
        let (lock, selected) = match self.policy.sharing {
            Sharing::Shared => {
                let uses = reap::uses(&records, &lock, key, lease);
                let selected = self.pool.select(self.request, uses)?;
                (lock, selected)
            }
            Sharing::Exclusive => {
                let exclusive = Exclusive {
                    policy: self.policy,
                    pool: self.pool,
                    request: self.request,
                    wait_s: 0,
                    key,
                    creator: &creator,
                    records: &records,
                    paths: self.paths,
                    log: Log::of(&Global::default()),
                    in_bundle: &[],
                    withheld: self.withheld,
                    cgroups_path: None,
                };
                let (lock, selected) = exclusive.acquire(lock)?.ok_or("this process has its GPUs already")?;
                exclusive.write(&lock, &selected)?;
                (lock, selected)
            }
        };
        let record = store::record(key, creator.clone(), &selected, &Default::default())?;
        records.write(&lock, &key.file_name(), &record.to_json()?)?;
        let index = |gpu: &&Gpu| usize::try_from(gpu.index).map_err(|error| error.to_string());
        selected.iter().map(index).collect()
    }
}

/// Ends what the process of a client had, after it has ended.
///
/// # Errors
/// The lock is held, or a file cannot be removed. Whoever decides next clears it away.
pub fn end(paths: &Paths, pid: u32) -> Result<(), String> {
    let id = id_of(pid);
    let key = Key { root: Path::new(ROOT), id: &id };
    let name = key.file_name();
    let has_record = |records: &RunFolder| records.read(&name).is_ok_and(|record| record.is_some());
    if !has_record(&store::records(&paths.lease, None)) {
        return Ok(());
    }
    let lock = Lock::take(&paths.lease, BRIEFLY)?;
    let judge = Judge::new(&paths.lease)?;
    Leases::of(&paths.lease, Some(&lock)).remove_dead_of(&lock, &judge, key.root, key.id)?;
    store::records(&paths.lease, Some(&lock)).remove(&name)
}
