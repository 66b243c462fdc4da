//! What `cargo xtask bench hip-remote` measures: HIP over the network, beside raw sockets and beside the library itself, in
//! turns of one run. Prints one JSON object of medians: times in nanoseconds, rates in bytes for each second.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread::spawn;
use std::time::{Duration, Instant};

use hip_remote_tests::{Program, Relay, Worker, ended};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use serde_json::{Value, json};

const ROUNDS: usize = 5;
const SIZES: [usize; 2] = [8 << 20, 64 << 20];
/// Of `speed`, for each size.
const COPIES: usize = 40;
/// A request without fields, and a reply with two numbers of 64 bits.
const REQUEST: usize = 24;
const REPLY: usize = 40;
/// Half of 130 ms.
const EACH_WAY: Duration = Duration::from_millis(65);

/// Figures by their names.
type Figures = BTreeMap<String, f64>;

fn main() {
    let speed = test_gpu::compile("speed");
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    Worker::make_key(&keys);
    let worker = Worker::start();
    let port = worker.tcp();
    let encrypted = Worker::with(["-p", "0", "--key", keys.join("worker.key").to_str().unwrap()], []);
    let encrypted_port = encrypted.tcp();
    let plain = Program::on(&port);
    let client_key = keys.join("client.key");
    let tls = Program { worker: &encrypted_port, key: Some(&client_key) };
    let mut places: BTreeMap<&str, Vec<Figures>> = BTreeMap::new();
    for _ in 0..ROUNDS {
        let mut add = |place, figures| places.entry(place).or_default().push(figures);
        add("raw", raw(tcp_pair, true));
        add("plain", remote(&plain, &speed, &["sync", "one-way"]));
        add("rustls", raw(tls_pair, false));
        add("tls", remote(&tls, &speed, &[]));
        add("local", local(&speed));
    }
    let relay = Relay::to(&port, EACH_WAY);
    let distant = said(Program::on(&relay.address).command([speed.as_os_str(), "pipeline".as_ref()]));
    places.insert("distant", vec![distant]);
    let all: serde_json::Map<String, Value> =
        places.into_iter().map(|(place, rounds)| (place.to_owned(), json!(medians(&rounds)))).collect();
    println!("{}", Value::from(all));
}

fn medians(rounds: &[Figures]) -> Figures {
    let of = |name: &String| median(rounds.iter().map(|figures| figures[name]).collect());
    rounds[0].keys().map(|name| (name.clone(), of(name))).collect()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// What `speed` measures with the worker's GPU.
fn remote(program: &Program<'_>, speed: &Path, more: &[&str]) -> Figures {
    let sizes = SIZES.map(|size| size.to_string());
    let words = more.iter().copied().chain(sizes.iter().map(String::as_str));
    said(program.command([speed.as_os_str()].into_iter().chain(words.map(AsRef::as_ref))))
}

/// What `speed` measures with the library itself, in its own process.
fn local(speed: &Path) -> Figures {
    let mut command = Command::new(speed);
    command.args(["sync", "one-way", "pipeline"]).args(SIZES.map(|size| size.to_string()));
    command.env("LD_LIBRARY_PATH", test_gpu::built::folder());
    said(command)
}

/// The figures that `speed` prints: an object a line, of which one about a copy has its size.
fn said(mut command: Command) -> Figures {
    let mut figures = Figures::new();
    for line in ended(&mut command).well().lines() {
        let Value::Object(mut line) = serde_json::from_str(line).unwrap() else { panic!("{line}") };
        let size = line.remove("bytes").map_or_else(String::new, |bytes| format!("_{bytes}"));
        for (name, value) in line {
            figures.insert(format!("{name}{size}"), value.as_f64().unwrap());
        }
    }
    figures
}

/// Raw sockets, or rustls' streams on them, that do what `speed` does through the protocol.
fn raw<S: Read + Write + Send + 'static>(pair: fn() -> (S, S), pings: bool) -> Figures {
    let mut figures = Figures::new();
    if pings {
        figures.insert("sync_ns".to_owned(), exchanges(pair(), REQUEST, REPLY, 20_000));
    }
    for size in SIZES {
        let rate = |ns: f64| size as f64 / ns * 1e9;
        figures.insert(format!("h2d_{size}"), rate(exchanges(pair(), REQUEST + size, REPLY, COPIES)));
        figures.insert(format!("d2h_{size}"), rate(exchanges(pair(), REQUEST, REPLY + size, COPIES)));
    }
    figures
}

/// The median time from a request's first byte to its reply's last.
fn exchanges<S: Read + Write + Send + 'static>(
    (mut asks, mut answers): (S, S),
    request: usize,
    reply: usize,
    times: usize,
) -> f64 {
    let answering = spawn(move || {
        let (mut taken, given) = (vec![0; request], vec![1; reply]);
        while answers.read_exact(&mut taken).is_ok() {
            answers.write_all(&given).and_then(|()| answers.flush()).unwrap();
        }
    });
    let (given, mut taken) = (vec![1; request], vec![0; reply]);
    let took = (0..times)
        .map(|_| {
            let began = Instant::now();
            asks.write_all(&given).and_then(|()| asks.flush()).unwrap();
            asks.read_exact(&mut taken).unwrap();
            began.elapsed().as_nanos() as f64
        })
        .collect();
    drop(asks);
    answering.join().unwrap();
    median(took)
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let asks = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (answers, _) = listener.accept().unwrap();
    asks.set_nodelay(true).unwrap();
    answers.set_nodelay(true).unwrap();
    (asks, answers)
}

type Tls<C> = rustls::StreamOwned<C, TcpStream>;

fn tls_pair() -> (Box<dyn Stream>, Box<dyn Stream>) {
    let made = rcgen::generate_simple_self_signed(vec!["worker".into()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let mut roots = rustls::RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let server =
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![certificate], key);
    let client = rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let client = rustls::ClientConnection::new(Arc::new(client), "worker".try_into().unwrap()).unwrap();
    let server = rustls::ServerConnection::new(Arc::new(server.unwrap())).unwrap();
    let (asks, answers) = tcp_pair();
    (Box::new(Tls::new(client, asks)), Box::new(Tls::new(server, answers)))
}

trait Stream: Read + Write + Send {}

impl<S: Read + Write + Send> Stream for S {}
