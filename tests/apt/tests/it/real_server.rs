//! apt's message for each key, each release and each misbehaviour that a test can set up.

use std::time::Duration;

use lab::key::Key;
use lab::machine::Machine;
use lab::package::Package;
use lab::repository::{self, Dates, Repository};
use lab::server::{self, Misbehaviour, Server};
use lab::systems;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);
/// Makes every failure final, without retries or long waits. Without the first option, apt-get update ends
/// with 0 after a failure that it takes for a passing one.
const AT_ONCE: [&str; 6] =
    ["-o", "APT::Update::Error-Mode=any", "-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=1"];

/// A repository with one package, and its server.
struct Offered {
    key: Key,
    repository: Repository,
    package: Package,
    server: Server,
}

impl Offered {
    fn new() -> Self {
        let key = Key::generate("Laboratory");
        let package = Package::new("rocworker-lab", "1.0").weight(100_000);
        let mut repository = Repository::new("Lab", "stable", "main").with([package.clone()]);
        let server = Server::start(&repository.release(&key));
        Self { key, repository, package, server }
    }
}

fn update(machine: &Machine) -> support::said::Said {
    machine.apt_get(&[&AT_ONCE[..], &["update"]].concat())
}

/// Removes everything that apt has fetched.
fn forget(machine: &Machine) {
    machine.call(&["find", "/var/lib/apt/lists", "-type", "f", "-delete"]).well();
    machine.call(&["apt-get", "clean"]).well();
}

#[test]
fn real_apt_takes_a_release_signed_by_the_key_or_its_subkey_and_no_other() {
    for (system, machine) in systems::both() {
        let mut offered = Offered::new();
        let [other, subkey, expired] =
            [Key::generate("Another"), Key::with_subkey("Subkey"), Key::expired("Expired")];
        // gpgv's words are apt 2.6's, sqv's apt 3.0's.
        for (what, signed, known, expected) in [
            ("the key", &offered.key, &offered.key, [""; 2]),
            ("a subkey", &subkey, &subkey, [""; 2]),
            ("another key", &other, &offered.key, ["NO_PUBKEY", "Missing key"]),
            ("an expired key", &expired, &expired, ["EXPKEYSIG", "Expired on 2020-01-02"]),
        ] {
            let release = offered.repository.release(signed);
            offered.server.show(&release);
            machine.add_source(&offered.repository, &offered.server.url(), known);
            let said = update(&machine);
            if expected == [""; 2] {
                said.well();
            } else {
                let said = said.badly();
                assert!(expected.iter().any(|words| said.contains(words)), "{system}, {what}: {said}");
            }
            forget(&machine);
        }
        let release = offered.repository.release_of(Dates::ago(Duration::ZERO), None);
        offered.server.show(&release);
        let said = update(&machine).badly();
        assert!(said.contains("is not signed"), "{system}: {said}");
    }
}

#[test]
fn real_apt_keeps_what_it_has_where_it_is_served_an_older_release_and_refuses_one_that_has_ended() {
    for (system, machine) in systems::both() {
        let mut offered = Offered::new();
        let older = offered.repository.release_of(Dates::ago(10 * DAY), Some(&offered.key));
        offered.repository.add(Package::new("rocworker-lab", "2.0"));
        let newer = offered.repository.release(&offered.key);
        offered.server.show(&newer);
        machine.add_source(&offered.repository, &offered.server.url(), &offered.key);
        update(&machine).well();
        offered.server.show(&older);
        update(&machine).well();
        let policy = machine.call(&["apt-cache", "policy", "rocworker-lab"]).well();
        assert!(policy.contains("Candidate: 2.0\n"), "{system}: {policy}");

        let ended = Dates::ended(10 * DAY, 3 * DAY);
        let ended = offered.repository.release_of(ended, Some(&offered.key));
        offered.server.show(&ended);
        forget(&machine);
        let said = update(&machine).badly();
        assert!(said.contains("is expired (invalid since 3d"), "{system}: {said}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_apt_names_each_misbehaviour_of_the_server() {
    for (system, machine) in systems::both() {
        let offered = Offered::new();
        let (server, repository) = (&offered.server, &offered.repository);
        machine.add_source(repository, &server.url(), &offered.key);
        let index = repository.path_of_index();
        let package = repository::path_of(&offered.package);
        for (how, expected) in [
            (Misbehaviour::Close, "Connection failed"),
            (Misbehaviour::Hang, "Connection failed"),
            (Misbehaviour::Cut(100), "Remote end closed connection"),
            (Misbehaviour::Stall(100), "Connection timed out"),
            (Misbehaviour::Other(b"something else\n".to_vec()), "File has unexpected size (15 != "),
            (Misbehaviour::Status(404), "404  Said by a test"),
            (Misbehaviour::Status(500), "500  Said by a test"),
        ] {
            server.misbehave(&index, how.clone());
            let said = update(&machine).badly();
            assert!(said.contains(expected), "{system}, {how:?} for the index: {said}");
            server.behave();
            update(&machine).well();
            server.misbehave(&package, how.clone());
            let install = [&AT_ONCE[..], &["install", "rocworker-lab"]].concat();
            let said = machine.apt_get(&install).badly();
            assert!(said.contains(expected), "{system}, {how:?} for the package: {said}");
            assert_eq!(machine.package("rocworker-lab"), None, "{system}, {how:?}");
            server.behave();
            forget(&machine);
        }
        machine.add_source(repository, &server::nobody(), &offered.key);
        let said = update(&machine).badly();
        assert!(said.contains("connect (111: Connection refused)"), "{system}: {said}");
    }
}

#[test]
fn real_apt_reaches_a_host_that_is_not_there_through_the_proxy_and_no_other_way() {
    for (system, machine) in systems::both() {
        let offered = Offered::new();
        machine.add_source(&offered.repository, "http://repo.invalid", &offered.key);
        let proxy = format!("Acquire::http::Proxy={}", offered.server.url());
        machine.apt_get(&["-o", &proxy, "update"]).well();
        let requests = offered.server.requests();
        assert!(!requests.is_empty(), "{system}");
        for request in requests {
            assert_eq!(request.authority.as_deref(), Some("repo.invalid"), "{system}");
        }
        assert_eq!(offered.server.count(&offered.repository.path_of("InRelease")), 1, "{system}");
    }
}
