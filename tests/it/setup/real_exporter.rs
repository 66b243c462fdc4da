//! rocm-exporter.service with the real exporter under a real systemd: what it serves from its sandbox, and what undo
//! restores of another's unit.

use layout::Machine;
use support::real;
use support::stage::{Stage, stdout};

const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker");

/// What each script begins with. Ports are those of the machine that runs the test.
const START: &str = r#"
export PATH=/usr/sbin:/usr/bin:/sbin:/bin
until_true() { n=0; until eval "$1"; do n=$((n + 1)); [ $n -lt 200 ] || { echo "never: $1" >&2; systemctl status rocm-exporter >&2; cat /run/said >&2; exit 1; }; sleep 0.05; done; }
says() { systemctl show --value --property=$1 rocm-exporter; }
scrape() { curl --silent --show-error --fail "$@"; }
configure() { printf 'boot: {unit: false}\ndaemon: {unit: false}\nexporter: {%s}\n' "$1" > /etc/rocworker/config.yaml; }
mkdir -p /etc/rocworker /etc/systemd/system/rocm-exporter.service.d
printf '[Service]\nStandardError=append:/run/said\n' > /etc/systemd/system/rocm-exporter.service.d/test.conf
chmod 755 /usr/lib/rocworker/runc-amd-wrapper
"#;

fn boot(script: &str) -> Option<String> {
    let programs = ["unshare", "systemctl", "systemd-analyze", "curl", "openssl", "groupadd"];
    let exporter = real::require_root_and_built("ROCWORKER_EXPORTER", &programs)?;
    let stage = Stage::set(&Machine::demo());
    stage.put("usr/lib/rocworker/runc-amd-wrapper", support::stage::WRAPPER);
    let exporter = exporter.display();
    let install = format!("install -m 755 {PROGRAM} {exporter} /usr/bin\n");
    Some(stdout(&stage.boot(&format!("{install}{START}{script}"))))
}

#[test]
fn real_the_exporter_answers_from_its_sandbox_begins_anew_once_and_goes_with_undo() {
    let Some(out) = boot(
        r#"
configure 'listen: 127.0.0.1:29401'
rocworker apply | grep rocm-exporter
says ActiveState
# What it may read there is what root may read outside: its own times aside.
series() { grep -v -e '^#' -e '^rocm_exporter_' | sort; }
scrape http://127.0.0.1:29401/metrics | series > /run/scraped
rocworker metrics | series > /run/by-root
diff /run/by-root /run/scraped && echo the same as root
[ "$(grep -c '^rocm_gpu_info{' /run/scraped)" -ge 9 ] && echo each GPU
pid=$(says MainPID)
grep -E '^(NoNewPrivs|Seccomp|CapEff):' /proc/$pid/status
[ "$(stat -c %u /proc/$pid)" -ge 61184 ] && echo a user of its own
ls /proc/$pid/root/dev | grep -c -E '^(dri|kfd)$' || true
rocworker apply | tail -1
configure 'listen: 127.0.0.1:29402'
rocworker apply | grep -c 'rocm-exporter.service was started'
scrape http://127.0.0.1:29402/metrics | series | diff /run/scraped - && echo the same
# A port that is another's.
configure 'listen: 127.0.0.1:29407'
rocworker-exporter --listen 127.0.0.1:29407 2> /dev/null &
until_true 'scrape http://127.0.0.1:29407/metrics > /dev/null'
rocworker apply | grep -o 'failed: systemctl restart rocm-exporter.service' | head -1
kill $!
rocworker undo | grep rocm-exporter.service
systemctl is-active rocm-exporter || true
"#,
    ) else {
        return;
    };
    assert_eq!(
        out,
        "created /etc/systemd/system/rocm-exporter.service: Prometheus reads the GPUs' metrics from it
created /etc/systemd/system/multi-user.target.wants/rocm-exporter.service: systemd runs it at each start
done: rocm-exporter.service was started
active
the same as root
each GPU
CapEff:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
a user of its own
0
Already in sync; no changes.
1
the same
failed: systemctl restart rocm-exporter.service
removed /etc/systemd/system/multi-user.target.wants/rocm-exporter.service: it was not there before
removed /etc/systemd/system/rocm-exporter.service: it was not there before
skipped: rocm-exporter.service does not run
failed
"
    );
}

#[test]
fn real_another_ones_unit_runs_again_after_undo_if_it_ran_before() {
    let Some(out) = boot(
        r#"
unit=/etc/systemd/system/rocm-exporter.service
printf '[Service]\nExecStart=/bin/sleep 1000\n[Install]\nWantedBy=multi-user.target\n' > $unit
before=$(sha256sum $unit)
runs() { cat /proc/$(says MainPID)/comm 2>/dev/null || echo nothing; }
for was in start stop; do
    systemctl daemon-reload
    systemctl $was rocm-exporter
    echo "$was: $(runs)"
    configure 'listen: 127.0.0.1:29403'
    rocworker apply | grep -o 'and runs /bin/sleep: it stays'
    runs
    configure 'listen: 127.0.0.1:29403, existing: replace'
    rocworker apply > /run/applied
    # The name of a process has 15 letters.
    until_true '[ "$(runs)" = rocworker-expor ]'
    scrape http://127.0.0.1:29403/metrics > /dev/null
    rocworker undo > /run/undone
    until_true '[ "$(runs)" != rocworker-expor ]'
    runs
    [ "$(sha256sum $unit)" = "$before" ] && echo restored
done
"#,
    ) else {
        return;
    };
    let expected = |was: &str, runs: &str| {
        format!("{was}: {runs}\nand runs /bin/sleep: it stays\n{runs}\n{runs}\nrestored\n")
    };
    assert_eq!(out, [expected("start", "sleep"), expected("stop", "nothing")].concat());
}

#[test]
fn real_with_a_key_that_a_group_reads_it_answers_by_tls_to_who_has_the_password() {
    let Some(out) = boot(
        r#"
groupadd --system ssl-cert 2>/dev/null || true
cd /etc/rocworker
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=localhost \
    -addext subjectAltName=DNS:localhost -keyout exporter.key -out exporter.crt 2>/run/openssl
# Of the password "secret".
cat > exporter-web.yaml <<'END'
tls_server_config: {cert_file: exporter.crt, key_file: exporter.key}
basic_auth_users: {prometheus: $2b$04$EHpL43rMXUyjJLzAn9fPnORzSjO8XgzYcyVeIwuZD87MvYeveWRQe}
END
chmod 600 exporter-web.yaml exporter.key
configure 'listen: 127.0.0.1:29404, web-config: /etc/rocworker/exporter-web.yaml'
rocworker apply > /run/applied || echo "apply ended with $?"
grep -o 'only root can read /etc/rocworker/exporter-web.yaml' /run/applied
chgrp ssl-cert exporter-web.yaml exporter.key
chmod 640 exporter-web.yaml exporter.key
rocworker apply > /run/applied
until_true '[ "$(says ActiveState)" = active ]'
grep -c ^SupplementaryGroups= /etc/systemd/system/rocm-exporter.service
at() { curl --silent --cacert exporter.crt --output /run/scraped --write-out '%{http_code}\n' "$@"; }
at https://localhost:29404/metrics
at --user prometheus:secret https://localhost:29404/metrics
grep -q '^rocm_gpu_info{' /run/scraped && echo metrics
"#,
    ) else {
        return;
    };
    assert_eq!(
        out,
        "apply ended with 1\nonly root can read /etc/rocworker/exporter-web.yaml\n1\n401\n200\nmetrics\n"
    );
}

#[test]
fn real_systemd_analyze_finds_no_fault_and_little_exposure_in_the_exporters_unit() {
    let Some(out) = boot(
        r#"
configure 'listen: 127.0.0.1:29405'
rocworker apply > /run/applied
unit=/etc/systemd/system/rocm-exporter.service
rm -r $unit.d
systemd-analyze verify --man=no $unit && echo verified
systemd-analyze security --offline=true --threshold=15 $unit > /run/exposure && echo not more than 1.5
tail -1 /run/exposure >&2
tail -1 /run/exposure | grep -o 'level for rocm-exporter.service: [0-9.]*'
"#,
    ) else {
        return;
    };
    let level =
        out.strip_prefix("verified\nnot more than 1.5\nlevel for rocm-exporter.service: ").expect(&out);
    assert!(level.trim().parse::<f64>().unwrap() <= 1.5, "{level}");
}
