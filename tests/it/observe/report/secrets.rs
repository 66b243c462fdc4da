//! Secrets of every shape that came to mind, in every file of a configuration that is taken: none is in the archive.

use std::collections::BTreeSet;
use std::io::Read as _;

use flate2::read::GzDecoder;
use layout::Nodes;
use serde_json::{Value, json};
use support::detect::scratch;

use crate::observe::report::archive::*;

/// Part of every secret, on both sides of whatever could cut it in two; of those that are numbers the second.
const MARKS: [&str; 2] = ["zqx", "739184"];

const KEYS: [&str; 36] = [
    "DB_PASS",
    "pass",
    "CRED",
    "PW",
    "PIN",
    "TOK",
    "password",
    "token",
    "api-key",
    "SECRET",
    "sig",
    "webhook",
    "SLACK_URL",
    "DSN",
    "DATABASE_URL",
    "login",
    "passphrase",
    "otp",
    "salt",
    "seed",
    "license",
    "cookie",
    "session",
    "jwt",
    "bearer",
    "signing",
    "hmac",
    "ssh",
    "x",
    "foo.bar",
    "REDIS",
    "MONGO_URI",
    "splunk-hec",
    "CONCOURSE_TSA_WORKER_PRIVATE",
    "CONCOURSE_VAULT_CLIENT",
    "CONCOURSE_ADD_LOCAL",
];

/// Keys whose values are told where they are plain: addresses.
const ADDRESSES: [&str; 6] =
    ["http-proxy", "https-proxy", "HTTP_PROXY", "https_proxy", "registry-mirrors", "endpoint"];

fn urls(n: usize) -> Vec<String> {
    let s = format!("zqx{n}");
    let mut urls: Vec<String> =
        ["", "=", ",", "(", ")", "'", "@", ":", "/", "?", "#", "%40", "+", "&", ";", "$", "!", "*", "~", " "]
            .iter()
            .map(|between| format!("http://ann:{s}{between}{s}@proxy.example:3128"))
            .collect();
    urls.extend([
        format!("https://{s}@o1.example/4"),
        format!("https://store.example/blob?sv=2020&sig={s}%3D"),
        format!("https://hooks.example/services/T00/B00/{s}"),
        format!("https://api.example/bot{s}:AA/sendMessage"),
        format!("https://host.example/#access_token={s}"),
        format!("postgres://u:{s}@db/x"),
        format!("amqp://u:{s}@mq:5672/%2f"),
        format!("redis://:{s}@cache:6379/0"),
        format!("s3://{s}/bucket"),
    ]);
    urls
}

fn plain(n: usize) -> Vec<String> {
    let s = format!("zqx{n}");
    vec![
        s.clone(),
        format!("7391846{n}"),
        format!("user:{s}"),
        format!("{s} {s}"),
        format!("{s}=={s}"),
        format!("{s}'{s}"),
        format!("{s},{s}"),
        format!("/{s}/{s}"),
        format!("ghp_{s}A1b2C3d4E5f6G7h8"),
        format!("eyJhbGciOi.{s}.c2ln"),
        format!("Bearer {s}"),
        format!("Basic {s}=="),
        format!("-----BEGIN PRIVATE KEY-----\\n{s}\\n-----END PRIVATE KEY-----"),
        format!("[\"--password\",\"{s}\"]"),
        format!("{{\"password\":\"{s}\"}}"),
        format!("password={s};Server=x"),
        format!("-u user:{s}"),
        format!("\u{e9}{s}\u{2028}{s}"),
    ]
}

/// Text of each file, and how many secrets there are in all.
#[derive(Default)]
struct Files {
    env: String,
    unit: String,
    toml: String,
    yaml: String,
    json: Vec<Value>,
    count: usize,
}

impl Files {
    fn add(&mut self, key: &str, secret: &str) {
        let escaped = Value::from(secret).to_string();
        let variable: String = key.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let in_quotes = secret.replace('\\', "\\\\").replace('"', "\\\"");
        for shape in 0..6 {
            self.add_as(shape, key, &variable, secret, &escaped, &in_quotes);
        }
    }

    fn add_as(
        &mut self,
        shape: usize,
        key: &str,
        variable: &str,
        secret: &str,
        escaped: &str,
        in_quotes: &str,
    ) {
        match shape {
            0 => self.env += &format!("{variable}=\"{in_quotes}\"\n"),
            1 => {
                self.env +=
                    &format!("# {variable}={secret}\nexport {variable}={secret}\n{variable}={secret}\n")
            }
            2 => {
                self.unit += &format!(
                    "Environment=\"{variable}={in_quotes}\" B=1\n# {secret}\nX-{variable}={secret}\n"
                );
                self.unit += &format!(
                    "ExecStartPre=-/usr/bin/curl --{key} \"{in_quotes}\" \\\n  -u \"user:{in_quotes}\" \"-p{in_quotes}\"\n"
                );
                self.unit += &format!("ExecStart=/bin/worker --{key}=\"{in_quotes}\" {secret}\n");
            }
            3 => {
                self.toml += &format!(
                    "[[a]] # {secret}\n\"{key}\" = {escaped}\nlist = [\"--{key}\", {escaped}]\nenv = [\"X=1\", {escaped}]\n"
                );
            }
            4 => {
                self.yaml += &format!(
                    "- \"{key}\": {escaped} # {secret}\n  args: [\"--{key}\", {escaped}]\n  nested: {{ \"{key}\": [{escaped}] }}\n"
                )
            }
            _ => {
                let variable = format!("{variable}={secret}");
                self.json
                    .push(json!({ key: secret, "args": [format!("--{key}"), secret], "env": [variable] }));
                self.json.push(
                    json!({ "runtimes": { "x": { "runtimeArgs": [format!("--{key}={secret}"), secret] } } }),
                );
                self.json
                    .push(json!({ "log-opts": { key: [secret] }, "auths": { secret: { "path": secret } } }));
            }
        }
        self.count += 1;
    }
}

fn everywhere(archive: &[u8]) -> String {
    let mut bytes = Vec::new();
    GzDecoder::new(archive).read_to_end(&mut bytes).unwrap();
    String::from_utf8_lossy(&bytes).to_ascii_lowercase()
}

#[test]
fn of_ten_thousand_secrets_in_configurations_none_is_in_the_archive() {
    let mut files = Files::default();
    for key in KEYS {
        urls(0).iter().chain(&plain(0)).for_each(|secret| files.add(key, secret));
    }
    for key in ADDRESSES {
        urls(0).iter().for_each(|secret| files.add(key, secret));
    }
    assert!(files.count >= 10_000, "{}", files.count);
    let broken: String = plain(0).iter().map(|secret| format!("\"password\": {secret}\n")).collect();
    let machine = machine()
        .put("/etc/default/concourse", &*files.env)
        .put("/var/lib/concourse-worker/worker-config.env", &*files.env)
        .put("/etc/rocworker/concourse.env", &*files.env)
        .put("/etc/containerd/config.toml", &*files.toml)
        .put("/etc/containerd/conf.d/broken.toml", &*broken)
        .put("/etc/cdi/a.yaml", &*files.yaml)
        .put("/etc/cdi/broken.yaml", format!("{broken}\t- {{"))
        .put("/etc/cdi/broken.json", &*broken)
        .put("/etc/docker/daemon.json", Value::from(&files.json[..1500]).to_string());
    let (first, second) =
        files.unit.split_at(files.unit.len() / 2 + files.unit[files.unit.len() / 2..].find("\nEnv").unwrap());
    let machine =
        [("docker", first), ("concourse-worker", second)].iter().fold(machine, |machine, (unit, text)| {
            let path = format!("/etc/systemd/system/{unit}.service.d/a.conf");
            machine.put(&path, format!("[Service]\n{text}"))
        });
    // A file is taken up to 1 MiB.
    let chunks = files.json.chunks(1500).enumerate();
    let machine = chunks.fold(machine, |machine, (n, chunk)| {
        machine.put(&format!("/etc/cdi/{n}.json"), Value::from(chunk).to_string())
    });
    for config in [
        "packages: {proxy: \"http://ann:zqx=(zqx)'@proxy:3128\"} # zqx\nrepositories: {key: \"https://zqx:zqx@m.example/rocm/rocm.gpg.key\"}\n",
        "restart: \"ann:zqx zqx!\"\n",
        "tag: \"zqx 'zqx\"\n",
        "? zqx zqx\n: [\n",
    ] {
        let root = scratch();
        machine
            .clone()
            .put("/etc/rocworker/config.yaml", config)
            .lay_out(root.path(), Nodes::Recorded)
            .unwrap();
        let archive = archive(root.path());
        let all = everywhere(&archive);
        for mark in MARKS {
            let found = all.find(mark).map(|at| all.get(at.saturating_sub(300)..at + 60).unwrap_or("?"));
            assert_eq!(found, None, "{config}");
        }
        let entries = entries(&archive);
        let left_out = text(&entries, "capture.json");
        assert!(!left_out.contains("larger than"), "what is not taken is not looked through: {left_out}");
    }
}

/// What rocworker reads of it, and what tells how an engine behaves; rocworker lays it out anew.
#[test]
fn what_is_read_of_a_configuration_is_in_the_archive_word_for_word() {
    let containerd = "disabled_plugins = []\nimports = [\"/etc/containerd/conf.d/*.toml\"]\nversion = 2\n\n\
        [plugins.\"io.containerd.grpc.v1.cri\"]\ncdi_spec_dirs = [\"/etc/cdi\",\"/run/cdi\"]\nenable_cdi = true\n\n\
        [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.amd]\nruntime_type = \"io.containerd.runc.v2\"\n\n\
        [plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.amd.options]\n\
        BinaryName = \"/usr/bin/runc-amd-wrapper\"\nNoNewKeyring = true\nSystemdCgroup = true\n";
    let drop_in = "[Unit]\nAfter=rocworker-boot.service\n[Service]\nNoNewPrivileges=yes\nKeyringMode=[removed: text, 7 characters]\n\
        EnvironmentFile=-/etc/rocworker/concourse.env\nExecStart=\nExecStart=/usr/bin/dockerd -H fd:// --containerd=/run/c.sock --config-file /srv/d.json $DOCKER_OPTS\n";
    let files = [
        ("/etc/containerd/config.toml", containerd),
        (
            "/etc/docker/daemon.json",
            "{\n  \"default-runtime\": \"amd\",\n  \"features\": {\n    \"cdi\": true\n  },\n  \"registry-mirrors\": [\n    \"https://mirror.example\"\n  ],\n  \
             \"runtimes\": {\n    \"amd\": {\n      \"path\": \"/usr/bin/runc-amd-wrapper\",\n      \"runtimeArgs\": []\n    }\n  }\n}\n",
        ),
        (
            "/etc/crio/crio.conf.d/10-crio.conf",
            "[crio.runtime]\ndefault_runtime = \"crun\"\n\n[crio.runtime.runtimes.crun]\nruntime_path = \"/usr/libexec/crio/crun\"\n",
        ),
        (
            "/etc/default/concourse",
            "CONCOURSE_RUNTIME=containerd\nCONCOURSE_TAG=linux,gpu,gpu-type=amd\nCONCOURSE_WORK_DIR=/srv/w\n",
        ),
        (
            "/etc/rocworker/config.yaml",
            "compute-runtime: rocm\ncontainerd:\n  runtime: amd\ngpu-device-ids:\n- 0000:03:00.0\n- renderD128\n",
        ),
        ("/etc/systemd/system/docker.service.d/a.conf", drop_in),
    ];
    let machine = files.iter().fold(machine(), |machine, (path, text)| {
        machine.put(path, text.replace("[removed: text, 7 characters]", "private"))
    });
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let entries = entries(&archive(root.path()));
    for (path, expected) in files {
        assert_eq!(text(&entries, path.trim_start_matches('/')), expected, "{path}");
    }
}

/// Where tables of words are, and how their names begin here.
const TABLES: [(&str, &str); 6] = [
    ("", include_str!("../../../../src/report/redact/keys.rs")),
    ("ROCWORKER_", include_str!("../../../../crates/config/src/keys.rs")),
    ("CONTAINERD_", include_str!("../../../../crates/engines/src/containerd/report.rs")),
    ("DOCKER_", include_str!("../../../../crates/engines/src/docker/report.rs")),
    ("CONCOURSE_", include_str!("../../../../crates/engines/src/concourse/report.rs")),
    ("CRIO_", include_str!("../../../../crates/engines/src/crio/report.rs")),
];

/// rocworker's own configuration has the keys of its sample.
fn sample() -> impl Iterator<Item = &'static str> {
    let lines = include_str!("../../../../templates/config.yaml").lines();
    lines.filter_map(|line| Some(line.trim_start_matches(['#', ' ']).split_once(':')?.0))
}

/// The words of the tables whose name begins so.
fn words(table: &str) -> BTreeSet<&'static str> {
    let of_file = |(begin, text): &(&str, &'static str)| {
        let tables = text.split("\nconst ").flat_map(|it| it.split("\npub(super) const "));
        let tables = tables.flat_map(|it| it.split("\npub(crate) const "));
        let tables = tables.flat_map(|it| it.split("\npub const ")).skip(1);
        tables.filter(|it| format!("{begin}{it}").starts_with(table)).collect::<Vec<_>>()
    };
    let tables = TABLES.iter().flat_map(of_file);
    let code = tables.flat_map(|it| it.lines().filter(|line| !line.trim().starts_with("//")));
    code.flat_map(|line| line.split('"').skip(1).step_by(2)).flat_map(|word| word.split('.')).collect()
}

/// A word that one program's file is known by guards nothing in another's, nor in a table whose keys anybody chooses.
#[test]
fn a_known_word_in_the_file_of_another_program_or_in_a_table_of_the_users_keeps_no_value() {
    let all: BTreeSet<&str> = words("")
        .into_iter()
        .chain(KEYS)
        .chain(sample())
        .filter(|word| !word.is_empty() && *word != "*" && !word.contains(['"', ' ']))
        .collect();
    assert!(all.len() > 200 && ["key", "name", "CONCOURSE_TAG", "H"].iter().all(|it| all.contains(it)));
    let strangers = |table: &str| {
        let own = words(table);
        all.iter().filter(move |word| !own.contains(*word)).copied().collect::<Vec<_>>()
    };
    let object = |keys: &[&str]| keys.iter().map(|key| ((*key).to_owned(), json!("zqx"))).collect::<Value>();
    let everything: Vec<&str> = all.iter().copied().collect();
    let toml = |keys: &[&str]| keys.iter().map(|key| format!("\"{key}\" = \"zqx\"\n")).collect::<String>();
    let lines = |keys: &[&str], begin: &str, end: &str| {
        keys.iter().map(|key| format!("{begin}{key}{end}\n")).collect::<String>()
    };
    let variables = strangers("ENVIRONMENT");
    let mut docker = object(&strangers("DOCKER_KEYS"));
    docker["log-opts"] = object(&everything);
    docker["features"] = object(&everything);
    let mut cdi = object(&strangers("CDI"));
    cdi["annotations"] = object(&everything);
    let containerd = format!(
        "{}[plugins.x.registry.configs.r.tls]\n{}[plugins.x.registry.configs.r.header]\n{}[stream_processors.x]\n{}",
        toml(&strangers("CONTAINERD_KEYS")),
        toml(&everything),
        toml(&everything),
        toml(&everything)
    );
    let crio = format!("{}[crio.runtime.workloads.x]\n{}", toml(&strangers("CRIO_KEYS")), toml(&everything));
    let env = lines(&variables, "", "=zqx");
    let mut unit = format!(
        "[Service]\n{}{}{}",
        lines(&strangers("UNIT"), "", "=zqx"),
        lines(&everything, "X-", "=zqx"),
        lines(&variables, "Environment=", "=zqx")
    );
    for program in ["/bin/sh", "/usr/bin/env A=1 /usr/bin/dockerd", "/usr/bin/curl", "dash"] {
        for begin in ["-", "--"] {
            unit += &lines(&everything, &format!("ExecStart={program} {begin}"), " zqx");
            unit += &lines(&everything, &format!("ExecStartPre={program} {begin}"), "=zqx");
        }
    }
    for (program, table) in [
        ("/usr/bin/dockerd", "DOCKER_OPTIONS"),
        ("/usr/bin/containerd", "CONTAINERD_OPTIONS"),
        ("/x/concourse worker", "CONCOURSE_OPTIONS"),
        ("/usr/bin/crio", "CRIO_OPTIONS"),
    ] {
        unit += &lines(&strangers(table), &format!("ExecStart={program} --"), " zqx");
    }
    let files = [
        ("etc/default/concourse", env),
        ("etc/docker/daemon.json", docker.to_string()),
        ("etc/containerd/config.toml", containerd),
        ("etc/crio/crio.conf", crio),
        ("etc/cdi/a.json", cdi.to_string()),
        ("etc/cdi/a.yaml", cdi.to_string()),
        ("etc/systemd/system/docker.service.d/a.conf", unit),
    ];
    let machine =
        files.iter().fold(machine(), |machine, (path, text)| machine.put(&format!("/{path}"), &**text));
    let root = scratch();
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let entries = entries(&archive(root.path()));
    for (path, _) in &files {
        let kept: Vec<&str> = text(&entries, path).lines().filter(|line| line.contains("zqx")).collect();
        assert!(kept.is_empty(), "{path}: {kept:#?}");
        assert!(text(&entries, path).contains("removed: "), "{path} could be read");
    }
}

#[test]
fn the_unit_and_the_environment_files_that_it_names_are_in_the_archive_and_doctor_finds_the_worker() {
    let machine = machine()
        .put(
            "/usr/lib/systemd/system/concourse-worker.service",
            "[Service]\nEnvironmentFile=-/etc/default/%N\nEnvironmentFile=/srv/env/*.env\nEnvironment=API=zqx\n\
             ExecStart=/usr/local/concourse/bin/concourse worker --work-dir /srv/w --tsa-worker-private zqx\n",
        )
        .put("/etc/default/concourse-worker", "CONCOURSE_RUNTIME=containerd\nkey=zqx\nCONCOURSE_TSA=zqx\n")
        .put("/srv/env/a.env", "CONCOURSE_WORK_DIR=/srv/w\nDB=zqx\n")
        .put("/usr/local/concourse/bin/concourse", "")
        .put("/usr/lib/systemd/system/docker.service", "[Service]\nEnvironmentFile=/etc/default/%i\nType=notify\n");
    let (root, into) = (scratch(), scratch());
    machine.lay_out(root.path(), Nodes::Recorded).unwrap();
    let archive = archive(root.path());
    assert_nowhere(&archive, "zqx");
    let entries = entries(&archive);
    let unit = text(&entries, "usr/lib/systemd/system/concourse-worker.service");
    assert!(unit.contains("/usr/local/concourse/bin/concourse worker --work-dir /srv/w"), "{unit}");
    assert!(text(&entries, "etc/default/concourse-worker").contains("CONCOURSE_RUNTIME=containerd\n"));
    assert_eq!(
        text(&entries, "srv/env/a.env"),
        "CONCOURSE_WORK_DIR=/srv/w\nDB=\"[removed: text, 3 characters]\"\n"
    );
    assert!(text(&entries, "usr/lib/systemd/system/docker.service").contains("Type=notify"));
    assert!(text(&entries, "capture.json").contains("/etc/default/%i"));
    let said = as_on_the_machine(&doctor_beneath(&unpack(&archive, into.path())), into.path());
    assert!(!said.contains("no worker"), "{said}");
}
