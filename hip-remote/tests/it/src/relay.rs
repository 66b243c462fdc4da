//! A slow or broken network between a client and a worker: netem is not in every kernel.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{sleep, spawn};
use std::time::{Duration, Instant};

#[derive(Debug)]
pub struct Relay {
    pub address: String,
    network: Arc<Network>,
}

#[derive(Debug, Default)]
struct Network {
    cut: AtomicBool,
    bytes: AtomicU64,
}

impl Relay {
    /// To a worker's TCP address. Each byte arrives `delay` after it was sent, whatever the rate.
    pub fn to(worker: &str, delay: Duration) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let network = Arc::new(Network::default());
        let (worker, shared) = (worker.to_owned(), Arc::clone(&network));
        spawn(move || {
            for client in listener.incoming() {
                let (client, Ok(worker)) = (client.unwrap(), TcpStream::connect(&worker)) else { continue };
                for (from, to) in [(client.try_clone(), worker.try_clone()), (Ok(worker), Ok(client))] {
                    direction(from.unwrap(), to.unwrap(), delay, &shared);
                }
            }
        });
        Self { address, network }
    }

    /// Nothing arrives any more, as if the cable were out: no byte, and no end of a connection.
    pub fn cut(&self) {
        self.network.cut.store(true, Ordering::Relaxed);
    }

    /// What was sent meanwhile arrives now.
    pub fn heal(&self) {
        self.network.cut.store(false, Ordering::Relaxed);
    }

    /// How many bytes went through, both ways together.
    pub fn bytes(&self) -> u64 {
        self.network.bytes.load(Ordering::Relaxed)
    }
}

fn direction(from: TcpStream, to: TcpStream, delay: Duration, network: &Arc<Network>) {
    to.set_nodelay(true).unwrap();
    let (sender, receiver) = channel();
    let (taking, giving) = (Arc::clone(network), Arc::clone(network));
    spawn(move || take(from, &sender, &taking));
    spawn(move || give(to, delay, &receiver, &giving));
}

/// An empty part is the connection's end.
type Part = (Instant, Vec<u8>);

fn take(mut from: TcpStream, parts: &Sender<Part>, network: &Network) {
    let mut buffer = vec![0; 256 * 1024];
    loop {
        let read = from.read(&mut buffer).unwrap_or(0);
        network.bytes.fetch_add(read as u64, Ordering::Relaxed);
        if parts.send((Instant::now(), buffer[..read].to_vec())).is_err() || read == 0 {
            return;
        }
    }
}

fn give(mut to: TcpStream, delay: Duration, parts: &Receiver<Part>, network: &Network) {
    for (sent, part) in parts {
        sleep((sent + delay).saturating_duration_since(Instant::now()));
        while network.cut.load(Ordering::Relaxed) {
            sleep(Duration::from_millis(5));
        }
        if part.is_empty() || to.write_all(&part).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
}
