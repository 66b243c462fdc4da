//! A program that runs, and requests to it.

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_rocworker-exporter");

/// Killed when dropped.
pub(crate) struct Running {
    child: Child,
    pub(crate) address: SocketAddr,
    logged: Receiver<String>,
}

impl Running {
    /// Starts the exporter on a port that the kernel chooses.
    pub(crate) fn start(root: &Path, arguments: &[&OsStr]) -> Self {
        let mut command = Command::new(PROGRAM);
        command.arg("--root").arg(root).arg("--listen=127.0.0.1:0").args(arguments);
        Self::of(command)
    }

    pub(crate) fn of(mut command: Command) -> Self {
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let (say, logged) = mpsc::channel();
        std::thread::spawn(move || lines.map_while(Result::ok).try_for_each(|line| say.send(line)));
        let line = logged.recv_timeout(Duration::from_secs(20)).unwrap();
        let address = line.split_once("://").unwrap_or_else(|| panic!("{line}")).1;
        let address = address.split_once('/').unwrap().0.parse().unwrap();
        Self { child, address, logged }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The next line on stderr.
    pub(crate) fn says(&self) -> String {
        self.logged.recv_timeout(Duration::from_secs(10)).unwrap()
    }

    pub(crate) fn threads(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/task", self.pid())).unwrap().count()
    }

    /// The resident memory in the kernel's `/proc/PID/status`.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.pid())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
        line.trim().trim_end_matches(" kB").parse().unwrap()
    }

    /// The CPU time of the program's threads in hundredths of a second: `utime` and `stime` of
    /// proc_pid_stat(5).
    pub(crate) fn cpu_ticks(&self) -> u64 {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.pid())).unwrap();
        let behind_name = stat.rsplit_once(')').unwrap().1;
        behind_name.split_ascii_whitespace().skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum()
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream
    }

    /// The whole answer to these bytes.
    pub(crate) fn send(&self, request: &[u8]) -> Answer {
        let mut stream = self.connect();
        // The answer to a request that is too long comes before its end.
        stream.write_all(request).ok();
        Answer::read(stream)
    }

    pub(crate) fn get(&self, path: &str) -> Answer {
        self.get_with(path, "")
    }

    /// `headers`: lines that end in CRLF.
    pub(crate) fn get_with(&self, path: &str, headers: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{headers}\r\n").as_bytes())
    }

    /// Asks for so many at once, for these paths in turn, and asserts that each is answered. The answer says how many
    /// scrapes that took, of a machine whose exporter.json is damaged: each scrape counts that.
    pub(crate) fn scrapes_for(&self, requests: usize, paths: &[&str]) -> f64 {
        let count = || {
            let error = "rocm_exporter_read_errors_total{file=\"/run/rocworker/exporter.json\"}";
            self.get("/metrics").sample(error).unwrap()
        };
        let before = count();
        let begun = Instant::now();
        let request = |path: &&str| {
            let mut stream = self.connect();
            let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
            stream.write_all(request.as_bytes()).unwrap();
            stream
        };
        let streams: Vec<_> = paths.iter().cycle().take(requests).map(request).collect();
        // Read side by side: a client that waits for its turn to read is a slow one.
        let read = |stream| {
            let reader = std::thread::Builder::new().stack_size(128 << 10);
            reader.spawn(|| Answer::read(stream).status()).unwrap()
        };
        let readers: Vec<_> = streams.into_iter().map(read).collect();
        let statuses: Vec<u16> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        let answered = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(answered, requests, "after {:?}", begun.elapsed());
        assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
        // The last one is this question's own.
        count() - before - 1.0
    }

    pub(crate) fn end(mut self, signal: nix::sys::signal::Signal) -> Option<i32> {
        let pid = nix::unistd::Pid::from_raw(self.pid().try_into().unwrap());
        nix::sys::signal::kill(pid, signal).unwrap();
        self.child.wait().unwrap().code()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

/// A client whose address is 127.0.0.2.
pub(crate) fn connect_as_another(to: SocketAddr) -> TcpStream {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().unwrap();
    let connected = runtime.block_on(async {
        let socket = tokio::net::TcpSocket::new_v4().unwrap();
        socket.bind((Ipv4Addr::new(127, 0, 0, 2), 0).into()).unwrap();
        socket.connect(to).await.unwrap().into_std().unwrap()
    });
    connected.set_nonblocking(false).unwrap();
    connected
}

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn read(mut stream: TcpStream) -> Self {
        let mut bytes = Vec::new();
        // A connection that is reset after its answer has answered.
        stream.read_to_end(&mut bytes).ok();
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
        let body = bytes.split_off(end);
        Self { head: String::from_utf8(bytes).unwrap(), body }
    }

    /// 0 where nothing came back.
    pub(crate) fn status(&self) -> u16 {
        self.head.get(9..12).map_or(0, |status| status.parse().unwrap())
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }

    /// The value of the first sample that begins so.
    pub(crate) fn sample(&self, beginning: &str) -> Option<f64> {
        let line = self.text().lines().find(|line| line.starts_with(beginning))?;
        line.rsplit_once(' ').unwrap().1.parse().ok()
    }
}
