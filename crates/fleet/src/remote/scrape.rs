//! A small client of the exporter: whether it answers.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, ToSocketAddrs};
use std::thread;
use std::time::{Duration, Instant};

/// The limit for a whole scrape, which takes 20 ms at most (docs/monitoring.md) unless the machine is under load.
const PATIENCE: Duration = Duration::from_secs(5);

/// The pause between two tries.
const PAUSE: Duration = Duration::from_millis(100);

/// How many bytes of the answer are read: its first lines show that it is the exporter's.
const MOST: usize = 64 << 10;

/// The address by which a client on the same machine reaches a server that listens on `listen`.
pub fn nearest(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, listen.port())
}

/// Asks until it answers or the time is over; at least once. HTTP's status is 200 or 401: one that wants a password
/// answers too. Of TLS only the connection is tried.
///
/// # Errors
/// Why it has not answered, in a sentence without the address.
pub fn scrape(address: SocketAddr, tls: bool, wait: Duration) -> Result<(), String> {
    let until = Instant::now() + wait;
    loop {
        let answered = once(address, tls, PATIENCE);
        if answered.is_ok() || Instant::now() >= until {
            return answered;
        }
        thread::sleep(PAUSE);
    }
}

/// Asks a host by its name, each of its addresses once until one answers.
///
/// # Errors
/// The host's name has no address, or [`scrape`] fails at each.
pub fn scrape_by_name(name: &str, port: u16, tls: bool) -> Result<(), String> {
    let addresses = (name, port).to_socket_addrs().map_err(|error| error.to_string())?;
    let mut why = "the name has no address".to_owned();
    for address in addresses {
        match scrape(address, tls, Duration::ZERO) {
            Err(error) => why = error,
            answered => return answered,
        }
    }
    Err(why)
}

fn once(address: SocketAddr, tls: bool, patience: Duration) -> Result<(), String> {
    let until = Instant::now() + patience;
    let failed = |error: std::io::Error| match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => late(patience),
        _ => error.to_string(),
    };
    let mut stream = TcpStream::connect_timeout(&address, patience).map_err(failed)?;
    if tls {
        return Ok(());
    }
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.set_write_timeout(Some(patience)).map_err(failed)?;
    stream.write_all(request.as_bytes()).map_err(failed)?;
    let (mut answer, mut part) = (Vec::new(), [0; 8192]);
    while answer.len() < MOST {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(late(patience));
        }
        stream.set_read_timeout(Some(left)).map_err(failed)?;
        match stream.read(&mut part) {
            Ok(0) => break,
            Ok(read) => answer.extend(part.iter().take(read)),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(error)),
        }
    }
    judged(&String::from_utf8_lossy(&answer))
}

fn late(patience: Duration) -> String {
    format!("it did not answer within {} s", patience.as_secs_f32())
}

fn judged(answer: &str) -> Result<(), String> {
    let status: Option<u16> =
        answer.strip_prefix("HTTP/1.").and_then(|rest| rest.get(2..5)).and_then(|it| it.parse().ok());
    match status {
        Some(200) if answer.contains("\nrocm_") => Ok(()),
        Some(200) => Err("the server returns no AMD GPU metrics".to_owned()),
        Some(401) => Ok(()),
        Some(other) => Err(format!("the server answers with HTTP status {other}")),
        None => Err("the server does not speak HTTP".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn an_answer_counts_when_it_is_the_exporters() {
        for (answer, expected) in [
            ("HTTP/1.1 200 OK\r\n\r\n# HELP rocm_x\nrocm_x 1\n", Ok(())),
            ("HTTP/1.1 401 Unauthorized\r\n\r\n", Ok(())),
            ("HTTP/1.1 200 OK\r\n\r\nnode_load1 1\n", Err("returns no AMD GPU metrics")),
            ("HTTP/1.1 503 Busy\r\n\r\n", Err("HTTP status 503")),
            ("SSH-2.0-OpenSSH\r\n", Err("does not speak HTTP")),
        ] {
            match (judged(answer), expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(expected)) => assert!(error.contains(expected), "{error}"),
                (got, _) => panic!("{answer:?}: {got:?}"),
            }
        }
    }

    #[test]
    fn an_answer_that_drips_in_ends_with_the_whole_scrapes_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let drips = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            while stream.write_all(b"x").is_ok() {
                thread::sleep(Duration::from_millis(20));
            }
        });
        let before = Instant::now();
        let error = once(address, false, Duration::from_millis(300)).unwrap_err();
        assert_eq!(error, "it did not answer within 0.3 s");
        assert!(before.elapsed() < Duration::from_secs(3), "{:?}", before.elapsed());
        drips.join().unwrap();
    }

    #[test]
    fn a_closed_port_is_an_error() {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        assert!(scrape(address, false, Duration::ZERO).is_err());
        assert_eq!(nearest("0.0.0.0:1".parse().unwrap()).to_string(), "127.0.0.1:1");
        assert_eq!(nearest("[::]:1".parse().unwrap()).to_string(), "[::1]:1");
        assert_eq!(nearest("10.0.0.5:1".parse().unwrap()).to_string(), "10.0.0.5:1");
    }
}
