//! In place of the writer in a build without the feature `mcap`: there is never one.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::marker::PhantomData;

use serde_json::Value;
use tectum::{Error, Result};

#[allow(dead_code, reason = "there is never one")]
pub(super) struct Writer<W>(Infallible, PhantomData<W>);

impl<W> Writer<W> {
    pub fn new(_: W) -> Result<Self> {
        Err(Error::unsupported(
            "recording: this build leaves MCAP files out: the feature \"mcap\" of the crate tectum-control is off",
        ))
    }

    pub fn add_channel(&mut self, _: &str, _: &str, _: &Value) -> Result<u16> {
        match self.0 {}
    }

    pub fn write_metadata(&mut self, _: &str, _: BTreeMap<String, String>) -> Result<()> {
        match self.0 {}
    }

    pub fn write(&mut self, _: u16, _: u32, _: u64, _: &[u8]) -> Result<()> {
        match self.0 {}
    }

    pub fn flush(&mut self) -> Result<()> {
        match self.0 {}
    }

    pub fn finish(self) -> Result<W> {
        match self.0 {}
    }
}
