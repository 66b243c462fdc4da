//! Threads of the library take no signal: the program's handlers run in the program's threads.

use std::mem::MaybeUninit;
use std::ptr;

/// Runs `start`, whose new threads block all signals.
pub fn without<T>(start: impl FnOnce() -> T) -> T {
    let mut before = MaybeUninit::<libc::sigset_t>::uninit();
    let mut all = MaybeUninit::<libc::sigset_t>::uninit();
    // SAFETY: sigfillset writes the set that pthread_sigmask reads; pthread_sigmask writes the set before.
    let blocked = unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr())
    };
    let started = start();
    if blocked == 0 {
        // SAFETY: pthread_sigmask succeeded, so that the set before is written.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), ptr::null_mut()) };
    }
    started
}
