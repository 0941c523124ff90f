//! Compares texts by their vectors:
//! `cargo run -p tectum-transformer --example embed -- FOLDER [DEVICE]`, with the folder of an
//! encoder from Hugging Face, or one that `tectum sample write sample-encoder` makes.

use std::path::Path;

use tectum::{Device, Error, Result};
use tectum_transformer::{Embedder, cosine};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments
        .next()
        .ok_or_else(|| Error::invalid("usage: embed FOLDER [DEVICE]"))?;
    // On a GPU: vulkan:0 or cuda:0.
    let device = Device::open(arguments.next().as_deref().unwrap_or("cpu"))?;
    let mut embedder = Embedder::open(Path::new(&folder), &device)?;
    let texts = ["a robot walks", "a robot runs", "tea with milk"];
    let embeddings = embedder.embed(&texts)?;
    for (text, embedding) in texts.iter().zip(&embeddings) {
        println!(
            "{text:14} {} tokens, cosine with the first text {:.3}",
            embedding.tokens.len(),
            cosine(&embeddings[0].vector, &embedding.vector)
        );
    }
    Ok(())
}
