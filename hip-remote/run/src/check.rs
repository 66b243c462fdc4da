//! `--check`: what each worker has.

use std::fmt::Write as _;
use std::io::{IoSlice, Write as _};
use std::time::{Duration, Instant};

use hip_abi::errors;
use hip_abi::properties::{Layout, range};
use hip_abi::release::Release;
use hip_protocol::calls::{Call, DeviceCount, DeviceProperties, Hello, MemoryInfo, SetDevice, Welcome};
use hip_protocol::envelope::NO_REPLY;
use hip_protocol::message;
use hip_transport::{Address, ClientKey, Error, Reader, Unanswered, Writer, ask, connect, printable};

/// A worker that does not answer for so long is told as one.
const TIME: Duration = Duration::from_secs(10);

/// Prints each worker's devices, also when another one does not answer.
pub(crate) fn workers(addresses: &[Address], key: Option<&ClientKey>) -> Result<(), String> {
    let mut failures = Vec::new();
    for address in addresses {
        match worker(address, key) {
            Ok(text) => {
                match std::io::stdout().write_all(text.as_bytes()) {
                    // Its reader has what it wants.
                    Err(why) if why.kind() == std::io::ErrorKind::BrokenPipe => return Ok(()),
                    written => written.map_err(|why| format!("the output broke: {why}"))?,
                }
            }
            Err(why) => failures.push(why.to_string()),
        }
    }
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\nrocworker-hip-run: ")) }
}

fn worker(address: &Address, key: Option<&ClientKey>) -> Result<String, Error> {
    let (reader, writer) = connect(address, key, TIME)?;
    let mut worker = Worker { reader, writer };
    let token = key.map(|key| key.token(address)).unwrap_or_default();
    let (welcome, version) =
        worker.ask(&Hello { token, pid: std::process::id(), memory: 0 }, b"rocworker-hip-run --check")?;
    let Welcome { driver, devices, .. } = welcome;
    if devices == 0 {
        // The worker's library has a reason.
        worker.ask(&DeviceCount {}, b"")?;
        return Err(Error::Failed(format!("{} has no device", worker.reader.peer())));
    }
    let mut text = format!(
        "{address}: rocworker-hip-worker {}, HIP {}, {devices} {}\n",
        printable(&version),
        hip_version(driver),
        if devices == 1 { "device" } else { "devices" }
    );
    for device in 0..devices {
        let (properties, bytes) = worker.ask(&DeviceProperties { device }, b"")?;
        let layout = Layout::of_number(properties.layout);
        let field = |name| {
            let range = layout.and_then(|layout| range(layout, name));
            range.and_then(|range| bytes.get(range)).map(printable).unwrap_or_else(|| "?".to_owned())
        };
        worker.tell(&SetDevice { device })?;
        let (memory, _) = worker.ask(&MemoryInfo {}, b"")?;
        let (name, target) = (field("name"), field("gcnArchName"));
        let _ = writeln!(
            text,
            "  {device}  {name}, {target}, {} of {} free",
            gib(memory.free),
            gib(memory.total)
        );
    }
    Ok(text)
}

struct Worker {
    reader: Reader,
    writer: Writer,
}

impl Worker {
    fn tell<C: Call>(&mut self, call: &C) -> Result<(), Error> {
        let mut bytes = Vec::new();
        message::request(call, 0, NO_REPLY, 0, &[], &mut bytes);
        self.writer.write(&mut [IoSlice::new(&bytes)])
    }

    /// A call's reply and its variable bytes.
    fn ask<C: Call>(&mut self, call: &C, variable: &[u8]) -> Result<(C::Reply, Vec<u8>), Error> {
        self.reader.set_deadline(Some(Instant::now() + TIME));
        ask(&mut self.reader, &mut self.writer, call, variable).map_err(|why| match why {
            Unanswered::Connection(why) => why,
            Unanswered::Hip(status) => {
                let name = errors::name(Release::Rocm7, status).to_string_lossy();
                Error::Failed(format!("{} answers {name} ({status})", self.reader.peer()))
            }
        })
    }
}

/// HIP counts 10,000,000 a major and 100,000 a minor version (hip_version.h).
fn hip_version(number: i32) -> String {
    format!("{}.{}.{}", number / 10_000_000, number / 100_000 % 100, number % 100_000)
}

fn gib(bytes: u64) -> String {
    let tenths = bytes / (1024 * 1024 * 1024 / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_workers_numbers_are_shown_as_people_read_them() {
        assert_eq!(hip_version(50_221_153), "5.2.21153");
        assert_eq!(gib(64 << 30), "64.0 GiB");
    }
}
