//! Sample models: small ones with random weights, which every build has, to try loading and runs
//! with.

use tectum::{Result, Sample};

/// The sample models; their results mean nothing. `models/make_sample_*.py` make their files.
pub static SAMPLES: [Sample; 3] = [
    Sample {
        name: "sample-encoder",
        about: "a BERT encoder of two layers with random weights, for embed",
        files: &[
            (
                "config.json",
                include_bytes!("../models/sample-encoder/config.json"),
            ),
            (
                "tokenizer.json",
                include_bytes!("../models/sample-encoder/tokenizer.json"),
            ),
            (
                "model.safetensors",
                include_bytes!("../models/sample-encoder/model.safetensors"),
            ),
        ],
    },
    Sample {
        name: "sample-decoder",
        about: "a Llama decoder of two layers with random weights, for generate",
        files: &[
            (
                "config.json",
                include_bytes!("../models/sample-decoder/config.json"),
            ),
            (
                "tokenizer.json",
                include_bytes!("../models/sample-decoder/tokenizer.json"),
            ),
            (
                "model.safetensors",
                include_bytes!("../models/sample-decoder/model.safetensors"),
            ),
        ],
    },
    Sample {
        name: "sample-gguf",
        about: "the decoder as a GGUF file with weights of 4 bits, for generate and inspect",
        files: &[
            (
                "model.gguf",
                include_bytes!("../models/sample-gguf/model.gguf"),
            ),
            (
                "tokenizer.json",
                include_bytes!("../models/sample-decoder/tokenizer.json"),
            ),
        ],
    },
];

/// Finds a sample model.
///
/// # Errors
/// `Invalid` for a name that is not built in; the error lists the known ones.
///
/// # Example
/// ```
/// use tectum_transformer::{Model, sample};
/// let folder = std::env::temp_dir().join(format!("sample-{}", std::process::id()));
/// sample("sample-decoder")?.write(&folder)?;
/// assert!(matches!(Model::open(&folder)?, Model::Decoder(model) if model.sizes().family == "llama"));
/// # std::fs::remove_dir_all(&folder).map_err(|source| tectum::Error::io(folder.display(), source))?;
/// # Ok::<(), tectum::Error>(())
/// ```
pub fn sample(name: &str) -> Result<&'static Sample> {
    Sample::find(&SAMPLES, name)
}
