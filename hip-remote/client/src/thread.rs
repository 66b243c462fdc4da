//! What HIP keeps for each thread: its device, its last error, its launch configurations; and its lane at the worker.

use std::cell::{Cell, RefCell};
use std::mem::ManuallyDrop;
use std::sync::Arc;

use hip_abi::release::Release;
use hip_protocol::calls::SetDevice;

use crate::configuration::Configuration;
use crate::connection::Desk;
use crate::error::{HipError, Outcome};
use crate::process;
use crate::release::release;
use crate::session::Session;

#[derive(Default)]
struct Thread {
    device: Cell<i32>,
    /// For `hipGetLastError`.
    last_error: Cell<i32>,
    /// For `hipExtGetLastError`: the last call's result, whatever it was.
    last_result: Cell<i32>,
    configurations: RefCell<Vec<Configuration>>,
    seat: RefCell<Option<Seat>>,
}

/// So often a call is given to the next worker, lest a call of which each worker dies goes around for ever.
const ATTEMPTS: usize = 3;

thread_local! {
    static THREAD: Thread = Thread::default();
}

/// A thread's place at the worker.
pub struct Seat {
    session: ManuallyDrop<Arc<Session>>,
    pub desk: Desk,
    /// The thread's device, which the worker has for the lane.
    device: Cell<i32>,
    /// The worker has fewer devices than the one before it, and the thread's own is not among them.
    is_without_device: Cell<bool>,
    forks: u32,
}

impl Seat {
    pub fn session(&self) -> &Session {
        &self.session
    }

    pub fn device(&self) -> i32 {
        self.device.get()
    }

    /// Runs calls for a device that need not be the thread's.
    ///
    /// # Errors
    /// The calls fail, or the connection is lost.
    pub fn on_device<T>(&self, device: i32, calls: impl FnOnce() -> Outcome<T>) -> Outcome<T> {
        let own = self.device.get();
        self.switch(device)?;
        let made = calls();
        self.switch(own)?;
        made
    }

    fn is_usable(&self) -> bool {
        self.forks == process::forks() && !self.session.connection.is_lost()
    }

    fn take(thread: &Thread) -> Outcome<Self> {
        let session = process::session()?;
        let desk = session.connection.sit()?;
        let seat = Self {
            session: ManuallyDrop::new(session),
            desk,
            device: Cell::new(0),
            is_without_device: Cell::new(false),
            forks: process::forks(),
        };
        match seat.session.device(thread.device.get()) {
            Ok(device) => seat.switch(device)?,
            Err(_) => seat.is_without_device.set(true),
        }
        Ok(seat)
    }

    /// Tells the worker the lane's device, where that is another one.
    fn switch(&self, device: i32) -> Outcome {
        if self.device.get() != device {
            self.session.connection.send(&self.desk, &SetDevice { device }, &[])?;
            self.device.set(device);
        }
        Ok(())
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // A forked child's seat is its parent's: a lock of the session may be held there for ever.
        if self.forks == process::forks() {
            self.session.connection.leave(&self.desk);
            // SAFETY: the session is not used after its seat.
            unsafe { ManuallyDrop::drop(&mut self.session) };
        }
    }
}

/// Runs a call with the thread's place at the worker, and connects before that where need be.
///
/// A worker may be lost within the call. Where the program has nothing there, nothing can be made twice: the next worker runs
/// the call instead.
///
/// # Errors
/// No worker can be had, it lacks the thread's device, or the call fails.
pub fn seated<T>(call: impl Fn(&Seat) -> Outcome<T>) -> Outcome<T> {
    seated_anywhere(
        |seat| if seat.is_without_device.get() { Err(HipError::INVALID_DEVICE) } else { call(seat) },
    )
}

/// Runs a call that needs no device as [`seated`] does.
///
/// # Errors
/// No worker can be had, or the call fails.
pub fn seated_anywhere<T>(call: impl Fn(&Seat) -> Outcome<T>) -> Outcome<T> {
    let run = |thread: &Thread| {
        let mut place = thread.seat.try_borrow_mut().map_err(|_| HipError::UNKNOWN)?;
        let mut why = None;
        for _ in 0..ATTEMPTS {
            if !place.as_ref().is_some_and(Seat::is_usable) {
                *place = None;
                *place = Some(Seat::take(thread)?);
            }
            let seat = place.as_ref().ok_or(HipError::UNKNOWN)?;
            // The call may take its pointer or handle out of the session's tables before the loss is seen.
            let had_state = seat.session.has_state();
            match call(seat) {
                Err(HipError::LOST) if seat.session.connection.is_lost() => {
                    if had_state {
                        seat.session.keep_state();
                    }
                    if seat.session.has_state() {
                        // It tells why: many a program ends with its first error.
                        let _ = process::session();
                        return Err(HipError::LOST);
                    }
                    why = seat.session.connection.why_lost();
                }
                result => return result,
            }
        }
        process::say(&format!(
            "{}. One HIP call has lost {ATTEMPTS} connections, and fails",
            why.unwrap_or_else(|| "The worker is gone".to_owned())
        ));
        Err(HipError::LOST)
    };
    // Destructors of the program's statics run when the main thread's own data is gone: they free memory, on a lane for one call.
    THREAD.try_with(run).unwrap_or_else(|_| run(&Thread::default()))
}

/// Makes a device the thread's.
///
/// # Errors
/// There is no such device.
pub fn set_device(device: i32) -> Outcome {
    seated_anywhere(|seat| {
        let device = seat.session().device(device)?;
        seat.switch(device)?;
        seat.is_without_device.set(false);
        let _ = THREAD.try_with(|thread| thread.device.set(device));
        Ok(())
    })
}

/// Keeps a call's result as the last error, by the release's rule.
///
/// Up to ROCm 6 the last error is the last call's result, `hipSuccess` too. From ROCm 7 on it is the last failure, and
/// `hipErrorNotReady` is none (ROCm's change log of 7.0; clr's HIP_RETURN).
pub fn keep_result(result: i32) {
    let _ = THREAD.try_with(|thread| {
        thread.last_result.set(result);
        if release() < Release::Rocm7 || (result != 0 && result != HipError::NOT_READY.0) {
            thread.last_error.set(result);
        }
    });
}

pub fn last_error() -> i32 {
    THREAD.try_with(|thread| thread.last_error.get()).unwrap_or(0)
}

pub fn take_last_error() -> i32 {
    THREAD.try_with(|thread| thread.last_error.replace(0)).unwrap_or(0)
}

pub fn take_last_result() -> i32 {
    THREAD.try_with(|thread| thread.last_result.replace(0)).unwrap_or(0)
}

/// The launches that the thread has configured and not yet made.
///
/// # Errors
/// The thread has ended.
pub fn configurations<T>(use_them: impl FnOnce(&mut Vec<Configuration>) -> Outcome<T>) -> Outcome<T> {
    THREAD
        .try_with(|thread| {
            let mut configurations = thread.configurations.try_borrow_mut().map_err(|_| HipError::UNKNOWN)?;
            use_them(&mut configurations)
        })
        .unwrap_or(Err(HipError::DEINITIALIZED))
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind;
    use std::os::unix::net::UnixListener;

    use hip_protocol::calls;

    use super::*;
    use crate::connection::stand_in;
    use crate::copies::{Copy, DEVICE_TO_HOST};
    use crate::release::tests::each;
    use crate::{host_memory, memory};

    #[test]
    fn a_worker_lost_while_it_frees_the_last_memory_is_lost_for_good() {
        const POINTER: u64 = 0x2346_0000_0000;
        let folder = tempfile::tempdir().unwrap();
        let [first, second] = ["first", "second"].map(|name| folder.path().join(name));
        let worker = stand_in::listen(&first, |mut worker| {
            let malloc = worker.expect::<calls::Malloc>();
            worker.reply(&malloc, &calls::Allocation { pointer: POINTER });
            worker.expect::<calls::DeviceToHost>();
            worker.expect::<calls::Free>();
            worker.expect::<calls::DeviceSync>();
        });
        let other = UnixListener::bind(&second).unwrap();
        other.set_nonblocking(true).unwrap();
        let both = format!("unix:{},unix:{}", first.display(), second.display());
        // SAFETY: no other test of this process looks at its environment by C.
        unsafe { std::env::set_var("ROCWORKER_HIP_REMOTE", both) };
        let mut pinned = [0u8; 16];
        let to = pinned.as_mut_ptr() as usize;
        host_memory::register(to, 16, 0).unwrap();
        assert_eq!(seated(|seat| memory::allocate(seat, 16)), Ok(POINTER));
        let copy = Copy::flat(to, POINTER as usize, 16, DEVICE_TO_HOST, 0, false);
        seated(|seat| copy.make(seat)).unwrap();
        assert_eq!(seated(|seat| memory::free(seat, POINTER)), Err(HipError::LOST));
        assert_eq!(seated(|seat| memory::allocate(seat, 16)), Err(HipError::LOST));
        assert_eq!(other.accept().unwrap_err().kind(), ErrorKind::WouldBlock);
        worker.join().unwrap();
        host_memory::unregister(to).unwrap();
    }

    #[test]
    fn a_call_of_which_each_worker_dies_says_so() {
        let folder = tempfile::tempdir().unwrap();
        let paths = [0, 1, 2].map(|number| folder.path().join(number.to_string()));
        let workers = paths.each_ref().map(|path| {
            stand_in::listen(path, |mut worker| {
                worker.expect::<calls::Malloc>();
            })
        });
        let all = paths.map(|path| format!("unix:{}", path.display())).join(",");
        // SAFETY: no other test of this process looks at its environment by C.
        unsafe { std::env::set_var("ROCWORKER_HIP_REMOTE", all) };
        assert_eq!(seated(|seat| memory::allocate(seat, 16)), Err(HipError::LOST));
        let said = process::said();
        assert!(said.iter().any(|said| said.contains("One HIP call has lost 3 connections")), "{said:?}");
        for worker in workers {
            worker.join().unwrap();
        }
    }

    #[test]
    fn a_success_takes_the_last_error_away_until_rocm_7() {
        each(|release| {
            keep_result(HipError::INVALID_VALUE.0);
            keep_result(0);
            assert_eq!(last_error(), if release < 7 { 0 } else { HipError::INVALID_VALUE.0 });
            take_last_error();
            keep_result(HipError::NOT_READY.0);
            assert_eq!(take_last_error(), if release < 7 { HipError::NOT_READY.0 } else { 0 });
            assert_eq!((last_error(), take_last_result()), (0, HipError::NOT_READY.0));
        });
    }
}
