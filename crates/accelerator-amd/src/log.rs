//! Sentences for the hypervisor's log.

use std::ffi::{CString, c_char};
use std::mem;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The hypervisor's function: a level and a message, both C strings that are valid during the call.
pub type LogCallback = unsafe extern "C" fn(*const c_char, *const c_char);

/// The address of the hypervisor's function; 0 where there is none. A lock could be held while the process is forked.
static CALLBACK: AtomicUsize = AtomicUsize::new(0);

/// Has messages go to this function from now on, or to none.
pub(crate) fn register(callback: Option<LogCallback>) {
    CALLBACK.store(callback.map_or(0, |callback| callback as usize), Ordering::Release);
}

/// Hands a sentence to the hypervisor as a warning. The caller holds no lock of this library: the callback may call back.
pub(crate) fn warn(sentence: &str) {
    let address = CALLBACK.load(Ordering::Acquire);
    // SAFETY: an Option of a function is its address, or 0, and `register` stored it.
    let callback: Option<LogCallback> = unsafe { mem::transmute(address) };
    let Some(callback) = callback else { return };
    if let Ok(message) = CString::new(harmless(sentence)) {
        // SAFETY: the hypervisor registered the function for these two C strings, which live until it returns.
        unsafe { callback(c"WARN".as_ptr(), message.as_ptr()) };
    }
}

/// A sentence on one line and without the word by which the hypervisor's log ends it. A file's content may have both.
fn harmless(sentence: &str) -> String {
    sentence.replace(char::is_control, "?").replace("FATAL", "fatal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_sentence_has_a_second_line_or_the_word_that_ends_a_hypervisor() {
        assert_eq!(harmless("a FATAL\nname\0"), "a fatal?name?");
    }
}
