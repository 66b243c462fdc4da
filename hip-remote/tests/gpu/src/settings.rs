//! What the environment says of this GPU.

use std::sync::LazyLock;

fn number(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    match parsed {
        Ok(number) => Some(number),
        Err(_) => {
            eprintln!("test GPU: {name} is {text}: set it to a number, or unset it");
            std::process::abort();
        }
    }
}

pub struct Settings {
    /// `TEST_GPU_DEVICES`: how many devices there are.
    pub devices: usize,
    /// `TEST_GPU_MEMORY`: the bytes of memory of each.
    pub memory: u64,
    /// `TEST_GPU_BASE`: where the first allocation is.
    pub base: u64,
    /// `TEST_GPU_SLOW_MS`: how long each launch waits before it runs.
    pub slow: u64,
    /// `TEST_GPU_CRASH_AFTER`: the launch at which the process aborts, counted from 1.
    pub crash_after: u64,
}

pub static SETTINGS: LazyLock<Settings> = LazyLock::new(|| Settings {
    devices: number("TEST_GPU_DEVICES").unwrap_or(1) as usize,
    memory: number("TEST_GPU_MEMORY").unwrap_or(16 << 30),
    // Far from where Linux puts programs, libraries and stacks, so that another process can have the addresses too.
    base: number("TEST_GPU_BASE")
        .unwrap_or(0x6000_0000_0000 + u64::from(std::process::id() % 0x1000) * 0x1_0000_0000),
    slow: number("TEST_GPU_SLOW_MS").unwrap_or(0),
    crash_after: number("TEST_GPU_CRASH_AFTER").unwrap_or(0),
});
