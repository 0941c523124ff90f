use std::path::{Path, PathBuf};

use tectum::operation::product::panel_format::PanelFormat;
use tectum::{Device, LayoutPreferences};
use tectum_graph::Tensor;

use super::context::bucket;
use super::*;

/// The golden vector's first numbers, in float64 by NumPy from the same file.
const GOLDEN: [f32; 8] = [
    0.0676569, 0.0634959, 0.0487131, 0.0793050, 0.0374481, 0.0026528, 0.0393750, -0.0070985,
];
const TEXTS: [&str; 2] = ["This is an example sentence", "Each sentence is converted"];
/// The cosine of their vectors.
const COSINE: f64 = 0.404_559_19;

fn devices() -> Vec<Device> {
    let open = |id: &'static str| {
        Device::open_if_present(id)
            .expect("absent or usable")
            .or_else(|| {
                eprintln!("skipped: {id} is absent");
                None
            })
    };
    ["cpu", "vulkan:0", "cuda:0"]
        .into_iter()
        .filter_map(open)
        .collect()
}

fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("models/sample-encoder")
}

/// A folder for this test with the sample model's files.
fn copy_of_sample(test: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tectum-{test}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        std::fs::copy(sample().join(file), folder.join(file)).expect("copied");
    }
    folder
}

#[test]
fn minilm_gives_the_golden_vectors_on_every_device() {
    let Some(folder) = minilm() else {
        eprintln!(
            "skipped: bench/models/minilm is absent (python3 bench/peers/minilm.py): golden vectors"
        );
        return;
    };
    for device in devices() {
        let mut embedder = Embedder::open(&folder, &device).expect("opens");
        let made = embedder.embed(&TEXTS).expect("runs");
        assert_eq!(made[0].tokens, [101, 2023, 2003, 2019, 2742, 6251, 102]);
        for (index, (got, golden)) in made[0].vector.iter().zip(GOLDEN).enumerate() {
            assert!(
                (got - golden).abs() < 1e-6,
                "{device:?}: element {index} is {got}, not {golden}"
            );
        }
        let found = cosine(&made[0].vector, &made[1].vector);
        assert!(
            (found - COSINE).abs() < 1e-6,
            "{device:?}: {found}, not {COSINE}"
        );
        assert_eq!(
            (
                embedder.parameters(),
                embedder.max_tokens(),
                embedder.poolings(),
                embedder.normalized()
            ),
            (22_565_376, 256, &[Pooling::Mean][..], true)
        );
    }
}

/// Weights in fewer bits: the similarity of the vectors to those of f32. The integers' bound is a
/// goal that no other runtime of that speed meets.
#[test]
fn minilm_stays_near_in_fewer_bits() {
    let Some(folder) = minilm() else {
        eprintln!(
            "skipped: bench/models/minilm is absent (python3 bench/peers/minilm.py): weights in fewer bits"
        );
        return;
    };
    let device = Device::open("cpu").expect("cpu");
    let long = "The lab was empty and cold, the grease in the bearings thick, and every model of the rig wrong about its friction. ".repeat(4);
    let texts = [
        TEXTS[0],
        TEXTS[1],
        "What does the pendulum weigh?",
        long.as_str(),
    ];
    let mut vectors = PanelFormat::ALL.map(|format| {
        Embedder::new(Encoder::read(&folder).expect("read"), &device, Some(format))
            .expect("opens")
            .embed(&texts)
            .expect("runs")
    });
    let exact = std::mem::take(&mut vectors[0]);
    for (format, least) in [
        (PanelFormat::F16, 0.999_999),
        (PanelFormat::Bf16, 0.9999),
        (PanelFormat::Int8, 0.999),
    ] {
        for (exact, made) in exact.iter().zip(&vectors[format as usize]) {
            let found = cosine(&exact.vector, &made.vector);
            assert!(
                found >= least,
                "{format}: {found} for {} tokens",
                exact.tokens.len()
            );
        }
    }
}

/// The model in float64 by the graph's evaluator, which uses neither fusion nor devices.
fn in_float64(embedder: &Embedder, folder: &Path, tokens: &[u32]) -> Vec<f64> {
    let graph = embedder
        .graph()
        .bind(&[('B', 1), ('T', tokens.len())])
        .expect("binds");
    let weights = SafetensorsWeights::open(folder).expect("opens");
    let mut feeds = Vec::new();
    for (name, node, shape) in graph.parameters() {
        let sizes = shape.sizes().expect("fixed");
        let mut data = vec![0.0f32; sizes.iter().product()];
        weights.read(name, &sizes, &mut data).expect("there");
        feeds.push((
            node,
            Tensor::new(shape, data.into_iter().map(f64::from).collect()).expect("fits"),
        ));
    }
    for (name, node, shape) in graph.inputs() {
        let data = match name {
            "ids" => tokens.iter().map(|&token| f64::from(token)).collect(),
            "mask" => vec![0.0; tokens.len()],
            _ => vec![1.0 / tokens.len() as f64; tokens.len()],
        };
        feeds.push((node, Tensor::new(shape, data).expect("fits")));
    }
    graph
        .evaluate(&feeds)
        .expect("fed")
        .swap_remove(0)
        .data()
        .to_vec()
}

/// Alone and in batches with longer and shorter texts, at every length around the ends of buckets:
/// padding has no effect.
#[test]
fn a_text_has_one_vector_in_any_batch() {
    let texts: Vec<String> = [1, 5, 6, 7, 14, 15, 40, 62, 63, 100, 126, 127]
        .iter()
        .map(|&words| vec!["cat"; words].join(" "))
        .collect();
    let texts: Vec<&str> = texts
        .iter()
        .map(String::as_str)
        .chain(["", "the tree is green"])
        .collect();
    for device in devices() {
        let mut embedder = Embedder::open(&sample(), &device).expect("opens");
        let together = embedder.embed(&texts).expect("runs");
        for (text, made) in texts.iter().zip(&together) {
            let alone = embedder.embed(&[text]).expect("runs").swap_remove(0);
            let wanted = in_float64(&embedder, &sample(), &made.tokens);
            for (index, (&got, wanted)) in made.vector.iter().zip(wanted).enumerate() {
                assert!(
                    (f64::from(got) - wanted).abs() < 1e-6,
                    "{device:?}: {text:?}[{index}] is {got}, not {wanted}"
                );
                assert!(
                    (got - alone.vector[index]).abs() < 1e-6,
                    "{device:?}: {text:?}[{index}] is {got}, alone {}",
                    alone.vector[index]
                );
            }
        }
        assert_eq!(
            together[11].tokens.len(),
            128,
            "cut to what the model takes"
        );
        assert_eq!(
            together
                .iter()
                .map(|made| made.cut_tokens)
                .collect::<Vec<_>>(),
            [&[0; 11][..], &[1, 0, 0]].concat()
        );
    }
}

/// A layout of weights is a preference, not a property of a device: each is recorded, compiled and
/// run on each device.
#[test]
fn either_layout_of_weights_gives_the_same_vectors() {
    let texts = [TEXTS[0], TEXTS[1], "the tree is green"];
    for device in devices() {
        let [plain, packed] = [false, true].map(|packed_weights| {
            let preferences = LayoutPreferences {
                packed_weights,
                ..device.info().preferences()
            };
            let mut embedder = Embedder::with_layout(
                Encoder::read(&sample()).expect("read"),
                &device,
                preferences,
                None,
                &mut tectum::WorkProgress::ignore,
            )
            .expect("opens");
            let made = embedder.embed(&texts).expect("runs");
            let reads_panels = embedder
                .code()
                .iter()
                .any(|code| code.kernel.starts_with("gemm_panels"));
            assert_eq!(
                reads_panels,
                packed_weights,
                "{device:?}: {:?}",
                embedder.code()
            );
            made
        });
        for (text, (plain, packed)) in texts.iter().zip(plain.iter().zip(&packed)) {
            for (index, (plain, packed)) in plain.vector.iter().zip(&packed.vector).enumerate() {
                assert!(
                    (plain - packed).abs() < 1e-6,
                    "{device:?}: {text:?}[{index}] is {plain}, in panels {packed}"
                );
            }
        }
    }
}

/// Forks share weights: each may run in its own task, concurrently.
#[test]
fn forks_embed_side_by_side() {
    use rayon::prelude::*;
    let texts: Vec<String> = (0..24)
        .map(|text| vec!["cat"; 1 + text * 5].join(" "))
        .collect();
    for device in devices() {
        let mut embedder = Embedder::open(&sample(), &device).expect("opens");
        let mut forks: Vec<Embedder> = (0..6).map(|_| embedder.fork().expect("forks")).collect();
        let embed = |embedder: &mut Embedder, texts: &[String]| -> Vec<Vec<f32>> {
            texts
                .iter()
                .map(|text| embedder.embed(&[text]).expect("runs").swap_remove(0).vector)
                .collect()
        };
        let wanted = embed(&mut embedder, &texts);
        let made: Vec<Vec<f32>> = forks
            .par_iter_mut()
            .zip(texts.par_chunks(4))
            .flat_map(|(fork, texts)| embed(fork, texts))
            .collect();
        assert_eq!(made, wanted, "{device:?}");
        assert!(forks.iter().all(
            |fork| fork.weight_bytes() == embedder.weight_bytes() && fork.session().runs() == 4
        ));
    }
}

#[test]
fn lengths_fall_into_few_buckets() {
    let mut lengths: Vec<usize> = (1..=512).map(bucket).collect();
    lengths.dedup();
    assert!(lengths.is_sorted() && lengths.len() == 24, "{lengths:?}");
    assert!((1..=512).all(|tokens| bucket(tokens) >= tokens && bucket(tokens) < tokens + 32));
}

#[test]
fn tokens_are_padded_and_cut_by_the_model_alone() {
    let folder = copy_of_sample("tokens");
    let path = folder.join("tokenizer.json");
    let text = std::fs::read_to_string(&path).expect("reads");
    let padding = r#""truncation": {"max_length": 6, "strategy": "LongestFirst", "stride": 0, "direction": "Right"}, "padding": {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": null, "pad_id": 0, "pad_type_id": 0, "pad_token": "[PAD]"}"#;
    std::fs::write(
        &path,
        text.replace(r#""truncation": null, "padding": null"#, padding),
    )
    .expect("writes");
    let tokens = Tokens::read(&folder, None).expect("reads");
    let long = tokens
        .encode("a cat and a dog and a house and a tree")
        .expect("encodes");
    assert_eq!(
        (tokens.encode("a cat").expect("encodes").len(), long.len()),
        (4, 13)
    );
    let cut = Tokens::read(&folder, Some(5))
        .expect("reads")
        .encode("a cat and a dog")
        .expect("encodes");
    assert_eq!(
        cut,
        [&long[..4], &long[12..]].concat(),
        "the last special token stays"
    );
}

/// `bench/peers/tokens.py` made them.
#[test]
fn tokens_are_those_of_the_reference_tokenizer() {
    #[derive(serde::Deserialize)]
    struct Reference {
        rows: Vec<(String, Vec<u32>)>,
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/models/tokens.json");
    let (Some(folder), Ok(text)) = (minilm(), std::fs::read(&path)) else {
        eprintln!(
            "skipped: bench/models/tokens.json or the model is absent (bench/peers/tokens.py): tokens of random strings"
        );
        return;
    };
    let reference: Reference = serde_json::from_slice(&text).expect("reads");
    let tokens = Tokens::read(&folder, None).expect("reads");
    for (text, wanted) in &reference.rows {
        assert_eq!(&tokens.encode(text).expect("encodes"), wanted, "{text:?}");
    }
    let count: usize = reference.rows.iter().map(|(_, tokens)| tokens.len()).sum();
    eprintln!("{} strings, {count} tokens", reference.rows.len());
    assert!(reference.rows.len() >= 10_000 && count > 100_000);
}

#[test]
fn tokens_that_the_model_lacks_are_refused() {
    let mut embedder =
        Embedder::open(&sample(), &Device::open("cpu").expect("cpu")).expect("opens");
    let rows = embedder.config().vocab_size as u32;
    for (tokens, needle) in [
        (vec![2, rows, 3], "; the model has "),
        (vec![], "0 tokens; 1 to "),
        (vec![2; 129], "129 tokens; 1 to 128"),
    ] {
        let error = embedder
            .embed_tokens(vec![vec![2, 3], tokens])
            .expect_err(needle)
            .to_string();
        assert!(
            error.starts_with("text 2: ") && error.contains(needle),
            "{error}"
        );
    }
    assert!(embedder.run_again().is_err(), "nothing has run");
}

/// A safetensors file from its header and its data.
fn file(header: &str, data: &[u8]) -> Vec<u8> {
    [
        &(header.len() as u64).to_le_bytes()[..],
        header.as_bytes(),
        data,
    ]
    .concat()
}

#[test]
fn half_width_floats_are_widened_exactly_and_others_refused() {
    let folder = copy_of_sample("types");
    let header = r#"{"f":{"dtype":"F16","shape":[2],"data_offsets":[0,4]},"b":{"dtype":"BF16","shape":[1,2],"data_offsets":[4,8]},"s":{"dtype":"F32","shape":[],"data_offsets":[8,12]},"i":{"dtype":"I64","shape":[1],"data_offsets":[12,20]}}"#;
    let data = [
        0x00, 0x3c, 0x01, 0x80, 0x80, 0x3f, 0x20, 0xc1, 0, 0, 0x20, 0x41, 1, 0, 0, 0, 0, 0, 0, 0,
    ];
    std::fs::write(folder.join("model.safetensors"), file(header, &data)).expect("writes");
    let weights = SafetensorsWeights::open(&folder).expect("opens");
    let read = |name: &str, shape: &[usize]| {
        let mut to = vec![0.0; shape.iter().product()];
        weights
            .read(name, shape, &mut to)
            .map(|()| to)
            .map_err(|error| error.to_string())
    };
    assert_eq!(read("f", &[2]), Ok(vec![1.0, -(2f32.powi(-24))]));
    assert_eq!(read("b", &[1, 2]), Ok(vec![1.0, -10.0]));
    assert_eq!(read("s", &[]), Ok(vec![10.0]));
    let message = |name: &str, shape: &[usize]| {
        read(name, shape)
            .expect_err("refused")
            .replace(&folder.display().to_string(), "")
    };
    assert_eq!(
        message("i", &[1]),
        "/model.safetensors: tensor i holds I64; F32, F16 and BF16 are read"
    );
    assert_eq!(
        message("b", &[2]),
        "/model.safetensors: tensor b is [1, 2], [2] is needed"
    );
    assert_eq!(
        message("c", &[2]),
        "/model.safetensors: no tensor c, which has shape [2]"
    );
}

/// Invalid headers: each is rejected, and none causes a read beyond the file.
#[test]
fn hostile_headers_are_refused() {
    let folder = copy_of_sample("hostile");
    let path = folder.join("model.safetensors");
    let refused = |bytes: &[u8]| {
        std::fs::write(&path, bytes).expect("writes");
        SafetensorsWeights::open(&folder)
            .expect_err("refused")
            .to_string()
    };
    let tensor = |offsets: &str, shape: &str| {
        format!(r#"{{"w":{{"dtype":"F32","shape":{shape},"data_offsets":{offsets}}}}}"#)
    };
    for bytes in [
        vec![],
        vec![1, 2, 3],
        file("", &[]),
        u64::MAX.to_le_bytes().to_vec(),
        file("{", &[]),
        file(&tensor("[0,8]", "[2]"), &[0; 4]),
        file(&tensor("[0,8]", "[3]"), &[0; 8]),
        file(&tensor("[8,0]", "[2]"), &[0; 8]),
        file(
            &tensor("[0,18446744073709551615]", "[4611686018427387904]"),
            &[0; 8],
        ),
        file(&tensor("[0,8]", "[2,9223372036854775807,4]"), &[0; 8]),
        file(&tensor("[4,12]", "[2]"), &[0; 12]),
    ] {
        let message = refused(&bytes);
        assert!(
            message.contains("model.safetensors: not a safetensors file"),
            "{message}"
        );
    }
    // The sample's file truncated at any place, and with changed header bytes.
    let whole = std::fs::read(sample().join("model.safetensors")).expect("reads");
    for len in (0..whole.len()).step_by(9973) {
        refused(&whole[..len]);
    }
    let header = 8 + u64::from_le_bytes(whole[..8].try_into().expect("eight bytes")) as usize;
    let changed = |at: usize, bit: usize| {
        let mut bytes = whole.clone();
        bytes[at] ^= 1 << bit;
        bytes
    };
    // Changes of its length or its JSON syntax are rejected; a number in the tensors may change.
    let structural: Vec<usize> = (8..header)
        .filter(|at| b"{}[]:,".contains(&whole[*at]))
        .collect();
    for (index, at) in (0..8)
        .chain(
            structural
                .iter()
                .step_by(structural.len().div_ceil(300))
                .copied(),
        )
        .enumerate()
    {
        refused(&changed(at, index % 8));
    }
    for index in 0..20 {
        std::fs::write(
            &path,
            changed(header + index * 997 % (whole.len() - header), index % 8),
        )
        .expect("writes");
        assert!(
            Embedder::open(&folder, &Device::open("null").expect("null")).is_ok(),
            "number {index}"
        );
    }
}

#[test]
fn a_model_in_several_files_is_one_model() {
    let folder = copy_of_sample("shards");
    let [first, second] = ["a", "b"].map(|name| {
        file(
            &format!(r#"{{"{name}":{{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}}}"#),
            &[0, 0, 0x80, 0x3f],
        )
    });
    std::fs::remove_file(folder.join("model.safetensors")).expect("removes");
    std::fs::write(folder.join("one.safetensors"), first).expect("writes");
    std::fs::write(folder.join("two.safetensors"), second).expect("writes");
    let open = |index: &str| {
        std::fs::write(folder.join("model.safetensors.index.json"), index).expect("writes");
        SafetensorsWeights::open(&folder)
            .map_err(|error| error.to_string().replace(&folder.display().to_string(), ""))
    };
    let weights =
        open(r#"{"weight_map": {"a": "one.safetensors", "b": "two.safetensors"}}"#).expect("opens");
    let mut one = [0.0];
    weights.read("b", &[1], &mut one).expect("there");
    assert_eq!((one, weights.entries().count()), ([1.0], 2));
    let message = |index: &str| open(index).expect_err("refused");
    assert_eq!(
        message(r#"{"weight_map": {"a": "two.safetensors"}}"#),
        "/model.safetensors.index.json: two.safetensors does not hold tensor a"
    );
    assert_eq!(
        message(r#"{"weight_map": {"a": "../one.safetensors"}}"#),
        "/model.safetensors.index.json: ../one.safetensors is not a file in the same folder"
    );
    assert!(message(r#"{"weight_map": {"a": "three.safetensors"}}"#).contains("three.safetensors"));
}

#[test]
fn models_of_other_kinds_are_refused_with_the_reason() {
    let folder = copy_of_sample("kinds");
    let path = folder.join("config.json");
    let text = std::fs::read_to_string(&path).expect("reads");
    let cases = [
        (
            r#""model_type": "bert""#,
            r#""model_type": "t5""#,
            "model_type \"t5\" is not supported; encoders: \"bert\"; decoders: \"gpt2\", ",
        ),
        (
            r#""model_type": "bert""#,
            r#""model_type": "llama""#,
            "model_type \"llama\" is that of a decoder, which `tectum generate` runs",
        ),
        (
            r#""model_type": "bert""#,
            r#""model": "bert""#,
            "model_type is missing; known: encoders: \"bert\"; decoders: ",
        ),
        (
            r#""hidden_act": "gelu""#,
            r#""hidden_act": "mish""#,
            "hidden_act \"mish\"",
        ),
        (
            r#""num_attention_heads": 4"#,
            r#""num_attention_heads": 5"#,
            "sizes that no model has",
        ),
        (
            r#""hidden_size": 64"#,
            r#""hidden_size": 128"#,
            "tensor embeddings.word_embeddings.weight is ",
        ),
        (
            r#""num_hidden_layers": 2"#,
            r#""num_hidden_layers": 3"#,
            "no tensor encoder.layer.2.attention.self.query.weight, which has shape [64, 64]",
        ),
        (
            r#""pad_token_id": 0"#,
            r#""position_embedding_type": "relative_key""#,
            "position_embedding_type \"relative_key\"",
        ),
    ];
    for (from, to, needle) in cases {
        assert!(text.contains(from), "{from}");
        std::fs::write(&path, text.replace(from, to)).expect("writes");
        let error = Embedder::open(&folder, &Device::open("null").expect("null"))
            .expect_err(needle)
            .to_string();
        assert!(error.contains(needle), "{error}");
    }
    // Weights in another format, which the error names.
    std::fs::write(&path, &text).expect("writes");
    std::fs::rename(
        folder.join("model.safetensors"),
        folder.join("pytorch_model.bin"),
    )
    .expect("renames");
    let error = Embedder::open(&folder, &Device::open("null").expect("null"))
        .expect_err("no safetensors")
        .to_string();
    assert!(error.contains("there is no model.safetensors; found: pytorch_model.bin (PyTorch); weights in safetensors are needed"), "{error}");
    let file = folder.join("tokenizer.json");
    let error = Embedder::open(&file, &Device::open("null").expect("null"))
        .expect_err("a file")
        .to_string();
    assert!(
        error.ends_with(&format!(
            "tokenizer.json: a file of a model; name its folder, {}",
            folder.display()
        )),
        "{error}"
    );
}

/// Seven launches a layer: one product for queries, keys and values, attention, three products with
/// bias, activation and residual, two norms; and the launches before and after the layers.
#[test]
fn a_layer_is_seven_launches() {
    let mut embedder =
        Embedder::open(&sample(), &Device::open("null").expect("null")).expect("opens");
    let launches = |embedder: &mut Embedder| {
        embedder.embed_tokens(vec![vec![2, 3]]).expect("runs");
        embedder.run_again().expect("runs").launches
    };
    let _ = launches(&mut embedder);
    let names: Vec<String> = embedder
        .code()
        .into_iter()
        .map(|code| code.kernel)
        .collect();
    let count = launches(&mut embedder);
    // Before: the gather with its fill, two sums, a norm. After: the mean, the length.
    assert_eq!(count, 7 * 2 + 7, "{names:?}");
}
