//! Many logins that are wrong.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use support::real;

use crate::auth::{hash, start};
use crate::running::{Answer, connect_as_another};

fn login(user: &str) -> String {
    format!("Authorization: Basic {}\r\n", STANDARD.encode(user))
}

#[test]
fn wrong_logins_whose_clients_leave_keep_no_right_login_waiting() {
    let folder = tempfile::tempdir().unwrap();
    let users = format!("basic_auth_users:\n  known: {}\n  new: {}\n", hash("secret"), hash("secret"));
    let running = start(&folder, &users);
    assert_eq!(running.get_with("/healthz", &login("known:secret")).status(), 200);
    for number in 0..200 {
        let request =
            format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", login(&format!("known:{number}")));
        running.connect().write_all(request.as_bytes()).unwrap();
    }
    let begun = Instant::now();
    assert_eq!(running.get_with("/healthz", &login("known:secret")).status(), 200);
    assert!(begun.elapsed() < Duration::from_secs(2), "who is known waits for nobody: {:?}", begun.elapsed());
    let mut refused = 0;
    loop {
        match running.get_with("/healthz", &login("new:secret")).status() {
            200 => break,
            status => assert_eq!(status, 503),
        }
        refused += 1;
        std::thread::sleep(Duration::from_millis(100));
    }
    assert!(begun.elapsed() < Duration::from_secs(15), "{refused} refused in {:?}", begun.elapsed());
}

#[test]
fn wrong_passwords_of_forty_clients_keep_no_right_one_out() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users:\n  known: {}\n", hash("secret")));
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for client in 0..40 {
            let (address, is_over) = (running.address, &is_over);
            scope.spawn(move || {
                for number in 0.. {
                    if is_over.load(Ordering::Relaxed) {
                        break;
                    }
                    let status = status_of(address, &format!("known:{client}-{number}"));
                    assert_eq!(status, 401);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(1));
        let begun = Instant::now();
        let status = running.get_with("/healthz", &login("known:secret")).status();
        let elapsed = begun.elapsed();
        is_over.store(true, Ordering::Relaxed);
        assert_eq!(status, 200);
        assert!(elapsed < Duration::from_secs(10), "as long as Prometheus waits: {elapsed:?}");
    });
}

fn status_of(address: SocketAddr, user: &str) -> u16 {
    let mut stream = TcpStream::connect(address).unwrap();
    let login = login(user);
    let request = format!("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{login}\r\n");
    stream.write_all(request.as_bytes()).unwrap();
    Answer::read(stream).status()
}

#[test]
fn real_curl_the_logins_of_one_address_keep_no_other_address_waiting() {
    if !real::require(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users:\n  known: {}\n", hash("secret")));
    let mut clients = Vec::new();
    for number in 0..300 {
        let mut client = running.connect();
        let login = login(&format!("known:{number}"));
        client.write_all(format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{login}\r\n").as_bytes()).unwrap();
        clients.push(client);
    }
    let begun = Instant::now();
    let url = format!("http://{}/healthz", running.address);
    let output = Command::new("curl")
        .args(["--silent", "--noproxy", "*", "--interface", "127.0.0.2", "--user", "known:secret"])
        .args(["--output", "/dev/null", "--write-out", "%{http_code}", &url])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "200");
    assert!(begun.elapsed() < Duration::from_secs(4), "{:?}", begun.elapsed());
}

#[test]
fn a_wrong_login_ends_its_connection() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users:\n  known: {}\n", hash("secret")));
    let request = format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", login("known:wrong"));
    let begun = Instant::now();
    let answer = running.send(request.as_bytes());
    assert_eq!((answer.status(), answer.header("connection")), (401, Some("close")));
    assert!(begun.elapsed() < Duration::from_secs(10), "{:?}", begun.elapsed());
}

#[test]
fn many_connections_of_one_address_keep_no_other_one_out() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users:\n  known: {}\n", hash("secret")));
    let request = |user| format!("GET /healthz HTTP/1.1\r\nHost: x\r\n{}\r\n", login(user));
    // With the right password the connections stay, and are too many.
    for user in ["known:wrong", "known:secret"] {
        let mut kept = running.connect();
        let mut status_of_kept = || {
            // A panic here would wait for the threads below.
            kept.write_all(request("known:secret").as_bytes()).ok();
            let mut answer = [0; 4096];
            let length = kept.read(&mut answer).unwrap_or(0);
            String::from_utf8_lossy(&answer[..length]).get(9..12).map(str::to_owned)
        };
        assert_eq!(status_of_kept().as_deref(), Some("200"));
        let is_over = AtomicBool::new(false);
        let seen = std::thread::scope(|scope| {
            for _ in 0..8 {
                let (address, is_over, request) = (running.address, &is_over, request(user));
                scope.spawn(move || {
                    while !is_over.load(Ordering::Relaxed) {
                        let mut clients: Vec<_> = (0..80).map(|_| connect_as_another(address)).collect();
                        // More often than once a second: none of them is ever idle for long.
                        for _ in 0..8 {
                            for client in &mut clients {
                                // The exporter may have closed it.
                                client.write_all(request.as_bytes()).ok();
                            }
                            std::thread::sleep(Duration::from_millis(300));
                        }
                    }
                });
            }
            std::thread::sleep(Duration::from_secs(2));
            let one = |_| {
                let begun = Instant::now();
                let status = running.get_with("/healthz", &login("known:secret")).status();
                std::thread::sleep(Duration::from_millis(200));
                (status, status_of_kept(), begun.elapsed())
            };
            let seen: Vec<_> = (0..10).map(one).collect();
            is_over.store(true, Ordering::Relaxed);
            seen
        });
        for (status, kept, elapsed) in seen {
            assert_eq!((status, kept.as_deref()), (200, Some("200")), "{user}");
            assert!(elapsed < Duration::from_secs(8), "{user}: {elapsed:?}");
        }
    }
}

#[test]
fn one_wrong_password_is_compared_once_however_often_it_comes() {
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users:\n  known: {}\n", hash("secret")));
    for wrong in ["known:old", "nobody:secret"] {
        assert_eq!(running.get_with("/healthz", &login(wrong)).status(), 401);
        let begun = Instant::now();
        for _ in 0..100 {
            assert_eq!(running.get_with("/healthz", &login(wrong)).status(), 401);
        }
        assert!(begun.elapsed() < Duration::from_secs(3), "{wrong}: {:?}", begun.elapsed());
    }
}
