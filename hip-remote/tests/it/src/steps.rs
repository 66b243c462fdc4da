//! A program that uses HIP a step at a time, as a test asks it to (hip-remote/tests/programs/steps.hip).

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread::spawn;
use std::time::Duration;

use crate::Program;

#[derive(Debug)]
pub struct Steps {
    process: Child,
    asks: ChildStdin,
    answers: Receiver<String>,
}

impl Steps {
    pub fn on(worker: &str) -> Self {
        Self::by(&mut Program::on(worker).command([test_gpu::built::compile("steps")]))
    }

    pub fn by(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let asks = process.stdin.take().unwrap();
        let stdout = BufReader::new(process.stdout.take().unwrap());
        let (sender, answers) = channel();
        spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Self { process, asks, answers }
    }

    /// Begins a step without waiting for its end.
    pub fn begin(&mut self, step: &str) {
        writeln!(self.asks, "{step}").unwrap();
    }

    /// A step's result: its error's name, and what the step says more.
    #[track_caller]
    pub fn answer(&mut self) -> String {
        self.answers.recv_timeout(Duration::from_secs(30)).expect("the program answers within 30 s")
    }

    /// Whether a step that began has no result yet.
    pub fn is_busy(&self) -> bool {
        self.answers.try_recv() == Err(TryRecvError::Empty)
    }

    #[track_caller]
    pub fn ask(&mut self, step: &str) -> String {
        self.begin(step);
        self.answer()
    }

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Drop for Steps {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
