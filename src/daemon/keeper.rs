//! The thread that looks and changes. It has the watch while it does: folders are followed before they are read.

use std::collections::BTreeSet;
use std::io::Write as _;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::{Duration, Instant, SystemTime};

use reconcile::command::Programs;
use reconcile::{Progress, Restarts};
use root::{Identity, Root};

use super::interests::Interests;
use super::places::{places, receipt};
use super::watch::Watch;
use crate::config::Config;
use crate::moment::Moment;
use crate::setup::{Keeping, Kept, Own};

/// One look that is to be made.
#[derive(Debug)]
pub struct Order {
    /// `None`: none is in force, and nothing is done but to watch for one.
    pub config: Option<Arc<Config>>,
    pub watch: Option<Watch>,
    pub restarts: Restarts,
    pub closely: bool,
    pub tags_may_go: bool,
    pub given_up: BTreeSet<PathBuf>,
}

/// What came of it.
#[derive(Debug)]
pub struct Done {
    pub watch: Option<Watch>,
    /// Why something cannot be watched.
    pub unwatched: Option<String>,
    /// Whether something else is watched than before the look: what changed there meanwhile was not heard.
    pub watches_more: bool,
    /// Which receipt it has left.
    pub receipt: Option<Identity>,
    pub kept: Result<Kept, String>,
    pub took: Duration,
}

/// What the thread says.
#[derive(Debug)]
pub enum Said {
    Done(Box<Done>),
    /// It was told to end, and is between two changes: nothing more happens.
    Stands,
}

/// The thread, as the other side sees it.
#[derive(Debug)]
pub struct Keeper {
    orders: Sender<Order>,
    said: Receiver<Said>,
}

/// What the thread works with.
#[derive(Debug)]
pub struct Ground {
    pub root: Arc<Root>,
    /// Told to end: no further change is begun, and no program waited for.
    pub ends: Arc<AtomicBool>,
    /// Gets a byte with each thing that is said.
    pub wake: UnixStream,
    pub caller: String,
}

impl Keeper {
    /// # Errors
    /// When the thread cannot be started.
    pub fn start(ground: Ground) -> std::io::Result<Self> {
        let (orders, to_do) = channel::<Order>();
        let (say, said) = channel();
        std::thread::Builder::new().name("keeper".to_owned()).spawn(move || {
            let mut interests = Interests::default();
            for order in to_do {
                let done = ground.carry_out(order, &mut interests, &say);
                ground.say(&say, Said::Done(Box::new(done)));
            }
        })?;
        Ok(Self { orders, said })
    }

    /// Has it look. False: the thread has ended, which it does by a panic alone.
    #[must_use]
    pub fn order(&self, order: Order) -> bool {
        self.orders.send(order).is_ok()
    }

    /// What it has said since.
    #[must_use]
    pub fn heard(&self) -> Option<Said> {
        self.said.try_recv().ok()
    }
}

impl Ground {
    fn say(&self, say: &Sender<Said>, said: Said) {
        if say.send(said).is_ok() {
            // A pipe that is full wakes as well.
            (&self.wake).write_all(&[1]).ok();
        }
    }

    fn carry_out(&self, order: Order, interests: &mut Interests, say: &Sender<Said>) -> Done {
        let began = Instant::now();
        let Order { config, mut watch, restarts, closely, tags_may_go, given_up } = order;
        let mut unwatched = None;
        let mut watches_more = false;
        let mut left = None;
        let kept = self.now().and_then(|root| {
            // What was watched for until now: what else matters is found after the look, which has it to be made again.
            let known = std::mem::take(interests);
            let known = if known.is_empty() { places(&root, config.as_deref()) } else { known };
            unwatched = watch.as_mut().and_then(|watch| watch.follow(&root, &known).err());
            let kept = config.as_ref().map_or_else(
                || Ok(Kept::default()),
                |config| {
                    let enforce = config.daemon.enforce;
                    let how = Keeping { enforce, restarts, closely, tags_may_go, given_up: &given_up };
                    self.keep(&root, config, &how, say)
                },
            );
            // Before it is read for what is watched: one that is written later is another one.
            left = receipt(&root);
            *interests = places(&root, config.as_deref());
            if *interests != known {
                watches_more = true;
                unwatched = watch.as_mut().and_then(|watch| watch.follow(&root, interests).err());
            }
            kept
        });
        Done { watch, unwatched, watches_more, receipt: left, kept, took: began.elapsed() }
    }

    /// The machine. Of a captured one the nodes stand in a record, which is read when its Root is opened.
    fn now(&self) -> Result<Arc<Root>, String> {
        if self.root.is_host() {
            return Ok(Arc::clone(&self.root));
        }
        Root::open(&self.root.shown("/")).map(Arc::new).map_err(|error| error.to_string())
    }

    fn keep(
        &self,
        root: &Root,
        config: &Config,
        how: &Keeping<'_>,
        say: &Sender<Said>,
    ) -> Result<Kept, String> {
        let programs = Programs::of(root).map(|it| it.interrupted_by(Arc::clone(&self.ends)));
        let own = Own::find();
        let now = Moment::of(SystemTime::now());
        let setup = own.setup(root, config, programs.as_ref(), now, self.caller.clone());
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
        setup.keep(how, &mut told).map_err(|error| error.to_string())
    }

    /// Between two changes, for good: what was done is in the receipt, as it would be if the process were killed here.
    fn stand(&self, say: &Sender<Said>) {
        self.say(say, Said::Stands);
        loop {
            std::thread::park();
        }
    }
}
