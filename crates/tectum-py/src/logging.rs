//! What the libraries log, as records of Python's `logging`.

use std::fmt::{Debug, Write};

use pyo3::prelude::*;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

use crate::interrupt::raise_after_log;
use crate::process;

/// Levels of Python's module `logging`.
const LEVELS: [(Level, u8); 4] = [
    (Level::ERROR, 40),
    (Level::WARN, 30),
    (Level::INFO, 20),
    (Level::DEBUG, 10),
];

/// Sends events to the loggers below `tectum`, which decide what is shown. Events are rare: none is
/// sent from a tick.
struct PythonLogging;

/// The text of an event: its message, then `name=value` for each field.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        // Writing to a string does not fail.
        let _ = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        match field.name() {
            "message" => self.message.push_str(value),
            name => self.fields.extend([" ", name, "=", value]),
        }
    }
}

impl Subscriber for PythonLogging {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.is_event()
            && metadata.target().starts_with("tectum")
            && *metadata.level() <= Level::DEBUG
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text::default();
        event.record(&mut text);
        let metadata = event.metadata();
        let level = LEVELS
            .iter()
            .find(|(level, _)| level == metadata.level())
            .map_or(10, |(_, number)| *number);
        process::try_attach(|py| {
            let sent = (|| {
                let logger = py
                    .import("logging")?
                    .call_method1("getLogger", (metadata.target().replace("::", "."),))?;
                logger.call_method1(
                    "log",
                    (level, "%s%s", text.message.as_str(), text.fields.as_str()),
                )
            })();
            // A handler of records that raises does not end the work that logged. What a handler of
            // signals raises here, such as KeyboardInterrupt, must not be lost.
            if let Err(error) = sent {
                if process::is_main(py) {
                    raise_after_log(error);
                } else {
                    error.write_unraisable(py, None);
                }
            }
        });
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Sends what the libraries log to Python from now on.
pub fn install() {
    // A program that embeds the interpreter may have its own.
    let _ = tracing::subscriber::set_global_default(PythonLogging);
}
