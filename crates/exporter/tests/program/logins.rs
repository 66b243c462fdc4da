//! Many logins that are wrong.

use std::io::Write as _;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::auth::{hash, start};

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
