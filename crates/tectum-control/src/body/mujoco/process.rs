//! The process that steps a model.

use std::io::{BufReader, Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use tectum::{Error, Result};

use crate::message::Message;

/// The program comes before the messages: its length is the argument. Modules of the working
/// directory must not take the place of packages.
const BOOTSTRAP: &str = "import sys
sys.path[:] = [folder for folder in sys.path if folder]
program = sys.stdin.buffer.read(int(sys.argv[1]))
exec(compile(program, 'mujoco_body.py', 'exec'), {'__name__': '__main__'})";

/// Bytes of its standard error that an error shows.
const TAIL_BYTES: usize = 2000;
/// How long a process may take to end once its standard input or output is closed.
const END: Duration = Duration::from_secs(2);

/// A process that answers one message with one message. It ends when this is dropped, and when the
/// process that started it ends for whatever reason.
pub(super) struct Process {
    name: String,
    child: Child,
    requests: ChildStdin,
    answers: Receiver<Result<Option<Message>>>,
    tail: Arc<Mutex<Vec<u8>>>,
    /// Keeps the tail of the standard error.
    errors: JoinHandle<()>,
    sequence: u64,
    wait: Duration,
}

impl Process {
    /// Starts an interpreter with a program.
    pub fn start(name: &str, python: &str, source: &'static str, wait: Duration) -> Result<Self> {
        let failed = |error| {
            Error::io(
                format!(
                    "body {name}: {python} cannot be started; a MuJoCo body needs Python with mujoco and NumPy (python3 -m pip install mujoco numpy), and the key `python` of [body] or the variable {} names the interpreter",
                    super::PYTHON
                ),
                error,
            )
        };
        let mut child = Command::new(python)
            .args(["-c", BOOTSTRAP, &source.len().to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(failed)?;
        let (Some(mut requests), Some(output), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            unreachable!("invariant: all three are piped")
        };
        // A process that does not read would keep the writer waiting.
        let (give, given) = sync_channel(1);
        thread::spawn(move || {
            // A process that ended at once is reported by its first answer.
            let _ = requests.write_all(source.as_bytes());
            let _ = give.send(requests);
        });
        let Ok(requests) = given.recv_timeout(wait) else {
            let _ = child.kill();
            let _ = child.wait();
            let wait_s = wait.as_secs_f64();
            return Err(Error::data(format!(
                "body {name}: {python} did not read its program within {wait_s} s"
            )));
        };
        let (send, answers) = sync_channel(1);
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let answer = Message::read(&mut output);
                let is_last = !matches!(answer, Ok(Some(_)));
                if send.send(answer).is_err() || is_last {
                    break;
                }
            }
        });
        let tail = Arc::new(Mutex::new(Vec::new()));
        let kept = tail.clone();
        let errors = thread::spawn(move || keep_tail(errors, &kept));
        Ok(Self {
            name: name.to_owned(),
            child,
            requests,
            answers,
            tail,
            errors,
            sequence: 0,
            wait,
        })
    }

    /// Sends a message and waits for the answer of a type.
    ///
    /// # Errors
    /// `Invalid`, `Unsupported` or `Data` for what the program refuses, after which it can be asked
    /// again; `Data` for a process that ended, gave no answer in time or answered something else,
    /// which is then ended.
    pub fn request(
        &mut self,
        kind: &str,
        expected: &str,
        fill: impl FnOnce(Message) -> Message,
    ) -> Result<Message> {
        self.sequence += 1;
        let message = fill(Message::new(kind, self.sequence));
        if message.write(&mut self.requests).is_err() {
            return Err(self.ended(kind));
        }
        let answer = match self.answers.recv_timeout(self.wait) {
            Ok(Ok(Some(answer))) => answer,
            Ok(Ok(None)) | Err(RecvTimeoutError::Disconnected) => return Err(self.ended(kind)),
            Ok(Err(error)) => {
                return Err(
                    self.broken(&format!("its answer to {kind:?} is not readable: {error}"))
                );
            }
            Err(RecvTimeoutError::Timeout) => {
                let wait_s = self.wait.as_secs_f64();
                return Err(self.broken(&format!(
                    "it gave no answer to {kind:?} within {wait_s} s, and was ended"
                )));
            }
        };
        if answer.sequence() != Some(self.sequence) {
            let expected = self.sequence;
            return Err(self.broken(&format!(
                "its answer to {kind:?} has the number {:?}, not {expected}",
                answer.sequence()
            )));
        }
        match answer.kind() {
            "error" => Err(self.refusal(&answer)),
            found if found == expected => Ok(answer),
            found => Err(self.broken(&format!("it answered {kind:?} with {found:?}"))),
        }
    }

    /// An answer that lacks what its type has.
    pub fn incomplete(&mut self, error: &Error) -> Error {
        self.broken(&error.to_string())
    }

    fn refusal(&self, answer: &Message) -> Error {
        let text = answer.text("message").unwrap_or("an error without a text");
        let message = format!("body {}: {text}", self.name);
        match answer.text("kind") {
            Some("invalid") => Error::invalid(message),
            Some("missing" | "unsupported") => Error::unsupported(message),
            _ => Error::data(format!("{message}{}", self.last_errors())),
        }
    }

    /// The error of a process that has ended.
    fn ended(&mut self, kind: &str) -> Error {
        let what = match self.wait_until(Instant::now() + END) {
            Some(status) => format!("it ended ({status}) instead of answering {kind:?}"),
            None => format!("it closed its output instead of answering {kind:?}"),
        };
        self.broken(&what)
    }

    /// The error of a process that cannot be used any more.
    fn broken(&mut self, what: &str) -> Error {
        self.end();
        // What it printed last is on its way, unless a process that it started still has the pipe.
        let deadline = Instant::now() + END;
        while !self.errors.is_finished() && Instant::now() < deadline {
            thread::sleep(Duration::from_millis(1));
        }
        let process = format!("body {}: the process that steps MuJoCo failed", self.name);
        Error::data(format!("{process}: {what}{}", self.last_errors()))
    }

    fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        loop {
            match self.child.try_wait() {
                Ok(Some(status)) => return Some(status),
                Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
                _ => return None,
            }
        }
    }

    fn last_errors(&self) -> String {
        let tail = self.tail.lock().unwrap_or_else(PoisonError::into_inner);
        match String::from_utf8_lossy(&tail).trim() {
            "" => String::new(),
            text => format!("; its last output:\n{text}"),
        }
    }

    /// Ends the process and removes it from the operating system's table. It has nothing to save.
    fn end(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

fn keep_tail(mut errors: impl Read, tail: &Mutex<Vec<u8>>) {
    let mut piece = [0; 1024];
    while let Ok(count @ 1..) = errors.read(&mut piece) {
        let mut tail = tail.lock().unwrap_or_else(PoisonError::into_inner);
        tail.extend_from_slice(&piece[..count]);
        let surplus = tail.len().saturating_sub(TAIL_BYTES);
        tail.drain(..surplus);
        for line in String::from_utf8_lossy(&piece[..count]).lines() {
            tracing::warn!(target: "tectum_control::mujoco", "{line}");
        }
    }
}
