//! What kernels print.

unsafe extern "C" {
    static stdout: *mut libc::FILE;
}

/// Prints by the program's own stream, so that its order with the program's printf is the program's.
pub fn print(bytes: &[u8]) {
    // SAFETY: the C library's stream lives as long as the process, and the bytes are there.
    unsafe { libc::fwrite(bytes.as_ptr().cast(), 1, bytes.len(), stdout) };
}
