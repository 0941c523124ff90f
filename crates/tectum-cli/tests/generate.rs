//! `tectum generate` and `tectum inspect` of decoders, on the included sample.

use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;

/// Runs the command in the folder of the crate that has the samples.
fn tectum(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tectum"));
    command
        .env("NODEVICE_SELECT", "1")
        .args(arguments)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../tectum-transformer"));
    command.output().expect("the binary starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn json(arguments: &[&str]) -> Value {
    let output = tectum(&[arguments, &["--json"]].concat());
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        text(&output.stderr)
    );
    assert_eq!(text(&output.stdout).lines().count(), 1, "one line of JSON");
    serde_json::from_slice(&output.stdout).expect("JSON")
}

const MODEL: [&str; 3] = ["generate", "models/sample-decoder", "the small cat"];

fn with(more: &[&'static str]) -> Vec<&'static str> {
    [&MODEL[..], more].concat()
}

#[test]
fn a_run_is_explained_node_by_node() {
    for (model, kind, plan) in [
        ("models/sample-decoder", "decoder", "decoder 8"),
        ("models/sample-encoder", "encoder", "encoder 1×8"),
        ("tests/data/tiny_llama.gguf", "decoder", "decoder 8"),
    ] {
        let explained = json(&["explain", model, "--tokens", "6"]);
        let (run, number) = (&explained["run"], |value: &Value| {
            value.as_f64().expect("a number")
        });
        assert_eq!(
            (
                explained["kind"].as_str(),
                explained["device"].as_str(),
                run["work"]["plan"].as_str()
            ),
            (Some(kind), Some("cpu"), Some(plan)),
            "{model}"
        );
        let nodes = run["nodes"].as_array().expect("nodes");
        let launched: usize = nodes
            .iter()
            .map(|node| node["kernels"].as_array().expect("kernels").len())
            .sum();
        assert_eq!(
            launched,
            run["work"]["launches"].as_array().expect("launches").len(),
            "{model}: every launch has its node"
        );
        let made = |how: &str| nodes.iter().filter(|node| node["made"] == how).count();
        assert!(
            made("launched") > 10 && made("fed") > 10 && made("view") > 0,
            "{model}"
        );
        assert!(
            nodes
                .iter()
                .all(|node| (node["made"] == "launched") == (number(&node["bytes"]) > 0.0)),
            "{model}"
        );
        let flops: f64 = nodes.iter().map(|node| number(&node["flops"])).sum();
        let inspected = json(&["inspect", model]);
        let parameters = [
            &inspected["parameters"],
            &inspected["decoder"]["parameters"],
        ]
        .into_iter()
        .find_map(Value::as_f64)
        .expect("a number");
        // Every weight except those of tables is used once per token.
        assert!(flops > 8.0 * parameters, "{model}: {flops}");
        // Files of f16 have f16 weights of products; combined from several types, they are f32.
        assert!(
            (2.0 * parameters..=6.0 * parameters).contains(&number(&run["weight_bytes"])),
            "{model}"
        );
        assert!(
            number(&run["temporary_bytes"]) > 0.0
                && number(&run["temporary_bytes"]) < number(&run["temporary_bytes_unshared"]),
            "{model}"
        );
        assert_eq!(number(&run["cache_bytes"]) > 0.0, kind == "decoder");
        assert_eq!(explained["route"]["predicted"][0]["device"], "cpu");
        let shown = text(&tectum(&["explain", model, "--tokens", "6", "--device", "cpu"]).stdout);
        for needed in [
            "%",
            "linear_panels(",
            "cpu: gemm_panels_",
            "view: no launch",
            "at their peak",
            "): it was requested",
            &format!("{plan} -> "),
        ] {
            assert!(shown.contains(needed), "{model}: {needed}: {shown}");
        }
    }
    let coded = text(
        &tectum(&[
            "explain",
            "models/sample-decoder",
            "--device",
            "cpu",
            "--weights",
            "int8",
        ])
        .stdout,
    );
    assert!(
        coded.contains("weights int8") && coded.contains("cpu: gemm_panels_int8, 1 before it"),
        "{coded}"
    );
    let cached = |more: &[&str]| {
        json(
            &[
                &["explain", "models/sample-decoder", "--device", "cpu"],
                more,
            ]
            .concat(),
        )["run"]["cache_bytes"]
            .as_f64()
    };
    assert!(
        cached(&["--cache", "q8"]) < cached(&["--cache", "f16"])
            && cached(&["--cache", "f16"]) < cached(&[])
    );
    // Of a table, the rows that are read.
    let table =
        json(&["explain", "models/sample-encoder", "--tokens", "6"])["run"]["work"]["launches"]
            .as_array()
            .expect("launches")
            .clone();
    let gather = table
        .iter()
        .find(|launch| launch["kernel"] == "gather_u32")
        .expect("one");
    assert!(
        gather["bytes"]
            .as_f64()
            .is_some_and(|bytes| bytes < 3.0 * 8.0 * 64.0 * 4.0),
        "{gather}"
    );
    let routed = text(&tectum(&["explain", "models/sample-decoder", "--route", "fixed"]).stdout);
    assert!(
        routed.contains("fixed thresholds: gemm_panels_f16"),
        "{routed}"
    );
    let cases: [(&[&str], &str); 7] = [
        (
            &["explain", "models/sample-decoder", "--weights", "q9"],
            "weights \"q9\"; known: f32, f16, bf16, int8",
        ),
        (
            &["explain", "models/sample-decoder", "--route", "best"],
            "route \"best\"; known: measured, fixed",
        ),
        (
            &["explain", "abs.atlas", "--weights", "int8"],
            "--weights is for models, and this is a program",
        ),
        (
            &["explain", "models/sample-decoder", "--tokens", "0"],
            "0 tokens; a run takes 1 to ",
        ),
        (
            &["explain", "models/sample-encoder", "--tokens", "9999"],
            "9999 tokens; a text has 1 to ",
        ),
        (
            &["explain", "models/sample-encoder", "--grid", "1"],
            "--grid is for programs, and this is a model",
        ),
        (
            &["explain", "models/sample-encoder", "--shards", "2"],
            "--shards is for genomes, and this is a model",
        ),
    ];
    for (arguments, message) in cases {
        let output = tectum(arguments);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(
            text(&output.stderr).contains(message),
            "{arguments:?}: {}",
            text(&output.stderr)
        );
    }
}

#[test]
fn text_goes_to_stdout_and_numbers_to_stderr() {
    let made = json(&with(&["--tokens", "20"]));
    let shown = tectum(&with(&["--tokens", "20"]));
    assert_eq!(
        text(&shown.stdout),
        format!("{}\n", made["text"].as_str().expect("a text"))
    );
    let told = text(&shown.stderr);
    let lines: Vec<&str> = told.lines().collect();
    assert!(
        lines.len() == 3 && lines[0].starts_with("prompt: 5 tokens in "),
        "{told}"
    );
    assert!(lines[1].starts_with("text: 20 tokens (the first from the scores of the prompt), 19 tokens run one at a time in "), "{told}");
    assert!(
        [lines[0], lines[1]]
            .iter()
            .all(|line| line.contains(" tokens/s)")),
        "{told}"
    );
    assert!(
        lines[1].ends_with(", stopped at --tokens")
            && lines[2].starts_with("on cpu (")
            && lines[2].contains(": 20 runs, "),
        "{told}"
    );
    let verbose = text(&tectum(&with(&["--tokens", "20", "--verbose"])).stderr);
    assert!(verbose.contains("\ncache of keys and values: f32, 32.8 kB: 4 bytes per number as stored, 10.24 with padding"), "{verbose}");
    let quiet = tectum(&with(&["--tokens", "20", "--quiet"]));
    assert_eq!((quiet.stdout, quiet.stderr.len()), (shown.stdout, 0));
    let found = [
        "/prompt_ids",
        "/end",
        "/ended_by",
        "/prefill/tokens",
        "/decode/tokens",
        "/receipt/device/id",
        "/receipt/runs",
    ];
    let found = found.map(|path| made.pointer(path).cloned().unwrap_or_default());
    assert_eq!(
        Value::from(found[1..].to_vec()),
        serde_json::json!(["length", null, 5, 19, "cpu", 20]),
        "{made}"
    );
    assert_eq!(made["ids"].as_array().map(Vec::len), Some(20));
    assert!(
        made["prefill"]["tokens_per_s"]
            .as_f64()
            .is_some_and(|rate| rate > 1.0),
        "{made}"
    );
    let code = made["receipt"]["code"].to_string();
    assert!(
        [
            "attention_cached_f32",
            "attention_decode_f32",
            "cache_store_f32"
        ]
        .iter()
        .all(|kernel| code.contains(kernel)),
        "{code}"
    );
    // The same as numbers of tokens.
    let ids = found[0]
        .as_array()
        .expect("tokens")
        .iter()
        .map(Value::to_string)
        .collect::<Vec<_>>()
        .join(",");
    assert_eq!(
        json(&[
            "generate",
            "models/sample-decoder",
            "--ids",
            &ids,
            "--tokens",
            "20"
        ])["ids"],
        made["ids"]
    );
}

/// Several prompts: each has the same text as alone, in every output format.
#[test]
fn texts_side_by_side_are_those_that_each_has_alone() {
    let prompts = ["the small cat", "a", "one two three four five six seven"];
    let line = [
        &["generate", "models/sample-decoder"],
        &prompts[..],
        &["--tokens", "20"],
    ]
    .concat();
    let shown = tectum(&line);
    let output = tectum(&[&line[..], &["--json"]].concat());
    assert!(output.status.success(), "{}", text(&output.stderr));
    let made: Vec<Value> = text(&output.stdout)
        .lines()
        .map(|line| serde_json::from_str(line).expect("JSON"))
        .collect();
    assert_eq!(made.len(), 3);
    let mut lines = String::new();
    for (index, (made, prompt)) in made.iter().zip(prompts).enumerate() {
        let alone = json(&[
            "generate",
            "models/sample-decoder",
            prompt,
            "--tokens",
            "20",
        ]);
        let [got, wanted] = [made, &alone]
            .map(|made| ["prompt_ids", "ids", "text", "end"].map(|key| made[key].clone()));
        assert_eq!(got, wanted, "{prompt}");
        assert_eq!(
            (made["texts"].as_u64(), made["receipt"]["runs"].as_u64()),
            (Some(3), Some(20)),
            "{made}"
        );
        lines += &format!(
            "[{}] {}\n",
            index + 1,
            made["text"].as_str().expect("a text")
        );
    }
    assert_eq!(text(&shown.stdout), lines);
    let told = text(&shown.stderr);
    assert!(
        told.starts_with("3 prompts: ")
            && told.contains("\n3 texts: 60 tokens (the first of each from the scores of the prompt), 57 tokens run one at a time in "),
        "{told}"
    );
}

/// Each format by its kernels and its bytes; eight bits say the same as all of them.
#[test]
fn a_cache_has_the_format_that_is_asked_for() {
    let wanted = json(&with(&["--tokens", "20"]))["ids"].clone();
    let eight = ("q8", 1.125, "cache_code_q8");
    let four = [
        ("k8v4", 0.875, "cache_code_q4"),
        ("q4", 0.625, "cache_code_q4_columns"),
    ];
    let rows = [
        ("f16", 2.0, "attention_decode_f16"),
        eight,
        four[0],
        four[1],
    ];
    for (name, blocks, kernel) in rows {
        let made = json(&with(&["--tokens", "20", "--cache", name]));
        let held = &made["cache_bytes_per_value"];
        assert_eq!(
            (made["cache"].as_str(), held["blocks"].as_f64()),
            (Some(name), Some(blocks)),
            "{made}"
        );
        assert!(
            held["total"].as_f64() > Some(blocks)
                && made["receipt"]["code"].to_string().contains(kernel),
            "{made}"
        );
        // Twenty-five tokens do not fill a window: the window is in halves, for any codes.
        assert_eq!(made["ids"], wanted, "{name}");
    }
    let refused = tectum(&with(&["--cache", "q5"]));
    assert!(
        !refused.status.success()
            && text(&refused.stderr).contains("cache \"q5\"; known: f32, f16, q8, k8v4, q4")
    );
}

#[test]
fn draws_repeat_under_a_seed_and_a_text_is_stopped_at() {
    let warm = [
        "--tokens",
        "24",
        "--temperature",
        "0.9",
        "--top-k",
        "40",
        "--top-p",
        "0.95",
        "--repetition-penalty",
        "1.2",
    ];
    let drawn =
        |seed: &'static str| json(&with(&[&warm[..], &["--seed", seed]].concat()))["ids"].clone();
    assert_eq!(drawn("5"), drawn("5"));
    assert_ne!(drawn("5"), drawn("6"));
    let whole = json(&with(&["--tokens", "24"]));
    let whole = whole["text"].as_str().expect("a text");
    let stop: String = whole.chars().skip(12).take(3).collect();
    let arguments: Vec<&str> = [
        &MODEL[..],
        &[
            "--tokens",
            "24",
            "--stop",
            "nowhere at all",
            "--stop",
            &stop,
        ],
    ]
    .concat();
    let made = json(&arguments);
    assert_eq!(
        (made["text"].as_str(), made["end"].as_str()),
        (whole.find(&stop).map(|at| &whole[..at]), Some("text")),
        "{made}"
    );
    assert_eq!(made["ended_by"], stop.as_str());
}

#[test]
fn generation_is_the_same_on_vulkan() {
    let line = with(&["--tokens", "12", "--device", "vulkan:0"]);
    let output = tectum(&line);
    if output.status.code() == Some(4) {
        println!("skipped: generation on vulkan:0: {}", text(&output.stderr));
        return;
    }
    assert_eq!(json(&line)["ids"], json(&with(&["--tokens", "12"]))["ids"]);
}

#[test]
fn a_decoder_is_shown_with_what_it_takes() {
    let shown = text(&tectum(&["inspect", "models/sample-decoder"]).stdout);
    for needed in [
        "decoder of the llama family (models/sample-decoder)",
        "119104 (its scores are read from the table of tokens)",
        "2 of width 64, 4 heads of 16, 2 of keys and values, feed-forward 160 (silu)",
        "512; 0 ends a text",
        "at most 512 tokens, 0.5 kB of keys and values each",
        "F16 238.2 kB",
    ] {
        assert!(shown.contains(needed), "{needed}: {shown}");
    }
    let inspection = json(&["inspect", "models/sample-decoder"]);
    let found = [
        "/kind",
        "/family",
        "/kv_heads",
        "/tied_embeddings",
        "/cache_bytes_per_token",
        "/tokenizer",
        "/end_tokens",
        "/unused",
    ];
    let found = found.map(|path| inspection.pointer(path).cloned().unwrap_or_default());
    assert_eq!(
        Value::from(found.to_vec()),
        serde_json::json!(["decoder", "llama", 2, true, 512, true, [0], []]),
        "{inspection}"
    );
}

const TINY: &str = "tests/data/tiny_llama.gguf";

/// The tokens are those of transformers, as stored in the file.
#[test]
fn a_gguf_file_goes_on_and_is_shown() {
    let made = json(&[
        "generate",
        TINY,
        "--ids",
        "5,12,19,26,33,40,47,54,61",
        "--tokens",
        "24",
    ]);
    let shown = json(&["inspect", TINY]);
    let entry = |key: &str| {
        shown["metadata"]
            .as_array()
            .and_then(|all| all.iter().find(|entry| entry["key"] == key))
            .expect("there")
            .clone()
    };
    let greedy = entry("tectum.greedy")["value"]["first"]
        .as_array()
        .expect("tokens")
        .clone();
    assert!(
        greedy.len() == 16
            && made["ids"]
                .as_array()
                .is_some_and(|ids| ids.len() == 24 && ids.starts_with(&greedy)),
        "{made}"
    );
    assert_eq!(
        entry("llama.block_count"),
        serde_json::json!({"key": "llama.block_count", "type": "u32", "value": 1})
    );
    let found = [
        "/kind",
        "/version",
        "/alignment",
        "/refused",
        "/decoder/family",
        "/decoder/tied_embeddings",
        "/decoder/end_tokens",
        "/decoder/unused",
    ];
    let found = found.map(|path| shown.pointer(path).cloned().unwrap_or_default());
    assert_eq!(
        Value::from(found.to_vec()),
        serde_json::json!(["gguf", 3, 32, null, "llama", true, [63], []]),
        "{shown}"
    );
    let table = text(&tectum(&["inspect", TINY]).stdout);
    for needed in [
        "decoder of the llama family (tests/data/tiny_llama.gguf)",
        "1 of width 32, 4 heads of 8, 2 of keys and values, feed-forward 64 (silu)",
        "64; 63 ends a text; no tokenizer.json: prompts are numbers of tokens",
        "GGUF of version 3, 15.0 kB, tensors at multiples of 32 bytes",
        "\ngeneral.architecture                    text   \"llama\"\n",
        "24 of i32: 16, 54, 54, 54, …",
        "\ntoken_embd.weight         F16   [64, 32]  4.1 kB\n",
        "Q4_0  [32, 64]",
    ] {
        assert!(table.contains(needed), "{needed}: {table}");
    }
    // Not a model, but a file whose content can be shown.
    let rows = text(&tectum(&["inspect", "tests/data/gguf_rows.gguf"]).stdout);
    assert!(
        rows.starts_with("no decoder that runs here (")
            && rows.contains("general.architecture \"rows\"; ")
            && rows.contains("IQ4_NL"),
        "{rows}"
    );
}

#[test]
fn mistakes_get_one_line_and_an_exit_code() {
    let cases: &[(&[&str], i32, &str)] = &[
        (
            &["generate", "models/sample-decoder"],
            2,
            "generate: no prompt was given, neither as an argument, by --file or --ids, nor on the standard input",
        ),
        (
            &["generate", "models/sample-decoder", "a", "--ids", "1"],
            2,
            "cannot be used with",
        ),
        (
            &["generate", "models/sample-decoder", "--ids", "1,x"],
            2,
            "invalid value '1,x'",
        ),
        (
            &["generate", "models/sample-decoder", ""],
            2,
            "error: the prompt has no tokens",
        ),
        (
            &["generate", "models/sample-decoder", "--ids", "1,512"],
            2,
            "token 512; the model has 512",
        ),
        (
            &[
                "generate",
                "models/sample-decoder",
                "--ids",
                "1",
                "--ids",
                "2,512",
            ],
            2,
            "text 2: token 512; the model has 512",
        ),
        (
            &["generate", "models/sample-decoder", "a", ""],
            2,
            "error: text 2: the prompt has no tokens",
        ),
        (
            &[
                "generate",
                "models/sample-decoder",
                "a",
                "--temperature",
                "nan",
            ],
            2,
            "temperature NaN",
        ),
        (
            &["generate", "models/sample-decoder", "a", "--top-p", "0"],
            2,
            "top-p 0;",
        ),
        (
            &["generate", "models/sample-decoder", "a", "--stop", ""],
            2,
            "a text to stop at is empty",
        ),
        (
            &[
                "generate",
                "models/sample-decoder",
                "a",
                "--device",
                "vulkan:99",
            ],
            4,
            "device vulkan:99",
        ),
        (
            &["generate", "models/sample-encoder", "a"],
            4,
            "model_type \"bert\" is that of an encoder, which `tectum embed` runs; encoders: \"bert\"; decoders: \"gpt2\", ",
        ),
        (
            &["generate", "models/nowhere", "--ids", "1"],
            7,
            "models/nowhere\n  because: there is no such file or folder; a model is a folder or a GGUF file on this machine",
        ),
        (
            &["embed", "models/nowhere", "a"],
            7,
            "models/nowhere\n  because: there is no such file or folder; an encoder is a folder on this machine",
        ),
        (
            &["explain", "models/nowhere.gguf"],
            7,
            "models/nowhere.gguf\n  because: there is no such file or folder",
        ),
        (
            &["generate", "models", "a"],
            3,
            "models: not the folder of a model: it has no config.json",
        ),
        (
            &["embed", "Cargo.toml", "a"],
            3,
            "Cargo.toml: not a model: a folder with config.json is needed",
        ),
        (
            &["generate", "Cargo.toml", "a"],
            3,
            "Cargo.toml: not a model: a folder with config.json, or a file .gguf, is needed",
        ),
        (
            &["embed", "models/sample-encoder/config.json", "a"],
            3,
            "config.json: a file of a model; name its folder, models/sample-encoder",
        ),
        (
            &["inspect", "models/sample-encoder/model.safetensors"],
            2,
            "the weights of a model; name its folder: models/sample-encoder",
        ),
        (
            &["inspect", "models/sample-encoder/tokenizer.json"],
            2,
            "the tokenizer of a model; name its folder: models/sample-encoder",
        ),
        (
            &["run", "models/sample-decoder/config.json"],
            2,
            "the configuration of a model; name its folder: models/sample-decoder",
        ),
        (
            &["explain", "models/sample-encoder", "--cache", "q8"],
            2,
            "an encoder keeps no keys and values",
        ),
        (
            &["generate", TINY, "--ids", "1", "--stop", "x"],
            2,
            "a text to stop at needs the model's tokenizer.json, which is missing",
        ),
        (
            &["generate", "models/sample-decoder", "--file", "nowhere.txt"],
            7,
            "nowhere.txt",
        ),
        (
            &["embed", TINY, "a"],
            4,
            "tiny_llama.gguf: it holds a decoder, which `tectum generate` runs; an encoder is a folder with config.json",
        ),
        (
            &["run", "models/nowhere"],
            7,
            "models/nowhere\n  because: there is no such file or folder",
        ),
        (
            &["run", "models"],
            2,
            "run models: it is a folder; a scenario, a program or a genome is a file",
        ),
        (
            &["generate", TINY, "a"],
            2,
            "tiny_llama.gguf: tokenizer.json, which a prompt in words needs, is missing; give the prompt's tokens as --ids",
        ),
        (
            &["generate", "models/nowhere.gguf", "--ids", "1"],
            7,
            "models/nowhere.gguf",
        ),
        (&["inspect", "tests/data/nothing.gguf"], 7, "nothing.gguf"),
        (
            &["embed", "models/sample-decoder", "a"],
            4,
            "model_type \"llama\" is that of a decoder, which `tectum generate` runs; ",
        ),
    ];
    for (line, code, message) in cases {
        let output = tectum(line);
        let told = text(&output.stderr);
        assert!(
            told.contains(message) && output.status.code() == Some(*code),
            "{line:?}: {:?} {told}",
            output.status.code()
        );
        assert!(
            output.stdout.is_empty(),
            "{line:?}: {}",
            text(&output.stdout)
        );
    }
    let long = vec!["1"; 600].join(",");
    let told = text(&tectum(&["generate", "models/sample-decoder", "--ids", &long]).stderr);
    assert!(
        told.contains("the prompt has 600 tokens; the model takes 512"),
        "{told}"
    );
}
