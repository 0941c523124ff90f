//! `tectum run --live`: a page that shows the run while it happens.

use std::path::PathBuf;
#[cfg(feature = "link")]
use std::time::Duration;

use clap::Args;
use serde::Serialize;
#[cfg(not(feature = "link"))]
use tectum::Error;
use tectum::{Receipt, Result};
use tectum_control::clock::ClockKind;
use tectum_control::live::Live;

use crate::interrupt::Interrupt;
#[cfg(feature = "link")]
use crate::messages;

/// How long viewers may take to receive the end.
#[cfg(feature = "link")]
const END: Duration = Duration::from_secs(1);
/// How often Ctrl-C is looked for.
#[cfg(feature = "link")]
const POLL: Duration = Duration::from_millis(20);

/// What a run shows of itself.
#[derive(Args)]
pub struct LiveArgs {
    /// Shows the run while it happens, on a page at HOST:PORT or at a port of this machine.
    ///
    /// The port also has metrics and Foxglove's protocol. An address that other machines reach
    /// needs a token; docs/watch.md has the details.
    #[arg(long, value_name = "ADDRESS")]
    live: Option<String>,
    /// Waits before the first step until a viewer continues; under a simulated clock.
    #[arg(long, requires = "live")]
    live_paused: bool,
    /// Keeps the page after the end of the run until Ctrl-C.
    #[arg(long, requires = "live")]
    live_keep: bool,
    /// The file with the token that viewers must show; else the variable TECTUM_TOKEN, if it is
    /// set.
    #[arg(long, value_name = "FILE", requires = "live")]
    token_file: Option<PathBuf>,
}

/// A run that is shown.
pub struct Shown {
    /// What it shows.
    pub live: Live,
    #[cfg(feature = "link")]
    server: tectum_link::LiveServer,
    #[cfg(feature = "link")]
    is_kept: bool,
}

impl LiveArgs {
    /// The first of these options that was given.
    pub fn given(&self) -> Option<&'static str> {
        self.live.is_some().then_some("--live")
    }

    /// Begins to show a run, if it is to be shown.
    ///
    /// # Errors
    /// `Invalid` for an address that is none, or that other machines reach without a token; a pause
    /// under a real clock; `Io` for an address that is in use.
    pub fn begin(&self, clock: ClockKind) -> Result<Option<Shown>> {
        let Some(address) = &self.live else {
            return Ok(None);
        };
        let live = Live::new(clock);
        if self.live_paused {
            live.controls()
                .pause(true)
                .map_err(|error| error.at("--live-paused"))?;
        }
        self.serve(address, live).map(Some)
    }

    #[cfg(feature = "link")]
    fn serve(&self, address: &str, live: Live) -> Result<Shown> {
        use tectum_link::{Address, LiveServer, LiveSettings, Token};
        let settings = LiveSettings {
            token: Token::find(self.token_file.as_deref())?,
            ..LiveSettings::new(Address::parse_http(address).map_err(|error| error.at("--live"))?)
        };
        let server = LiveServer::start(&live, &settings)?;
        messages::note(format_args!("live at {}", server.address()));
        Ok(Shown {
            live,
            server,
            is_kept: self.live_keep,
        })
    }

    #[cfg(not(feature = "link"))]
    fn serve(&self, _address: &str, _live: Live) -> Result<Shown> {
        Err(Error::unsupported(
            "--live: this build leaves out the feature link",
        ))
    }
}

impl Shown {
    /// Shows how the run ended, to those who watch now, and with `--live-keep` until Ctrl-C.
    ///
    /// # Errors
    /// A summary that is no JSON.
    pub fn end(
        self,
        summary: &impl Serialize,
        receipt: &Receipt,
        interrupt: &Interrupt,
    ) -> Result<()> {
        self.live.end(summary, receipt)?;
        self.close(interrupt);
        Ok(())
    }

    #[cfg(feature = "link")]
    fn close(self, interrupt: &Interrupt) {
        if self.is_kept && !interrupt.is_raised() {
            let address = self.server.address();
            messages::note(format_args!("the run has ended; Ctrl-C ends {address}"));
            self.server.show_end();
            while !interrupt.is_raised() {
                std::thread::sleep(POLL);
            }
        }
        self.server.close(END);
    }

    #[cfg(not(feature = "link"))]
    fn close(self, _interrupt: &Interrupt) {}
}
