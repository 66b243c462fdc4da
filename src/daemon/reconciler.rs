//! The thread that looks and changes. It has the watch while it does: folders are followed before they are read.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::time::{Duration, Instant, SystemTime};

use reconcile::command::Programs;
use reconcile::{Progress, Restarts};
use root::{Identity, Root};

use super::build::Build;
use super::interests::Interests;
use super::places::{places, receipt};
use super::watch::Watch;
use crate::config::Config;
use crate::run::{ActiveConfig, ConfigFile, Outcome, Own, Rules, Run, Stopped};
use crate::timestamp::Timestamp;

#[derive(Debug)]
pub struct Order {
    /// The configuration as it was read for this look, or why it is wrong.
    pub read: Result<Arc<Config>, String>,
    /// `None`: none is in force, and nothing is done but to watch for one.
    pub by: Option<By>,
    /// The last one that was followed, when that is another: in force where the first turns out to be wrong on this machine.
    pub last_good: Option<By>,
    pub watch: Option<Watch>,
    pub closely: bool,
    pub given_up: BTreeSet<PathBuf>,
}

/// A configuration, and what may be done by it now.
#[derive(Debug)]
pub struct By {
    pub config: Arc<Config>,
    pub restarts: Restarts,
    pub tags_may_go: bool,
}

#[derive(Debug)]
pub struct Done {
    pub watch: Option<Watch>,
    pub unwatched: Option<String>,
    /// Whether something else is watched than before the look, so that what changed there meanwhile was not heard, or
    /// something else is to be done: it is to be looked at once more.
    pub again: bool,
    pub receipt: Option<Identity>,
    pub outcome: Result<Outcome, String>,
    pub unfit: Option<String>,
    pub took: Duration,
}

#[derive(Debug)]
pub enum Said {
    Done(Box<Done>),
    /// It was told to end, and is between two changes: nothing more happens.
    Stands,
}

/// The thread has ended, which it does by a panic alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended;

#[derive(Debug)]
pub struct Reconciler {
    orders: Sender<Order>,
    said: Receiver<Said>,
}

#[derive(Debug)]
pub struct Ground {
    pub root: Arc<Root>,
    pub source: Arc<ConfigFile>,
    pub build: Option<Build>,
    /// Told to end: no further change is begun, and no program waited for.
    pub ends: Arc<AtomicBool>,
    /// Gets a byte with each thing that is said.
    pub wake: UnixStream,
    pub caller: String,
}

impl Reconciler {
    pub fn start(ground: Ground) -> std::io::Result<Self> {
        let (orders, to_do) = channel::<Order>();
        let (say, said) = channel();
        std::thread::Builder::new().name("reconciler".to_owned()).spawn(move || {
            let mut interests = Interests::default();
            for order in to_do {
                let done = ground.execute(order, &mut interests, &say);
                ground.say(&say, Said::Done(Box::new(done)));
            }
        })?;
        Ok(Self { orders, said })
    }

    /// Has it look. False: the thread has ended, which it does by a panic alone.
    pub fn order(&self, order: Order) -> bool {
        self.orders.send(order).is_ok()
    }

    pub fn heard(&self) -> Result<Option<Said>, Ended> {
        match self.said.try_recv() {
            Ok(said) => Ok(Some(said)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(Ended),
        }
    }
}

impl Ground {
    fn say(&self, say: &Sender<Said>, said: Said) {
        if say.send(said).is_ok() {
            // A pipe that is full wakes as well.
            (&self.wake).write_all(&[1]).ok();
        }
    }

    fn execute(&self, order: Order, interests: &mut Interests, say: &Sender<Said>) -> Done {
        let began = Instant::now();
        let Order { read, by, last_good, mut watch, closely, given_up } = order;
        let config = by.as_ref().map(|by| Arc::clone(&by.config));
        let mut unfit = None;
        let mut unwatched = None;
        let mut again = false;
        let mut left = None;
        let outcome = self.now().and_then(|root| {
            // What was watched for until now: what else matters is found after the look, which has it to be made again.
            let known = std::mem::take(interests);
            let known = if known.is_empty() { places(&root, config.as_deref()) } else { known };
            unwatched = watch.as_mut().and_then(|watch| watch.follow(&root, &known).err());
            let is_current = || {
                let is_replaced = self.build.as_ref().is_some_and(|build| build.replaced().is_some());
                !is_replaced && self.read(&root) == read
            };
            let reconcile = |by: &By| {
                let By { config, restarts, tags_may_go } = by;
                let (enforce, restarts, tags_may_go) = (config.daemon.enforce, *restarts, *tags_may_go);
                let how = Rules { enforce, restarts, closely, tags_may_go, given_up: &given_up };
                self.reconcile(&root, config, &how, &is_current, say)
            };
            let mut outcome = by.as_ref().map_or_else(|| Ok(Outcome::not_set_up()), reconcile);
            if let Ok(Outcome { stopped: Some(Stopped::Unfit(why)), .. }) = &outcome {
                unfit = Some(why.clone());
                outcome = last_good.as_ref().map_or(outcome, reconcile);
            }
            // What is to be done is another thing by now.
            let is_superseded = |outcome: &Outcome| outcome.stopped == Some(Stopped::Superseded);
            // The configuration was read before its file was watched: what was written in between nobody has told.
            let is_another = self.read(&root) != read;
            again = is_another || outcome.as_ref().is_ok_and(is_superseded);
            // Before it is read for what is watched: one that is written later is another one.
            left = receipt(&root);
            *interests = places(&root, config.as_deref());
            if *interests != known {
                again = true;
                unwatched = watch.as_mut().and_then(|watch| watch.follow(&root, interests).err());
            }
            outcome
        });
        Done { watch, unwatched, again, receipt: left, outcome, unfit, took: began.elapsed() }
    }

    fn read(&self, root: &Root) -> Result<Arc<Config>, String> {
        let read = ActiveConfig::of_file(&self.source, root).in_force();
        read.map(Arc::new).map_err(|why| why.to_string())
    }

    /// The machine. Of a captured one the nodes stand in a record, which is read when its Root is opened.
    fn now(&self) -> Result<Arc<Root>, String> {
        if self.root.is_host() {
            return Ok(Arc::clone(&self.root));
        }
        Root::open(&self.root.shown("/")).map(Arc::new).map_err(|error| error.to_string())
    }

    fn reconcile(
        &self,
        root: &Root,
        config: &Config,
        how: &Rules<'_>,
        is_current: &dyn Fn() -> bool,
        say: &Sender<Said>,
    ) -> Result<Outcome, String> {
        let programs = Programs::of(root).map(|it| it.interrupted_by(Arc::clone(&self.ends)));
        let (now, caller) = (Timestamp::of(SystemTime::now()), self.caller.clone());
        let run = Run { root, config, programs: programs.as_ref(), own: Own::find(), now, caller };
        let mut told = |progress: Progress<'_>| {
            if self.ends.load(Ordering::Relaxed) {
                self.stand(say);
            }
            match progress {
                Progress::Begins(change) => tracing::info!("{}: {}", change.path.display(), change.reason),
                Progress::Settles(effect) => tracing::info!("{effect}"),
                Progress::Waits(text) => tracing::info!("{text}"),
                Progress::Comes(..) => {}
            }
        };
        run.reconcile(how, is_current, &mut told).map_err(|error| error.to_string())
    }

    /// Between two changes, for good: what was done is in the receipt, as it would be if the process were killed here.
    fn stand(&self, say: &Sender<Said>) {
        self.say(say, Said::Stands);
        loop {
            std::thread::park();
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_has_ended_is_told_once_all_that_it_said_is_heard() {
        let (orders, _to_do) = channel();
        let (say, said) = channel();
        let reconciler = Reconciler { orders, said };
        assert!(reconciler.heard().unwrap().is_none(), "it is at work");
        say.send(Said::Stands).unwrap();
        drop(say);
        assert!(matches!(reconciler.heard(), Ok(Some(Said::Stands))));
        assert!(matches!(reconciler.heard(), Err(Ended)));
    }
}
