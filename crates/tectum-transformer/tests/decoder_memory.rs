//! Memory over many tokens. One test in a separate process: others would affect its numbers.

use std::path::Path;

use tectum::{CacheFormats, Device};
use tectum_transformer::{Checkpoint, Decoder, MAX_PREFILL_CHUNK};

/// Once prepared, tokens run without new memory, one at a time and in parts.
#[test]
fn a_token_takes_no_memory_of_the_device() {
    let sample = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/sample-decoder");
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: memory over tokens");
            continue;
        };
        let steps = if device.info().software { 8 } else { 200 };
        let prompt: Vec<u32> = (0..MAX_PREFILL_CHUNK as u32 + 20).collect();
        for formats in [CacheFormats::F32, CacheFormats::K8V4, CacheFormats::Q4] {
            let mut decoder = Decoder::new(
                &Checkpoint::open(&sample).expect("opens"),
                &device,
                512,
                formats,
                None,
            )
            .expect("opens");
            decoder.prepare(&[prompt.len()]).expect("compiles");
            let before = device.pool().stats();
            assert!(
                before.live_bytes as usize > decoder.cache_bytes(),
                "{id}: it is there"
            );
            decoder.feed(&prompt).expect("runs");
            for token in 0..steps {
                decoder.feed(&[token]).expect("runs");
            }
            let after = device.pool().stats();
            assert_eq!(
                (before.misses, before.hits, before.live_bytes),
                (after.misses, after.hits, after.live_bytes),
                "{id} {formats}"
            );
            assert_eq!(decoder.len(), prompt.len() + steps as usize);
        }
    }
}
