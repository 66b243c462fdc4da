use std::collections::BTreeSet;
use std::path::Path;

use config::Config;
use engines::{self, Format};

use config::KEYS as ROCWORKER;

use super::{CDI, MARK, POLICY, Redactor, module_line, parameter};

fn redactor() -> Redactor {
    Redactor::of_host(Some("build-7"))
}

#[test]
fn what_sounds_secret_is_gone_and_what_is_in_front_of_it_stays() {
    for (text, kept) in [
        ("CONCOURSE_TSA_WORKER_PRIVATE_KEY=hunter2", "CONCOURSE_TSA_WORKER_"),
        ("export DB_PASSWORD='hunter2 x'", "export DB_"),
        ("Environment=\"A=1\" \"API_TOKEN=hunter2\" \"B=2\"", "Environment=\"A=1\" \"API_"),
        ("  password: hunter2", "  "),
        ("# token = \"hunter2\"", "# "),
        ("auth = \"hunter2\" # see", ""),
        ("[x] x = { username = \"ann\", password = \"hunter2\" }", "[x] x = { "),
        ("ADD_LOCAL_USER=ann:hunter2", "ADD_LOCAL_"),
        ("  \"registry.token\" = \"hunter2\"", "  \"registry."),
        ("ExecStart=/bin/worker --client-secret hunter2 --name x", "ExecStart=/bin/worker --client-"),
        ("X --token hunter2\n", "X --"),
        ("x-header = [\"Bearer hunter2\"]", "x-header = [\""),
        ("Authorization: Basic aHVudGVyMg==", ""),
        ("CERT=-----BEGIN PRIVATE KEY-----\\nabc\\n-----END PRIVATE KEY-----", "CERT="),
        ("key: |\n  hunter2\n  hunter2\n\nnext: 1\n", ""),
        ("x: 1\ntokens:\n- hunter2\n- hunter2\nnext: 1\n", "x: 1\n"),
        ("key = \"\"\"hunter2\nhunter2\"\"\"\nnext = 1\n", ""),
        ("auth = { a = [\n \"hunter2\" ],\n b = 2 }\nnext = 1\n", ""),
        ("Environment=TOKEN=a \\\n hunter2 \\\n hunter2\nNEXT=1\n", "Environment="),
        ("-----BEGIN OPENSSH PRIVATE KEY-----\nhunter2\n-----END OPENSSH PRIVATE KEY-----\n", ""),
    ] {
        let found = redactor().text(text);
        assert!(found.starts_with(&format!("{kept}[removed: text, ")), "{text}: {found}");
        assert!(!found.contains("hunter2") && !found.contains("aHVudGVyMg"), "{text}: {found}");
    }
}

#[test]
fn logins_hardware_addresses_and_the_machines_name_are_gone() {
    for (text, without) in [
        ("http-proxy = \"http://ann:hunter2@proxy:3128/\"", "http-proxy = \"http://[removed]@proxy:3128/\""),
        ("HTTP_PROXY=http://ann:hun/ter2@proxy", "HTTP_PROXY=http://[removed]@proxy"),
        ("NO_SCHEME=ann:hunter2@proxy:3128", "NO_SCHEME=[removed]@proxy:3128"),
        ("eth0 52:54:00:12:34:56 up", "eth0 [removed] up"),
        ("eth0 52-54-00-12-34-56: up", "eth0 [removed] up"),
        ("Nov 21 Build-7 kernel: build-70 build-7.example", "Nov 21 HOST kernel: build-70 HOST.example"),
    ] {
        assert_eq!(redactor().text(text), without, "{text}");
    }
}

#[test]
fn the_machines_qualified_name_is_gone_inside_a_longer_word_too() {
    for (host, text, without) in [
        ("gw.corp.example", "on GW.corp.example: down", "on HOST: down"),
        ("gw.corp.example", "/etc/ssl/gw.corp.example.crt", "/etc/ssl/HOST.crt"),
        ("gw.corp.example", "x.gw.corp.example", "x.HOST"),
        ("gw.corp.example", "agw.corp.example xgw.corp.example.", "agw.HOST xgw.HOST."),
        ("gw.corp.example", "gw-a.corp.example corp.example", "gw-a.HOST HOST"),
        ("gw.corp.example.", "gw.corp.example", "HOST"),
        ("farm.corp.example", "x.farm.corp.example.crt farm", "x.HOST.crt HOST"),
        ("farm.corp.example", "farm_Farm.FARM farm\u{e9}", "HOST_HOST.HOST farm\u{e9}"),
        ("gw.gw", "xgw.gw.gw", "xgw.HOST"),
        // The host's name and its domain as parts of other words.
        ("gw.corp.example", "gw xgw.corp.examples corp.example-x", "gw xgw.corp.examples corp.example-x"),
        ("farm.corp.example", "farms the-farm farm2 farm-3", "farms the-farm farm2 farm-3"),
        ("box7.local", "/usr/local/bin", "/usr/local/bin"),
        ("box7.amd.com", "amd.com/gpu=0 on box7.amd.com", "amd.com/gpu=0 on HOST"),
    ] {
        assert_eq!(Redactor::of_host(Some(host)).identities(text), without, "{host}: {text}");
    }
}

#[test]
fn what_is_no_secret_stays_byte_for_byte() {
    for text in [
        "",
        "version = 3\n[plugins.\"io.containerd.cri.v1.runtime\"]\n  enable_cdi = true\n",
        "CONCOURSE_TAG=gpu,gpu-type=amd\nCONCOURSE_RUNTIME=containerd\n",
        "compute-runtime: rocm\ngpu-device-ids: [0000:64:00.0, renderD129]\n",
        "amdgpu 0000:64:00.0: amdgpu: VRAM: 512M 0x000000F400000000 - 0x000000F41FFFFFFF\n",
        "mail ann@example.org\r\n",
    ] {
        assert_eq!(redactor().text(text), text);
    }
}

const TIME: &str = "2026-11-22T18:40:01+00:00";

#[test]
fn the_wrappers_own_sentences_stay() {
    let said = "runc-amd-wrapper: the container starts without GPUs: there is no GPU \"renderD131\" on this machine, and \
                /dev/kfd is not there; 0000:64:00.0 has 2 of 8";
    let line = format!("{TIME} containerd[812]: level=error msg=\"{said}");
    assert_eq!(redactor().wrapper_line(&line), Some(format!("{TIME} {said}")));
    assert_eq!(redactor().wrapper_line(&format!("{TIME} containerd[812]: level=error")), None);
}

#[test]
fn what_a_container_or_an_engine_has_put_into_a_line_does_not() {
    for shape in [
        "pass=X",
        "DB_PASS=X",
        "cred=X",
        "pw: X",
        "TOK=X",
        "token X",
        "-pX",
        "[\"--password\",\"X\"]",
        "{\"pass\":\"X\"}",
        "https://host/?sig=X",
        "https://hooks.slack.com/services/T0/B0/X",
        "http://ann:a=X@proxy",
        "http://ann:a(X@proxy",
        "AMD_VISIBLE_DEVICES=X",
        "X",
    ] {
        let sounds_secret = ["pw:", "token", "password"].iter().any(|word| shape.contains(word));
        for secret in ["zqx7hunter", "Zq9/abc+def"] {
            let shape = shape.replace('X', secret);
            let line = format!(
                "{TIME} dockerd[1]: env={shape} runc-amd-wrapper: the container asks for {shape} here"
            );
            let found = redactor().wrapper_line(&line).unwrap();
            assert!(
                !found.contains("zqx7") && !found.contains("Zq9") && found.contains("[removed: "),
                "{found}"
            );
            assert!(
                found.starts_with(&format!("{TIME} runc-amd-wrapper: the container asks for ")),
                "{found}"
            );
            assert_eq!(found.ends_with(" here"), !sounds_secret, "{found}");
        }
    }
}

#[test]
fn of_a_wrapper_line_nothing_stays_after_a_word_that_sounds_secret() {
    for (text, kept) in [
        ("env \"Authorization: Basic QWxhZGRpbjpvcGVu\" here", "env \"Authorization:"),
        ("env password: - hunterhunter", "env password:"),
        ("env Basic QWxhZGRpbjpvcGVu", "env Basic"),
        ("env X-Header=Basic QWxhZGRpbjpvcGVu", "env [removed: text, 14 characters]"),
        ("env bearer - hunterhunter", "env bearer"),
        ("env --password hunterhunter", "env [removed: text, 10 characters]"),
    ] {
        let found = redactor().wrapper_line(&format!("{TIME} runc-amd-wrapper: {text}")).unwrap();
        assert!(found.starts_with(&format!("{TIME} runc-amd-wrapper: {kept} [removed: text, ")), "{found}");
        assert!(!found.contains("hunter") && !found.contains("QWxh") && found.ends_with(']'), "{found}");
    }
    let basics = format!("{TIME} runc-amd-wrapper: the basics of a container: 2 of 8");
    assert_eq!(redactor().wrapper_line(&basics), Some(basics));
}

#[test]
fn an_error_of_the_configuration_names_a_key_and_no_value() {
    for (error, kept) in [
        (
            "config.yaml:1: unknown field `no-such`, expected one of `tag`",
            "config.yaml:1: unknown field `no-such`, expected one of `tag`",
        ),
        (
            "config.yaml:2: unknown variant `hunter`, expected `auto`",
            "config.yaml:2: unknown variant [removed: text, 24 characters]",
        ),
        (
            "config.yaml:3: invalid type: string \"a \\\" hunter\", expected",
            "config.yaml:3: invalid type: string [removed: text, 22 characters]",
        ),
        (
            "config.yaml:4: x: unknown field `api-token`, expected one of `key`, `fingerprints`",
            "config.yaml:4: x: unknown field `api-token`, expected one of `key`, `fingerprints`",
        ),
        (
            "config.yaml:5: unknown field `a`, expected hunter`, expected `key` or `tag`",
            "config.yaml:5: unknown field [removed: text, 45 characters]",
        ),
        (
            "config.yaml:6: unknown field `pass hunter`, expected `key`",
            "config.yaml:6: unknown field [removed: text, 28 characters]",
        ),
    ] {
        assert_eq!(redactor().error(error), kept);
    }
    let refused = Config::parse(Path::new("config.yaml"), "repositories:\n  no-such: 1\n").unwrap_err();
    assert!(refused.to_string().contains("`key`"), "{refused}");
    assert_eq!(redactor().error(&refused.to_string()), refused.to_string());
}

#[test]
fn of_modprobes_lines_the_words_stay_that_cannot_hold_a_secret() {
    for (line, kept) in [
        (" blacklist\tamdgpu # pass Sec3hunter", "blacklist amdgpu"),
        ("options amdgpu gpu_recovery=1 vis=0000:03:00.0", "options amdgpu gpu_recovery=1 vis=0000:03:00.0"),
        ("options amdgpu a=1 pass=Sec1hunter b=2", "options amdgpu a=1 [removed: text, 19 characters]"),
        ("options amdgpu a=\"x b=Sec1hunter y\"", "options amdgpu [removed: text, 20 characters]"),
        ("softdep amdgpu pre: drm post: snd-hda*", "softdep amdgpu pre: drm post: snd-hda*"),
        ("alias char-major-226-* amdgpu", "alias char-major-226-* amdgpu"),
        ("alias amdgpu token Sec1hunter", "alias amdgpu [removed: text, 16 characters]"),
        ("install amdgpu /bin/false", "install amdgpu /bin/false"),
        ("install amdgpu /usr/bin/curl -u ann:Sec1hunter", "install amdgpu [removed: text, 31 characters]"),
        ("remove amdgpu /bin/x Sec1hunter", "remove amdgpu [removed: text, 17 characters]"),
        ("blacklist ann:Sec1hunter-amdgpu", "blacklist [removed: name, 21 characters]"),
        ("# amdgpu signing key pass Sec3hunter", ""),
        ("amdgpu Sec1hunter", ""),
        ("blacklist radeon", ""),
    ] {
        assert_eq!(module_line(line), kept, "{line}");
    }
    for (word, is_kept) in [
        ("amdgpu.ppfeaturemask=0xffffffff", true),
        ("modprobe.blacklist=nouveau,amdgpu", true),
        ("nomodeset", true),
        ("nomodesetSec1hunter", false),
        ("amdgpu.x=ann:Sec1hunter", false),
        ("amdgpu.x=\"Sec1hunter", false),
        ("amdgpu.token=Sec1hunter", false),
        ("amdgpu.x=https://h/?sig=Sec1hunter", false),
    ] {
        assert_eq!(parameter(word), is_kept, "{word}");
    }
}

#[test]
fn behind_a_word_that_sounds_secret_no_value_stays() {
    let docker = engines::ALL.iter().flat_map(|it| it.reported).find(|it| it.path.ends_with("daemon.json"));
    for (text, removed) in [
        (r#"{"exec-opts":["--password Sec1hunter"]}"#, 1),
        (r#"{"exec-opts":["a=b,token,Sec1hunter"]}"#, 1),
        (r#"{"exec-opts":["a=b","--password","Sec1hunter"]}"#, 1),
        (r#"{"runtimes":{"amd":{"path":"/bin/x --token Sec1hunter"}}}"#, 1),
        (r#"{"hosts":["/etc/keys/a"],"exec-opts":["a=b c=d"]}"#, 0),
    ] {
        let found = redactor().configuration(docker.unwrap().format, text);
        assert!(!found.contains("hunter"), "{found}");
        assert_eq!(found.matches("[removed: text, ").count(), removed, "{found}");
    }
    let evidence = "the runtime amd is /usr/bin/runc-amd-wrapper (\"/bin/x --token Sec1hunter\")";
    let kept = "the runtime amd is /usr/bin/runc-amd-wrapper (\"/bin/x [removed: text, 7 characters] [removed: text, 12 characters]";
    assert_eq!(redactor().evidence(evidence), kept);
    for (text, kept) in [
        ("dockerd 27.3.1, docker.service, 0000:03:00.0", "dockerd 27.3.1, docker.service, 0000:03:00.0"),
        ("it says \"-pSec1hunter\"", "it says [removed: text, 14 characters]"),
        ("ann:Sec1hunter", "[removed: text, 14 characters]"),
    ] {
        assert_eq!(redactor().evidence(text), kept);
    }
}

#[test]
fn rocworkers_keys_are_known_at_their_places_alone() {
    for text in [
        "no-such: {tag: Sec1hunter}\n",
        "docker: {tag: Sec1hunter, proxy: Sec1hunter}\n",
        "key: Sec1hunter\n",
        "packages: {extra: {proxy: Sec1hunter}}\n",
        "module-options: {tag: Sec1hunter}\n",
        "inventory: {user: Sec1hunter, groups: {all: [Sec1hunter]}}\n",
    ] {
        let found = redactor().configuration(Format::Yaml(ROCWORKER), text);
        assert!(!found.contains("hunter") && found.contains("[removed: "), "{text}: {found}");
    }
    for text in ["wrapper:\n  edits:\n    memlock: 8G\n", "repositories:\n  rocm:\n    component: main\n"] {
        assert_eq!(redactor().configuration(Format::Yaml(ROCWORKER), text), text);
    }
}

/// What an error of the configuration says of an unknown key in the table at `place`.
fn refused(place: &str) -> Option<String> {
    let steps = place.split('.').filter(|step| !step.is_empty()).chain(["zqx"]);
    let text = steps.rev().fold("1".to_owned(), |inner, step| format!("{{{step}: {inner}}}"));
    let error = Config::parse(Path::new("config.yaml"), &text).err()?.to_string();
    Some(error.split_once("unknown field `zqx`, expected ")?.1.to_owned())
}

#[test]
fn rocworkers_tables_have_the_keys_that_its_configuration_accepts() {
    for (table, _) in ROCWORKER.iter().filter(|(_, keys)| !keys.is_empty()) {
        let keys: Vec<&str> =
            ROCWORKER.iter().filter(|(it, _)| it == table).flat_map(|(_, keys)| *keys).copied().collect();
        let accepted = refused(table).unwrap_or_else(|| panic!("{table}"));
        let tables = ROCWORKER.iter().filter_map(|(it, _)| match it.rsplit_once('.') {
            Some((above, key)) => (above == *table).then_some(key),
            None => (table.is_empty() && !it.is_empty()).then_some(*it),
        });
        let known: BTreeSet<&str> = keys.iter().copied().chain(tables).collect();
        assert_eq!(known, accepted.split('`').skip(1).step_by(2).collect(), "{table}");
        for key in keys {
            let place = format!("{table}.{key}");
            assert_eq!(refused(place.trim_start_matches('.')), None, "{place} is a table");
        }
    }
}

#[test]
fn public_fingerprints_stay_under_their_key_alone() {
    let fingerprint = "CA8BB4727A47B4D09B4EE8969386B48A1A693C5C";
    let known = format!("repositories:\n  fingerprints:\n  - {fingerprint}\n");
    assert_eq!(redactor().configuration(Format::Yaml(ROCWORKER), &known), known);
    for text in [
        format!("fingerprints: {fingerprint}\n"),
        format!("repositories: {{origin: {fingerprint}}}\n"),
        format!("repositories: {{rocm: {{fingerprints: [{fingerprint}]}}}}\n"),
        format!("repositories: {{fingerprints: [{fingerprint}{fingerprint}, x{fingerprint}]}}\n"),
        format!("repositories: {{fingerprints: [{}Z]}}\n", fingerprint.trim_end_matches('C')),
    ] {
        let found = redactor().configuration(Format::Yaml(ROCWORKER), &text);
        assert!(!found.contains("CA8BB472") && found.contains("[removed: text, "), "{text}: {found}");
    }
}

#[test]
fn hexadecimal_digits_are_numbers_in_addresses_alone() {
    for (value, is_kept) in [
        ("deadbeef0123cafe4567", false),
        ("deadbeef0123cafe4:1", false),
        ("a.deadbeef0123cafe4", false),
        ("0000:64:00.0", true),
        ("127.0.0.1:1338", true),
        ("226:128", true),
        ("1000", true),
    ] {
        let text = format!("tag: \"{value}\"\n");
        let found = redactor().configuration(Format::Yaml(ROCWORKER), &text);
        assert_eq!(found.contains(value), is_kept, "{found}");
    }
}

#[test]
fn of_tags_only_what_rocworker_writes_keeps_its_value() {
    let own = "gpu,gpu-type=amd,compute-runtime=rocm,rocm,gpu-count=2,gpu-devices=0,1,gfx942";
    for (value, kept) in [
        (own, own),
        ("linux", "linux"),
        ("pswd=PW", "pswd=[removed: text, 2 characters]"),
        ("gpu,login=ann,big", "gpu,login=[removed: text, 3 characters],big"),
        ("x=y=z, gpu", "[removed: text, 10 characters]"),
    ] {
        let found = redactor().configuration(Format::Env, &format!("CONCOURSE_TAG=\"{value}\"\n"));
        assert_eq!(found.trim().trim_start_matches("CONCOURSE_TAG=").trim_matches('"'), kept, "{value}");
        let found = redactor().configuration(Format::Yaml(ROCWORKER), &format!("tag: '{value}'\n"));
        assert_eq!(found.trim().trim_start_matches("tag: ").trim_matches('\''), kept, "{value}");
    }
}

proptest::proptest! {
    #[test]
    fn no_text_makes_it_fail(text in "([-a-zA-Z0-9=:@/\"'\\[\\]{}| \\\\\n\u{e9}]|KEY=|://){0,80}") {
        let found = redactor().text(&text);
        proptest::prop_assert!(found.contains("[removed") || found == text, "{} {MARK}", found);
        redactor().wrapper_line(&text);
        let of_engines = engines::ALL.iter().flat_map(|engine| engine.reported).map(|it| it.format);
        let formats = [Format::Json(CDI), Format::Json(POLICY), Format::Yaml(ROCWORKER), Format::Env, Format::Unit];
        for format in of_engines.chain(formats) {
            redactor().configuration(format, &text);
        }
    }
}
