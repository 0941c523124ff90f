//! Encoders compared with Hugging Face transformers (`bench/peers/encoders.py`), one model for each
//! option.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::{Value, json};
use tectum_transformer::Embedder;

use super::decoders::{Place, devices, root, safetensors};

/// Maximum difference, as a share of the maximum element of a vector.
const TOLERANCE: f32 = 2e-5;

/// An entry of the golden file.
#[derive(Deserialize)]
struct Row {
    pooling: String,
    normalized: bool,
    vectors: Vec<Vec<f32>>,
    #[serde(default)]
    config: Value,
    #[serde(default)]
    tensors: BTreeMap<String, Vec<usize>>,
}

/// Writes a model of the golden file in the layout of sentence encoders.
fn write_model(place: &Place, row: &Row) {
    place.write("config.json", row.config.to_string());
    place.write("model.safetensors", safetensors(row.tensors.iter(), "F32"));
    let tokenizer = std::fs::read(
        root().join("crates/tectum-transformer/models/sample-encoder/tokenizer.json"),
    )
    .expect("tracked");
    place.write("tokenizer.json", tokenizer);
    let module = |kind: &str, path: &str| json!({"type": format!("sentence_transformers.models.{kind}"), "path": path});
    let mut modules = vec![module("Transformer", ""), module("Pooling", "1_Pooling")];
    modules.extend(row.normalized.then(|| module("Normalize", "2_Normalize")));
    place.write("modules.json", json!(modules).to_string());
    std::fs::create_dir_all(place.0.join("1_Pooling")).expect("writable");
    let is_mean = row.pooling == "mean";
    place.write(
        "1_Pooling/config.json",
        json!({"pooling_mode_mean_tokens": is_mean, "pooling_mode_cls_token": !is_mean})
            .to_string(),
    );
}

#[test]
fn encoders_of_every_option_give_the_vectors_of_the_reference() {
    let text = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/encoders.json"))
        .expect("tracked");
    let whole: BTreeMap<String, Value> = serde_json::from_slice(&text).expect("JSON");
    let texts: Vec<Vec<u32>> =
        serde_json::from_value(whole["texts"].clone()).expect("lists of tokens");
    let mut rows = 0;
    for (name, row) in whole.into_iter().filter(|(_, row)| row.is_object()) {
        let row: Row = serde_json::from_value(row).expect("a row");
        let place = Place::new(&format!("encoder-{name}"));
        let folder = if row.tensors.is_empty() {
            root().join("crates/tectum-transformer/models").join(&name)
        } else {
            place.0.clone()
        };
        if !row.tensors.is_empty() {
            write_model(&place, &row);
        }
        for device in devices() {
            let mut embedder =
                Embedder::open(&folder, &device).unwrap_or_else(|error| panic!("{name}: {error}"));
            // All together, so that the shorter ones are padded.
            let made = embedder.embed_tokens(texts.clone()).expect("runs");
            for (text, (made, wanted)) in made.iter().zip(&row.vectors).enumerate() {
                let scale = wanted
                    .iter()
                    .fold(0.0f32, |scale, value| scale.max(value.abs()));
                assert_eq!(made.vector.len(), wanted.len());
                for (index, (got, wanted)) in made.vector.iter().zip(wanted).enumerate() {
                    let place = format!(
                        "{name} on {}, text {text}, element {index}",
                        device.info().id
                    );
                    assert!(
                        (got - wanted).abs() <= TOLERANCE * scale.max(0.1),
                        "{place}: {got}, not {wanted}"
                    );
                }
            }
        }
        rows += 1;
    }
    assert_eq!(rows, 10);
}
