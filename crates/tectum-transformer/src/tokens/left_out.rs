//! In place of the tokenizer in a build without the feature `tokenizers`: there is never one.

use tectum::{Error, Result};

#[derive(Debug)]
pub enum Tokenizer {}

impl Tokenizer {
    pub fn parse(_: &[u8], _: Option<usize>) -> Result<Self> {
        Err(Error::unsupported(
            "this build leaves tokenizers out: the feature \"tokenizers\" of the crate tectum-transformer is off",
        ))
    }

    pub fn encode(&self, _: &str) -> Result<(Vec<u32>, usize)> {
        match *self {}
    }

    pub fn encode_continued(&self, _: &str) -> Result<Vec<u32>> {
        match *self {}
    }

    pub fn name(&self, _: u32) -> Option<String> {
        match *self {}
    }

    pub fn decode(&self, _: &[u32]) -> Result<String> {
        match *self {}
    }

    pub fn len(&self) -> usize {
        match *self {}
    }
}
