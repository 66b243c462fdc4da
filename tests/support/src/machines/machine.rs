//! A machine that is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use layout::Nodes;

use super::fleet::{Fleet, first_line};
use crate::group;
use crate::said::Said;
use crate::stage::build;
use crate::waiting::eventually;

const START: &str = include_str!("start.sh");
const MACHINE: &str = include_str!("machine.sh");

/// The properties of a machine before its start.
#[derive(Debug, Default)]
pub struct Setup {
    files: Option<PathBuf>,
    laid: Option<layout::Machine>,
    shell: Shell,
    is_booted: bool,
    /// A script for the machine's process 1, run before its sshd starts.
    prepare: String,
}

/// The set of programs of a machine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shell {
    /// Debian's: /bin/sh is dash, root's shell is bash.
    #[default]
    Dash,
    /// /bin/sh, root's shell and whatever else busybox has are busybox.
    Busybox,
}

/// The rights that sudo(8) gives a user.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sudo {
    /// Everything, at once.
    NoPassword,
    /// Everything, after a password that a script cannot type.
    Password,
    /// Nothing.
    No,
}

impl Setup {
    /// A machine's files beneath a folder of this host's: its `sys` is /sys there. Several machines may share it.
    #[must_use]
    pub fn files(mut self, folder: &Path) -> Self {
        self.files = Some(folder.to_owned());
        self
    }

    /// Lays a machine out, with real device nodes.
    #[must_use]
    pub fn laid(mut self, machine: layout::Machine) -> Self {
        self.laid = Some(machine);
        self
    }

    #[must_use]
    pub fn shell(mut self, shell: Shell) -> Self {
        self.shell = shell;
        self
    }

    /// systemd is its process 1, and journald keeps its log. Of the system's own units no other is there.
    #[must_use]
    pub fn systemd(mut self) -> Self {
        self.is_booted = true;
        self
    }

    /// A user whom the asker's key lets in, whose shell is /bin/sh.
    #[must_use]
    pub fn user(self, name: &str, sudo: Sudo) -> Self {
        let may = match sudo {
            Sudo::NoPassword => format!("echo '{name} ALL=(ALL:ALL) NOPASSWD: ALL' > /etc/sudoers.d/{name}"),
            Sudo::Password => format!("echo '{name} ALL=(ALL:ALL) ALL' > /etc/sudoers.d/{name}"),
            Sudo::No => ":".to_owned(),
        };
        self.prepare(&format!(
            "useradd --create-home --shell /bin/sh {name}; {may}; \
             cp -a /root/.ssh /home/{name}/.ssh; chown -R {name}: /home/{name}/.ssh"
        ))
    }

    /// A line of sshd_config(5), before those of Debian.
    #[must_use]
    pub fn sshd(self, line: &str) -> Self {
        self.prepare(&format!(
            "mkdir -p /etc/ssh/sshd_config.d; echo '{line}' >> /etc/ssh/sshd_config.d/test.conf"
        ))
    }

    /// A script for sh that process 1 runs before its sshd starts.
    #[must_use]
    pub fn prepare(mut self, script: &str) -> Self {
        self.prepare.push_str(script);
        self.prepare.push('\n');
        self
    }
}

/// A machine that has started. It runs as long as its fleet does.
#[derive(Debug)]
pub struct Machine<'f> {
    fleet: &'f Fleet,
    name: String,
    /// The pid of the machine's process 1, as the asker counts.
    pid: String,
}

impl Fleet {
    /// Starts a machine of this name and waits until its sshd listens. The asker knows its address and its host key.
    ///
    /// # Panics
    /// Where it does not start.
    pub fn machine(&self, name: &str, set_up: impl FnOnce(Setup) -> Setup) -> Machine<'_> {
        Machine::start(self, name, set_up(Setup::default()))
    }
}

impl<'f> Machine<'f> {
    fn start(fleet: &'f Fleet, name: &str, setup: Setup) -> Self {
        let number = fleet.next_number();
        let home = fleet.path(&format!("mnt/{name}"));
        let made = format!("mkdir /mnt/{name} && mount -t tmpfs -o mode=755,nr_inodes=0 none /mnt/{name}");
        fleet.shell(&made).well();
        let files = setup.files.unwrap_or_else(|| Path::new("/mnt").join(name).join(".machine"));
        fs::create_dir(home.join(".machine")).unwrap();
        if let Some(laid) = &setup.laid {
            laid.lay_out(&home.join(".machine"), Nodes::Real).unwrap();
        }
        let mut prepare = format!(
            "mkdir -m 700 /root/.ssh; echo '{}' > /root/.ssh/authorized_keys\n",
            fs::read_to_string(fleet.path("root/.ssh/id_ed25519.pub")).unwrap().trim()
        );
        if setup.shell == Shell::Busybox {
            fs::write(home.join(".busybox"), "").unwrap();
            prepare.push_str("sed -i '/^root:/s,[^:]*$,/bin/sh,' /etc/passwd\n");
        }
        if setup.is_booted {
            let group = format!("fleet-{}-{name}", fleet.pid());
            fs::write(home.join(".systemd"), &group).unwrap();
            fleet.clean_up(group);
        }
        prepare.push_str(&setup.prepare);
        let number_text = number.to_string();
        let argv = [
            "unshare",
            "--net",
            "--uts",
            "sh",
            "-c",
            &format!("{}{START}", group::JOIN),
            "start",
            name,
            &number_text,
        ];
        let mut starter = fleet
            .command(&argv)
            .arg(files)
            .arg(build())
            .args([MACHINE, &prepare])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = first_line(&mut starter);
        fleet.hold(starter);
        let machine = Self { fleet, name: name.to_owned(), pid };
        let address = format!("10.91.{}.{}", number / 200, number % 200 + 2);
        fleet.append("etc/hosts", &format!("{address} {name}"));
        machine.trust();
        machine.wait_for_sshd();
        machine
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// A command that runs a program on the machine as root, without ssh.
    pub fn command(&self, argv: &[&str]) -> Command {
        let enter = ["nsenter", "--target", &self.pid, "--all", "--wdns=/", "--"];
        self.fleet.command(&[&enter, argv].concat())
    }

    /// A command as [`Machine::command`] gives it, for this user of the machine, in the user's own group
    /// alone.
    ///
    /// # Panics
    /// Where the machine has no such user.
    pub fn command_as(&self, user: &str, argv: &[&str]) -> Command {
        let users = fs::read_to_string(self.path("etc/passwd")).unwrap();
        let mut fields = users.lines().map(|line| line.split(':').collect::<Vec<_>>());
        let fields = fields.find(|fields| fields[0] == user).unwrap_or_else(|| panic!("{user} is not known"));
        let as_user = ["--setuid", fields[2], "--setgid", fields[3]];
        let enter = ["nsenter", "--target", &self.pid, "--all", "--wdns=/"];
        self.fleet.command(&[&enter[..], &as_user, &["--"], argv].concat())
    }

    /// Runs a program on the machine, without ssh.
    ///
    /// # Panics
    /// Where there is no nsenter(1).
    pub fn run(&self, argv: &[&str]) -> Said {
        self.command(argv).stdin(Stdio::null()).output().unwrap().into()
    }

    /// Runs a shell's script on the machine, without ssh.
    ///
    /// # Panics
    /// Where [`Machine::run`] panics.
    pub fn shell(&self, script: &str) -> Said {
        self.run(&["sh", "-ec", script])
    }

    /// The path of a machine's file for the test.
    pub fn path(&self, path: &str) -> PathBuf {
        self.fleet.path(&format!("proc/{}/root", self.pid)).join(path.trim_start_matches('/'))
    }

    /// Writes a file of the machine's, with the folders that it needs.
    ///
    /// # Panics
    /// Where it cannot be written.
    pub fn put(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    /// The log of the machine's sshd.
    pub fn sshd_log(&self) -> String {
        fs::read_to_string(self.path("var/log/sshd.log")).unwrap_or_default()
    }

    /// Lets the asker trust the machine's host key.
    fn trust(&self) {
        let key = fs::read_to_string(self.path("etc/ssh/ssh_host_ed25519_key.pub")).unwrap();
        let key: Vec<&str> = key.split_whitespace().take(2).collect();
        self.fleet.append("root/.ssh/known_hosts", &format!("{} {}", self.name, key.join(" ")));
    }

    fn wait_for_sshd(&self) {
        let name = &self.name;
        eventually(&format!("{name}'s sshd listens"), || {
            self.sshd_log().contains("Server listening on 0.0.0.0")
        });
    }

    /// sshd stops: the kernel takes connections for it, and nobody says anything.
    pub fn stop_sshd(&self) {
        self.shell("kill -STOP $(cat /run/sshd.pid)").well();
    }

    /// A stopped sshd goes on.
    pub fn continue_sshd(&self) {
        self.shell("kill -CONT $(cat /run/sshd.pid)").well();
    }

    /// sshd is gone, with its sessions: connections are refused.
    pub fn kill_sshd(&self) {
        // An sshd that is about to divide holds the port twice, and a killed process closes its files a little later.
        eventually("no sshd is left", || {
            self.shell("if pids=$(pidof sshd); then kill -KILL $pids || true; else echo none; fi").well()
                == "none\n"
        });
    }

    /// Starts sshd anew.
    pub fn start_sshd(&self) {
        self.shell(": > /var/log/sshd.log; /usr/sbin/sshd -E /var/log/sshd.log < /dev/null > /dev/null 2>&1")
            .well();
        self.wait_for_sshd();
    }

    /// Gives the machine another host key, as if it was installed anew under its name.
    pub fn change_key(&self) {
        self.kill_sshd();
        self.shell("cd /etc/ssh; rm ssh_host_*; ssh-keygen -q -t ed25519 -N '' -f ssh_host_ed25519_key")
            .well();
        self.start_sshd();
    }

    /// The machine's root, /etc, /usr and /var take no further byte.
    pub fn fill_disk(&self) {
        let name = &self.name;
        let full =
            format!("mount -o remount,size=$(df -B1 /mnt/{name} | awk 'NR == 2 {{ print $3 }}') /mnt/{name}");
        self.fleet.shell(&full).well();
    }

    /// Packets are dropped from now on: nobody answers.
    pub fn cut_off(&self) {
        self.shell("ip link set eth0 down").well();
    }

    /// The machine has lost its power.
    pub fn kill(&self) {
        self.fleet.shell(&format!("kill -KILL {}", self.pid)).well();
    }
}
