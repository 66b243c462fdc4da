//! Runs one scrape at a time, in a thread of its own. Requests that came before a scrape began share its
//! result.

use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use amdgpu::traffic::Traffic;
use flate2::Compression;
use flate2::write::GzEncoder;
use hyper::body::Bytes;
use inventory::Snapshot;
use root::patient::{self, DEADLINE, PATIENCE, Patient};
use telemetry::exporter::Exporter;
use telemetry::exposition::{self, Format};
use telemetry::hostname::hostname;
use telemetry::samples::samples;
use tokio::sync::oneshot;

use crate::page;
use crate::reported::Reported;
use crate::say;

/// The form of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) view: View,
    pub(crate) gzip: bool,
}

/// The document that is made of a scrape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum View {
    Metrics(Format),
    /// `refresh`: after how many seconds a browser loads the page again.
    Page {
        refresh: Option<u16>,
    },
}

/// The result of a scrape.
struct Found {
    snapshot: Snapshot,
    /// What the machine is called.
    host: Option<String>,
}

struct Request {
    wanted: Wanted,
    reply: oneshot::Sender<Result<Bytes, String>>,
}

/// Hands requests to the thread that scrapes.
pub(crate) struct Scraper {
    requests: Sender<Request>,
}

impl Scraper {
    /// `pcie_bw`: whether to measure PCIe traffic in the background.
    pub(crate) fn start(root: PathBuf, pcie_bw: bool) -> io::Result<Self> {
        let (requests, next) = mpsc::channel();
        let traffic = pcie_bw.then(|| Traffic::start(root.clone(), Duration::ZERO)).transpose()?;
        let scrapes = Scrapes {
            exporter: Exporter::default(),
            patient: Patient::new(root, PATIENCE, DEADLINE),
            traffic,
            stuck: Vec::new(),
            reported: Reported::default(),
        };
        thread::Builder::new().name("scraper".to_owned()).spawn(move || scrapes.run(&next))?;
        Ok(Self { requests })
    }

    /// # Errors
    /// Why there is no result, for the client.
    pub(crate) async fn scrape(&self, wanted: Wanted) -> Result<Bytes, String> {
        let ended = || "the thread that scrapes has ended: this is a defect, report it".to_owned();
        let (reply, result) = oneshot::channel();
        self.requests.send(Request { wanted, reply }).map_err(|_| ended())?;
        result.await.map_err(|_| ended())?
    }
}

/// The state of the scraping thread.
struct Scrapes {
    exporter: Exporter,
    patient: Patient<(Exporter, Found)>,
    traffic: Option<Traffic>,
    /// The files that did not answer in the last scrape.
    stuck: Vec<PathBuf>,
    reported: Reported,
}

impl Scrapes {
    fn run(mut self, requests: &Receiver<Request>) {
        while let Ok(first) = requests.recv() {
            let mut waiting: Vec<Request> = std::iter::once(first).chain(requests.try_iter()).collect();
            // Drops requests of clients that have left.
            waiting.retain(|request| !request.reply.is_closed());
            if waiting.is_empty() {
                continue;
            }
            let found = self.scrape();
            let mut written: Vec<(Wanted, Bytes)> = Vec::new();
            for Request { wanted, reply } in waiting {
                let answer = match &found {
                    Err(error) => Err(error.to_string()),
                    Ok(found) => Ok(match written.iter().find(|(how, _)| *how == wanted) {
                        Some((_, bytes)) => bytes.clone(),
                        None => {
                            let bytes = write(found, wanted);
                            written.push((wanted, bytes.clone()));
                            bytes
                        }
                    }),
                };
                reply.send(answer).ok();
            }
        }
    }

    fn scrape(&mut self) -> Result<Found, patient::Error> {
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_secs_f64();
        // A thread that is left behind has a copy: what it finds later changes nothing.
        let mut exporter = self.exporter.clone();
        let result = self.patient.run(move |root| {
            let snapshot = exporter.scrape(root, now);
            // A folder that holds a machine without a hostname lends its own name.
            let folder = || Some(root.shown("/").file_name()?.to_string_lossy().into_owned());
            (exporter, Found { snapshot, host: hostname(root).or_else(folder) })
        });
        self.report_stuck();
        let (exporter, mut found) = result?;
        self.exporter = exporter;
        // The journal has those already that do not answer.
        let faults = found.snapshot.faults.iter();
        let faults = faults.filter(|fault| !self.stuck.iter().any(|stuck| fault.file.starts_with(stuck)));
        let reasons = faults.map(|fault| (fault.file.clone(), fault.reason.to_string())).collect();
        self.reported.news(reasons, Instant::now()).iter().for_each(|reason| say(reason));
        let mut stuck = self.patient.stuck();
        if let Some(traffic) = &self.traffic {
            for card in &mut found.snapshot.cards {
                card.traffic = card.pci.and_then(|pci| traffic.of(pci));
            }
            stuck += traffic.stuck();
        }
        found.snapshot.stuck_reads = Some(stuck);
        Ok(found)
    }

    /// Tells the journal of a file that hangs, once, and of one that does no longer.
    fn report_stuck(&mut self) {
        let stuck = self.patient.stuck_paths();
        for path in stuck.iter().filter(|path| !self.stuck.contains(path)) {
            say(&format!(
                "{} does not answer: its metrics are absent until it does; see journalctl -k",
                path.display()
            ));
        }
        for path in self.stuck.iter().filter(|path| !stuck.contains(path)) {
            say(&format!("{} answers again", path.display()));
        }
        self.stuck = stuck;
    }
}

fn write(found: &Found, wanted: Wanted) -> Bytes {
    let text = match wanted.view {
        View::Metrics(format) => exposition::write(&samples(&found.snapshot), format),
        View::Page { refresh } => page::render(&found.snapshot, found.host.as_deref(), refresh),
    };
    if wanted.gzip { compressed(&text) } else { text.into() }
}

fn compressed(text: &str) -> Bytes {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    // Into memory, which does not fail.
    encoder.write_all(text.as_bytes()).ok();
    encoder.finish().unwrap_or_default().into()
}
