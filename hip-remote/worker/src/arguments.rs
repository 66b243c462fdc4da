//! The command line.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;

use clap::{Parser, Subcommand};
use hip_transport::PORT;
use runc_amd_wrapper::paths::Paths;

/// Serve this machine's AMD GPUs to HIP programs on other machines
///
/// Each client has a process of its own. Beyond this machine's loopback address only clients with a key are served.
#[derive(Clone, Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub serve: Serve,
}

#[derive(Clone, Debug, Subcommand)]
pub enum Command {
    /// Make DIR/worker.key for this worker and DIR/client.key for its clients
    Key {
        /// The folder for both files; it is made where it is missing
        dir: PathBuf,
    },
}

#[derive(Clone, Debug, clap::Args)]
pub struct Serve {
    /// Listen on this port [default: 50051]
    #[arg(short, long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Listen on this address, with or without a port; it may be given several times [default: 127.0.0.1]
    #[arg(long, value_name = "ADDRESS", value_parser = address)]
    pub listen: Vec<Listen>,
    /// Listen on a Unix socket, and on TCP only with --listen or --port; its permissions say who may connect
    #[arg(long, value_name = "PATH")]
    pub unix: Option<PathBuf>,
    /// The worker's key: clients beyond this machine must have the one that was made with it
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// How many clients are served at the same time
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..))]
    pub clients: u32,
    /// The most memory that a client may allocate on each GPU: 1MiB or more, such as 8GiB [default: as much as there is]
    #[arg(long, value_name = "BYTES", value_parser = memory)]
    pub memory: Option<u64>,
    /// How many GPUs each client gets [default: all; one where the policy says `sharing: exclusive`]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub gpus: Option<u32>,
    /// How many bytes of a client's copies may be under way, 2MiB to 1GiB: more for a slower network
    #[arg(long, value_name = "BYTES", default_value = "8MiB", value_parser = window)]
    pub in_flight: u64,
    /// After how many seconds without a message a client is taken for dead; clients give a worker 8 s
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u32).range(1..))]
    pub silence: u32,
    /// After how many seconds of one wait for a GPU its client is ended [default: never]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u32).range(1..))]
    pub longest_wait: Option<u32>,
    /// The HIP library [default: libamdhip64 of this machine, release 7, 6 or 5]
    #[arg(long, value_name = "PATH")]
    pub hip_library: Option<PathBuf>,
    /// Where code objects are kept for the next load [default: /var/cache/rocworker-hip; ~/.cache/rocworker-hip if not root]
    #[arg(long, value_name = "DIR", default_value_os_t = cache())]
    #[arg(hide_default_value = true)]
    pub cache: PathBuf,
    /// The most bytes of code objects that are kept
    #[arg(long, value_name = "BYTES", default_value = "4GiB", value_parser = bytes)]
    pub cache_size: u64,
    /// Where rocworker-exporter finds the worker's counts; of another path it knows nothing
    #[arg(long, value_name = "FILE", default_value = inventory::hip_worker::PATH)]
    pub metrics: PathBuf,
    /// The folder in which the container wrapper's policy and leases are: tests have a machine of their own
    #[arg(long, value_name = "DIR", default_value = "/", hide = true)]
    pub root: PathBuf,
    /// Serve the client whose connection is the standard input; the worker itself starts such processes
    #[arg(long, hide = true)]
    pub serve_one: bool,
    /// Open the HIP library and say what is wrong with it; the worker itself starts such a process
    #[arg(long, hide = true)]
    pub try_library: bool,
}

/// An address with a port, or without one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Listen {
    address: IpAddr,
    port: Option<u16>,
}

impl Serve {
    /// The addresses to listen on.
    ///
    /// # Errors
    /// A port was named that no address would have.
    pub fn addresses(&self) -> Result<Vec<SocketAddr>, String> {
        if self.port.is_some() && !self.listen.is_empty() && self.listen.iter().all(|one| one.port.is_some())
        {
            return Err(
                "each --listen has a port of its own: leave --port out, or name an address without one"
                    .to_owned(),
            );
        }
        let loopback = Listen { address: Ipv4Addr::LOCALHOST.into(), port: None };
        let listen = if self.listen.is_empty() && (self.unix.is_none() || self.port.is_some()) {
            &[loopback]
        } else {
            self.listen.as_slice()
        };
        let port = self.port.unwrap_or(PORT);
        Ok(listen.iter().map(|listen| SocketAddr::new(listen.address, listen.port.unwrap_or(port))).collect())
    }

    /// The container wrapper's files. Processes and GPUs are this machine's.
    pub fn paths(&self) -> Paths {
        let mut paths = Paths::system();
        for path in [&mut paths.policy, &mut paths.health, &mut paths.lease.run] {
            *path = self.root.join(path.strip_prefix("/").unwrap_or(path));
        }
        paths
    }

    pub fn silence(&self) -> Duration {
        Duration::from_secs(self.silence.into())
    }
}

/// Other users than root may not write to /var/cache.
fn cache() -> PathBuf {
    let folder = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let own = || folder("XDG_CACHE_HOME").or_else(|| Some(folder("HOME")?.join(".cache")));
    let user = if rustix::process::geteuid().is_root() { None } else { own() };
    user.unwrap_or_else(|| "/var/cache".into()).join("rocworker-hip")
}

fn address(text: &str) -> Result<Listen, String> {
    if let Ok(address) = text.parse::<SocketAddr>() {
        return Ok(Listen { address: address.ip(), port: Some(address.port()) });
    }
    let bare = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text);
    let address = bare
        .parse()
        .map_err(|_| "write an IP address, such as 0.0.0.0, [::]:50051 or 10.0.0.5".to_owned())?;
    Ok(Listen { address, port: None })
}

fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = text.get(digits.len()..).unwrap_or_default();
    let shift = match unit {
        "" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return Err("write a number of bytes, or one with KiB, MiB, GiB or TiB".to_owned()),
    };
    let number: u64 = digits.parse().map_err(|_| "write a number of bytes, such as 8GiB".to_owned())?;
    number.checked_mul(1 << shift).ok_or_else(|| "that is more than any machine has".to_owned())
}

/// A limit below this is one whose unit was forgotten.
fn memory(text: &str) -> Result<u64, String> {
    let memory = bytes(text)?;
    if memory >= 1 << 20 { Ok(memory) } else { Err("write 1MiB or more, such as 8GiB".to_owned()) }
}

/// The smallest window lets the next chunk go while the last batch waits for its event.
fn window(text: &str) -> Result<u64, String> {
    let range = 2 << 20..=1 << 30;
    let window = bytes(text)?;
    if range.contains(&window) { Ok(window) } else { Err("write 2MiB to 1GiB".to_owned()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Serve {
        Arguments::try_parse_from(line.split(' ')).unwrap().serve
    }

    #[test]
    fn a_worker_listens_on_loopback_unless_it_is_told_otherwise() {
        for (line, expected) in [
            ("worker", vec!["127.0.0.1:50051"]),
            ("worker -p 7", vec!["127.0.0.1:7"]),
            ("worker --unix /s", vec![]),
            ("worker --unix /s -p 7", vec!["127.0.0.1:7"]),
            ("worker --listen 0.0.0.0 --listen [::1]:9 -p 7", vec!["0.0.0.0:7", "[::1]:9"]),
            ("worker --listen [::]", vec!["[::]:50051"]),
        ] {
            let addresses: Vec<String> =
                parse(line).addresses().unwrap().iter().map(ToString::to_string).collect();
            assert_eq!(addresses, expected, "{line}");
        }
        assert!(
            parse("worker --listen 127.0.0.1:8 -p 7").addresses().is_err(),
            "a port that nothing listens on"
        );
    }

    #[test]
    fn lengths_have_units_and_bounds() {
        for (text, expected) in
            [("17", Some(17)), ("8GiB", Some(8 << 30)), ("8GB", None), ("", None), ("99999999TiB", None)]
        {
            assert_eq!(bytes(text).ok(), expected, "{text}");
        }
        assert!(memory("0").is_err() && memory("8").is_err() && memory("1MiB").is_ok());
        assert!(window("1MiB").is_err() && window("2MiB").is_ok() && window("2GiB").is_err());
    }
}
