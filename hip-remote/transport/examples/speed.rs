//! A connection's speed beside a raw socket's and a rustls stream's: `cargo run --release --example speed`.

use std::io::{IoSlice, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::spawn;
use std::time::{Duration, Instant};

use hip_protocol::calls::{Call, Ping};
use hip_protocol::envelope::{CHUNK, Envelope};
use hip_protocol::message::{self, MAX_CHUNK, PREFIX};
use hip_transport::{Address, Reader, WorkerKey, Writer, accept, connect};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};

const ROUNDS: usize = 20_000;
const TOTAL: usize = 1 << 30;
const PART: usize = 8 << 20;

fn main() {
    let made = rcgen::generate_simple_self_signed(vec!["x".into()]).unwrap();
    let der = made.cert.der().clone();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(der.clone()).unwrap();
    let private = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(made.signing_key.serialize_der()));
    let server = Arc::new(
        rustls::ServerConfig::builder().with_no_client_auth().with_single_cert(vec![der], private).unwrap(),
    );
    let client =
        Arc::new(rustls::ClientConfig::builder().with_root_certificates(roots).with_no_client_auth());
    let tls_pair = || {
        let (a, b) = pair();
        let a = rustls::StreamOwned::new(
            rustls::ClientConnection::new(Arc::clone(&client), "x".try_into().unwrap()).unwrap(),
            a,
        );
        let b = rustls::StreamOwned::new(rustls::ServerConnection::new(Arc::clone(&server)).unwrap(), b);
        (a, b)
    };
    for _ in 0..3 {
        let (a, b) = pair();
        let raw = stream_ping(a, b);
        let (a, b) = pair();
        let raw_bulk = stream_bulk(a, b);
        let ours = ping(ends(None));
        let bulk_ours = bulk(ends(None));
        println!(
            "plain: raw {raw:?} {raw_bulk:.2} GiB/s, ours {ours:?} {bulk_ours:.2} GiB/s: {:.3} {:.3}",
            ours.as_secs_f64() / raw.as_secs_f64(),
            bulk_ours / raw_bulk
        );
        let (a, b) = tls_pair();
        let raw = stream_ping(a, b);
        let (a, b) = tls_pair();
        let raw_bulk = stream_bulk(a, b);
        let key = WorkerKey::make().unwrap();
        let ours = ping(ends(Some(&key)));
        let bulk_ours = bulk(ends(Some(&key)));
        println!(
            "TLS: rustls {raw:?} {raw_bulk:.2} GiB/s, ours {ours:?} {bulk_ours:.2} GiB/s: {:.3} {:.3}",
            ours.as_secs_f64() / raw.as_secs_f64(),
            bulk_ours / raw_bulk
        );
    }
}

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let a = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let b = listener.accept().unwrap().0;
    a.set_nodelay(true).unwrap();
    b.set_nodelay(true).unwrap();
    (a, b)
}

fn stream_ping(mut a: impl Read + Write, mut b: impl Read + Write + Send + 'static) -> Duration {
    let echo = spawn(move || {
        let mut bytes = [0; PREFIX + 40];
        while b.read_exact(&mut bytes).is_ok() {
            b.write_all(&bytes[..PREFIX]).unwrap();
            b.flush().unwrap();
        }
    });
    let mut bytes = [0; PREFIX + 40];
    let time = median(|| {
        a.write_all(&bytes).unwrap();
        a.flush().unwrap();
        a.read_exact(&mut bytes[..PREFIX]).unwrap();
    });
    drop(a);
    echo.join().unwrap();
    time
}

fn median(mut round: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..ROUNDS)
        .map(|_| {
            let begin = Instant::now();
            round();
            begin.elapsed()
        })
        .collect();
    times.sort();
    times[ROUNDS / 2]
}

fn stream_bulk(mut a: impl Read + Write, mut b: impl Read + Write + Send + 'static) -> f64 {
    let taker = spawn(move || {
        let mut bytes = vec![0; PART];
        for _ in 0..TOTAL / PART {
            for piece in bytes.chunks_mut(MAX_CHUNK) {
                b.read_exact(piece).unwrap();
            }
        }
        b.write_all(&[1]).unwrap();
        b.flush().unwrap();
    });
    let bytes = vec![1; PART];
    let begin = Instant::now();
    for _ in 0..TOTAL / PART {
        a.write_all(&bytes).unwrap();
    }
    a.flush().unwrap();
    a.read_exact(&mut [0]).unwrap();
    taker.join().unwrap();
    TOTAL as f64 / begin.elapsed().as_secs_f64() / (1u64 << 30) as f64
}

fn ends(key: Option<&WorkerKey>) -> ((Reader, Writer), (Reader, Writer)) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = Address::parse(&listener.local_addr().unwrap().to_string()).unwrap();
    let worker = key.cloned();
    let worker = spawn(move || {
        accept(listener.accept().unwrap().0.into(), worker.as_ref(), Duration::from_secs(5)).unwrap()
    });
    let mut a = connect(&address, key.map(WorkerKey::client).as_ref(), Duration::from_secs(5)).unwrap();
    a.1.write(&mut [IoSlice::new(&request(0))]).unwrap();
    let mut b = worker.join().unwrap();
    b.0.next().unwrap();
    (a, b)
}

fn request(variable: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    message::request(&Ping {}, 1, 0, 0, &vec![0; variable], &mut bytes);
    bytes
}

fn ping(((mut reader, mut writer), (mut from, mut to)): ((Reader, Writer), (Reader, Writer))) -> Duration {
    let echo = spawn(move || {
        while let Ok(message) = from.next() {
            from.bytes(message.length).unwrap();
            to.write(&mut [IoSlice::new(&request(0))]).unwrap();
        }
    });
    let bytes = request(40);
    let time = median(|| {
        writer.write(&mut [IoSlice::new(&bytes)]).unwrap();
        reader.next().unwrap();
    });
    writer.shutdown().now();
    echo.join().unwrap();
    time
}

fn bulk(((mut reader, mut writer), (mut from, mut to)): ((Reader, Writer), (Reader, Writer))) -> f64 {
    let taker = spawn(move || {
        let mut bytes = vec![0; MAX_CHUNK];
        for _ in 0..TOTAL / MAX_CHUNK {
            let message = from.next().unwrap();
            from.read_exact(&mut bytes[..message.length]).unwrap();
        }
        to.write(&mut [IoSlice::new(&request(0))]).unwrap();
    });
    let bytes = vec![1; PART];
    let prefix = message::prefix(Ping::OP, 9, Envelope { flags: CHUNK, ..Envelope::default() }, MAX_CHUNK);
    let begin = Instant::now();
    for _ in 0..TOTAL / PART {
        for piece in bytes.chunks(MAX_CHUNK) {
            writer.write(&mut [IoSlice::new(&prefix), IoSlice::new(piece)]).unwrap();
        }
    }
    reader.next().unwrap();
    taker.join().unwrap();
    TOTAL as f64 / begin.elapsed().as_secs_f64() / (1u64 << 30) as f64
}
