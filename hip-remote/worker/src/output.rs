//! What kernels print: the HIP library writes it to the process's standard output, which is a pipe here.
//!
//! A thread empties the pipe, because a full one would stop the kernel that prints.

use std::io::Read as _;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex};

use rustix::event::{PollFd, PollFlags, poll};
use rustix::pipe::{PipeFlags, pipe_with};

use crate::hip;
use crate::locked::locked;

/// The most that is kept until the client waits. What is printed beyond it is lost, and the client is told.
const MOST: usize = 16 * 1024 * 1024;
const LOST: &[u8] = b"\n(The kernels printed more than the worker keeps; the rest is lost.)\n";

#[derive(Debug)]
pub struct Output {
    kept: Mutex<Kept>,
}

#[derive(Debug)]
struct Kept {
    pipe: std::fs::File,
    bytes: Vec<u8>,
}

impl Output {
    /// Makes this process's standard output a pipe and begins to empty it.
    ///
    /// # Errors
    /// A sentence: the machine has no more descriptors or threads.
    pub fn capture() -> Result<Arc<Self>, String> {
        let failed = |error: std::io::Error| format!("what kernels print cannot be caught: {error}");
        let (reader, writer) = pipe_with(PipeFlags::CLOEXEC).map_err(|error| failed(error.into()))?;
        rustix::stdio::dup2_stdout(&writer).map_err(|error| failed(error.into()))?;
        rustix::io::ioctl_fionbio(&reader, true).map_err(|error| failed(error.into()))?;
        let watched: OwnedFd = reader.try_clone().map_err(failed)?;
        let output = Arc::new(Self { kept: Mutex::new(Kept { pipe: reader.into(), bytes: Vec::new() }) });
        let own = Arc::clone(&output);
        std::thread::Builder::new()
            .name("output".to_owned())
            .spawn(move || {
                // The process itself has the writing end, so that the pipe never ends.
                loop {
                    // After an interruption there is nothing to lose by a look.
                    let _ = poll(&mut [PollFd::from_borrowed_fd(watched.as_fd(), PollFlags::IN)], None);
                    locked(&own.kept).empty();
                }
            })
            .map_err(failed)?;
        Ok(output)
    }

    /// All that was printed until now.
    pub fn take(&self) -> Vec<u8> {
        hip::flush_output();
        let mut kept = locked(&self.kept);
        kept.empty();
        std::mem::take(&mut kept.bytes)
    }
}

impl Kept {
    fn empty(&mut self) {
        let mut some = [0; 16 * 1024];
        while let Ok(length @ 1..) = self.pipe.read(&mut some) {
            if self.bytes.len() + length <= MOST {
                self.bytes.extend_from_slice(some.get(..length).unwrap_or_default());
            } else if !self.bytes.ends_with(LOST) {
                self.bytes.extend_from_slice(LOST);
            }
        }
    }
}
