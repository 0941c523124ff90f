//! A serial port as the connection of a body: messages of the loop become lines, and lines become
//! messages.

use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock, open};
use rustix::io::{Errno, read, write};
use rustix::termios::{
    ControlModes, InputModes, OptionalActions, QueueSelector, SpecialCodeIndex, ioctl_tiocexcl,
    ioctl_tiocnxcl, isatty, tcflush, tcgetattr, tcsetattr,
};
use tectum::{Error, Result};
use tectum_control::message::{Array, Message};
use tokio::io::unix::AsyncFd;

use super::SerialSettings;
use super::line::{Line, LineDecoder, encode};
use crate::handshake::Introduction;
use crate::incoming::Incoming;
use crate::mailbox::Mailbox;

/// What a rate may differ from the one that was set, as a fraction: a byte is read wrong at 5 %.
const MAX_RATE_ERROR: f64 = 0.03;

/// An open serial port.
pub(crate) struct SerialPort {
    device: AsyncFd<OwnedFd>,
    settings: SerialSettings,
    lines: LineDecoder,
    /// The number of the last observation.
    sequence: u64,
    /// The number of the last `start` or `reset`: the observations after it belong to its episode.
    /// What action a machine has applied is unknown.
    answers: u64,
    is_started: bool,
    /// The request that the next line answers, before the start.
    request: Option<u64>,
    /// What a request is answered with without a line.
    refusal: Option<Message>,
}

impl Drop for SerialPort {
    fn drop(&mut self) {
        // A device that is unplugged has no owner any more.
        let _ = ioctl_tiocnxcl(&self.device);
    }
}

impl SerialPort {
    /// Opens a port: 8 bits, no parity, one stop bit, no flow control, for this process alone. Must
    /// be called on the I/O thread.
    pub async fn open(settings: &SerialSettings) -> std::result::Result<Self, String> {
        let (path, baud) = (&settings.path, settings.baud);
        let device = open_device(path, baud).map_err(|reason| at(path, &reason))?;
        #[allow(
            deprecated,
            reason = "an OwnedFd stays open and is its own alone, so that what is unsound for other types does not apply; the replacement is an unsafe function"
        )]
        let device = AsyncFd::new(device).map_err(|error| at(path, &error.to_string()))?;
        let mut port = Self {
            device,
            lines: LineDecoder::new(settings.body.observation.len(), settings.checksum),
            settings: settings.clone(),
            sequence: 0,
            answers: 0,
            is_started: false,
            request: None,
            refusal: None,
        };
        // Ends a line that an earlier program began.
        port.write(b"\n").await?;
        Ok(port)
    }

    /// Waits for the first line of numbers: the machine works, and has the channels of the scenario.
    ///
    /// # Errors
    /// `Data` for a port that is unplugged.
    pub async fn introduce(&mut self, mailbox: &Mailbox) -> Result<Introduction> {
        let path = self.settings.path.clone();
        mailbox.note(&at(&path, "no line has arrived"));
        loop {
            match self.line().await.map_err(Error::data)? {
                Line::Numbers(_) => break,
                Line::Arm => {}
                Line::Unreadable(reason) => {
                    mailbox.count_unreadable();
                    mailbox.note(&at(&path, &reason));
                }
            }
        }
        Ok(Introduction {
            spec: self.settings.body.clone(),
            peer: "serial port".to_owned(),
        })
    }

    /// What arrives next. It may be dropped while it waits.
    pub async fn receive(&mut self) -> std::result::Result<Incoming, String> {
        loop {
            if let Some(refusal) = self.refusal.take() {
                return Ok(Incoming::Message(refusal));
            }
            match self.line().await? {
                Line::Unreadable(reason) => {
                    tracing::debug!(path = %self.settings.path.display(), reason, "not used");
                    return Ok(Incoming::Unreadable);
                }
                Line::Arm => return Ok(Incoming::Message(Message::new("arm", 0))),
                Line::Numbers(numbers) => {
                    if let Some(message) = self.observation(&numbers) {
                        return Ok(Incoming::Message(message));
                    }
                }
            }
        }
    }

    /// Writes an action; what a line does not express is kept or answered here.
    pub async fn send(&mut self, message: &Message) -> std::result::Result<(), String> {
        let number = message.sequence().unwrap_or(0);
        match message.kind() {
            "action" => {
                let action = message.array("action").map_err(|error| error.to_string())?;
                let numbers = action.to_f32().unwrap_or_default();
                let line = encode(&numbers, self.settings.checksum);
                self.write(line.as_bytes()).await?;
            }
            "start" => (self.is_started, self.answers) = (true, number),
            "reset" => {
                self.answers = number;
                self.request = (!self.is_started).then_some(number);
            }
            "step" => {
                let reason = "a machine on a serial port does not wait: clock = \"real\" is needed";
                self.refusal = Some(Message::new("error", number).with("message", reason));
            }
            _ => {}
        }
        Ok(())
    }

    /// The message of a line; none for a line before the start that nothing has requested.
    fn observation(&mut self, numbers: &[f32]) -> Option<Message> {
        let number = match (self.is_started, self.request.take()) {
            (true, _) => {
                self.sequence += 1;
                self.sequence
            }
            (false, request) => request?,
        };
        let message = Message::new("observation", number).with("answers", self.answers);
        Some(message.with_array("observation", &Array::of_f32(numbers)))
    }

    async fn line(&mut self) -> std::result::Result<Line, String> {
        loop {
            if let Some(line) = self.lines.next_line() {
                return Ok(line);
            }
            let failed = |error: std::io::Error| at(&self.settings.path, &error.to_string());
            let mut ready = self.device.readable().await.map_err(failed)?;
            let mut bytes = [0; 1024];
            let arrived = ready.try_io(|device| Ok(read(device, &mut bytes)?));
            match arrived {
                Ok(Ok(0)) => return Err(at(&self.settings.path, "it is unplugged")),
                Ok(Ok(count)) => self.lines.push(&bytes[..count]),
                Ok(Err(error)) => return Err(failed(error)),
                // It was not ready after all.
                Err(_) => {}
            }
        }
    }

    async fn write(&mut self, mut bytes: &[u8]) -> std::result::Result<(), String> {
        while !bytes.is_empty() {
            let failed = |error: std::io::Error| at(&self.settings.path, &error.to_string());
            let mut ready = self.device.writable().await.map_err(failed)?;
            if let Ok(written) = ready.try_io(|device| Ok(write(device, bytes)?)) {
                bytes = &bytes[written.map_err(failed)?..];
            }
        }
        Ok(())
    }
}

/// A reason with the device that it is about.
fn at(path: &Path, reason: &str) -> String {
    format!("{}: {reason}", path.display())
}

fn open_device(path: &Path, baud: u32) -> std::result::Result<OwnedFd, String> {
    let text = |error: Errno| std::io::Error::from(error).to_string();
    // Without NONBLOCK a port without a carrier blocks here.
    let flags = OFlags::RDWR | OFlags::NOCTTY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let in_use = || "another program uses it".to_owned();
    let device = open(path, flags, Mode::empty()).map_err(|error| match error {
        Errno::BUSY => in_use(),
        error => text(error),
    })?;
    if !isatty(&device) {
        return Err("it is no serial port".to_owned());
    }
    flock(&device, FlockOperation::NonBlockingLockExclusive).map_err(|_| in_use())?;
    ioctl_tiocexcl(&device).map_err(text)?;
    let mut modes = tcgetattr(&device).map_err(text)?;
    modes.make_raw();
    modes.control_modes |= ControlModes::CLOCAL | ControlModes::CREAD;
    modes.control_modes -= ControlModes::CSTOPB | ControlModes::PARENB | ControlModes::CRTSCTS;
    modes.input_modes -= InputModes::IXON | InputModes::IXOFF;
    modes.special_codes[SpecialCodeIndex::VMIN] = 1;
    modes.special_codes[SpecialCodeIndex::VTIME] = 0;
    let refused = || format!("it has no rate of {baud} baud");
    modes.set_speed(baud).map_err(|_| refused())?;
    tcsetattr(&device, OptionalActions::Now, &modes).map_err(text)?;
    // A driver that lacks the rate sets another one without an error.
    let set = tcgetattr(&device).map_err(text)?.output_speed();
    if (f64::from(set) / f64::from(baud) - 1.0).abs() > MAX_RATE_ERROR {
        return Err(refused());
    }
    // Bytes from before the opening are no observation of now.
    tcflush(&device, QueueSelector::IFlush).map_err(text)?;
    Ok(device)
}
