//! Plans of models: a few serve every length, compiled once each. One test in a separate process:
//! others would affect the pool's numbers.

use std::path::{Path, PathBuf};

use tectum::{Device, Result};
use tectum_transformer::{Decoder, Embedder};

fn sample(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("models")
        .join(name)
}

/// Texts alone and batched with others, of every length that the model takes, or every so many.
fn embed_all(embedder: &mut Embedder, step: usize) -> Result<()> {
    let text = |len: usize| vec![7; len];
    let lens: Vec<usize> = (1..=128)
        .step_by(step)
        .map(|len| len * 37 % 128 + 1)
        .collect();
    for count in (1..=11).step_by(step) {
        for lens in lens.chunks(count) {
            embedder.embed_tokens(lens.iter().map(|&len| text(len)).collect())?;
        }
    }
    // Enough texts of one length for batches of 8, 4, 2 and 1.
    (1..=16).try_for_each(|eighth| embedder.embed_tokens(vec![text(8 * eighth); 15]).map(drop))
}

/// Contexts of every length: whole parts, and a last one of any length.
fn feed_all(decoder: &mut Decoder, step: usize) -> Result<()> {
    (1..=300).step_by(step).try_for_each(|len| {
        decoder.truncate(0);
        decoder.feed(&vec![7; len]).map(drop)
    })
}

#[test]
fn few_plans_serve_every_length_and_are_compiled_once() {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: plans of every length");
            continue;
        };
        // Every length in steps that leave out no bucket, where a device is slow.
        let step = if device.info().software { 7 } else { 1 };
        let mut embedder = Embedder::open(&sample("sample-encoder"), &device).expect("opens");
        embed_all(&mut embedder, step).expect("runs");
        let (compiled, before) = (embedder.compiled_plans(), device.pool().stats());
        assert_eq!(
            compiled,
            12 * 4,
            "{id}: 12 buckets of lengths, batches of 1, 2, 4 and 8"
        );
        embed_all(&mut embedder, step).expect("runs");
        let after = device.pool().stats();
        assert_eq!(
            (embedder.compiled_plans(), after.misses, after.live_bytes),
            (compiled, before.misses, before.live_bytes),
            "{id}: encoder"
        );

        let mut decoder = Decoder::open(&sample("sample-decoder"), &device, 512).expect("opens");
        feed_all(&mut decoder, step).expect("runs");
        let (compiled, before) = (decoder.compiled_plans(), device.pool().stats());
        assert_eq!(compiled, 17, "{id}: 16 buckets of lengths, and one token");
        feed_all(&mut decoder, step).expect("runs");
        let after = device.pool().stats();
        assert_eq!(
            (decoder.compiled_plans(), after.misses, after.live_bytes),
            (compiled, before.misses, before.live_bytes),
            "{id}: decoder"
        );
    }
}
