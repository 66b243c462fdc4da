//! A web-config file that would hang the start, or let others decide who gets in.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use crate::auth::{certificates, hash, openssl, refusal};
use crate::running::PROGRAM;

#[test]
fn a_document_that_is_too_deep_too_large_or_ambiguous_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let hash = hash("secret");
    let costing = |cost: &str| format!("basic_auth_users:\n  me: {}\n", hash.replace("$10$", cost));
    for (config, expected) in [
        ("[".repeat(60_000), "nested too deep"),
        ("{a: ".repeat(15_000), "nested too deep"),
        ("- ".repeat(30_000), "DIR/wrong.yml:1: "),
        ("[".repeat(100_000), "larger than"),
        (format!("basic_auth_users:\n  me: {hash}\n  me: {hash}\n"), "user me stands twice: keep one"),
        (costing("$32$"), "a bcrypt cost of 32, and 4 to 16 are taken"),
        (costing("$17$"), "a bcrypt cost of 17, and 4 to 16 are taken"),
        (costing("$03$"), "a bcrypt cost of 3, and 4 to 16 are taken"),
    ] {
        let begun = Instant::now();
        let problem = refusal(&config, folder.path());
        assert!(problem.contains(expected), "{expected}\n  says: {problem}");
        assert!(begun.elapsed() < Duration::from_secs(5), "{problem} {:?}", begun.elapsed());
    }
}

fn says_of(file: &Path) -> String {
    let command = Command::new("timeout")
        .args(["5", PROGRAM, "--listen=127.0.0.1:0", "--web-config"])
        .arg(file)
        .output()
        .unwrap();
    format!("{:?} {}", command.status.code(), String::from_utf8(command.stderr).unwrap())
}

#[test]
fn a_file_that_others_can_write_or_that_is_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("web.yml");
    fs::write(&file, format!("basic_auth_users:\n  me: {}\n", hash("secret"))).unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert!(
        says_of(&file).starts_with("Some(2)") && says_of(&file).contains("chmod go-w"),
        "{}",
        says_of(&file)
    );
    let fifo = folder.path().join("fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRUSR).unwrap();
    for path in [fifo.as_path(), folder.path(), Path::new("/dev/zero")] {
        let problem = says_of(path);
        assert!(problem.starts_with("Some(2)"), "{problem}");
    }
    // A unit with DynamicUser= reads the file by its group; the file is root's.
    fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
    let problem = says_of(&file);
    assert!(problem.starts_with("Some(124)"), "it runs: {problem}");
}

#[test]
fn real_openssl_an_encrypted_key_is_called_so() {
    if !support::real::require(&["openssl"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    openssl(folder.path(), "pkcs8 -topk8 -in key.pem -out new.pem -passout pass:secret");
    openssl(folder.path(), "ec -in key.pem -out old.pem -aes128 -passout pass:secret");
    for key in ["new.pem", "old.pem"] {
        let problem = refusal(
            &format!("tls_server_config:\n  cert_file: cert.pem\n  key_file: {key}\n"),
            folder.path(),
        );
        let expected = format!(
            "DIR/wrong.yml:3: key_file: DIR/{key} is encrypted: `openssl pkey -in DIR/{key} -out DIR/decrypted.pem` decrypts it"
        );
        assert!(problem.starts_with(&expected), "{problem}");
    }
}

#[test]
#[ignore = "cargo xtask test --all"]
fn real_openssl_files_that_others_can_exchange_are_refused_with_the_way_to_them() {
    if !support::real::require(&["openssl"]) {
        return;
    }
    let tls = "tls_server_config:\n  cert_file: cert.pem\n  key_file: key.pem\n";
    let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    let link = |folder: &Path, mode| {
        let live = folder.join("live");
        fs::create_dir(&live).unwrap();
        fs::rename(folder.join("cert.pem"), live.join("cert1.pem")).unwrap();
        std::os::unix::fs::symlink("live/cert1.pem", folder.join("cert.pem")).unwrap();
        set_mode(&live, mode);
    };
    type Make<'m> = &'m dyn Fn(&Path);
    let many: [(&str, Make<'_>, Result<&str, &str>); 7] = [
        (
            "a key",
            &|folder| set_mode(&folder.join("key.pem"), 0o666),
            Err("key.pem can be written by others (mode 0666)"),
        ),
        (
            "a certificate",
            &|folder| set_mode(&folder.join("cert.pem"), 0o662),
            Err("cert.pem can be written by others"),
        ),
        ("their folder", &|folder| set_mode(folder, 0o777), Err("who could exchange the file: chmod go-w")),
        ("a linked folder", &|folder| link(folder, 0o775), Err("live can be written by others (mode 0775)")),
        ("a link as certbot's", &|folder| link(folder, 0o755), Ok("")),
        ("a link in a folder like /tmp", &|folder| link(folder, 0o1777), Ok("")),
        (
            "a readable key",
            &|folder| set_mode(&folder.join("key.pem"), 0o644),
            Ok("every user can read DIR/key.pem (mode 0644): chmod o-r"),
        ),
    ];
    for (kind, make, expected) in many {
        // The web-config file itself is in a folder of its own.
        let (folder, place) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        certificates(folder.path());
        make(folder.path());
        let file = place.path().join("web.yml");
        let tls = tls.replace("_file: ", &format!("_file: {}/", folder.path().display()));
        fs::write(&file, tls).unwrap();
        let problem = says_of(&file).replace(folder.path().to_str().unwrap(), "DIR");
        match expected {
            Ok(part) => {
                assert!(problem.starts_with("Some(124)") && problem.contains(part), "{kind}: {problem}")
            }
            Err(part) => {
                assert!(problem.starts_with("Some(2)") && problem.contains(part), "{kind}: {problem}")
            }
        }
        assert_eq!(problem.contains("chmod o-r"), kind == "a readable key", "{kind}: {problem}");
    }
}
