//! Errors of attention over caches of fewer bits: for the sample encoder always, for MiniLM where
//! `bench/peers/minilm.py` has stored it.

use std::path::{Path, PathBuf};

use tectum::{CacheFormats, Device, DeviceKind, Session};
use tectum_transformer::{Tokens, cache_errors};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Compares the errors of the worst layers with the maximum that is allowed, in the order of
/// [`CacheFormats::ALL`], and with a twentieth of it: an error of 0 would be an error of the
/// measurement.
fn hold(folder: &Path, tokens: &[u32], most: [f64; 5]) {
    for id in ["cpu", "vulkan:0", "cuda:0"] {
        let Some(device) = Device::open_if_present(id).expect("absent or usable") else {
            eprintln!("skipped: {id} is absent: errors of caches");
            continue;
        };
        let tokens = match device.info().kind {
            // It takes minutes for more.
            DeviceKind::Software => &tokens[..tokens.len().min(128)],
            _ => tokens,
        };
        let mut session = Session::new(&device);
        let errors = cache_errors(folder, &mut session, tokens).expect("measured");
        let receipt = session.receipt();
        assert!(
            receipt.runs > 0
                && receipt
                    .code
                    .iter()
                    .any(|code| code.kernel.starts_with("attention_cached")),
            "{receipt:?}"
        );
        for ((error, formats), most) in errors.iter().zip(CacheFormats::ALL).zip(most) {
            println!(
                "{id}, {} tokens: {formats} {:.2e}, {:.4} and {:.4} bytes",
                tokens.len(),
                error.worst(),
                error.block_bytes,
                error.total_bytes
            );
            assert_eq!(error.formats, formats);
            assert!(
                error.worst() <= most,
                "{id}: {formats}: {} is above {most}",
                error.worst()
            );
            assert!(
                error.worst() > most / 20.0,
                "{id}: {formats}: {} is no error of this format",
                error.worst()
            );
        }
    }
}

#[test]
fn errors_over_the_sample_encoder_are_those_of_the_formats() {
    let tokens: Vec<u32> = (0..128)
        .map(|index| ((index * 7919 + 13) % 249) as u32)
        .collect();
    hold(
        &root().join("crates/tectum-transformer/models/sample-encoder"),
        &tokens,
        [2e-6, 1e-3, 2e-2, 1.2e-1, 1.8e-1],
    );
}

#[test]
fn tokens_that_cannot_run_are_refused_with_their_number() {
    let folder = root().join("crates/tectum-transformer/models/sample-encoder");
    let mut session = Session::new(&Device::open("cpu").expect("cpu"));
    for (tokens, message) in [
        (vec![], "0 tokens; the model takes 1 to 128"),
        (vec![2; 129], "129 tokens; the model takes 1 to 128"),
        (vec![2, 249, 3], "token 249; the model has 249"),
    ] {
        let error = cache_errors(&folder, &mut session, &tokens).expect_err(message);
        assert_eq!(error.to_string(), message);
    }
}

#[test]
fn errors_over_minilm_are_within_what_is_allowed() {
    let folder = root().join("bench/models/minilm");
    if !folder.join("model.safetensors").exists() {
        eprintln!(
            "skipped: bench/models/minilm is absent (bench/peers/minilm.py): errors of caches over it"
        );
        return;
    }
    let text = std::fs::read_to_string(root().join("LICENSE-APACHE")).expect("tracked");
    let mut tokens = Tokens::read(&folder, None)
        .expect("reads")
        .encode(&text)
        .expect("encodes");
    tokens.truncate(480);
    assert_eq!(tokens.len(), 480);
    hold(&folder, &tokens, [2e-6, 1e-3, 1e-2, 7e-2, 1e-1]);
}
