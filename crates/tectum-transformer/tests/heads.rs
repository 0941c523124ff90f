//! Steps after an encoder, as sentence-transformers describes them in a folder: compared with their
//! formulas in float64 on the vectors of the single tokens, and refused by name where they are not
//! applied.

use std::path::Path;

use serde_json::{Value, json};
use tectum::Device;
use tectum_graph::Tensor;
use tectum_transformer::{Embedder, Encoder, Model, SafetensorsWeights, cosine, input_files};

use super::decoders::{Place, devices, root};

/// Maximum difference, as a share of the maximum element of a vector.
const TOLERANCE: f64 = 2e-5;
/// Texts of several lengths in one batch.
const TEXTS: [&str; 3] = [
    "the cat is small",
    "cat",
    "a small dog and a green tree and a house",
];
/// Width of the sample's vectors.
const WIDTH: usize = 64;

/// The sample encoder with the modules Transformer, Pooling and those named.
fn write_model(name: &str, pooling: &Value, steps: &[(&str, Value)]) -> Place {
    let place = Place::new(&format!("head-{name}"));
    let sample = root().join("crates/tectum-transformer/models/sample-encoder");
    for file in ["config.json", "tokenizer.json", "model.safetensors"] {
        place.write(file, std::fs::read(sample.join(file)).expect("tracked"));
    }
    let mut modules = vec![
        json!({"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"}),
        json!({"idx": 1, "name": "1", "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}),
    ];
    write(&place, "1_Pooling/config.json", pooling.to_string());
    for (index, (kind, config)) in steps.iter().enumerate() {
        let path = format!("{}_{kind}", index + 2);
        modules.push(json!({"path": path, "type": format!("sentence_transformers.models.{kind}")}));
        if !config.is_null() {
            write(&place, &format!("{path}/config.json"), config.to_string());
        }
    }
    place.write("modules.json", json!(modules).to_string());
    place
}

/// Writes a file, with its folder.
fn write(place: &Place, name: &str, bytes: impl AsRef<[u8]>) {
    let folder = place.0.join(name);
    std::fs::create_dir_all(folder.parent().expect("a folder")).expect("writable");
    place.write(name, bytes);
}

/// Numbers without a pattern between −1 and 1.
fn numbers(seed: usize, count: usize) -> Vec<f32> {
    (0..count)
        .map(|index| ((index * 7919 + seed * 104_729 + 13) % 2003) as f32 / 1001.5 - 1.0)
        .collect()
}

/// A safetensors file of f32.
fn tensors(entries: &[(&str, &[usize], Vec<f32>)]) -> Vec<u8> {
    let (mut header, mut data) = (serde_json::Map::new(), Vec::new());
    for (name, shape, values) in entries {
        let start = data.len();
        data.extend(values.iter().flat_map(|value| value.to_le_bytes()));
        let entry = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
        header.insert((*name).to_owned(), entry);
    }
    let header = Value::from(header).to_string();
    let len = (header.len() as u64).to_le_bytes();
    [&len[..], header.as_bytes(), &data].concat()
}

/// The vector of each token of each text, in float64: the weights of a token in its text's vector
/// are an input of the graph.
fn states() -> Vec<Vec<Vec<f64>>> {
    let place = write_model("states", &json!({"pooling_mode": "mean"}), &[]);
    let device = Device::open("cpu").expect("cpu");
    let mut embedder = Embedder::open(&place.0, &device).expect("opens");
    let weights = SafetensorsWeights::open(&place.0).expect("opens");
    let embeddings = embedder.embed(&TEXTS).expect("runs");
    let of_text = |tokens: &[u32]| {
        let graph = embedder
            .graph()
            .bind(&[('B', 1), ('T', tokens.len())])
            .expect("binds");
        let mut parameters = Vec::new();
        for (name, node, shape) in graph.parameters() {
            let sizes = shape.sizes().expect("fixed");
            let mut data = vec![0.0f32; sizes.iter().product()];
            weights.read(name, &sizes, &mut data).expect("there");
            let data = data.into_iter().map(f64::from).collect();
            parameters.push((node, Tensor::new(shape, data).expect("fits")));
        }
        let of_token = |token: usize| {
            let mut feeds = parameters.clone();
            for (name, node, shape) in graph.inputs() {
                let mut data = vec![0.0; tokens.len()];
                match name {
                    "ids" => data = tokens.iter().map(|&token| f64::from(token)).collect(),
                    "pool" => data[token] = 1.0,
                    _ => {}
                }
                feeds.push((node, Tensor::new(shape, data).expect("fits")));
            }
            let mut made = graph.evaluate(&feeds).expect("fed");
            made.swap_remove(0).data().to_vec()
        };
        (0..tokens.len()).map(of_token).collect()
    };
    embeddings
        .iter()
        .map(|made| of_text(&made.tokens))
        .collect()
}

/// One pooling of the vectors of a text's tokens.
fn pooled(name: &str, states: &[Vec<f64>]) -> Vec<f64> {
    let count = states.len() as f64;
    let sum = |weight: &dyn Fn(usize) -> f64| -> Vec<f64> {
        (0..WIDTH)
            .map(|column| {
                let terms = states.iter().enumerate();
                terms
                    .map(|(index, state)| weight(index) * state[column])
                    .sum()
            })
            .collect()
    };
    match name {
        "cls" => states[0].clone(),
        "lasttoken" => states[states.len() - 1].clone(),
        "mean" => sum(&|_| 1.0 / count),
        "mean_sqrt_len_tokens" => sum(&|_| 1.0 / count.sqrt()),
        "weightedmean" => {
            let total: f64 = (1..=states.len()).map(|index| index as f64).sum();
            sum(&|index| (index + 1) as f64 / total)
        }
        "max" => (0..WIDTH)
            .map(|column| {
                let values = states.iter().map(|state| state[column]);
                values.fold(f64::NEG_INFINITY, f64::max)
            })
            .collect(),
        other => panic!("no pooling {other}"),
    }
}

/// Checks the vectors of all texts on every device.
fn assert_vectors(place: &Place, expected: &[Vec<f64>], what: &str) {
    for device in devices() {
        let name = format!("{what} on {}", device.info().id);
        let mut embedder =
            Embedder::open(&place.0, &device).unwrap_or_else(|error| panic!("{name}: {error}"));
        let made = embedder.embed(&TEXTS).expect("runs");
        for (text, (made, expected)) in made.iter().zip(expected).enumerate() {
            assert_eq!(
                (made.vector.len(), embedder.width()),
                (expected.len(), expected.len()),
                "{name}"
            );
            let scale = expected.iter().fold(0.0f64, |scale, x| scale.max(x.abs()));
            for (index, (found, expected)) in made.vector.iter().zip(expected).enumerate() {
                assert!(
                    (f64::from(*found) - expected).abs() <= TOLERANCE * scale.max(0.1),
                    "{name}, text {text}, element {index}: {found}, not {expected}"
                );
            }
        }
    }
}

/// Every pooling alone, and several concatenated: newer files list them in the order of the result,
/// the older keys have an order of their own.
#[test]
fn every_pooling_has_the_numbers_of_its_formula() {
    let states = states();
    let cases: &[(&str, Value, &[&str])] = &[
        ("cls", json!({"pooling_mode": "cls"}), &["cls"]),
        ("max", json!({"pooling_mode": "max"}), &["max"]),
        (
            "mean",
            json!({"embedding_dimension": 64, "pooling_mode": "mean", "include_prompt": true}),
            &["mean"],
        ),
        (
            "sqrt",
            json!({"pooling_mode": "mean_sqrt_len_tokens"}),
            &["mean_sqrt_len_tokens"],
        ),
        (
            "weighted",
            json!({"pooling_mode": "weightedmean"}),
            &["weightedmean"],
        ),
        (
            "last",
            json!({"pooling_mode": ["lasttoken"]}),
            &["lasttoken"],
        ),
        ("none", json!({"word_embedding_dimension": 64}), &["mean"]),
        (
            "older-none",
            json!({"pooling_mode_mean_tokens": false}),
            &["mean"],
        ),
        (
            "older-last",
            json!({"pooling_mode_mean_tokens": false, "pooling_mode_lasttoken": true}),
            &["lasttoken"],
        ),
        (
            "older-two",
            json!({"pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true}),
            &["max", "mean"],
        ),
        (
            "two",
            json!({"pooling_mode": ["mean", "max"]}),
            &["mean", "max"],
        ),
        (
            "sums",
            json!({"pooling_mode": ["lasttoken", "cls"]}),
            &["lasttoken", "cls"],
        ),
        (
            "maxima",
            json!({"pooling_mode": ["max", "max"]}),
            &["max", "max"],
        ),
        (
            "all",
            json!({"pooling_mode_cls_token": true, "pooling_mode_max_tokens": true, "pooling_mode_mean_tokens": true,
                   "pooling_mode_mean_sqrt_len_tokens": true, "pooling_mode_weightedmean_tokens": true, "pooling_mode_lasttoken": true}),
            &[
                "cls",
                "max",
                "mean",
                "mean_sqrt_len_tokens",
                "weightedmean",
                "lasttoken",
            ],
        ),
    ];
    for (name, config, poolings) in cases {
        let place = write_model(name, config, &[]);
        let expected: Vec<Vec<f64>> = states
            .iter()
            .map(|states| {
                poolings
                    .iter()
                    .flat_map(|name| pooled(name, states))
                    .collect()
            })
            .collect();
        assert_vectors(&place, &expected, name);
        let embedder = Embedder::open(&place.0, &devices()[0]).expect("opens");
        let shown: Vec<String> = embedder
            .poolings()
            .iter()
            .map(ToString::to_string)
            .collect();
        assert_eq!(shown, *poolings);
    }
}

/// x·Wᵀ + b for W [out, in].
fn affine(weight: &[f32], bias: Option<&[f32]>, x: &[f64]) -> Vec<f64> {
    let row = |(index, row): (usize, &[f32])| {
        let product: f64 = row.iter().zip(x).map(|(w, x)| f64::from(*w) * x).sum();
        product + bias.map_or(0.0, |bias| f64::from(bias[index]))
    };
    weight.chunks(x.len()).enumerate().map(row).collect()
}

fn add(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// The error function within 1.5 · 10⁻⁷: Abramowitz and Stegun 7.1.26.
fn erf(x: f64) -> f64 {
    let t = 1.0 / (1.0 + 0.327_591_1 * x.abs());
    let terms = [
        0.254_829_592,
        -0.284_496_736,
        1.421_413_741,
        -1.453_152_027,
        1.061_405_429,
    ];
    let sum = terms.iter().rev().fold(0.0, |sum, term| (sum + term) * t);
    (1.0 - sum * (-x * x).exp()).copysign(x)
}

type Function = fn(f64) -> f64;

#[test]
fn dense_layers_have_the_activations_of_pytorch() {
    let states = states();
    let activations: &[(Option<&str>, Function)] = &[
        (None, f64::tanh),
        (Some("torch.nn.modules.activation.Tanh"), f64::tanh),
        (Some("torch.nn.modules.linear.Identity"), |x| x),
        (Some("torch.nn.modules.activation.ReLU"), |x| x.max(0.0)),
        (Some("torch.nn.modules.activation.ReLU6"), |x| {
            x.clamp(0.0, 6.0)
        }),
        (Some("torch.nn.modules.activation.GELU"), |x| {
            0.5 * x * (1.0 + erf(x / std::f64::consts::SQRT_2))
        }),
        (Some("torch.nn.modules.activation.SiLU"), |x| {
            x / (1.0 + (-x).exp())
        }),
        (Some("torch.nn.modules.activation.ELU"), |x| {
            if x > 0.0 { x } else { x.exp_m1() }
        }),
        (Some("torch.nn.modules.activation.Sigmoid"), |x| {
            1.0 / (1.0 + (-x).exp())
        }),
    ];
    let (weight, bias) = (numbers(1, 8 * WIDTH), numbers(2, 8));
    for (index, (activation, function)) in activations.iter().enumerate() {
        let mut config = json!({"in_features": WIDTH, "out_features": 8, "bias": true});
        if let Some(activation) = activation {
            config["activation_function"] = json!(activation);
        }
        let place = write_model(
            &format!("activation-{index}"),
            &json!({"pooling_mode": "cls"}),
            &[("Dense", config)],
        );
        let file = tensors(&[
            ("linear.weight", &[8, WIDTH], weight.clone()),
            ("linear.bias", &[8], bias.clone()),
        ]);
        write(&place, "2_Dense/model.safetensors", file);
        let expected: Vec<Vec<f64>> = states
            .iter()
            .map(|states| {
                let made = affine(&weight, Some(&bias), &states[0]);
                made.into_iter().map(function).collect()
            })
            .collect();
        assert_vectors(&place, &expected, &format!("{activation:?}"));
    }
}

/// Steps run in the order of `modules.json`: norms before and after dense layers, residuals with and
/// without a product, two poolings before them, and truncation after the last.
#[test]
fn steps_run_in_their_order_and_vectors_are_truncated_last() {
    let states = states();
    let input = 2 * WIDTH;
    let [gain, shift] = [3, 4].map(|seed| numbers(seed, input));
    let first = (numbers(5, 8 * input), numbers(6, 8));
    let (second, third, across) = (numbers(7, 64), numbers(8, 48), numbers(9, 48));
    let dense = |inner: usize, out: usize, rest: Value| {
        let mut config = json!({"in_features": inner, "out_features": out});
        for (key, value) in rest.as_object().expect("an object") {
            config[key] = value.clone();
        }
        ("Dense", config)
    };
    let identity = "torch.nn.modules.linear.Identity";
    let steps = [
        ("LayerNorm", json!({"dimension": input})),
        dense(input, 8, json!({})),
        ("Dropout", json!({"dropout": 0.1})),
        dense(
            8,
            8,
            json!({"bias": false, "activation_function": identity, "use_residual": true}),
        ),
        dense(8, 6, json!({"bias": false, "use_residual": true})),
        ("Normalize", Value::Null),
    ];
    let place = write_model("order", &json!({"pooling_mode": ["mean", "max"]}), &steps);
    let files = [
        (
            "2_LayerNorm",
            tensors(&[
                ("norm.weight", &[input], gain.clone()),
                ("norm.bias", &[input], shift.clone()),
            ]),
        ),
        (
            "3_Dense",
            tensors(&[
                ("linear.weight", &[8, input], first.0.clone()),
                ("linear.bias", &[8], first.1.clone()),
            ]),
        ),
        (
            "5_Dense",
            tensors(&[("linear.weight", &[8, 8], second.clone())]),
        ),
        (
            "6_Dense",
            tensors(&[
                ("linear.weight", &[6, 8], third.clone()),
                ("residual.weight", &[6, 8], across.clone()),
            ]),
        ),
    ];
    for (folder, file) in files {
        write(&place, &format!("{folder}/model.safetensors"), file);
    }
    let vector = |states: &Vec<Vec<f64>>| {
        let x = [pooled("mean", states), pooled("max", states)].concat();
        let mean = x.iter().sum::<f64>() / input as f64;
        let variance = x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / input as f64;
        let normed: Vec<f64> = x
            .iter()
            .zip(gain.iter().zip(&shift))
            .map(|(x, (gain, shift))| {
                (x - mean) / (variance + 1e-5).sqrt() * f64::from(*gain) + f64::from(*shift)
            })
            .collect();
        let made = affine(&first.0, Some(&first.1), &normed);
        let made: Vec<f64> = made.into_iter().map(f64::tanh).collect();
        let made = add(&affine(&second, None, &made), &made);
        let last = affine(&third, None, &made).into_iter().map(f64::tanh);
        let made = add(&last.collect::<Vec<f64>>(), &affine(&across, None, &made));
        let length = made.iter().map(|x| x * x).sum::<f64>().sqrt();
        made.into_iter().map(|x| x / length).collect::<Vec<f64>>()
    };
    let expected: Vec<Vec<f64>> = states.iter().map(vector).collect();
    assert_vectors(&place, &expected, "whole");
    let embedder = Embedder::open(&place.0, &devices()[0]).expect("opens");
    let shown: Vec<String> = embedder.steps().collect();
    assert_eq!(
        shown,
        [
            "layer norm",
            "dense 128 to 8 (Tanh)",
            "dense 8 to 8 (Identity)",
            "dense 8 to 6 (Tanh)",
            "length 1"
        ]
    );
    assert!(embedder.normalized());
    // The files of the steps are inputs of a run too.
    let inputs = input_files(&place.0).expect("lists");
    for name in [
        "1_Pooling/config.json",
        "3_Dense/model.safetensors",
        "config.json",
    ] {
        assert!(inputs.contains(&place.0.join(name)), "{name}: {inputs:?}");
    }

    place.write(
        "config_sentence_transformers.json",
        json!({"truncate_dim": 4}).to_string(),
    );
    let cut: Vec<Vec<f64>> = expected.iter().map(|vector| vector[..4].to_vec()).collect();
    assert_vectors(&place, &cut, "truncated");
    assert!(
        !Embedder::open(&place.0, &devices()[0])
            .expect("opens")
            .normalized()
    );
    // More numbers than there are.
    place.write(
        "config_sentence_transformers.json",
        json!({"truncate_dim": 7}).to_string(),
    );
    assert_vectors(&place, &expected, "not truncated");
}

fn embedder(place: &Place) -> Embedder {
    Embedder::open(&place.0, &Device::open("cpu").expect("cpu")).expect("opens")
}

/// The keys of sentence-transformers 6 mean what the older ones mean; the maximum number of tokens
/// is that of the tokenizer if no other is defined.
#[test]
fn folders_of_newer_and_older_versions_give_the_same_vectors() {
    let normalize = [(
        "Normalize",
        json!({"module_input_name": "sentence_embedding"}),
    )];
    let newer = write_model(
        "newer",
        &json!({"embedding_dimension": 64, "pooling_mode": "mean", "include_prompt": true}),
        &normalize,
    );
    let settings = json!({
        "transformer_task": "feature-extraction",
        "modality_config": {"text": {"method": "forward", "method_output_name": "last_hidden_state"}},
        "module_output_name": "token_embeddings"
    });
    newer.write("sentence_bert_config.json", settings.to_string());
    newer.write(
        "config_sentence_transformers.json",
        json!({"model_type": "SentenceTransformer", "prompts": {"query": "", "document": ""}, "default_prompt_name": null, "similarity_fn_name": "cosine"}).to_string(),
    );
    let kinds = [
        "sentence_transformers.base.modules.transformer.Transformer",
        "sentence_transformers.sentence_transformer.modules.pooling.Pooling",
        "sentence_transformers.base.modules.normalize.Normalize",
    ];
    let modules: Vec<Value> = kinds
        .iter()
        .zip(["", "1_Pooling", "2_Normalize"])
        .map(|(kind, path)| json!({"type": kind, "path": path}))
        .collect();
    newer.write("modules.json", json!(modules).to_string());
    let older = write_model(
        "older",
        &json!({"word_embedding_dimension": 64, "pooling_mode_cls_token": false, "pooling_mode_mean_tokens": true}),
        &[("Normalize", Value::Null)],
    );
    let [new, old] = [&newer, &older].map(|place| embedder(place).embed(&TEXTS).expect("runs"));
    assert_eq!(new, old);

    let longest = "cat ".repeat(200);
    for (tokenizer, sentence, tokens) in [
        ("9", "null", 9),
        ("1000000000000000019884624838656", "null", 128),
        ("null", "null", 128),
        ("9", "7", 7),
        ("9", "4096", 128),
    ] {
        newer.write(
            "tokenizer_config.json",
            format!(r#"{{"model_max_length": {tokenizer}}}"#),
        );
        newer.write(
            "sentence_bert_config.json",
            format!(r#"{{"max_seq_length": {sentence}}}"#),
        );
        let mut embedder = embedder(&newer);
        assert_eq!(embedder.max_tokens(), tokens, "{tokenizer} and {sentence}");
        let made = embedder.embed(&[&longest]).expect("runs");
        assert_eq!(
            (made[0].tokens.len(), made[0].cut_tokens),
            (tokens, 202 - tokens)
        );
    }
}

#[test]
fn the_default_prompt_precedes_texts_and_lower_case_is_applied() {
    let place = write_model("prompt", &json!({"pooling_mode": "mean"}), &[]);
    let mut alone = embedder(&place);
    let plain =
        ["the small dog", "dog"].map(|text| alone.embed(&[text]).expect("runs").swap_remove(0));
    let settings = |name: &str| {
        json!({"prompts": {"query": "the small ", "nothing": null}, "default_prompt_name": name})
            .to_string()
    };
    place.write("config_sentence_transformers.json", settings("query"));
    let mut prompted = embedder(&place);
    assert_eq!(prompted.prompt(), "the small ");
    assert_eq!(prompted.embed(&["dog"]).expect("runs")[0], plain[0]);
    // Tokens are run as they are.
    let tokens = plain[1].tokens.clone();
    assert_eq!(
        prompted.embed_tokens(vec![tokens]).expect("runs")[0],
        plain[1]
    );
    let mut fork = prompted.fork().expect("forks");
    assert_eq!(fork.embed(&["dog"]).expect("runs")[0], plain[0]);
    for name in ["nothing", "document"] {
        place.write("config_sentence_transformers.json", settings(name));
        assert_eq!(embedder(&place).embed(&["dog"]).expect("runs")[0], plain[1]);
    }

    let tokenizer = std::fs::read_to_string(place.0.join("tokenizer.json")).expect("there");
    assert!(tokenizer.contains(r#""lowercase": true"#));
    place.write(
        "tokenizer.json",
        tokenizer.replace(r#""lowercase": true"#, r#""lowercase": false"#),
    );
    place.write("config_sentence_transformers.json", "{}");
    let cased = embedder(&place).embed(&["DOG"]).expect("runs");
    assert!(
        cosine(&cased[0].vector, &plain[1].vector) < 0.999,
        "an unknown word"
    );
    place.write("sentence_bert_config.json", r#"{"do_lower_case": true}"#);
    assert_eq!(embedder(&place).embed(&["DOG"]).expect("runs")[0], plain[1]);
}

/// Each module and each setting that is not applied is refused with the file and the key.
#[test]
fn steps_that_are_not_applied_are_refused_by_name() {
    let mean = json!({"pooling_mode": "mean"});
    let dense = json!({"in_features": 64, "out_features": 8});
    let pooling = |config: Value| (config, Vec::new());
    let step = |kind: &'static str, config: Value| (mean.clone(), vec![(kind, config)]);
    let with = |key: &str, value: Value| {
        let mut config = dense.clone();
        config[key] = value;
        config
    };
    let cases = [
        (
            pooling(json!({"pooling_mode": "median"})),
            "1_Pooling/config.json: pooling_mode \"median\"; known are cls, max, mean, ",
        ),
        (
            pooling(json!({"pooling_mode": []})),
            "1_Pooling/config.json: pooling_mode is an empty list",
        ),
        (
            pooling(json!({"pooling_mode_median_tokens": true})),
            "1_Pooling/config.json: pooling_mode_median_tokens true is not known",
        ),
        (
            step("CNN", json!({})),
            "modules.json: module 3 is \"sentence_transformers.models.CNN\"; supported of sentence_transformers are Transformer, Pooling, then any of Dense",
        ),
        (
            step("Pooling", mean.clone()),
            "modules.json: module 3 is \"sentence_transformers.models.Pooling\"",
        ),
        (
            step(
                "Normalize",
                json!({"module_input_name": "token_embeddings"}),
            ),
            "2_Normalize/config.json: module_input_name \"token_embeddings\"; \"sentence_embedding\" is supported",
        ),
        (
            step("Dense", with("module_output_name", json!("other"))),
            "2_Dense/config.json: module_output_name \"other\"",
        ),
        (
            step(
                "Dense",
                with(
                    "activation_function",
                    json!("torch.nn.modules.activation.Mish"),
                ),
            ),
            "2_Dense/config.json: activation_function \"torch.nn.modules.activation.Mish\"; Identity, Tanh, ",
        ),
        (
            step("Dense", with("activation_function", json!("mine.Tanh"))),
            "2_Dense/config.json: activation_function \"mine.Tanh\"",
        ),
        (
            step("Dense", with("in_features", json!(65))),
            "2_Dense/config.json: in_features 65, out_features 8; the vector before it has 64 numbers",
        ),
        (
            step("Dense", dense.clone()),
            "2_Dense: there is no model.safetensors",
        ),
        (
            step("LayerNorm", json!({"dimension": 63})),
            "2_LayerNorm/config.json: dimension 63; the vector before it has 64 numbers",
        ),
    ];
    for (index, ((pooling, steps), message)) in cases.into_iter().enumerate() {
        let place = write_model(&format!("refused-{index}"), &pooling, &steps);
        let error = Encoder::read(&place.0).expect_err(message).to_string();
        let of_folder = format!("{}{}", place.0.display(), std::path::MAIN_SEPARATOR);
        assert!(
            error.contains(message) && error.starts_with(&of_folder),
            "{error}"
        );
        assert!(Model::open(&place.0).is_err());
    }

    let modules = |kinds: &[(&str, &str)]| {
        let list: Vec<Value> = kinds
            .iter()
            .map(|(kind, path)| json!({"type": kind, "path": path}))
            .collect();
        json!(list).to_string()
    };
    const TRANSFORMER: &str = "sentence_transformers.models.Transformer";
    const POOLING: &str = "sentence_transformers.models.Pooling";
    let files = [
        ("modules.json", modules(&[]), "modules.json: module 1 is missing"),
        ("modules.json", modules(&[(TRANSFORMER, "")]), "modules.json: module 2 is missing"),
        ("modules.json", modules(&[(TRANSFORMER, ""), ("sentence_transformers.models.Dense", "2_Dense"), (POOLING, "1_Pooling")]), "module 2 is \"sentence_transformers.models.Dense\""),
        ("modules.json", modules(&[("mine.Transformer", ""), (POOLING, "1_Pooling")]), "module 1 is \"mine.Transformer\""),
        ("modules.json", modules(&[("sentence_transformers.sparse_encoder.models.MLMTransformer", ""), ("sentence_transformers.sparse_encoder.models.SpladePooling", "1_SpladePooling")]), "MLMTransformer"),
        ("modules.json", modules(&[(TRANSFORMER, ""), ("sentence_transformers.sparse_encoder.models.SpladePooling", "1_Pooling")]), "SpladePooling"),
        ("modules.json", modules(&[(TRANSFORMER, "0_Transformer"), (POOLING, "1_Pooling")]), "the encoder is in the folder \"0_Transformer\""),
        ("modules.json", modules(&[(TRANSFORMER, ""), (POOLING, "../1_Pooling")]), "\"../1_Pooling\" is no folder in the model's"),
        ("config_sentence_transformers.json", json!({"model_type": "SparseEncoder"}).to_string(), "model_type \"SparseEncoder\""),
        ("config_sentence_transformers.json", json!({"truncate_dim": 0}).to_string(), "truncate_dim 0"),
        ("config_sentence_transformers.json", json!({"prompts": {"a": "b"}, "default_prompt_name": "c"}).to_string(), "default_prompt_name \"c\" is not one of the prompts: a"),
        ("1_Pooling/config.json", json!({"pooling_mode": "mean", "include_prompt": false}).to_string(), ""),
        ("sentence_bert_config.json", json!({"transformer_task": "fill-mask"}).to_string(), "transformer_task \"fill-mask\"; \"feature-extraction\" is supported"),
        ("sentence_bert_config.json", json!({"module_output_name": "sentence_embedding"}).to_string(), "module_output_name \"sentence_embedding\""),
        ("sentence_bert_config.json", json!({"modality_config": {"text": {"method": "forward", "method_output_name": "pooler_output"}}}).to_string(), "modality_config.text.method_output_name \"pooler_output\""),
        ("sentence_bert_config.json", json!({"tokenizer_name_or_path": "other"}).to_string(), "tokenizer_name_or_path \"other\""),
        ("sentence_bert_config.json", json!({"processing_kwargs": {"text": {"max_length": 5}}}).to_string(), "processing_kwargs.text"),
        ("sentence_roberta_config.json", json!({"max_seq_length": 0}).to_string(), "a maximum of 0 tokens"),
    ];
    for (index, (name, text, message)) in files.into_iter().enumerate() {
        let place = write_model(&format!("refused-file-{index}"), &mean, &[]);
        write(&place, name, &text);
        let read = |place: &Path| Encoder::read(place).map(drop);
        if message.is_empty() {
            // It has an effect only with a default prompt.
            read(&place.0).expect("no prompt");
            let prompt = json!({"prompts": {"a": "b "}, "default_prompt_name": "a"});
            place.write("config_sentence_transformers.json", prompt.to_string());
            let error = read(&place.0).expect_err("a prompt").to_string();
            assert!(
                error.ends_with("include_prompt false with a default prompt; true is supported"),
                "{error}"
            );
            continue;
        }
        let error = read(&place.0).expect_err(message).to_string();
        assert!(error.contains(message), "{name} {text}: {error}");
    }
}

/// Only a token that is outside the table is refused: files of tokenizers often have more tokens than
/// the table has rows.
#[test]
fn a_tokenizer_may_have_more_tokens_than_the_table() {
    let place = write_model("tokens", &json!({"pooling_mode": "mean"}), &[]);
    let before = embedder(&place).embed(&["the cat"]).expect("runs");
    let tokenizer = std::fs::read_to_string(place.0.join("tokenizer.json")).expect("there");
    let mut tokenizer: Value = serde_json::from_str(&tokenizer).expect("JSON");
    let added = tokenizer["added_tokens"].as_array_mut().expect("a list");
    added.push(json!({"id": 249, "content": "[NEW]", "single_word": false, "lstrip": false, "rstrip": false, "normalized": false, "special": true}));
    place.write("tokenizer.json", tokenizer.to_string());
    let mut embedder = embedder(&place);
    assert_eq!(embedder.embed(&["the cat"]).expect("runs"), before);
    assert_eq!(
        embedder
            .embed(&["the cat", "a [NEW] cat"])
            .expect_err("outside")
            .to_string(),
        "text 2: token 249 (\"[NEW]\"); the model has 249"
    );
}
