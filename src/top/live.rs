//! Keys, readings and signals, one after another, each followed by a screen.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use ratatui::crossterm::event;
use signal_hook::low_level;
use telemetry::patient;

use super::keys;
use super::reader::{Pace, Reader};
use super::signals;
use super::state::{Do, Event, State};
use super::terminal::Screen;
use super::view;

/// Later than this, a reading is late.
const LATE: Duration = Duration::from_secs(1);

enum Message {
    Event(Event),
    /// The terminal gives no more keys.
    NoKeys(io::Error),
    Signal(i32),
    /// A thread that reads has panicked.
    Broken,
}

enum Ended {
    Quit,
    Signal(i32),
}

/// Shows the machine beneath `root` until a key or a signal ends it. A signal then ends the process as it would have.
///
/// # Errors
/// When the terminal cannot be set up or written, or a thread cannot be started.
pub fn run(root: PathBuf, state: State) -> io::Result<()> {
    let (messages, inbox) = mpsc::channel();
    let on_signal = messages.clone();
    signals::hear(move |signal| drop(on_signal.send(Message::Signal(signal))))?;
    let screen = Screen::new()?;
    let ended = live(screen, root, state, messages, &inbox)?;
    match ended {
        Ended::Signal(signal) => low_level::emulate_default_handler(signal),
        Ended::Quit => Ok(()),
    }
}

fn live(
    mut screen: Screen,
    root: PathBuf,
    mut state: State,
    messages: Sender<Message>,
    inbox: &Receiver<Message>,
) -> io::Result<Ended> {
    let mut pace = pace(&state);
    let paces = read(root, pace, messages.clone())?;
    hear_keys(messages)?;
    let mut read_at = Instant::now();
    screen.draw(|frame| view(&state, frame))?;
    loop {
        let first = match inbox.recv_timeout(LATE) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => match late(&state, read_at) {
                Some(waiting) => Message::Event(Event::Waiting(waiting)),
                None => continue,
            },
            // hear_keys has one end for as long as it runs, and says so when it ends.
            Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Quit),
        };
        // What has come meanwhile needs no screen of its own.
        for message in std::iter::once(first).chain(inbox.try_iter()) {
            let event = match message {
                Message::Event(event) => event,
                Message::NoKeys(error) => return Err(error),
                Message::Signal(signal) => return Ok(Ended::Signal(signal)),
                Message::Broken => {
                    return Err(io::Error::other(
                        "the thread that reads has ended: this is a defect, report it",
                    ));
                }
            };
            if matches!(event, Event::Read(_)) {
                read_at = Instant::now();
            }
            match state.on(event) {
                Do::Draw => {}
                Do::Quit => return Ok(Ended::Quit),
                Do::Stop => screen.stop()?,
            }
        }
        let wanted = self::pace(&state);
        if wanted != pace {
            (pace, read_at) = (wanted, Instant::now());
            paces.send(pace).ok();
        }
        screen.draw(|frame| view(&state, frame))?;
    }
}

fn pace(state: &State) -> Pace {
    (!state.is_paused).then_some(state.interval)
}

/// How long the reading under way takes, where that is too long.
fn late(state: &State, read_at: Instant) -> Option<Duration> {
    let waiting = read_at.elapsed().checked_sub(state.interval)?;
    (!state.is_paused && waiting >= LATE).then_some(waiting)
}

/// Starts the thread that reads the machine.
fn read(root: PathBuf, pace: Pace, messages: Sender<Message>) -> io::Result<Sender<Pace>> {
    let (sender, paces) = mpsc::channel();
    let reader = Reader::new(root);
    thread::Builder::new().name("readings".to_owned()).spawn(move || {
        reader.run(pace, &paces, |read| {
            let message = match read {
                Err(patient::Error::Ended) => Message::Broken,
                read => Message::Event(Event::Read(Box::new(read.map_err(|error| error.to_string())))),
            };
            messages.send(message).is_ok()
        });
    })?;
    Ok(sender)
}

/// Starts the thread that reads the terminal.
fn hear_keys(messages: Sender<Message>) -> io::Result<()> {
    thread::Builder::new().name("keys".to_owned()).spawn(move || {
        loop {
            let message = match event::read() {
                Ok(event) => keys::event(&event).map(Message::Event),
                Err(error) => {
                    messages.send(Message::NoKeys(error)).ok();
                    return;
                }
            };
            if message.is_some_and(|message| messages.send(message).is_err()) {
                return;
            }
        }
    })?;
    Ok(())
}
