//! Reads the machine for one call, and outlives files that hang.

use std::any::Any;
use std::collections::BTreeSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use amdgpu::traffic::Traffic;
use inventory::PciAddress;
use inventory::readings::PcieTraffic;
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use root::Root;
use root::patient::{PATIENCE, Patient};

use crate::log;

/// The folder that is read in place of `/`: a captured machine.
const ROOT: &str = "ACCELERATOR_AMD_ROOT";
/// The name of the hypervisor's node, which TensorFusion's operator sets.
const NODE: &str = "GPU_NODE_NAME";
/// With the value `go`, the topology has the layout of the hypervisor's own structs, which differ from its header's.
const TOPOLOGY: &str = "ACCELERATOR_AMD_TOPOLOGY";

/// A hypervisor reads metrics once a minute. A program that only lists GPUs ends before the first measurement.
const BEFORE_TRAFFIC: Duration = Duration::from_secs(1);

/// How long a call waits for others, and then how long it reads.
const DEADLINE: Duration = Duration::from_secs(4);

/// The most sentences that are remembered as logged.
const MOST_LOGGED: usize = 1000;

/// What calls share from the first one on. `AccelShutdown` ends the traffic's thread and forgets what was logged; the files
/// that hang stay known, each with its one thread.
struct Session {
    patient: Patient<Box<dyn Any + Send>>,
    root: PathBuf,
    node: Option<Arc<str>>,
    has_go_topology: bool,
    traffic: Option<Traffic>,
    logged: BTreeSet<String>,
}

/// What a read returns, and sentences for the log.
pub(crate) type Found<R> = (R, Vec<String>);

/// The session of one process, with a lock that is held for moments: who uses the session takes it out meanwhile.
struct Shared {
    process: u32,
    state: Mutex<State>,
    returned: Condvar,
}

#[derive(Default)]
struct State {
    session: Option<Session>,
    is_used: bool,
}

/// The session of this process. A fork copies no thread and may copy a lock that is held: a child begins its own, and leaves
/// its parent's alone.
fn shared() -> &'static Shared {
    static SHARED: AtomicPtr<Shared> = AtomicPtr::new(ptr::null_mut());
    let process = std::process::id();
    let known = SHARED.load(Ordering::Acquire);
    // SAFETY: what the pointer leads to is never freed.
    if let Some(shared) = unsafe { known.as_ref() }.filter(|shared| shared.process == process) {
        return shared;
    }
    let own = Box::new(Shared { process, state: Mutex::default(), returned: Condvar::new() });
    let own: &'static Shared = Box::leak(own);
    let exchanged =
        SHARED.compare_exchange(known, ptr::from_ref(own).cast_mut(), Ordering::AcqRel, Ordering::Acquire);
    match exchanged {
        Ok(_) => own,
        // SAFETY: another thread of this process was first, and what it stored is never freed.
        Err(first) => unsafe { first.as_ref() }.unwrap_or(own),
    }
}

/// A variable of the hypervisor's environment that is not empty, as it is at the first call.
#[allow(
    clippy::disallowed_methods,
    reason = "the hypervisor configures its providers by the environment alone"
)]
fn environment(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// Ends what calls have begun. A later call begins anew.
pub(crate) fn end() {
    with(|session| {
        session.traffic = None;
        session.logged.clear();
    });
}

/// Reads the machine by `read`, which gets the name of the Kubernetes node and returns sentences for the log too. Each is
/// logged once in a session. `None`: the machine cannot be read, and the log says why.
pub(crate) fn read<R: Send + 'static>(
    read: impl FnOnce(&Root, Option<&str>) -> Found<R> + Clone + Send + 'static,
) -> Option<R> {
    let used = with(|session| {
        let (result, sentences) = session.read(read);
        let is_news =
            |sentence: &String| session.logged.len() < MOST_LOGGED && session.logged.insert(sentence.clone());
        (result, sentences.into_iter().filter(is_news).collect())
    });
    let busy = || (None, vec!["other calls take too long: their log has the reason".to_owned()]);
    let (result, sentences): (Option<R>, Vec<String>) = used.unwrap_or_else(busy);
    sentences.iter().for_each(|sentence| log::warn(sentence));
    result
}

/// The traffic of each card that was measured within the last minute; the first call begins to measure.
pub(crate) fn traffic(cards: &[PciAddress]) -> Vec<Option<PcieTraffic>> {
    with(|session| {
        if session.traffic.is_none() {
            session.traffic = Traffic::start(session.root.clone(), BEFORE_TRAFFIC).ok();
        }
        cards.iter().map(|card| session.traffic.as_ref()?.of(*card)).collect()
    })
    .unwrap_or_else(|| vec![None; cards.len()])
}

/// Whether the hypervisor's environment asks for the topology of its Go code.
pub(crate) fn has_go_topology() -> bool {
    with(|session| session.has_go_topology).unwrap_or_default()
}

/// `None`: other calls have used the session for too long.
fn with<R>(use_it: impl FnOnce(&mut Session) -> R) -> Option<R> {
    // Until after the lock: no handler runs while this thread has it.
    let _blocked = SignalsBlocked::begin();
    let shared = shared();
    let state = shared.state.lock().unwrap_or_else(PoisonError::into_inner);
    let waited = shared.returned.wait_timeout_while(state, DEADLINE, |state| state.is_used);
    let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
    if state.is_used {
        return None;
    }
    state.is_used = true;
    let mut taken = Taken { shared, session: Some(state.session.take().unwrap_or_else(Session::begin)) };
    drop(state);
    taken.session.as_mut().map(use_it)
}

/// A session in use, which goes back when the use ends, by a panic too.
struct Taken {
    shared: &'static Shared,
    session: Option<Session>,
}

impl Drop for Taken {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock().unwrap_or_else(PoisonError::into_inner);
        *state = State { session: self.session.take(), is_used: false };
        self.shared.returned.notify_one();
    }
}

impl Session {
    fn begin() -> Self {
        let root = environment(ROOT).map_or_else(|| PathBuf::from("/"), PathBuf::from);
        Self {
            patient: Patient::new(root.clone(), PATIENCE, DEADLINE),
            root,
            node: environment(NODE).and_then(|name| Some(name.to_str()?.into())),
            has_go_topology: environment(TOPOLOGY).is_some_and(|value| value == "go"),
            traffic: None,
            logged: BTreeSet::new(),
        }
    }

    fn read<R: Send + 'static>(
        &mut self,
        read: impl FnOnce(&Root, Option<&str>) -> Found<R> + Clone + Send + 'static,
    ) -> (Option<R>, Vec<String>) {
        let node = self.node.clone();
        let run = self.patient.run(move |root| Box::new(read(root, node.as_deref())) as Box<dyn Any + Send>);
        let stuck = self.patient.stuck_paths().into_iter();
        let stuck = stuck.map(|path| format!("{} does not answer: see journalctl -k", path.display()));
        match run {
            Ok(found) => match found.downcast::<Found<R>>() {
                Ok(found) => (Some(found.0), found.1.into_iter().chain(stuck).collect()),
                Err(_) => (None, stuck.collect()),
            },
            Err(error) => (None, std::iter::once(error.to_string()).chain(stuck).collect()),
        }
    }
}

/// Keeps signals from this thread, and from the threads that it starts meanwhile: a handler of the hypervisor's must not run
/// in a thread that is not its own.
struct SignalsBlocked(Option<SigSet>);

impl SignalsBlocked {
    fn begin() -> Self {
        let mut before = SigSet::empty();
        let blocked = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&SigSet::all()), Some(&mut before));
        Self(blocked.is_ok().then_some(before))
    }
}

impl Drop for SignalsBlocked {
    fn drop(&mut self) {
        if let Some(before) = &self.0 {
            let _ = pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(before), None);
        }
    }
}
