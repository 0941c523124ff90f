//! Every subcommand with wrong input: the message names the place and is plain English, and nothing
//! panics.

use std::path::PathBuf;
use std::process::{Command, Output};

/// An empty working directory, deleted at the end.
struct Place(PathBuf);

impl Place {
    fn new(name: &str) -> Self {
        let path =
            std::env::temp_dir().join(format!("tectum-messages-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&path);
        std::fs::create_dir_all(&path).expect("writable");
        Self(path)
    }

    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.0.join(name);
        std::fs::create_dir_all(path.parent().expect("inside")).expect("writable");
        std::fs::write(path, bytes).expect("writable");
    }

    fn tectum(&self, line: &str) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
        command
            .env("NODEVICE_SELECT", "1")
            .env_remove("RUST_LOG")
            .env("XDG_CACHE_HOME", self.0.join("cache"))
            .stdin(std::process::Stdio::null());
        command
            .args(line.split_whitespace())
            .current_dir(&self.0)
            .output()
            .expect("the binary starts")
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Words of the operating system and of parsers that no message for users has.
const RAW: [&str; 12] = [
    "os error",
    "No such file",
    "entity not found",
    "Is a directory",
    "panicked",
    "invalid digit",
    "invalid float literal",
    "number too large to fit",
    "stream did not contain valid UTF-8",
    "EOF while parsing",
    "expected value at line",
    "unexpected argument '-",
];

/// What is wrong with an output, if anything: it must fail with a message that has all of `named`.
fn fault(output: &Output, named: &[&str]) -> Option<String> {
    let (stderr, code) = (text(&output.stderr), output.status.code());
    let first = stderr.lines().next().unwrap_or_default();
    let raw = RAW.into_iter().find(|raw| stderr.contains(raw));
    let reason = match (code, raw) {
        (Some(2 | 3 | 4 | 7), None) => None,
        (_, Some(raw)) => Some(format!("it has {raw:?}")),
        (code, _) => Some(format!("exit code {code:?}")),
    };
    let reason =
        reason.or_else(|| (!first.starts_with("error: ")).then(|| "no error first".to_owned()));
    let reason = reason.or_else(|| {
        named
            .iter()
            .find(|name| !stderr.contains(**name))
            .map(|name| format!("{name:?} is not named"))
    });
    reason.map(|reason| format!("{reason}: {stderr}"))
}

/// Lines with `FILE` where a file belongs, and the ending of the file.
const READERS: [(&str, &str); 32] = [
    ("run FILE", ".toml"),
    ("run FILE", ".atlas"),
    ("run FILE", ".json"),
    ("run FILE", ".gguf"),
    ("run FILE", ""),
    ("run --resume FILE", ""),
    ("run good.json --resume FILE", ".safetensors"),
    ("run pendulum --data FILE --seconds 1 --clock sim", ".csv"),
    (
        "run pendulum --twin FILE --seconds 1 --clock sim",
        ".safetensors",
    ),
    (
        "run pendulum --body FILE --brain zero --seconds 1 --clock sim",
        ".plant",
    ),
    ("run relu.atlas --in FILE", ".npy"),
    ("explain relu.atlas --in FILE", ".npy"),
    ("explain FILE", ".atlas"),
    ("explain FILE", ".json"),
    ("explain FILE", ".gguf"),
    ("explain route FILE", ".toml"),
    ("check FILE", ".atlas"),
    ("check cache FILE --text good.txt", ""),
    ("check field --brain FILE", ".toml"),
    ("inspect FILE", ".json"),
    ("inspect FILE", ".safetensors"),
    ("inspect FILE", ".gguf"),
    ("embed FILE words", ""),
    ("embed FILE words", ".gguf"),
    ("generate FILE words", ""),
    ("generate FILE --ids 1", ".gguf"),
    ("train rig FILE", ".csv"),
    ("train twin FILE -o twin.safetensors", ".csv"),
    ("receipt check FILE", ".json"),
    ("bench check FILE FILE", ".json"),
    ("recover FILE out.mcap", ".mcap"),
    ("plot FILE", ""),
];

#[test]
fn a_file_that_is_missing_empty_a_folder_or_of_another_kind_is_named_in_plain_words() {
    let place = Place::new("files");
    let tiny = include_str!("../../tectum-spiking/samples/sample-genome.json");
    place.write("good.json", tiny.as_bytes());
    place.write("good.txt", b"words");
    let mut found = Vec::new();
    for ending in [
        ".toml",
        ".atlas",
        ".json",
        ".gguf",
        ".safetensors",
        ".csv",
        ".npy",
        ".plant",
        ".mcap",
        "",
    ] {
        place.write(&format!("empty{ending}"), b"");
        place.write(
            &format!("prose{ending}"),
            b"this is no such file, but a sentence\n",
        );
        place.write(
            &format!("noise{ending}"),
            &[0xFF, 0xFE, 0x00, 0x9C, 0x80, 0x07, 0xC3, 0x28].repeat(64),
        );
        place.write(&format!("folder{ending}/nothing"), b"");
    }
    for (line, ending) in READERS {
        for kind in [
            "absent",
            "nowhere/absent",
            "empty",
            "prose",
            "noise",
            "folder",
        ] {
            // A name without an ending and without a folder is a scenario's, as in the test of
            // scenarios.
            let file = format!("{kind}{ending}");
            let line = line.replace("FILE", &file);
            if let Some(fault) = fault(&place.tectum(&line), &[&file]) {
                found.push(format!("{line}: {fault}"));
            }
        }
    }
    let needed = "there is no such file or folder";
    for (line, ending) in READERS
        .iter()
        .filter(|(line, _)| !line.starts_with("run --resume"))
    {
        let line = line.replace("FILE", &format!("nowhere/absent{ending}"));
        if !text(&place.tectum(&line).stderr).contains(needed) {
            found.push(format!(
                "{line}: it does not say {needed:?}: {}",
                text(&place.tectum(&line).stderr)
            ));
        }
    }
    assert!(
        found.is_empty(),
        "{} messages:\n{}",
        found.len(),
        found.join("\n")
    );
}

/// Options of numbers.
const NUMBERS: [(&str, &str); 34] = [
    ("run cart_pole --clock sim", "--seconds"),
    ("run cart_pole --clock sim --seconds 1", "--seed"),
    ("run cart_pole --clock sim --seconds 1", "--priority"),
    ("run cart_pole --clock sim --seconds 1", "--threads"),
    ("run good.json", "--bursts"),
    ("run good.json --bursts 1", "--stimulus"),
    ("run good.json --bursts 1", "--shards"),
    ("run good.json --bursts 1", "--memory-neurons"),
    (
        "run good.json --bursts 1 --snapshot s.safetensors",
        "--every",
    ),
    ("run fill.atlas", "--grid"),
    ("run fill.atlas", "--block"),
    ("run fill.atlas", "--shared"),
    ("run fill.atlas", "--limit"),
    ("explain fill.atlas", "--grid"),
    ("explain good.json", "--shards"),
    ("verify", "--seed"),
    ("verify", "--threads"),
    ("bench core", "--rounds"),
    ("bench sizes", "--rounds"),
    ("bench sizes", "--max"),
    ("check field", "--cells"),
    ("check field", "--channels"),
    ("check field", "--patterns"),
    ("check field", "--sensors"),
    ("check field", "--motors"),
    ("check field", "--compared"),
    ("check field", "--every"),
    ("check rig", "--seeds"),
    ("train twin good.csv -o t.safetensors", "--members"),
    ("train twin good.csv -o t.safetensors", "--hidden"),
    ("train twin good.csv -o t.safetensors", "--lags"),
    ("train twin good.csv -o t.safetensors", "--steps"),
    ("generate nowhere words", "--tokens"),
    ("generate nowhere words", "--top-k"),
];

#[test]
fn a_number_that_is_negative_huge_or_none_is_refused_with_what_is_needed() {
    let place = Place::new("numbers");
    place.write(
        "good.json",
        include_str!("../../tectum-spiking/samples/sample-genome.json").as_bytes(),
    );
    let mut found = Vec::new();
    for (line, option) in NUMBERS {
        for value in ["-3", "99999999999999999999", "many", "1.5x"] {
            let line = format!("{line} {option} {value}");
            let output = place.tectum(&line);
            let stderr = text(&output.stderr);
            let says_what = ["need", "too large", "from ", "at most"]
                .iter()
                .any(|word| stderr.contains(word));
            if let Some(fault) = fault(&output, &[option.trim_start_matches('-')]) {
                found.push(format!("{line}: {fault}"));
            } else if !says_what {
                found.push(format!("{line}: it does not say what is needed: {stderr}"));
            }
        }
    }
    assert!(
        found.is_empty(),
        "{} messages:\n{}",
        found.len(),
        found.join("\n")
    );
    for (line, message) in [
        (
            "run cart_pole --clock sim --seconds -3",
            "seconds is -3, needs a number above 0, at most 1000000",
        ),
        (
            "run good.json --bursts -3",
            "invalid value '-3' for '--bursts <BURSTS>': a whole number from 0 to 4294967295 is needed",
        ),
        (
            "run good.json --shards 0",
            "invalid value '0' for '--shards <SHARDS>': a whole number from 1 to 64 is needed",
        ),
        (
            "run good.json --stimulus -0.5",
            "--stimulus: a stimulus of -0.5; 0 to 1 is needed",
        ),
        ("run cart_pole --seconds ten", "a number is needed"),
        (
            "generate nowhere words --temperature -1",
            "nowhere\n  because: there is no such file or folder",
        ),
    ] {
        let output = place.tectum(line);
        assert!(
            text(&output.stderr).contains(message),
            "{line}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn names_that_are_unknown_are_listed() {
    let place = Place::new("names");
    place.write(
        "good.json",
        include_str!("../../tectum-spiking/samples/sample-genome.json").as_bytes(),
    );
    let cases = [
        (
            "run pendlum",
            "scenario \"pendlum\" is unknown, perhaps \"pendulum\"",
        ),
        ("run cart_pole --brain mpic", "brain \"mpic\" is unknown"),
        (
            "run cart_pole --body cartpole",
            "body \"cartpole\" is unknown, perhaps \"cart_pole\"; known: rig",
        ),
        (
            "run cart_pole --device gpu",
            "device \"gpu\": expected auto, cpu",
        ),
        ("run cart_pole --clock fast", "possible values: real, sim"),
        (
            "run cart_pole --inject fire@1",
            "inject \"fire@1\": expected one of device-lost@T",
        ),
        (
            "run cart_pole --body acrobot --brain lqr",
            "lqr and mpc have no weights for body \"acrobot\": its episode ends as soon as the tip is a link's length above the base",
        ),
        (
            "run cart_pole --body acrobot --brain mpc",
            "lqr and mpc have no weights for body \"acrobot\": its episode ends",
        ),
        (
            "run cart_pole --body acrobot --brain mppi",
            "mppi has no defaults for body \"acrobot\": its episode ends",
        ),
        (
            "run good.json --units metric",
            "units \"metric\": detect, fraction or legacy needed",
        ),
        ("run rleu.atlas", "rleu.atlas"),
        (
            "run relu.atlas --in z=x.npy",
            "buffer \"z\" is unknown; declared: x, y",
        ),
        (
            "explain good.json --weights int8",
            "--weights is for models, and this is a genome",
        ),
        (
            "scenario show pendlum",
            "scenario \"pendlum\" is not built in; built in: pendulum",
        ),
        (
            "sample write decoder",
            "sample \"decoder\" is not built in; built in: ",
        ),
        ("bench cor", "\"cor\" is no suite and no file; suites: core"),
        (
            "bench sizes --operation ad --max 1K",
            "operation \"ad\" is unknown; known: ",
        ),
        (
            "bench sizes --device cpu",
            "bench sizes: cpu is no GPU; the CPU is the baseline",
        ),
        (
            "generate nowhere words --cache q5",
            "cache \"q5\"; known: f32",
        ),
        ("man walk", "man: no subcommand walk"),
        ("completions tcsh", "possible values: bash"),
        ("wlak", "unrecognized subcommand 'wlak'"),
        ("verfy", "a similar subcommand exists: 'verify'"),
    ];
    let mut found = Vec::new();
    for (line, message) in cases {
        found
            .extend(fault(&place.tectum(line), &[message]).map(|fault| format!("{line}: {fault}")));
    }
    // A name or an option that resembles none gets no advice.
    for line in [
        "serve",
        "convert",
        "version",
        "embed model a --fiel x",
        "generate model a --chat",
    ] {
        let stderr = text(&place.tectum(line).stderr);
        if stderr.contains("similar subcommand") || stderr.contains("as a value") {
            found.push(format!("{line}: it gives misleading advice: {stderr}"));
        }
    }
    assert!(
        found.is_empty(),
        "{} messages:\n{}",
        found.len(),
        found.join("\n")
    );
}
