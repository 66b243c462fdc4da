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

/// The GPUs that `ROCR_VISIBLE_DEVICES` leaves, up to its first entry that names none, as ROCr reads it.
fn shown(machine: usize) -> Vec<usize> {
    let Ok(list) = std::env::var("ROCR_VISIBLE_DEVICES") else { return (0..machine).collect() };
    let indexes = list.split(',').map_while(|index| index.parse().ok());
    indexes.take_while(|index| *index < machine).collect()
}

pub struct Settings {
    /// Which of the machine's GPUs are shown. `TEST_GPU_DEVICES` is how many it has.
    pub devices: Vec<usize>,
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
    devices: shown(number("TEST_GPU_DEVICES").unwrap_or(1) as usize),
    memory: number("TEST_GPU_MEMORY").unwrap_or(16 << 30),
    // Far from where Linux puts programs, libraries and stacks, so that another process can have the addresses too.
    base: number("TEST_GPU_BASE")
        .unwrap_or(0x6000_0000_0000 + u64::from(std::process::id() % 0x1000) * 0x1_0000_0000),
    slow: number("TEST_GPU_SLOW_MS").unwrap_or(0),
    crash_after: number("TEST_GPU_CRASH_AFTER").unwrap_or(0),
});
