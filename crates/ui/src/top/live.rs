//! Keys, readings and signals, one after another, each followed by a screen.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use ratatui::crossterm::event;

use super::event::{Event, of_terminal};
use super::reader::{Pace, Read, repeat};
use super::signals;
use super::state::{Effect, State};
use super::terminal::Screen;
use super::view;

/// A reading that takes longer than this is late.
const LATE: Duration = Duration::from_secs(1);

enum Message {
    Event(Event),
    /// A reading begins.
    Begun(Instant),
    Signal(Signal),
    /// A thread that `top` needs cannot go on.
    Failed(io::Error),
}

enum Ended {
    Quit,
    Signal(Signal),
}

/// Shows what `read` gives until a key or a signal ends it. A signal then ends the process as it would have.
///
/// # Errors
/// When the terminal cannot be set up or written, or a thread cannot be started or go on.
pub fn run(read: Read, state: State) -> io::Result<()> {
    let (messages, inbox) = mpsc::channel();
    let on_signal = messages.clone();
    signals::receive(move |signal| drop(on_signal.send(Message::Signal(signal))))?;
    let screen = Screen::new()?;
    let ended = live(screen, read, state, &messages, &inbox)?;
    match ended {
        Ended::Signal(signal) => signals::obey(signal),
        Ended::Quit => Ok(()),
    }
}

fn live(
    mut screen: Screen,
    read: Read,
    mut state: State,
    messages: &Sender<Message>,
    inbox: &Receiver<Message>,
) -> io::Result<Ended> {
    let mut pace = pace(&state);
    let paces = read_machine(read, pace, messages)?;
    read_keys(messages)?;
    // When the reading under way began.
    let mut begun = None::<Instant>;
    screen.draw(|frame| view(&state, frame))?;
    loop {
        let first = match inbox.recv_timeout(LATE) {
            Ok(first) => first,
            Err(RecvTimeoutError::Timeout) => match begun.filter(|_| !state.is_paused) {
                Some(begun) => Message::Event(Event::Waiting(begun.elapsed())),
                None => continue,
            },
            // This function's caller has a sender.
            Err(RecvTimeoutError::Disconnected) => return Ok(Ended::Quit),
        };
        // What has come meanwhile needs no screen of its own.
        for message in std::iter::once(first).chain(inbox.try_iter()) {
            let event = match message {
                Message::Event(event) => event,
                Message::Begun(at) => {
                    begun = Some(at);
                    continue;
                }
                Message::Failed(error) => return Err(error),
                Message::Signal(Signal::SIGTSTP) => {
                    screen.leave()?;
                    signals::stop()?;
                    continue;
                }
                Message::Signal(Signal::SIGCONT) => {
                    screen.enter()?;
                    continue;
                }
                Message::Signal(signal) => return Ok(Ended::Signal(signal)),
            };
            if matches!(event, Event::Read(_)) {
                begun = None;
            }
            match state.on(event) {
                Effect::Draw => {}
                Effect::Quit => return Ok(Ended::Quit),
                Effect::Stop => {
                    // A shell takes the terminal as soon as the first process of the job stops.
                    screen.leave()?;
                    signals::stop_job()?;
                }
            }
        }
        let wanted = self::pace(&state);
        if wanted != pace {
            pace = wanted;
            paces.send(pace).ok();
        }
        screen.draw(|frame| view(&state, frame))?;
    }
}

fn pace(state: &State) -> Pace {
    (!state.is_paused).then_some(state.interval)
}

/// Starts the thread that reads the machine.
fn read_machine(mut read: Read, pace: Pace, messages: &Sender<Message>) -> io::Result<Sender<Pace>> {
    let (sender, paces) = mpsc::channel();
    spawn("readings", messages.clone(), move |messages| {
        repeat(pace, &paces, || {
            messages.send(Message::Begun(Instant::now())).ok();
            let message = match read() {
                Err(error) => Message::Failed(error),
                Ok(read) => Message::Event(Event::Read(Box::new(read))),
            };
            messages.send(message).is_ok()
        });
    })?;
    Ok(sender)
}

/// Starts the thread that reads the terminal.
fn read_keys(messages: &Sender<Message>) -> io::Result<()> {
    spawn("keys", messages.clone(), |messages| {
        loop {
            let message = match event::read() {
                Ok(event) => of_terminal(&event).map(Message::Event),
                Err(error) => {
                    messages.send(Message::Failed(error)).ok();
                    return;
                }
            };
            if message.is_some_and(|message| messages.send(message).is_err()) {
                return;
            }
        }
    })
}

/// Starts a thread. Its panic ends `top`, which would otherwise show for ever what was known then.
fn spawn(
    name: &'static str,
    messages: Sender<Message>,
    run: impl FnOnce(&Sender<Message>) + Send + 'static,
) -> io::Result<()> {
    thread::Builder::new().name(name.to_owned()).spawn(move || {
        if catch_unwind(AssertUnwindSafe(|| run(&messages))).is_err() {
            let why = format!("top's thread \"{name}\" panicked: please report this defect");
            messages.send(Message::Failed(io::Error::other(why))).ok();
        }
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_panics_ends_top() {
        let (messages, inbox) = mpsc::channel();
        spawn("keys", messages, |_| panic!("a test's panic")).unwrap();
        match inbox.recv_timeout(Duration::from_secs(60)) {
            Ok(Message::Failed(error)) => assert!(error.to_string().contains("\"keys\" panicked"), "{error}"),
            _ => panic!("no failure came"),
        }
    }
}
