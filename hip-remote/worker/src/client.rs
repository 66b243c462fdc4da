//! The process of one client: it begins the connection, opens the HIP library and serves until the client is gone.

use std::ffi::CString;
use std::io::{IoSlice, Read as _};
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use hip_protocol::calls::{Call as _, Close, Hello, Welcome};
use hip_protocol::envelope::Envelope;
use hip_protocol::header::{VERSION_1, VERSION_2};
use hip_protocol::message;
use hip_transport::{Message, Reader, WorkerKey, Writer, printable};
use rustix::process::{Signal, set_parent_process_death_signal};

use crate::arguments::Serve;
use crate::cache::Cache;
use crate::counters::Report;
use crate::hip::{Hip, show_devices};
use crate::output::Output;
use crate::releases::Releases;
use crate::serving::Serving;
use crate::session::Session;
use crate::{grant, version_1, watch};

/// How long a client may take to say who it is.
const HELLO: Duration = Duration::from_secs(5);
/// How long the connection stays after the last sentence, so that the client reads it.
const LAST: Duration = Duration::from_millis(200);

/// Serves the client whose connection is the standard input. The standard output is the parent's.
///
/// # Errors
/// The sentence that ended the connection, if it was not the client that ended it.
pub fn serve(options: &Serve) -> Result<(), String> {
    let (connection, control) = inherited()?;
    let key = match &options.key {
        // A Unix socket's permissions say who may connect.
        Some(path) if !is_unix(&connection) => Some(WorkerKey::read(path)?),
        _ => None,
    };
    let begun = Instant::now();
    let (mut reader, mut writer) =
        hip_transport::accept(connection, key.as_ref(), HELLO).map_err(|error| error.to_string())?;
    let peer = reader.peer().to_owned();
    let failed = |error: hip_transport::Error| error.to_string();
    reader.set_deadline(Some(begun + HELLO));
    let begun = match hello(&mut reader, key.as_ref()) {
        Ok(begun) => begun,
        Err(sentence) => return Err(refuse(&mut writer, &peer, &sentence)),
    };
    if let Err(sentence) = verdict(&control, options) {
        return Err(refuse(&mut writer, &peer, &sentence));
    }
    reader.set_deadline(None);
    reader.set_silence(begun.beats().then(|| options.silence())).map_err(failed)?;
    // A client that reads nothing may send as much as it likes.
    writer.set_patience(options.silence()).map_err(failed)?;
    let client = match &begun {
        Begun::Version1(_) => format!("{peer} (version 1)"),
        Begun::Version2 { hello, program, .. } => format!("{peer} ({program} {})", hello.pid),
    };
    let watched = Arc::default();
    let begin = match open(options, &begun, &reader, &control, &watched) {
        Ok(begin) => begin,
        Err(sentence) => return Err(refuse(&mut writer, &client, &sentence)),
    };
    log!("{client} begins");
    let session = Arc::new(begin(writer));
    let _ = Report::Begun.write(&control);
    let _ = watched.set(Arc::clone(&session));
    let welcome = Welcome {
        window: options.in_flight,
        driver: session.hip.driver_version().unwrap_or_default(),
        runtime: session.hip.runtime_version().unwrap_or_default(),
        devices: session.devices.unwrap_or_default(),
    };
    let served = match begun {
        Begun::Version1(first) => version_1::serve(&session, &mut reader, first),
        Begun::Version2 { id, .. } => {
            let mut serving =
                Serving::new(Arc::clone(&session), usize::try_from(options.in_flight).unwrap_or(usize::MAX));
            message::reply(
                Hello::OP,
                id,
                0,
                &welcome,
                env!("CARGO_PKG_VERSION").as_bytes(),
                &mut serving.out,
            );
            let served = serving.serve(&mut reader);
            // Calls that came before a bad message were executed, and their replies are true.
            let _ = session.write(&mut [IoSlice::new(&serving.out)]);
            served
        }
    };
    if let Err(sentence) = &served {
        session.close(sentence);
    }
    // From here on the process ends, whatever the device does: the kernel frees what is left.
    watch::end_in_any_case();
    session.free_all();
    let _ = Report::Counted(session.counted()).write(&control);
    let _ = Report::Ended.write(&control);
    log!("{client} ended");
    served.map_err(|sentence| format!("{client}: {sentence}"))
}

/// The connection, and the way to the parent. Neither stays at the place where the HIP library could reach it.
fn inherited() -> Result<(OwnedFd, UnixStream), String> {
    let failed = |error: std::io::Error| format!("this process was not started by a worker: {error}");
    set_parent_process_death_signal(Some(Signal::KILL)).map_err(|error| failed(error.into()))?;
    // It was started as /proc/self/exe, whose name says nothing in a list of processes.
    let _ = rustix::thread::set_name(c"hip-client");
    let connection = std::io::stdin().as_fd().try_clone_to_owned().map_err(failed)?;
    let control = std::io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let null = std::fs::File::open("/dev/null").map_err(failed)?;
    rustix::stdio::dup2_stdin(&null).map_err(|error| failed(error.into()))?;
    Ok((connection, control.into()))
}

fn is_unix(connection: &OwnedFd) -> bool {
    rustix::net::sockopt::socket_domain(connection)
        .is_ok_and(|domain| domain == rustix::net::AddressFamily::UNIX)
}

/// The first message.
enum Begun {
    Version1(Message),
    Version2 { id: u32, hello: Hello, program: String },
}

impl Begun {
    /// Whether client and worker tell each other that they live. In version 1 only TCP does.
    fn beats(&self) -> bool {
        matches!(self, Self::Version2 { .. })
    }
}

/// Reads the first message.
fn hello(reader: &mut Reader, key: Option<&WorkerKey>) -> Result<Begun, String> {
    let first = reader.next().map_err(|error| error.to_string())?;
    if first.version == VERSION_1 && key.is_none() {
        return Ok(Begun::Version1(first));
    }
    if first.version != VERSION_2 || first.op != Hello::OP {
        return Err("the first message is not Hello".to_owned());
    }
    let payload = reader.bytes(first.length).map_err(|error| error.to_string())?;
    let (hello, program) = message::fields::<Hello>(first.op, payload).map_err(|why| why.to_string())?;
    if key.is_some_and(|key| !key.admits(&hello.token)) {
        return Err("the token is not this worker's: take the client.key that was made with its worker.key"
            .to_owned());
    }
    // The log gets no long line.
    let program = printable(program).chars().take(100).collect();
    Ok(Begun::Version2 { id: first.id, hello, program })
}

/// Asks the parent, who counts the clients.
fn verdict(mut control: &UnixStream, options: &Serve) -> Result<(), String> {
    let mut verdict = [0];
    let asked = Report::Hello.write(control).and_then(|()| control.read_exact(&mut verdict));
    match (asked, verdict) {
        (Ok(()), [1]) => Ok(()),
        (Ok(()), _) => Err(format!(
            "the worker serves no more clients at once (--clients {}): try again when one has ended, or raise it",
            options.clients
        )),
        (Err(_), _) => Err(watch::ENDS.to_owned()),
    }
}

/// Tells the client why: the sentence for the log.
fn refuse(writer: &mut Writer, client: &str, sentence: &str) -> String {
    let mut bytes = Vec::new();
    message::put(Close::OP, 0, Envelope::default(), &Close {}, sentence.as_bytes(), &mut bytes);
    if writer.write(&mut [IoSlice::new(&bytes)]).is_ok() {
        std::thread::sleep(LAST);
    }
    format!("{client} was refused: {sentence}")
}

/// Opens the HIP library, which sees only the GPUs that this client is granted, and does all else that may fail. A session
/// then only needs the writer, by which a failure is told until then.
fn open(
    options: &Serve,
    begun: &Begun,
    reader: &Reader,
    control: &UnixStream,
    watched: &Arc<OnceLock<Arc<Session>>>,
) -> Result<impl FnOnce(Writer) -> Session, String> {
    let granted = grant::take(&options.paths(), options.gpus)?;
    if let Some(indexes) = &granted {
        let list = indexes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
        let list = CString::new(list).map_err(|error| error.to_string())?;
        // HIP_VISIBLE_DEVICES would count within this selection. No other thread has begun.
        show_devices(c"ROCR_VISIBLE_DEVICES", &list);
    }
    let failed = |error: std::io::Error| error.to_string();
    // A library may take long to open, or for ever.
    watch::begin(
        watched,
        control.try_clone().map_err(failed)?,
        reader.as_fd().try_clone_to_owned().map_err(failed)?,
        options.longest_wait.map(|seconds| Duration::from_secs(seconds.into())),
        begun.beats(),
    )?;
    let output = Output::capture()?;
    let hip = Hip::open(options.hip_library.as_deref())?;
    // The library's own error says why there are none: each call of the client gets it.
    let _ = hip.init();
    let devices = hip.device_count();
    let all = || (0..usize::try_from(devices.unwrap_or_default()).unwrap_or_default()).collect();
    let wanted = if let Begun::Version2 { hello, .. } = begun { hello.memory } else { 0 };
    let limits = [options.memory.unwrap_or_default(), wanted];
    let limit = limits.into_iter().filter(|limit| *limit > 0).min().unwrap_or(u64::MAX);
    let gpus = granted.unwrap_or_else(all);
    let cache = Cache::new(&options.cache, options.cache_size);
    let releases = Releases::new(devices.unwrap_or_default())?;
    Ok(move |writer| Session::new(hip, (devices, gpus), limit, cache, output, releases, writer))
}
