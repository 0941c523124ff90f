//! Continues a text and prints each piece as it is generated: `cargo run -p tectum-transformer
//! --example generate -- FOLDER [DEVICE]`, with the folder of a decoder from Hugging Face, or one
//! that `tectum sample write sample-decoder` makes.

use std::ops::ControlFlow;
use std::path::Path;

use tectum::{Device, Error, Result};
use tectum_transformer::{Decoder, GenerateOptions, Tokens, generate};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or_else(|| Error::invalid("usage: generate FOLDER [DEVICE]"))?;
    // On a GPU: vulkan:0 or cuda:0.
    let device = Device::open(arguments.next().as_deref().unwrap_or("cpu"))?;
    let mut decoder = Decoder::open(Path::new(&folder), &device, 64)?;
    let tokens = Tokens::read(Path::new(&folder), None)?;
    let prompt = tokens.encode("A robot")?;
    let options = GenerateOptions {
        max_new_tokens: 20,
        ..GenerateOptions::default()
    };
    let generation = generate(&mut decoder, Some(&tokens), &prompt, &options, |piece| {
        print!("{piece}");
        Ok(ControlFlow::Continue(())) // Break(()) ends the generation.
    })?;
    println!("\n{} tokens, {:?}", generation.tokens.len(), generation.end);
    Ok(())
}
