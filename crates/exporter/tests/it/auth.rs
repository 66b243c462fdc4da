//! TLS and basic auth by the web-config file. curl is the client.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use support::real;
use tempfile::TempDir;

use crate::running::{PROGRAM, Running};

/// The password's hash with bcrypt's usual cost.
pub(crate) fn hash(password: &str) -> String {
    bcrypt::hash(password, 10).unwrap()
}

pub(crate) fn openssl(folder: &Path, arguments: &str) {
    let output = Command::new("openssl").args(arguments.split(' ')).current_dir(folder).output().unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// An authority (`ca.pem`), and certificates that it signed, for 127.0.0.1 (`cert.pem`, `key.pem`) and for a client.
pub(crate) fn certificates(folder: &Path) {
    openssl(
        folder,
        "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout ca.key -out ca.pem -days 2 -subj /CN=ca",
    );
    fs::write(folder.join("server.ext"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    fs::write(folder.join("client.ext"), "extendedKeyUsage=clientAuth\n").unwrap();
    issue(folder, "cert", "key", "server");
    issue(folder, "client", "client-key", "client");
}

fn issue(folder: &Path, certificate: &str, key: &str, kind: &str) {
    openssl(
        folder,
        &format!(
            "req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout {key}.pem -out {certificate}.csr -subj /CN={kind}"
        ),
    );
    openssl(
        folder,
        &format!(
            "x509 -req -in {certificate}.csr -CA ca.pem -CAkey ca.key -CAcreateserial -out {certificate}.pem -days 2 -extfile {kind}.ext"
        ),
    );
}

/// curl's status and its message on stderr.
fn curl(running: &Running, scheme: &str, folder: &Path, arguments: &[&str]) -> (String, String) {
    let url = format!("{scheme}://{}/healthz", running.address);
    let output = Command::new("curl")
        .args([
            "--silent",
            "--show-error",
            "--noproxy",
            "*",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code}",
        ])
        .args(arguments)
        .arg(url)
        .current_dir(folder)
        .output()
        .unwrap();
    (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
}

pub(crate) fn start(folder: &TempDir, config: &str) -> Running {
    let file = folder.path().join("web.yml");
    fs::write(&file, config).unwrap();
    Running::start(folder.path(), &["--web-config".as_ref(), file.as_os_str()])
}

/// The program's refusal of this file; checks its exit status.
pub(crate) fn refusal(config: &str, folder: &Path) -> String {
    let file = folder.join("wrong.yml");
    fs::write(&file, config).unwrap();
    let output =
        Command::new(PROGRAM).args(["--listen=127.0.0.1:0", "--web-config"]).arg(&file).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{config}");
    let problem = String::from_utf8(output.stderr).unwrap();
    assert_eq!(problem.lines().count(), 1, "{problem}");
    problem.replace(folder.to_str().unwrap(), "DIR").trim_end().replace("rocworker-exporter: ", "")
}

#[test]
fn real_curl_a_password_is_asked_for_and_compared_once() {
    if !real::require(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users:\n  prometheus: {}\n", hash("secret")));
    let answer = running.get("/metrics");
    assert_eq!((answer.status(), answer.header("www-authenticate").is_some()), (401, true));
    let status = |user: &str| curl(&running, "http", folder.path(), &["--user", user]).0;
    assert_eq!(status("prometheus:secret"), "200");
    for wrong in ["prometheus:Secret", "prometheus:", "nobody:secret", ":secret"] {
        assert_eq!(status(wrong), "401", "{wrong}");
    }
    for header in ["Basic", "Basic !", "Bearer x", "basic cHJvbWV0aGV1cw=="] {
        assert_eq!(running.get_with("/", &format!("Authorization: {header}\r\n")).status(), 401, "{header}");
    }
    // The quickest of five: what else the machine does only adds. A wrong password is compared once.
    let timed = |user: &dyn Fn(u32) -> String| {
        let one = |number| {
            let begun = Instant::now();
            status(&user(number));
            begun.elapsed()
        };
        (0..5).map(one).min().unwrap()
    };
    let known = timed(&|_| "prometheus:secret".to_owned());
    let wrong = timed(&|number| format!("prometheus:{number}"));
    let again = timed(&|_| "prometheus:0".to_owned());
    assert!(known * 2 < wrong, "remembered: {known:?}, compared: {wrong:?}");
    assert!(again * 2 < wrong, "remembered: {again:?}, compared: {wrong:?}");
}

#[test]
fn real_curl_the_time_of_an_answer_does_not_say_whether_there_is_such_a_user() {
    if !real::require(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let hash = |cost| bcrypt::hash("secret", cost).unwrap();
    for [a, z] in [[10, 10], [4, 11], [11, 4]] {
        let running = start(&folder, &format!("basic_auth_users:\n  a: {}\n  z: {}\n", hash(a), hash(z)));
        // The time of the program's CPUs: what else the machine does adds nothing.
        let timed = |user: &str| {
            let before = running.cpu_ticks();
            for number in 0..5 {
                let login = format!("{user}:{number}");
                assert_eq!(curl(&running, "http", folder.path(), &["--user", &login]).0, "401");
            }
            running.cpu_ticks() - before
        };
        let times = ["a", "z", "nobody"].map(timed);
        let (least, most) = (times.iter().min().unwrap(), times.iter().max().unwrap());
        assert!(*most < *least * 3 / 2, "costs {a} and {z}: {times:?}");
    }
}

#[test]
fn real_curl_a_change_of_the_file_counts_and_a_mistake_in_it_does_not() {
    if !real::require(&["curl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let running = start(&folder, &format!("basic_auth_users: {{prometheus: \"{}\"}}\n", hash("one")));
    let file = folder.path().join("web.yml");
    let status = |user: &str| curl(&running, "http", folder.path(), &["--user", user]).0;
    assert_eq!((status("prometheus:one").as_str(), status("prometheus:two").as_str()), ("200", "401"));
    fs::write(&file, format!("basic_auth_users: {{prometheus: \"{}\"}}\n", hash("two"))).unwrap();
    assert_eq!((status("prometheus:one").as_str(), status("prometheus:two").as_str()), ("401", "200"));
    assert_eq!(running.says(), format!("rocworker-exporter: {} was read again", file.display()));
    fs::write(&file, "basic_auth_users: 7\n").unwrap();
    assert_eq!(status("prometheus:two"), "200");
    let problem = running.says();
    assert!(
        problem.contains("web.yml:1: ") && problem.ends_with("; what was read before stays in force"),
        "{problem}"
    );
    fs::remove_file(&file).unwrap();
    assert_eq!((status("prometheus:two").as_str(), status("prometheus:one").as_str()), ("200", "401"));
}

#[test]
fn real_curl_and_openssl_speak_tls() {
    if !real::require(&["curl", "openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let tls = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n";
    let running = start(&folder, tls);
    let curl_with = |arguments: &[&str]| curl(&running, "https", folder.path(), arguments).0;
    assert_eq!(curl_with(&["--cacert", "ca.pem"]), "200");
    assert_eq!(curl_with(&["--cacert", "ca.pem", "--tls-max", "1.2"]), "200");
    assert_eq!(curl_with(&[]), "000", "it trusts no authority of ours");
    assert_eq!(running.get("/healthz").status(), 0, "plain HTTP is no answer");
    // A new certificate serves the next client.
    issue(folder.path(), "cert", "key", "server");
    openssl(folder.path(), "x509 -in cert.pem -noout -serial");
    assert_eq!(curl_with(&["--cacert", "ca.pem"]), "200");
    assert!(running.says().ends_with("was read again"));
    fs::write(folder.path().join("cert.pem"), "nothing").unwrap();
    assert_eq!(curl_with(&["--cacert", "ca.pem"]), "200");
    assert!(running.says().contains("cert.pem holds no certificate in PEM"));
}

#[test]
fn real_curl_and_openssl_a_certificate_that_appears_later_counts() {
    if !real::require(&["curl", "openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let users = format!("basic_auth_users: {{prometheus: \"{}\"}}\n", hash("secret"));
    let tls = "cert_file: later.pem, key_file: later-key.pem, client_ca_file: later-ca.pem";
    let running = start(&folder, &users);
    let status = |scheme: &str| {
        curl(&running, scheme, folder.path(), &["--cacert", "ca.pem", "--user", "prometheus:secret"]).0
    };
    assert_eq!(status("http"), "200");
    let config = format!("tls_server_config: {{{tls}, client_auth_type: VerifyClientCertIfGiven}}\n{users}");
    fs::write(folder.path().join("web.yml"), config).unwrap();
    for (from, to) in [("ca.pem", "later-ca.pem"), ("cert.pem", "later.pem"), ("key.pem", "later-key.pem")] {
        assert_eq!(status("http"), "200", "before {to}");
        let problem = running.says();
        assert!(
            problem.contains(&format!("{to}: No such file"))
                && problem.ends_with("; what was read before stays in force"),
            "{problem}"
        );
        fs::copy(folder.path().join(from), folder.path().join(to)).unwrap();
    }
    assert_eq!(running.get("/healthz").status(), 0, "plain HTTP is no answer");
    assert_eq!(status("https"), "200");
    assert!(running.says().ends_with("web.yml was read again"));
}

#[test]
fn real_curl_and_openssl_a_certificate_whose_folder_was_mended_counts() {
    if !real::require(&["curl", "openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let copy = || {
        for name in ["cert.pem", "key.pem"] {
            fs::copy(folder.path().join(name), inner.join(name)).unwrap();
        }
    };
    let give = |mode| fs::set_permissions(&inner, Permissions::from_mode(mode)).unwrap();
    give(0o755);
    copy();
    let running = start(&folder, "tls_server_config: {cert_file: inner/cert.pem, key_file: inner/key.pem}\n");
    let status = || curl(&running, "https", folder.path(), &["--cacert", "ca.pem"]).0;
    assert_eq!(status(), "200");
    give(0o777);
    issue(folder.path(), "cert", "key", "server");
    copy();
    assert_eq!(status(), "200");
    let problem = running.says();
    assert!(
        problem.contains("chmod go-w") && problem.ends_with("; what was read before stays in force"),
        "{problem}"
    );
    give(0o755);
    std::thread::sleep(Duration::from_secs(11));
    assert_eq!(status(), "200");
    assert!(running.says().ends_with("web.yml was read again"));
}

#[test]
fn real_curl_and_openssl_a_client_shows_its_certificate() {
    if !real::require(&["curl", "openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let tls = "tls_server_config: {cert_file: cert.pem, key_file: key.pem, client_ca_file: ca.pem, ";
    let own = ["--cacert", "ca.pem", "--cert", "client.pem", "--key", "client-key.pem"];
    let required =
        start(&folder, &format!("{tls}client_auth_type: RequireAndVerifyClientCert, min_version: TLS13}}"));
    assert_eq!(curl(&required, "https", folder.path(), &own).0, "200");
    assert_eq!(curl(&required, "https", folder.path(), &own[..2]).0, "000");
    assert_eq!(curl(&required, "https", folder.path(), &[&own[..], &["--tls-max", "1.2"]].concat()).0, "000");
    let optional = start(&folder, &format!("{tls}client_auth_type: VerifyClientCertIfGiven}}"));
    assert_eq!(curl(&optional, "https", folder.path(), &own).0, "200");
    assert_eq!(curl(&optional, "https", folder.path(), &own[..2]).0, "200");
}

#[test]
fn real_openssl_a_client_that_never_finishes_its_handshake_is_closed() {
    if !real::require(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let running = start(&folder, "tls_server_config: {cert_file: cert.pem, key_file: key.pem}");
    let begun = Instant::now();
    let mut stream = running.connect();
    assert_eq!(std::io::Read::read(&mut stream, &mut [0; 8]).unwrap_or(0), 0);
    assert!(begun.elapsed() < Duration::from_secs(15), "{:?}", begun.elapsed());
}

#[test]
fn real_openssl_each_mistake_is_one_sentence_with_its_line() {
    if !real::require(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let tls = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n";
    let many = [
        (
            "basic_auth_users:\n  me: secret\n",
            "DIR/wrong.yml:2: basic_auth_users: not a bcrypt hash: make one with `htpasswd -nBC 10 NAME`",
        ),
        (
            "# Of the web.\nhttp_server_config:\n  http2: true\n",
            "DIR/wrong.yml:2: unknown field `http_server_config`, expected `tls_server_config` or `basic_auth_users`",
        ),
        (
            "tls_server_config:\n  cert_file: cert.pem\n",
            "DIR/wrong.yml:2: tls_server_config: missing field `key_file`",
        ),
        (
            "tls_server_config:\n  cert_file: none.pem\n  key_file: key.pem\n",
            "DIR/wrong.yml:2: cert_file: cannot open DIR/none.pem: No such file or directory",
        ),
        (
            "tls_server_config:\n  cert_file: cert.pem\n  key_file: client-key.pem\n",
            "DIR/wrong.yml:3: key_file: DIR/client-key.pem does not go with DIR/cert.pem: keys may not be consistent: KeyMismatch",
        ),
        (
            "tls_server_config:\n  cert_file: cert.pem\n  key_file: cert.pem\n",
            "DIR/wrong.yml:3: key_file: DIR/cert.pem holds no private key in PEM: no items found",
        ),
        (
            &format!("{tls}  client_auth_type: RequireAnyClientCert\n"),
            "DIR/wrong.yml:4: tls_server_config.client_auth_type: unknown variant `RequireAnyClientCert`, expected one of `NoClientCert`, `VerifyClientCertIfGiven`, `RequireAndVerifyClientCert`",
        ),
        (
            &format!("{tls}  client_auth_type: RequireAndVerifyClientCert\n"),
            "DIR/wrong.yml:4: client_auth_type: set client_ca_file too: who signs clients' certificates",
        ),
        (
            &format!("{tls}  client_ca_file: ca.pem\n"),
            "DIR/wrong.yml:4: client_ca_file: set client_auth_type too: RequireAndVerifyClientCert",
        ),
        (
            &format!("{tls}  min_version: TLS10\n"),
            "DIR/wrong.yml:4: tls_server_config.min_version: unknown variant `TLS10`, expected `TLS12` or `TLS13`",
        ),
        (
            &format!("{tls}  min_version: TLS13\n  max_version: TLS12\n"),
            "DIR/wrong.yml:5: max_version: it is lower than min_version",
        ),
    ];
    for (config, expected) in many {
        assert_eq!(refusal(config, folder.path()), expected, "{config}");
    }
    for config in ["a: [\n", "\u{7}", "just words\n"] {
        let problem = refusal(config, folder.path());
        assert!(
            problem.starts_with("DIR/wrong.yml:1: ") || problem.starts_with("DIR/wrong.yml:2: "),
            "{problem}"
        );
        assert!(!problem.contains(" at line ") && !problem.contains("struct "), "{problem}");
    }
}

#[test]
fn a_file_that_protects_nothing_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    for config in ["", "# Later.\n\n", "---\n", "{}\n", "basic_auth_users:\n", "basic_auth_users: {}\n"] {
        assert_eq!(
            refusal(config, folder.path()),
            "DIR/wrong.yml:1: it protects nothing: set tls_server_config or basic_auth_users, or start without --web-config",
            "{config:?}"
        );
    }
}

#[test]
fn real_curl_and_openssl_a_running_exporter_never_drops_its_protection() {
    if !real::require(&["curl", "openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let users = format!("basic_auth_users: {{prometheus: \"{}\"}}\n", hash("secret"));
    let files = "cert_file: cert.pem, key_file: key.pem";
    let client = "client_ca_file: ca.pem, client_auth_type";
    let required = format!("tls_server_config: {{{files}, {client}: RequireAndVerifyClientCert}}\n");
    let running = start(&folder, &format!("{required}{users}"));
    let own = ["--cacert", "ca.pem", "--cert", "client.pem", "--key", "client-key.pem"];
    let status = |arguments: &[&str]| curl(&running, "https", folder.path(), arguments).0;
    let with_password = [&own[..], &["--user", "prometheus:secret"]].concat();
    let many = [
        (String::new(), "it protects nothing"),
        ("# Later.\n".to_owned(), "it protects nothing"),
        ("basic_auth_users:\n".to_owned(), "it protects nothing"),
        (users.clone(), "it takes away tls_server_config"),
        (required.clone(), "it takes away basic_auth_users"),
        (format!("{required}basic_auth_users:\n"), "it takes away basic_auth_users"),
        (
            format!("tls_server_config: {{{files}, {client}: VerifyClientCertIfGiven}}\n{users}"),
            "it takes away client_auth_type: RequireAndVerifyClientCert",
        ),
    ];
    for (config, problem) in many {
        fs::write(folder.path().join("web.yml"), &config).unwrap();
        assert_eq!(running.get("/healthz").status(), 0, "plain HTTP after {config:?}");
        assert_eq!(status(&own), "401", "{config:?}");
        assert_eq!(status(&own[..2]), "000", "{config:?}");
        assert_eq!(status(&with_password), "200", "{config:?}");
        let line = running.says();
        assert!(line.contains(problem) && line.ends_with("; what was read before stays in force"), "{line}");
    }
    fs::write(folder.path().join("web.yml"), format!("{required}{users}# Another line.\n")).unwrap();
    assert_eq!(status(&with_password), "200");
    assert!(running.says().ends_with("web.yml was read again"));
}
