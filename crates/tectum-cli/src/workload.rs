//! The workload of a command: determined from the name, or from the content if the name does not
//! show it.

use std::io::Read as _;
use std::path::Path;

use tectum::{Error, Result};
use tectum_transformer::gguf_file;

/// A kind of workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Workload {
    /// A scenario: a TOML file or a short name.
    Scenario,
    /// A lane-level program: a text file or the name of a built-in one.
    Program,
    /// A genome: a JSON file.
    Genome,
    /// A transformer: a folder or a GGUF file.
    Model,
    /// A twin: a safetensors file.
    Twin,
    /// A plant: an equation file.
    Plant,
    /// A policy: an ONNX file.
    Policy,
    /// A recording: an MCAP file.
    Recording,
}

/// What some editors write before a text of UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";
/// Number of leading bytes that show the kind of the content.
const HEAD: u64 = 4096;

impl Workload {
    /// The kind of workload of a name. A name that is not a file may be that of a built-in
    /// scenario, program or plant: by its extension, or a name alone.
    ///
    /// # Errors
    /// `Io`, naming the path, for a file that does not exist or cannot be read.
    pub fn of(path: &Path) -> Result<Self> {
        if path.is_dir() {
            return Ok(Self::Model);
        }
        let by_ending = match path.extension().and_then(|ending| ending.to_str()) {
            Some("safetensors") => Some(Self::Twin),
            Some("plant") => Some(Self::Plant),
            Some("onnx") => Some(Self::Policy),
            Some("mcap") => Some(Self::Recording),
            Some("atlas") => Some(Self::Program),
            Some("json") => Some(Self::Genome),
            Some("gguf") => Some(Self::Model),
            Some("toml") => Some(Self::Scenario),
            None if path.exists() || path.components().count() == 1 => Some(Self::Scenario),
            _ => None,
        };
        match by_ending {
            Some(kind @ (Self::Scenario | Self::Program | Self::Plant)) if !path.exists() => {
                return Ok(kind);
            }
            Some(kind @ (Self::Twin | Self::Plant | Self::Policy | Self::Recording))
                if path.exists() =>
            {
                return Ok(kind);
            }
            _ => {}
        }
        let failed = |source| Error::io(path.display(), source);
        // What is read of a pipe is gone.
        if let Some(kind) =
            by_ending.filter(|_| path.metadata().is_ok_and(|metadata| !metadata.is_file()))
        {
            return Ok(kind);
        }
        let mut head = Vec::new();
        std::fs::File::open(path)
            .map_err(failed)?
            .take(HEAD)
            .read_to_end(&mut head)
            .map_err(failed)?;
        let head = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(&head);
        Ok(match head.trim_ascii_start() {
            [b'G', b'G', b'U', b'F', ..] => Self::Model,
            [b'{', ..] => Self::Genome,
            _ => by_ending.unwrap_or(Self::Program),
        })
    }

    /// Names the folder of a model if a file is one of its files, which commands do not take alone.
    ///
    /// # Errors
    /// `Invalid` for such a file.
    pub fn refuse_part_of_model(path: &Path) -> Result<()> {
        let is_model = |folder: &Path| {
            folder.join("config.json").is_file() || !matches!(gguf_file(folder), Ok(None))
        };
        let folder = path.parent().map(|folder| {
            if folder.as_os_str().is_empty() {
                Path::new(".")
            } else {
                folder
            }
        });
        let Some(folder) = folder.filter(|folder| path.is_file() && is_model(folder)) else {
            return Ok(());
        };
        let what = match path.file_name().and_then(|name| name.to_str()) {
            Some(
                "tokenizer.json"
                | "tokenizer_config.json"
                | "special_tokens_map.json"
                | "vocab.json",
            ) => "the tokenizer",
            Some("config.json" | "generation_config.json") => "the configuration",
            Some(name) if name.starts_with("model") && name.contains(".safetensors") => {
                "the weights"
            }
            _ => return Ok(()),
        };
        Err(Error::invalid(format!(
            "{}: {what} of a model; name its folder: {}",
            path.display(),
            folder.display()
        )))
    }

    /// What it is, for messages.
    pub fn name(self) -> &'static str {
        match self {
            Self::Scenario => "a scenario",
            Self::Program => "a program",
            Self::Genome => "a genome",
            Self::Model => "a model",
            Self::Twin => "a twin",
            Self::Plant => "a plant",
            Self::Policy => "a policy",
            Self::Recording => "a recording",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_follows_from_content_before_ending() {
        let folder = std::env::temp_dir().join(format!("tectum-workload-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("writable");
        let kind = |name: &str, content: &str| {
            let path = folder.join(name);
            std::fs::write(&path, content).expect("writable");
            Workload::of(&path).expect("readable")
        };
        assert_eq!(
            kind("brain.txt", "\n {\"blueprint\": {}}"),
            Workload::Genome
        );
        assert_eq!(
            kind("marked.txt", "\u{feff}{\"blueprint\": {}}"),
            Workload::Genome
        );
        assert_eq!(
            kind("program.txt", "buffer x: f32 read\n"),
            Workload::Program
        );
        assert_eq!(
            (kind("a.atlas", "{"), kind("a.toml", "[body]\n")),
            (Workload::Genome, Workload::Scenario)
        );
        assert_eq!(
            (kind("prose.json", "a sentence"), kind("empty.gguf", "")),
            (Workload::Genome, Workload::Model)
        );
        assert_eq!(
            (kind("m.bin", "GGUF\x03"), kind("t.safetensors", "")),
            (Workload::Model, Workload::Twin)
        );
        assert_eq!(Workload::of(&folder).expect("a folder"), Workload::Model);
        std::fs::remove_dir_all(&folder).expect("ours");
        for (name, kind) in [
            ("relu.atlas", Workload::Program),
            ("absent.toml", Workload::Scenario),
        ] {
            assert_eq!(
                Workload::of(&folder.join(name)).expect(name),
                kind,
                "{name}"
            );
        }
        assert_eq!(
            Workload::of(Path::new("pendulum")).expect("a short name"),
            Workload::Scenario
        );
        for name in [
            "a.txt",
            "pendulum",
            "absent.json",
            "a.gguf",
            "a.safetensors",
        ] {
            let error = Workload::of(&folder.join(name))
                .expect_err("absent")
                .to_string();
            assert!(
                error.ends_with(&format!("{name}: there is no such file or folder")),
                "{error}"
            );
        }
        let model = folder.join("model");
        std::fs::create_dir_all(&model).expect("writable");
        let refusal = |name: &str| {
            std::fs::write(model.join(name), "{}").expect("writable");
            Workload::refuse_part_of_model(&model.join(name)).map_err(|error| error.to_string())
        };
        assert_eq!(
            refusal("tokenizer.json"),
            Ok(()),
            "nothing shows that it is a model's"
        );
        assert!(
            refusal("config.json").is_err_and(|error| error.ends_with(&format!(
                "config.json: the configuration of a model; name its folder: {}",
                model.display()
            )))
        );
        assert!(
            refusal("tokenizer.json")
                .is_err_and(|error| error.contains("the tokenizer of a model"))
        );
        assert!(
            refusal("model.safetensors")
                .is_err_and(|error| error.contains("the weights of a model"))
        );
        assert_eq!(refusal("genome.json"), Ok(()));
        std::fs::remove_dir_all(&folder).expect("ours");
        // A pipe is not read: its ending, or that it has none, decides.
        assert!(
            !cfg!(unix)
                || Workload::of(Path::new("/dev/null")).expect("no file is read")
                    == Workload::Scenario
        );
    }
}
