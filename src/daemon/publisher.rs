//! Publishes a file again and again, for programs that may not read what the daemon may.
//!
//! Each file has a thread of its own: the kernel may hold up who reads a GPU's files while the GPU hangs. Neither a
//! look, nor an answer to `status`, nor another file waits for that.

use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use root::{Attributes, Identity, Root};

use crate::run_folder::check_folder;

/// How long the daemon's end waits for a write that goes on.
const END: Duration = Duration::from_millis(300);

/// The stack of a thread that reads files one after the other. Pages that it does not touch take no memory.
const STACK: usize = 512 << 10;

/// A file that is published.
#[derive(Debug)]
pub struct File {
    /// Written while its folder is there.
    pub path: &'static str,
    /// How often it is written: several times in the time for which it counts.
    pub every: Duration,
    /// The name of the thread that writes the file.
    pub thread: &'static str,
    /// The end of a sentence: what whom is missing while the daemon cannot write the file.
    pub lack: &'static str,
    /// Whether the file at the path is the daemon's to remove.
    pub is_own: fn(&Root) -> bool,
}

/// Hands values of the daemon's thread to the thread that publishes a file. `T`: such a value.
#[derive(Debug)]
pub struct Publisher<T> {
    file: &'static File,
    shared: Arc<Shared<T>>,
}

#[derive(Debug)]
struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

#[derive(Debug)]
struct State<T> {
    wanted: Wanted<T>,
    is_new: bool,
    is_writing: bool,
    is_over: bool,
    /// The identity of the file that was written last.
    written: Option<Identity>,
}

#[derive(Debug, Clone, PartialEq)]
enum Wanted<T> {
    /// [`Publisher::set`] was not called yet: a file that is there stays as it is.
    Unchanged,
    /// The file shall not exist.
    Remove,
    Publish(T),
}

impl<T: Clone + PartialEq + Send + 'static> Publisher<T> {
    /// `text`: what stands in the file, or `None` where the file stays as it is; it runs in the file's thread.
    pub fn start(
        root: Arc<Root>,
        file: &'static File,
        text: impl FnMut(&Root, T) -> Option<String> + Send + 'static,
    ) -> std::io::Result<Self> {
        let (wanted, written) = (Wanted::Unchanged, None);
        let state = State { wanted, is_new: false, is_writing: false, is_over: false, written };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let of_thread = Arc::clone(&shared);
        let thread = std::thread::Builder::new().name(file.thread.to_owned()).stack_size(STACK);
        thread.spawn(move || run(&root, file, &of_thread, text))?;
        Ok(Self { file, shared })
    }

    /// Has this published, at once where it is new; with `None` the file is removed.
    pub fn set(&self, wanted: Option<T>) {
        let wanted = wanted.map_or(Wanted::Remove, Wanted::Publish);
        let mut state = self.shared.lock();
        if state.wanted != wanted {
            (state.wanted, state.is_new) = (wanted, true);
            self.shared.changed.notify_all();
        }
    }

    /// Writes no more, and leaves the file.
    pub fn end(self) {
        drop(self.stop());
    }

    /// Writes no more, and removes the file unless it is another daemon's by now.
    pub fn leave(self, root: &Root) {
        let state = self.stop();
        if state.written.is_some() && state.written == root.identity(self.file.path).ok() {
            // A file that cannot be removed is soon too old to count.
            root.remove(self.file.path).ok();
        }
    }

    /// Stops the thread that writes, and waits a while for a write that it has begun.
    fn stop(&self) -> MutexGuard<'_, State<T>> {
        let mut state = self.shared.lock();
        state.is_over = true;
        self.shared.changed.notify_all();
        let waited = self.shared.changed.wait_timeout_while(state, END, |state| state.is_writing);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn run<T: Clone>(
    root: &Root,
    file: &File,
    shared: &Shared<T>,
    mut text: impl FnMut(&Root, T) -> Option<String>,
) {
    let mut is_hindered = false;
    loop {
        let state = shared.lock();
        let is_idle = |state: &mut State<T>| !state.is_new && !state.is_over;
        let mut state = if let Wanted::Publish(_) = state.wanted {
            let waited = shared.changed.wait_timeout_while(state, file.every, is_idle);
            waited.unwrap_or_else(PoisonError::into_inner).0
        } else {
            shared.changed.wait_while(state, is_idle).unwrap_or_else(PoisonError::into_inner)
        };
        state.is_new = false;
        let wanted = state.wanted.clone();
        drop(state);
        let is_published = matches!(wanted, Wanted::Publish(_));
        let text = if let Wanted::Publish(wanted) = wanted { text(root, wanted) } else { None };

        let mut state = shared.lock();
        if state.is_over {
            return;
        }
        state.is_writing = true;
        drop(state);
        let written = text.map(|text| write(root, file, &text));
        if !is_published && (file.is_own)(root) {
            // A file that cannot be removed is soon too old to count.
            root.remove(file.path).ok();
        }
        let mut state = shared.lock();
        state.is_writing = false;
        state.written = root.identity(file.path).ok();
        shared.changed.notify_all();
        drop(state);
        if let Some(written) = written {
            say(root, file, &mut is_hindered, written.err());
        }
    }
}

pub(super) fn write(root: &Root, file: &File, text: &str) -> Result<(), root::Error> {
    let folder = Path::new(file.path).parent().unwrap_or(Path::new("/"));
    check_folder(root, folder)?;
    // Who needs the folder makes it: for /run/rocworker, whoever holds the lock in it.
    if root.exists(folder) {
        root.write(file.path, text.as_bytes(), Attributes { mode: 0o644, owner: None })?;
    }
    Ok(())
}

/// Says once what hinders, and once that nothing does any more.
fn say(root: &Root, file: &File, is_hindered: &mut bool, problem: Option<root::Error>) {
    let was_hindered = std::mem::replace(is_hindered, problem.is_some());
    match problem {
        Some(problem) if !was_hindered => tracing::warn!("{problem}: {}", file.lack),
        None if was_hindered => tracing::info!("{} is written again", root.shown(file.path).display()),
        _ => {}
    }
}
